"""What is said beside a list or a number: of whom it is true, and never rounded to the better side."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.examples import population
from surelist.promises.evaluation import Share


def labelled(target: object) -> tuple[sl.Policy, np.ndarray]:
    scores, labels = population(np.random.default_rng(3), 1_000)
    work = sl.Labelling(scores, target, labels=400)
    while len(rows := work.ask()):
        work.tell(rows, labels[rows])
    return work.policy, scores


@pytest.mark.parametrize("target", [sl.AtLeast(40), sl.Recall(0.8)])
def test_beside_the_list_of_another_file_a_promise_about_the_collection_is_not_repeated(target):
    policy, _ = labelled(target)
    said = policy.promise_of(500)
    assert said.startswith("Nothing is promised of other candidates: it is about the 1,000 candidates")
    assert policy.two_lines_of(500).what == said
    assert "at least" not in said
    assert policy.promise_of(None) == policy.promise
    assert policy.two_lines_of(None) == policy.two_lines
    assert "without candidates" in policy.promise_of(0)
    other = pl.DataFrame({"score": [0.1, 0.9]})
    with pytest.warns(sl.PoolWarning, match="Nothing is promised of other candidates"):
        sl.select_table(other, policy, score="score")


def test_beside_a_list_a_promise_about_the_population_is_repeated():
    scores, labels = population(np.random.default_rng(3), 1_000)
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    assert policy.promise_of(500) == policy.promise


def test_a_budget_whose_end_is_tied_says_how_many_are_listed():
    rng = np.random.default_rng(5)
    scores, others = (rng.choice([0.1, 0.5, 0.9], 2_000, p=[0.6, 0.37, 0.03]) for _ in range(2))
    labels = rng.random(2_000) < scores
    policy = sl.calibrate(scores, labels, sl.Budget(10, 100), unlabelled=others)
    assert "of about 3.2 candidates listed per 100" in policy.two_lines.what
    fine, more = rng.random(2_000), rng.random(2_000)
    untied = sl.calibrate(fine, rng.random(2_000) < fine, sl.Budget(10, 100), unlabelled=more)
    assert "of about 10 candidates listed per 100" in untied.two_lines.what
    assert any("from the unlabelled scores" in each for each in untied.two_lines.meaning)


def test_a_curve_never_prints_more_than_is_certified():
    scores, labels = population(np.random.default_rng(6), 1_000)
    for pool_size in (1, 20, 100):
        curve = sl.guarantee_curve(scores, labels, pool_size=pool_size)
        lines = curve.describe(most=len(curve.list_size)).splitlines()[3:]
        shown = [float(line.split()[1]) for line in lines]
        assert all(each <= true for each, true in zip(shown, curve.qualified.tolist(), strict=True))
        assert (
            max(true - each for each, true in zip(shown, curve.qualified.tolist(), strict=True)) < 0.01 + 1e-9
        )
        most = float(curve.qualified.max())
        with pytest.raises(sl.InvalidInput, match="these rows certify at most") as error:
            curve.shortest(2 * most)
        assert float(re.search(r"at most ([\d.]+) of", str(error.value))[1]) <= most


def test_a_small_share_is_not_shown_as_none_and_an_interval_is_rounded_outwards():
    assert str(Share.exact(7, 100_000)) == "0.007% (0.002 to 0.015%), 7 of 100,000"
    assert str(Share.exact(60, 137)) == "43.8% (35.3 to 52.6%), 60 of 137"
    for of in (3, 50, 137, 10_000, 10**6):
        for count in {0, 1, of // 3, of - 1, of}:
            share = Share.exact(count, of)
            middle, low, high = map(
                float, re.match(r"([\d.]+)% \(([\d.]+) to ([\d.]+)%", str(share)).groups()
            )
            assert low <= 100 * share.low
            assert high >= 100 * share.high
            assert (middle == 0) == (count == 0)
            assert (middle == 100) == (count == of)


def test_a_refusal_after_thinning_counts_the_rows_to_gather_before_it():
    rng = np.random.default_rng(7)
    scores = rng.random(2_000)
    labels = np.where(rng.random(2_000) < 0.25, (rng.random(2_000) < 0.14 * scores).astype(float), np.nan)
    drawn = sl.SampledLabels(labels, probability=np.full(2_000, 0.25), lowest_rate=0.25)
    with pytest.raises(sl.NotCertifiable) as plain:
        sl.calibrate(scores, drawn, sl.Expected(9, 100))
    assert plain.value.shortfall.rows_before == 2_000
    assert plain.value.shortfall.rows < 700
    assert f"{plain.value.rows:,} that the thinning kept of 2,000" in str(plain.value)
    known = ~np.isnan(labels)
    with pytest.raises(sl.NotCertifiable) as whole:
        sl.calibrate(scores[known], labels[known], sl.Expected(9, 100))
    needed, kept = plain.value.rows_needed, whole.value.rows_needed
    assert (needed is None) == (kept is None)
    if needed is not None:
        assert 3 * kept < needed < 5 * kept
    with pytest.raises(sl.NotCertifiable, match="that the thinning kept of 2,000: more of those"):
        sl.calibrate(scores, drawn, sl.Precision(0.9, start=0.1), unlabelled=rng.random(1_000))


def test_a_refusal_counts_those_who_tie_with_the_last_of_the_first_list():
    """Two of a hundred were said to be on a list of everyone."""
    one, good = np.ones(400), np.arange(400) % 4 == 0
    with pytest.raises(
        sl.NotCertifiable, match="The first list, 100% of candidates, holds 100 qualified of 400"
    ):
        sl.calibrate(one, good, sl.Precision(0.4), unlabelled=one[:300])
    for others, tied in ((one, True), (np.arange(400) / 400 + 2, False)):
        with pytest.raises(sl.NotCertifiable, match="No qualified calibration row is on it") as refused:
            sl.calibrate(one, good, sl.Budget(10, 100), unlabelled=others)
        assert ("ties with the first candidate beyond it" in str(refused.value)) is tied


def test_a_share_of_this_list_that_is_refused_is_not_said_to_be_all_that_can_be_asked():
    rng = np.random.default_rng(8)
    scores, pool = rng.random(300), rng.random(100)
    good = rng.random(300) < 0.5
    with pytest.raises(sl.NotCertifiable, match="too many to be sure of that"):
        sl.calibrate(scores, good, sl.ThisList(20, share=0.8), unlabelled=pool)
    assert "and at least" in sl.calibrate(scores, good, sl.ThisList(20), unlabelled=pool).promise


def test_labels_that_have_not_come_are_not_said_to_be_here():
    scores, good = np.arange(300, 0, -1.0), np.zeros(300, dtype=bool)
    good[np.random.default_rng(3).permutation(120)[:100]] = True
    names, tested = list[str](), list[int]()
    while names[-2:] != ["block", "below"]:  # which stages follow one another depends on the draw
        work = sl.Labelling(scores, sl.Precision(0.6), labels=120)
        while len(rows := work.ask()) and names[-2:] != ["block", "below"]:
            work.tell(tested := rows.tolist(), good[rows])
            names = [stage.name for stage in work._state.designs[0].stages]
    with pytest.raises(sl.InvalidInput, match="what is asked for now shows what it certified"):
        work.correct(tested[:1], [not good[tested[0]]])
    work.tell(rows := work.ask()[:1], good[rows])
    with pytest.raises(sl.InvalidInput, match="labels of the below that the block chose are here"):
        work.correct(tested[:1], [not good[tested[0]]])
