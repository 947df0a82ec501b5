"""Campaigns in the app: start one, screen a pool, finish its reviews, update the threshold.

Each is a step on record; what a step leads to is worked out by ``workflows.campaign_record`` from all steps
before it. Runs in worker threads, as all of ``jobs``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises import kinds
from surelist.promises.grammar import one_target
from surelist.promises.policy import Policy
from surelist.promises.proved import proved_from
from surelist.service import policy_watch, reviewing, worklist
from surelist.service.calibrating import Past
from surelist.service.errors import Conflict
from surelist.service.jobs import count_selection, hints_of, named, new_id, source_of
from surelist.service.promise_form import FieldError, number_in, share_in
from surelist.service.record.campaigns import ENDED
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key, Written
from surelist.service.record.view import View
from surelist.service.runtime import Runtime
from surelist.service.uploads import Spool, Upload, list_of
from surelist.service.workers import run
from surelist.service.worklist import Worklist
from surelist.workflows import campaign_record
from surelist.workflows import summaries as workflow_facts
from surelist.workflows.campaign_record import REVIEWED, SCREENED, UPDATED, PoolList

LISTED = 8_000  # candidates of one list: a campaign follows each of them until its review is in
DEFAULTS: dict[str, str] = {
    "k": "5", "pool_size": "100", "alpha": "10", "monitor_alpha": "5", "schedule": "", "uncertified": "",
    "one_in": "", "name": "", "note": "",
}  # fmt: skip


def terms_like(policy: Policy) -> tuple[float, float, float] | None:
    """k, pool size and alpha of a policy whose promise a campaign can make; None for others."""
    target = policy.cutoffs[0].target
    rate, size = target.found_rate, target.pool
    if len(policy.cutoffs) > 1 or not proved_from(target, "campaign") or rate is None or size is None:
        return None
    return float(rate * Fraction(size)), size, policy.alpha


def asked_of(form: Mapping[str, Any]) -> dict[str, str]:
    """The terms as a person typed them."""
    return {name: str(form.get(name) or "").strip()[:2000] for name in DEFAULTS}


def terms_of(asked: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """What the form asks for: the target, and how the campaign goes."""
    k = number_in(asked["k"], "k", "how many qualified you need")
    size = number_in(asked["pool_size"], "pool_size", "the pool size")
    target: Any = one_target(kinds.FIRST, {"k": k, "pool_size": size})
    return target, {
        "alpha": share_in(asked["alpha"], "alpha", "how often it may be false"),
        "monitor_alpha": share_in(
            asked["monitor_alpha"], "monitor_alpha", "how often a false alarm may come"
        ),
        "schedule": _schedule(asked["schedule"]),
        "uncertified": "everyone" if asked["uncertified"] else "refuse",
        "audit_rate": _audit_rate(asked["one_in"]),
    }


def _audit_rate(one_in: str) -> float | None:
    """The chance with which each candidate is drawn, from "1 in so many"; None where nobody is."""
    if not one_in:
        return None
    many = number_in(one_in, "one_in", "1 in so many of the others")
    if many <= 1:
        raise FieldError("one_in", f"1 in so many of the others: expected more than 1, got {one_in[:40]!r}.")
    return 1 / many


def _schedule(text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    parts = text.replace(",", " ").split()
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in parts):
        raise FieldError(
            "schedule", f"updates: expected numbers of pools such as 9, 45, 189, got {text[:60]!r}."
        )
    return tuple(int(each) for each in parts)


def start(
    runtime: Runtime, view: View, past: Past, columns: Mapping[str, Any],
    asked: tuple[Any, dict[str, Any]], about: Mapping[str, Any], key: Key | None,
) -> str:  # fmt: skip
    """A campaign from rows that were decided in the past; its id. A refusal is a look at the rows too."""
    return view.once(key, lambda: _start(runtime, view, past, columns, asked, about, key)).entry.subject


def _start(
    runtime: Runtime, view: View, past: Past, columns: Mapping[str, Any],
    asked: tuple[Any, dict[str, Any]], about: Mapping[str, Any], key: Key | None,
) -> Written:  # fmt: skip
    if columns.get("group") or columns.get("labels") in ("drawn", "value"):
        raise InvalidInput(
            "columns",
            "a campaign makes one promise for everyone, from a label in every row. Choose no group, and "
            "labels of yes or no.",
        )
    target, options = asked
    missing = {"missing_labels": columns.get("missing_labels") or "error"}
    with named(past.upload, past.name):
        source = source_of(past.upload, past.name, hints_of(columns))
        rows, begun = run(
            campaign_record.begin, source, columns["score"], columns["label"], target, **options, **missing
        )
    question = {"targets": {"everyone": target.describe()}, "alpha": options["alpha"], "rule": "campaign"}
    looks = view.record_look((rows,), past.upload.sha256, "campaign", question, key)
    if isinstance(begun, NotCertifiable):
        runtime.metrics.refused.inc()
        raise begun
    facts = {
        **about, "file": past.name, "rows_sha256": past.upload.sha256, "rows_fingerprint": rows,
        "columns": {role: columns.get(role) for role in ("score", "label", "id")},
        "target": target.describe(), "k": float(target.k), "pool_size": float(target.pool_size or 0),
        **options, "schedule": list(begun.schedule), "earlier_looks": looks,
        "state": begun.state, "after": begun.after,
    }  # fmt: skip
    return view.campaigns.start(new_id(), facts, key).result()


class Standing:
    """A campaign as it stands on record: how it began, its steps, and what the last one led to."""

    def __init__(self, view: View, ident: str) -> None:
        self.view, self.entry = view, view.campaigns.one(ident)
        self.facts = self.entry.facts
        self.steps = view.campaigns.steps(ident)
        self.withdrawn = view.campaigns.withdrawn(ident)

    @property
    def after(self) -> dict[str, Any]:
        last: dict[str, Any] = (self.steps[-1].facts if self.steps else self.facts)["after"]
        return last

    def add(self, subject: str, action: str, facts: dict[str, Any], key: Key | None) -> Written:
        """Take another step, and withdraw the promise where it raises the alarm."""
        before = [(each.action, each.facts) for each in self.steps]
        after = run(campaign_record.stepped, self.facts["state"], before, action, facts)
        alarm = None
        if after["alarm"] and self.withdrawn is None:
            alarm = {"reason": after["reason"], "pools": after["pools"], "e_value": after["evidence"]}
        step = (action, {**facts, "after": after})
        return self.view.campaigns.add(
            self.entry.subject, subject, step, len(self.steps), alarm, key
        ).result()  # fmt: skip


def screen(
    runtime: Runtime, view: View, ident: str, upload: Upload, *, name: str, columns: Mapping[str, Any],
    about: Mapping[str, Any], seconds: int, key: Key | None = None, format: str | None = None,
) -> Entry:  # fmt: skip
    """Shortlist a pool with the threshold in force, keep the list for its reviews, count the pool."""
    for role, what in (("score", "the score"), ("id", "candidate ids; reviews go by them")):
        if not columns.get(role):
            raise InvalidInput(role, f"choose the column that holds {what}.")

    def job() -> Written:
        return _screen(runtime, view, ident, upload, name, columns, about, seconds, key, format)

    return view.once(key, lambda: policy_watch.retried(job)).entry


def _screen(
    runtime: Runtime, view: View, ident: str, upload: Upload, name: str, columns: Mapping[str, Any],
    about: Mapping[str, Any], seconds: int, key: Key | None, format: str | None,
) -> Written:  # fmt: skip
    now, subject = Standing(view, ident), new_id()
    _require_next(now, upload)
    output = runtime.spool.new_path(format or ("xlsx" if upload.format == "xls" else upload.format))
    try:
        made, result = _laid_out(runtime, now, upload, name, columns, output)
        counts = workflow_facts.selection_facts(
            made.selection, (upload.sha256, upload.format), (result.sha256, result.format)
        )
        facts = {
            **counts, **about, "pool": about["name"], "threshold": now.after["threshold"],
            "scores": made.scores, **_audit_facts(now, made),
        }  # fmt: skip
        kept = {role: columns.get(role) for role in ("score", "id")} | {"decimal": made.reading.decimal}
        # before the pool counts: its reviews need the list
        runtime.spool.keep_result(subject, replace(result, origin=upload.origin), seconds, kept)
        written = now.add(subject, SCREENED, facts, key)
    except BaseException:
        output.unlink(missing_ok=True)
        output.with_suffix(".list").unlink(missing_ok=True)
        runtime.spool.drop(subject)
        raise
    if written.replayed:  # sent twice at once, and the other pool counts
        runtime.spool.drop(subject)
    count_selection(runtime, written.entry.facts)
    return written


def _laid_out(
    runtime: Runtime, now: Standing, upload: Upload, name: str, columns: Mapping[str, Any], output: Path
) -> tuple[PoolList, Upload]:
    """A pool's list, ready to be reviewed together with those drawn for an audit."""
    rate = now.facts.get("audit_rate")
    drawn = None if rate is None else runtime.spool.new_path("csv")
    try:
        with named(upload, name):
            made = run(
                campaign_record.screen, source_of(upload, name, hints_of(columns)), now.after["threshold"],
                score=columns["score"], output=output, audit_rate=rate, audit=drawn,
            )  # fmt: skip
        if len(made.scores) > LISTED:
            raise InvalidInput(
                "pool",
                f"{len(made.scores):,} candidates would have to be reviewed, and a campaign follows "
                f"{LISTED:,} at most until their reviews are in. Screen smaller pools.",
            )
        result = Upload(output, output.stat().st_size, workflow_facts.sha256_of(output), output.suffix[1:])
        audit = drawn if made.audit else None
        run(worklist.build, output, list_of(result), columns, made.reading.decimal, audit)
    finally:
        if drawn is not None:
            drawn.unlink(missing_ok=True)
    return made, result


def _audit_facts(now: Standing, made: PoolList) -> dict[str, Any]:
    """The draw of a pool's audit, for the record; nothing where there is none."""
    if made.draws is None:
        return {}
    return {
        "audit_rate": now.facts["audit_rate"], "audit": made.audit, "draws": made.draws, "audit_here": True
    }  # fmt: skip


def _require_next(now: Standing, upload: Upload) -> None:
    if now.withdrawn is not None:
        raise Conflict(ENDED)
    if now.after["due"]:
        raise Conflict("pool: an update is due first. Update the threshold, then screen with the new one.")
    if any(each.facts.get("pool_sha256") == upload.sha256 for each in now.steps):
        raise Conflict("pool: this very file was screened in this campaign before, and counts once.")


def finish(view: View, spool: Spool, pool: str, *, missing: bool, key: Key | None = None) -> Written:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    return view.once(key, lambda: policy_watch.retried(lambda: _finish(view, spool, pool, missing, key)))


def _finish(view: View, spool: Spool, pool: str, missing: bool, key: Key | None) -> Written:
    entry = view.subject(pool)
    now, marks, facts = Standing(view, entry.facts["campaign"]), view.marks(pool), entry.facts
    ranks = _ranks(view, spool, pool)
    outcomes = {name: known for name, known in marks.outcomes().items() if name in ranks}
    policy_watch.require_complete(
        marks.counts()["split"], reviewing.to_review(facts) - len(outcomes), missing,
        "they then count as not qualified when the threshold is updated, and as qualified in the alarm",
    )  # fmt: skip
    labels = ["?"] * reviewing.to_review(facts)
    for name, qualified in outcomes.items():
        labels[ranks[name] - 1] = "1" if qualified else "0"
    said = {"pool": facts["pool"], "labels": "".join(labels)}
    return now.add(pool, REVIEWED, said, key)


def _ranks(view: View, spool: Spool, pool: str) -> dict[str, int]:
    """The rank of each listed candidate; nobody's where the list is no longer kept, which goes on record."""
    kept = spool.result(pool)
    if kept is not None and list_of(kept.upload).exists():
        with Worklist(list_of(kept.upload)) as work:
            return work.ranked()
    view.forget_list(pool, "its time was up").result()
    return {}


def update(view: View, ident: str, steps: int | None, key: Key | None) -> Written:
    """The scheduled update. ``steps`` is how far the campaign was when somebody decided it."""
    return view.once(key, lambda: _update(view, ident, steps, key))


def _update(view: View, ident: str, steps: int | None, key: Key | None) -> Written:
    now = Standing(view, ident)
    if now.withdrawn is not None:
        raise Conflict(ENDED)
    if steps is not None and steps != len(now.steps):
        raise Conflict("campaign: another step was made meanwhile. Load the page again to see how it stands.")
    return now.add(ident, UPDATED, {}, key)


def about_pool(name: str, note: str, seconds: int) -> dict[str, Any]:
    """What a pool is called and how long its list is kept, for the record."""
    return {"name": name, "note": note, "kept_until": reviewing.until(time.time() + seconds)}
