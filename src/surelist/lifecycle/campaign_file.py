"""State files of campaigns: strict, versioned JSON, under 1 MB whatever the history.

Loading replays the looks: counts follow from the rows, thresholds never fall, and the threshold
in force needs the evidence that is in the file.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from surelist._files import writing
from surelist._strict import Strict, hold
from surelist._version import __version__
from surelist.bounds.sequential import FirstCrossing
from surelist.errors import PolicyFileError, SurelistError
from surelist.lifecycle.campaign import Campaign
from surelist.lifecycle.monitor import Monitor
from surelist.lifecycle.monitor_file import (
    FORMAT,
    MemoryFile,
    Watch,
    dump_watch,
    load_watch,
    read_state,
    state_text,
)
from surelist.lifecycle.schedule import Epoch, Update
from surelist.lifecycle.score_sketch import ScoreCounts
from surelist.lifecycle.screened import UNKNOWN, Reviews, Screened
from surelist.lifecycle.seen import Memory
from surelist.promises.policy_file import ExpectedFields
from surelist.promises.targets import Expected

LABELS = "01?"  # how reviews are written


class _Scores(Strict):
    scores: list[float]
    counts: list[int]
    rounded: bool
    fresh: list[float]


class _Update(Strict):
    pools: int
    rows: int
    count: int
    threshold: float | None
    list_size: float
    floor: float


class _Epoch(Strict):
    pools: int
    candidates: int
    shortlisted: int


class _Screened(Strict):
    pool: str
    size: int = Field(ge=0)
    look: int | None
    ids: list[str]
    scores: list[float]
    labels: str = Field(pattern="^[01?]*$")
    closed: bool


class _CampaignFile(Strict):
    format: Literal[1]
    kind: Literal["surelist campaign"]
    promise: str
    target: ExpectedFields
    alpha: float = Field(gt=0, lt=1)
    schedule: list[int]
    monitor_alpha: float = Field(gt=0, lt=1)
    uncertified: Literal["refuse", "everyone"]
    created: str
    version: str
    fingerprint: str
    rows: int
    pools: int
    chosen: int | None
    updates: list[_Update] = Field(min_length=1)
    epochs: list[_Epoch]
    qualified: _Scores
    listed: _Scores
    screened: list[_Screened]
    waiting: list[str]
    missing: int = Field(ge=0)
    watched: int | None
    memory: MemoryFile
    watch: Watch | None


def save(campaign: Campaign, path: Path) -> None:
    """Write a campaign's state, complete or not at all."""
    with writing(path) as temporary:
        temporary.write_text(dumps(campaign), encoding="utf-8")


def dumps(campaign: Campaign) -> str:
    """The state as JSON text."""
    return state_text(
        _CampaignFile(
            format=FORMAT,
            kind="surelist campaign",
            promise=campaign.promise,
            target=ExpectedFields(
                kind="expected", k=float(campaign.target.k), pool_size=float(campaign.target.pool_size)
            ),
            alpha=campaign.alpha,
            schedule=list(campaign.schedule),
            monitor_alpha=campaign.monitor_alpha,
            uncertified=campaign.uncertified,  # type: ignore[arg-type]
            created=campaign.created,
            version=__version__,
            fingerprint=campaign.fingerprint,
            rows=campaign.rows,
            pools=campaign.pools,
            chosen=campaign.chosen,
            updates=[_Update(**vars(update)) for update in campaign.updates],
            epochs=[_Epoch(**vars(epoch)) for epoch in campaign.epochs],
            qualified=_dump_scores(campaign._qualified),
            listed=_dump_scores(campaign._listed),
            screened=[_dump_screened(each) for each in campaign.reviews.kept.values()],
            waiting=list(campaign.reviews.waiting),
            missing=campaign.reviews.missing,
            watched=campaign.reviews.watched,
            memory=MemoryFile(kept=campaign._memory.kept, forgotten=campaign._memory.forgotten),
            watch=dump_watch(campaign.monitor) if campaign.monitor else None,
        )
    )


def load(path: Path) -> Campaign:
    """Read and verify a campaign's state."""
    file = read_state(path, _CampaignFile)
    try:
        campaign = _build(file)
        _verify(campaign, file)
    except SurelistError as error:
        raise PolicyFileError(f"state: {path}: {error}") from error
    return campaign


def _build(file: _CampaignFile) -> Campaign:
    campaign = Campaign.__new__(Campaign)
    campaign.target = Expected(file.target.k, file.target.pool_size)
    campaign.alpha, campaign.monitor_alpha = file.alpha, file.monitor_alpha
    campaign.schedule, campaign.uncertified = tuple(file.schedule), file.uncertified
    campaign.created, campaign.fingerprint = file.created, file.fingerprint
    campaign.rows, campaign.pools, campaign.chosen = file.rows, file.pools, file.chosen
    campaign.updates = [Update(**vars(update)) for update in file.updates]
    campaign.epochs = [Epoch(**vars(epoch)) for epoch in file.epochs]
    campaign._qualified, campaign._listed = _load_scores(file.qualified), _load_scores(file.listed)
    campaign.reviews = _load_reviews(file)
    campaign._memory = Memory(file.memory.kept, file.memory.forgotten)
    campaign._walk = FirstCrossing(campaign.target.rate)
    campaign.monitor = None
    _verify_looks(campaign)
    if file.watch is not None:
        campaign.monitor = load_watch(file.watch, Monitor(campaign.policy, file.monitor_alpha))
    return campaign


def _verify_looks(campaign: Campaign) -> None:
    """Replay the looks: counts follow from rows, thresholds never fall, looks are on schedule."""
    updates, schedule = campaign.updates, campaign.schedule
    hold(len(updates) <= len(schedule) + 1, "more updates than the schedule has")
    planned = [0, *schedule][: len(updates)]
    hold([update.pools for update in updates] == planned, "an update is off schedule")
    previous: float | None = None
    chosen = None
    for look, update in enumerate(updates):
        count = campaign._walk.next(update.rows, campaign.budgets[look])
        hold(update.count == count, f"the count of update {look} should be {count}")
        fell = previous is not None and (update.threshold is None or update.threshold < previous)
        hold(not fell, f"the threshold falls at update {look}")
        if update.threshold != previous:
            previous, chosen = update.threshold, look
    hold(campaign.chosen == chosen, "the threshold in force belongs to another update")


def _verify(campaign: Campaign, file: _CampaignFile) -> None:
    hold(all(a < b for a, b in zip(file.schedule, file.schedule[1:], strict=False)), "the schedule falls")
    hold(len(file.epochs) == len(file.updates), "an update lacks its pools")
    hold(sum(epoch.pools for epoch in file.epochs) == file.pools, "the pools do not add up")
    start = file.updates[0].rows
    hold(start + sum(epoch.candidates for epoch in file.epochs) == file.rows, "the rows do not add up")
    if campaign.chosen is not None:
        needed = campaign.updates[campaign.chosen].count
        hold(campaign._qualified.total >= needed, "too few rows are qualified for the threshold")
    for scores in (file.qualified, file.listed):
        hold(campaign.threshold is None or min(scores.scores, default=np.inf) >= campaign.threshold,
              "rows below the threshold are in the evidence")  # fmt: skip
    hold(campaign._qualified.total <= campaign._listed.total <= file.rows, "more scores than rows")
    hold(file.watch is None or file.watch.alpha == file.monitor_alpha, "two levels of the monitor")
    hold(campaign.promise == file.promise, "the promise does not say what the evidence says")


def _load_reviews(file: _CampaignFile) -> Reviews:
    reviews = Reviews()
    for each in file.screened:
        hold(len(each.ids) == len(each.scores) == len(each.labels) <= each.size, "a pool's list is uneven")
        hold(each.look is None or 0 <= each.look < len(file.updates), "a pool of no update")
        limit = None if each.look is None else file.updates[each.look].threshold
        hold(limit is None or min(each.scores, default=np.inf) >= limit, "a listed score is too low")
        labels = np.asarray([-1 if mark == "?" else int(mark) for mark in each.labels], dtype=np.int8)
        scores = np.asarray(each.scores, dtype=np.float64)
        reviews.open(Screened(each.pool, each.size, each.look, each.ids, scores, labels, each.closed))
    hold(set(file.waiting) <= set(reviews.kept), "an unknown pool waits for reviews")
    reviews.waiting, reviews.missing, reviews.watched = deque(file.waiting), file.missing, file.watched
    return reviews


def _dump_screened(each: Screened) -> _Screened:
    return _Screened(
        pool=each.name,
        size=each.size,
        look=each.look,
        ids=each.ids,
        scores=each.scores.tolist(),
        labels="".join("?" if label == UNKNOWN else LABELS[label] for label in each.labels.tolist()),
        closed=each.closed,
    )


def _dump_scores(scores: ScoreCounts) -> _Scores:
    return _Scores(
        scores=scores.scores.tolist(),
        counts=scores.counts.tolist(),
        rounded=scores.rounded,
        fresh=scores.fresh.tolist(),
    )


def _load_scores(file: _Scores) -> ScoreCounts:
    scores = np.asarray(file.scores, dtype=np.float64)
    counts = np.asarray(file.counts, dtype=np.int64)
    hold(len(scores) == len(counts) and bool((counts > 0).all()), "scores and counts do not go together")
    hold(bool((np.diff(scores) > 0).all()), "the scores are not in order")
    found = ScoreCounts(scores, counts, rounded=file.rounded)
    found.add(np.asarray(file.fresh, dtype=np.float64))
    return found
