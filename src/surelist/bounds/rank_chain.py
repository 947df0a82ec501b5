"""Unlabelled scores beside labelled rows: counts that shrink with what is known of the scores' ranks.

N unlabelled scores cut the candidates into blocks, "among the A_j best". A labelled row outside a block
cannot be a qualified row above the boundary, so a count in the block is compared with the rows in the
block: c_j(n_j) = ceil(kappa_j + lambda_j n_j), where n_j labelled rows are in it. A walk goes from block
to block while the next one alone holds enough qualified rows [theory: rank-chain].

*The level.* Put scores on the scale of ranks: candidates are uniform on [0, 1], best near 0, the boundary
t* is at rho = P(F > t*) and block j ends at V_j, the A_j-th smallest of N uniforms. A false answer needs
B >= c_J(n_J) in the block J that ends next after rho, where B counts qualified rows above t*. Given
V_J = v, each labelled row is in the block with probability v and counts towards B with probability p0, so
B is Binomial(n, p0) and n_J - B is Binomial(n - B, (v - p0)/(1 - p0)), whatever rho is. Hence with
g_J(v) = P(B >= c_J(n_J) | v),

    L(rho) = sum_J E[ g_J(V_J) ; V_{J+1} <= rho < V_J ],

g_J falls as v grows, and L(rho) <= sum_J E[ g_J(V_J) ; V_{J+1} <= s, V_J > r ] for all rho in [r, s]: a
bound for the whole interval, not a point of a grid. Integrals are bounded from above cell by cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._scipy import special
from surelist.bounds._tails import log_binomial, safe
from surelist.bounds.counts import Rate, critical_count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BLOCKS = 48
CELLS = 80  # pieces of a block end's distribution
LOST = 1e-12
REACH = 6.5  # standard deviations of a block's end that are cut into cells
SHORTEST = 1.8  # the last block holds at least this many times N p0 scores


@dataclass(frozen=True)
class Block:
    """The ``size`` best unlabelled scores; ``intercept + slope n`` qualified rows are needed of n in it."""

    size: int
    intercept: float
    slope: float

    def count(self, rows: int) -> int:
        return math.ceil(self.intercept + self.slope * rows)

    def counts(self, rows: int) -> Floats:
        """The critical count for 0 to ``rows`` rows in the block; it never falls."""
        return np.asarray(np.ceil(self.intercept + self.slope * np.arange(rows + 1)))


@dataclass(frozen=True)
class Chain:
    """Critical counts: ``first`` for all rows, then one block after another; ``level`` bounds its error."""

    rows: int
    unlabelled: int
    first: int
    blocks: tuple[Block, ...]
    level: float


@lru_cache(maxsize=32)
def rank_chain(rows: int, unlabelled: int, rate: Rate, alpha: float) -> Chain:
    """A chain whose level is bounded by alpha, from the numbers fixed beforehand."""
    rows, unlabelled = check.as_count(rows, "rows"), check.as_count(unlabelled, "unlabelled")
    target, alpha = check.as_rate(rate, "rate"), check.as_alpha(alpha)
    first = critical_count(rows, target, alpha)
    sizes = block_sizes(rows, unlabelled, target)
    design = 0.95 * alpha
    for _ in range(8):
        blocks = _blocks(rows, unlabelled, float(target), design, sizes)
        level = chain_level(rows, unlabelled, target, first, blocks)
        if level <= safe(alpha):
            return Chain(rows, unlabelled, first, blocks, level)
        design *= min(0.995, alpha / level)
    return Chain(rows, unlabelled, first, (), chain_level(rows, unlabelled, target, first, ()))


def block_sizes(rows: int, unlabelled: int, rate: Fraction) -> list[int]:
    """A_1 > A_2 > ... with ratio 1 + 0.5 / sqrt(n p0), down to 1.8 N p0."""
    last = math.ceil(SHORTEST * unlabelled * float(rate))
    ratio = 1 + 0.5 / math.sqrt(rows * float(rate))
    if last < unlabelled:
        ratio = max(ratio, (unlabelled / last) ** (1 / MOST_BLOCKS))
    sizes: list[int] = []
    size = unlabelled / ratio
    while size >= last:
        if not sizes or math.floor(size) < sizes[-1]:
            sizes.append(math.floor(size))
        size /= ratio
    return [each for each in sizes if each >= last]


def chain_level(rows: int, unlabelled: int, rate: Rate, first: int, blocks: tuple[Block, ...]) -> float:
    """An upper bound of the chance of a false answer, over every score distribution."""
    p0 = math.nextafter(float(rate), 1.0)
    alone = float(special.betainc(first, rows - first + 1, p0)) if first <= rows else 0.0
    if not blocks:
        return alone
    laws = [_BlockEnd.of(rows, unlabelled, p0, block) for block in blocks]
    grid = _positions(laws, p0)
    total = np.zeros(len(grid) - 1)
    low, high = grid[:-1], grid[1:]
    total += alone * laws[0].ended_by(high)
    for at, law in enumerate(laws):
        after = blocks[at + 1].size if at + 1 < len(blocks) else None
        law.add(total, low, high, after)
    return float(total.max()) + LOST


@dataclass(frozen=True)
class _BlockEnd:
    """The law of V_J in cells, and g_J at the left end of each: an upper bound within it."""

    size: int
    unlabelled: int
    edges: Floats
    masses: Floats
    chances: Floats

    @classmethod
    def of(cls, rows: int, unlabelled: int, p0: float, block: Block) -> _BlockEnd:
        edges = _edges(block.size, unlabelled, p0, CELLS)
        masses = np.diff(special.betainc(block.size, unlabelled - block.size + 1, edges))
        return cls(block.size, unlabelled, edges, masses, _false_given_end(rows, p0, block, edges[:-1]))

    def ended_by(self, position: Floats) -> Floats:
        return np.asarray(special.betainc(self.size, self.unlabelled - self.size + 1, position))

    def add(self, total: Floats, low: Floats, high: Floats, after: int | None) -> None:
        """Add E[g_J(V_J) ; V_J > low, V_{J+1} <= high] for every interval where it matters."""
        begin, end = 0, int(np.searchsorted(low, self.edges[-2])) + 1
        if after is not None:  # where the next block surely ends later, it does not matter
            soonest = special.betaincinv(after, self.unlabelled - after + 1, 1e-14)
            begin = min(end, int(np.searchsorted(high, soonest)))
            total[:begin] += 1e-14
        begun, highest = low[begin:end, None], high[begin:end, None]
        ended = self.ended_by(low[begin:end])[:, None]
        passed = np.cumsum(np.append(0.0, self.masses))[None, :] + self.ended_by(self.edges[:1])
        masses = np.clip(passed[:, 1:] - np.maximum(passed[:, :-1], ended), 0.0, None)
        worth = masses * self.chances[None, :]
        if after is not None:
            inside = np.minimum(1.0, highest / np.maximum(self.edges[None, :-1], begun))
            worth *= special.betainc(after, self.size - after, inside)
        total[begin:end] += worth.sum(axis=1) + 1e-13


def _edges(size: int, unlabelled: int, p0: float, cells: int) -> Floats:
    """Cells of V: quantiles, the first from p0 on and the last up to 1."""
    levels = special.ndtr(np.linspace(-REACH, REACH, cells))
    quantiles = np.maximum(special.betaincinv(size, unlabelled - size + 1, levels), p0)
    return np.concatenate([[p0], quantiles, [1.0]])


def _positions(laws: list[_BlockEnd], p0: float) -> Floats:
    """Where the boundary may be, cut finely where block ends are."""
    inside = np.concatenate([law.edges[1:-1] for law in laws])
    return np.unique(np.concatenate([[p0], inside, [1.0]]))


def _false_given_end(rows: int, p0: float, block: Block, ends: Floats) -> Floats:
    """g(v) = P(B >= c(n_J) | V = v) for each v, from above."""
    mean, reach = rows * p0, 7 * math.sqrt(rows * p0) + 12
    lowest = max(0, int(mean - reach / 2))
    b = np.arange(lowest, min(rows, int(mean + reach) + 1) + 1, dtype=np.float64)
    # the most rows in the block that b qualified ones still certify
    most = np.searchsorted(block.counts(rows), b, side="right") - 1.0
    useful = most >= b
    others = np.clip((ends - p0) / (1 - p0), 0.0, 1.0)[:, None]
    chances = np.exp(log_binomial(b, float(rows), p0))
    if lowest:  # smaller b certify less often than the smallest one here
        chances[0] += float(special.betaincc(lowest, rows - lowest + 1, p0))
    b, most, chances = b[useful], most[useful], chances[useful]
    fits: Floats = special.betainc(np.maximum(rows - most, 0.5), most - b + 1, 1 - others)
    return np.where(most >= rows, 1.0, fits) @ chances + LOST


def _blocks(rows: int, unlabelled: int, p0: float, alpha: float, sizes: list[int]) -> tuple[Block, ...]:
    """For each block the smallest intercept, to a quarter, that fails at most about alpha at its own end."""
    blocks: list[Block] = []
    for size in sizes:
        start = blocks[-1].intercept if blocks else -float(special.ndtri(alpha)) * math.sqrt(rows * p0)
        block = Block(size, round(4 * start) / 4, p0 * unlabelled / size)
        while _fails_about(rows, unlabelled, p0, block) > alpha:
            block = replace(block, intercept=block.intercept + 0.5)
        while (
            _fails_about(rows, unlabelled, p0, shorter := replace(block, intercept=block.intercept - 0.25))
            <= alpha
        ):
            block = shorter
        blocks.append(block)
    return tuple(blocks)


def _fails_about(rows: int, unlabelled: int, p0: float, block: Block) -> float:
    """E g(V), by a rough quadrature: a design, which ``chain_level`` then bounds."""
    edges = _edges(block.size, unlabelled, p0, 17)[1:-1]
    passed = special.betainc(block.size, unlabelled - block.size + 1, edges)
    chances = _false_given_end(rows, p0, block, edges)
    return float(np.dot(np.diff(passed), (chances[1:] + chances[:-1]) / 2))
