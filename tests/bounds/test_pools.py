"""Pools as units: ranks over every order, and the wealth's mean in rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from surelist.bounds.pools import EThreshold, pac_pool_rank, pool_rank, stake_for
from surelist.errors import InvalidInput

ALPHAS = [0.1, 0.2, 0.05, 0.3, 0.9]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_rank_is_the_largest_one_that_keeps_the_level(alpha):
    """Each of the G + 1 pools is equally likely to be the next one: P(below the r-th) = r / (G + 1)."""
    for pools in range(1, 200):
        rank = pool_rank(pools, alpha)
        assert Fraction(rank, pools + 1) <= Fraction(str(alpha)) < Fraction(rank + 1, pools + 1)


def test_the_rank_is_exact_where_floating_point_is_not():
    assert pool_rank(99, 0.29) == 29  # 0.29 * 100 is 28.999... in floats
    assert pool_rank(9, 0.1) == 1
    assert pool_rank(8, 0.1) == 0


@pytest.mark.parametrize("values", list(itertools.product([1, 2, 3], repeat=5))[::7])
def test_ties_only_help(values):
    """Any multiset of V: the next pool is each of them equally often."""
    for alpha in (0.4, 0.2, 0.5):
        rank = pool_rank(len(values) - 1, alpha)
        if rank == 0:
            continue
        below = 0
        for at, value in enumerate(values):
            rest = sorted(values[:at] + values[at + 1 :])
            below += value < rest[rank - 1]
        assert Fraction(below, len(values)) <= Fraction(str(alpha))


@pytest.mark.parametrize(("calibration", "pool"), [(0.05, 0.05), (0.1, 0.2), (0.05, 0.1)])
def test_pac_rank_is_the_largest_valid_one(calibration, pool):
    share = Fraction(str(pool))

    def at_most(pools, d):
        return sum(comb(pools, j) * share**j * (1 - share) ** (pools - j) for j in range(d + 1))

    for pools in range(1, 120):
        rank = pac_pool_rank(pools, calibration, pool)
        assert rank == 0 or at_most(pools, rank - 1) <= Fraction(str(calibration))
        assert at_most(pools, rank) >= Fraction(str(calibration))


def wealth(test: EThreshold, totals) -> Fraction:
    product = Fraction(1)
    for z in totals:
        product *= 1 + Fraction(test.stake) * (Fraction(z) - Fraction(test.mean))
    return product


@pytest.mark.parametrize("chances", [
    {0: Fraction(1, 2), 2: Fraction(1, 2)},
    {0: Fraction(9, 10), 10: Fraction(1, 10)},
    {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)},
    {1: Fraction(1)},
])  # fmt: skip
@pytest.mark.parametrize("stake", [0.05, 0.3, 0.9])
def test_false_certificates_over_all_totals(chances, stake):
    """Mean exactly at the null: the level is enumerated, the uniform number integrated out."""
    alpha, pools = 0.3, 5
    mean = sum(z * p for z, p in chances.items())
    assert mean == 1
    expected, level = Fraction(0), Fraction(0)
    for totals in itertools.product(list(chances), repeat=pools):
        chance = Fraction(1)
        for z in totals:
            chance *= chances[z]
        test = EThreshold(1.0, stake, 1.0, alpha)
        expected += chance * wealth(test, totals)
        peak: Fraction = max(wealth(test, totals[: g + 1]) for g in range(pools))
        # P(certified over U): 1 where the wealth reached 1/alpha, else min(1, alpha W)
        sure = peak >= 1 / Fraction(str(alpha))
        lucky = min(Fraction(1), Fraction(str(alpha)) * wealth(test, totals))
        level += chance * (Fraction(1) if sure else lucky)
        array = np.array(totals, dtype=float)
        line = float(min(1, Fraction(str(alpha)) * wealth(test, totals)))
        assert EThreshold(1.0, stake, line * (1 - 1e-6), alpha).certified(array)
        if not sure and line < 1 - 1e-5:
            assert not EThreshold(1.0, stake, line * (1 + 1e-6), alpha).certified(array)
    assert expected == 1
    assert level <= Fraction(str(alpha))


def test_a_stake_that_could_turn_wealth_negative_is_refused():
    with pytest.raises(InvalidInput, match="stake"):
        EThreshold(2.0, 0.5, 0.5, 0.1)


def test_more_in_any_pool_never_hurts():
    rng = np.random.default_rng(1)
    for _ in range(200):
        test = EThreshold(2.0, float(rng.random() * 0.45), float(rng.random()), 0.2)
        totals = rng.poisson(2.5, 12).astype(float)
        more = totals + (np.arange(12) == rng.integers(12))
        assert test.certified(more) or not test.certified(totals)


def test_the_stake_follows_the_guess_and_its_cap():
    assert stake_for(100, 5, 4, 0.1) == pytest.approx(0.05365, rel=1e-3)
    assert stake_for(1, 5, 0.01, 0.1) == pytest.approx(0.18)
