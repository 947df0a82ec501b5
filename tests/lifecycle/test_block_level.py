"""Blocks are laid out so that their tests use their share of alpha up; the exact sums decide all the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.bounds.collection import (
    about_counts,
    about_level,
    block_pool_count,
    block_rate_count,
    pool_rates,
)
from surelist.lifecycle.block_design import lay_out, need

pytestmark = pytest.mark.slow

DESIGN = {"alpha": 0.1, "future": True, "pilot": 0.25, "fallback": 0.15, "aside": 0.1, "block": None}


def level(size: int, block: int, drawn: int, rate: float, count: int) -> float:
    """Sum over T of Bin(T; N, rate) P(Hyp(A, min(T, A), n) >= c)."""
    reach = 8 * (size * rate) ** 0.5 + 20
    t = np.arange(max(0, int(size * rate - reach)), min(size, int(size * rate + reach)) + 1)
    tails = stats.hypergeom.sf(count - 1, block, np.minimum(t, block), drawn)
    return float((stats.binom.pmf(t, size, rate) * tails).sum())


@pytest.mark.parametrize(("size", "labels", "k"), [(20_000, 300, 5), (2_000, 100, 20), (5_000, 100, 2)])
def test_blocks_reach_their_share_of_alpha(size, labels, k):
    target = sl.Expected(k, 100)
    layout = lay_out(size, labels, need(target, size), **DESIGN)
    rest, rate = size - layout.apart, k / 100
    for block in layout.blocks[6 : len(layout.blocks) // 2 : 6]:
        count = block_rate_count(rest, block, layout.labels, target.rate, 0.085)
        reached = level(rest, block, layout.labels, rate, count)
        assert 0.92 * 0.085 < reached <= 0.085
    count = block_rate_count(layout.apart, layout.pilot_block, layout.pilot_labels, target.rate, 0.015)
    assert 0.92 * 0.015 < level(layout.apart, layout.pilot_block, layout.pilot_labels, rate, count) <= 0.015


def test_the_fast_level_is_near_the_exact_one():
    rates = (np.array([0.05]), np.ones(1))
    for size, block, drawn in ((900, 120, 60), (18_000, 2500, 225), (18_000, 18_000, 75)):
        blocks = np.array([float(block)])
        (count,) = about_counts(size, blocks, drawn, rates, 0.085)
        assert count == block_rate_count(size, block, drawn, 0.05, 0.085)
        (fast,) = about_level(size, blocks, drawn, rates, np.array([count]))
        assert fast == pytest.approx(level(size, block, drawn, 0.05, int(count)), rel=1e-3)
    (count,) = about_counts(18_000, np.array([4000.0]), 300, pool_rates(5, 100), 0.1)
    assert count == block_pool_count(18_000, 4000, 300, 5, 100, 0.1)


def test_a_block_that_was_asked_for_is_not_moved():
    layout = lay_out(20_000, 300, need(sl.Expected(5, 100), 20_000), **{**DESIGN, "block": 2345})
    assert layout.blocks == (2345,)
