"""How many of *this* list are qualified: n labelled rows and a pool of m, exchangeable [theory: this-list].

Rows and pool in order of score, those of one kind (qualified, or not) alone: a path of row marks and pool
marks, all C(n+m, n) of them equally likely. V_d is the number of pool marks before the d-th row mark.
``upper_counts`` and ``lower_counts`` are tables that hold for all d at once; ``fixed_list`` and
``most_wrong_rows`` are about one list size that was fixed beforehand. Numbers only.

The chance that a table holds is computed with probabilities, step by step over a grid of d: before they are
conditioned on their total, the numbers of pool marks between row marks are independent, so each step is one
convolution. Counts of paths would underflow where n is much larger than m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats, Ints
from surelist._scipy import fft, special
from surelist.bounds import _tails as tails
from surelist.bounds.counts import Rate

CORE, OUTSIDE = (
    0.2,
    0.01,
)  # counts up to this share of the rows have the local level, those beyond a part of it
DENSE, RATIO = 40, 1.06  # every count up to here is in the grid, then each is this much larger
SLACK = 1e-9  # the chance of a table, by floating point, may be this much too large
CELLS = 4000


@lru_cache(maxsize=32)
def upper_counts(n: int, m: int, alpha: float) -> Ints:
    """b_1 … b_{n+1}: V_d <= b_d for all d at once, except with probability alpha; b_{n+1} = m."""
    grid = _grid(n)
    above = _tails_of(n, m, grid)  # P(V_d >= v)

    def bounds(level: Floats) -> Ints:
        return np.maximum.accumulate((above[:, 1:] > level[:, None]).sum(axis=1))

    def inside(found: Ints) -> float:
        return _chance(n, m, alpha, grid, np.zeros(len(grid), dtype=np.int64), found)

    found = _solve(n, grid, alpha, bounds, inside)
    full = np.full(n + 1, m, dtype=np.int64)
    full[: grid[-1]] = found[np.searchsorted(grid, np.arange(1, grid[-1] + 1))]  # of the next one of the grid
    return full


@lru_cache(maxsize=32)
def lower_counts(n: int, m: int, alpha: float) -> Ints:
    """l_0 … l_n: V_c >= l_c for all c at once, except with probability alpha; l_0 = 0."""
    grid = _grid(n)
    # read backwards, m - V_c is V_{n+1-c}: the lower tail is summed, not one less the upper
    below = _tails_of(n, m, n + 1 - grid)[:, ::-1][:, 1:]  # P(V_c <= x), x = 0 … m

    def bounds(level: Floats) -> Ints:
        fits = (below <= level[:, None]).sum(axis=1)
        return np.minimum.accumulate(fits[::-1])[::-1]

    def inside(found: Ints) -> float:
        return _chance(n, m, alpha, grid, found, np.full(len(grid), m))

    found = _solve(n, grid, alpha, bounds, inside)
    full = np.zeros(n + 1, dtype=np.int64)
    at = np.searchsorted(grid, np.arange(1, n + 1), side="right") - 1  # of the one before, or itself
    full[1:] = np.where(at >= 0, found[np.maximum(at, 0)], 0)
    return full


def _grid(n: int) -> Ints:
    counts = list(range(1, min(n, DENSE) + 1))
    while counts[-1] < n:
        counts.append(min(n, max(counts[-1] + 1, math.floor(counts[-1] * RATIO))))
    return np.array(counts, dtype=np.int64)


def _tails_of(n: int, m: int, counts: Ints) -> Floats:
    """P(V_d >= v) for v = 0 … m+1: V_d is a beta-binomial number; a hair too large, the safe side."""
    d, v = counts[:, None].astype(np.float64), np.arange(m + 1, dtype=np.float64)[None, :]
    log = tails.log_choose(v + d - 1, v) + tails.log_choose(n - d + m - v, m - v) - tails.log_choose(n + m, m)
    tail = np.cumsum(np.exp(log)[:, ::-1], axis=1)[:, ::-1] * (1 + 1e-7)
    return np.concatenate([tail, np.zeros((len(counts), 1))], axis=1)


def _solve(
    n: int, grid: Ints, alpha: float, bounds: Callable[[Floats], Ints], inside: Callable[[Ints], float]
) -> Ints:
    """The table of the largest local level whose chance of holding is at least 1 - alpha."""
    weight = np.where(grid <= max(1.0, CORE * n), 1.0, OUTSIDE)
    return tails.largest_level(alpha, weight, bounds, lambda trial: 1 - inside(trial) <= alpha - SLACK, 1.02)


def _chance(n: int, m: int, alpha: float, grid: Ints, low: Ints, high: Ints) -> float:
    """P(low_d <= V_d <= high_d for every d of the grid)."""
    kernels, size, last, total = _kernels(n, m)
    places = np.arange(m + 1)
    p = np.zeros(m + 1)
    p[0] = 1.0
    for kernel, least, most in zip(kernels, low.tolist(), high.tolist(), strict=True):
        p = fft.irfft(fft.rfft(p, size) * kernel, size)[: m + 1]
        np.maximum(p, 0.0, out=p)
        p[(places < least) | (places > most)] = 0.0
    chance = float(np.dot(p, last) / total)
    if not -1e-9 <= chance <= 1 + 1e-9:
        raise ArithmeticError(f"a chance of {chance} for {n} rows and a pool of {m}")
    return chance


@lru_cache(maxsize=4)
def _kernels(n: int, m: int) -> tuple[list[Floats], int, Floats, float]:
    """The laws of the steps between counts of the grid as spectra, that of the rest, and of the whole.

    Marks are a row's with one probability, each by itself; given that m of them came before the n+1-th row's,
    all orders are equally likely.
    """
    rate = (n + 1) / (n + 1 + m)
    size = fft.next_fast_len(2 * m + 2, real=True)

    def law(rows: int) -> Floats:
        k = np.arange(m + 1, dtype=np.float64)
        log = tails.log_choose(k + rows - 1, k) + rows * math.log(rate) + k * math.log1p(-rate)
        return np.asarray(np.exp(log))

    known: dict[int, Floats] = {}
    spectra, before = [], 0
    for count in _grid(n).tolist():
        step = count - before
        if step not in known:
            known[step] = fft.rfft(law(step), size)
        spectra.append(known[step])
        before = count
    return spectra, size, law(n + 1 - before)[::-1], float(law(n + 1)[m])


def fixed_list(above: int, wrong: int, size: int, alpha: float) -> int:
    """The most unqualified ones among the ``size`` best of a pool, by Fisher's test; the size is fixed.

    ``above`` rows score above the candidate after the last one listed, ``wrong`` of them not qualified.
    """
    alpha = check.as_alpha(alpha)

    def rejected(found: int) -> bool:  # P(so few wrong rows), of wrong + found in above + size
        return tails.hypergeometric_cdf(wrong, above + size, wrong + found, above) <= tails.safe(alpha)

    return tails.smallest(rejected, 1, size) - 1


@lru_cache(maxsize=256)
def most_wrong_rows(above: int, size: int, share: Rate, alpha: float) -> int:
    """The most unqualified rows of ``above`` with which a share of the ``size`` best holds; -1: none.

    max{D : sup_b P(Bin(above, b) <= D) P(Bin(size, b) > (1-share) size) <= alpha}, size and share fixed
    beforehand. The supremum is bounded from above over cells of b.
    """
    alpha, allowed = check.as_alpha(alpha), math.floor((1 - Fraction(check.as_rate(share, "share"))) * size)
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    pool = special.betainc(allowed + 1, size - allowed, edges[1:]) if allowed < size else np.zeros(CELLS)

    def too_many(most: int) -> bool:
        rows = special.bdtr(most, above, edges[:-1]) if above else np.ones(CELLS)
        return bool(np.max(rows * pool) > tails.safe(alpha))

    return tails.smallest(too_many, 0, above) - 1
