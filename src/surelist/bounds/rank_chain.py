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
from fractions import Fraction
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check
from surelist._arrays import Floats, special
from surelist.bounds._tails import log_binomial, safe
from surelist.bounds.counts import Rate, critical_count

MOST_BLOCKS = 48
LOST = 1e-12
NEGLIGIBLE, TINY = -60.0, 1e-300  # logarithm of chances that are not told apart; for those of nothing
# slopes, as multiples of the rate expected in a block: a little steeper is sharper against longer lists
STEEPER = 1.08
LAST_SLOPES = (1.0, 1.04, 1.08, 1.12)  # of the last block, whose counts are small: the one nearest its level
FINEST = 0.03  # steps of an intercept, where counts are small
# where a block's end is cut into cells, and positions of the boundary are taken, in standard deviations
TAIL = np.linspace(3.0, 6.5, 15)[1:]
CELLS = np.concatenate([-TAIL[::-1], np.linspace(-3, 3, 121), TAIL])
POSITIONS = np.concatenate([-TAIL[::-1], np.linspace(-3, 3, 241), TAIL])
DESIGN = np.linspace(-4, 4, 13)
RATIOS = 2000  # where P(next block's end <= s | this block's end) is tabulated


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """The ``size`` best unlabelled scores; ``intercept + slope n`` qualified rows are needed of n in it."""

    size: int
    intercept: float
    slope: float

    def count(self, rows: int) -> int:
        return math.ceil(self.intercept + self.slope * rows)

    def counts(self, rows: int) -> Floats:
        """The critical count for 0 to ``rows`` rows in the block; it never falls."""
        return np.asarray(np.ceil(self.intercept + self.slope * np.arange(rows + 1)))


class Chain(Struct, frozen=True):
    """Critical counts: ``first`` for all rows, then one block after another; ``level`` bounds its error."""

    first: int
    blocks: tuple[Block, ...]
    level: float


@lru_cache(maxsize=32)
def rank_chain(rows: int, unlabelled: int, rate: Rate, alpha: float) -> Chain:
    """A chain whose level is bounded by alpha, from the numbers fixed beforehand.

    Each block starts at alpha and gives way where the bound, near its own end, exceeds alpha.
    """
    target = check.as_rate(rate, "rate")
    first = critical_count(rows, target, alpha)
    sizes = block_sizes(rows, unlabelled, target)
    allowed = np.full(len(sizes), alpha)
    for attempt in range(12):
        blocks = _blocks(rows, unlabelled, float(target), allowed, sizes)
        ends, levels = _level_profile(rows, unlabelled, target, first, blocks)
        if levels.max() <= safe(alpha):
            return Chain(first, blocks, float(levels.max()))
        highest = _highest_near_end(ends, levels, np.array(sizes) / unlabelled)
        worst = np.where(attempt < 6, highest, levels.max())
        allowed *= np.minimum(1.0, 0.993 * alpha / worst)
    return Chain(first, (), chain_level(rows, unlabelled, target, first, ()))


def _highest_near_end(ends: Floats, levels: Floats, blocks: Floats) -> Floats:
    """The largest level while the boundary lies between a block's end and the next one's, for each."""
    block = np.clip(np.searchsorted(-blocks, -ends, side="right") - 1, 0, len(blocks) - 1)
    highest = np.full(len(blocks), 1e-9)
    np.maximum.at(highest, block, levels)
    return highest


def block_sizes(rows: int, unlabelled: int, rate: Fraction) -> list[int]:
    """A_1 > A_2 > ... with ratio 1 + 0.5 / s, s = sqrt(n p0), down to (1.3 + 2 / s) N p0."""
    spread = math.sqrt(rows * float(rate))
    last = math.ceil((1.3 + 2 / spread) * unlabelled * float(rate))
    ratio = 1 + 0.5 / spread
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
    return float(_level_profile(rows, unlabelled, rate, first, blocks)[1].max())


def _level_profile(
    rows: int, unlabelled: int, rate: Rate, first: int, blocks: tuple[Block, ...]
) -> tuple[Floats, Floats]:
    """Intervals of the boundary's position, by their upper ends, and a bound of L within each."""
    p0 = math.nextafter(float(rate), 1.0)
    alone = float(special.betainc(first, rows - first + 1, p0)) if first <= rows else 0.0
    if not blocks:
        return np.ones(1), np.array([alone])
    laws = [_BlockEnd.of(rows, unlabelled, p0, block) for block in blocks]
    grid = np.unique(np.concatenate([[p0], *(law.at(POSITIONS) for law in laws), [1.0]]))
    grid = grid[grid >= p0]
    low, high = grid[:-1], grid[1:]
    total = alone * laws[0].ended_by(high) + LOST
    for at, law in enumerate(laws):
        law.add(total, low, high, blocks[at + 1].size if at + 1 < len(blocks) else None)
    return high, total


class _BlockEnd(Struct, frozen=True):
    """The law of V_J in cells, and g_J at the left end of each: an upper bound within it."""

    size: int
    unlabelled: int
    edges: Floats
    passed: Floats  # P(V_J <= edge)
    chances: Floats

    @classmethod
    def of(cls, rows: int, unlabelled: int, p0: float, block: Block) -> _BlockEnd:
        inside = np.maximum(_around(block.size, unlabelled, CELLS), p0)
        edges = np.concatenate([[p0], inside, [1.0]])
        passed = special.betainc(block.size, unlabelled - block.size + 1, edges)
        return cls(block.size, unlabelled, edges, passed, _false_given_end(rows, p0, block, edges[:-1]))

    def at(self, deviations: Floats) -> Floats:
        return _around(self.size, self.unlabelled, deviations)

    def ended_by(self, position: Floats) -> Floats:
        return np.asarray(special.betainc(self.size, self.unlabelled - self.size + 1, position))

    def add(self, total: Floats, low: Floats, high: Floats, after: int | None) -> None:
        """Add E[g_J(V_J) ; V_J > low, V_{J+1} <= high] for every interval where it matters."""
        begin, end = 0, int(np.searchsorted(low, self.edges[-2])) + 1
        if after is not None:  # where the next block surely ends later, it does not matter
            soonest = special.betaincinv(after, self.unlabelled - after + 1, 1e-14)
            begin = min(end, int(np.searchsorted(high, soonest)))
            total[:begin] += 1e-14
        begun = low[begin:end, None]
        ended = self.ended_by(low[begin:end])[:, None]
        masses = np.clip(self.passed[None, 1:] - np.maximum(self.passed[None, :-1], ended), 0.0, None)
        worth = masses * self.chances[None, :]
        if after is not None:
            worth *= self._next_ended(high[begin:end, None] / np.maximum(self.edges[None, :-1], begun), after)
        total[begin:end] += worth.sum(axis=1) + 1e-13

    def _next_ended(self, ratio: Floats, after: int) -> Floats:
        """P(V_{J+1} <= ratio V_J), from above: read at a larger ratio of a table."""
        low, high = _around(after, self.size - 1, np.array([-8.0, 8.0]))
        step = (high - low) / RATIOS
        ratios = low + step * np.arange(RATIOS + 2).clip(max=RATIOS)
        chances = special.betainc(after, self.size - after, ratios)
        chances[-1] = 1.0
        at = np.clip((ratio - low) / step + 1.0, 0.0, RATIOS + 1.0).astype(np.int64)
        return np.asarray(chances[at])


def _around(size: int, total: int, deviations: Floats) -> Floats:
    """Points around the ``size``-th smallest of ``total`` uniforms, in its standard deviations."""
    mean = size / (total + 1)
    return np.clip(mean + math.sqrt(mean * (1 - mean) / (total + 2)) * deviations, 0.0, 1.0)


@lru_cache(maxsize=8)
def _boundary_law(rows: int, p0: float) -> tuple[Floats, Floats]:
    """B ~ Binomial(rows, p0), from above: values from a lowest one on, which stands for smaller ones too."""
    mean, reach = rows * p0, 7 * math.sqrt(rows * p0) + 12
    lowest = max(0, int(mean - reach / 2))
    b = np.arange(lowest, min(rows, int(mean + reach) + 1) + 1, dtype=np.float64)
    chances = np.exp(log_binomial(b, float(rows), p0))
    if lowest:  # smaller b certify less often than the smallest one here
        chances[0] += float(special.betaincc(lowest, rows - lowest + 1, p0))
    return b, chances


def _false_given_end(rows: int, p0: float, block: Block, ends: Floats) -> Floats:
    """g(v) = P(B >= c(n_J) | V = v) for each v, from above.

    With b qualified rows above the boundary the answer is false while at most k others are in the block:
    P(Binomial(rows - b, q) <= k). From one b to the next this grows by q P(Binomial(rows - b - 1, q) = k),
    and by P(... = j) for each j up to the k of that b: what is added counts for every b from there on.
    """
    b, chances = _boundary_law(rows, p0)
    # the most others in the block that b qualified rows still certify
    k = np.maximum.accumulate(np.searchsorted(block.counts(rows), b, side="right") - 1.0 - b)
    b, k, chances = b[k >= 0], k[k >= 0], chances[k >= 0]
    q = np.clip((ends - p0) / (1 - p0), 0.0, 1 - 2.0**-53)
    if not len(b) or not q.any():
        return np.full(len(ends), LOST + chances.sum())
    within, middle = q[q > 0], float(np.median(q[q > 0]))
    reach = 9 * np.sqrt(rows * within * (1 - within)) + 30  # beyond lies less than 1e-17
    low, high = ((rows - b[-1]) * within - reach).min(), (rows * within + reach).max()
    j = np.arange(max(k[0] + 1, np.floor(low)), min(k[-1], high) + 1)
    at = np.searchsorted(k, j)
    hits, others = np.append(j, k[:-1]), rows - np.append(b[at], b[1:])
    from_there = np.cumsum(chances[::-1])[::-1]
    worth, more = np.append(from_there[at], from_there[1:]), np.repeat([0.0, 1.0], [len(j), len(b) - 1])
    hits, others, worth, more = (each[hits <= others] for each in (hits, others, worth, more))
    logs = log_binomial(hits, others, middle) + more * math.log(middle) + np.log(np.maximum(worth, TINY))
    logs = logs + np.multiply.outer(np.log(np.maximum(q, TINY) / middle), hits + more)
    logs += np.multiply.outer(np.log1p(-q) - math.log1p(-middle), others - hits)
    added = np.exp(np.maximum(logs, NEGLIGIBLE, out=logs), out=logs).sum(axis=1)
    first = special.betainc(max(rows - b[0] - k[0], 0.5), k[0] + 1, 1 - q) if k[0] < rows - b[0] else 1.0
    return np.asarray(first * from_there[0] + added + LOST)


def _blocks(rows: int, unlabelled: int, p0: float, allowed: Floats, sizes: list[int]) -> tuple[Block, ...]:
    """For each block the smallest intercept that fails at most about as allowed at its own end."""
    blocks: list[Block] = []
    guess = -float(special.ndtri(allowed[0])) * math.sqrt(rows * p0) if sizes else 0.0
    for size, alpha in zip(sizes, allowed.tolist(), strict=True):
        ends = np.maximum(_around(size, unlabelled, DESIGN), p0)
        weights = np.diff(special.betainc(size, unlabelled - size + 1, ends))
        slopes = LAST_SLOPES if size == sizes[-1] else (STEEPER,)
        first = (Block(size, guess, each * p0 * unlabelled / size) for each in slopes)
        tried = [_smallest(rows, p0, each, alpha, ends, weights) for each in first]
        blocks.append(max(tried, key=lambda each: each[0])[1])
        guess = blocks[-1].intercept
    return tuple(blocks)


def _smallest(
    rows: int, p0: float, block: Block, alpha: float, ends: Floats, weights: Floats
) -> tuple[float, Block]:
    """With the smallest intercept, and how often it fails about."""
    spread = math.sqrt(rows * p0)
    for _ in range(2):  # about normal, so two steps come close
        fails = min(max(_fails_about(rows, p0, block, ends, weights), 1e-9), 0.5)
        further = spread * float(special.ndtri(fails) - special.ndtri(alpha))
        block = replace(block, intercept=block.intercept + further)
    fails, step = _fails_about(rows, p0, block, ends, weights), 9 * FINEST
    while step >= FINEST * max(1.0, spread / 8):  # up until it holds, down while it does, in smaller steps
        while fails > alpha:
            block = replace(block, intercept=block.intercept + step)
            fails = _fails_about(rows, p0, block, ends, weights)
        while True:
            shorter = replace(block, intercept=block.intercept - step)
            more = _fails_about(rows, p0, shorter, ends, weights)
            if more > alpha:
                break
            block, fails = shorter, more
        step /= 3
    return fails, block


def _fails_about(rows: int, p0: float, block: Block, ends: Floats, weights: Floats) -> float:
    """E g(V), by a rough quadrature: a design, which ``chain_level`` then bounds."""
    chances = _false_given_end(rows, p0, block, ends)
    return float(np.dot(weights, (chances[1:] + chances[:-1]) / 2))
