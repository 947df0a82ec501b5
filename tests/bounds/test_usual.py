"""How many qualified would be usual on one list: enumerated over both lists, at shares from small to large."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surelist.bounds.this_list import Certifiable, beta_binomial, usual_count

SHARES = (0.02, 0.1, 0.3, 0.5, 0.77, 0.9, 0.98)


@pytest.mark.parametrize("rows", [3, 12, 40])
@pytest.mark.parametrize("listed", [1, 7, 30])
def test_each_side_is_left_at_most_so_often_at_a_fixed_threshold(rows, listed):
    miss, tight = 0.05, 0.0
    ranges = [
        usual_count(listed, good, good, rows - good, miss) if good else (0, listed)
        for good in range(rows + 1)
    ]
    for share in SHARES:
        before, there = stats.binom(rows, share), stats.binom(listed, share)
        below = sum(before.pmf(good) * there.cdf(low - 1) for good, (low, _) in enumerate(ranges))
        above = sum(before.pmf(good) * there.sf(high) for good, (_, high) in enumerate(ranges))
        assert max(below, above) <= miss
        tight = max(tight, below, above)
    if listed == 30 and rows > 3:
        assert tight > miss / 3, "far wider than it need be"


@pytest.mark.parametrize("needed", [2, 10, 25])
def test_and_where_the_threshold_is_the_last_qualified_row_of_a_flat_score(needed):
    """As many rows as it takes to see ``needed`` qualified ones: the share is the same at every rank."""
    miss, listed = 0.05, 20
    for share in SHARES[2:]:
        law, there = stats.nbinom(needed, share), stats.binom(listed, share)
        below = above = 0.0
        for others in range(int(law.isf(1e-9)) + 1):
            low, high = usual_count(listed, needed, needed, others, miss)
            below += law.pmf(others) * there.cdf(low - 1)
            above += law.pmf(others) * there.sf(high)
        assert below <= miss
        assert above <= miss


@pytest.mark.slow
@pytest.mark.parametrize("region", [1.0, 0.5])
def test_and_among_calibrations_that_certify_only(region):
    """Every outcome of calibration: rows in the region that can be qualified, the rank of the needed one,
    and how many qualified come after it; given that there are enough of them, whatever the share."""
    rows, needed, listed, miss = 18, 4, 20, 0.05
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    plain = 0.0
    for share in (0.02, 0.1, 0.2, 0.3, 0.5, 0.8):
        there = stats.binom(listed, share)
        total = below = above = without = 0.0
        for inside in range(needed, rows + 1):
            for rank in range(needed, inside + 1):
                first = stats.binom.pmf(inside, rows, region) * stats.nbinom.pmf(rank - needed, needed, share)
                for more in range(inside - rank + 1):
                    chance = first * stats.binom.pmf(more, inside - rank, share)
                    at = rank - needed, needed + more
                    if at not in ends:
                        given = Certifiable(rows, needed, needed + more)
                        ends[at] = usual_count(listed, needed, needed, rank - needed, miss, given)
                    low, high = ends[at]
                    alone, _ = usual_count(listed, needed, needed, rank - needed, miss)
                    total += chance
                    below += chance * there.cdf(low - 1)
                    above += chance * there.sf(high)
                    without += chance * there.cdf(alone - 1)
        assert below <= miss * total, share
        assert above <= miss * total, share
        plain = max(plain, without / total)
    assert plain > 2 * miss, "a world in which it matters"


def test_the_law_against_scipy_and_the_ends():
    counts = np.arange(31, dtype=float)
    assert np.allclose(beta_binomial(counts, 30, 8, 3), stats.betabinom(30, 8, 3).pmf(counts), rtol=1e-9)
    assert usual_count(10, 5, 5, 0, 0.05)[1] == 10  # nobody unqualified was seen
    low, high = usual_count(1_000_000, 630, 630, 130, 0.05)
    assert 0.79 < low / 1_000_000 < 630 / 760 < high / 1_000_000 < 0.86
    assert (
        usual_count(50, 20, 30, 10, 0.05)[0] < usual_count(50, 30, 30, 10, 0.05)[0]
    )  # ties: the count that was needed
