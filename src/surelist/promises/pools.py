"""Whole pools as units: the qualified rows of labelled pools, best first.

Inside a pool anything may depend on anything [theory: pools]. The values per pool come from one sort of the
qualified rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist import _check as check
from surelist.filters import ranks_within

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PoolRows(Struct, frozen=True, eq=False):
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
        cls, scores: Floats, values: Floats | NDArray[np.bool_], codes: Ints, pools: int, *,
        by_rank: bool = False,
    ) -> PoolRows:  # fmt: skip
        if by_rank:
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

    def reached(self, needed_of: Callable[[Ints], Ints]) -> Floats:
        """V: the score at which each pool reaches what is needed of it; -inf where it never does.

        ``needed_of`` says how many qualified ones the list of a pool must hold that has so many. +inf
        where that is none: a pool without qualified candidates keeps any share of them.
        """
        sizes = np.bincount(self.codes, minlength=self.pools)
        needed = needed_of(sizes)
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


def pool_rows(
    scores: Floats, labels: NDArray[np.bool_] | Floats, pools: Any, *, by_rank: bool = False
) -> PoolRows:
    """Whole pools as units; without ``pools`` every row is a unit of its own."""
    codes, count = (
        (np.arange(len(scores)), len(scores)) if pools is None else check.as_codes(pools, len(scores))
    )
    return PoolRows.of(scores, labels, codes, count, by_rank=by_rank)
