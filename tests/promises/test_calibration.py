"""Calibration against a brute-force reading of the definitions, and its invariances."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import surelist as sl
from surelist import bounds
from surelist.promises.promise import Level


def threshold_by_definition(scores, labels, k, m, alpha):
    """Algorithm 1: the largest observed score t with N(t)/n >= k/m + epsilon; None if there is none."""
    n = len(scores)
    epsilon = math.sqrt(math.log(2 / alpha) / (2 * n))
    best = None
    for t in sorted(set(scores[labels].tolist())):
        reached = sum(1 for s, y in zip(scores, labels, strict=True) if y and s >= t)
        if Fraction(reached, n) - Fraction(k) / Fraction(m) >= Fraction(epsilon):
            best = t
    return best


def random_input(rng):
    n = int(rng.integers(1, 60))
    scores = rng.normal(size=n)
    if rng.random() < 0.6:
        scores = np.round(scores, int(rng.integers(0, 2)))
    labels = rng.random(n) < rng.choice([0.1, 0.5, 0.9, 1.0])
    m = int(rng.integers(1, 200))
    k = int(rng.integers(1, m + 1)) if rng.random() < 0.5 else 1
    alpha = float(rng.choice([0.01, 0.1, 0.5, 0.9]))
    return scores, labels, k, m, alpha


@pytest.mark.slow
def test_dkw_is_algorithm_1_bit_for_bit_on_10000_inputs():
    rng = np.random.default_rng(20220716)
    certified = 0
    for _ in range(10_000):
        scores, labels, k, m, alpha = random_input(rng)
        expected = threshold_by_definition(scores, labels, k, m, alpha)
        try:
            found = sl.calibrate(scores, labels, sl.Expected(k, m), alpha=alpha, rule="dkw").threshold
        except sl.NotCertifiable:
            found = None
        assert found == expected
        certified += found is not None
    assert 1_000 < certified < 9_000  # both outcomes are well represented


@pytest.mark.parametrize("digits", [1, 15])
@pytest.mark.parametrize("rule", ["exact", "dkw", "simultaneous"])
def test_threshold_is_the_cth_largest_qualified_score(rule, digits):
    rng = np.random.default_rng(1)
    scores = np.round(rng.normal(size=700), digits)
    labels = rng.random(700) < 0.4
    count = bounds.critical_count(700, Fraction(1, 20), 0.1, rule)
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), alpha=0.1, rule=rule)
    assert policy.threshold == np.sort(scores[labels])[-count]
    assert policy.cutoffs[0].rows == 700
    np.testing.assert_array_equal(policy.select(scores), scores >= policy.threshold)


def data(n=400, seed=0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    return scores, rng.random(n) < 1 / (1 + np.exp(-scores))


def threshold(scores, labels, **options):
    return sl.calibrate(scores, labels, sl.Expected(5, 100), **options).threshold


def test_permutation_of_rows_changes_nothing():
    scores, labels = data()
    order = np.random.default_rng(1).permutation(len(scores))
    assert threshold(scores, labels) == threshold(scores[order], labels[order])


def test_monotone_change_of_score_moves_the_threshold_along():
    scores, labels = data()
    assert threshold(8 * scores - 16, labels) == 8 * threshold(scores, labels) - 16
    assert threshold(-1000 + 0 * scores, labels) == -1000


def test_scores_of_unqualified_rows_do_not_matter_but_their_number_does():
    scores, labels = data()
    moved = np.where(labels, scores, -7.0)
    assert threshold(scores, labels) == threshold(moved, labels)
    more = np.concatenate([scores, np.full(400, -9.0)])
    assert threshold(more, np.concatenate([labels, np.zeros(400, bool)])) < threshold(scores, labels)


def test_missing_labels_stay_in_as_not_qualified():
    scores, labels = data()
    holes = labels.astype(float)
    holes[[0, 5, 9]] = np.nan
    with pytest.raises(sl.InvalidInput, match="missing label at position 0 \\(3 in all\\)"):
        threshold(scores, holes)
    policy = sl.calibrate(scores, holes, sl.Expected(5, 100), missing_labels="unqualified")
    filled = np.nan_to_num(holes)
    assert policy.threshold == threshold(scores, filled)
    assert policy.cutoffs[0].rows == 400
    assert policy.missing_labels == 3
    assert "3 calibration rows without a label" in " ".join(policy.conditions)


def test_not_certifiable_carries_the_way_out():
    scores = np.arange(100.0)
    labels = scores >= 90
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(scores, labels, sl.Expected(9, 100), alpha=0.1)
    refusal = caught.value
    assert refusal.critical_count == bounds.critical_count(100, 0.09, 0.1) == 14
    assert (refusal.rows, refusal.qualified_available) == (100, 10)
    assert bounds.critical_count(100, refusal.largest_k / 100, 0.1) == 10  # it is certifiable
    assert bounds.critical_count(100, refusal.largest_k * 1.001 / 100, 0.1) == 11  # and no more is
    need = refusal.rows_needed
    assert bounds.critical_count(need, 0.09, 0.1) <= need // 10
    assert bounds.critical_count(need * 9 // 10, 0.09, 0.1) > need * 9 // 100
    for words in ("14", "10 of 100", f"{need:,}", "same rows", "Fresh rows", "simultaneous", "campaign"):
        assert words in str(refusal)


def test_not_certifiable_when_no_number_of_rows_would_do():
    with pytest.raises(sl.NotCertifiable, match="no number of rows would do") as caught:
        sl.calibrate(np.arange(100.0), np.arange(100) < 5, sl.Expected(20, 100))
    assert caught.value.rows_needed is None


@pytest.mark.parametrize("rule", ["exact", "pac", "bernstein"])
def test_per_pool_largest_k_is_the_largest(rule):
    scores, labels = data(200)
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(scores, labels, sl.PerPool(80, 100), rule=rule)
    best = int(caught.value.largest_k)
    sl.calibrate(scores, labels, sl.PerPool(best, 100), rule=rule)
    with pytest.raises(sl.NotCertifiable):
        sl.calibrate(scores, labels, sl.PerPool(best + 1, 100), rule=rule)


@pytest.mark.parametrize("rule", ["exact", "pac", "bernstein"])
def test_range_of_pool_sizes_is_the_single_size_at_every_size(rule):
    scores, labels = data(2_000)
    ranged = sl.calibrate(scores, labels, sl.PerPool(5, (60, 130)), rule=rule)
    steps = ranged.cutoffs[0].steps
    assert len(steps) < 130 - 60 + 2
    for size in range(60, 131):
        single = sl.calibrate(scores, labels, sl.PerPool(5, size), rule=rule)
        if rule == "pac":  # all sizes hold at once, which costs a little
            assert ranged.filter.groups[0].threshold(size).score <= single.threshold
        else:
            assert ranged.filter.groups[0].threshold(size).score == single.threshold
    assert ranged.filter.groups[0].threshold(5_000).score == steps[-1].threshold
    with pytest.raises(sl.InvalidInput, match="pools of 60 or more candidates, got 59"):
        ranged.select(scores[:59])


@pytest.mark.slow
def test_wide_range_of_pool_sizes_is_compact_and_valid():
    """Thousands of sizes: the table stays small, and every size has a threshold at least as low as its own."""
    target, level = sl.PerPool(5, (60, 1_000_000)), Level(0.1)
    steps = target.requirements(100_000, 50_000, level)
    assert len(steps) <= 2_000
    assert steps[-1].count == bounds.pool_critical_count(100_000, 5, 1_000_000, 0.1)
    for size in (60, 61, 77, 1_234, 56_789, 999_999, 1_000_000):
        used = [step for step in steps if step.pool_size <= size][-1].count
        own = bounds.pool_critical_count(100_000, 5, size, 0.1)
        assert own <= used <= 1.02 * own + 1


def test_huge_row_counts_cost_nothing():
    """Rules are formulas in n: a billion rows, or a hostile policy file, must not stall anything."""
    for rule in bounds.RULES:
        assert 0.05 < bounds.critical_count(10**9, 0.05, 0.1, rule) / 10**9 < 0.0502
    assert bounds.critical_count(10**15, 0.05, 0.1, "simultaneous") > 5 * 10**13


@pytest.mark.parametrize(
    "convert", ["list", "float32", "pandas", "nullable", "polars", "pyarrow", "ints", "bools"]
)
def test_kinds_of_columns(convert):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    rng = np.random.default_rng(5)
    scores = rng.integers(0, 50, 300).astype(float)
    labels = (rng.random(300) < 0.5).astype(int)
    made = {
        "list": (scores.tolist(), labels.tolist()),
        "float32": (scores.astype(np.float32), labels.astype(np.int8)),
        "pandas": (pd.Series(scores), pd.Series(labels)),
        "nullable": (pd.Series(scores, dtype="Float64"), pd.Series(labels == 1, dtype="boolean")),
        "polars": (pl.Series(scores), pl.Series(labels == 1)),
        "pyarrow": (pa.chunked_array([scores[:100], scores[100:]]), pa.array(labels)),
        "ints": (scores.astype(np.int32), labels.astype(float)),
        "bools": (scores, labels == 1),
    }[convert]
    assert threshold(*made) == threshold(scores, labels == 1)


def test_float32_pool_is_compared_as_float64():
    policy = sl.calibrate(np.full(100, 0.7), np.ones(100), sl.Expected(5, 100))
    assert not policy.select(np.array([0.7], dtype=np.float32))[0]  # float32 0.7 is 0.699999988
    assert policy.select([0.7])[0]


def test_overflowing_sum_is_not_mistaken_for_infinity():
    scores = np.full(200, 1e308)
    assert threshold(scores, np.ones(200)) == 1e308


def test_dkw_covers_a_target_chosen_after_looking():
    """Every k read off the curve is certified at the same counts as in calibrate."""
    scores, labels = data(1_000)
    for rule in ("dkw", "simultaneous"):
        curve = sl.guarantee_curve(scores, labels, pool_size=100, alpha=0.1, rule=rule)
        for i in (10, 30, 60):
            k = curve.qualified[i]
            policy = sl.calibrate(scores, labels, sl.Expected(k * (1 - 1e-9), 100), alpha=0.1, rule=rule)
            assert policy.threshold >= curve.threshold[i]


def test_equal_opportunity_targets():
    labels = np.array([1] * 30 + [0] * 70 + [1] * 10 + [0] * 90)
    groups = np.array(["a"] * 100 + ["b"] * 100)
    targets = sl.equal_opportunity(labels, groups, k=4, pool_sizes={"a": 30, "b": 20})
    assert {name: each.pool_size for name, each in targets.items()} == {"a": 30, "b": 20}
    assert [each.k for each in targets.values()] == pytest.approx([3, 1], rel=1e-15)
    assert sl.equal_opportunity(labels, groups, k=4, pool_sizes={"a": 3, "b": 20})["a"].k == 3  # everyone
    with pytest.raises(sl.InvalidInput, match=r"at most the pool size, 2\.9"):
        sl.equal_opportunity(labels, groups, k=4, pool_sizes={"a": 2.9, "b": 20})


def test_fingerprint_notices_a_changed_label_or_qualified_score():
    scores, labels = data()

    def mark(s, y):
        return sl.calibrate(s, y, sl.Expected(5, 100)).cutoffs[0].fingerprint

    flipped, moved = labels.copy(), scores.copy()
    flipped[3] = ~flipped[3]
    moved[np.flatnonzero(labels)[0]] += 1e-9
    assert len({mark(scores, labels), mark(scores, flipped), mark(moved, labels)}) == 3


def test_tie_break_lets_exactly_the_critical_count_in():
    """With distinct ids (score, u) has no ties: exactly c qualified calibration rows reach the cutoff."""
    rng = np.random.default_rng(11)
    scores, labels = rng.integers(0, 4, 600), rng.random(600) < 0.4
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), ties=sl.Hash(range(600)))
    step = policy.cutoffs[0].steps[0]
    numbers = np.array(policy.salt.numbers([str(i) for i in range(600)]))
    reached = (scores > step.threshold) | ((scores == step.threshold) & (numbers >= step.tie_break))
    assert np.count_nonzero(reached & labels) == step.critical_count


def test_a_calibration_row_in_the_pool_is_noticed_where_it_matters():
    policy = sl.calibrate(
        np.ones(400), np.arange(400) % 5 == 0, sl.Expected(5, 100), ties=sl.Hash(range(400))
    )
    with pytest.raises(sl.InvalidInput, match="candidate '5' is also a calibration row"):
        policy.select([1.0, 1.0], ids=["new", 5])


def test_of_ids_in_calibration_and_pool_exactly_those_are_noticed_that_the_conditions_name():
    """400 rows at four scores, all of them in the pool again, one at a time."""
    scores, labels = np.arange(400) % 4 / 4, np.arange(400) % 5 < 2
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), ties=sl.Hash(range(400)))
    noticed = []
    for row in range(400):
        try:
            policy.select([scores[row]], ids=[row])
        except sl.InvalidInput:
            noticed.append(row)
    assert noticed == np.flatnonzero((scores == policy.threshold) & labels).tolist()
    assert 0 < len(noticed) < 400
    sentence = (
        "noticed only where a candidate scores exactly at a threshold and was a qualified calibration row"
    )
    assert any(sentence in each for each in policy.conditions)


def test_the_salt_is_drawn_anew_and_never_shown():
    made = [
        sl.calibrate(np.ones(200), np.ones(200), sl.Expected(5, 100), ties=sl.Hash(range(200))) for _ in "ab"
    ]
    assert made[0].salt.key != made[1].salt.key
    assert made[0].salt.key not in repr(made[0])


def test_points_of_the_curve_are_certifiable_as_they_are():
    """k read off the curve, given to calibrate as it is, gives that point's threshold."""
    scores, labels = data(2_000)
    for rule in ("dkw", "simultaneous"):
        curve = sl.guarantee_curve(scores, labels, pool_size=100, alpha=0.1, rule=rule)
        for k, t in zip(curve.qualified, curve.threshold, strict=True):
            if k > 0:
                assert sl.calibrate(scores, labels, sl.Expected(k, 100), alpha=0.1, rule=rule).threshold >= t


@pytest.mark.parametrize("rule", ["exact", "dkw", "simultaneous"])
def test_the_largest_k_named_and_printed_is_certifiable(rule):
    for n, seed in ((80, 1), (300, 2), (1_000, 3)):
        scores, labels = data(n, seed)
        with pytest.raises(sl.NotCertifiable) as caught:
            sl.calibrate(scores, labels, sl.Expected(95, 100), rule=rule)
        refusal = caught.value
        printed = float(str(refusal).split("k = ")[1].split()[0])
        for k in (refusal.largest_k, printed):
            sl.calibrate(scores, labels, sl.Expected(k, 100), rule=rule)
        assert printed <= refusal.largest_k < printed * 1.002


def test_advice_names_only_rules_the_target_has():
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(*data(50), sl.PerPool(90, 100))
    assert "simultaneous" not in str(caught.value)


def test_recall_refuses_missing_labels():
    """Counting them as not qualified would make the share kept look larger than it is."""
    scores, labels = data()
    holes = np.where(scores < 0, np.nan, labels)
    with pytest.raises(sl.InvalidInput, match=r"missing_labels: .* Recall needs them all"):
        sl.calibrate(scores, holes, sl.Recall(0.9), missing_labels="unqualified")


def test_range_of_sizes_by_pac_holds_for_all_sizes_at_once():
    """P(some size's threshold misses its rate) <= alpha1, by the exact crossing recursion."""
    from surelist.bounds.simultaneous import crossing_probability

    for n, k, sizes in ((1_000, 5, (50, 200)), (2_000, 5, (100, 400)), (2_000, 1, (10, 500))):
        target, level = sl.PerPool(k, sizes), Level(0.1, "pac")
        steps = target.requirements(n, n, level)[::-1]
        counts = np.array([step.count for step in steps])
        rates = np.array([bounds.pac_rate(k, step.pool_size, 0.05) for step in steps])
        inside = counts <= n
        assert crossing_probability(n, counts[inside], rates[inside]) <= 0.05


def test_no_excess_bound_where_labels_are_missing():
    """With half the labels missing the list holds about twice what is known: the bound was false every time."""
    scores, labels = data(1_000)
    holes = np.where(np.arange(1_000) % 2, np.nan, labels)
    assert sl.calibrate(scores, labels, sl.Expected(2, 100)).excess_bound
    assert not sl.calibrate(
        scores, holes, sl.Expected(2, 100), missing_labels="unqualified"
    ).excess_bound  # fmt: skip


def test_no_excess_bound_for_overlapping_groups():
    scores, labels = data(1_000)
    everyone = np.ones(1_000, bool)
    targets = {"a": sl.Expected(5, 100), "b": sl.Expected(15, 100)}
    policy = sl.calibrate(
        scores, labels, targets, groups=sl.Groups({"a": everyone, "b": everyone}, purpose="x")
    )
    assert policy.excess_bound == {}


def test_masked_values_are_missing():
    scores, labels = data(100)
    hidden = np.ma.array(labels, mask=np.arange(100) < 3)
    with pytest.raises(sl.InvalidInput, match="missing label at position 0 \\(3 in all\\)"):
        sl.calibrate(scores, hidden, sl.Expected(5, 100))
    policy = sl.calibrate(scores, np.ma.array(labels), sl.Expected(5, 100))
    with pytest.raises(sl.InvalidInput, match="nan at position 0"):
        policy.select(np.ma.array([1.0, 0.9], mask=[True, False]))


def test_thinning_does_not_share_the_users_random_stream():
    """Labels drawn with default_rng(0), thinned with seed 0: the two must be independent."""
    labels = np.random.default_rng(0).random(3_000) < 0.3
    policy = sl.calibrate(
        np.arange(3_000.0), labels, sl.Expected(5, 100), shift=sl.DensityRatio(np.ones(3_000), 2.0)
    )
    assert 0.25 < policy.cutoffs[0].qualified / policy.cutoffs[0].rows < 0.35


def test_numpy_numbers_in_targets_survive_a_file(tmp_path):
    scores, labels = data(1_000)
    for target in (
        sl.PerPool(np.int64(5), np.int32(100)),
        sl.Expected(np.float64(5), np.int64(100)),
        sl.Recall(np.float64(0.9)),
    ):
        sl.calibrate(scores, labels, target).save(tmp_path / "p.json")
        assert sl.Policy.load(tmp_path / "p.json").cutoffs[0].target == target
