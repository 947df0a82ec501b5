"""A campaign kept as the text of its start and its steps one by one: for the app, whose record holds both.

Candidates have no names here: a listed one is known by its rank, the best score first; after them come those
who were drawn for an audit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from surelist._arrays import Floats, Mask
from surelist.errors import InvalidInput, NotCertifiable, UnreviewedWarning
from surelist.filters import Filter
from surelist.lifecycle.campaign import Campaign
from surelist.lifecycle.reviewed import as_draws, coins
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.kinds.counts import CountPromise
from surelist.promises.wording import TwoLines
from surelist.tables.arrays import read_columns
from surelist.tables.output import rows_at, write_sheet
from surelist.tables.reading import Reading
from surelist.tables.shortlist import Selection, select_rows
from surelist.workflows.source import Source

# what a step leads to, in numbers: a replay has to come to the same
FOLLOWS = ("pools", "rows", "count", "threshold", "next_update", "alarm")


class NextStep(Protocol):
    """What is done to a campaign after its start."""

    def take(self, campaign: Campaign) -> None: ...


class CampaignStatus(Struct, frozen=True, kw_only=True):
    """Where a campaign stands after a step: numbers, and what follows from them in words."""

    pools: int
    rows: int
    count: int
    threshold: float | None
    list_size: float
    floor: float
    spent: float
    certified: bool
    next_update: int | None
    due: bool
    next: str
    alarm: bool
    promise: str
    two_lines: TwoLines | None
    standing: str
    sentence: str
    evidence: float
    reason: str | None


class Begun(Struct, frozen=True):
    """A campaign that can start: its state as text, and what it says."""

    state: str
    after: CampaignStatus
    schedule: tuple[int, ...]


def begun_from(
    source: Source, score: str, label: str, target: CountPromise, **options: Any
) -> tuple[str, Campaign | NotCertifiable]:
    """The rows' fingerprint, and a campaign that starts from them; a refusal is a look at the rows too."""
    every = options.get("missing_labels", "error") == "error"
    columns = read_columns(source.open(), {"score": score, "label": label}, every_label=every)
    rows = rows_fingerprint(columns["score"], columns["label"] > 0) or ""
    try:
        return rows, Campaign(columns["score"], columns["label"], target, **options)
    except NotCertifiable as refusal:
        return rows, refusal


def begin(
    source: Source, score: str, label: str, target: CountPromise, **options: object
) -> tuple[str, Begun | NotCertifiable]:
    """The same for the record: the campaign as its state in text, and where it stands."""
    rows, made = begun_from(source, score, label, target, **options)
    if isinstance(made, NotCertifiable):
        return rows, made
    return rows, Begun(made.dumps(), status(made), made.schedule)


def take(campaign: Campaign, step: NextStep) -> None:
    """One more step; what does not fit is an error."""
    with warnings.catch_warnings():
        # a pool that had to go says so when it is finished
        warnings.simplefilter("ignore", UnreviewedWarning)
        step.take(campaign)


def resumed(state: str, steps: Sequence[NextStep] = ()) -> Campaign:
    """The campaign after all its steps so far."""
    campaign = Campaign.loads(state)
    for step in steps:
        take(campaign, step)
    return campaign


def stepped(state: str, steps: Sequence[NextStep]) -> CampaignStatus:
    """What these steps lead to; what does not fit is an error."""
    return status(resumed(state, steps))


def status(campaign: Campaign) -> CampaignStatus:
    """Where a campaign stands."""
    update, monitor = campaign.updates[-1], campaign.monitor
    return CampaignStatus(
        pools=campaign.pools, rows=campaign.rows, count=update.count, threshold=update.threshold,
        list_size=update.list_size, floor=update.floor, spent=campaign.budgets[len(campaign.updates) - 1],
        certified=campaign.certified, next_update=campaign.next_update, due=campaign.due,
        next=campaign.coming, alarm=campaign.alarm, promise=campaign.promise,
        two_lines=None if campaign.chosen is None else campaign.policy.two_lines,
        standing="too early to say" if monitor is None else monitor.standing,
        sentence=campaign.sentence, evidence=1.0 if monitor is None else monitor.e_value,
        reason=campaign.policy.withdrawn if campaign.alarm else None,
    )  # fmt: skip


class PoolList(Struct, frozen=True):
    """A pool that was shortlisted: counts, what was understood, and the scores of those to be reviewed.

    The best of the list come first. With an audit those drawn who are not listed follow, the best first;
    ``draws`` says of each why, as ``Campaign.record`` takes it, and ``audit`` has their row numbers.
    """

    selection: Selection
    reading: Reading
    scores: list[float]
    draws: str | None = None
    audit: list[int] = field(default_factory=list)


def screen(
    source: Source, threshold: float | None, *, score: str, output: Path, audit_rate: float | None = None,
    audit: Path | None = None,
) -> PoolList:  # fmt: skip
    """Shortlist a pool with the threshold in force; ``audit`` is where those drawn are written."""
    opened = replace(source, table=source.open())
    read = opened.reading(score=score)
    chosen = Filter.at_least(threshold)
    done = select_rows(opened.table, chosen, names={"score": score}, output=output)
    scores = read_columns(opened.table, {"score": score}, any_order=audit is None)["score"]
    mask = chosen.select(scores)
    if np.count_nonzero(mask) != done.shortlisted:
        raise InvalidInput("score", f"{source.name} changed while it was read. Send it again.")
    listed = _best_first(scores, mask)
    if audit is None or audit_rate is None:
        return PoolList(done, read, scores[listed].tolist())
    drawn = coins(len(scores)) < audit_rate
    others = _best_first(scores, drawn & ~mask)
    rows, numbers = np.concatenate([listed, others]), np.sort(others).tolist()
    write_sheet(audit, opened.table.columns, rows_at(opened.table, numbers), [])
    return PoolList(done, read, scores[rows].tolist(), as_draws(mask[rows], drawn[rows]), numbers)


def _best_first(scores: Floats, chosen: Mask) -> NDArray[np.intp]:
    """The row numbers of those chosen, by score."""
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(-scores[rows], kind="stable")]
