"""The rank chain: its level from the contract's own sum, in rationals, against the bound for every position."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from surelist.bounds import critical_count
from surelist.bounds.rank_chain import LOST, Block, _false_given_end, block_sizes, chain_level, rank_chain

pytestmark = pytest.mark.slow


def binomial(j: int, n: int, p: Fraction) -> Fraction:
    return comb(n, j) * p**j * (1 - p) ** (n - j)


def exact_level(n, total, p0, rho, first, blocks) -> Fraction:
    """P(B >= c_J(u + x)): a unlabelled and u labelled above the boundary, x labelled more in its block."""
    level = Fraction(0)
    share = min(Fraction(1), p0 / rho)
    for a in range(total + 1):
        inside = [block for block in blocks if block.size > a]
        for u in range(n + 1):
            chance = binomial(a, total, rho) * binomial(u, n, rho)
            if not inside:
                level += chance * tail(u, share, first)
                continue
            block = inside[-1]
            r = block.size - a
            ways = comb(n - u + total - a, n - u)
            for x in range(n - u + 1):
                placed = Fraction(comb(x + r - 1, x) * comb(n - u - x + total - block.size, n - u - x), ways)
                level += chance * placed * tail(u, share, block.count(u + x))
    return level


def tail(u: int, p: Fraction, count: int) -> Fraction:
    return sum((binomial(j, u, p) for j in range(max(0, count), u + 1)), Fraction(0))


@pytest.mark.parametrize(("n", "total", "p0"), [(8, 10, Fraction(1, 5)), (10, 14, Fraction(1, 4))])
def test_the_bound_holds_at_every_position_of_the_boundary(n, total, p0):
    first = critical_count(n, p0, 0.2)
    blocks = (Block(total - 3, 1.5, float(p0) * total / (total - 3)), Block(total // 2, 1.25, float(p0) * 2))
    bound = chain_level(n, total, p0, first, blocks)
    levels = [exact_level(n, total, p0, p0 + (1 - p0) * Fraction(i, 12), first, blocks) for i in range(13)]
    assert max(levels) <= bound + 1e-12
    assert max(levels) >= 0.85 * bound


def test_the_bound_holds_where_only_the_first_block_can_be_false():
    n, total, p0 = 10, 14, Fraction(1, 4)
    first = n + 1
    blocks = (Block(total - 3, 1.0, float(p0)), Block(total // 2, 50.0, 0.0))
    bound = chain_level(n, total, p0, first, blocks)
    levels = [exact_level(n, total, p0, p0 + (1 - p0) * Fraction(i, 24), first, blocks) for i in range(25)]
    assert max(levels) <= bound + 1e-12
    assert max(levels) >= 0.85 * bound


@pytest.mark.parametrize(("n", "total"), [(300, 900), (100, 400), (60, 60)])
def test_the_chain_keeps_its_level(n, total):
    chain = rank_chain(n, total, 0.1, 0.1)
    assert chain.level <= 0.1
    assert chain.first == critical_count(n, 0.1, 0.1)
    shortest = 1.3 + 2 / (n * 0.1) ** 0.5
    assert all(block.size >= shortest * total * 0.1 for block in chain.blocks)
    assert chain.level >= 0.98 * 0.1 or total == n  # next to nothing of alpha is left
    for block in chain.blocks:
        counts = block.counts(n)
        assert (np.diff(counts) >= 0).all()
        assert [block.count(k) for k in (0, n // 2, n)] == counts[[0, n // 2, n]].tolist()


def test_blocks_get_shorter_and_stop_in_time():
    sizes = block_sizes(1000, 10_000, Fraction(1, 20))
    assert sizes == sorted(set(sizes), reverse=True)
    last = (1.3 + 2 / 50**0.5) * 500
    assert last <= sizes[-1] < last * 1.08


@pytest.mark.parametrize(("n", "total", "p0"), [(9, 16, Fraction(1, 8)), (14, 18, Fraction(1, 10))])
def test_the_solved_counts_keep_alpha_at_every_position_of_the_boundary(n, total, p0):
    chain = rank_chain(n, total, p0, 0.2)
    assert chain.blocks
    levels = [
        exact_level(n, total, p0, p0 + (1 - p0) * Fraction(i, 16), chain.first, chain.blocks)
        for i in range(17)
    ]
    assert max(levels) <= chain.level <= 0.2


@pytest.mark.parametrize(
    ("rows", "p0", "block"),
    [
        (300, 0.1, Block(500, 22.3, 0.12)),
        (300, 0.1, Block(500, 22.3, 1.7)),  # a count that rises by more than one a row
        (40, 0.5, Block(30, 3.2, 0.0)),  # however many rows are in the block
        (40, 0.5, Block(30, 12.0, 0.55)),
        (60, 0.02, Block(100, 70.5, 0.1)),  # never reached
        (2000, 1e-40, Block(100, 0.5, 0.001)),
    ],
)
def test_the_chance_given_where_a_block_ends_is_the_double_sum(rows: int, p0: float, block: Block):
    ends = np.array([p0, p0 + (1 - p0) * 1e-9, *np.linspace(p0, 1, 7)[1:-1], 1 - 1e-12])
    found = _false_given_end(rows, p0, block, ends) - LOST
    b, inside = np.arange(rows + 1), np.arange(rows + 1)[:, None]
    false = b >= block.counts(rows)[:, None]  # b of these inside are qualified and above the boundary
    for chance, end in zip(found, ends, strict=True):
        others = stats.binom.pmf(inside - b, rows - b, (end - p0) / (1 - p0))
        wanted = float((others * false * stats.binom.pmf(b, rows, p0)).sum())
        assert wanted - 1e-12 <= chance <= wanted * (1 + 1e-9) + LOST
