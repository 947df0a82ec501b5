"""Unlabelled scores are of other candidates: calibration rows among them, or a pool among the rows, are noticed."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

import surelist as sl
from surelist.bounds.counts import twins_apart
from surelist.examples import population
from surelist.promises.evidence import hold_rows

OTHERS_ASKED = [
    sl.Expected(5, 100),
    sl.Precision(0.4, start=0.1),
    sl.Budget(10, 100),
    sl.FalseShare(0.9),
    sl.ThisList(20),
]
OTHERS_ASKED += [sl.Triage(0.4, reject_recall=0.5)]


@pytest.mark.parametrize("target", OTHERS_ASKED, ids=lambda each: type(each).__name__)
def test_unlabelled_scores_that_hold_the_calibration_rows_are_refused(target):
    """All of them, some among others, or a pool that is a part of them; rounded or not."""
    rng = np.random.default_rng(8)
    scores, labels = population(rng, 500)
    others, _ = population(rng, 2000)
    holding = [scores, np.concatenate([others, scores]), np.concatenate([others, scores[::5]])]
    few = sl.Expected(5, 100) != target  # with fewer scores than rows a count goes by the exact rule
    for given in [*holding, *([scores[:60]] if few else [])]:
        with pytest.raises(sl.InvalidInput, match="hold some of the calibration rows' own"):
            sl.calibrate(scores, labels, target, unlabelled=given)
    with pytest.raises(sl.InvalidInput, match="hold some of the calibration rows' own"):
        sl.calibrate(scores.round(4), labels, target, unlabelled=scores.round(4))
    with suppress(sl.NotCertifiable):
        sl.calibrate(scores, labels, target, unlabelled=others)
    if not isinstance(target, sl.ThisList):  # whose list must not end in a tie
        for decimals in (2, 3, 4):  # ties are no sign
            with suppress(sl.NotCertifiable):
                sl.calibrate(scores.round(decimals), labels, target, unlabelled=others.round(decimals))


def test_a_pool_that_is_a_part_of_the_calibration_rows_has_no_curve():
    scores, labels = population(np.random.default_rng(9), 500)
    with pytest.raises(sl.InvalidInput, match="hold some of the calibration rows' own"):
        sl.list_curve(scores, labels, scores[100:160])


@pytest.mark.parametrize(("rows", "others", "pairs"), [(4, 4, 3), (2, 7, 3), (8, 2, 4), (6, 6, 6)])
def test_the_chance_that_twins_lie_apart_is_never_understated(rows, others, pairs):
    """Every way to deal ``pairs`` pairs and singles out to rows and others."""
    total = rows + others
    dealt = Counter(
        sum((2 * each in chosen) != (2 * each + 1 in chosen) for each in range(pairs))
        for chosen in map(set, itertools.combinations(range(total), rows))
    )
    for apart in range(pairs + 1):
        exact = Fraction(sum(dealt[each] for each in dealt if each >= apart), math.comb(total, rows))
        assert twins_apart(apart, pairs, rows, others) >= exact
    likely = 2 * rows * others / total**2
    assert twins_apart(pairs, pairs, rows, others) == pytest.approx((total + 1) * likely**pairs, rel=1e-9)


def test_of_many_scores_the_same_are_looked_at_on_both_sides():
    rng = np.random.default_rng(10)
    rows, others = rng.normal(size=3_000), rng.normal(size=1_500_000)
    assert not hold_rows(rows, others)
    assert hold_rows(rows, np.concatenate([others, rows]))
    assert hold_rows(rng.permutation(others)[:1_000], others)
    assert not hold_rows(rows.round(4), others.round(4))


@pytest.mark.slow
def test_some_of_the_rows_among_many_unlabelled_scores_are_noticed():
    """Whichever rows they are: every fifth, every other but the first, or one in fifty."""
    rng = np.random.default_rng(13)
    scores, labels = population(rng, 500)
    others, _ = population(rng, 500_000)
    for shared in (scores[::5], scores[1::2], scores[1::50]):
        with pytest.raises(sl.InvalidInput, match="hold some of the calibration rows' own"):
            sl.calibrate(scores, labels, sl.Expected(5, 100), unlabelled=np.concatenate([shared, others]))
    sl.calibrate(scores, labels, sl.Expected(5, 100), unlabelled=others)
    sl.calibrate(scores.round(4), labels, sl.Expected(5, 100), unlabelled=others.round(4))


def test_twins_on_one_side_are_no_sign():
    rng = np.random.default_rng(11)
    rows, others = rng.random(20_000).round(5), rng.random(20_000).round(5)
    assert not hold_rows(rows, others)
    assert hold_rows(rows, np.concatenate([others, rows[:1_000]]))


def test_twins_are_no_sign_where_rows_and_others_need_not_be_alike():
    """Of the rows three in four are at the top, of the others one in four: within a factor of 3 of each other."""
    rng = np.random.default_rng(12)
    rows, others = (
        np.concatenate([1 + rng.integers(0, 8_000, top) / 8_000, rng.random(total - top)])
        for top, total in ((3_000, 4_000), (3_000, 12_000))
    )
    labels, precise = rows > 0.5, sl.Precision(0.3, start=0.1)
    with pytest.raises(sl.InvalidInput, match="hold some of the calibration rows' own"):
        sl.calibrate(rows, labels, precise, unlabelled=others)
    ratio = sl.DensityRatio(np.ones(4_000), bound=1.0, within=3)
    assert sl.calibrate(rows, labels, precise, unlabelled=others, shift=ratio).threshold < 1.8
