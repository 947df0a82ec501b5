"""A campaign's state and its file: when it looks at its rows, what each look may spend, what was recorded.

Strict, versioned JSON, under 1 MB whatever the history. What is read adds up; ``campaign`` builds from it,
replays the looks and compares the promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from msgspec import Struct, field

from surelist import _check as check
from surelist._files import Chance, hold
from surelist.bounds._tails import smallest
from surelist.bounds.counts import FirstCrossing, binomial_tail
from surelist.errors import InvalidInput
from surelist.lifecycle.claims import Watch
from surelist.lifecycle.reviewed import AUDITED, BOTH, LISTED, PoolReviews, Screened
from surelist.lifecycle.state import Memory, ScoreCounts, Scores, State
from surelist.promises.conditions import Conditions
from surelist.promises.kinds.counts import RatePromise
from surelist.promises.promise import Promise
from surelist.promises.proved import require_proof

GROWTH, UPDATES = 4, 10

EVERYONE = (
    "Nothing is promised yet: too few qualified rows are known. Everyone is shortlisted until a "
    "scheduled update certifies a threshold."
)


class Update(Struct, frozen=True, forbid_unknown_fields=True):
    """One look at the evidence, and the threshold in force from then on (None: everyone).

    ``list_size`` is the share of rows at or above the threshold times the pool size; ``floor``
    estimates the shortest list of any threshold that meets the target (see ``shortest_list``).
    """

    pools: int
    rows: int
    count: int
    threshold: float | None
    list_size: float
    floor: float


class Epoch(Struct, forbid_unknown_fields=True):
    """What was screened between two updates; ``drawn`` for the evidence, where there is an audit."""

    pools: int = 0
    candidates: int = 0
    shortlisted: int = 0
    drawn: int | None = None

    def list_size(self, pool_size: float) -> float | None:
        """The average list so far, per pool of this size; None before the first pool."""
        return pool_size * self.shortlisted / self.candidates if self.candidates else None


class CampaignState(State, kw_only=True, forbid_unknown_fields=True):
    """All that a campaign knows, in the order of its file; the defaults are those of a new one."""

    kind: Literal["surelist campaign"] = "surelist campaign"
    promise: str = ""  # for people; nothing reads it
    target: dict[str, Any]
    alpha: Chance
    schedule: list[int]
    monitor_alpha: Chance
    uncertified: Literal["refuse", "everyone"]
    fingerprint: str
    rows: int
    pools: int = 0
    chosen: int | None = None
    updates: list[Update] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    qualified: Scores = field(default_factory=Scores)
    listed: Scores = field(default_factory=Scores)
    reviews: PoolReviews = field(default_factory=PoolReviews)
    memory: Memory = field(default_factory=Memory)
    watch: Watch | None = None
    audit_rate: Chance | None = None

    @property
    def threshold(self) -> float | None:
        return self.updates[-1].threshold

    def verify(self) -> None:
        hold(len(self.epochs) == len(self.updates) > 0, "an update lacks its pools")
        hold(sum(epoch.pools for epoch in self.epochs) == self.pools, "the pools do not add up")
        audit, start = self.audit_rate is not None, self.updates[0].rows
        whole = all((epoch.drawn is not None) == audit for epoch in self.epochs)
        hold(whole, "an audit of a part of the pools")
        taken = sum((epoch.drawn or 0) if audit else epoch.candidates for epoch in self.epochs)
        hold(start + taken == self.rows, "the rows do not add up")
        kept = self.reviews.kept
        hold(self.reviews.missing <= self.rows, "more reviews are missing than there are rows")
        _verify_scores(self)
        for name, each in kept.items():
            hold(name == each.pool, "a pool has two names")
            _verify_screened(each, self)
        hold(set(self.reviews.waiting) <= kept.keys(), "an unknown pool waits for reviews")
        if self.watch is not None:
            self.watch.verify()
            hold(self.watch.alpha == self.monitor_alpha, "two levels of the monitor")


def as_target(target: object, *, audited: bool) -> RatePromise:
    """A promise that campaigns can make."""
    if not isinstance(target, Promise):
        raise InvalidInput("target", expected="a promise, such as Expected(5, 100)", got=repr(target))
    require_proof(target, Conditions(evidence="audited campaign" if audited else "campaign"))
    assert isinstance(target, RatePromise)
    return target


def pool_of(target: Promise) -> float:
    """The pool size of a campaign's promise."""
    assert target.pool is not None
    return target.pool


def spending(alpha: float, updates: int) -> list[float]:
    """Cumulative budgets: half of alpha at the start, half of the rest at each update.

    The last of ``updates`` takes all that is left, so the list ends in alpha.
    """
    halves = [alpha * (1 - 0.5 ** (j + 1)) for j in range(updates)]
    return [*halves, alpha]


def fourfold(rows: int, pool_size: float, updates: int = UPDATES) -> tuple[int, ...]:
    """The default schedule: an update each time the expected rows have grown fourfold."""
    counts: list[int] = []
    for j in range(1, updates + 1):
        pools = -int(-(rows * (GROWTH**j - 1)) // pool_size)
        counts.append(max(pools, counts[-1] + 1 if counts else 1))
    return tuple(counts)


def as_schedule(schedule: Sequence[int] | None, rows: int, target: RatePromise) -> tuple[int, ...]:
    """Increasing numbers of pools, or the default."""
    if schedule is None:
        return fourfold(rows, pool_of(target))
    counts = schedule
    if hasattr(schedule, "__iter__") and not isinstance(schedule, (str, bytes)):
        counts = [check.as_count(each, "schedule") for each in schedule]
        if counts == sorted(set(counts)):
            return tuple(counts)
    raise InvalidInput("schedule", expected="increasing numbers of pools", got=repr(counts))


def replay(state: CampaignState, rate: Fraction) -> FirstCrossing:
    """The walk after the looks of a campaign.

    Holds them to the rules: on schedule, counts that follow from the rows, thresholds that never fall
    unless an audit lets them; the one in force is that of the look said to have given it.
    """
    schedule, updates = state.schedule, state.updates
    hold(schedule == sorted(set(schedule)), "the schedule falls")
    hold(len(updates) <= len(schedule) + 1, "more updates than the schedule has")
    planned = [0, *schedule][: len(updates)]
    hold([update.pools for update in updates] == planned, "an update is off schedule")
    walk, budgets = FirstCrossing(rate), spending(state.alpha, len(schedule))
    before, chosen = None, None
    for look, update in enumerate(updates):
        count, now = walk.next(update.rows, budgets[look]), update.threshold
        hold(update.count == count, f"the count of update {look} should be {count}")
        stays = before is None or (now is not None and (now >= before or state.audit_rate is not None))
        hold(stays, f"the threshold falls at update {look}")
        if now != before:
            before, chosen = now, look
    hold(state.chosen == chosen, "the threshold in force belongs to another update")
    return walk


def surely_at_boundary(rows: int, target: RatePromise, alpha: float) -> int:
    """Largest c with P(Binomial(rows, p0) < c) <= alpha.

    With probability >= 1-alpha at least c rows are qualified and score at or above t*, the
    highest threshold that meets the target.
    """
    rate = float(target.rate)
    return smallest(lambda count: 1 - binomial_tail(rows, rate, count) > alpha, 1, rows) - 1


def shortest_list(
    qualified: ScoreCounts, listed: ScoreCounts, count: int, rows: int, target: RatePromise
) -> float:
    """About the shortest list that any threshold meeting the target could have.

    If ``count`` rows are qualified at or above t*, then t* is at most the count-th largest
    qualified score, and the list at t* at least the share of rows at or above that. Reviews that
    are missing may all be qualified, so the caller lowers the count by their number. Never
    below k: a list cannot hold more qualified candidates than candidates.
    """
    highest = qualified.nth_largest(count) if count > 0 else None
    share = 0.0 if highest is None else listed.at_least(highest) / rows
    return pool_of(target) * max(float(target.rate), share)


def _verify_scores(state: CampaignState) -> None:
    low = -math.inf if state.audit_rate is not None or state.threshold is None else state.threshold
    for each in (state.qualified, state.listed):
        fitting = len(each.scores) == len(each.counts) and min(each.counts, default=1) > 0
        hold(fitting, "scores and counts do not go together")
        hold(each.scores == sorted(set(each.scores)), "the scores are not in order")
        hold(min(each.scores, default=low) >= low, "rows below the threshold are in the evidence")
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
    low = -math.inf if limit is None else limit
    hold((each.draws is None) == (state.audit_rate is None), "a pool lacks its draws")
    draws = LISTED * len(each.ids) if each.draws is None else each.draws
    hold(len(draws) == len(each.ids) and set(draws) <= {LISTED, BOTH, AUDITED}, "uneven draws")
    for score, draw in zip(each.scores, draws, strict=True):
        hold(draw != AUDITED or score < low, "someone listed is in the audit")
        hold(draw == AUDITED or score >= low, "a listed score is too low")
