"""The counts of [theory: reviews]: enumerated, tight, and equal to a brute-force recursion."""

from fractions import Fraction

import numpy as np
import pytest

from surelist.bounds.counts import FirstCrossing, critical_count, first_crossing_counts
from surelist.errors import InvalidInput
from surelist.lifecycle.campaign_state import spending

LOOKS = [20, 31, 50, 90, 91, 200]


def crossing(rows, counts, rate):
    """P(the walk is at or above some count at its look) by stepping one row at a time."""
    alive = np.zeros(rows[-1] + 2)
    alive[0] = 1.0
    done, spent, by_look = 0, 0.0, []
    for n, count in zip(rows, counts, strict=True):
        for _ in range(n - done):
            alive[1:] = alive[1:] * (1 - rate) + alive[:-1] * rate
            alive[0] *= 1 - rate
        done = n
        spent += float(alive[count:].sum())
        alive[count:] = 0
        by_look.append(spent)
    return by_look


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_level_is_kept_at_every_look_and_no_smaller_count_would_do(rate, alpha):
    budgets = spending(alpha, len(LOOKS) - 1)
    counts = first_crossing_counts(LOOKS, rate, budgets)
    spent = crossing(LOOKS, counts, rate)
    assert all(used <= allowed for used, allowed in zip(spent, budgets, strict=True))
    for look, count in enumerate(counts):
        fewer = [*counts[:look], count - 1]
        assert crossing(LOOKS[: look + 1], fewer, rate)[-1] > budgets[look]


@pytest.mark.parametrize("below", [0.0, 0.2, 0.6, 0.9, 0.99])
def test_a_boundary_rate_below_the_target_fails_no_more_often(below):
    counts = first_crossing_counts(LOOKS, 0.05, spending(0.1, 5))
    assert crossing(LOOKS, counts, 0.05 * below)[-1] <= crossing(LOOKS, counts, 0.05)[-1] <= 0.1


def test_nearly_all_of_alpha_is_used_in_large_samples():
    walk = FirstCrossing(Fraction(1, 20))
    rows = [300 * 4**j for j in range(9)]
    for n, allowed in zip(rows, spending(0.1, 8), strict=True):
        walk.next(n, allowed)
    assert 0.0999 < walk.spent <= 0.1


def test_sharper_than_the_union_bound_and_equal_to_the_exact_rule_at_the_first_look():
    rows = [300 * 4**j for j in range(6)]
    counts = first_crossing_counts(rows, 0.05, spending(0.1, 5))
    levels = [0.05, 0.025, 0.0125, 0.00625, 0.003125, 0.003125]
    union = [critical_count(n, 0.05, level) for n, level in zip(rows, levels, strict=True)]
    assert counts == [22, 75, 271, 1032, 3997, 15680]
    assert union == [22, 76, 275, 1037, 4007, 15692]


def test_many_looks_stay_exact_and_windows_do_not_lose_probability():
    rows = list(range(50, 2050, 10))
    budgets = np.linspace(0.001, 0.1, len(rows)).tolist()
    counts = first_crossing_counts(rows, 0.05, budgets)
    assert 0.09 < crossing(rows, counts, 0.05)[-1] <= 0.1


def test_counts_depend_on_the_past_only():
    long = first_crossing_counts(LOOKS, 0.1, spending(0.1, 9)[: len(LOOKS)])
    assert first_crossing_counts(LOOKS[:3], 0.1, spending(0.1, 9)[:3]) == long[:3]


def test_a_look_without_new_rows_and_looks_that_can_certify_nothing():
    assert first_crossing_counts([1, 1], 0.5, [0.05, 0.1]) == [2, 2]
    assert first_crossing_counts([3], 1.0, [0.1]) == [4]
    walk = FirstCrossing(0.05)
    walk.next(100, 0.1)
    with pytest.raises(InvalidInput, match="at least the 100"):
        walk.next(99, 0.1)


def test_budgets_end_in_alpha():
    assert spending(0.1, 0) == [0.1]
    budgets = spending(0.1, 4)
    assert budgets == sorted(budgets)
    assert budgets[0] == 0.05
    assert budgets[-1] == 0.1
