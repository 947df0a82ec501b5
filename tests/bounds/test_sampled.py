"""Labels with known probabilities: the level at every split, and the p-value itself, in rationals."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, comb

import pytest

from surelist.bounds.sampled import GAMMA, Split, audit_count, edge_count

pytestmark = pytest.mark.slow

SETTINGS = [  # n, p0, audit rate, alpha
    (30, Fraction(1, 10), Fraction(1, 5), 0.1),
    (40, Fraction(1, 20), Fraction(3, 10), 0.2),
    (24, Fraction(1, 4), Fraction(1, 2), 0.1),
    (20, Fraction(1, 2), Fraction(1, 10), 0.3),
    (25, Fraction(1, 5), Fraction(1), 0.1),
]


def chance(n: int, d1: Fraction, audited: Fraction, above: int, below: int) -> Fraction:
    rest = n - above - below
    ways = comb(n, above) * comb(n - above, below)
    return ways * d1**above * audited**below * (1 - d1 - audited) ** rest


@cache
def needs(n, rate, audit_rate, alpha):
    return [audit_count(n, above, rate, audit_rate, alpha) for above in range(n + 1)]


@pytest.mark.parametrize(("n", "rate", "audit_rate", "alpha"), SETTINGS)
def test_the_level_holds_at_every_split_of_the_rate(n, rate, audit_rate, alpha):
    need = needs(n, rate, audit_rate, alpha)
    worst = Fraction(0)
    for step in range(41):
        d1 = rate * Fraction(step, 40)
        audited = audit_rate * (rate - d1)
        level = sum(
            (
                chance(n, d1, audited, above, below)
                for above in range(n + 1)
                for below in range(need[above], n - above + 1)
            ),
            Fraction(0),
        )
        worst = max(worst, level)
    assert worst <= Fraction(str(alpha))
    assert worst >= Fraction(str(alpha)) / 5  # and it is not held by doing nothing


def exact_tail(n, d1, d2, audit_rate, above, below) -> Fraction:
    reached = above + below / audit_rate
    return sum(
        (chance(n, d1, audit_rate * d2, x, y) for y in range(n + 1)
         for x in range(max(0, ceil(reached - y / audit_rate)), n - y + 1)),
        Fraction(0),
    )  # fmt: skip


@pytest.mark.parametrize(("n", "rate", "audit_rate", "alpha"), SETTINGS[:3])
def test_the_p_value_is_at_most_alpha_where_certified(n, rate, audit_rate, alpha):
    """gamma + P(T >= t) <= alpha at every split that N1 does not rule out: the price gamma is paid."""
    split, gamma = Split(n, rate, audit_rate), alpha / GAMMA
    for above in range(0, n // 2, 4):
        need = audit_count(n, above, rate, audit_rate, alpha)
        low = Fraction(split.lowest_above(above, gamma))
        if low > rate or need > n - above:
            continue
        splits = [low + (rate - low) * Fraction(i, 12) for i in range(13)]
        p = max(exact_tail(n, d1, rate - d1, audit_rate, above, need) for d1 in splits)
        assert p + Fraction(gamma) <= Fraction(str(alpha))


@pytest.mark.parametrize(("n", "rate", "audit_rate", "alpha"), SETTINGS[:3])
def test_one_audited_row_fewer_would_not_do(n, rate, audit_rate, alpha):
    """The smallest count: with one fewer the p-value is above alpha somewhere (a fine grid shows it)."""
    split, gamma = Split(n, rate, audit_rate), alpha / GAMMA
    for above in range(0, n // 3, 5):
        need = audit_count(n, above, rate, audit_rate, alpha)
        low = Fraction(split.lowest_above(above, gamma))
        if low > rate or need == 0 or need > n - above:
            continue
        splits = [low + (rate - low) * Fraction(i, 30) for i in range(31)]
        p = max(exact_tail(n, d1, rate - d1, audit_rate, above, need - 1) for d1 in splits)
        assert p + Fraction(gamma) > Fraction(str(alpha)) * Fraction(98, 100)


@pytest.mark.parametrize(("n", "rate", "audit_rate", "alpha"), SETTINGS)
def test_the_tail_agrees_with_rationals_and_never_lies_below(n, rate, audit_rate, alpha):
    split = Split(n, rate, audit_rate)
    for above, below in [(0, 1), (1, 1), (3, 0), (2, 2), (5, 1)]:
        for share in (Fraction(0), Fraction(1, 3), Fraction(1)):
            d1 = rate * share
            exact = exact_tail(n, d1, rate - d1, audit_rate, above, below)
            found = split.tail(above, below, float(d1), float(rate - d1))
            assert float(exact) - 1e-14 <= found <= float(exact) + 1e-11


def test_qualified_rows_above_the_edge_never_raise_the_need():
    need = needs(*SETTINGS[0])
    assert need == sorted(need, reverse=True)


def test_levels_of_the_contract():
    """n = 300, 5 %, audit rate .2: enumerated with floating point at 60 splits, at most .0923 or so."""
    import numpy as np
    from scipy import stats

    n, rate, audit, alpha = 300, Fraction(1, 20), Fraction(1, 5), 0.1
    most = 45
    need = np.array([audit_count(n, above, rate, audit, alpha) for above in range(most)])
    worst = 0.0
    for d1 in np.linspace(0, 0.05, 60):
        above = np.arange(most)
        first = stats.binom.pmf(above, n, d1)
        then = stats.binom.sf(need - 1, n - above, 0.2 * (0.05 - d1) / (1 - d1))
        worst = max(worst, float(first @ then))
    assert 0.085 < worst < 0.0935


@pytest.mark.parametrize(("n", "rate", "audit_rate", "alpha"), SETTINGS)
def test_above_the_edge_the_smallest_count_that_needs_no_audit_decides(n, rate, audit_rate, alpha):
    """Every label there is known; a boundary above the edge fails at most as often as alpha allows."""
    enough = edge_count(n, rate, audit_rate, alpha)
    need = needs(n, rate, audit_rate, alpha)
    assert [count == 0 for count in need[1:]] == [above >= enough for above in range(1, n + 1)]
    tail = sum((comb(n, j) * rate**j * (1 - rate) ** (n - j) for j in range(enough, n + 1)), Fraction(0))
    assert tail <= Fraction(str(alpha)) * Fraction(GAMMA - 1, GAMMA)
