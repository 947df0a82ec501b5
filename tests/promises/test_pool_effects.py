"""The warning that candidates of one pool resemble one another: an exact level, and power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surelist.promises.pool_checks import SURE, chance_of_spread, pool_effect


@pytest.mark.parametrize(("pools", "size", "rate"), [(40, 5, 0.03), (30, 8, 0.05), (60, 2, 0.04)])
def test_of_independent_rows_at_most_one_in_a_hundred_is_said_to_resemble_one_another(pools, size, rate):
    """Few flags in many small pools, where a chi-square test says so of 6 to 10 in a hundred."""
    rng = np.random.default_rng(pools)
    sizes = np.full(pools, size)
    p_values = [chance_of_spread(sizes, rng.binomial(size, rate, pools), rng) for _ in range(500)]
    for level in (SURE, 0.05, 0.2):
        assert stats.binom.sf(np.count_nonzero(np.array(p_values) <= level) - 1, 500, level) > 1e-6


def test_every_arrangement_of_the_flags_has_its_share_of_the_p_values():
    """All 252 places of 5 flags in 5 pools of 2, the random order redrawn: P(p <= x) <= x."""
    from itertools import combinations

    rng = np.random.default_rng(3)
    sizes, pool = np.full(5, 2), np.repeat(np.arange(5), 2)
    p_values = np.array(
        [
            chance_of_spread(sizes, np.bincount(pool[list(at)], minlength=5), rng)
            for at in combinations(range(10), 5)
            for _ in range(8)
        ]
    )
    for level in (0.04, 0.1, 0.2, 0.4, 0.8):
        assert stats.binom.sf(np.count_nonzero(p_values <= level) - 1, len(p_values), level) > 1e-6


@pytest.mark.parametrize(
    ("pools", "size"), [(50, 20), (20, 500_000), pytest.param(200_000, 10, marks=pytest.mark.slow)]
)
def test_pools_that_are_alike_inside_are_noticed_in_small_tables_and_in_large_ones(pools, size):
    rng = np.random.default_rng(4)
    sizes = np.full(pools, size)
    totals = rng.binomial(size, rng.beta(0.5, 4.5, pools))
    assert chance_of_spread(sizes, totals, rng) < SURE
    assert pool_effect(sizes, totals, 0.1).inflation > 1.5


def test_pools_of_nobody_qualified_or_of_everybody_show_nothing():
    for totals in (np.zeros(5, int), np.full(5, 3)):
        assert pool_effect(np.full(5, 3), totals, 0.1).p_value == 1
