"""How many qualified would be usual on a list: true of most lists, and not said where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.examples import population
from surelist.promises.policy_display import Usual, usual
from tests.helpers.promise_kinds import KINDS, policy_of

SAID = {"expected", "per pool", "per pool, two levels", "recall"}


@pytest.mark.parametrize("decimals", [None, 1])
def test_most_lists_hold_what_is_usual(decimals):
    rng, outside, runs = np.random.default_rng(3), 0, 100
    for _ in range(runs):
        (scores, labels), (pool, truth) = population(rng, 400), population(rng, 500)
        if decimals is not None:
            scores, pool = scores.round(decimals), pool.round(decimals)
        policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
        listed = policy.select(pool)
        said = usual(policy, 500, int(listed.sum()))
        assert said is not None
        outside += not said.low <= int((listed & truth).sum()) <= said.high
    assert stats.binom.sf(outside - 1, runs, 0.1) > 1e-4, outside / runs


SHAPES = {
    "flat": lambda at: 0.1 + 0 * at,
    "rising": lambda at: 0.4 * at**3,
    "jump": lambda at: np.where(at > 0.9, 0.7, 0.033),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("target", "rows"), [(sl.Expected(8, 100), 60), (sl.Recall(0.9), 150)])
def test_most_lists_hold_what_is_usual_where_the_target_is_barely_certifiable(shape, target, rows):
    """Lists are made only where the rows sufficed, in a few of ten calibrations: those are counted."""
    rng, made, tried, below, above = np.random.default_rng(4), 0, 0, 0, 0

    def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
        scores = rng.random(size)
        return scores, rng.random(size) < SHAPES[shape](scores)

    while made < 80:
        tried += 1
        try:
            policy = sl.calibrate(*draw(rows), target)
        except sl.NotCertifiable:
            continue
        pool, truth = draw(500)
        listed = policy.select(pool)
        said = usual(policy, 500, int(listed.sum()))
        assert said is not None, "said of every list, or the choice of those it is said of would count"
        held = int((listed & truth).sum())
        made, below, above = made + 1, below + (held < said.low), above + (held > said.high)
    assert made / tried < 0.5
    assert stats.binom.sf(max(below, above) - 1, made, 0.05) > 1e-6, (below / made, above / made)


def test_where_any_number_is_usual_that_is_said():
    said = Usual(listed=7, low=0, high=7, rows=40, qualified=9)
    assert said.sentence == "7 listed here; any number of them qualified would be usual."


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_said_only_of_counts_fixed_beforehand(kind):
    said = usual(policy_of(kind), 100, 7)
    assert (said is not None) == (kind in SAID)
    assert usual(policy_of(kind), 100, 0) is None


def test_the_sentence_has_the_numbers_and_says_how_they_come():
    policy = policy_of("expected")
    step = policy.cutoffs[0].steps[0]
    said = usual(policy, 600, 42)
    assert said is not None
    assert said.qualified == step.reached
    assert said.rows == round(step.share * 2_000)
    assert said.sentence == f"42 listed here; about {said.low} to {said.high} qualified would be usual."
    assert 5 <= said.low < said.high <= 42
    assert f"{said.rows} calibration rows score high enough" in said.meaning
    assert "no promise" in said.meaning


def test_a_pool_smaller_than_any_that_is_covered_and_missing_labels_have_none():
    assert usual(policy_of("per pool"), 99, 7) is None
    assert usual(policy_of("expected"), 100, 4) is None, "of so few nearly any number is usual"
    labels = np.where(np.arange(400) % 7, population(np.random.default_rng(1), 400)[1], np.nan)
    scores = population(np.random.default_rng(1), 400)[0]
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), missing_labels="unqualified")
    assert usual(policy, 100, 7) is None
