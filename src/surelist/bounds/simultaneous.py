"""Equal local levels: the boundary behind ``rule="simultaneous"`` [theory: simultaneous].

Let U_(1) < ... < U_(n) be ordered uniforms. The boundary L(c) = BetaQuantile(w_c eta; c, n-c+1)
has the same small chance eta of lying above U_(c) at every count of the core range; eta is
solved so that the chance of *any* crossing is alpha. That chance is computed by a recursion: counts
of uniforms below L(c) form a Poisson process conditioned on its total, so each step is a
convolution. States and kernel terms beyond nine standard deviations are dropped, which can
only raise the computed crossing probability.

Beyond ``MOST_ROWS`` rows the boundary lives on a thin grid of rates: those that people ask for (hundredths
of a per cent from 1 % to 20 %, two digits below) and some between them, each with the smallest count of its
local level, all together at alpha/2. The other half of alpha goes to the paper's band, which holds for every
count at once: one-sided, the band for alpha is crossed with probability alpha/2 (Massart). A count certifies
the better of the two, so there the rule is never looser than ``dkw``. Beyond ``MOST_GRID`` rows the band
alone is left.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from surelist._arrays import Floats, Ints, special
from surelist.bounds._tails import convolve, largest_level

OUTSIDE_WEIGHT = 0.01  # local level outside the core range, relative to inside
CORE = (0.01, 0.2)  # the core range, as shares of the rows
PRECISION = 1.002  # eta is solved to this factor, from below
MOST_ROWS = 10**6  # beyond, a thin grid of rates and the band instead of nearly every count
MOST_GRID = 10**8  # beyond, the recursion is slow, and the band hardly longer
LARGEST_GAP = 1.2  # between two rates of the thin grid, in standard deviations of the count
SMALL_ALPHA = 1e-6  # below, the union bound stands for the recursion
ATTEMPTS = 6  # to come within a tenth of alpha from below; one or two do
ROUNDING = 1e-5  # share of alpha set aside for what floating point may lose at a hundred million rows


@lru_cache(maxsize=64)
def equal_local_levels(n: int, alpha: float) -> tuple[Ints, Floats]:
    """Counts c_j and certified rates r_j, both increasing; read-only arrays."""
    if n > MOST_ROWS:
        return _frozen(*_thin_family(n, alpha / 2))
    counts = _every_count(n)
    inside = (counts >= n // 100) & (counts <= max(1, n // 5))
    weight = np.where(inside, 1.0, OUTSIDE_WEIGHT)

    def holds(rates: Floats) -> bool:
        return crossing_probability(n, counts, rates) <= alpha - 1e-8

    precision = PRECISION if alpha > SMALL_ALPHA else math.inf
    rates = largest_level(alpha, weight, lambda levels: _boundary(n, counts, levels), holds, precision)
    return _frozen(counts, rates)


def _thin_family(n: int, alpha: float) -> tuple[Ints, Floats]:
    """Rates of the thin grid with their counts: all hold at once with probability >= 1 - ``alpha``."""
    if n > MOST_GRID:
        return np.empty(0, dtype=np.int64), np.empty(0)
    rates = _asked_rates(n)
    weight = np.where(rates >= CORE[0], 1.0, OUTSIDE_WEIGHT)
    best = _smallest_counts(n, rates, alpha / float(weight.sum()) * weight)
    level = _first_level(alpha)
    for _ in range(ATTEMPTS if alpha > SMALL_ALPHA else 0):
        trial = _smallest_counts(n, rates, level * weight)
        crossed = crossing_probability(n, *trial) + ROUNDING * alpha
        if crossed <= alpha:
            best = trial
            if crossed >= 0.9 * alpha:
                break
        level *= 0.98 * alpha / crossed
    return best


def _first_level(alpha: float) -> float:
    """Where to begin: the level in the limit of many rows, where a stationary process crosses."""
    log_odds = special.logit(CORE[1]) - special.logit(CORE[0])
    level = alpha
    for _ in range(30):
        level = alpha / (1 + log_odds / 2 * (special.ndtri(level) ** 2 + 1))
    return float(level)


def _asked_rates(n: int) -> Floats:
    """0.0100, 0.0101, ... 0.2000; below, 0.00100, 0.00105, ... down to twenty rows; and some between."""
    top = CORE[0]
    parts: list[Floats] = [np.arange(100, 2001) / 10_000.0]
    while top * n > 20:
        parts.insert(0, np.arange(20.0, 200.0) * np.float64(top / 200))
        top /= 10
    asked = np.concatenate(parts)
    between = np.ceil(np.diff(asked) * np.sqrt(n / asked[:-1]) / LARGEST_GAP).astype(np.int64)
    starts = np.repeat(asked[:-1], between)
    steps = np.arange(len(starts)) - np.repeat(np.cumsum(between) - between, between)
    rates = starts + steps * np.repeat(np.diff(asked) / between, between)
    # a hair above, so that the float of a rate never lies below the rate
    return np.append(rates, asked[-1]) * (1 + 1e-15)


def _smallest_counts(n: int, rates: Floats, levels: Floats) -> tuple[Ints, Floats]:
    """For each rate r the smallest c with P(Binomial(n, r) >= c) <= its level; one rate per count, rising."""
    low = np.floor(n * rates).astype(np.int64)  # too small: the tail at the mean is about a half
    high = low + (12 * np.sqrt(n * rates) + 40).astype(np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        holds = special.betainc(middle, n - middle + 1, rates) <= levels
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    counts = np.minimum.accumulate(high[::-1])[::-1]  # what certifies a rate certifies all below it
    last = np.append(np.diff(counts) > 0, True)  # of several rates with one count the largest
    return counts[last], rates[last]


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


def _every_count(n: int) -> Ints:
    """Every count up to 400 or so, then steps of a tenth of a standard deviation, then a fraction."""
    counts = [1]
    while counts[-1] < n:
        last = counts[-1]
        counts.append(min(n, last + max(1, int(0.1 * last**0.5), last // 150)))
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
