"""How many of those on one new list are qualified, by the calibration rows at its threshold [theory: usual].

Numbers in, numbers out; which policies these are true of is decided in ``promises.usual``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist._scipy import special
from surelist.bounds import _tails as tails

Floats = NDArray[np.float64]


def usual_count(listed: int, needed: int, reached: int, unqualified: int, miss: float) -> tuple[int, int]:
    """From so many to so many of ``listed``, each side left with probability at most ``miss``.

    Of the calibration rows at or above the threshold ``reached`` are qualified, of whom ``needed`` decided
    it (fewer where scores are tied), and ``unqualified`` are not. Fisher's exact test of both lists against
    one another, turned around: a number is usual unless the test rejects it.
    """
    counts = np.arange(listed + 1, dtype=np.float64)
    at_most = np.cumsum(beta_binomial(counts, listed, needed, unqualified + 1))
    low = int(np.searchsorted(at_most, tails.safe(miss), side="right"))
    if unqualified == 0:
        return low, listed
    at_least = np.cumsum(beta_binomial(counts, listed, reached + 1, unqualified)[::-1])
    return low, listed - int(np.searchsorted(at_least, tails.safe(miss), side="right"))


def beta_binomial(counts: Floats, size: int, a: float, b: float) -> Floats:
    """P(count of ``size``), where the share itself is Beta(a, b)."""
    choose = -special.betaln(size - counts + 1, counts + 1) - np.log(size + 1)
    logs: Floats = choose + special.betaln(counts + a, size - counts + b) - special.betaln(a, b)
    return np.exp(logs)
