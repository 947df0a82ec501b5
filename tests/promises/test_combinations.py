"""Conditions that are fine alone and have no proof together: refused, or certified by a rule that has one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import surelist as sl
from surelist.cli import run as command_line
from surelist.examples import population

SCORES, LABELS = population(np.random.default_rng(21), 2_000)
OTHERS = population(np.random.default_rng(22), 4_000)[0]
OTHER = np.random.default_rng(23).random(2_000)  # another score
GROUPS = np.where(np.arange(2_000) % 2, "north", "south")
ONES = np.ones(2_000)


def audited():
    drawn = (SCORES >= 0.8) | (np.random.default_rng(24).random(2_000) < 0.1)
    return np.where(drawn, LABELS, np.nan)


def test_labels_known_above_a_score_go_with_that_one_score():
    """False in 84 of 100 at 10 %: where every label is known by one score it is not by another."""
    two = {"a": SCORES, "b": 0.3 * SCORES + 0.7 * OTHER}
    labels = sl.SampledLabels(audited(), probability=0.1, above=0.8)
    with pytest.raises(sl.InvalidInput, match="audited below it and several scores do not go together"):
        sl.calibrate(two, labels, sl.Expected(5, 100))
    one = sl.calibrate({"a": SCORES}, labels, sl.Expected(5, 100))
    assert one.threshold == sl.calibrate(SCORES, labels, sl.Expected(5, 100)).threshold
    rates = np.where(SCORES >= 0.8, 1.0, 0.1)
    by_row = sl.SampledLabels(labels.labels, probability=rates, lowest_rate=0.1)
    with suppress(sl.NotCertifiable):
        assert sl.calibrate(two, by_row, sl.Expected(5, 100)).choice is not None


def test_the_command_line_refuses_audited_labels_with_another_score(tmp_path, capsys):
    rows = {"score": SCORES, "other": OTHER, "qualified": audited()}
    pd.DataFrame(rows).to_csv(tmp_path / "past.csv", index=False)
    words = ["calibrate", str(tmp_path / "past.csv"), "--expect", "5", "--pool-size", "100", "-o"]
    words += [str(tmp_path / "policy.json"), "--other-score", "other"]
    assert command_line([*words, "--audit-rate", "0.1", "--audited-below", "0.8"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "several scores do not go together" in said
    assert "--probability and --lowest-rate" in said
    assert not (tmp_path / "policy.json").exists()


def test_other_scores_do_not_shorten_a_count_whose_ratios_may_be_wrong():
    """Kept rows and other scores are no longer draws of one population: false in 70 % within a factor of 3."""
    ratio = sl.DensityRatio(ONES, bound=1.0, within=1.2)
    for target in (sl.Expected(3, 100), [sl.Expected(3, 100), sl.Recall(0.5)]):
        with pytest.raises(
            sl.InvalidInput,
            match="unlabelled: a shift known within a factor and unlabelled scores do not go together",
        ):
            sl.calibrate(SCORES, LABELS, target, unlabelled=OTHERS, shift=ratio)
    for scores, others in ((SCORES, OTHERS), ({"a": SCORES, "b": SCORES**2}, {"a": OTHERS, "b": OTHERS**2})):
        both = sl.calibrate(
            scores, LABELS, [sl.Expected(3, 100), sl.Precision(0.3)], unlabelled=others, shift=ratio
        )
        # the exact rule beside precision
        assert [each.proof.kind for each in both.cutoffs] == ["counts", "fixed-sequence"]


def test_what_is_left_under_wrong_ratios_is_said_of_the_exact_rule_only():
    asked = {"shift": sl.DensityRatio(np.full(2_000, 0.5), 1.0)}
    left = "still holds at least"
    plain = sl.calibrate(SCORES, LABELS, sl.Expected(5, 100), **asked)
    chain = sl.calibrate(SCORES, LABELS, sl.Expected(5, 100), unlabelled=OTHERS, **asked)
    assert left in " ".join(plain.conditions)
    assert chain.cutoffs[0].proof.kind == "rank-chain"
    assert left not in " ".join(chain.conditions)


def test_an_average_false_share_is_not_promised_where_ratios_may_be_wrong():
    """The margin is that of a list fixed beforehand: .57 of the list false on average where .50 was promised."""
    ratio = sl.DensityRatio(ONES, bound=1.0, within=1.5)
    with pytest.raises(
        sl.InvalidInput,
        match="shift: FalseShare and a shift known within a factor have no proof together",
    ):
        sl.calibrate(SCORES, LABELS, sl.FalseShare(0.5), unlabelled=OTHERS, shift=ratio)
    right = sl.DensityRatio(ONES, bound=1.0)
    assert sl.calibrate(SCORES, LABELS, sl.FalseShare(0.5), unlabelled=OTHERS, shift=right).of_one_pool


def drawn_and_lost(rng, n=600):
    """Labels at a row of probability 1 are missing for half of the unqualified; all scores are alike."""
    good, rates = rng.random(n) < 0.1, np.where(np.arange(n) % 2, 1.0, 0.3)
    labels = np.where(rng.random(n) < rates, good, np.nan).astype(float)
    labels[~good & (rates == 1) & (rng.random(n) < 0.5)] = np.nan
    return sl.SampledLabels(labels, probability=rates, lowest_rate=0.3)


def test_a_label_missing_at_a_row_of_probability_1_is_missing_and_not_undrawn():
    with pytest.raises(
        sl.InvalidInput, match="label at every row that was certain to be drawn, got none at position"
    ):
        sl.calibrate(np.ones(600), drawn_and_lost(np.random.default_rng(0)), sl.Expected(10, 100))
    above = sl.SampledLabels([np.nan, 1, np.nan, 0], probability=0.5, above=2.5)
    with pytest.raises(sl.InvalidInput, match=r"got none at position 2 \(1 in all\)"):
        sl.calibrate([1.0, 2, 3, 4], above, sl.Expected(1, 4))


def test_missing_labels_of_drawn_rows_count_as_not_qualified_and_keep_the_level():
    """Taken for rows that were not drawn they made 178 of 200 promises false."""
    rng, runs, alpha, false = np.random.default_rng(3), 300, 0.2, 0
    for _ in range(runs):
        with suppress(sl.NotCertifiable):
            policy = sl.calibrate(
                np.ones(600),
                drawn_and_lost(rng),
                sl.Expected(10 + 1e-6, 100),
                alpha=alpha,
                missing_labels="unqualified",
            )
            assert policy.missing_labels > 0
            false += 1
    assert stats.binom.sf(false - 1, runs, alpha) > 1e-6, false
    rows = drawn_and_lost(np.random.default_rng(0))
    with pytest.raises(sl.InvalidInput, match="Recall needs them all"):
        sl.calibrate(np.ones(600), rows, sl.Recall(0.5), missing_labels="unqualified")


def test_values_go_with_a_column_of_pools():
    rng = np.random.default_rng(1)
    pools, amounts = np.repeat(np.arange(50), 40), 100 * LABELS.astype(float)
    policy = sl.calibrate(SCORES, amounts, sl.Value(400, 100), pools=pools)
    assert not policy.of_pools
    bad = rng.random(50) < 0.5
    with pytest.warns(sl.PoolWarning, match="resemble one another"):
        sl.calibrate(SCORES, np.where(bad[pools], 0.0, amounts), sl.Value(100, 100), pools=pools)


@pytest.mark.parametrize("group_rows", ["own", "all"])
def test_targets_estimated_from_the_calibration_rows_are_refused_also_where_weights_thin_them(group_rows):
    targets = sl.equal_opportunity(LABELS, GROUPS, k=5, pool_sizes={"north": 100, "south": 100})
    asked = {"groups": sl.Groups(GROUPS, purpose="a test", rows=group_rows)}
    thinned = {"shift": sl.DensityRatio(np.full(2_000, 0.5), 1.0)}
    for more in ({}, thinned):
        with pytest.raises(sl.InvalidInput, match="Estimate them from other rows"):
            sl.calibrate(SCORES, LABELS, targets, **asked, **more)
    scores, labels = population(np.random.default_rng(5), 2_000)
    assert sl.calibrate(scores, labels, targets, **asked, **thinned).grouped


TWO = {"a": SCORES, "b": SCORES**2}


@pytest.mark.parametrize(
    ("target", "more"),
    [(sl.PerPool(3, 100), {}), (sl.NextPool(k=1), {"pools": np.repeat(np.arange(100), 20), "alpha": 0.4})],
)
def test_after_a_choice_the_sentence_adds_up_what_every_score_may_fail_over_the_rows(target, more):
    """Said was each score's own level, 1 % where 5.1 % was measured, and two lines said another one."""
    alpha = more.get("alpha", 0.1)
    one = sl.calibrate(SCORES, LABELS, target, rule="pac", **more)
    two = sl.calibrate(TWO, LABELS, target, rule="pac", **more)
    level = two.cutoffs[0].level
    assert level.calibration_alpha == pytest.approx(alpha / 4)
    rows, pool, half = (f"{each:.6g}%" for each in (50 * alpha, 25 * alpha, 50 * alpha))
    assert f"at least 1 - {half}, except with probability at most {half} over" in one.promise
    assert f"at least 1 - {pool}, except with probability at most {rows} over" in two.promise
    said = {0.1: ("1 calibration in 20", "1 pool in 40"), 0.4: ("1 calibration in 5", "1 pool in 10")}[alpha]
    assert all(each in two.two_lines.sure for each in said)


def test_how_often_the_long_run_rate_lies_above_alpha_is_about_alpha_and_not_a_share_of_it():
    """After a choice of three "about 43 % of samples" was said, and it was of a third of alpha."""
    three = {**TWO, "c": SCORES**3}
    remark = "for {} of samples the long-run rate{} lies above {}."
    one, best = (sl.calibrate(each, LABELS, sl.PerPool(3, 100)) for each in (SCORES, three))
    assert any(remark.format("about 42%", "", "alpha") in each for each in one.conditions)
    assert any(remark.format("at most about 0%", "", "alpha") in each for each in best.conditions)
    grouped = sl.calibrate(
        SCORES,
        LABELS,
        dict.fromkeys(("north", "south"), sl.PerPool(2, 50)),
        groups=sl.Groups(GROUPS, purpose="a test"),
    )
    assert any(
        "long-run rate of a group lies above its share of alpha" in each for each in grouped.conditions
    )


def test_a_budget_is_kept_on_average_by_one_score_and_not_by_the_shortest_of_several():
    """Twenty of a hundred were allowed, and the shortest of two lists had 20.5 on average."""
    with pytest.raises(sl.InvalidInput, match="Budget and several scores have no proof together"):
        sl.calibrate(TWO, LABELS, sl.Budget(10, 100), unlabelled={"a": OTHERS, "b": OTHERS**2})
    one = sl.calibrate({"a": SCORES}, LABELS, sl.Budget(10, 100), unlabelled={"a": OTHERS})
    assert one.threshold == sl.calibrate(SCORES, LABELS, sl.Budget(10, 100), unlabelled=OTHERS).threshold


@pytest.mark.parametrize("many", [10, 4_000])
def test_audited_labels_go_without_other_scores_however_many(many):
    labels = sl.SampledLabels(audited(), probability=0.1, above=0.8)
    with pytest.raises(
        sl.InvalidInput,
        match="unlabelled: labels known above a score and audited below it and unlabelled scores do not go together",
    ):
        sl.calibrate(SCORES, labels, sl.Expected(5, 100), unlabelled=OTHERS[:many])


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [True, False])
def test_maps_of_rows_and_splits_together_are_false_at_most_alpha(drawn):
    """Missing labels, labels by probability or ratios, ties by hash, two groups, two scores: at the boundary.

    The top of either score holds just less than the target; only a list that goes below it is right.
    """
    rng, runs, alpha, false, n = np.random.default_rng(8), 250, 0.2, 0, 400
    target = dict.fromkeys("xy", sl.Expected(10 + 1e-6, 100))
    for _ in range(runs):
        kind, groups = rng.random(n), np.where(rng.random(n) < 0.5, "x", "y")
        labels, rates = (kind < 0.5).astype(float), np.where(rng.random(n) < 0.5, 1.0, 0.5)
        scores = {
            "a": np.where((kind < 0.1) | (kind > 0.8), 1.0, 0.0),
            "b": np.where(abs(kind - 0.15) < 0.05, 1.0, 0.0),
        }
        labels[(kind >= 0.5) & (rates == 1) & (rng.random(n) < 0.5)] = np.nan  # and never reviewed
        given: Any = labels
        asked: dict[str, Any] = {"shift": sl.DensityRatio(rates, 1.0)}
        if drawn:
            labels[(rates < 1) & (rng.random(n) < 0.5)] = np.nan
            given, asked = sl.SampledLabels(labels, probability=rates, lowest_rate=0.5), {}
        policy = sl.calibrate(scores, given, target, alpha=alpha, missing_labels="unqualified", **asked, groups=sl.Groups(groups, purpose="a test", split="sidak"), ties=sl.Hash(range(n)))  # fmt: skip
        false += max(policy.thresholds.values()) == 1
    assert stats.binom.sf(false - 1, runs, alpha) > 1e-6, false
    assert false > 0, false


@pytest.mark.parametrize("target", [sl.Recall(0.5), [sl.PerPool(1, 100), sl.Recall(0.5)]])
def test_other_scores_that_no_promise_of_a_list_uses_are_not_passed_over_in_silence(target):
    with pytest.raises(sl.InvalidInput, match="unlabelled: does not help"):
        sl.calibrate(SCORES, LABELS, target, unlabelled=OTHERS)


@pytest.mark.parametrize("rate", [0.99, 0.5])
@pytest.mark.parametrize("above", [None, 0.9])
def test_labels_that_were_drawn_and_never_came_are_not_taken_for_undrawn_ones(rate, above):
    """Half of the unqualified never reviewed, at rates below 1: false in 198 of 200 (Expected(5, 100), 1,000 rows)."""
    rng = np.random.default_rng(5)
    scores = rng.random(2_000)
    good = rng.random(2_000) < 0.3 * scores
    certain = scores >= (2 if above is None else above)
    labels = np.where(certain | (rng.random(2_000) < rate), good, np.nan)
    target = sl.Expected(2, 100)
    assert sl.calibrate(scores, sl.SampledLabels(labels, probability=rate, above=above), target).threshold > 0
    lost = np.where(~good & ~certain & (rng.random(2_000) < 0.5), np.nan, labels)
    every = good.astype(float)
    for labels_given in (lost, every) if rate == 0.5 else (lost,):
        sampled = sl.SampledLabels(labels_given, probability=rate, above=above)
        with pytest.raises(sl.InvalidInput, match="labels by these probabilities") as refused:
            sl.calibrate(scores, sampled, target)
        assert "A label that was drawn and did not come is missing" in str(refused.value)


def test_what_has_no_proof_with_one_cutoff_is_said_of_that_and_not_of_groups():
    scores, labels = population(3, 500)
    names = np.where(np.arange(500) % 2, "a", "b")
    groups = sl.Groups(names, cutoff="common")
    with pytest.raises(sl.InvalidInput, match='rule="dkw" and one cutoff for all groups have no proof'):
        sl.calibrate(scores, labels, dict.fromkeys("ab", sl.Expected(1, 100)), groups=groups, rule="dkw")
