"""The life of a policy: pools screened, reviews finished, and whether its promise still holds.

The statistics are the monitor's (``workflows.watching``); what it is fed with and what it says is on record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from surelist.errors import InvalidInput
from surelist.reports import history
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key, Written
from surelist.service.record.record import SavedPolicy
from surelist.service.record.reviews import Closing, Outdated, total_of
from surelist.service.record.view import View
from surelist.service.reviewing import KnownList, to_review
from surelist.workflows import watching
from surelist.workflows.watching import WatchedPool, WatchedPromise

T = TypeVar("T")
ATTEMPTS = 5
SHOWN = 200  # pools of a policy in pictures and tables


def watched_pools(view: View, policy: str) -> list[WatchedPool]:
    """The pools that count for or against a promise, in the order of screening."""
    closings = view.closings(policy)
    return [
        WatchedPool(each.subject, closings.get(each.subject), each.facts.get("audit_rate"))
        for each in view.watched(policy)
    ]


def standing(view: View, saved: SavedPolicy) -> WatchedPromise:
    """Is the promise still true?"""
    return watching.watch(saved.policy, watched_pools(view, saved.hash))


def as_answer(saved: SavedPolicy, watched: WatchedPromise) -> dict[str, Any]:
    """Is the promise still true?"""
    return {
        "policy": saved.hash, "standing": watched.standing, "sentence": watched.sentence,
        "pools": len(watched.evidence), "evidence": list(watched.evidence), "alarm_at": watched.alarm_at,
        "waiting": watched.waiting, "withdrawn": saved.withdrawn.facts["reason"] if saved.withdrawn else None,
    }  # fmt: skip


def watched_facts(view: View, digest: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a new selection's reviews will count: said before any of them is known."""
    policy = view.policy(digest).policy
    rate, before = facts.get("audit_rate"), view.watched(digest)
    reason = watching.cannot_count(policy, facts["candidates"], facts["groups"], rate)
    if reason is None and any(each.facts["pool_sha256"] == facts["pool_sha256"] for each in before):
        reason = "this very pool was screened before, and counts once."
    if reason is None and before and before[0].facts.get("audit_rate") != rate:
        reason = f"the pools before were audited at {before[0].facts['audit_rate']}, and this one at {rate}."
    return {"watched": True} if reason is None else {"not_watched": reason}


def audit_offer(view: View, saved: SavedPolicy) -> dict[str, Any] | None:
    """Whether a pool's page offers an audit, and at which rate where that was fixed before, in percent."""
    if not watching.needs_audit(saved.policy):
        return None
    before = view.watched(saved.hash)
    rate = before[0].facts.get("audit_rate") if before else None
    return {"fixed": None if rate is None else f"{100 * rate:.6g}"}


def finish(
    view: View, ident: str, known: KnownList, *, missing: bool, audit: Mapping[str, Any] | None = None,
    key: Key | None = None,
) -> Written:  # fmt: skip
    """End the reviews of a selection, and withdraw the policy if they raise the alarm.

    ``missing`` says that reviews which are not in will never come; ``audit`` what the audit showed.
    """
    counted = audit_counts(view.selection(ident).facts, audit or {})
    return retried(lambda: _finish(view, ident, known, missing, counted, key))


def retried(job: Callable[[], T]) -> T:
    """Worked out anew where something it rests on has changed meanwhile, a few times."""
    for _ in range(ATTEMPTS - 1):
        with suppress(Outdated):
            return job()
    return job()


def audit_counts(facts: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """How many of those drawn for a selection's audit are qualified, and how many have no review."""
    given = {name: value for name, value in given.items() if value is not None}
    if "audit" not in facts or facts.get("audit_here"):
        if given:
            what = "no audit was drawn with this selection" if "audit" not in facts else "it is reviewed here"
            raise InvalidInput("missed", f"{what}; leave it out.")
        return {}
    if "missed" not in given:
        raise InvalidInput(
            "missed", "expected how many of those drawn for the audit are qualified; the API takes it."
        )
    counts = {"unaudited": 0, **given}
    said, drawn = sum(map(total_of, counts.values())), len(facts["audit"])
    if said > drawn:
        raise InvalidInput("missed", f"{drawn:,} were drawn for the audit, and {said:,} are counted.")
    return counts


def _finish(
    view: View, ident: str, known: KnownList, missing: bool, audit: Mapping[str, Any], key: Key | None
) -> Written:  # fmt: skip
    entry = view.selection(ident)
    saved, marks, facts = view.policy(entry.facts["policy"]), view.marks(ident), entry.facts
    outcomes, here = marks.outcomes(), bool(facts.get("audit_here"))
    if (saved.policy.filter.grouped and not outcomes.keys() <= known.groups.keys()) or (
        here and not known.kept
    ):
        outcomes = {}  # the list is gone, and with it who was of which group or audit: nothing is known
    require_complete(
        marks.counts()["split"], to_review(facts) - len(outcomes), missing, "they then speak for the promise"
    )
    if here and not known.kept:
        view.forget_list(ident, "its time was up").result()
    listed = {name: each for name, each in outcomes.items() if name not in known.audited}
    counts = watching.counts_of(
        saved.policy, facts["candidates"], facts["groups"], facts["shortlisted"], listed, known.groups
    )
    if here:
        others = {name: each for name, each in outcomes.items() if name in known.audited}
        audit = watching.audit_of(
            saved.policy, len(facts["audit"]), facts["audit_groups"], others, known.groups
        )  # fmt: skip
    counts |= audit
    pools = watched_pools(view, saved.hash)
    closing = Closing(ident, saved.hash, counts, marks.seq, len(view.closings(saved.hash)))
    now = [replace(pool, reviewed=counts) if pool.name == ident else pool for pool in pools]
    after = watching.watch(saved.policy, now)
    alarm = None
    if after.alarm is not None and saved.withdrawn is None:
        alarm = {"reason": after.alarm, "pools": len(after.evidence), "e_value": after.evidence[-1]}
    return view.close_reviews(closing, alarm, key).result()


def require_complete(split: int, left: int, missing: bool, then: str) -> None:
    """Raise where reviews are open and nobody says that they will never come; ``then`` is what follows."""
    if split and not missing:
        raise InvalidInput(
            "reviews",
            f"reviewers disagree about {split:,} of the candidates. Settle these first, or say that they "
            "stay open.",
        )
    if left and not missing:
        raise InvalidInput(
            "reviews",
            f"{left:,} candidates have none that counts. Review them, or say that those reviews will never "
            f"come; {then}.",
        )


def life(view: View, saved: SavedPolicy) -> dict[str, Any]:
    """What the page of a policy shows of its life."""
    newest = view.selections(saved.hash, SHOWN + 1)
    made = newest[:SHOWN][::-1]
    view.read_titles(made)
    closings, watched = view.closings(saved.hash), standing(view, saved)
    pools = [_pool(view, each, closings) for each in made]
    gaps = [100 * pool["gap"] for pool in pools if pool["gap"] is not None]
    shares = [100 * p["listed"] / p["candidates"] for p in pools if p["candidates"]]
    waiting = None if watched.waiting is None else _pool(view, view.selection(watched.waiting), closings)
    return {
        "watched": watched, "pools": pools[::-1], "more": len(newest) > SHOWN,
        "needs_audit": watched.standing is None and watching.needs_audit(saved.policy),
        "waiting": waiting,
        "evidence": history.evidence(watched.evidence, watched.alarm_at) if watched.evidence else None,
        "lengths": history.lengths(shares) if len(shares) > 1 else None,
        "gaps": history.drifts(gaps) if len(gaps) > 1 else None,
        "drifts": [pool for pool in pools[::-1] if pool["drift"]],
    }  # fmt: skip


def _pool(view: View, entry: Entry, closings: Mapping[str, Any]) -> dict[str, Any]:
    facts, counts = entry.facts, view.marks(entry.subject).counts(view.reviewer(entry.subject))
    drifts = [each for each in facts.get("checks", ()) if each["kind"] == "drift"]
    return {
        "id": entry.subject, "name": view.title(entry), "at": entry.at,
        "candidates": facts["candidates"], "listed": facts["shortlisted"],
        "yes": None if counts["seen"] else counts["yes"],
        "reviewed": sum(counts.values()), "finished": entry.subject in closings,
        "watched": bool(facts.get("watched")), "why_not": facts.get("not_watched"),
        "drift": [each["message"] for each in drifts if each["warns"]],
        "gap": max((each["gap"] for each in drifts if "gap" in each), default=None),
    }  # fmt: skip
