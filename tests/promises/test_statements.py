"""What a policy says of itself is true of the case at hand: counts, ties, seeds, columns, fingerprints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import special, stats

import surelist as sl
from surelist.promises import policy_file
from surelist.promises.promise import Level
from surelist.score_summary import INTERVALS

rng = np.random.default_rng(20)
SCORES = rng.random(3_000)
LABELS = rng.random(3_000) < SCORES**2
TARGET = sl.Expected(5, 100)


# -- the thinning of weights


def bad_case(generator: np.random.Generator, **seed: Any) -> bool:
    """Certified, and false: nobody short of everyone holds what is asked, so any certificate is."""
    n, a, r = 100, 0.2, 0.1691
    bound = 1 / (a + (1 - a) * r)
    labels = generator.random(n) < a
    weights = np.where(labels, bound, r * bound)
    target = sl.Expected(100 * bound * a, 100)
    try:
        sl.calibrate(generator.random(n), labels, target, shift=sl.DensityRatio(weights, bound, **seed))
    except sl.NotCertifiable:
        return False
    return True


@pytest.mark.slow
def test_a_promise_with_weights_is_false_at_most_as_often_as_alpha_says():
    generator, runs = np.random.default_rng(3), 1_500
    false = sum(bad_case(generator) for _ in range(runs))
    assert stats.binom.sf(false - 1, runs, 0.1) > 1e-6, false / runs
    constant = sum(bad_case(generator, seed=0) for _ in range(300))
    assert stats.binom.sf(constant - 1, 300, 0.1) < 1e-6, "a constant seed is what this test is about"


def weighted(**seed: Any) -> sl.Policy:
    return sl.calibrate(SCORES, LABELS, TARGET, shift=sl.DensityRatio(1 - SCORES, 1.0, **seed))


def test_the_seed_of_the_thinning_comes_from_the_system_is_drawn_once_and_recorded(tmp_path):
    first, second = weighted(), weighted()
    assert first.shift is not None
    assert second.shift is not None
    assert first.shift.seed != second.shift.seed
    assert first.shift.seed_from == "system"
    again = weighted(seed=first.shift.seed)
    assert [cutoff.steps for cutoff in again.cutoffs] == [cutoff.steps for cutoff in first.cutoffs]
    first.save(tmp_path / "p.json")
    assert sl.Policy.load(tmp_path / "p.json").shift == first.shift
    assert "3,000 calibration rows and their thinning" in first.promise
    per_pool = sl.calibrate(SCORES, LABELS, sl.PerPool(5, 100), shift=sl.DensityRatio(1 - SCORES, 1.0))
    assert "calibration rows, their thinning and pool together" in per_pool.promise


def test_a_seed_that_was_given_is_said_in_the_conditions():
    (line,) = [each for each in weighted(seed=17).conditions if "given by the caller" in each]
    assert "17" in line
    assert "given by the caller" not in " ".join(weighted().conditions)


def test_conditions_under_weights_do_not_contradict_one_another():
    text = " ".join(weighted().conditions)
    assert "same population" not in text
    assert "density ratio" in text
    assert "same population" in " ".join(sl.calibrate(SCORES, LABELS, TARGET).conditions)


# -- ties


def test_with_ties_the_evidence_says_how_many_were_needed_and_how_many_there_are():
    rounded = np.round(SCORES, 1)
    policy = sl.calibrate(rounded, LABELS, sl.Expected(3, 100))
    cutoff, step = policy.cutoffs[0], policy.cutoffs[0].steps[0]
    found = int((LABELS & (rounded >= step.threshold)).sum())
    assert found == step.reached
    assert step.reached > step.critical_count
    text = policy.describe()
    assert f"{found} of {cutoff.qualified:,} qualified" in text
    assert f"{step.critical_count} were needed" in text
    hashed = sl.calibrate(rounded, LABELS, sl.Expected(3, 100), ties=sl.Hash(range(3_000)))
    assert step.share == pytest.approx((rounded >= step.threshold).mean())
    assert hashed.cutoffs[0].steps[0].share == pytest.approx(step.share_untied)
    assert f"about {100 * round(step.share / step.share_untied - 1, 3):.6g}% longer" in text
    assert "than with ties broken by candidate id" in text
    untied = sl.calibrate(SCORES, LABELS, TARGET)
    assert "longer" not in untied.describe()
    assert "as many as needed" in untied.describe()


def test_the_share_that_a_hash_policy_expects_is_the_share_it_selects():
    rounded = np.round(SCORES, 1)
    ids = [f"c{row}" for row in range(3_000)]
    policy = sl.calibrate(rounded, LABELS, sl.Expected(3, 100), ties=sl.Hash(ids))
    fresh = policy.select(rounded, ids=[f"new {each}" for each in ids]).mean()
    assert policy.cutoffs[0].steps[0].share == pytest.approx(fresh, abs=0.02)


def test_a_hash_policy_does_not_say_that_everyone_at_the_threshold_is_shortlisted():
    rounded = np.round(SCORES, 1)
    policy = sl.calibrate(rounded, LABELS, sl.Expected(3, 100), ties=sl.Hash(range(3_000)))
    text = policy.describe()
    assert "shortlist every score >=" not in text
    assert f"shortlist every score > {policy.cutoffs[0].steps[0].threshold:.10g}, and those at it" in text


# -- the score column


def test_a_policy_shows_its_score_column_with_range_and_auc():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": SCORES, "qualified": LABELS.astype(int)})
    policy = sl.calibrate_table(table, score="age", label="qualified", target=TARGET)
    scores = policy.cutoffs[0].scores
    assert scores is not None
    exact = stats.mannwhitneyu(SCORES[LABELS], SCORES[~LABELS]).statistic / LABELS.sum() / (~LABELS).sum()
    assert scores.auc == pytest.approx(exact, abs=0.002)
    assert (scores.lowest, scores.highest) == (SCORES.min(), SCORES.max())
    assert f"score column 'age': {SCORES.min():.6g} to {SCORES.max():.6g}" in policy.describe()
    assert not policy.warnings


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_the_auc_of_rounded_scores_counts_ties_half(decimals):
    rounded = np.round(SCORES * 100, decimals)
    exact = stats.mannwhitneyu(rounded[LABELS], rounded[~LABELS]).statistic / LABELS.sum() / (~LABELS).sum()
    scores = sl.calibrate(rounded, LABELS, TARGET).cutoffs[0].scores
    assert scores is not None
    assert scores.auc == pytest.approx(exact, abs=0.002)


def test_a_score_that_ranks_the_wrong_way_and_labels_all_alike_are_pointed_out():
    with pytest.warns(sl.ScoreWarning):
        backwards = sl.calibrate(1 - SCORES, LABELS, TARGET)
    assert any("AUC 0.1" in each and "right score column" in each for each in backwards.warnings)
    assert "warning:" in backwards.describe()
    alike = sl.calibrate(SCORES, np.ones(3_000), TARGET)
    assert any("every calibration row is qualified" in each for each in alike.warnings)
    assert alike.cutoffs[0].scores is not None
    assert alike.cutoffs[0].scores.auc is None


# -- what is kept of the scores


@pytest.mark.parametrize(
    "scores", [SCORES, 850 * SCORES, np.exp(30 * SCORES), SCORES - 0.5, np.round(SCORES, 1)]
)
def test_the_sketch_counts_every_row_once_and_its_shares_are_those_of_the_rows(scores):
    policy = sl.calibrate(scores, LABELS, TARGET)
    sketch = policy.cutoffs[0].scores
    assert sketch is not None
    assert sketch.total == 3_000
    assert len(sketch.rows) <= INTERVALS
    for edge, share in zip(*sketch.shares(), strict=True):
        assert share == pytest.approx((scores >= edge).mean())
        assert sketch.share_at_least(edge) == pytest.approx((share, share))
    for threshold in np.quantile(scores, np.linspace(0, 1, 37)):
        low, high = sketch.share_at_least(threshold)
        assert low - 1e-9 <= (scores >= threshold).mean() <= high + 1e-9
    assert sketch.share_at_least(scores.max() + 1) == (0, 0)
    assert sketch.share_at_least(scores.min() - 1) == (1, 1)


def test_a_sketch_that_contradicts_the_counts_is_refused():
    raw = policy_file.to_dict(sl.calibrate(SCORES, LABELS, TARGET))
    change: dict[str, Any]
    for change in (
        {"auc": 1.5},
        {"rows": [1] * len(raw["cutoffs"][0]["scores"]["rows"])},
        {"lowest": 0.5},
        {"highest": 0.5},
        {"scores": raw["cutoffs"][0]["scores"]["scores"][::-1]},
        {"rows": [], "scores": []},
    ):
        wrong = json.loads(json.dumps(raw))
        wrong["cutoffs"][0]["scores"].update(change)
        with pytest.raises(sl.PolicyFileError, match=r"contradicts itself|does not fit the format"):
            sl.Policy.loads(json.dumps(wrong))
    for change in ({"reached": 3}, {"share": 1.2}, {"share_untied": -0.1}):
        wrong = json.loads(json.dumps(raw))
        wrong["cutoffs"][0]["steps"][0].update(change)
        with pytest.raises(sl.PolicyFileError, match=r"contradicts itself|does not fit the format"):
            sl.Policy.loads(json.dumps(wrong))


# -- fingerprints


def fingerprint(scores: Any, labels: Any) -> str:
    cutoff = sl.calibrate(scores, labels, sl.Expected(1, 100)).cutoffs[0]
    assert cutoff.fingerprint is not None
    return cutoff.fingerprint


@pytest.mark.parametrize("scores", [SCORES, np.round(1000 * SCORES), -np.exp(-20 * SCORES), 1e-12 * SCORES])
def test_the_fingerprint_is_that_of_the_multiset_of_scores_and_labels(scores):
    first = fingerprint(scores, LABELS)
    order = np.random.default_rng(21).permutation(3_000)
    assert fingerprint(scores[order], LABELS[order]) == first
    swapped, other = LABELS.copy(), scores.copy()
    one, two = np.flatnonzero(LABELS)[5], np.flatnonzero(~LABELS)[5]
    swapped[[one, two]] = swapped[[two, one]]
    if scores[one] != scores[two]:
        assert fingerprint(scores, swapped) != first
    other[7] = np.nextafter(other[7], 1) if scores is SCORES else other[8]
    assert scores is SCORES or other[7] == scores[7] or fingerprint(other, LABELS) != first
    assert fingerprint(scores[:-1], LABELS[:-1]) != first


def test_two_samples_of_whole_numbers_with_the_same_counts_and_range_are_told_apart():
    generator = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        scores = np.concatenate([[0, 100], generator.integers(0, 101, 198)]).astype(float)
        labels = np.zeros(200, dtype=bool)
        labels[generator.permutation(200)[:40]] = True
        seen.add(fingerprint(scores, labels))
    assert len(seen) == 300


# -- bounds that hold only for a target fixed beforehand


@pytest.mark.parametrize("rule", ["dkw", "simultaneous"])
def test_after_looking_only_the_papers_bound_on_the_excess_is_given(rule):
    bound = sl.calibrate(SCORES, LABELS, TARGET, rule=rule).excess_bound[None]
    assert bound.count is None
    fixed = sl.calibrate(SCORES, LABELS, TARGET).excess_bound[None]
    assert fixed.count is not None
    assert fixed.paper is not None
    assert "more than asked for" not in sl.calibrate(SCORES, LABELS, TARGET, rule=rule).describe()


def test_where_scores_are_tied_the_bound_on_the_excess_counts_all_who_reach_the_threshold():
    rounded = np.round(SCORES, 1)
    tied = sl.calibrate(rounded, LABELS, TARGET)
    hashed = sl.calibrate(rounded, LABELS, TARGET, ties=sl.Hash(range(3_000)))
    assert tied.excess_bound[None].count > 2 * hashed.excess_bound[None].count
    assert tied.excess_bound[None].paper is None
    assert hashed.excess_bound[None].paper is not None


def test_the_count_bound_on_the_excess_is_false_for_some_k_of_a_curve_far_too_often():
    """Why it is not given after looking: of the counts on a curve some lies beyond its bound."""
    generator, runs, n, alpha = np.random.default_rng(8), 400, 300, 0.1
    counts = np.arange(5, 120)
    upper = special.betaincinv(counts, n - counts + 1, 1 - alpha)
    false = 0
    for _ in range(runs):
        gaps = generator.exponential(size=n + 1)
        rates = np.cumsum(gaps)[:-1] / gaps.sum()  # the rate at the c-th largest of n untied scores
        false += bool((rates[counts - 1] > upper).any())
    assert stats.binom.sf(false - 1, runs, 2 * alpha) < 1e-6, false / runs


# -- sentences with numbers


@pytest.mark.parametrize(("n", "k", "m", "share"), [(100, 20, 1_000, 0.12), (10**6, 20, 1_000, 0.5)])
def test_how_many_samples_fail_more_often_than_alpha_is_worked_out_for_the_policy(n, k, m, share):
    target, level = sl.PerPool(k, m), Level(0.1)
    count = target.requirements(n, n, level)[0].count
    assert target.often_above(m, n, count, level.alpha) == pytest.approx(share, abs=0.03)


def test_the_share_of_samples_above_alpha_is_that_of_simulated_samples():
    n, k, m, alpha = 200, 5, 60, 0.1
    target, level = sl.PerPool(k, m), Level(alpha)
    count = target.requirements(n, n, level)[0].count
    rates = np.random.default_rng(2).beta(count, n - count + 1, 20_000)
    above = int((stats.binom.cdf(k - 1, m, rates) > alpha).sum())
    said = target.often_above(m, n, count, level.alpha)
    assert stats.binomtest(above, 20_000, said).pvalue > 1e-6
    policy = sl.calibrate(SCORES[:n], np.ones(n), target)
    assert f"for about {100 * said:.0f}% of samples" in " ".join(policy.conditions)


def test_sidak_with_two_levels_says_how_much_each_part_may_fail():
    groups = np.where(SCORES * 1000 % 1 < 0.5, "a", "b")
    targets = {"a": sl.PerPool(3, 50), "b": sl.PerPool(3, 50)}
    policy = sl.calibrate(
        SCORES, LABELS, targets, rule="pac", groups=sl.Groups(groups, purpose="x", split="sidak")
    )
    each = (1 - 0.9**0.5) / 2
    part = 100 * (1 - (1 - each) ** 2)
    assert part == pytest.approx(5.066, abs=0.001)
    assert policy.promise.count(f"{part:.6g}%") == 2
    assert "50% of which" not in policy.promise
    even = sl.calibrate(SCORES, LABELS, targets, rule="pac", groups=sl.Groups(groups, purpose="x"))
    assert "50% of which" in even.promise
    raw = policy_file.to_dict(policy)
    raw["promise"] = raw["promise"].partition(", and with at most")[0]
    assert sl.Policy.loads(json.dumps(raw)).promise == policy.promise  # worked out, never read


# -- refusals


def test_a_refused_recall_says_how_many_qualified_rows_it_takes_and_nothing_that_recall_does_not_have():
    labels = np.zeros(3_000)
    labels[:10] = 1
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(SCORES, labels, sl.Recall(0.95))
    refused = caught.value
    assert refused.critical_count == 45
    assert refused.rows_needed == pytest.approx(45 * 300, rel=0.01)
    message = str(refused)
    assert "needs 45 qualified calibration rows and 10 of 3,000 are" in message
    assert "smaller k" not in message
    assert "campaign" not in message
    assert "a smaller share" in message


def test_a_refusal_under_weights_counts_the_rows_to_gather_before_the_thinning():
    """Half of the rows are kept, so twice as many are needed as without weights."""
    for groups, target in ((None, sl.Recall(0.999)), (["a"] * 3_000, {"a": sl.Recall(0.999)})):
        asked: Any = {"groups": sl.Groups(groups, purpose="a test")} if groups else {}
        with pytest.raises(sl.NotCertifiable) as plain:
            sl.calibrate(SCORES, LABELS, target, **asked)
        with pytest.raises(sl.NotCertifiable) as caught:
            sl.calibrate(SCORES, LABELS, target, **asked, shift=sl.DensityRatio(np.ones(3_000), 2.0))
        thinned = caught.value
        assert thinned.rows_needed == pytest.approx(2 * plain.value.rows_needed, rel=0.15)
        assert thinned.shortfall.rows_before == 3_000
        assert f"{thinned.rows:,} rows that the thinning kept of 3,000" in str(thinned)
        assert f"About {thinned.rows_needed:,} calibration rows would do, at the shares of" in str(thinned)


def test_where_others_are_qualified_the_label_column_is_not_questioned():
    scores, labels = np.linspace(0, 1, 60), np.arange(60) < 3
    few, both = sl.Expected(5, 100), {"a": sl.Expected(5, 100), "b": sl.Expected(5, 100)}
    groups = np.where(labels, "b", "a")
    with pytest.raises(sl.NotCertifiable, match="None of these rows is qualified") as thinned:
        sl.calibrate(scores, labels, few, shift=sl.DensityRatio(np.where(labels, 0.0, 1.0), 1.0))
    with pytest.raises(sl.NotCertifiable, match="None of these rows is qualified") as of_a:
        sl.calibrate(scores, labels, both, groups=sl.Groups(groups, purpose="a test"))
    assert not any("label column" in str(each.value) for each in (thinned, of_a))


def test_under_weights_the_numbers_of_rows_are_said_to_be_of_those_kept():
    policy = sl.calibrate(SCORES, LABELS, TARGET, shift=sl.DensityRatio(np.ones(3_000), 2.0))
    kept = policy.cutoffs[0].rows
    assert f"weights: counted are the {kept:,} calibration rows that they kept of 3,000" in policy.describe()


@pytest.mark.parametrize("target", [sl.Recall(0.9), sl.Expected(5, 100), sl.PerPool(5, 100)])
def test_a_refusal_without_any_qualified_row_asks_for_the_label_column_not_for_less(target):
    with pytest.raises(sl.NotCertifiable, match="is it the right label column") as caught:
        sl.calibrate(SCORES, np.zeros(3_000), target)
    assert "ask for less" not in str(caught.value)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_the_fewest_qualified_rows_for_a_recall_are_the_smallest_that_certify(share, alpha):
    target, level = sl.Recall(share), Level(alpha)
    fewest = target.fewest_qualified(level)
    assert share**fewest <= alpha * (1 + 1e-9)
    assert fewest == 1 or share ** (fewest - 1) > alpha * (1 - 1e-9)
    assert target.requirements(10**6, fewest, level)[0].count <= fewest
    assert target.requirements(10**6, fewest - 1, level)[0].count > fewest - 1


@pytest.mark.parametrize("target", [sl.PerPool(90, 100), sl.Recall(0.999)])
def test_a_refusal_mentions_campaigns_only_where_there_are_any(target):
    with pytest.raises(sl.NotCertifiable) as caught:
        sl.calibrate(SCORES, LABELS, target)
    assert "campaign" not in str(caught.value)
    with pytest.raises(sl.NotCertifiable, match="campaign"):
        sl.calibrate(SCORES, LABELS, sl.Expected(90, 100))
    for fine in (sl.PerPool(1, 100), sl.Recall(0.9)):
        assert "campaign" not in " ".join(sl.calibrate(SCORES, LABELS, fine).conditions)


def test_a_policy_draws_the_scores_it_keeps(tmp_path):
    pytest.importorskip("matplotlib")
    policy = sl.calibrate(SCORES, LABELS, TARGET)
    axes: Any = policy.plot(path=tmp_path / "scores.png")
    assert (tmp_path / "scores.png").stat().st_size > 1_000
    assert len(axes.lines) == 3  # the curve, the threshold, and the point on it
    step = policy.cutoffs[0].steps[0]
    assert [*axes.lines[2].get_xdata(), *axes.lines[2].get_ydata()] == [step.threshold, step.share]
    bare = replace(policy, cutoffs=(replace(policy.cutoffs[0], scores=None),))
    with pytest.raises(sl.InvalidInput, match="keeps no scores"):
        bare.plot()


# -- targets by group that were estimated


@pytest.mark.parametrize("group_rows", ["own", "all"])
def test_targets_estimated_from_the_calibration_rows_are_refused(group_rows):
    groups = np.where(np.arange(3_000) % 3 == 0, "a", "b")
    sizes = {"a": 34, "b": 66} if group_rows == "own" else {"a": 100, "b": 100}
    targets = sl.equal_opportunity(LABELS, groups, 5, sizes)
    assert sum(each.k for each in targets.values()) == pytest.approx(5)

    def by(names: Any) -> sl.Groups:
        return sl.Groups(names, purpose="x", rows=group_rows)

    with pytest.raises(sl.InvalidInput, match="exactly in proportion to the qualified calibration rows"):
        sl.calibrate(SCORES, LABELS, targets, groups=by(groups))
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"s": SCORES, "y": LABELS.astype(int), "g": groups})
    with pytest.raises(sl.InvalidInput, match="exactly in proportion to the qualified calibration rows"):
        sl.calibrate_table(table.sample(frac=1), score="s", label="y", groups=by("g"), target=targets)
    one_less = np.arange(3_000) != int(
        np.flatnonzero(~LABELS.astype(bool))[0]
    )  # who is not qualified says nothing of targets
    for rows, given in (
        (one_less, targets),
        (slice(None), dict(targets)),
    ):  # a copy forgets where it comes from
        with pytest.raises(sl.InvalidInput, match="exactly in proportion"):
            sl.calibrate(SCORES[rows], LABELS[rows], given, groups=by(groups[rows]))
    assert sl.calibrate(SCORES[:-30], LABELS[:-30], targets, groups=by(groups[:-30])).grouped


def test_targets_that_people_choose_are_not_taken_for_estimates():
    """Three to one, and three qualified rows to one: by chance, since few estimates have three digits."""
    labels, groups = np.arange(400) < 200, np.where(np.arange(400) % 4 == 0, "a", "b")
    for a, b in ((1.5, 4.5), (1.25, 3.75), (10 / 3, 10 / 3)):
        targets = {"a": sl.Expected(a, 100), "b": sl.Expected(b, 100)}
        assert sl.calibrate(np.arange(400.0), labels, targets, groups=sl.Groups(groups, purpose="x")).grouped


def test_an_estimate_that_comes_out_round_is_an_estimate():
    labels, groups = np.arange(400) < 200, np.where(np.arange(400) % 4 == 0, "a", "b")
    targets = sl.equal_opportunity(labels, groups, 10, {"a": 100, "b": 100})
    assert [f"{each.k:g}" for each in targets.values()] == ["2.5", "7.5"]
    for given in (targets, dict(targets)):
        with pytest.raises(sl.InvalidInput, match="exactly in proportion"):
            sl.calibrate(np.arange(400.0), labels, given, groups=sl.Groups(groups, purpose="x"))


def test_pool_sizes_per_group_are_given_not_estimated():
    groups = np.where(SCORES < 0.5, "a", "b")
    with pytest.raises(sl.InvalidInput, match="pool_sizes"):
        sl.equal_opportunity(LABELS, groups, 5, 100)  # type: ignore[arg-type]
    targets = sl.equal_opportunity(LABELS, groups, 5, {"a": 40, "b": 60})
    assert {name: each.pool_size for name, each in targets.items()} == {"a": 40, "b": 60}


def test_the_record_and_the_policy_know_rows_by_the_same_fingerprint(tmp_path):
    from surelist.promises.terms import Roles
    from surelist.workflows import summaries
    from surelist.workflows.source import Source

    path = tmp_path / "past.csv"
    lines = [f"{score!r},{int(label)},x" for score, label in zip(SCORES.tolist(), LABELS, strict=True)]
    path.write_text("\n".join(["s,y,other", *reversed(lines)]))
    found, _ = summaries.rows_at_a_glance(Source(path), Roles("s", "y"))
    assert found == sl.calibrate(SCORES, LABELS, TARGET).cutoffs[0].fingerprint


# -- one of a kind


def test_one_row_one_candidate_one_left_out(tmp_path):
    policy = sl.calibrate([0.5], [1], sl.Expected(0.05, 1))
    assert "on average over pools of 1 candidate;" in policy.promise
    assert policy.promise.endswith("over the draw of the 1 calibration row.")
    left_out = sl.calibrate(SCORES, [None, *LABELS[1:].tolist()], TARGET, missing_labels="unqualified")
    assert "1 calibration row without a label was counted as not qualified." in left_out.conditions


def test_a_withdrawn_policy_speaks_of_the_past():
    policy = sl.calibrate(SCORES, LABELS, TARGET)
    assert "The promise rests on:" in policy.describe()
    assert "qualified more than asked for" in policy.describe()
    described = policy.withdraw("the monitor raised an alarm.").describe()
    assert "The promise rested on:" in described
    assert "qualified more than asked for" not in described


@pytest.mark.parametrize("rule", ["dkw", "simultaneous"])
def test_a_target_chosen_after_looking_is_covered_in_one_calibration_where_random_numbers_are_drawn(rule):
    """Each calibration draws its own: some promise was false in 35 of 100 samples at 10 % when each of 12 targets was
    calibrated eight times with ties broken by hash (simultaneous rule, 200 rows of one score), in 20 with a shift."""
    drawn = {
        "hash": {"ties": sl.Hash(np.arange(3_000))},
        "shift": {"shift": sl.DensityRatio(np.ones(3_000), 2.0, exact=True)},
    }
    sampled = sl.SampledLabels(LABELS.astype(float), probability=1.0)
    said = {
        name: " ".join(sl.calibrate(SCORES, LABELS, TARGET, rule=rule, **given).conditions)
        for name, given in {"plain": {}, **drawn}.items()
    }
    said["drawn labels"] = " ".join(sl.calibrate(SCORES, sampled, TARGET, rule=rule).conditions)
    for name, text in said.items():
        assert "the target may have been chosen after looking" in text
        assert ("to choose among several is not covered" in text) == (name != "plain")


def test_how_often_a_long_run_rate_lies_above_alpha_is_a_bound_where_lists_are_longer_than_their_count():
    """Ties, one cutoff for all groups, other promises of the list: each makes the list longer than the count says."""
    names = np.where(np.arange(3_000) % 2, "x", "y")
    groups = {name: sl.PerPool(each, 50) for name, each in (("x", 1), ("y", 5))}
    plain = sl.calibrate(SCORES, LABELS, sl.PerPool(3, 100))
    longer = [
        sl.calibrate(SCORES.round(1), LABELS, sl.PerPool(3, 100)),
        sl.calibrate(SCORES, LABELS, groups, groups=sl.Groups(names, cutoff="common")),
        sl.calibrate(SCORES, LABELS, [sl.PerPool(3, 100), sl.Recall(0.5)]),
    ]
    said = [next(each for each in one.conditions if "long-run rate" in each) for one in (plain, *longer)]
    assert "for about" in said[0]
    assert all("for at most about" in each for each in said[1:])


def test_the_rows_that_a_list_of_this_pool_rests_on_are_those_above_the_first_candidate_not_listed():
    pool = np.arange(10) / 10
    rows = np.append(SCORES[:300], [0.75, 0.76])  # between the last one listed and the first one not
    labels = np.append(LABELS[:300], [True, True])
    policy = sl.calibrate(rows, labels, sl.ThisList(2), unlabelled=pool)
    count = int((rows > 0.7).sum())
    assert (
        f"of {count} calibration rows that score above the first candidate not listed"
        in policy.describe().replace("\n    ", " ")
    )
    whole = sl.calibrate(rows, labels, sl.ThisList(10), unlabelled=pool)
    assert "of 302 calibration rows are not qualified" in whole.describe().replace("\n    ", " ")


def test_whole_scores_are_on_the_side_of_a_threshold_that_is_printed():
    """Thresholds that lie just above a score were printed as that score: 23 was rejected, "every score < 23" was said."""
    whole, others = np.floor(SCORES * 50), np.floor(np.random.default_rng(2).random(2_000) * 50)
    three = sl.calibrate(whole, LABELS, sl.Triage(0.5, reject=0.7), unlabelled=others)
    last = np.arange(50)[three.triage(np.arange(50)) == "reject"].max()
    assert f"reject every score <= {last}, look" in three.describe()
    assert f"rejected where it is <= {last}" in repr(three)
    budget = sl.calibrate(whole, LABELS, sl.Budget(10, 100), unlabelled=others)
    first = np.arange(50)[budget.select(np.arange(50))].min()
    assert f"shortlist every score > {first - 1}\n" in budget.describe()
    assert f"score > {first - 1};" in repr(budget)
    verdicts = sl.calibrate(SCORES >= 0.4, LABELS, sl.Triage(0.4, reject=0.7), unlabelled=others >= 20)
    assert "accept every score >= 1, reject every score <= 0, look" in verdicts.describe()
    plain = sl.calibrate(whole, LABELS, TARGET)
    assert f"shortlist every score >= {plain.threshold:g}\n" in plain.describe()
