"""Sampled labels, precision, budgets, the best of several, several promises, the rank chain: attacked.

Fresh randomness, populations at the boundary where a certificate is false, and the ways people get it wrong.
"""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.examples import population
from surelist.promises.kinds.precision import FixedSequence

pytestmark = pytest.mark.slow


def at_most(failures: int, runs: int, alpha: float) -> None:
    """Fails only where a true rate of alpha would show this many once in a million."""
    assert stats.binom.sf(failures - 1, runs, alpha) > 1e-6, failures / runs


def kept(policy: sl.Policy, path) -> sl.Policy:
    policy.save(path)
    again = sl.Policy.load(path)
    assert again == policy
    return again


def audited_rows(rng, n, top, below, rate, edge=0.5):
    """Qualified shares just short of the target, split between both sides of the edge."""
    kind = rng.random(n)
    scores = np.where(kind < top, 0.9, np.where(kind < top + below, 0.2, np.where(kind < 0.6, 0.1, 0.8)))
    labels = (kind < top + below).astype(float)
    labels[(scores < edge) & (rng.random(n) >= rate)] = np.nan
    return scores, labels


@pytest.mark.parametrize(("top", "below"), [(0.0, 0.1), (0.05, 0.05), (0.09, 0.01), (0.1, 0.0)])
def test_audited_labels_are_false_at_most_alpha_at_every_split(top, below):
    rng = np.random.default_rng(1)
    runs, alpha, false = 500, 0.2, 0
    for _ in range(runs):
        scores, labels = audited_rows(rng, 120, top - 1e-9, below, 0.3)
        with suppress(sl.NotCertifiable):
            policy = sl.calibrate(
                scores,
                sl.SampledLabels(labels, probability=0.3, above=0.5),
                sl.Expected(10, 100),
                alpha=alpha,
            )
            false += policy.threshold > 0.1  # only a list with everyone would do
    at_most(false, runs, alpha)


def test_thinned_labels_are_false_at_most_alpha():
    rng = np.random.default_rng(2)
    runs, alpha, false = 600, 0.2, 0
    for _ in range(runs):
        rates = rng.choice([0.3, 0.6, 1.0], 150)
        labels = (rng.random(150) < 0.1).astype(float)
        labels[rng.random(150) >= rates] = np.nan
        with suppress(sl.NotCertifiable):
            sampled = sl.SampledLabels(labels, probability=rates, lowest_rate=0.3)
            sl.calibrate(np.ones(150), sampled, sl.Expected(10 + 1e-9, 100), alpha=alpha)
            false += 1
    at_most(false, runs, alpha)


def test_below_the_lowest_score_no_label_is_needed_and_nothing_certified():
    rng = np.random.default_rng(3)
    scores = rng.random(4000)
    labels = np.where(scores >= 0.5, (rng.random(4000) < scores).astype(float), np.nan)
    sampled = sl.SampledLabels(
        labels, probability=np.where(scores >= 0.5, 1.0, 0.0), lowest_rate=1.0, lowest_score=0.5
    )
    policy = sl.calibrate(scores, sampled, sl.Expected(20, 100))
    assert policy.threshold >= 0.5
    assert policy.cutoffs[0].rows == 4000  # rows below stay in
    with pytest.raises(sl.NotCertifiable):
        sl.calibrate(scores, sampled, sl.Expected(45, 100))
    with pytest.raises(sl.InvalidInput, match="lowest_score"):
        sl.calibrate(scores, sampled, sl.Recall(0.5))


def test_sampled_labels_say_what_they_need(tmp_path):
    four, labels = [1.0, 2, 3, 4], [1, None, 0, 1]
    for sampled, target, message in [
        (sl.SampledLabels(labels, probability=[0.5, 1, 1, 1]), sl.Expected(1, 4), "lowest_rate"),
        (
            sl.SampledLabels(labels, probability=[0.1, 1, 1, 1], lowest_rate=0.2),
            sl.Expected(1, 4),
            "at position 0",
        ),
        (sl.SampledLabels(labels, probability=2.0, lowest_rate=0.2), sl.Expected(1, 4), "probability"),
        (
            sl.SampledLabels([1, 2, 0, 1], probability=0.5),
            sl.Expected(1, 4),
            "got 2 at position 1|got 2.0 at position 1",
        ),
        (
            sl.SampledLabels(labels, probability=0.5, above=2.5),
            sl.Recall(0.5),
            "audited below it",
        ),
    ]:
        with pytest.raises(sl.InvalidInput, match=message):
            sl.calibrate(four, sampled, target)
    with pytest.raises(sl.InvalidInput, match="one rate"):
        sl.SampledLabels(labels, probability=[0.5, 1, 1, 1], above=2.5)
    rng = np.random.default_rng(4)
    scores, truth = population(rng, 2000)
    drawn = np.where((scores >= 0.6) | (rng.random(2000) < 0.2), truth, np.nan)
    policy = sl.calibrate(scores, sl.SampledLabels(drawn, probability=0.2, above=0.6), sl.Expected(5, 100))
    kept(policy, tmp_path / "p.json")
    thinned = sl.calibrate(scores, sl.SampledLabels(drawn, probability=np.where(scores >= 0.6, 1, 0.2), lowest_rate=0.2),
                           sl.Expected(5, 100))  # fmt: skip
    assert kept(thinned, tmp_path / "q.json").thinning is not None
    said = json.loads((tmp_path / "p.json").read_text())
    said["cutoffs"][0]["proof"]["above"] += 5
    said["cutoffs"][0]["qualified"] += 5
    said["cutoffs"][0]["proof"]["needed"] = 0
    (tmp_path / "p.json").write_text(json.dumps(said))
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.load(tmp_path / "p.json")


def test_precision_is_false_at_most_alpha_where_it_first_falls_short():
    """Junk on top, then good: precision is not monotone, and the first list that falls short decides."""
    rng = np.random.default_rng(5)
    runs, alpha, false = 500, 0.2, 0
    for _ in range(runs):
        scores, unlabelled = rng.random(200), rng.random(400)
        labels = rng.random(200) < np.where(scores > 0.9, 0.49, np.where(scores > 0.5, 0.5, 0.2))
        with suppress(sl.NotCertifiable):
            sl.calibrate(scores, labels, sl.Precision(0.5, start=0.1), unlabelled=unlabelled, alpha=alpha)
            false += 1  # no list that starts with the best tenth is half qualified
    at_most(false, runs, alpha)


def test_where_first_lists_are_tied_the_proof_says_where_its_own_began(tmp_path):
    others = np.append(np.ones(60), np.linspace(0.9, 0, 940))
    scores = np.append(np.ones(60), np.linspace(0.8999, 0.0001, 940))
    rows = np.arange(1_000)
    labels = np.where(rows < 60, rows % 2 == 0, rows < 300)  # the best 2 % and 5 % are one list, which fails
    policy = kept(sl.calibrate(scores, labels, sl.Precision(0.6), unlabelled=others), tmp_path / "a")
    proof = policy.cutoffs[0].proof
    assert isinstance(proof, FixedSequence)
    assert proof.start == 0.12


def test_precision_starts_walks_and_files(tmp_path):
    rng = np.random.default_rng(6)
    scores, labels = population(rng, 1000)
    unlabelled, _ = population(rng, 5000)
    planned = kept(
        sl.calibrate(scores, labels, sl.Precision(0.5, start=0.12), unlabelled=unlabelled), tmp_path / "a"
    )
    searched = kept(sl.calibrate(scores, labels, sl.Precision(0.5), unlabelled=unlabelled), tmp_path / "b")
    assert planned.threshold in unlabelled
    assert searched.threshold in unlabelled
    assert planned.threshold not in scores
    with pytest.raises(sl.NotCertifiable, match="start where the list is surer"):
        sl.calibrate(scores, labels, sl.Precision(0.99, start=0.5), unlabelled=unlabelled)
    with pytest.raises(sl.InvalidInput, match="unlabelled"):
        sl.calibrate(scores, labels, sl.Precision(0.5))
    said = json.loads((tmp_path / "a").read_text())
    said["cutoffs"][0]["proof"]["good"] -= 60
    (tmp_path / "a").write_text(json.dumps(said))
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.load(tmp_path / "a")


def test_the_average_false_share_is_another_promise_about_one_pool(tmp_path):
    rng = np.random.default_rng(7)
    shares = []
    for _ in range(300):
        scores, labels = population(rng, 150)
        pool, truth = population(rng, 60)
        with suppress(sl.NotCertifiable):
            listed = sl.calibrate(scores, labels, sl.FalseShare(0.4), unlabelled=pool).select(pool)
            shares.append(1 - truth[listed].mean())
    total = sum(shares) / 300
    assert 0.25 < total <= 0.4 + 4 * np.std(shares) / np.sqrt(300)
    scores, labels = population(rng, 500)
    policy = kept(sl.calibrate(scores, labels, sl.FalseShare(0.4), unlabelled=pool), tmp_path / "p")
    assert policy.select(pool).any()
    assert "says nothing about this list alone" in policy.promise
    with pytest.raises(sl.InvalidInput, match="no other"):
        policy.select(pool + 1)


def test_a_budget_certifies_at_most_the_truth(tmp_path):
    rng = np.random.default_rng(8)
    big, truth = population(rng, 200_000)
    runs, alpha, false, sizes = 300, 0.2, 0, []
    for _ in range(runs):
        scores, labels = population(rng, 150)
        unlabelled, _ = population(rng, 199)
        policy = sl.calibrate(scores, labels, sl.Budget(20, 100), unlabelled=unlabelled, alpha=alpha)
        listed = policy.select(big)
        false += 100 * (listed & truth).mean() < policy.cutoffs[0].proof.k  # type: ignore[attr-defined]
        sizes.append(100 * listed.mean())
    at_most(false, runs, alpha)
    assert false / runs > alpha / 3
    assert np.mean(sizes) <= 20 + 4 * np.std(sizes) / np.sqrt(runs)
    kept(policy, tmp_path / "p")
    with pytest.raises(sl.NotCertifiable, match="unlabelled scores are too few"):
        sl.calibrate(scores, labels, sl.Budget(1, 100), unlabelled=unlabelled[:50])


def test_the_list_of_a_budget_ends_before_the_tie():
    """floor(0.2 * 100) = 20: everyone strictly above the 20th best of 99 scores, so 19 of them."""
    unlabelled = np.arange(99.0)
    policy = sl.calibrate(unlabelled + 0.5, np.ones(99), sl.Budget(20, 100), unlabelled=unlabelled)
    assert policy.select(unlabelled).sum() == 19
    assert policy.select([79.0, np.nextafter(79.0, 80)]).tolist() == [False, True]


def test_the_best_of_several_is_false_at_most_alpha_and_uncorrected_it_is_not(tmp_path):
    """Five scores, each worthless but for its own tenth at the boundary: the choice looks for luck."""
    rng = np.random.default_rng(9)
    runs, alpha, corrected, naive = 250, 0.2, 0, 0
    for _ in range(runs):
        kind = rng.random(150)
        labels = kind < 0.5
        scores = {f"s{i}": np.where((kind >= i / 10) & (kind < (i + 1) / 10), 1.0, 0.0) for i in range(5)}
        target = sl.Expected(10 + 1e-6, 100)
        policy = sl.calibrate(scores, labels, target, alpha=alpha)
        corrected += policy.threshold == 1
        naive += any(
            sl.calibrate(each, labels, target, alpha=alpha).threshold == 1 for each in scores.values()
        )
    at_most(corrected, runs, alpha)
    assert naive / runs > 0.4
    again = kept(policy, tmp_path / "p")
    assert again.choice is not None
    assert (
        again.select({again.choice.chosen: [1.0, 0.5]}).tolist()
        == policy.select({again.choice.chosen: [1.0, 0.5]}).tolist()
    )
    with pytest.raises(sl.InvalidInput, match=again.choice.chosen):
        again.select({"other": [1.0]})
    with pytest.raises(sl.InvalidInput, match=again.choice.chosen):
        again.select([1.0])
    said = json.loads((tmp_path / "p").read_text())
    said["choice"]["scores"] = said["choice"]["scores"][:1]
    (tmp_path / "p").write_text(json.dumps(said))
    with pytest.raises(sl.PolicyFileError):
        sl.Policy.load(tmp_path / "p")


def test_two_promises_share_alpha_and_one_list(tmp_path):
    rng = np.random.default_rng(10)
    scores, labels = population(rng, 700)
    unlabelled, _ = population(rng, 2000)
    both = sl.calibrate(
        scores, labels, [sl.Expected(5, 100), sl.Precision(0.4, start=0.04)], unlabelled=unlabelled
    )
    alone = sl.calibrate(scores, labels, sl.Expected(5, 100), alpha=0.05, unlabelled=unlabelled)
    assert both.threshold <= alone.threshold
    assert both.threshold in unlabelled  # precision holds at lists that passed, and nowhere between
    assert [cutoff.level.alpha for cutoff in both.cutoffs] == [0.05, 0.05]
    assert kept(both, tmp_path / "p").promise.count("at least") == 2
    counts = kept(sl.calibrate(scores, labels, [sl.Recall(0.5), sl.Expected(5, 100)]), tmp_path / "q")
    # counts and recalls share no alpha [theory: two-promises]
    assert counts.threshold == min(
        sl.calibrate(scores, labels, each).threshold for each in (sl.Recall(0.5), sl.Expected(5, 100))
    )
    with pytest.raises(sl.NotCertifiable, match="the other promise"):
        sl.calibrate(
            scores, labels, [sl.Expected(14, 100), sl.Precision(0.8, start=0.01)], unlabelled=unlabelled
        )
    with pytest.raises(
        sl.InvalidInput, match="Budget and several promises of one list have no proof together"
    ):
        sl.calibrate(scores, labels, [sl.Expected(5, 100), sl.Budget(5, 100)], unlabelled=unlabelled)


@pytest.mark.parametrize("rho", [0.1, 0.13, 0.25, 0.6, 1.0])
def test_the_rank_chain_is_false_at_most_alpha_wherever_the_boundary_lies(rho):
    """P(Y = 1, F > t*) is just short of the target at t* = 1 - rho; qualified rows below do not help."""
    rng = np.random.default_rng(11)
    runs, alpha, false = 400, 0.2, 0
    for _ in range(runs):
        scores, unlabelled = rng.random(80), rng.random(160)
        labels = (scores > 1 - rho) & (rng.random(80) < (0.1 - 1e-9) / rho)
        labels |= scores < 1 - rho
        with suppress(sl.NotCertifiable):
            policy = sl.calibrate(scores, labels, sl.Expected(10, 100), unlabelled=unlabelled, alpha=alpha)
            false += policy.threshold > 1 - rho
    at_most(false, runs, alpha)


def test_the_rank_chain_shortens_lists_and_keeps_its_numbers(tmp_path):
    rng = np.random.default_rng(12)
    exact, chain = [], []
    big, _ = population(rng, 50_000)
    for _ in range(40):
        scores, labels = population(rng, 300)
        unlabelled, _ = population(rng, 3000)
        exact.append(sl.calibrate(scores, labels, sl.Expected(5, 100)).select(big).mean())
        policy = sl.calibrate(scores, labels, sl.Expected(5, 100), unlabelled=unlabelled)
        chain.append(policy.select(big).mean())
    assert np.mean(chain) < np.mean(exact)
    kept(policy, tmp_path / "p")
    said = json.loads((tmp_path / "p").read_text())
    for block in said["cutoffs"][0]["proof"]["blocks"]:
        block["intercept"] -= 2
    (tmp_path / "p").write_text(json.dumps(said))
    with pytest.raises(sl.PolicyFileError, match="above alpha"):
        sl.Policy.load(tmp_path / "p")
    few = sl.calibrate(scores, labels, sl.Expected(5, 100), unlabelled=unlabelled[:50])
    assert few.cutoffs[0].proof.kind == "counts"  # fewer scores than rows: the exact rule


def test_unlabelled_scores_that_help_nothing_are_refused():
    with pytest.raises(sl.InvalidInput, match="does not help"):
        sl.calibrate([1.0, 2, 3], [1, 1, 1], sl.Recall(0.5), unlabelled=[1.0])


def test_density_ratios_as_one_value():
    rng = np.random.default_rng(13)
    scores, labels = population(rng, 2000)
    ratio = sl.DensityRatio(np.ones(2000), bound=1.0, exact=True)
    policy = sl.calibrate(scores, labels, sl.Expected(5, 100), shift=ratio)
    assert policy.threshold == sl.calibrate(scores, labels, sl.Expected(5, 100)).threshold
