"""A campaign kept as the text of its start and its steps one by one: for the app, whose record holds both.

Candidates have no names here: a listed one is known by its rank, the best score first; after them come those
who were drawn for an audit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass, field, replace
from surelist.errors import InvalidInput, NotCertifiable, UnreviewedWarning
from surelist.filters import Filter
from surelist.lifecycle import campaign_text
from surelist.lifecycle.audit_draw import coins
from surelist.lifecycle.campaign import Campaign
from surelist.lifecycle.reviewed import AUDITED, as_draws
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.kinds.counts import CountPromise
from surelist.tables.arrays import read_columns
from surelist.tables.reading import Reading
from surelist.tables.rows import rows_at, write_sheet
from surelist.tables.shortlist import Selection, select_rows
from surelist.workflows.source import Source

SCREENED, REVIEWED, UPDATED = "campaign.screened", "reviews.closed", "campaign.updated"
STEPS = (SCREENED, REVIEWED, UPDATED)
# what a step leads to, in numbers: a replay has to come to the same
FOLLOWS = ("pools", "rows", "count", "threshold", "next_update", "alarm")

Step = tuple[str, Mapping[str, Any]]  # one of ``STEPS``, and its facts


@dataclass(frozen=True)
class Begun:
    """A campaign that can start: its state as text, and what it says."""

    state: str
    after: dict[str, Any]
    schedule: tuple[int, ...]


def begin(
    source: Source, score: str, label: str, target: CountPromise, **options: Any
) -> tuple[str, Begun | NotCertifiable]:
    """The rows' fingerprint, and a campaign that starts from them; a refusal is a look at the rows too."""
    columns = read_columns(source.open(), {"score": score, "label": label})
    rows = rows_fingerprint(columns["score"], columns["label"] > 0) or ""
    try:
        campaign = Campaign(columns["score"], columns["label"], target, **options)
    except NotCertifiable as refusal:
        return rows, refusal
    return rows, Begun(campaign.dumps(), after(campaign), campaign.schedule)


def resumed(state: str, steps: Sequence[Step]) -> Campaign:
    """The campaign after all its steps so far."""
    campaign = Campaign.loads(state)
    for action, facts in steps:
        take(campaign, action, facts)
    return campaign


def take(campaign: Campaign, action: str, facts: Mapping[str, Any]) -> None:
    """One more step; what does not fit is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UnreviewedWarning
        )  # a pool that had to go says so when it is finished
        if action == UPDATED:
            campaign.update()
        elif action == SCREENED:
            scores = facts["scores"]
            campaign.record(
                pool_size=facts["candidates"], scores=np.asarray(scores, dtype=np.float64),
                ids=[str(rank) for rank in range(1, len(scores) + 1)], threshold=facts["threshold"],
                pool=facts["pool"], draws=facts.get("draws"),
            )  # fmt: skip
        else:
            labels = [None if each == "?" else int(each) for each in facts["labels"]]
            campaign.review(facts["pool"], np.asarray(labels, dtype=np.float64))
            if None in labels:
                campaign.close(facts["pool"])


def stepped(state: str, steps: Sequence[Step], action: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What another step would lead to; what does not fit is an error."""
    campaign = resumed(state, steps)
    take(campaign, action, facts)
    return after(campaign)


def after(campaign: Campaign) -> dict[str, Any]:
    """Where a campaign stands, as plain values."""
    update, monitor = campaign.updates[-1], campaign.monitor
    return {
        "pools": campaign.pools, "rows": campaign.rows, "count": update.count,
        "threshold": update.threshold, "list_size": update.list_size, "floor": update.floor,
        "spent": campaign.budgets[len(campaign.updates) - 1], "certified": campaign.certified,
        "next_update": campaign.next_update, "due": campaign.due, "next": campaign_text.next_update(campaign),
        "alarm": campaign.alarm, "promise": campaign.promise, "two_lines": _two_lines(campaign),
        "standing": "too early to say" if monitor is None else monitor.standing,
        "sentence": campaign_text.standing(campaign),
        "evidence": 1.0 if monitor is None else monitor.e_value,
        "reason": campaign.policy.withdrawn if campaign.alarm else None,
    }  # fmt: skip


def _two_lines(campaign: Campaign) -> dict[str, Any] | None:
    """The promise as a person would repeat it; None where nothing is promised yet."""
    if campaign.chosen is None:
        return None
    said = campaign.policy.two_lines
    return {"what": said.what, "sure": said.sure, "meaning": list(said.meaning)}


def adds_up(facts: Mapping[str, Any]) -> bool:
    """Whether a pool that was screened has as many candidates to be reviewed as it counts."""
    drawn = len(facts.get("audit", ()))
    counted = drawn == (facts.get("draws") or "").count(AUDITED)
    return counted and len(facts["scores"]) == facts["shortlisted"] + drawn


@dataclass(frozen=True)
class PoolList:
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
    chosen = Filter.everyone() if threshold is None else Filter.at_least(threshold)
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


def _best_first(scores: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The row numbers of those chosen, by score."""
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(-scores[rows], kind="stable")]
