"""Looks at the rest: the level over every number of relevant items, in rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from surelist.bounds.stop_sample import (
    _levels,
    _sizes,
    most_left,
    rest_level,
    rest_looks,
    rest_tail,
    too_many_left,
)

pytestmark = pytest.mark.slow


def pmf(total: int, marked: int, drawn: int, x: int) -> Fraction:
    if not 0 <= x <= marked or not 0 <= drawn - x <= total - marked:
        return Fraction(0)
    return Fraction(math.comb(marked, x) * math.comb(total - marked, drawn - x), math.comb(total, drawn))


def false_certificates(
    found: int, rest: int, recall: Fraction, sizes: tuple[int, ...], relevant: int
) -> Fraction:
    """P(certified at some look while recall lies below target), straight from the definition."""

    def walk(look: int, drawn: int, hits: int) -> Fraction:
        if look == len(sizes):
            return Fraction(0)
        more, total = sizes[look] - drawn, Fraction(0)
        for step in range(relevant - hits + 1):
            chance = pmf(rest - drawn, relevant - hits, more, step)
            if not chance:
                continue
            now = hits + step
            if now > look:
                total += chance * walk(look + 1, sizes[look], now)
            elif found + now < recall * (found + relevant):
                total += chance
        return total

    return walk(0, 0, 0)


CASES = [
    (3, 12, Fraction(9, 10), 0.1, 3),
    (0, 10, Fraction(1, 2), 0.2, 3),
    (10, 20, Fraction(4, 5), 0.1, 4),
    (20, 25, Fraction(9, 10), 0.05, 3),
    (5, 9, Fraction(19, 20), 0.3, 5),
    (40, 30, Fraction(3, 4), 0.25, 5),
]


@pytest.mark.parametrize("case", CASES)
def test_level_over_every_number_of_relevant_items(case):
    found, rest, recall, alpha, number = case
    looks = rest_looks(found, rest, recall, alpha, number)
    levels = [false_certificates(found, rest, recall, looks.sizes, k) for k in range(rest + 1)]
    assert max(levels) <= Fraction(str(alpha))
    assert float(max(levels)) == pytest.approx(looks.level, abs=1e-9)


def test_too_many_left_is_the_first_number_that_breaks_the_recall():
    for found in (0, 1, 7, 195):
        for recall in (Fraction(19, 20), Fraction(9, 10), Fraction(1, 2), Fraction(2, 3)):
            for hits in range(6):
                k = too_many_left(found, hits, recall)
                assert found + hits < recall * (found + k)
                assert found + hits >= recall * (found + k - 1) or k - 1 < hits


def test_the_figures_of_the_contract():
    looks = rest_looks(195, 8000, Fraction(19, 20), 0.05, 6)
    assert looks.sizes[0] in (2133, 2134)
    assert looks.sizes[1:3] == (2935, 3499)
    assert looks.eta == pytest.approx(0.0329, abs=5e-5)
    assert round(looks.level, 4) == 0.05


def test_the_worst_number_is_among_those_tried():
    """Every K, not only the K(x): nothing exceeds what the solver looked at."""
    worst = [too_many_left(195, x, Fraction(19, 20)) for x in range(6)]
    sizes = list(rest_looks(195, 8000, Fraction(19, 20), 0.05, 6).sizes)
    every = _levels(8000, np.arange(0.0, 400.0), worst, sizes)
    assert every.max() <= rest_level(8000, worst, sizes) + 1e-12
    assert every.max() > 0.0499


def test_looks_rise_where_the_minimum_alone_would_not():
    """10 found, 30 left, recall 3/4: the smallest size for more hits is smaller; the running maximum holds."""
    fell = False
    for found in range(0, 40, 3):
        for rest in range(8, 40, 4):
            worst = [too_many_left(found, x, Fraction(3, 4)) for x in range(5)]
            sizes = _sizes(rest, worst, 0.1)
            assert sizes == sorted(sizes)
            alone = [_sizes(rest, [9**9] * x + [k], 0.1)[-1] for x, k in enumerate(worst)]
            fell |= alone != sorted(alone)
    assert fell


def test_tail_and_most_left():
    assert rest_tail(20, 5, 6, 1) == pytest.approx(float(pmf(20, 5, 6, 0) + pmf(20, 5, 6, 1)))
    assert rest_tail(20, 21, 6, 1) == 0.0
    k = most_left(200, 60, 2, 0.05)
    assert rest_tail(200, k, 60, 2) > 0.05 * (1 - 1e-5) >= rest_tail(200, k + 1, 60, 2)
    assert most_left(50, 50, 3, 0.05) == 3  # all drawn: no doubt
