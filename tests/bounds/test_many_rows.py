"""The simultaneous rule beyond a million rows: a thin grid of rates, and the paper's band for every count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from surelist import bounds
from surelist.bounds import counts as counts_module, simultaneous

pytestmark = pytest.mark.slow


@pytest.fixture
def small(monkeypatch):
    """The same code with "many" meaning more than ten, where everything can be enumerated."""
    for module in (counts_module, simultaneous):
        monkeypatch.setattr(module, "MOST_ROWS", 10)
    simultaneous.equal_local_levels.cache_clear()
    yield
    simultaneous.equal_local_levels.cache_clear()


def crossing(n: int, family: list[tuple[int, float]]) -> float:
    """P(for some pair at least c of n uniforms lie below r), by the textbook recursion with binomial steps."""
    state, reached = np.zeros(n + 1), 0.0
    state[0] = 1.0
    for count, rate in family:
        moved = np.zeros(n + 1)
        for before in np.flatnonzero(state):
            more = np.arange(n - before + 1)
            moved[before:] += state[before] * stats.binom.pmf(
                more, n - before, (rate - reached) / (1 - reached)
            )
        moved[count:] = 0.0
        state, reached = moved, rate
    return 1 - float(state.sum())


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("n", [20, 60])
def test_all_that_every_count_certifies_holds_at_once(small, n, alpha):
    """Grid and band together, enumerated: through the public function, count by count."""
    certified = [(c, bounds.largest_rate(n, c, alpha, "simultaneous")) for c in range(1, n + 1)]
    family = [(c, rate) for c, rate in certified if rate > 0]
    assert len(family) > n / 2
    assert crossing(n, family) <= alpha + 1e-12


@pytest.mark.slow
def test_the_thin_grid_spends_its_half_and_no_more():
    for n in (100_000, 3_000_000):
        counts, rates = simultaneous._thin_family(n, 0.05)
        assert 0.9 * 0.05 <= simultaneous.crossing_probability(n, counts, rates) <= 0.05
        assert (np.diff(counts) > 0).all()
        assert (np.diff(rates) > 0).all()


@pytest.mark.slow
def test_the_level_is_that_of_simulation():
    """Uniforms below each rate of the grid, drawn as multinomials: 20,000 samples of 100,000 rows."""
    n, runs = 100_000, 20_000
    counts, rates = simultaneous._thin_family(n, 0.05)
    rng = np.random.default_rng(7)
    chances = np.diff(np.concatenate([[0.0], rates, [1.0]]))
    crossed = 0
    for _ in range(20):
        below = np.cumsum(rng.multinomial(n, chances, size=runs // 20)[:, :-1], axis=1)
        crossed += int((below >= counts).any(axis=1).sum())
    expected = simultaneous.crossing_probability(n, counts, rates)
    assert stats.binom.sf(crossed - 1, runs, expected) > 1e-6
    assert stats.binom.cdf(crossed, runs, expected) > 1e-6


@pytest.mark.slow
def test_never_looser_than_dkw_and_exact_at_round_rates():
    n = 1_000_001
    family = simultaneous.equal_local_levels(n, 0.1)
    levels = special.betainc(family[0], n - family[0] + 1, family[1])
    for rate in (0.0005, 0.00105, 0.01, 0.0123, 0.05, Fraction(3, 76), 0.1, 0.19995, 0.2, 0.21, 0.5, 0.9):
        found, dkw = (bounds.critical_count(n, rate, 0.1, rule) for rule in ("simultaneous", "dkw"))
        assert bounds.critical_count(n, rate, 0.1) < found <= dkw
        assert bounds.largest_rate(n, found, 0.1, "simultaneous") >= float(rate) * (1 - 1e-14)
        assert bounds.largest_rate(n, found - 1, 0.1, "simultaneous") < rate
    inside = family[1] >= 0.01
    assert levels[inside].max() / levels[inside].min() < 1.2  # equal local levels, whole counts apart
    for rate in np.arange(100, 2001) / 10_000:  # what people ask for is on the grid, not a hair below
        place = np.searchsorted(family[1], rate)
        assert family[1][place] <= rate * (1 + 1e-12)


def test_between_two_counts_the_lower_rate_holds():
    n = 1_000_001
    counts, rates = bounds.simultaneous_family(n, 0.1)
    at = int(np.searchsorted(rates, 0.05))
    for count in (counts[at], counts[at] + 1, counts[at + 1] - 1):
        assert bounds.largest_rate(n, int(count), 0.1, "simultaneous") == rates[at] * (1 - 1e-15)


@pytest.mark.slow
def test_figures_of_a_million_rows_and_more():
    counts = {n: bounds.critical_count(n, 0.05, 0.1, "simultaneous") for n in (10**6, 10**6 + 1, 10**7)}
    assert counts == {10**6: 50_734, 10**6 + 1: 50_583, 10**7: 501_860}


def test_a_tiny_alpha_falls_back_on_the_union_bound():
    n = 2_000_000
    counts, rates = bounds.simultaneous_family(n, 1e-7)
    assert special.betainc(counts, n - counts + 1, rates).sum() <= 0.5e-7
    assert bounds.critical_count(n, 0.05, 1e-7, "simultaneous") < bounds.critical_count(n, 0.05, 1e-7, "dkw")
