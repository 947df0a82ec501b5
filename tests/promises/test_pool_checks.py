"""Every selection says whether its pool is of the kind the promise is about; it warns, never blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import asdict, replace
from scipy import stats

import surelist as sl
from surelist import score_summary
from surelist.examples import population
from surelist.promises import pool_checks
from surelist.score_summary import PoolCounts, count_scores
from surelist.tables.shortlist import Selection
from tests.helpers.engines import Engine

PAST = population(np.random.default_rng(1), 2000)
POLICY = sl.calibrate(*PAST, sl.Expected(40, 800)).with_columns(score="score")


def warned(checks: Any) -> list[str]:
    return [each.kind for each in checks if each.warns]


def said(checks: Any, kind: str) -> str:
    (message,) = (each.message for each in checks if each.kind == kind)
    return message


def test_a_pool_like_the_calibration_rows_raises_no_warning():
    rng = np.random.default_rng(2)
    for _ in range(200):
        pool, _ = population(rng, 800)
        assert warned(POLICY.check_pool(pool)) == []
    kinds = [each.kind for each in POLICY.check_pool(pool)]
    assert kinds == ["pool size", "share", "range", "drift", "calibration rows"]


def test_scores_multiplied_by_100_are_noticed_and_block_nothing():
    pool, _ = population(np.random.default_rng(3), 800)
    assert POLICY.select(100 * pool).sum() > 700
    checks = POLICY.check_pool(100 * pool)
    assert warned(checks) == ["share", "range", "drift"]
    assert "score outside the range of the calibration rows" in said(checks, "range")


def test_12_candidates_under_a_promise_about_800_hold_0_6_on_average():
    pool, _ = population(np.random.default_rng(4), 12)
    checks = POLICY.check_pool(pool)
    assert warned(checks) == ["pool size"]
    assert said(checks, "pool size") == (
        "The pool has 12 candidates; the promise is about pools of 800: in one of 12 that is at least 0.6 on "
        "average."
    )


@pytest.mark.parametrize("share", [1.0, 0.5, 0.3])
def test_a_pool_with_the_calibration_rows_in_it_is_noticed(share):
    rng = np.random.default_rng(5)
    pool, _ = population(rng, 800)
    again = PAST[0][rng.random(2000) < share]
    checks = POLICY.check_pool(np.concatenate([pool, again]))
    assert warned(checks) == ["calibration rows"]
    assert "take them out" in said(checks, "calibration rows")


@pytest.mark.parametrize("decimals", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [12, 800, 20_000])
def test_rounded_scores_are_not_taken_for_calibration_rows(decimals, size):
    policy = sl.calibrate(PAST[0].round(decimals), PAST[1], sl.Expected(40, 800))
    rng = np.random.default_rng(6)
    for _ in range(20):
        pool, _ = population(rng, size)
        assert "calibration rows" not in warned(policy.check_pool(pool.round(decimals)))


def test_a_shifted_pool_is_noticed():
    pool, _ = population(np.random.default_rng(7), 800)
    checks = POLICY.check_pool(pool**2)
    assert "drift" in warned(checks)
    assert "the largest gap between them" in said(checks, "drift")


def test_shares_and_counts_in_the_sentences_are_those_of_the_arrays():
    pool, _ = population(np.random.default_rng(8), 801)
    checks = POLICY.check_pool(pool)
    listed, before = int((pool >= POLICY.threshold).sum()), (PAST[0] >= POLICY.threshold).mean()
    assert said(checks, "share") == (
        f"{100 * round(listed / 801, 4):.6g}% of 801 candidates are shortlisted; of the calibration "
        f"rows {100 * round(before, 4):.6g}% would be (AUC {POLICY.cutoffs[0].scores.auc:.2f} on them)."
    )
    outside = int(((pool < PAST[0].min()) | (pool > PAST[0].max())).sum())
    assert said(checks, "range").startswith(f"{outside} of 801 candidates score outside")


def test_counts_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(score_summary, "BLOCK", 16)
    rng = np.random.default_rng(9)
    for _ in range(50):
        marks = np.unique(rng.integers(0, 12, 6)).astype(float)
        everyone = rng.integers(-2, 15, rng.integers(1, 40)).astype(float)
        everyone[rng.random(len(everyone)) < 0.1] = np.nan
        among = rng.random(len(everyone)) < 0.7
        counted = count_scores(everyone, marks.tolist(), among)
        scores = everyone[among & ~np.isnan(everyone)]
        assert counted == count_scores(scores, marks.tolist())
        assert counted.candidates == len(scores)
        assert counted.at_least == tuple(int((scores >= mark).sum()) for mark in marks)
        assert counted.above == int((scores > marks[-1]).sum())
        assert counted.equal == int(np.isin(scores, marks).sum())
        assert counted.met == len(np.intersect1d(scores, marks))
        assert counted.outside == int(((scores < marks[0]) | (scores > marks[-1])).sum())


def test_tables_count_as_arrays_do_and_say_the_same(any_engine: Engine):
    scores, _ = population(np.random.default_rng(10), 500)
    scores[:40] = PAST[0][:40]
    pool = {"id": list(range(500)), "score": scores.tolist()}
    done = sl.select_table(any_engine.table(pool), POLICY, **any_engine.options)
    assert done.checks == POLICY.check_pool(scores)
    assert done.to_dict()["checks"] == [asdict(each) for each in done.checks]
    assert done.warnings == tuple(each.message for each in done.checks if each.warns)


def test_groups_are_checked_one_by_one(any_engine: Engine):
    rng = np.random.default_rng(11)
    groups = rng.choice(["a", "b"], 2000)
    target = {"a": sl.Expected(4, 400), "b": sl.Expected(4, 400)}
    policy = sl.calibrate(*PAST, target, groups=sl.Groups(groups, purpose="test")).with_columns(
        score="score", group="group"
    )
    scores, _ = population(rng, 800)
    names = rng.choice(["a", "b"], 800)
    scores[names == "b"] *= 50
    data = {"score": scores.tolist(), "group": names.tolist()}
    done = sl.select_table(any_engine.table(data), policy, **any_engine.options)
    assert {each.group for each in done.checks if each.warns} == {"b"}
    assert done.checks == policy.check_pool(scores, names)


def test_of_many_pools_the_small_ones_are_counted():
    rng = np.random.default_rng(12)
    sizes = [800, 700, 20, 900]
    scores, _ = population(rng, sum(sizes))
    frame = pl.DataFrame({"score": scores, "pool": np.repeat(["p", "q", "r", "s"], sizes)})
    done = sl.select_table(frame, POLICY, pool="pool")
    assert done.warnings == (
        "1 of 4 pools are much smaller than the promised 800; the smallest has 20: in one of 20 that is at "
        "least 1 on average.",
    )


def test_policies_without_scores_get_the_checks_they_allow():
    old = replace(POLICY, cutoffs=tuple(replace(each, scores=None) for each in POLICY.cutoffs))
    pool, _ = population(np.random.default_rng(13), 12)
    assert [each.kind for each in old.check_pool(pool)] == ["pool size"]
    assert pool_checks.marks_of(old) == {}


def test_an_empty_pool_is_pointed_out():
    done = sl.select_table(pl.DataFrame({"score": np.zeros(0)}), POLICY)
    assert done.shortlisted == 0
    assert "in one of 0 that is at least 0 on average" in done.warnings[0]


def test_rows_as_the_api_takes_them_are_checked_too():
    from surelist.workflows import selection

    pool, _ = population(np.random.default_rng(14), 12)
    _, done = selection.select_columns({"score": pool}, POLICY)
    assert warned(done.checks) == ["pool size"]
    assert done.checks == POLICY.check_pool(pool)
    assert Selection is type(done)


def grouped_policy() -> sl.Policy:
    groups = np.random.default_rng(15).choice(["a", "b"], 2000)
    target = {"a": sl.Expected(4, 400), "b": sl.Expected(4, 400)}
    return sl.calibrate(*PAST, target, groups=sl.Groups(groups, purpose="test")).with_columns(
        score="score", group="group"
    )


def ranked_policy() -> sl.Policy:
    pools = np.repeat(np.arange(100), 20)
    made = sl.calibrate(*PAST, sl.NextPool(k=1, by="rank"), pools=pools)
    return made.with_columns(score="score", pool="pool")


@pytest.mark.parametrize("policy", [POLICY, grouped_policy(), ranked_policy()], ids=["all", "groups", "rank"])
def test_many_pools_as_rows_get_the_checks_that_they_get_as_a_table(policy):
    from surelist.workflows import selection

    rng = np.random.default_rng(16)
    scores, _ = population(rng, 900)
    pool = {
        "score": scores,
        "group": rng.choice(["a", "b"], 900),
        "pool": np.repeat([3, 1, 2], [500, 380, 20]),
    }
    columns = {name: each for name, each in pool.items() if name != "group" or policy.grouped}
    _, done = selection.select_columns(columns, policy)
    assert done.checks == sl.select_table(pl.DataFrame(pool), policy, pool="pool").checks
    assert done.checks
    assert not any(each.message.startswith("The pool has") for each in done.checks)


def test_of_many_pools_those_with_few_of_a_group_are_counted():
    rng = np.random.default_rng(17)
    scores, _ = population(rng, 1000)
    names = np.repeat(["a", "b", "a"], [400, 400, 200])
    pools = np.repeat(["p", "q"], [900, 100])
    done = sl.select_table(
        pl.DataFrame({"score": scores, "group": names, "pool": pools}), grouped_policy(), pool="pool"
    )
    sizes = {each.group: each.message for each in done.checks if each.kind == "pool size"}
    assert sizes["a"].startswith(
        "1 of 2 pools of group a are much smaller than the promised 400; the smallest has 100:"
    )
    assert sizes["b"].startswith(
        "1 of 2 pools of group b are much smaller than the promised 400; the smallest has 0:"
    )


def test_a_group_of_a_policy_without_scores_has_its_own_size():
    policy = grouped_policy()
    old = replace(policy, cutoffs=tuple(replace(each, scores=None) for each in policy.cutoffs))
    checks = old.check_pool(population(np.random.default_rng(18), 10)[0], ["a"] * 7 + ["b"] * 3)
    assert [each.message.partition(";")[0] for each in checks] == [
        "The pool has 7 candidates of group a", "The pool has 3 candidates of group b",
    ]  # fmt: skip


@pytest.mark.parametrize("decimals", [1, 2])
def test_the_calibration_rows_themselves_are_noticed_also_where_scores_are_rounded(decimals):
    scores, labels = population(np.random.default_rng(6), 1_000)
    rounded = scores.round(decimals)
    policy = sl.calibrate(rounded, labels, sl.Expected(5, 100))
    noticed = [each for each in policy.check_pool(rounded[::-1]) if each.kind == "calibration rows"]
    assert [each.warns for each in noticed] == [True]
    assert "These seem to be the calibration rows themselves" in noticed[0].message
    for seed in range(20):
        other = population(np.random.default_rng(seed + 100), 1_000)[0].round(decimals)
        assert not [
            each for each in policy.check_pool(other) if each.kind == "calibration rows" and each.warns
        ]
    one_changed = rounded.copy()
    one_changed[0] = rounded.max()
    assert not [
        each for each in policy.check_pool(one_changed) if each.warns and each.kind == "calibration rows"
    ]


def test_nothing_is_said_of_pools_that_are_alike_by_chance():
    """Twelve rows of two scores: another pool of twelve often has the same counts."""
    policy = sl.calibrate([0.5, 0.5, 0.9] * 4, [1] * 12, sl.Expected(1, 100), alpha=0.5)
    assert not [
        each
        for each in policy.check_pool([0.5, 0.5, 0.9] * 4)
        if each.kind == "calibration rows" and each.warns
    ]


@pytest.mark.parametrize("cells", [(2, 1), (3, 3, 2), (1, 4, 2)])
def test_the_chance_of_being_alike_is_the_largest_over_all_laws(cells):
    """Enumerated: no law of the ranges gives these counts a larger probability, and one attains it."""
    rows = sum(cells)
    marks = tuple(float(each) for each in range(len(cells)))
    reached = tuple(sum(cells[at:]) for at in range(len(cells)))
    known = pool_checks._Reference(
        rows, marks, {m: r / rows for m, r in zip(marks, reached, strict=True)}, 0.0
    )
    counted = PoolCounts(rows, reached, 0, 0, 0)
    bound = pool_checks._alike_by_chance(known, counted)
    steps = 20
    grid = [each for each in itertools.product(range(1, steps), repeat=len(cells)) if sum(each) == steps]
    chances = [stats.multinomial.pmf(cells, rows, np.array(each) / steps) for each in grid]
    assert max(chances) <= bound * (1 + 1e-12)
    assert bound == pytest.approx(stats.multinomial.pmf(cells, rows, np.array(cells) / rows))
