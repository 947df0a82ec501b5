"""Rows and pools that cannot be meant are refused or warned of: wrong way round, or nothing at all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import surelist as sl

rng = np.random.default_rng(31)
SCORES = rng.random(2_000)
LABELS = rng.random(2_000) < SCORES
TARGET = sl.Expected(5, 100)


def test_a_score_that_ranks_the_wrong_way_warns_once_in_python():
    with pytest.warns(sl.ScoreWarning, match="score lower than the others") as seen:
        policy = sl.calibrate(-SCORES, LABELS, TARGET)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert "score lower than the others" in policy.warnings[0]


def test_a_table_whose_score_ranks_the_wrong_way_warns_once_in_python():
    import pyarrow as pa

    table = pa.table({"score": -SCORES, "qualified": LABELS.astype(int)})
    with pytest.warns(sl.ScoreWarning, match="score lower than the others") as seen:
        sl.calibrate_table(table, score="score", label="qualified", target=TARGET)
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_an_auc_below_one_half_by_chance_is_said_and_no_python_warning():
    rng = np.random.default_rng(8)
    labels = rng.random(2_000) < 0.3
    scores = rng.random(2_000)
    scores[labels] -= 0.02  # three standard deviations of the AUC
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = sl.calibrate(scores, labels, TARGET)
    auc = policy.cutoffs[0].scores.auc
    assert 0.4 < auc < 0.5
    assert "score lower than the others" in policy.warnings[0]


def test_an_empty_pool_is_pointed_out():
    """Pools of random size may be empty, and the promise counts them."""
    policy = sl.calibrate(SCORES, LABELS, TARGET)
    with pytest.warns(sl.PoolWarning, match="the pool is empty") as seen:
        assert policy.select([]).shape == (0,)
    assert seen[0].filename == __file__
    with pytest.warns(sl.PoolWarning, match="the pool is empty"):
        assert policy.check_pool([])[0].warns
