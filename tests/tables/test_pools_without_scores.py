"""A pool in which nobody has a score is still a pool: left out, pools would be chosen by their scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import surelist as sl

POOLS, ALPHA = 20, 0.2
TARGETS = [sl.NextPool(k=1), sl.NextPool(recall=0.9), sl.NextPool(k=1, by="rank")]


def pools(unscored: int) -> pd.DataFrame:
    """Twenty pools of four, the best score of each qualified; nobody of the last ones has a score."""
    rows = pd.DataFrame({"pool": np.repeat([f"p{n:02}" for n in range(POOLS)], 4)})
    at, within = np.divmod(np.arange(len(rows)), 4)
    rows["score"] = np.where(at < POOLS - unscored, (at * 10 + 4 - within) / 1000, np.nan)
    rows["label"] = (within == at % 4).astype("int8")
    return rows


def calibrated(table, target, **options):
    return sl.calibrate_table(
        table, score="score", label="label", pool="pool", target=target, alpha=ALPHA, on_bad_rows="drop",
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=["k", "recall", "rank"])
@pytest.mark.parametrize("unscored", [1, 2, 4])
def test_the_next_pool_may_be_one_without_scores_and_the_level_holds(target, unscored):
    """Each of the twenty pools once as the next one: the exact level of an exchangeable draw."""
    rows, false = pools(unscored), 0
    for name, next_pool in rows.groupby("pool"):
        try:
            policy = calibrated(rows[rows.pool != name], target)
        except sl.NotCertifiable:
            continue
        if next_pool.score.isna().all():
            false += 1  # nobody of it is listed
            continue
        listed = policy.select(next_pool.score)
        false += not (listed & (next_pool.label == 1)).any()
    assert false <= ALPHA * POOLS


def test_pools_without_a_score_are_counted_as_pools_that_reach_nothing(engine):
    rows = pools(2)
    data = {name: [None if each != each else each for each in rows[name]] for name in rows}
    for target in TARGETS[:2]:
        proof = calibrated(engine.table(data), target, **engine.options).cutoffs[0].proof
        assert (proof.pools, proof.short, proof.rank) == (POOLS, 2, 4)
    average = (
        calibrated(engine.table(data), sl.PoolAverage(0.02, spread=0.5), **engine.options).cutoffs[0].proof
    )
    assert average.units == POOLS


def test_more_pools_than_rows_with_a_score_are_refused():
    rows = pd.DataFrame({"pool": range(40), "score": [0.5, np.nan] * 20, "label": 1})
    with pytest.raises(sl.InvalidInput, match="20 of 40 pools have no row with a score"):
        calibrated(rows, sl.NextPool(k=1))


def test_a_row_without_score_and_pool_is_refused():
    rows = pools(2).assign(pool=lambda all_rows: all_rows.pool.where(all_rows.pool != "p19"))
    with pytest.raises(sl.InvalidInput, match="4 rows have no pool"):
        calibrated(rows, sl.NextPool(k=1))


def test_beside_dropped_rows_the_promise_names_whom_it_is_about_and_no_pool_is_said_to_be_there_with_all_of_its_candidates():
    policy = calibrated(pools(2), sl.NextPool(k=1))
    for sentence in (policy.promise, policy.two_lines.what):
        assert sentence.endswith(". It is about candidates who have a score.")
    said = policy.conditions
    assert any("who have a score; one in which nobody has a score counts as a pool" in each for each in said)
    assert not any("with all of its candidates, and" in each for each in said)
    whole = calibrated(pools(0), sl.NextPool(k=1)).conditions
    assert any("is there as a whole, with all of its candidates, and" in each for each in whole)
