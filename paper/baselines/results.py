"""What a baseline returns: chances of being shortlisted, and what is promised about them.

``Bands`` decide by the score alone (the paper's pool-independent policies); ``PoolShortlists``
look at the whole pool. Both take any number of pools at once and neither draws random numbers
unless asked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import surelist as sl
from paper.inputs import Floats, Mask, as_pools, labelled_rows

NO_GUARANTEE = "no guarantee"


class NotEnoughRows(sl.SurelistError):
    """These calibration rows do not bear the target, by the rule of a baseline; the numbers beside it."""

    def __init__(
        self, target: str, rows: int, available: int, needed: int, largest_k: float, rows_needed: int | None
    ) -> None:
        more = "no number of rows" if rows_needed is None else f"about {rows_needed:,} rows"
        super().__init__(
            f"{target}: needs {needed:,} qualified rows of {rows:,}, and {available:,} are. At most "
            f"k = {largest_k:.4g} with these; {more} would do for the target."
        )
        self.rows, self.qualified_available, self.critical_count = rows, available, needed
        self.largest_k, self.rows_needed = largest_k, rows_needed


@dataclass(frozen=True)
class Bands:
    """Chances by score: at or above ``thresholds[j]`` and below the one before, ``chances[j]``.

    Thresholds descend; below the last the chance is 0. By Proposition 5 of the paper any
    policy is matched in expected size and expected qualified candidates by one of this form,
    so pools may have any size.
    """

    method: str
    thresholds: tuple[float, ...]
    chances: tuple[float, ...]
    guarantee: str

    def chance(self, scores: Any) -> Floats:
        """The chance of each candidate to be shortlisted; any shape in, the same shape out."""
        array = as_pools(scores)
        steps = np.asarray([*self.chances, 0.0])[::-1]
        return steps[np.searchsorted(self.thresholds[::-1], array, side="right")]

    def select(self, scores: Any, rng: np.random.Generator) -> Mask:
        """One shortlist: True for every candidate on it."""
        return draw(self.chance(scores), rng)

    def expected(self, scores: Any, labels: Any, pool_size: float) -> tuple[float, float]:
        """Expected list size and qualified candidates in pools drawn from these candidates."""
        array, qualified = labelled_rows(scores, labels)
        chance = self.chance(array)
        scale = pool_size / len(array)
        return float(chance.sum()) * scale, float(chance[qualified].sum()) * scale


@dataclass(frozen=True)
class PoolShortlists:
    """Chances per candidate for one pool, or for many as rows of an array.

    Candidates above ``threshold`` are shortlisted, those exactly at it with probability
    ``share``; one threshold and one share per pool. A pool with too little in it has
    threshold -inf and everyone on the list.
    """

    method: str
    chance: Floats
    threshold: Floats
    share: Floats
    guarantee: str

    @property
    def size(self) -> Floats:
        """Expected list size of each pool."""
        return np.asarray(self.chance.sum(axis=-1))

    def select(self, rng: np.random.Generator) -> Mask:
        """One shortlist per pool: True for every candidate on it."""
        return draw(self.chance, rng)


def draw(chance: Floats, rng: np.random.Generator) -> Mask:
    """True with the given chances; a chance of 1 always, of 0 never."""
    return rng.random(chance.shape) < chance
