"""Critical counts for thresholds that are looked at again and again [theory: reviews].

A campaign looks at its rows n_0 < n_1 < ... times. The number of qualified rows scoring above
the boundary t* is a walk of n steps, each one with probability q <= p0. ``FirstCrossing`` hands
out counts c_0, c_1, ... such that the chance that the walk is at or above c_j at *any* look j
is at most alpha. Each count is the smallest one that the budget of its look allows, and what
the looks before could not spend (counts are whole numbers) is carried over.

The chance is computed, not bounded: the distribution of the walk that has not crossed yet is
kept and convolved with the binomial steps to the next look. Probability beyond nine standard
deviations, and all rounding, is counted as if it had crossed. The walk with q < p0 lies below
the one with p0 (couple the steps), so p0 is the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats
from surelist.bounds import _tails as tails
from surelist.errors import InvalidInput

ROUNDING = 1e-13  # probability set aside per look for what floating point may lose
REACH = 9.0  # standard deviations kept on either side


class FirstCrossing:
    """Counts for one look after another; each depends on the row numbers so far and nothing else.

    ``rate`` is p0. ``next(rows, allowed)`` returns the smallest count c such that the chance
    of having crossed by this look is at most ``allowed``; ``rows + 1`` where no count will do.
    """

    def __init__(self, rate: float | Fraction) -> None:
        self.rate = math.nextafter(float(check.as_rate(rate, "rate")), 1.0)
        self.rows = 0
        self.spent = 0.0  # chance of having crossed so far
        self._alive = np.ones(1)  # _alive[i] = P(walk at _lowest + i, not crossed)
        self._lowest = 0

    def next(self, rows: int, allowed: float) -> int:
        """The critical count at ``rows`` rows in all, with ``allowed`` probability spent by then."""
        if rows < self.rows:
            raise InvalidInput(
                "rows", expected=f"at least the {self.rows:,} of the last look", got=f"{rows:,}"
            )
        self._advance(rows)
        lost = max(0.0, 1.0 - self.spent - float(self._alive.sum())) + ROUNDING
        budget = allowed * (1 - tails.MARGIN) - self.spent - lost
        crossing = np.append(np.cumsum(self._alive[::-1])[::-1], 0.0)  # from each state up
        cut = len(self._alive) if budget < 0 else int(np.argmax(crossing <= budget))
        self.spent += float(crossing[cut])
        self._alive = self._alive[:cut]
        return rows + 1 if budget < 0 else max(1, min(self._lowest + cut, rows + 1))

    def _advance(self, rows: int) -> None:
        first, step = _window(rows - self.rows, self.rate)
        self._alive = np.maximum(tails.convolve(self._alive, step), 0.0)
        self._lowest += first
        self.rows = rows
        spread = REACH * math.sqrt(rows * self.rate) + 12
        low = max(0, int(rows * self.rate - spread) - self._lowest)
        high = max(low, int(rows * self.rate + spread) + 1 - self._lowest)
        self._alive, self._lowest = self._alive[low:high], self._lowest + low


def first_crossing_counts(rows: Sequence[int], rate: float | Fraction, budgets: Sequence[float]) -> list[int]:
    """All counts at once, from the row numbers of the looks and the cumulative budgets."""
    walk = FirstCrossing(rate)
    return [walk.next(n, allowed) for n, allowed in zip(rows, budgets, strict=True)]


def _window(steps: int, rate: float) -> tuple[int, Floats]:
    """P(Binomial(steps, rate) = x) for the x that matter."""
    if steps == 0 or rate >= 1.0:
        return steps, np.ones(1)
    mean = steps * rate
    reach = REACH * math.sqrt(mean) + 12
    first, last = max(0, int(mean - reach)), min(steps, int(mean + reach) + 1)
    x = np.arange(first, last + 1, dtype=np.float64)
    return first, np.exp(tails.log_binomial(x, float(steps), rate))
