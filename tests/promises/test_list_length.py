"""How long lists are: the figures the project promises, by quadrature and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist import bounds
from surelist.examples import expected_list_size, population

ORACLE = expected_list_size(0.05)


def list_size(count: int, n: int) -> float:
    """Expected share on the list when the threshold is the count-th best of n: delta ~ Beta."""
    at = (np.arange(500) + 0.5) / 500
    reached = np.minimum(stats.beta(count, n - count + 1).ppf(at), 0.189)
    return float(expected_list_size(reached).mean())


def test_the_oracle_needs_six_and_a_half():
    assert round(100 * float(ORACLE), 2) == 6.52


@pytest.mark.parametrize(
    ("n", "rule", "most", "least"),
    [
        (1_000, "exact", 1.30, 1.2),
        (1_000, "dkw", 2.25, 2.1),
        (300, "exact", 1.58, 1.5),
        (10_000, "exact", 1.08, 1.05),
    ],
)
def test_exact_rule_is_close_to_the_oracle(n, rule, most, least):
    ratio = list_size(bounds.critical_count(n, 0.05, 0.1, rule), n) / ORACLE
    assert least <= ratio <= most


def test_per_pool_exact_needs_at_most_8_2_expected_qualified():
    assert 100 * bounds.pool_critical_count(1_000, 5, 100, 0.1) / 1_001 <= 8.2


def test_the_same_by_simulation():
    """300 calibrations of 1,000 rows, judged on the population: mean list and failures."""
    rng = np.random.default_rng(0)
    at = np.sort(population(rng, 400_000)[0])
    tail = np.cumsum(at[::-1])[::-1] / len(at)  # P(Y=1, F>=t) at each score
    sizes, failures = [], 0
    for _ in range(300):
        policy = sl.calibrate(*population(rng, 1_000), sl.Expected(5, 100), alpha=0.1)
        place = np.searchsorted(at, policy.threshold)
        sizes.append(1 - place / len(at))
        failures += tail[place] < 0.05
    assert np.mean(sizes) / ORACLE < 1.30
    assert stats.binom.sf(failures - 1, 300, 0.1) > 1e-6


@pytest.mark.slow
def test_random_pool_sizes_with_known_mean():
    """Pools of 0, 50 or 250 candidates with mean 100: k=5 on average holds as for fixed pools."""
    rng = np.random.default_rng(1)
    runs, failures = 3_000, 0
    for _ in range(runs):
        policy = sl.calibrate(rng.random(500), rng.random(500) < 0.2, sl.Expected(5, 100), alpha=0.1)
        mean_size = 0.2 * 0 + 0.5 * 50 + 0.3 * 250
        failures += mean_size * 0.2 * (1 - policy.threshold) < 5
    assert mean_size == 100
    assert stats.binom.sf(failures - 1, runs, 0.1) > 1e-6
    with pytest.warns(sl.PoolWarning, match="empty"):
        assert len(policy.select([])) == 0
