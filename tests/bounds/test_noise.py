"""Labels that may be wrong: the numbers, by their definition and at the boundary."""

from fractions import Fraction

import pytest
from scipy import stats

from surelist.bounds.sampled import edge_rank, labelled_rate, labelled_share, spent


def test_without_noise_nothing_changes():
    assert labelled_rate(Fraction(1, 20), 0, 0.3) == Fraction(1, 20)
    assert float(labelled_share(0.9, 100, 20, 0, 0, 0.005)) == pytest.approx(0.9, abs=1e-15)
    assert labelled_share(0.9, 100, 20, 0, 0, 0.005) >= Fraction(9, 10)
    assert spent(0.1, 0) == 0
    assert spent(0.1, 0.02) == pytest.approx(0.005)


def test_the_rate_is_that_of_the_worst_list_of_the_longest_length():
    rate, wrong, longest = Fraction(1, 20), Fraction(1, 50), Fraction(3, 10)
    assert labelled_rate(rate, wrong, longest) == rate + wrong * (longest - rate)


@pytest.mark.parametrize(("others", "longest", "alpha"), [(50, 0.3, 0.1), (1_000, 0.3, 0.005), (7, 0.5, 0.2)])
def test_the_edge_is_the_lowest_that_has_its_level(others, longest, alpha):
    rank = edge_rank(others, longest, alpha)
    assert stats.binom.cdf(rank - 1, others, longest) <= alpha < stats.binom.cdf(rank, others, longest)


def test_too_few_other_scores_give_no_edge():
    assert edge_rank(5, 0.3, 0.005) == 0
    assert edge_rank(20, 0.3, 0.005) > 0


def test_the_share_to_keep_is_that_of_the_worst_labels():
    """Among those labelled qualified a share (1-false_negative)(1-share) pi/lambda lies below, at least."""
    lowest = stats.beta.ppf(0.005, 60, 500 - 60 + 1)
    pi = (lowest - 0.02) / (1 - 0.02)
    assert float(labelled_share(0.9, 500, 60, 0.02, 0.1, 0.005)) == pytest.approx(
        1 - 0.9 * 0.1 * pi / lowest, rel=1e-7
    )


def test_labels_that_may_all_be_wrong_show_nothing():
    assert labelled_share(0.9, 500, 8, 0.02, 0.0, 0.005) is None
    assert labelled_share(0.9, 500, 0, 0.02, 0.0, 0.005) is None
