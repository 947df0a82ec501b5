"""Promises combined: what may be chosen after looking, and whose scores are whose."""

from __future__ import annotations

import numpy as np
import pytest

import surelist as sl


def test_an_average_false_share_is_not_promised_of_the_shortest_of_several_lists():
    """On noise, where 70 % of any list are not qualified, the shortest of five was promised to have 40 %."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.3
    scores = {name: rng.random(200) for name in "ab"}
    pools = {name: rng.random(60) for name in "ab"}
    with pytest.raises(sl.InvalidInput, match="FalseShare and several scores have no proof together"):
        sl.calibrate(scores, labels, sl.FalseShare(0.4), unlabelled=pools)
    good = {"a": labels + 0.1 * rng.random(200)}
    one = sl.calibrate(good, labels, sl.FalseShare(0.4), unlabelled={"a": 1.0 + rng.random(60)})
    assert one.choice.chosen == "a"


def test_under_a_shift_the_unlabelled_scores_are_those_of_the_pools():
    """From the calibration population the rank chain was false in 27 % at 10 %: the conditions must say whose."""
    rng = np.random.default_rng(1)
    scores = rng.random(120)
    labels, ratios = rng.random(120) < 0.4, np.where(scores > 0.5, 0.5, 1.5)
    policy = sl.calibrate(
        scores, labels, sl.Expected(5, 100), unlabelled=rng.random(150), shift=sl.DensityRatio(ratios, 1.5)
    )
    said = " ".join(policy.conditions)
    assert "unlabelled scores come from the population of future pools" in said
    assert "from another; the weights are the density ratio" in said
    assert "from the same population" not in said
    assert policy.cutoffs[0].proof.kind == "rank-chain"


@pytest.mark.slow
def test_of_several_scores_a_precision_keeps_the_longest_list_and_a_count_the_shortest():
    rng = np.random.default_rng(5)
    truth, later = rng.random(700), rng.random(1_400)
    labels = rng.random(700) < truth
    noisy = lambda values: values + 0.5 * rng.random(len(values))  # noqa: E731
    scores, others = {"sharp": truth, "noisy": noisy(truth)}, {"sharp": later, "noisy": noisy(later)}
    shares = {}
    for name in scores:
        alone = sl.calibrate(
            scores[name], labels, sl.Precision(0.7, start=0.2), alpha=0.05, unlabelled=others[name]
        )
        shares[name] = np.mean(others[name] >= alone.threshold)
    assert shares["sharp"] > shares["noisy"]
    for target in (sl.Precision(0.7, start=0.2), sl.Expected(10, 100)):
        assert sl.calibrate(scores, labels, target, unlabelled=others).choice.chosen == "sharp"
    both = sl.calibrate(
        scores, labels, [sl.Expected(10, 100), sl.Precision(0.6, start=0.1)], unlabelled=others
    )
    assert both.choice.chosen == "sharp"  # no longer than the count asks for
