"""Whole pools as units, through the public API with fresh randomness, at the points where it is hardest."""

from __future__ import annotations

import contextlib
import json
import warnings
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.filters import ranks_within

pytestmark = pytest.mark.slow


def at_most(failures: int, runs: int, alpha: float) -> None:
    """Fails only where a true rate of alpha would show this many once in a million."""
    assert stats.binom.sf(failures - 1, runs, alpha) > 1e-6, failures / runs


def one_row_each(values):
    """Pools of one qualified row each: V is its score."""
    return np.asarray(values, dtype=float), np.ones(len(values), dtype=bool), np.arange(len(values))


def test_the_next_pool_over_every_order_of_pools():
    """Exchangeable pools: each order of 6 is equally likely; the last one is the next pool."""
    alpha, below, orders = 0.4, 0, 0
    for order in permutations(range(6)):
        scores, labels, pools = one_row_each(order[:-1])
        policy = sl.calibrate(scores, labels, sl.NextPool(k=1), pools=pools, alpha=alpha)
        below += not policy.select([order[-1]]).any()
        orders += 1
    assert below / orders == pytest.approx(2 / 6)  # floor(0.4 * 6) of 6, and not one more


def test_pools_of_any_kind_and_ids_of_any_type():
    scores = np.array([5.0, 1, 9, 3, 8, 2, 7, 7])
    labels = np.array([1, 1, 1, 0, 1, 1, 1, 1])
    names = np.array(["b", "b", "a", "a", "c", "c", "d", "d"])
    by_name = sl.calibrate(scores, labels, sl.NextPool(k=1), pools=names, alpha=0.5)
    by_number = sl.calibrate(
        scores, labels, sl.NextPool(k=1), pools=[40, 40, -7, -7, 10**12, 10**12, 2, 2], alpha=0.5
    )
    assert by_name.threshold == by_number.threshold == 7.0  # V: 5, 9, 8, 7; the second smallest
    assert (
        sl.calibrate(scores, labels, sl.NextPool(k=2), pools=names, alpha=0.7).threshold == 2.0
    )  # -inf, 1, 2, 7
    with pytest.raises(sl.NotCertifiable, match="do not reach it even with everyone listed"):
        sl.calibrate(scores, labels, sl.NextPool(k=2), pools=names, alpha=0.3)


def test_own_recall_counts_in_rationals_and_empty_pools_keep_everything():
    scores = np.arange(20.0)
    labels = np.r_[np.ones(10), np.zeros(10)]
    pools = np.r_[np.zeros(10), np.ones(10)].astype(int)
    policy = sl.calibrate(scores, labels, sl.NextPool(recall=0.7), pools=pools, alpha=0.4)
    assert policy.threshold == 3.0  # ceil(0.7 * 10) = 7 in rationals; 8 in floats
    with pytest.raises(sl.NotCertifiable, match="None of 2 labelled pools"):
        sl.calibrate(scores, np.zeros(20), sl.NextPool(recall=0.7), pools=pools, alpha=0.4)
    top = sl.calibrate(scores, labels, sl.NextPool(recall=0.7), pools=pools, alpha=0.9)
    assert top.threshold == 3.0  # +inf would list nobody: the largest finite one


def test_clustered_pools_keep_their_promise_and_rows_as_units_do_not():
    rng = np.random.default_rng(11)
    runs, alpha, pools_false, rows_false = 400, 0.2, 0, 0
    for _ in range(runs):
        effect = rng.standard_normal(30) * 1.5
        pools = np.repeat(np.arange(30), 20)
        chance = 1 / (1 + np.exp(-(effect[pools] - 0.5)))
        labels = rng.random(600) < chance
        scores = rng.random(600)
        new_scores = rng.random(20)
        new_labels = rng.random(20) < 1 / (1 + np.exp(-(rng.standard_normal() * 1.5 - 0.5)))

        def holds(policy, new_scores=new_scores, new_labels=new_labels):
            return (policy.select(new_scores) & new_labels).sum() >= 3

        with contextlib.suppress(sl.NotCertifiable):
            pools_false += not holds(sl.calibrate(scores, labels, sl.NextPool(k=3), pools=pools, alpha=alpha))
        rows_false += not holds(sl.calibrate(scores, labels, sl.PerPool(3, 20), alpha=alpha))
    at_most(pools_false, runs, alpha)
    assert rows_false / runs > 0.3


def test_the_average_is_false_at_most_alpha_at_the_boundary():
    """E Z is exactly k: every certificate is false. Heavy totals, few pools, fresh numbers every time."""
    rng = np.random.default_rng(5)
    runs, alpha, false = 1500, 0.2, 0
    for _ in range(runs):
        sizes = np.where(rng.random(15) < 0.25, 8, 0) + 1  # 1 or 9 rows, one of each not qualified: mean 2
        pools = np.repeat(np.arange(15), sizes)
        first = np.r_[True, pools[1:] != pools[:-1]]
        try:
            sl.calibrate(np.ones(len(pools)), ~first, sl.PoolAverage(2, spread=3), pools=pools, alpha=alpha)
            false += 1
        except sl.NotCertifiable:
            pass
    at_most(false, runs, alpha)
    assert false / runs > alpha / 2  # the level is used


def test_the_secret_number_alone_certifies_as_often_as_alpha():
    """Every pool holds exactly k: the wealth stays 1, and only the uniform number can certify."""
    pools = np.repeat(np.arange(12), 2)
    runs, alpha, false = 600, 0.2, 0
    for _ in range(runs):
        with contextlib.suppress(sl.NotCertifiable):
            sl.calibrate(np.ones(24), np.ones(24), sl.PoolAverage(2), pools=pools, alpha=alpha)
            false += 1
    at_most(false, runs, alpha)
    assert stats.binom.cdf(false, runs, alpha) > 1e-6


def test_pools_sorted_by_outcome_change_nothing():
    """The order of a table is not to be trusted: the bets are settled in an order of our own."""
    rng = np.random.default_rng(9)
    runs, alpha, false = 800, 0.2, 0
    for _ in range(runs):
        totals = np.sort(np.where(rng.random(20) < 0.3, 5, 0))[::-1]  # mean 1.5
        pools = np.repeat(np.arange(20), totals + 1)
        first = np.r_[True, pools[1:] != pools[:-1]]
        with contextlib.suppress(sl.NotCertifiable):
            sl.calibrate(
                np.ones(len(pools)), ~first, sl.PoolAverage(1.5, spread=1.5), pools=pools, alpha=alpha
            )
            false += 1
    at_most(false, runs, alpha)


def test_values_of_rows_are_false_at_most_alpha_at_the_boundary():
    rng = np.random.default_rng(6)
    runs, alpha, false = 1500, 0.2, 0
    for _ in range(runs):
        values = np.where(rng.random(40) < 0.1, 500.0, 0.0)  # 50 a row on average: 5,000 in pools of 100
        try:
            sl.calibrate(np.ones(40), values, sl.Value(5000, 100), alpha=alpha)
            false += 1
        except sl.NotCertifiable:
            pass
    at_most(false, runs, alpha)


def test_numbers_are_drawn_fresh_once_and_recorded():
    scores, labels, pools = one_row_each(np.arange(60))
    target = sl.PoolAverage(0.5)
    made = [sl.calibrate(scores, labels, target, pools=pools) for _ in range(5)]
    draws = {policy.cutoffs[0].proof.draw for policy in made}  # type: ignore[attr-defined]
    uniforms = {policy.cutoffs[0].proof.uniform for policy in made}  # type: ignore[attr-defined]
    assert len(draws) == len(uniforms) == 5


def test_the_order_of_rows_and_pools_does_not_matter_to_the_next_pool():
    rng = np.random.default_rng(2)
    scores, labels, pools = rng.random(400), rng.random(400) < 0.4, rng.integers(0, 25, 400)
    shuffled = rng.permutation(400)
    for target in (sl.NextPool(k=2), sl.NextPool(recall=0.8), sl.NextPool(k=2, by="rank")):
        a = sl.calibrate(scores, labels, target, pools=pools, alpha=0.3)
        b = sl.calibrate(scores[shuffled], labels[shuffled], target, pools=pools[shuffled], alpha=0.3)
        assert a.threshold == b.threshold


def test_ranks_share_the_best_of_tied_ones():
    ranks = ranks_within(np.array([3.0, 5, 5, 1, 9, 2]), np.array([0, 0, 0, 0, 1, 1]))
    assert (-ranks).tolist() == [3, 1, 1, 4, 1, 2]


def test_lists_by_rank_take_the_best_of_each_pool():
    rng = np.random.default_rng(3)
    pools = np.repeat(np.arange(40), 10)
    level = rng.standard_normal(40)[pools] * 100  # scores comparable within a pool only
    scores = level + rng.random(400)
    labels = rng.random(400) < 0.5
    policy = sl.calibrate(scores, labels, sl.NextPool(k=2, by="rank"), pools=pools, alpha=0.1)
    pool = rng.random(10) - 1e6
    assert policy.select(pool).sum() == -policy.threshold
    assert policy.select(pool)[np.argmax(pool)]
    assert policy.filter.by_rank


@pytest.mark.parametrize("target", [sl.NextPool(k=2), sl.NextPool(recall=0.8), sl.PoolAverage(2, spread=2)])
def test_files_keep_the_promise_and_refuse_an_edited_one(tmp_path, target):
    rng = np.random.default_rng(4)
    scores, labels, pools = rng.random(900), rng.random(900) < 0.4, np.repeat(np.arange(60), 15)
    policy = sl.calibrate(scores, labels, target, pools=pools)
    path = tmp_path / "policy.json"
    policy.save(path)
    assert sl.Policy.load(path) == policy
    said = json.loads(path.read_text())
    assert said["format"] == 1
    proof = said["cutoffs"][0]["proof"]
    for name in ("rank", "short", "pools", "peak", "uniform", "stake"):
        if name in proof:
            wrong = {**proof, name: proof[name] * 0.5 + 20 if name in ("rank", "short", "stake") else 0}
            if name == "peak":  # the largest wealth below the last one
                wrong["peak"] = proof["last"] - 1
            edited = {**said, "cutoffs": [{**said["cutoffs"][0], "proof": wrong}]}
            path.write_text(json.dumps(edited))
            with pytest.raises(sl.PolicyFileError):
                sl.Policy.load(path)


def test_a_warning_where_rows_are_units_and_pools_are_alike():
    rng = np.random.default_rng(8)
    pools = np.repeat(np.arange(50), 40)
    scores = rng.random(2000)
    alike = rng.random(2000) < 1 / (1 + np.exp(-rng.standard_normal(50)[pools] * 1.5 + 1))
    with pytest.warns(sl.PoolWarning, match="instead of 10%.*PoolAverage"):
        sl.calibrate(scores, alike, sl.Expected(5, 100), pools=pools)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.calibrate(scores, rng.random(2000) < 0.3, sl.Expected(5, 100), pools=pools)
        sl.calibrate(scores, alike, sl.PoolAverage(2), pools=pools)


@pytest.mark.parametrize(("keywords", "message"), [
    ({}, "pass pools="),
    ({"pools": [1, 2]}, "expected 4 values"),
    ({"pools": [1, 1, 2, None]}, "missing pool at position 3"),
    ({"pools": [1, 1, 2, 2], "unlabelled": [1.0]}, "unlabelled"),
    ({"pools": [1, 1, 2, 2], "rule": "bernstein"}, "rule"),
    ({"pools": [1, 1, 2, 2], "ties": sl.Hash([1, 2, 3, 4])}, "ties"),
    ({"pools": [1, 1, 2, 2], "shift": sl.DensityRatio([1, 1, 1, 1.0], 2.0)}, "shift"),
    ({"pools": [1, 1, 2, 2], "missing_labels": "unqualified"}, "1 label, and NextPool needs them all"),
])  # fmt: skip
def test_what_is_missing_is_said(keywords, message):
    labels = [1, None, 1, 1] if "missing_labels" in keywords else [1, 0, 1, 1]
    target = sl.NextPool(recall=0.5) if "missing_labels" in keywords else sl.NextPool(k=1)
    with pytest.raises(sl.InvalidInput, match=message):
        sl.calibrate([1.0, 2, 3, 4], labels, target, **keywords)


def test_a_refusal_of_weights_for_whole_pools_comes_before_any_draw():
    """With ratios of one in a million hardly a row would be kept, and that would be another refusal."""
    with pytest.raises(sl.InvalidInput, match="NextPool and a known shift have no proof together"):
        sl.calibrate(
            [1.0, 2, 3, 4],
            [1, 0, 1, 1],
            sl.NextPool(k=1),
            pools=[1, 1, 2, 2],
            shift=sl.DensityRatio([1e-6] * 4, 1.0),
        )


def test_too_few_pools_say_how_many():
    scores, labels, pools = one_row_each(np.arange(5))
    with pytest.raises(sl.NotCertifiable, match="this alpha needs 9") as refused:
        sl.calibrate(scores, labels, sl.NextPool(k=1), pools=pools)
    assert "Trying again on the same rows" in str(refused.value)


@pytest.mark.parametrize("make", [
    lambda: sl.NextPool(), lambda: sl.NextPool(k=2, recall=0.5), lambda: sl.NextPool(recall=1.5),
    lambda: sl.NextPool(recall=True), lambda: sl.NextPool(k=2, by="size"),
    lambda: sl.PoolAverage(5, spread=-1), lambda: sl.Value(5, 100, spread=0), lambda: sl.PoolAverage(5, of="money"),
    lambda: sl.Precision(1.0), lambda: sl.Precision(0.5, start=0), lambda: sl.Budget(10, 10), lambda: sl.Budget(0, 10),
])  # fmt: skip
def test_targets_refuse_what_makes_no_sense(make):
    with pytest.raises(sl.InvalidInput):
        make()
