"""Equal local levels: the boundary behind ``rule="simultaneous"`` [theory: simultaneous].

Let U_(1) < ... < U_(n) be ordered uniforms. The boundary L(c) = BetaQuantile(w_c eta; c, n-c+1)
has the same small chance eta of lying above U_(c) at every count of the core range; eta is
solved so that the chance of *any* crossing is alpha. That chance is computed exactly: counts
of uniforms below L(c) form a Poisson process conditioned on its total, so each step is a
convolution. States and kernel terms beyond nine standard deviations are dropped, which can
only raise the computed crossing probability. Beyond a million rows the same boundary is used with
the union bound for eta, beyond a hundred million the paper's band: the choice depends on n only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from surelist.bounds._tails import convolve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OUTSIDE_WEIGHT = 0.01  # local level outside the core range, relative to inside
PRECISION = 1.002  # eta is solved to this factor, from below
MOST_ROWS = 10**6  # beyond (and for tiny alpha), the recursion is slow and the union bound hardly longer
MOST_BETA = 10**8  # beyond, so are Beta quantiles, and the DKW band is as short


@lru_cache(maxsize=64)
def equal_local_levels(n: int, alpha: float) -> tuple[Ints, Floats]:
    """Counts c_j and certified rates r_j, both increasing; read-only arrays."""
    counts = _grid(n)
    if n > MOST_BETA:
        return _frozen(
            counts, np.maximum(counts / n - np.sqrt(np.log(2 / alpha) / (2 * n)), 0.0) * (1 - 1e-10)
        )
    inside = (counts >= n // 100) & (counts <= max(1, n // 5))
    weight = np.where(inside, 1.0, OUTSIDE_WEIGHT)
    low, high = alpha / float(weight.sum()), alpha  # the union bound is always valid
    rates = _boundary(n, counts, low * weight)
    while n <= MOST_ROWS and alpha > 1e-6 and high / low > PRECISION:
        middle = float(np.sqrt(low * high))
        trial = _boundary(n, counts, middle * weight)
        if crossing_probability(n, counts, trial) <= alpha - 1e-8:
            low, rates = middle, trial
        else:
            high = middle
    return _frozen(counts, rates)


def _frozen(counts: Ints, rates: Floats) -> tuple[Ints, Floats]:
    counts.flags.writeable = rates.flags.writeable = False
    return counts, rates


def crossing_probability(n: int, counts: Ints, rates: Floats) -> float:
    """P(for some j at least c_j of n uniforms lie below r_j)."""
    state, lowest, reached = np.ones(1), 0, 0.0  # state[i] = P(count = lowest + i, no crossing)
    for count, rate in zip(counts.tolist(), rates.tolist(), strict=True):
        first, kernel = _poisson_window(n * (rate - reached))
        state = convolve(state, kernel)[: max(0, count - lowest - first)]
        reached, mean = rate, n * rate
        floor = max(lowest + first, int(mean - 9 * np.sqrt(mean) - 12))
        state, lowest = state[floor - lowest - first :], floor
    return float(1 - np.dot(np.maximum(state, 0), _last_step(n, lowest, len(state), reached)))


def _grid(n: int) -> Ints:
    """Every count up to 400 or so, then steps of a tenth of a standard deviation, then a fraction."""
    counts, share = [1], 150 if n <= MOST_ROWS else min(3000, max(600, int(n**0.5 / 10)))
    while counts[-1] < n:
        last = counts[-1]
        counts.append(min(n, last + max(1, int(0.1 * last**0.5), last // share)))
    return np.asarray(counts, dtype=np.int64)


def _boundary(n: int, counts: Ints, levels: Floats) -> Floats:
    rates = special.betaincinv(counts, n - counts + 1, levels)
    # a rate is rounded down by a hair so that the quantile's own error stays on the safe side
    return np.maximum.accumulate(rates) * (1 - 1e-10)


def _poisson_window(mean: float) -> tuple[int, Floats]:
    reach = 9 * np.sqrt(mean) + 12
    first = max(0, int(mean - reach))
    x = np.arange(first, int(mean + reach) + 2)
    return first, np.exp(special.xlogy(x, mean) - mean - special.gammaln(x + 1))


def _last_step(n: int, lowest: int, length: int, reached: float) -> Floats:
    """P(n - count more points in the rest of [0, 1]) / P(n points in all), Poissonised."""
    rest = n - (lowest + np.arange(length))
    mean = n * (1 - reached)
    total = n * np.log(n) - n - special.gammaln(n + 1)
    values: Floats = np.exp(special.xlogy(rest, mean) - mean - special.gammaln(rest + 1) - total)
    return values
