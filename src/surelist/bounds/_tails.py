"""Tails of the binomial and the hypergeometric law, accurate to rounding for any n; searches over them.

Used by the rules of this package only: arguments are checked where they come in (``counts``), not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from surelist._scipy import fft, special

Floats = NDArray[np.float64]

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
    drawn = count + k - 1
    from_pool = np.arange(max(0, drawn - n), min(k - 1, pool_size) + 1, dtype=float)
    return min(1.0, float(np.exp(log_hypergeometric(from_pool, pool_size, n, drawn)).sum()))


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
    inner = (
        _stirling_error(np.asarray(n, dtype=np.float64))
        - _stirling_error(x)
        - _stirling_error(n - x)
        - _deviance(x, np.asarray(n * p))
        - _deviance(n - x, np.asarray(n * q))
    )
    edge = (x <= 0) | (x >= n)
    spread = np.where(edge, 1.0, x * ((n - x) / np.maximum(n, 1)))
    main = inner - 0.5 * np.log(2 * np.pi * spread)
    at_zero = _times(n, math.log1p(-p) if p < 1 else -math.inf)
    at_n = _times(n, math.log(p) if p > 0 else -math.inf)
    result: Floats = np.where(x <= 0, at_zero, np.where(x >= n, at_n, main))
    return result


def log_hypergeometric(x: Floats, pool_size: int, n: int, drawn: int) -> Floats:
    """ln P(x of the ``drawn`` from pool_size + n come from the pool)."""
    p = drawn / (pool_size + n)
    total = log_binomial(np.asarray(float(drawn)), pool_size + n, p)
    result: Floats = log_binomial(x, pool_size, p) + log_binomial(drawn - x, n, p) - total
    return result
