"""Critical counts for a random sample of a ranked block: certify a count instead of counting.

A collection of N scored candidates; its A best form the *block*; n of them, drawn at random
without replacement, are labelled. The critical count c is the smallest number of labelled
qualified candidates at or above a threshold that certifies the target [theory: few-labels]:

- ``block_count``: at least C qualified among the collection itself (nothing is assumed);
- ``block_rate_count``: P(Y=1, F>=t) >= rate, the collection being a sample of the population;
- ``block_pool_count``: at least k qualified in a future pool of m.

The last two sum the first over T, the number of qualified rows of the collection above the
boundary: Bin(N, rate) or the negative hypergeometric w(T). With X the rank, among the block, of
the c-th drawn row from the top, P(Hyp(A, min(T, A), n) >= c) = P(X <= T), so the sum is
E P(T >= X), which needs the law of X only where P(T >= .) is neither 0 nor 1.

A count of ``n + 1`` means that no outcome certifies. Near ties with alpha the collection's own
count is decided in integers; the other two err by one count to the safe side.

``tightened`` and ``about_level`` are for laying blocks out, never for certifying: a count is a whole number,
so the level that a block's test reaches lies somewhat below its share of alpha; a little smaller block with
the same count reaches it, and its list is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats, special
from surelist.bounds._tails import log_hypergeometric, safe, smallest
from surelist.bounds.counts import Rate

Rates = tuple[Floats, Floats]  # points and their weights
Survival = Callable[[Floats], Floats]

REACH = 9.0  # standard deviations beyond which a tail is below the rounding of the rest
MOST_POINTS = 1 << 15  # ranks summed one by one; beyond, in groups bounded from both sides
GROUPS = 1 << 11
NODES = 24  # of a rough quadrature
SPREAD = 7.0  # standard deviations gone through
LEFT = 1e-3  # of alpha, left for what this does not see


@lru_cache(maxsize=65536)
def block_count(block: int, qualified: int, drawn: int, alpha: Rate) -> int:
    """Smallest count among ``drawn`` that certifies ``qualified`` in a block of ``block`` rows.

    min{c : P(Hyp(block, min(qualified - 1, block), drawn) >= c) <= alpha}; 0 where
    ``qualified`` is at most 0, because they are known already.
    """
    if qualified <= 0:
        return 0
    level = alpha if isinstance(alpha, Fraction) else check.as_fraction(alpha, "alpha")
    marked = min(qualified - 1, block)
    low, high = max(0, drawn + marked - block), min(drawn, marked)
    x = np.arange(low, high + 1, dtype=np.float64)
    pmf = np.exp(log_hypergeometric(x, block, float(marked), drawn))
    tails = np.append(np.cumsum(pmf[::-1])[::-1], 0.0)  # tails[i] = P(Hyp >= low + i)
    near = np.flatnonzero(np.abs(tails - float(alpha)) <= 1e-7 * float(alpha))
    first = int(np.argmax(tails <= float(alpha)))
    for i in near.tolist():  # a tie, or all but: decided in integers
        holds = block_tail(block, marked, drawn, low + i) <= level
        first = min(first, i) if holds else max(first, i + 1)
    return low + first


def block_tail(block: int, marked: int, drawn: int, count: int) -> Fraction:
    """P(Hyp(block, marked, drawn) >= count), exactly."""
    low, high = max(count, drawn + marked - block, 0), min(drawn, marked)
    if low > high:
        return Fraction(0)
    term = math.comb(marked, low) * math.comb(block - marked, drawn - low)
    total = 0
    for x in range(low, high + 1):
        total += term
        term = term * (marked - x) * (drawn - x) // ((x + 1) * (block - marked - drawn + x + 1) or 1)
    return Fraction(total, math.comb(block, drawn))


@lru_cache(maxsize=65536)
def block_rate_count(size: int, block: int, drawn: int, rate: Rate, alpha: float) -> int:
    """Smallest count that certifies P(Y=1, F>=t) >= ``rate`` for the population behind ``size`` rows.

    min{c : sum over T of Bin(T; size, rate) P(Hyp(block, min(T, block), drawn) >= c) <= alpha}.
    ``block`` must not depend on the scores or labels of these rows.
    """
    p = math.nextafter(float(rate), 1.0)
    if p >= 1:
        return drawn + 1
    spread = REACH * math.sqrt(size * p * (1 - p)) + 30
    ends = max(0, int(size * p - spread)), min(size, int(size * p + spread) + 1)

    def survival(ranks: Floats) -> Floats:
        tail = special.betainc(np.maximum(ranks, 1), np.maximum(size - ranks + 1, 0.5), p)
        return np.where(ranks <= 0, 1.0, np.where(ranks > size, 0.0, tail))

    return _smallest_count(block, drawn, survival, ends, alpha, min(1.0, size * p / block))


@lru_cache(maxsize=65536)
def block_pool_count(size: int, block: int, drawn: int, k: int, pool_size: int, alpha: float) -> int:
    """Smallest count that certifies k qualified candidates in a future pool of ``pool_size``.

    The same sum with w(T) = C(T+k-1, T) C(size-T+m-k, size-T) / C(size+m, size): T rows of the
    collection lie above the pool's k-th best qualified candidate.
    """

    def survival(ranks: Floats) -> Floats:
        """P(T >= s) = P(fewer than k of the s + k - 1 best of all come from the pool)."""
        total = np.zeros(len(ranks))
        merged = np.clip(ranks, 1, size) + k - 1
        for x in range(min(k - 1, pool_size) + 1):
            total += np.exp(log_hypergeometric(float(x), size + pool_size, merged, pool_size))
        return np.where(ranks <= 0, 1.0, np.where(ranks > size, 0.0, np.minimum(total, 1.0)))

    guess = size * float(special.betaincinv(k, pool_size - k + 1, 1 - alpha))
    return _smallest_count(block, drawn, survival, (0, size), alpha, min(1.0, guess / block))


def _smallest_count(
    block: int, drawn: int, survival: Survival, ends: tuple[int, int], alpha: float, share: float
) -> int:
    """min{c : E survival(X) <= alpha}, X the rank in the block of the c-th drawn row.

    ``survival`` never rises; it is 1 up to ``ends[0]`` and 0 beyond ``ends[1]``, to rounding.
    """
    allowed = safe(alpha)
    low, high = min(ends[0], block), min(ends[1], block)
    beyond = float(survival(np.array([high + 1.0]))[0]) if high < block else 0.0
    edges = np.arange(low, high + 1, dtype=np.float64)
    if len(edges) > MOST_POINTS:
        edges = np.unique(np.linspace(low, high, GROUPS + 1).astype(np.int64)).astype(np.float64)
    left, right = survival(edges[:-1] + 1), survival(edges[1:])

    def holds(count: int) -> bool:
        """Ranks one by one, or in groups that bound the sum from both sides; then, if in doubt, all."""
        cdf = _rank_cdf(block, drawn, count, edges)
        mass = np.diff(cdf)
        upper = float(cdf[0] + np.dot(mass, left)) + beyond
        if upper <= allowed:
            return True
        if float(cdf[0] * survival(edges[:1])[0] + np.dot(mass, right)) > allowed:
            return False
        total = float(cdf[0]) + beyond + _sum_ranks(block, drawn, survival, count, low, high)
        return total <= allowed

    spread = math.sqrt(drawn * share * (1 - share))
    guess = min(max(1, round(drawn * share - special.ndtri(min(alpha, 0.5)) * spread)), drawn)
    return smallest(holds, 1, drawn, guess)


def _sum_ranks(block: int, drawn: int, survival: Survival, count: int, low: int, high: int) -> float:
    """Sum of P(X = s) survival(s) over low < s <= high, in pieces."""
    total = 0.0
    for start in range(low + 1, high + 1, MOST_POINTS):
        ranks = np.arange(start, min(start + MOST_POINTS, high + 1), dtype=np.float64)
        total += float(np.dot(_rank_pmf(block, drawn, count, ranks), survival(ranks)))
    return total


def _rank_pmf(block: int, drawn: int, count: int, ranks: Floats) -> Floats:
    """P(X = s) = C(s-1, c-1) C(A-s, n-c) / C(A, n)."""
    return np.exp(log_hypergeometric(float(count), block, ranks, drawn)) * (count / ranks)


def _rank_cdf(block: int, drawn: int, count: int, ranks: Floats) -> Floats:
    """P(X <= s) = P(Hyp(block, s, drawn) >= count) at rising ranks; by adding up where all are there."""
    if len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1:
        steps = _rank_pmf(block, drawn, count, ranks[1:])
        return np.cumsum(np.append(_rank_cdf(block, drawn, count, ranks[:1]), steps))
    reach = int(REACH * math.sqrt(drawn)) + 40
    above = drawn * ranks / block <= count
    steps = np.arange(reach, dtype=np.float64)
    x = np.where(above[:, None], count + steps, count - 1 - steps)
    log = log_hypergeometric(x, block, ranks[:, None], drawn)
    tail = np.exp(log).sum(axis=1)
    return np.asarray(np.clip(np.where(above, tail, 1 - tail), 0.0, 1.0))


@cache
def _nodes() -> tuple[Floats, Floats]:
    x, weights = np.polynomial.legendre.leggauss(NODES)
    return np.asarray(x), np.asarray(weights)


def _beta_nodes(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Points and weights, one more axis at the end, for a Beta law; b = 0 is a point at 1."""
    a, b = a[..., None], np.maximum(b, 1e-9)[..., None]
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    low, high = np.maximum(mean - SPREAD * spread, 1e-12), np.minimum(mean + SPREAD * spread, 1 - 1e-12)
    x, weights = _nodes()
    at = low + (high - low) * (x + 1) / 2
    log = (a - 1) * np.log(at) + (b - 1) * np.log1p(-at)
    dense = np.exp(log - log.max(axis=-1, keepdims=True)) * weights
    return at, dense / dense.sum(axis=-1, keepdims=True)


def pool_rates(k: int, pool_size: int) -> Rates:
    """The rate at the k-th best qualified candidate of a future pool."""
    at, weights = _beta_nodes(np.array([float(k)]), np.array([pool_size - k + 1.0]))
    return at[0], weights[0]


def about_level(size: int, blocks: Floats, drawn: int, rates: Rates, counts: Floats) -> Floats:
    """P(at least ``counts`` of ``drawn`` are qualified and above the boundary), for each block.

    ``rates``: points and weights of the rate above the boundary (one point for an average over pools).
    """
    share, weights = _beta_nodes(blocks + 1.0, size - blocks)
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
        holds = about_level(size, middle, drawn, rates, counts) <= alpha * (1 - LEFT)
        lower, upper = np.where(holds, lower, middle), np.where(holds, middle, upper)
    tight = np.where(possible, np.ceil(upper), np.asarray(blocks))
    return sorted({int(each) for each in tight.tolist()})
