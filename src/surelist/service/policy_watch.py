"""The life of a policy: pools screened, reviews finished, and whether its promise still holds.

The statistics are the monitor's (``workflows.watching``); what it is fed with and what it says is on record.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from msgspec.structs import replace

from surelist.errors import InvalidInput
from surelist.reports import pictures
from surelist.service.record.event import Entry
from surelist.service.record.events import PolicyWithdrawn, ReviewsClosed, SelectionMade
from surelist.service.record.log import Written
from surelist.service.record.record import SavedPolicy, retried
from surelist.service.record.view import View
from surelist.service.reviewing import KnownList
from surelist.workflows import watching
from surelist.workflows.watching import LISTS, Count, PoolNumbers, WatchedPool, WatchedPromise, total_of

LISTED_AS = {True: "Accepted", False: "Shortlisted"}
SHOWN = 200  # pools of a policy in pictures and tables


def watched_pools(view: View, policy: str, closings: Mapping[str, PoolNumbers]) -> list[WatchedPool]:
    """The pools that count for or against a promise, in the order of screening."""
    return [
        WatchedPool(each.subject, closings.get(each.subject), each.event.audit_rate)
        for each in view.watched(policy)
    ]


def standing(view: View, saved: SavedPolicy) -> WatchedPromise:
    """Is the promise still true?"""
    return watching.watch(saved.policy, watched_pools(view, saved.hash, view.closings(saved.hash)))


@retried
def record_watched(view: View, ident: str, made: SelectionMade) -> Written[SelectionMade]:
    """A new selection that says whether its reviews will count: before any of them is known."""
    policy, before = view.policy(made.policy).policy, view.watched(made.policy)
    reason = watching.cannot_count(policy, made.candidates, made.groups, made.audit_rate)
    known = {mark for each in before for mark in each.event.pool_known_by.values()}
    if reason is None and known.intersection(made.pool_known_by.values()):
        reason = "this very pool was screened before, and counts once."
    if reason is None and view.pool_reviewed(made):
        reason = "this very pool was screened before and left out, and its reviews are known."
    if reason is None and before and (rate := before[0].event.audit_rate) != made.audit_rate:
        reason = f"the pools before were audited at {rate}, and this one at {made.audit_rate}."
    event = replace(made, watched=reason is None, not_watched=reason)
    return view.record_selection(ident, event, after=len(before)).result()


def audit_offer(view: View, saved: SavedPolicy) -> dict[str, float | None] | None:
    """Whether a pool's page offers an audit; ``fixed`` is its rate where pools before decided that."""
    if not watching.needs_audit(saved.policy):
        return None
    before = view.watched(saved.hash)
    return {"fixed": before[0].event.audit_rate if before else None}


@retried
def finish(
    view: View, ident: str, known: KnownList, *, missing: bool, missed: Count | None = None,
    unaudited: Count | None = None,
) -> Written[ReviewsClosed]:  # fmt: skip
    """End the reviews of a selection, and withdraw the policy if they raise the alarm.

    ``missing`` says that reviews which are not in will never come; ``missed`` and ``unaudited`` what an
    audit showed that was reviewed elsewhere.
    """
    made, marks = view.selection(ident).event, view.marks(ident)
    audit = _audit_counts(made, missed, unaudited)
    saved, closings = view.policy(made.policy), view.closings(made.policy)
    until, outcomes = marks.seq, marks.outcomes()  # in this order: others may mark meanwhile
    if (saved.policy.filter.grouped and not outcomes.keys() <= known.groups.keys()) or (
        made.audit_here and not known.kept
    ):
        outcomes = {}  # the list is gone, and with it who was of which group or audit: nothing is known
    # of a triage those drawn were told in numbers; the rest of its band counts nothing
    left = 0 if made.lists and audit is not None else made.to_review - len(outcomes)
    require_complete(marks.counts()["split"], left, missing, "they then speak for the promise")
    if made.audit_here and not known.kept:
        view.forget_list(ident, "its time was up").result()
    listed = {name: each for name, each in outcomes.items() if name not in known.audited}
    counts = watching.counts_of(
        saved.policy, made.candidates, made.groups, made.reviewed_anyway, listed, known.groups
    )
    if made.audit_here:
        others = {name: each for name, each in outcomes.items() if name in known.audited}
        audit = watching.audit_of(saved.policy, made.drawn, made.audit_groups, others, known.groups)
    if audit is not None:
        drawn = made.audit_groups if made.lists else None
        counts = replace(counts, missed=audit[0], unaudited=audit[1], drawn=drawn)
    if made.watched:  # alone, as it may wait for pools before it: raises where its numbers do not go together
        watching.watch(saved.policy, [WatchedPool(ident, counts, made.audit_rate)])
    after = watching.watch(saved.policy, watched_pools(view, saved.hash, {**closings, ident: counts}))
    alarm = None
    if after.alarm is not None and saved.withdrawn is None:
        alarm = PolicyWithdrawn(reason=after.alarm, pools=len(after.evidence), e_value=after.evidence[-1])
    ended = ReviewsClosed(policy=saved.hash, counts=counts)
    return view.close_reviews(ident, ended, alarm, until=until, others=len(closings)).result()


def _audit_counts(
    made: SelectionMade, missed: Count | None, unaudited: Count | None
) -> tuple[Count, Count] | None:
    """How many of those drawn for a selection's audit are qualified, and how many have no review."""
    if made.audit is None or made.audit_here:
        if missed is not None or unaudited is not None:
            what = "no audit was drawn with this selection" if made.audit is None else "it is reviewed here"
            raise InvalidInput("missed", f"{what}; leave it out.")
        return None
    if missed is None:
        raise InvalidInput(
            "missed", "expected how many of those drawn for the audit are qualified; the API takes it."
        )
    if made.lists:
        open_ones = dict.fromkeys(LISTS, 0) if unaudited is None else unaudited
        return _by_list(made, "missed", missed), _by_list(made, "unaudited", open_ones, missed)
    said = total_of(missed) + total_of(unaudited)
    if said > made.drawn:
        raise InvalidInput("missed", f"{made.drawn:,} were drawn for the audit, and {said:,} are counted.")
    return missed, unaudited or 0


def _by_list(made: SelectionMade, name: str, said: Count, beside: Count = 0) -> Count:
    """What is said of those drawn from a triage, for each of its lists."""
    if not isinstance(said, dict) or said.keys() != set(LISTS):
        raise InvalidInput(name, f"expected a number for each list of the triage: {', '.join(LISTS)}.")
    for each, drawn in made.audit_groups.items():
        counted = said[each] + (beside[each] if isinstance(beside, dict) else 0)
        if counted > drawn:
            raise InvalidInput(
                name, f"{drawn:,} of {each!r} were drawn for the audit, and {counted:,} are counted."
            )
    return said


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


def life(view: View, saved: SavedPolicy) -> dict[str, object]:
    """What the page of a policy shows of its life."""
    three, newest = saved.policy.three_ways, view.selections(saved.hash, SHOWN + 1)
    made = newest[:SHOWN][::-1]
    named, closings, watched = view.named(made), view.closings(saved.hash), standing(view, saved)
    pools = [_pool(view, each, named[each.subject].title, closings) for each in made]
    gaps = [100 * pool["gap"] for pool in pools if pool["gap"] is not None]
    shares = [100 * each.event.shortlisted / each.event.candidates for each in made if each.event.candidates]
    due = None if watched.waiting is None else view.selection(watched.waiting)
    return {
        "watched": watched, "pools": pools[::-1], "more": len(newest) > SHOWN,
        "needs_audit": watched.standing is None and watching.needs_audit(saved.policy),
        "waiting": due and _pool(view, due, view.title(due), closings), "three": three,
        "evidence": pictures.evidence(watched.evidence, watched.alarm_at) if watched.evidence else None,
        "lengths": pictures.lengths(shares, LISTED_AS[three]) if len(shares) > 1 else None,
        "gaps": pictures.drifts(gaps) if len(gaps) > 1 else None,
        "drifts": [pool for pool in pools[::-1] if pool["drift"]],
    }  # fmt: skip


def _pool(view: View, entry: Entry[SelectionMade], name: str, closings: Container[str]) -> dict[str, Any]:
    """A pool of a policy, as its page shows it."""
    counts, checks = view.marks(entry.subject).counts(view.reviewer(entry.subject)), entry.event.checks
    return {
        "entry": entry, "name": name, "yes": None if counts["seen"] else counts["yes"],
        "reviewed": sum(counts.values()), "finished": entry.subject in closings,
        "drift": [each.message for each in checks if each.kind == "drift" and each.warns],
        "gap": max((each.gap for each in checks if each.gap is not None), default=None),
    }  # fmt: skip
