"""A campaign's state as plain values, and its file: strict, versioned JSON, under 1 MB whatever the history.

What is read adds up; ``campaign`` builds from it, replays the looks and compares the promise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from surelist._files import hold
from surelist._version import __version__
from surelist.lifecycle import monitor_file
from surelist.lifecycle.monitor_file import FORMAT, Watch, parse_state
from surelist.lifecycle.pools_seen import Memory
from surelist.lifecycle.reviewed import AUDITED, BOTH, LISTED, Screened
from surelist.lifecycle.schedule import Epoch, Update
from surelist.lifecycle.score_sketch import Scores


class CampaignState(Struct, kw_only=True, forbid_unknown_fields=True):
    """All that a campaign knows, in the order of its file; the defaults are those of a new one."""

    format: Literal[1] = FORMAT
    kind: Literal["surelist campaign"] = "surelist campaign"
    promise: str = ""
    target: dict[str, Any]
    alpha: float
    schedule: list[int]
    monitor_alpha: float
    uncertified: Literal["refuse", "everyone"]
    created: str
    version: str = __version__
    fingerprint: str
    rows: int
    pools: int = 0
    chosen: int | None = None
    updates: list[Update] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    qualified: Scores = field(default_factory=Scores)
    listed: Scores = field(default_factory=Scores)
    screened: list[Screened] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    missing: int = 0
    watched: int | None = None
    memory: Memory = field(default_factory=Memory)
    watch: Watch | None = None
    audit_rate: float | None = None

    @property
    def threshold(self) -> float | None:
        return self.updates[-1].threshold

    @property
    def may_fall(self) -> bool:
        """Whether an audit lets thresholds go down."""
        return self.audit_rate is not None


def loads(text: str, path: Path) -> CampaignState:
    """A campaign's state from its file's text; what does not add up is an error. ``path`` is for errors."""
    state = parse_state(text, CampaignState, path)
    hold(0 < state.alpha < 1 and 0 < state.monitor_alpha < 1, "a level is impossible")
    hold(len(state.epochs) == len(state.updates) > 0, "an update lacks its pools")
    hold(sum(epoch.pools for epoch in state.epochs) == state.pools, "the pools do not add up")
    audit, start = state.audit_rate is not None, state.updates[0].rows
    hold(not audit or 0 < (state.audit_rate or 0) < 1, "the audit rate is impossible")
    hold(all((epoch.drawn is not None) == audit for epoch in state.epochs), "an audit of a part of the pools")
    taken = sum((epoch.drawn or 0) if audit else epoch.candidates for epoch in state.epochs)
    hold(start + taken == state.rows, "the rows do not add up")
    hold(0 <= state.missing <= state.rows, "more reviews are missing than there are rows")
    _verify_scores(state)
    for each in state.screened:
        _verify_screened(each, state)
    hold(set(state.waiting) <= {each.pool for each in state.screened}, "an unknown pool waits for reviews")
    if state.watch is not None:
        monitor_file.verify(state.watch)
        hold(state.watch.alpha == state.monitor_alpha, "two levels of the monitor")
    return state


def _verify_scores(state: CampaignState) -> None:
    for each in (state.qualified, state.listed):
        hold(len(each.scores) == len(each.counts) and min(each.counts, default=1) > 0,
             "scores and counts do not go together")  # fmt: skip
        hold(each.scores == sorted(set(each.scores)), "the scores are not in order")
        low = state.audit_rate is None and not _at_least(each.scores, state.threshold)
        hold(not low, "rows below the threshold are in the evidence")
    hold(state.qualified.total <= state.listed.total <= state.rows, "more scores than rows")
    if state.chosen is not None:
        hold(0 <= state.chosen < len(state.updates), "the threshold in force belongs to another update")
        needed = state.updates[state.chosen].count
        hold(state.qualified.total >= needed, "too few rows are qualified for the threshold")


def _verify_screened(each: Screened, state: CampaignState) -> None:
    hold(len(each.ids) == len(each.scores) == len(each.labels) <= each.size, "a pool's list is uneven")
    hold(set(each.labels) <= set("01?"), "a review is neither 0, 1 nor ?")
    hold(each.look is None or 0 <= each.look < len(state.updates), "a pool of no update")
    limit = None if each.look is None else state.updates[each.look].threshold
    listed = each.scores
    hold((each.draws is None) == (state.audit_rate is None), "a pool lacks its draws")
    if each.draws is not None:
        hold(len(each.draws) == len(each.ids) and set(each.draws) <= {LISTED, BOTH, AUDITED}, "uneven draws")
        listed = [score for score, draw in zip(each.scores, each.draws, strict=True) if draw != AUDITED]
        others = [score for score, draw in zip(each.scores, each.draws, strict=True) if draw == AUDITED]
        hold(not others or (limit is not None and max(others) < limit), "someone listed is in the audit")
    hold(_at_least(listed, limit), "a listed score is too low")


def _at_least(scores: list[float], limit: float | None) -> bool:
    return limit is None or not scores or min(scores) >= limit
