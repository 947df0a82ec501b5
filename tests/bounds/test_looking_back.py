"""How often a true promise shows so little: levels by enumeration."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from surelist.bounds.looking_back import clustered_chance, clustered_interval, short_pools


@pytest.mark.parametrize("pools", [5, 30, 120])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_of_pools_at_the_boundary_at_most_one_in_twenty_speaks_against(pools, rate):
    """Exactly: pools of 4 that are all or none, or one and none, with every count of them."""
    size = 4
    for full in (1, size):
        chance = min(1.0, rate * size / full)
        if full / size < rate:
            continue
        laws = stats.binom.pmf(np.arange(pools + 1), pools, chance)
        against = missed = 0.0
        for hits in np.flatnonzero(laws > 1e-12).tolist():
            successes = np.r_[np.full(hits, full), np.zeros(pools - hits)]
            of = np.full(pools, size)
            against += laws[hits] * (clustered_chance(successes, of, size, rate) < 0.05)
            low, high = clustered_interval(successes, of, size, 0.05)
            assert low <= hits * full / (pools * size) <= high
            missed += laws[hits] * (not low <= chance * full / size <= high)
        assert against <= 0.05
        assert missed <= 0.05


def test_how_many_pools_fall_short_is_counted_over_all_orders():
    """4 qualified rows, the second best is the threshold; two pools of 2 that are to hold 1: all 8! orders."""
    short = np.zeros(3)
    for order in permutations(range(8)):
        edge = sorted(order[:4])[-2]
        short[sum(max(order[at : at + 2]) < edge for at in (4, 6))] += 1
    exact = short[::-1].cumsum()[::-1] / short.sum()
    for missed in (1, 2):
        assert exact[missed] <= short_pools(4, 2, 1, 2, 2, missed) <= exact[missed] + 0.002
