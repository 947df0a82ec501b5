"""A multiset of scores in bounded space, for ``adaptive``.

Up to ``LIMIT`` different scores are kept as they are. Beyond that the scores are rounded *down*
to one of ``GRID`` of them, each standing for about the same number of rows. Rounding down is
safe: a threshold read off rounded scores has at least as many rows at or above it as it claims.
It costs about one part in ``GRID`` of the list per regrid, and a regrid happens at most once
between two updates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LIMIT = 4000
GRID = 2000


class ScoreCounts:
    """Scores with how often each occurs; ``add``, ``nth_largest``, ``at_least``, ``drop_below``."""

    def __init__(
        self, scores: Floats | None = None, counts: Ints | None = None, *, rounded: bool = False
    ) -> None:
        self.scores: Floats = np.empty(0) if scores is None else scores
        self.counts: Ints = np.ones(len(self.scores), dtype=np.int64) if counts is None else counts
        self.rounded = rounded
        self._fresh: list[Floats] = []
        self._waiting = 0

    @property
    def fresh(self) -> Floats:
        """Scores added since the last settling, in the order of their arrival."""
        return np.concatenate(self._fresh) if self._fresh else np.empty(0)

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self._waiting

    def add(self, scores: Floats) -> None:
        """Settled in batches; when depends on how many were added only, not on saves."""
        if len(scores):
            self._fresh.append(scores)
            self._waiting += len(scores)
            if self._waiting >= LIMIT:
                self._settle()

    def nth_largest(self, count: int) -> float | None:
        """The largest score known to have ``count`` rows at or above it; None if there is none."""
        self._settle()
        above = np.cumsum(self.counts[::-1])
        place = int(np.searchsorted(above, count))
        return float(self.scores[::-1][place]) if place < len(above) else None

    def at_least(self, threshold: float) -> int:
        """How many rows score at least ``threshold`` (after rounding down: no more than that)."""
        self._settle()
        return int(self.counts[np.searchsorted(self.scores, threshold) :].sum())

    def drop_below(self, threshold: float) -> None:
        """Forget lower scores. With few left, new ones are kept exactly again."""
        self._settle()
        start = int(np.searchsorted(self.scores, threshold))
        self.scores, self.counts = self.scores[start:], self.counts[start:]
        if len(self.scores) < GRID // 2:
            self.rounded = False

    def _settle(self) -> None:
        if not self._fresh:
            return
        fresh = self.fresh
        self._fresh, self._waiting = [], 0
        if self.rounded and len(self.scores):
            place = np.searchsorted(self.scores, fresh, side="right") - 1
            self.counts = self.counts + np.bincount(place[place >= 0], minlength=len(self.scores))
            fresh = fresh[place < 0]
        scores, inverse = np.unique(np.concatenate([self.scores, fresh]), return_inverse=True)
        weights = np.concatenate([self.counts, np.ones(len(fresh), dtype=np.int64)])
        self.scores = scores
        self.counts = np.bincount(inverse, weights=weights, minlength=len(scores)).astype(np.int64)
        if len(scores) > LIMIT:
            self._regrid()

    def _regrid(self) -> None:
        before = np.cumsum(self.counts) - self.counts  # rows strictly below each score
        _, first = np.unique(before * GRID // int(self.counts.sum()), return_index=True)
        self.scores, self.counts = self.scores[first], np.add.reduceat(self.counts, first)
        self.rounded = True
