"""A count is verified by one tail; it has to agree with the search, on the safe side at the boundary."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import special

from surelist import bounds
from surelist.bounds import _tails as tails


def exact_tail(n: int, p: Fraction, count: int) -> Fraction:
    return sum((math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(count, n + 1)), start=Fraction(0))


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
def test_the_smallest_valid_count_is_enough_and_one_less_is_not(rate, alpha):
    for n in range(1, 60):
        count = bounds.critical_count(n, rate, alpha)
        enough = [bounds.certifies(n, rate, alpha, each) for each in range(n + 2)]
        assert enough == [count <= each <= n for each in range(n + 2)], n
        for each in range(count, n + 1):
            assert exact_tail(n, rate, each) <= alpha


@pytest.mark.parametrize(("k", "pool_size"), [(1, 5), (3, 10), (5, 5)])
def test_the_same_for_one_pool(k, pool_size):
    for n in range(1, 40):
        count = bounds.pool_critical_count(n, k, pool_size, 0.1)
        enough = [bounds.pool_certifies(n, k, pool_size, 0.1, each) for each in range(n + 2)]
        assert enough == [count <= each <= n for each in range(n + 2)], n


@pytest.mark.parametrize("n", [1, 7, 300, 10**4, 10**6, 10**8])
@pytest.mark.parametrize("p", [1e-4, 0.05, 0.5, 0.99])
def test_the_summed_tail_is_the_tail(n, p):
    spread = math.sqrt(n * p * (1 - p))
    for deviations in (0.1, 1.3, 3, 5):
        count = math.floor(n * p + deviations * spread) + 1
        if count <= n:
            assert tails.summed_tail(n, p, count) == pytest.approx(
                special.betainc(count, n - count + 1, p), rel=1e-10
            )


def test_below_the_mean_nothing_is_certified_this_way():
    assert tails.summed_tail(100, 0.5, 50) == 1.0
    assert not bounds.certifies(100, 0.5, 0.9, 50)
