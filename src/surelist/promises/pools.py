"""Pools as units: labelled pools in, the threshold for the next pool out. Averages: ``averages``.

Whole pools are the sample; inside a pool anything may depend on anything [theory: pools]. ``PoolRows``
holds the qualified rows of all pools, best first; the values per pool come from one sort of those.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._files import hold
from surelist.bounds.pools import pac_pool_rank, pool_rank
from surelist.errors import NotCertifiable
from surelist.filters import ranks_within
from surelist.promises.phrases import common_conditions, counted, number, percent, qualified
from surelist.promises.proofs import Certified, refuse
from surelist.promises.targets import Level, PerPool

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE_POOLS = (
    "Every pool of the calibration rows is there as a whole, with all of its candidates, and no pool was "
    "left out because of its scores or labels."
)
LIKE_ONE_ANOTHER = (
    "The pools of the calibration rows and the next one are exchangeable: none of them is special. Inside a "
    "pool anything may depend on anything."
)
DRAWN_ALIKE = (
    "Pools, past and future, are independent draws from one population of pools; a shock common to the "
    "past ones is not covered. Inside a pool anything may depend on anything."
)
ON_AVERAGE_OVER_POOLS = (
    "The failure rate is an average over calibration pools: for the pools at hand the long-run rate may lie "
    'above alpha, up to about half the time if they are many. rule="pac" bounds it.'
)


@dataclass(frozen=True)
class PoolRows:
    """The qualified rows of whole pools: scores and pool numbers, best score first.

    ``values`` are what each row is worth (1 where labels are 0 and 1). By rank, a row's score is minus
    its rank in its pool, tied rows sharing the best one. The last ``unscored`` pools have no row with a
    score: whoever is qualified there is never listed, so they reach nothing.
    """

    pools: int
    rows: int
    scores: Floats
    codes: Ints
    values: Floats | None = None
    unscored: int = 0

    @classmethod
    def of(
        cls, scores: Floats, values: Floats | NDArray[np.bool_], codes: Ints, pools: int, by: str = "score"
    ) -> PoolRows:
        if by == "rank":
            scores = ranks_within(scores, codes)
        chosen = np.flatnonzero(values > 0)
        order = chosen[np.argsort(-scores[chosen], kind="stable")]
        worth = None if values.dtype == np.bool_ else values[order].astype(np.float64)
        return cls(pools, len(scores), scores[order], codes[order], worth)

    @classmethod
    def of_qualified(cls, rows: int, pools: int, scores: Floats, codes: Ints, unscored: int = 0) -> PoolRows:
        """From the qualified rows alone; pools without any have no code."""
        order = np.argsort(-scores, kind="stable")
        return cls(pools, rows, scores[order], codes[order], unscored=unscored)

    @property
    def qualified(self) -> int:
        return len(self.scores)

    def reached(self, target: PerPool) -> Floats:
        """V: the score at which each pool reaches the target; -inf where it never does.

        +inf for a share of none: a pool without qualified candidates keeps any share of them.
        """
        sizes = np.bincount(self.codes, minlength=self.pools)
        if target.recall is None:
            needed = np.full(self.pools, target.k)
        else:
            share = check.as_fraction(target.recall, "recall")
            needed = -((-sizes * share.numerator) // share.denominator)
        by_pool = np.argsort(self.codes, kind="stable")  # best first within each pool
        starts = np.cumsum(sizes) - sizes
        values = np.where(needed == 0, math.inf, -math.inf)
        values[self.pools - self.unscored :] = -math.inf
        enough = np.flatnonzero((needed > 0) & (needed <= sizes))
        values[enough] = self.scores[by_pool[starts[enough] + needed[enough] - 1]]
        return values

    def totals(self, count: int) -> Floats:
        """What each pool's list holds when the best ``count`` qualified rows are on it."""
        worth = None if self.values is None else self.values[:count]
        return np.bincount(self.codes[:count], worth, minlength=self.pools).astype(np.float64)


@dataclass(frozen=True)
class NextPool:
    """The threshold is the ``rank``-th smallest of what ``pools`` labelled pools reach.

    ``short`` pools never reach it, whoever is listed; ``empty`` ones reach it with nobody.
    """

    kind: Literal["next-pool"]
    pools: int
    rank: int
    short: int
    empty: int

    def claim(self, target: PerPool) -> str:
        listed = (
            "the shortlist of the next pool"
            if target.by == "score"
            else "the shortlist of the next pool, by rank,"
        )
        if target.recall is not None:
            return f"{listed} keeps at least {percent(target.recall)} of that pool's own qualified candidates"
        return f"{listed} holds at least {qualified(target.k)}"

    def wrong(self, level: Level, rows: int) -> str:
        if level.rule == "exact":
            return (
                f"wrong for at most {percent(level.alpha)} of draws of the "
                f"{counted(self.pools, 'calibration pool')} and the next pool together"
            )
        return (
            f"right for each pool with probability at least 1 - {percent(level.pool_alpha)}, except with "
            f"probability at most {percent(level.calibration_alpha)} over the draw of the "
            f"{counted(self.pools, 'calibration pool')}"
        )

    def conditions(self, target: PerPool, level: Level) -> tuple[str, ...]:
        needed = [LIKE_ONE_ANOTHER if level.rule == "exact" else DRAWN_ALIKE, WHOLE_POOLS]
        if target.recall is not None:
            needed.append("Every candidate of the calibration pools has a label.")
        conditions = common_conditions(level.alpha, *needed)
        return (*conditions, ON_AVERAGE_OVER_POOLS) if level.rule == "exact" else conditions

    def evidence(self, level: Level) -> str:
        return (
            f"of {counted(self.pools, 'labelled pool')}, {number(self.rank - 1)} may lie below the threshold "
            f"at this alpha; {number(self.short)} never reach the target"
        )

    def check(self, target: PerPool, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(target.pool_size is None, "whole pools have no pool size in the target")
        needed = allowed_rank(self.pools, level)
        hold(
            1 <= self.rank <= needed,
            f"rank {self.rank} is not within the {needed} that {self.pools} pools allow",
        )
        hold(0 <= self.short < self.rank, "too many pools never reach the target")
        hold(0 <= self.empty < self.pools and self.pools <= rows, "the pool counts are impossible")


def allowed_rank(pools: int, level: Level) -> int:
    """Which of the V, from below, the rule allows as threshold; 0 where none."""
    if level.rule == "pac":
        return pac_pool_rank(pools, level.calibration_alpha, level.pool_alpha)
    return pool_rank(pools, level.alpha)


def certify_next_pool(rows: PoolRows, target: PerPool, level: Level) -> Certified:
    """The next pool reaches the target, by the ranks of what the labelled ones reach."""
    reached = rows.reached(target)
    return threshold_of_pools(reached, target, level, rows.rows, rows.qualified)


def threshold_of_pools(
    reached: Floats, target: PerPool, level: Level, rows: int, qualified: int
) -> Certified:
    """The same from the values V alone, as an engine hands them over."""
    pools, rank = len(reached), allowed_rank(len(reached), level)
    short = int(np.count_nonzero(reached == -math.inf))
    finite = reached[np.isfinite(reached)]
    if rank == 0 or short >= rank or not len(finite):
        raise _too_few_pools(target, level, pools, rank, short, rows, qualified)
    threshold = min(float(np.partition(reached, rank - 1)[rank - 1]), float(finite.max()))
    proof = NextPool("next-pool", pools, rank, short, int(np.count_nonzero(reached == math.inf)))
    return Certified(threshold, rank, rows, qualified, proof)


def _too_few_pools(
    target: PerPool, level: Level, pools: int, rank: int, short: int, rows: int, qualified: int
) -> NotCertifiable:
    labelled = counted(pools, "labelled pool")
    if rank == 0:
        most = next(g for g in range(pools + 1, 10**7) if allowed_rank(g, level) > 0)
        reason = (
            f"There are {labelled}, and this alpha needs {number(most)}: label more, or allow a larger alpha."
        )
    elif short >= rank:
        reason = (
            f"{number(short)} of {labelled} do not reach it even with everyone listed, and at most "
            f"{number(rank - 1)} may: ask for less, or allow a larger alpha."
        )
    else:
        reason = f"None of {labelled} has a qualified candidate, so no score says where the list should end."
    return refuse(target.describe(), level, rows, qualified, reason, count=rank)
