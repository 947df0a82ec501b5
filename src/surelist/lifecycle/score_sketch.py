"""A multiset of scores in bounded space, for ``campaign``.

Up to ``LIMIT`` different scores are kept as they are. Beyond that the scores are rounded *down*
to one of ``GRID`` of them, each standing for about the same number of rows. Rounding down is
safe: a threshold read off rounded scores has at least as many rows at or above it as it claims.
It costs about one part in ``GRID`` of the list per regrid, and a regrid happens at most once
between two updates.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LIMIT = 4000
GRID = 2000


class Scores(Struct, forbid_unknown_fields=True):
    """``ScoreCounts`` as plain values, for a file: ``fresh`` ones were added since the last settling."""

    scores: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    rounded: bool = False
    fresh: list[float] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts) + len(self.fresh)


class ScoreCounts:
    """Scores with how often each occurs; ``add``, ``nth_largest``, ``at_least``, ``drop_below``."""

    def __init__(self, state: Scores | None = None) -> None:
        state = state or Scores()
        self.scores: Floats = np.asarray(state.scores, dtype=np.float64)
        self.counts: Ints = np.asarray(state.counts, dtype=np.int64)
        self.rounded = state.rounded
        self._fresh: list[Floats] = []
        self._waiting = 0
        self.add(np.asarray(state.fresh, dtype=np.float64))

    @property
    def state(self) -> Scores:
        """What a file keeps."""
        return Scores(self.scores.tolist(), self.counts.tolist(), self.rounded, self._arrived().tolist())

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
        rank = int(np.searchsorted(above, count))
        return float(self.scores[::-1][rank]) if rank < len(above) else None

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

    def _arrived(self) -> Floats:
        """Scores added since the last settling, in the order of their arrival."""
        return np.concatenate(self._fresh) if self._fresh else np.empty(0)

    def _settle(self) -> None:
        if not self._fresh:
            return
        fresh = self._arrived()
        self._fresh, self._waiting = [], 0
        if self.rounded and len(self.scores):
            below = np.searchsorted(self.scores, fresh, side="right") - 1
            self.counts = self.counts + np.bincount(below[below >= 0], minlength=len(self.scores))
            fresh = fresh[below < 0]
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
