"""What new users get wrong in Python: other rows, percent for shares, alpha for confidence, two columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import surelist as sl
from surelist.examples import population
from surelist.promises.curve import guarantee_curve

SCORES, LABELS = population(np.random.default_rng(6), 1_000)
HERE = pd.Series(SCORES)
ELSEWHERE = pd.Series(LABELS, index=range(1_000, 2_000))
SHUFFLED = pd.Series(LABELS)[::-1]
TARGET = sl.Expected(5, 100)
GROUPS = np.where(np.arange(1_000) % 2, "a", "b")
BY_GROUP = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}


POLICY = sl.calibrate(SCORES, LABELS, TARGET)
RECALL = sl.calibrate(SCORES, LABELS, sl.Recall(0.8))
GROUPED = sl.calibrate(SCORES, LABELS, BY_GROUP, groups=sl.Groups(GROUPS, purpose="test"))


def moved(values: object) -> pd.Series:
    return pd.Series(values, index=range(1_000, 2_000))


@pytest.mark.parametrize("labels", [ELSEWHERE, SHUFFLED], ids=["other rows", "another order"])
def test_series_with_different_indexes_are_not_paired_by_position(labels):
    with pytest.raises(
        sl.InvalidInput, match=r"labels: its pandas index is not that of scores: at position 0"
    ):
        sl.calibrate(HERE, labels, TARGET)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("labels", lambda: sl.calibrate(HERE, sl.SampledLabels(ELSEWHERE, 0.5, above=0.6), TARGET)),
        (
            "groups",
            lambda: sl.calibrate(HERE, LABELS, BY_GROUP, groups=sl.Groups(moved(GROUPS), purpose="test")),
        ),
        ("ids", lambda: sl.calibrate(HERE, LABELS, TARGET, ties=sl.Hash(moved(np.arange(1_000))))),
        ("pools", lambda: sl.calibrate(HERE, LABELS, sl.NextPool(k=1), pools=moved(np.arange(1_000) // 20))),
        (
            "ratios",
            lambda: sl.calibrate(HERE, LABELS, TARGET, shift=sl.DensityRatio(moved(np.ones(1_000)), 1.0)),
        ),
        (r"scores\['b'\]", lambda: sl.calibrate({"a": HERE, "b": moved(SCORES)}, LABELS, TARGET)),
        ("labels", lambda: guarantee_curve(HERE, ELSEWHERE, 100)),
        ("labels", lambda: sl.evaluate(POLICY, HERE, ELSEWHERE)),
        ("pools", lambda: POLICY.select_pools(HERE, moved(GROUPS))),
        ("groups", lambda: GROUPED.select(HERE, groups=moved(GROUPS))),
        ("labels", lambda: sl.Campaign(HERE, ELSEWHERE, TARGET)),
        ("ids", lambda: sl.Campaign(SCORES, LABELS, TARGET).screen(HERE, ids=moved(np.arange(1_000)))),
        ("ids", lambda: sl.Labelling(HERE, TARGET, labels=100, ids=moved(np.arange(1_000)))),
        ("labels", lambda: sl.plan(TARGET, pilot=(HERE, ELSEWHERE))),
        ("groups", lambda: sl.equal_opportunity(HERE > 0.5, moved(GROUPS), 5, {"a": 50, "b": 50})),
    ],
)
def test_every_column_that_is_paired_with_another_has_its_index(name, call):
    with pytest.raises(sl.InvalidInput, match=f"{name}: its pandas index is not that of"):
        call()


def test_one_index_and_columns_without_an_index_are_paired_by_position():
    expected = POLICY.threshold
    index = np.random.default_rng(1).permutation(1_000)
    same = pd.Series(SCORES, index=index), pd.Series(LABELS, index=index)
    mixed = pd.Series(SCORES, index=index), LABELS
    for scores, labels in (
        same,
        mixed,
        (pl.Series(SCORES), pl.Series(LABELS)),
        (SCORES.tolist(), SHUFFLED[::-1]),
    ):
        assert sl.calibrate(scores, labels, TARGET).threshold == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: sl.calibrate(SCORES, LABELS, TARGET, alpha=0.95),
        lambda: sl.calibrate_table(pl.DataFrame({"s": SCORES, "y": LABELS}), score="s", label="y", target=TARGET, alpha=0.95),
        lambda: guarantee_curve(SCORES, LABELS, 100, alpha=0.95),
        lambda: sl.plan(TARGET, base_rate=0.2, auc=0.8, sizes=[300], alpha=0.95),
        lambda: sl.Monitor(POLICY, alpha=0.95),
        lambda: sl.Campaign(SCORES, LABELS, TARGET, alpha=0.95),
        lambda: sl.StopTest(50, 1_000, 0.9, alpha=0.95),
        lambda: sl.Labelling(SCORES, TARGET, labels=100, alpha=0.95),
    ],
)  # fmt: skip
def test_alpha_above_one_half_asks_whether_the_other_way_was_meant(call):
    with pytest.warns(
        UserWarning, match=r"alpha: 0\.95 .* wrong 95% of the time; did you mean 0\.05\?"
    ) as caught:
        call()
    assert {str(each.filename) for each in caught} == {__file__}


def test_a_policy_with_such_an_alpha_says_so_wherever_it_is_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy = sl.calibrate(SCORES, LABELS, TARGET, alpha=0.9)
    assert any("did you mean 0.1?" in each for each in policy.warnings)
    assert "did you mean 0.1?" in policy.describe()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.calibrate(SCORES, LABELS, TARGET, alpha=0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda share: sl.Recall(share),
        lambda share: sl.Precision(share, start=0.1),
        lambda share: sl.NextPool(recall=share),
        lambda share: sl.StopTest(50, 1_000, share),
        lambda share: sl.Monitor(RECALL, audit_rate=share),
        lambda share: sl.Campaign(SCORES, LABELS, TARGET, audit_rate=share),
        lambda share: sl.plan(TARGET, base_rate=share, auc=0.8),
        lambda share: sl.calibrate(SCORES, LABELS, TARGET, alpha=share),
        lambda share: sl.calibrate(SCORES, sl.SampledLabels(LABELS, share, above=0.6), TARGET),
    ],
)
@pytest.mark.parametrize("share", [95, 95.0, "95%", "95 %"])
def test_a_share_in_percent_asks_for_the_share(call, share):
    with pytest.raises(sl.InvalidInput, match=r"Did you mean 0\.95\?"):
        call(share)


@pytest.mark.parametrize("share", [0, -5, 1, 100, 950, float("nan"), float("inf")])
def test_nothing_is_guessed_where_it_is_no_percentage(share):
    with pytest.raises(sl.InvalidInput) as caught:
        sl.Recall(share)
    assert "Did you mean" not in str(caught.value)


def test_two_columns_of_predict_proba_get_the_hint():
    both = np.column_stack([1 - SCORES, SCORES])
    with pytest.raises(
        sl.InvalidInput, match=r"shape \(1000, 2\). The second column of predict_proba is scores\[:, 1\]"
    ):
        sl.calibrate(both, LABELS, TARGET)
    with pytest.raises(sl.InvalidInput, match=r"scores\[:, 1\]"):
        POLICY.select(both)
    with pytest.raises(sl.InvalidInput, match=r"shape \(1000, 3\)\.$"):
        sl.calibrate(np.column_stack([both, SCORES]), LABELS, TARGET)


def test_a_column_of_shape_n_by_1_is_taken():
    for scores, labels in [
        (SCORES[:, None], LABELS[:, None]),
        (pd.DataFrame({"s": SCORES}), pd.DataFrame({"y": LABELS})),
        (SCORES[:, None].astype(object), LABELS[:, None].astype(object)),
    ]:
        assert sl.calibrate(scores, labels, TARGET).threshold == POLICY.threshold
    assert POLICY.select(SCORES[:, None]).sum() == POLICY.select(SCORES).sum()
    by_column = sl.calibrate(SCORES, LABELS, BY_GROUP, groups=sl.Groups(GROUPS[:, None], purpose="test"))
    assert by_column.thresholds == GROUPED.thresholds
