"""About the level of a block's critical count, fast: for laying blocks out, never for certifying.

A count is a whole number, so the level that a block's test reaches lies somewhat below its share of alpha; a
little smaller block with the same count reaches it, and its list is shorter. What certifies is the exact sum
in ``bounds.collection``, worked out for the block that was chosen [theory: few-labels].
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surelist._scipy import special

Floats = NDArray[np.float64]
Rates = tuple[Floats, Floats]  # points and their weights

NODES = 24
REACH = 7.0  # standard deviations gone through
MARGIN = 1e-3  # of alpha, left for what this does not see


@cache
def _nodes() -> tuple[Floats, Floats]:
    x, weights = np.polynomial.legendre.leggauss(NODES)
    return np.asarray(x), np.asarray(weights)


def _beta(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Points and weights, one more axis at the end, for a Beta law; b = 0 is a point at 1."""
    a, b = a[..., None], np.maximum(b, 1e-9)[..., None]
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    low, high = np.maximum(mean - REACH * spread, 1e-12), np.minimum(mean + REACH * spread, 1 - 1e-12)
    x, weights = _nodes()
    at = low + (high - low) * (x + 1) / 2
    log = (a - 1) * np.log(at) + (b - 1) * np.log1p(-at)
    dense = np.exp(log - log.max(axis=-1, keepdims=True)) * weights
    return at, dense / dense.sum(axis=-1, keepdims=True)


def pool_rates(k: int, pool_size: int) -> Rates:
    """The rate at the k-th best qualified candidate of a future pool."""
    at, weights = _beta(np.array([float(k)]), np.array([pool_size - k + 1.0]))
    return at[0], weights[0]


def about_level(size: int, blocks: Floats, drawn: int, rates: Rates, counts: Floats) -> Floats:
    """P(at least ``counts`` of ``drawn`` are qualified and above the boundary), for each block.

    ``rates``: points and weights of the rate above the boundary (one point for an average over pools).
    """
    share, weights = _beta(blocks + 1.0, size - blocks)
    chance = np.minimum(1.0, rates[0] / share[..., None])
    others = np.maximum(drawn - counts + 1, 1e-9)
    tails = special.betainc(counts[:, None, None], others[:, None, None], chance)
    level: Floats = np.einsum("ijk,ij,k->i", tails, weights, rates[1])
    return level


def about_counts(size: int, blocks: Floats, drawn: int, rates: Rates, alpha: float) -> Floats:
    """About the critical count of each block; drawn + 1 where there is none."""
    low, high = np.zeros(len(blocks)), np.full(len(blocks), drawn + 1.0)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        holds = about_level(size, blocks, drawn, rates, np.maximum(middle, 1.0)) <= alpha
        low, high = np.where(holds & (middle > 0), low, middle), np.where(holds & (middle > 0), middle, high)
    return high


def tightened(size: int, blocks: list[int], drawn: int, rates: Rates, alpha: float) -> list[int]:
    """The smallest blocks with the same critical counts, each once."""
    upper = np.asarray(blocks, dtype=np.float64)
    counts = about_counts(size, upper, drawn, rates, alpha)
    possible = counts <= drawn
    lower, upper = np.maximum(0.4 * upper, drawn), upper.copy()
    for _ in range(18):
        middle = (lower + upper) / 2
        holds = about_level(size, middle, drawn, rates, counts) <= alpha * (1 - MARGIN)
        lower, upper = np.where(holds, lower, middle), np.where(holds, middle, upper)
    tight = np.where(possible, np.ceil(upper), np.asarray(blocks))
    return sorted({int(each) for each in tight.tolist()})
