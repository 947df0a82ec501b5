"""When a campaign looks at its rows, what each look may spend, and what it records."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from msgspec import Struct

from surelist import _check as check
from surelist._files import hold
from surelist.bounds.counts import binomial_tail
from surelist.bounds.sequential import FirstCrossing
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.lifecycle.score_sketch import ScoreCounts
from surelist.promises.conditions import Conditions
from surelist.promises.kinds.counts import CountPromise, estimate_rows
from surelist.promises.promise import Level, Promise
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


def as_target(target: Any, *, audited: bool) -> CountPromise:
    """A promise that campaigns can make."""
    if not isinstance(target, Promise):
        raise InvalidInput("target", expected="a promise, such as Expected(5, 100)", got=repr(target))
    require_proof(target, Conditions(evidence="audited campaign" if audited else "campaign"))
    assert isinstance(target, CountPromise)
    return target


def rate_of(target: Promise) -> Fraction:
    """The share of candidates, listed and qualified, that a campaign promises on average."""
    assert target.found_rate is not None
    return target.found_rate


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


def as_schedule(schedule: Sequence[int] | None, rows: int, target: CountPromise) -> tuple[int, ...]:
    """Increasing numbers of pools, or the default."""
    if schedule is None:
        return fourfold(rows, pool_of(target))
    if isinstance(schedule, (str, bytes)) or not hasattr(schedule, "__iter__"):
        raise InvalidInput("schedule", expected="increasing numbers of pools", got=repr(schedule))
    counts = [check.as_count(each, "schedule") for each in schedule]
    if any(later <= earlier for earlier, later in pairwise(counts)):
        raise InvalidInput("schedule", expected="increasing numbers of pools", got=repr(counts))
    return tuple(counts)


def replay(
    schedule: Sequence[int], updates: Sequence[Update], alpha: float, rate: Fraction, may_fall: bool
) -> tuple[FirstCrossing, int | None]:
    """The walk after these looks, and which of them gave the threshold in force.

    Holds them to the rules: on schedule, counts that follow from the rows, thresholds that never fall
    unless an audit lets them (``may_fall``).
    """
    hold(list(schedule) == sorted(set(schedule)), "the schedule falls")
    hold(0 < len(updates) <= len(schedule) + 1, "more updates than the schedule has, or none")
    planned = [0, *schedule][: len(updates)]
    hold([update.pools for update in updates] == planned, "an update is off schedule")
    walk, budgets = FirstCrossing(rate), spending(alpha, len(schedule))
    previous: float | None = None
    chosen = None
    for look, update in enumerate(updates):
        count = walk.next(update.rows, budgets[look])
        hold(update.count == count, f"the count of update {look} should be {count}")
        gone = previous is not None and update.threshold is None
        fell = previous is not None and update.threshold is not None and update.threshold < previous
        hold(not gone and (may_fall or not fell), f"the threshold falls at update {look}")
        if update.threshold != previous:
            previous, chosen = update.threshold, look
    return walk, chosen


def refusal(target: CountPromise, alpha: float, first: Update, qualified: int) -> NotCertifiable:
    """Why the first look certifies nothing."""
    level = Level(alpha, "exact")
    largest = target.largest(first.rows, qualified, level)
    return NotCertifiable(
        Shortfall(
            target=f"{target.describe()} (a campaign's first look at alpha={alpha:g})",
            rows=first.rows,
            qualified_available=qualified,
            critical_count=first.count,
            largest_k=largest.k,
            largest_share=largest.share,
            rows_needed=estimate_rows(target, first.rows, qualified, level),
        )
    )


def surely_at_boundary(rows: int, target: CountPromise, alpha: float) -> int:
    """Largest c with P(Binomial(rows, p0) < c) <= alpha.

    With probability >= 1-alpha at least c rows are qualified and score at or above t*, the
    highest threshold that meets the target.
    """
    rate = float(rate_of(target))
    low, high = 0, rows
    while low < high:
        middle = (low + high + 1) // 2
        if 1 - binomial_tail(rows, rate, middle) <= alpha:
            low = middle
        else:
            high = middle - 1
    return low


def shortest_list(
    qualified: ScoreCounts, listed: ScoreCounts, count: int, rows: int, target: CountPromise
) -> float:
    """About the shortest list that any threshold meeting the target could have.

    If ``count`` rows are qualified at or above t*, then t* is at most the count-th largest
    qualified score, and the list at t* at least the share of rows at or above that. Reviews that
    are missing may all be qualified, so the caller lowers the count by their number. Never
    below k: a list cannot hold more qualified candidates than candidates.
    """
    highest = qualified.nth_largest(count) if count > 0 else None
    share = 0.0 if highest is None else listed.at_least(highest) / rows
    return pool_of(target) * max(float(rate_of(target)), share)
