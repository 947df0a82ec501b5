"""Precision: the whole walk enumerated over every sample of a small world, in rationals."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from math import comb, factorial, prod

import numpy as np
import pytest

from surelist.bounds.precision import chances, false_share_rank, passing

# share of candidates and share of qualified at each of four score levels, best first;
# precision first falls below q at list 1, 2, 3 or 4, or never, and need not be monotone
WORLDS = [
    [(Fraction(1, 4), Fraction(1, 3))] * 4,
    [(Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 4), Fraction(2, 5)), (Fraction(1, 4), Fraction(1)), (Fraction(1, 4), Fraction(0))],
    [(Fraction(1, 4), Fraction(49, 100)), (Fraction(1, 4), Fraction(9, 10)), (Fraction(1, 4), Fraction(1, 10)), (Fraction(1, 4), Fraction(1, 10))],
    [(Fraction(1, 2), Fraction(3, 5)), (Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 8), Fraction(1, 2)), (Fraction(1, 8), Fraction(0))],
]  # fmt: skip


N = 7


@cache
def samples():
    """Every sample of N rows: how many are qualified, and how many not, at each of four score levels."""
    kinds = 8
    bars = itertools.combinations(range(N + kinds - 1), kinds - 1)
    edges = np.array([(-1, *each, N + kinds - 1) for each in bars])
    return np.diff(edges, axis=1) - 1


@cache
def passed_by_sample(parts: tuple[int, ...], q: Fraction, alpha: float):
    """Which lists pass of each sample: the same in every world."""
    begin = next(at for at, part in enumerate(parts) if part)
    split = alpha * np.array([*parts, 0, 0, 0, 0])[begin:4] / sum(parts)
    qualified = np.cumsum(samples()[:, 0::2], axis=1)[:, begin:]
    listed = qualified + np.cumsum(samples()[:, 1::2], axis=1)[:, begin:]
    return begin, np.array([passing(each, split) for each in chances(listed, qualified, q)])


@pytest.mark.parametrize("world", range(len(WORLDS)))
@pytest.mark.parametrize(
    ("q", "alpha"), [(Fraction(1, 2), 0.1), (Fraction(1, 2), 0.3), (Fraction(2, 5), 0.2)]
)
@pytest.mark.parametrize("parts", [(1,), (0, 1), (1, 0, 1), (1, 1, 1, 1), (5, 0, 2, 1)])
def test_a_false_answer_is_at_most_alpha_over_every_sample(world, q, alpha, parts):
    """Any list that passes may be the answer, so every one of them has to be right."""
    levels = WORLDS[world]
    cells = [p for share, good in levels for p in (share * good, share * (1 - good))]
    shares = np.cumsum([share for share, _ in levels])
    good = np.cumsum([share * precision for share, precision in levels])
    begin, passed = passed_by_sample(parts, q, alpha)
    false_lists = np.array([g < q * s for g, s in zip(good, shares, strict=True)])[begin:]
    false = Fraction(0)
    for counts in samples()[(passed & false_lists).any(axis=1)].tolist():
        ways = factorial(N) // prod(map(factorial, counts))
        false += ways * prod(p**count for p, count in zip(cells, counts, strict=True))
    assert false <= Fraction(str(alpha))


def test_a_step_passes_exactly_from_the_critical_count_on():
    for listed, q, alpha in [
        (20, Fraction(1, 2), 0.1),
        (35, Fraction(7, 10), 0.05),
        (12, Fraction(9, 10), 0.3),
    ]:
        for qualified in range(listed + 1):
            ways = sum(comb(listed, j) * q**j * (1 - q) ** (listed - j) for j in range(qualified, listed + 1))
            chance = chances(np.array([listed]), np.array([qualified]), q)
            assert passing(chance, np.array([alpha]))[0] == (
                ways <= Fraction(str(alpha)) * (1 - Fraction(1, 10**9))
            )


def test_more_qualified_than_listed_are_no_sign():
    assert chances(np.array([3, 0, 3]), np.array([4, 1, 3]), 0.5).tolist() == pytest.approx([1, 1, 0.125])


def test_a_walk_stops_at_the_first_failure():
    listed, first = np.array([20, 40, 60, 80]), np.array([0.1, 0.0, 0.0, 0.0])
    for qualified, ended in (([18, 20, 55, 75], 1), ([9, 35, 55, 75], 0), ([18, 35, 55, 75], 4)):
        passed = passing(chances(listed, np.array(qualified), 0.5), first)
        assert passed.tolist() == [True] * ended + [False] * (4 - ended)
    empty = chances(np.array([0, 5]), np.array([0, 5]), 0.5)  # the precision of an empty list
    assert not passing(empty, np.array([0.1, 0.0])).any()


def test_levels_are_handed_on_around_the_circle_and_never_across_a_list_that_fails():
    def passed(*chance: float) -> list[int]:
        return np.flatnonzero(passing(np.array(chance), np.array([0.05, 0.0, 0.03, 0.02, 0.0]))).tolist()

    assert passed(0.04, 0.04, 0.079, 0.099, 0.099) == [0, 1, 2, 3, 4]  # what passed is added up
    assert passed(0.04, 0.071, 0.079, 0.019, 0.019) == [0, 3, 4]  # and kept by a list that fails
    assert passed(0.069, 0.069, 0.099, 0.02 - 1e-9, 0.001) == [
        0,
        1,
        2,
        3,
        4,
    ]  # the end hands on to the beginning
    assert passed(0.071, 0.0, 0.031, 0.019, 0.019) == [3, 4]
    assert passed(0.06, 0.0, 0.031, 0.021, 0.0) == []  # nothing passes before its turn
    assert passed(0.099, 0.0, 0.029, 0.049, 0.049) == [0, 1, 2, 3, 4]
    assert passed(0.1, 0.0, 0.029, 0.049, 0.049) == [2, 3, 4]  # never more than alpha


@pytest.mark.parametrize("allowed", [Fraction(1, 5), Fraction(1, 2), Fraction(7, 10)])
def test_average_false_share_over_every_order_and_labels(allowed):
    """Exchangeable rows with fixed scores: every way to choose which m of n + m are the pool.

    Labels of the n + m rows are any pattern; the false share is averaged over the choices alone.
    """
    n, m = 5, 3
    for labels in itertools.product([0, 1], repeat=n + m):
        total = Fraction(0)
        for pool in itertools.combinations(range(n + m), m):
            rows = [i for i in range(n + m) if i not in pool]
            best = sorted(pool, reverse=True)
            above = np.array([sum(1 for i in rows if not labels[i] and i >= j) for j in best])
            r = false_share_rank(above, n, allowed)
            wrong = sum(1 - labels[j] for j in best[:r])
            total += Fraction(wrong, max(1, r))
        assert total / comb(n + m, m) <= allowed
