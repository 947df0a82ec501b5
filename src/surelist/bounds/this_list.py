"""How many of *this* list are qualified: n labelled rows and a pool of m, exchangeable [theory: this-list].

Rows and pool in order of score, those of one kind (qualified, or not) alone: a path of row marks and pool
marks, all C(n+m, n) of them equally likely. V_d is the number of pool marks before the d-th row mark.
``upper_counts`` and ``lower_counts`` are tables that hold for all d at once; ``fixed_list`` and
``most_wrong_rows`` are about one list size that was fixed beforehand. Numbers only.

The chance that a table holds is computed with probabilities, step by step over a grid of d: before they are
conditioned on their total, the numbers of pool marks between row marks are independent, so each step is one
convolution. Counts of paths would underflow where n is much larger than m.

``usual_counts`` are those to expect on one *new* list, by the calibration rows at its threshold
[theory: usual]; which policies they are true of is decided in ``promises.policy_display``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist._arrays import Floats, Ints, fft, special
from surelist.bounds import _tails as tails
from surelist.bounds.counts import Rate

CORE, OUTSIDE = 0.2, 0.01  # counts up to this share of the rows have the local level, others a part of it
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

    def rejected(found: int) -> bool:  # P(so few wrong rows), of wrong + found in above + size
        return tails.hypergeometric_cdf(wrong, above + size, wrong + found, above) <= tails.safe(alpha)

    return tails.smallest(rejected, 1, size) - 1


@lru_cache(maxsize=256)
def most_wrong_rows(above: int, size: int, share: Rate, alpha: float) -> int:
    """The most unqualified rows of ``above`` with which a share of the ``size`` best holds; -1: none.

    max{D : sup_b P(Bin(above, b) <= D) P(Bin(size, b) > (1-share) size) <= alpha}, size and share fixed
    beforehand. The supremum is bounded from above over cells of b.
    """
    allowed = math.floor((1 - check.as_rate(share, "share")) * size)
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    pool = special.betainc(allowed + 1, size - allowed, edges[1:]) if allowed < size else np.zeros(CELLS)

    def too_many(most: int) -> bool:
        rows = special.bdtr(most, above, edges[:-1]) if above else np.ones(CELLS)
        return bool(np.max(rows * pool) > tails.safe(alpha))

    return tails.smallest(too_many, 0, above) - 1


POINTS = 400  # at which the chance of having been certified is averaged
NEVER = 1e-60  # a chance to be certified at and below which shares are taken for one another


class Certifiable(Struct, frozen=True):
    """A list was made only because at least ``fewest`` of ``rows`` rows are qualified; ``qualified`` are."""

    rows: int
    fewest: int
    qualified: int


def usual_count(
    listed: int, needed: int, reached: int, unqualified: int, miss: float, given: Certifiable | None = None
) -> tuple[int, int]:
    """From so many to so many of ``listed``, each side left with probability at most ``miss``.

    Of the calibration rows at or above the threshold ``reached`` are qualified, of whom ``needed`` decided
    it (fewer where scores are tied), and ``unqualified`` are not. Fisher's exact test of both lists against
    one another, turned around: a number is usual unless the test rejects it. ``given``: the list is there
    only because the rows sufficed, which they do more often where they show more than is true.
    """
    counts = np.arange(listed + 1, dtype=np.float64)
    at_most = np.cumsum(beta_binomial(counts, listed, needed, unqualified + 1))
    low = int(np.searchsorted(at_most, tails.safe(miss), side="right"))
    if given is not None:
        seen = reached / (reached + unqualified)
        low = _given_certified(low, at_most, needed, unqualified, miss, seen, given)
    if unqualified == 0:
        return low, listed
    at_least = np.cumsum(beta_binomial(counts, listed, reached + 1, unqualified)[::-1])
    return low, listed - int(np.searchsorted(at_least, tails.safe(miss), side="right"))


def _given_certified(
    low: int, at_most: Floats, needed: int, unqualified: int, miss: float, seen: float, given: Certifiable
) -> int:
    """The lower end among calibrations that certify.

    The law of the share p on the list is P(so few rows | p) / P(certified | p) in the place of the first
    alone; the share among all rows is taken to change as p does. Averaged over Beta(h + 1, L - h), which is
    the law of p at which more than h of L are reached.
    """
    listed = len(at_most) - 1
    scale = given.qualified / given.rows / seen
    least = float(special.betaincinv(given.fewest, given.rows - given.fewest + 1, NEVER)) / scale
    ranks = (np.arange(POINTS) + 0.5) / POINTS

    def not_rare(count: int) -> bool:
        share = np.maximum(special.betaincinv(count + 1, listed - count, ranks), least)
        so_few = special.betainc(needed, unqualified + 1, share)
        everyone = np.minimum(share * scale, 1.0)
        certified = special.betainc(given.fewest, given.rows - given.fewest + 1, everyone)
        more = float(np.mean(np.minimum(so_few / certified, 1.0) - so_few))
        return float(at_most[count]) + more > tails.safe(miss)

    return tails.smallest(not_rare, 0, low - 1)


def beta_binomial(counts: Floats, size: int, a: float, b: float) -> Floats:
    """P(count of ``size``), where the share itself is Beta(a, b)."""
    choose = -special.betaln(size - counts + 1, counts + 1) - np.log(size + 1)
    logs: Floats = choose + special.betaln(counts + a, size - counts + b) - special.betaln(a, b)
    return np.exp(logs)
