"""Campaigns in the app: start one, screen a pool, finish its reviews, update the threshold.

Each is a step on record; what a step leads to is worked out by ``workflows.campaign_record`` from all steps
before it. Runs in worker threads, as all of ``jobs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises import kinds
from surelist.promises.grammar import one_target
from surelist.promises.kinds.counts import CountPromise
from surelist.reports.evidence import Question
from surelist.service import policy_watch, reviewing, worklist
from surelist.service.calibrating import Past
from surelist.service.choices import AboutList, ChosenColumns
from surelist.service.errors import Conflict
from surelist.service.jobs import list_path, made_upload, new_id, passing
from surelist.service.promise_form import FieldError, number_in, share_in
from surelist.service.record import campaigns as record
from surelist.service.record.event import Entry, of_kind
from surelist.service.record.log import Written
from surelist.service.record.record import retried
from surelist.service.record.view import View
from surelist.service.runtime import Session, once
from surelist.service.uploads import Upload, list_of, removing
from surelist.service.workers import run
from surelist.workflows import campaign_record as steps, summaries as workflow_facts
from surelist.workflows.campaign_record import CampaignStatus

LISTED = 8_000  # candidates of one list: a campaign follows each of them until its review is in
DEFAULTS: dict[str, str] = {
    "k": "5", "pool_size": "100", "alpha": "10", "monitor_alpha": "5", "schedule": "", "uncertified": "",
    "one_in": "", "name": "", "note": "",
}  # fmt: skip


def asked_of(form: Mapping[str, object]) -> dict[str, str]:
    """The terms as a person typed them."""
    return {name: str(form.get(name) or "").strip()[:2000] for name in DEFAULTS}


class CampaignTerms(Struct, frozen=True):
    """What a campaign promises, and how it goes."""

    target: CountPromise
    alpha: float
    monitor_alpha: float
    schedule: tuple[int, ...] | None = None
    uncertified: Literal["refuse", "everyone"] = "refuse"
    audit_rate: float | None = None


def terms_of(asked: Mapping[str, str]) -> CampaignTerms:
    """What the form asks for."""
    k = number_in(asked["k"], "k", "how many qualified you need")
    size = number_in(asked["pool_size"], "pool_size", "the pool size")
    return CampaignTerms(
        target_of(k, size), share_in(asked["alpha"], "alpha", "how often it may be false"),
        share_in(asked["monitor_alpha"], "monitor_alpha", "how often a false alarm may come"),
        _schedule(asked["schedule"]), "everyone" if asked["uncertified"] else "refuse",
        _audit_rate(asked["one_in"]),
    )  # fmt: skip


def target_of(k: float, pool_size: float) -> CountPromise:
    """What campaigns promise."""
    return cast(CountPromise, one_target(kinds.FIRST, {"k": k, "pool_size": pool_size}))


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


@once
def start(
    me: Session, past: Past, columns: ChosenColumns, terms: CampaignTerms, about: AboutList
) -> Written[record.CampaignStarted]:
    """A campaign from rows that were decided in the past. A refusal is a look at the rows too."""
    if columns.group or columns.labels in ("drawn", "amounts"):
        raise InvalidInput(
            "columns",
            "a campaign makes one promise for everyone, from a label in every row. Choose no group, and "
            "labels of yes or no.",
        )
    options = asdict(terms)
    del options["target"]
    rows, begun = run(
        steps.begin, past.upload.source(columns.hints), str(columns.score), str(columns.label), terms.target,
        **options, missing_labels=columns.missing_labels,
    )  # fmt: skip
    question = Question({"everyone": terms.target.describe()}, terms.alpha, "campaign")
    looks = me.view.record_look((rows,), past.upload.sha256, "campaign", question)
    if isinstance(begun, NotCertifiable):
        raise begun
    event = record.CampaignStarted(
        name=about.name, note=about.note, file=past.upload.name, rows_sha256=past.upload.sha256,
        rows_fingerprint=rows, columns={"score": columns.score, "label": columns.label, "id": columns.id},
        target=terms.target.describe(), pool_size=float(terms.target.pool or 0),
        **{**options, "schedule": begun.schedule}, earlier_looks=looks, state=begun.state, after=begun.after,
    )  # fmt: skip
    return me.view.append(new_id(), event).result()


class Standing:
    """A campaign as it stands on record: how it began, its steps, and what the last one led to."""

    def __init__(self, view: View, ident: str) -> None:
        self.view, self.entry = view, view.campaign(ident)
        self.begun, self.ident = self.entry.event, ident
        self.steps = view.steps(ident)
        self.withdrawn = view.withdrawn(ident)

    @property
    def after(self) -> CampaignStatus:
        return self.steps[-1].event.after if self.steps else self.begun.after

    @property
    def finished(self) -> dict[str, str]:
        """The labels of pools whose reviews have ended."""
        return {each.subject: each.event.labels for each in of_kind(self.steps, record.CampaignReviewed)}

    @property
    def waiting(self) -> list[Entry[record.CampaignScreened]]:
        """Pools whose reviews are not finished."""
        finished, screened = self.finished, of_kind(self.steps, record.CampaignScreened)
        return [each for each in screened if each.event.to_review and each.subject not in finished]

    def require_running(self) -> None:
        if self.withdrawn is not None:
            raise Conflict(record.ENDED)

    def add(self, subject: str, step: record.CampaignStep, reviews_until: int | None = None) -> Written[Any]:
        """Put another step on record with where it leads; withdraw the promise where it raises the alarm."""
        after = run(steps.stepped, self.begun.state, [*(each.event for each in self.steps), step])
        step, alarm = replace(step, after=after), None
        if after.alarm and self.withdrawn is None:
            alarm = record.CampaignWithdrawn(
                reason=after.reason or "", pools=after.pools, e_value=after.evidence
            )
        return self.view.add_step(subject, step, len(self.steps), alarm, reviews_until).result()


def running(view: View, limit: int | None = None) -> list[dict[str, object]]:
    """Campaigns with what is due, newest first; those that were withdrawn come with why."""
    found = [Standing(view, each.subject) for each in view.all_campaigns(limit)]
    return [
        {"entry": now.entry, "now": now.after, "waiting": now.waiting, "withdrawn": now.withdrawn}
        for now in found
    ]


@once
@retried
def screen(
    me: Session, ident: str, upload: Upload, columns: ChosenColumns, about: AboutList, seconds: int
) -> Written[record.CampaignScreened]:
    """Shortlist a pool with the threshold in force, keep the list for its reviews, count the pool."""
    for role, column, what in (
        ("score", columns.score, "the score"),
        ("id", columns.id, "candidate ids; reviews go by them"),
    ):
        if not column:
            raise InvalidInput(role, f"choose the column that holds {what}.")
    now, subject = Standing(me.view, ident), new_id()
    now.require_running()
    if now.after.due:
        raise Conflict("pool: an update is due first. Update the threshold, then screen with the new one.")
    if any(each.event.pool_sha256 == upload.sha256 for each in of_kind(now.steps, record.CampaignScreened)):
        raise Conflict("pool: this very file was screened in this campaign before, and counts once.")
    output, limit = list_path(me, upload, "parquet" if upload.origin else None), now.after.threshold
    try:
        with removing(output, output.with_suffix(".list")):
            made, result = _laid_out(me, now, upload, columns, output)
            facts = workflow_facts.selection_facts(
                made.selection, (upload.sha256, upload.format), (result.sha256, result.format)
            )
            drawn = made.draws is not None
            event = record.CampaignScreened(
                **asdict(facts), **asdict(about), campaign=ident, pool=about.name, threshold=limit,
                scores=made.scores, draws=made.draws, audit=made.audit if drawn else None, audit_here=drawn,
                audit_rate=now.begun.audit_rate if drawn else None, after=now.after,
            )  # fmt: skip
            kept = ChosenColumns(score=columns.score, id=columns.id, decimal=made.reading.decimal)
            # before the pool counts: its reviews need the list
            me.spool.keep_result(subject, replace(result, origin=upload.origin), seconds, kept)
            written = now.add(subject, event)
    except BaseException:
        me.spool.drop(subject)
        raise
    if written.replayed:  # sent twice at once, and the other pool counts
        me.spool.drop(subject)
    return written


def _laid_out(
    me: Session, now: Standing, upload: Upload, columns: ChosenColumns, output: Path
) -> tuple[steps.PoolList, Upload]:
    """A pool's list, ready to be reviewed together with those drawn for an audit."""
    rate = now.begun.audit_rate
    with passing(me) as drawn:
        made = run(
            steps.screen, upload.source(columns.hints), now.after.threshold,
            score=str(columns.score), output=output, audit_rate=rate, audit=None if rate is None else drawn,
        )  # fmt: skip
        if len(made.scores) > LISTED:
            raise InvalidInput(
                "pool",
                f"{len(made.scores):,} candidates would have to be reviewed, and a campaign follows "
                f"{LISTED:,} at most until their reviews are in. Screen smaller pools.",
            )
        result, audit = made_upload(output), drawn if made.audit else None
        run(worklist.build, output, list_of(result), columns, made.reading.decimal, audit)
    return made, result


@once
@retried
def finish(me: Session, pool: str, *, missing: bool) -> Written[record.CampaignReviewed]:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    view = me.view
    made, marks = view.registry.one(record.CampaignScreened, pool, "pool").event, view.marks(pool)
    now, known, until = Standing(view, made.campaign), reviewing.known_list(me.spool, pool), marks.seq
    if not known.kept:  # nobody's rank is known any more
        view.forget_list(pool, "its time was up").result()
    outcomes = {name: each for name, each in marks.outcomes().items() if name in known.ranks}
    policy_watch.require_complete(
        marks.counts()["split"], made.to_review - len(outcomes), missing,
        "they then count as not qualified when the threshold is updated, and as qualified in the alarm",
    )  # fmt: skip
    labels = ["?"] * made.to_review
    for name, qualified in outcomes.items():
        labels[known.ranks[name] - 1] = "1" if qualified else "0"
    event = record.CampaignReviewed(
        campaign=made.campaign, pool=made.pool, labels="".join(labels), after=now.after
    )
    return now.add(pool, event, until)


@once
def update(me: Session, ident: str, steps_seen: int | None = None) -> Written[record.CampaignUpdated]:
    """The scheduled update. ``steps_seen`` is how far the campaign was when somebody decided it."""
    now = Standing(me.view, ident)
    now.require_running()
    if steps_seen is not None and steps_seen != len(now.steps):
        raise Conflict("campaign: another step was made meanwhile. Load the page again to see how it stands.")
    return now.add(ident, record.CampaignUpdated(campaign=ident, after=now.after))
