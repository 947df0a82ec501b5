"""Tails of the binomial and the hypergeometric law, accurate to rounding for any n; searches over them.

Used by the rules of this package only: arguments are checked where they come in (``counts``), not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np

from surelist._arrays import Column, Floats, fft, special

Table = TypeVar("Table")

MARGIN = 1e-9  # a tail this close to alpha, relatively, counts as too large


def safe(alpha: float) -> float:
    """Alpha less the margin: what a tail in floating point is compared with."""
    return alpha * (1 - MARGIN)


def smallest(holds: Callable[[int], bool], low: int, high: int, guess: int | None = None) -> int:
    """Smallest integer in [low, high] where the monotone ``holds`` is true, else high + 1."""
    below, above, step = low - 1, high + 1, 4  # holds(below) is false, holds(above) true
    if guess is not None:
        if holds(guess):
            above = guess
            while (probe := above - step) > below and holds(probe):
                above, step = probe, step * 2
            below = max(below, probe)
        else:
            below = guess
            while (probe := below + step) < above and not holds(probe):
                below, step = probe, step * 2
            above = min(above, probe)
    while above - below > 1:
        middle = (below + above) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above


def last_outside(far: float, near: float, outside: Callable[[float], bool]) -> float:
    """The last number, from the far end on, that lies outside; bisected, and errs to the far side."""
    if not outside(far):
        return far
    for _ in range(60):
        middle = (far + near) / 2
        far, near = (middle, near) if outside(middle) else (far, middle)
    return far


def largest_level(
    alpha: float,
    weight: Floats,
    table: Callable[[Floats], Table],
    holds: Callable[[Table], bool],
    ratio: float,
) -> Table:
    """The table of the largest local level at which it ``holds``, to a ``ratio``, from below.

    Levels are shared by ``weight``. The union bound is always valid; ``holds`` is not asked about it.
    """
    low, high = alpha / float(weight.sum()), alpha
    best = table(low * weight)
    while high / low > ratio:
        middle = math.sqrt(low * high)
        trial = table(middle * weight)
        if holds(trial):
            low, best = middle, trial
        else:
            high = middle
    return best


def binomial_tail(n: int, rate: float, count: int) -> float:
    """P(Binomial(n, rate) >= count)."""
    if count <= 0:
        return 1.0
    if count > n:
        return 0.0
    return float(special.betainc(count, n - count + 1, rate))


def summed_tail(n: int, rate: float, count: int) -> float:
    """P(Binomial(n, rate) >= count) for a count above the mean, term by term, and never too small.

    Agrees with ``binomial_tail`` to a relative 1e-10 and needs no SciPy. Above the mean the terms fall
    faster than geometrically, so what lies beyond the last one is bounded by a geometric series.
    """
    if not n * rate < count <= n:
        return 1.0 if count <= n else 0.0
    last = min(n, count + 12 * math.isqrt(n + 1) + 40)
    terms = np.exp(log_binomial(np.arange(count, last + 1, dtype=np.float64), float(n), rate))
    falls = (n - last) * rate / ((last + 1) * (1 - rate)) if last < n else 0.0
    return float(terms.sum() + terms[-1] * falls / (1 - falls))


def pool_tail(n: int, k: int, pool_size: int, count: int) -> float:
    """P(fewer than k of the best count + k - 1 of n rows and a pool come from the pool)."""
    return hypergeometric_cdf(k - 1, n + pool_size, pool_size, count + k - 1)


def convolve(a: Floats, b: Floats) -> Floats:
    """The law of a sum of two independent counts."""
    if min(len(a), len(b)) < 200:
        return np.convolve(a, b) if len(a) else a
    size = len(a) + len(b) - 1
    fast = fft.next_fast_len(size, real=True)
    product: Floats = fft.irfft(fft.rfft(a, fast) * fft.rfft(b, fast), fast)
    return product[:size]


@lru_cache(maxsize=1)
def _stirling_table() -> Floats:
    """Error of Stirling's formula, ln(x!) - ln(sqrt(2 pi x) (x/e)^x), for x below 16."""
    x = np.arange(1, 16, dtype=float)
    exact = [float(math.log(math.factorial(int(v)))) for v in x]
    stirling = 0.5 * np.log(2 * np.pi * x) + x * np.log(x) - x
    return np.concatenate([[0.0], np.asarray(exact) - stirling])


def _stirling_error(x: Floats) -> Floats:
    small = _stirling_table()[np.minimum(x, 15).astype(int)]
    y = np.maximum(x, 1.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * y**2)) / y**2) / y**2) / y**2) / y
    result: Floats = np.where(x < 16, small, series)
    return result


def _deviance(x: Floats, mean: Floats) -> Floats:
    """x ln(x/mean) + mean - x without cancellation (Loader's saddle-point form)."""
    ratio = (x - mean) / np.where(mean > 0, mean, 1.0)
    near = np.abs(ratio) < 0.1
    log = np.where(near, np.log1p(np.where(near, ratio, 0.0)), 0.0)
    close = mean * ((1 + ratio) * log - ratio)
    far = _times(x, np.log(np.where(x > 0, x / np.where(mean > 0, mean, 1.0), 1.0))) + mean - x
    result: Floats = np.where(near, close, far)
    return result


def _times(x: float | Floats, log: float | Floats) -> Floats:
    """x times a logarithm, where nothing times minus infinity is nothing."""
    with np.errstate(invalid="ignore"):
        product: Floats = np.where(np.asarray(x) == 0, 0.0, x * log)
    return product


def log_binomial(x: Floats, n: float | Floats, p: float) -> Floats:
    """ln P(Binomial(n, p) = x), accurate to rounding for n up to 1e15."""
    q = 1 - p
    inner = _stirling_error(np.asarray(n, dtype=np.float64)) - _stirling_error(x) - _stirling_error(n - x)
    inner = inner - _deviance(x, np.asarray(n * p)) - _deviance(n - x, np.asarray(n * q))
    edge = (x <= 0) | (x >= n)
    spread = np.where(edge, 1.0, x * ((n - x) / np.maximum(n, 1)))
    main = inner - 0.5 * np.log(2 * np.pi * spread)
    at_zero = _times(n, math.log1p(-p) if p < 1 else -math.inf)
    at_n = _times(n, math.log(p) if p > 0 else -math.inf)
    result: Floats = np.where(x <= 0, at_zero, np.where(x >= n, at_n, main))
    return result


def log_hypergeometric(x: float | Floats, total: int, marked: float | Floats, drawn: int) -> Floats:
    """ln P(x of the ``drawn`` of ``total`` are marked); -inf where impossible. Broadcasts."""
    x, marked = np.asarray(x, dtype=np.float64), np.asarray(marked, dtype=np.float64)
    rest, p = total - marked, drawn / total
    possible = (x >= 0) & (x <= marked) & (drawn - x >= 0) & (drawn - x <= rest)
    if p >= 1:
        return np.where(possible, 0.0, -np.inf)
    inside = np.clip(x, 0, marked)
    log = log_binomial(inside, marked, p) + log_binomial(np.clip(drawn - inside, 0, rest), rest, p)
    log = log - log_binomial(np.asarray(float(drawn)), float(total), p)
    return np.where(possible, log, -np.inf)


@lru_cache(maxsize=1 << 12)  # a list is made anew at every look
def hypergeometric_cdf(most: int, total: int, marked: int, drawn: int) -> float:
    """P(at most ``most`` of the ``drawn`` of ``total`` are marked)."""
    low, high = max(0, drawn + marked - total), min(most, marked, drawn)
    x = np.arange(low, high + 1, dtype=np.float64)
    return min(1.0, float(np.exp(log_hypergeometric(x, total, float(marked), drawn)).sum()))


def log_choose(n: float | Column, k: float | Column) -> Floats:
    """ln of the number of ways to choose k of n, -inf where there is none; loses about 1e-16 n ln(n)."""
    possible, ln = np.asarray((k >= 0) & (k <= n)), special.gammaln
    k = np.where(possible, k, 0.0)
    n = np.maximum(n, k)
    return np.where(possible, ln(n + 1) - ln(k + 1) - ln(n - k + 1), -np.inf)


def quick_log_hypergeometric(
    x: float | Column, total: float | Column, marked: float | Column, drawn: float | Column
) -> Floats:
    """As ``log_hypergeometric``, by log factorials: less work, and for many millions less precise."""
    ways = log_choose(marked, x) + log_choose(total - marked, drawn - x)
    return np.asarray(ways - log_choose(total, np.minimum(drawn, total)))
