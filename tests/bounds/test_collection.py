"""Counts for a random sample of a ranked block, against integers and every label pattern."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from surelist import bounds
from surelist.bounds.collection import block_count, block_pool_count, block_rate_count, block_tail

TENTH = Fraction(1, 10)


def exact_tail(block: int, marked: int, drawn: int, count: int) -> Fraction:
    ways = sum(
        math.comb(marked, x) * math.comb(block - marked, drawn - x) for x in range(max(0, count), drawn + 1)
    )
    return Fraction(ways, math.comb(block, drawn))


@pytest.mark.parametrize("alpha", [TENTH, Fraction(1, 2), Fraction(3, 10), Fraction(1, 7)])
def test_block_count_is_the_definition_in_integers_ties_with_alpha_included(alpha):
    for block in range(1, 13):
        for drawn in range(1, block + 1):
            for qualified in range(1, block + 3):
                marked = min(qualified - 1, block)
                tails = [exact_tail(block, marked, drawn, c) for c in range(drawn + 2)]
                assert tails == [block_tail(block, marked, drawn, c) for c in range(drawn + 2)]
                smallest = next(c for c, tail in enumerate(tails) if tail <= alpha)
                assert block_count(block, qualified, drawn, alpha) == smallest


def test_block_count_at_its_edges():
    assert block_count(10, 8, 10, 0.1) == 8  # everyone labelled: the count itself
    assert block_count(10, 11, 5, 0.1) == 6  # more than the block can hold: refuse
    assert block_count(10, 0, 5, 0.1) == block_count(10, -3, 5, 0.1) == 0  # known already
    assert block_count(10, 1, 5, 0.1) == 1


def test_the_collection_in_hand_over_every_label_pattern():
    """N = 8, any block, any sample: a certified prefix with too few qualified has probability at most alpha."""
    size, alpha = 8, Fraction(3, 10)
    met = False
    for block, drawn, k in itertools.product((4, 6, 8), (2, 3, 4), (1, 2, 3)):
        count = block_count(block, k, drawn, alpha)
        samples = list(itertools.combinations(range(block), drawn))
        for pattern in itertools.product((0, 1), repeat=size):
            above = list(itertools.accumulate(pattern))
            false = 0
            for sample in samples:
                hits = [rank for rank in sample if pattern[rank]]
                false += len(hits) >= count and above[hits[count - 1]] < k
            assert Fraction(false, len(samples)) <= alpha
            met |= Fraction(false, len(samples)) > alpha * Fraction(2, 3)
    assert met


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 5, 9, 13])
def test_sums_for_future_pools_against_rationals(size):
    for block in range(1, size + 1):
        for drawn in range(1, block + 1):
            for rate in (Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)):
                law = [math.comb(size, t) * rate**t * (1 - rate) ** (size - t) for t in range(size + 1)]
                expected = smallest_in_rationals(block, drawn, law)
                assert block_rate_count(size, block, drawn, rate, 0.1) == expected
            for k, m in ((1, 4), (2, 5), (5, 7)):
                law = [
                    Fraction(
                        math.comb(t + k - 1, t) * math.comb(size - t + m - k, size - t),
                        math.comb(size + m, size),
                    )
                    for t in range(size + 1)
                ]
                assert sum(law) == 1
                expected = smallest_in_rationals(block, drawn, law)
                assert block_pool_count(size, block, drawn, k, m, 0.1) == expected


def smallest_in_rationals(block: int, drawn: int, law: list[Fraction]) -> int:
    for count in range(1, drawn + 1):
        level = sum(weight * block_tail(block, min(t, block), drawn, count) for t, weight in enumerate(law))
        if level < TENTH:  # at an exact tie the code may be one too large
            return count
    return drawn + 1


def test_at_an_exact_tie_the_pool_count_is_one_too_large_never_too_small():
    assert block_pool_count(9, 9, 9, 1, 1, 0.1) == 10  # the level of 9 is exactly 1/10


def test_everyone_labelled_is_the_exact_rule():
    for size in (50, 300):
        assert block_rate_count(size, size, size, 0.05, 0.1) == bounds.critical_count(size, 0.05, 0.1)
        assert block_pool_count(size, size, size, 5, 100, 0.1) == bounds.pool_critical_count(
            size, 5, 100, 0.1
        )


def test_a_sample_of_everyone_is_a_smaller_calibration_sample():
    """A = N: the drawn rows are i.i.d. rows."""
    assert block_rate_count(5000, 5000, 300, 0.05, 0.1) == bounds.critical_count(300, 0.05, 0.1)
    assert block_pool_count(5000, 5000, 300, 5, 100, 0.1) == bounds.pool_critical_count(300, 5, 100, 0.1)


def test_figures_of_the_contract_and_large_collections():
    assert block_pool_count(20_000, 4_000, 300, 5, 100, 0.1) == 120
    assert block_rate_count(10**7, 10**7 // 8, 300, 0.05, 0.085) == 133
    # groups of ranks and every rank agree
    assert block_pool_count(200_000, 40_000, 60, 5, 100, 0.1) == block_pool_count(
        150_000, 30_000, 60, 5, 100, 0.1
    )


def test_the_sum_at_the_boundary_is_the_beta_mixture():
    """The first sum is E over rho ~ Beta(A+1, N-A) of P(Bin(n, min(1, p/rho)) >= c)."""
    from scipy import integrate, special, stats

    size, block, drawn, rate = 2000, 260, 120, 0.05
    count = block_rate_count(size, block, drawn, rate, 0.1)
    law = stats.beta(block + 1, size - block)

    def level(c: int) -> float:
        inside = lambda rho: law.pdf(rho) * special.betainc(c, drawn - c + 1, min(1.0, rate / rho))  # noqa: E731
        return float(integrate.quad(inside, law.ppf(1e-12), law.ppf(1 - 1e-12), limit=200)[0])

    assert level(count) <= 0.1 < level(count - 1)
