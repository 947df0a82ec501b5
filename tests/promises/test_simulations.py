"""Promises that cannot be enumerated: seeded simulations at the hard points.

Each asserts that the number of failures is not in the upper 1e-6 tail of Binomial(runs, alpha):
it cannot flake and can fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.promises.calibrate import Facts, certify
from surelist.promises.evidence import Evidence, RowColumns
from surelist.promises.terms import make_terms

pytestmark = pytest.mark.slow


def not_too_many(failures: int, runs: int, alpha: float) -> None:
    assert stats.binom.sf(failures - 1, runs, alpha) > 1e-6, f"{failures} of {runs} at alpha={alpha}"


def uses_its_budget(failures: int, runs: int, at_least: float) -> None:
    assert stats.binom.cdf(failures, runs, at_least) > 1e-6, f"only {failures} of {runs}"


def runs_of(seed, runs, draw, target, lost, **options):
    """Failures over seeded runs; ``draw`` makes rows, ``lost`` judges a policy."""
    rng = np.random.default_rng(seed)
    failures = 0
    for _ in range(runs):
        scores, labels, extra = draw(rng)
        try:
            policy = sl.calibrate(scores, labels, target, **options, **extra)
        except sl.NotCertifiable:
            continue
        failures += bool(lost(policy))
    return failures


def test_untied_scores_use_the_whole_budget():
    """Uniform scores, P(Y=1, F>=t) = 0.2(1-t): failure iff 0.2(1-t) < 0.05."""
    runs, alpha, n = 4_000, 0.1, 1_000

    def draw(rng):
        return rng.random(n), rng.random(n) < 0.2, {}

    failures = runs_of(
        1, runs, draw, sl.Expected(5, 100), lambda p: 0.2 * (1 - p.threshold) < 0.05, alpha=alpha
    )
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, stats.binom.sf(59, n, 0.05))


@pytest.mark.parametrize("n", [30, 49])
def test_few_rows_and_rare_positives(n):
    """Two qualified in a hundred on average, k=1 of 100: most runs are refused, few are wrong."""
    runs, alpha = 6_000, 0.1

    def draw(rng):
        return rng.random(n), rng.random(n) < 0.02, {}

    failures = runs_of(
        2, runs, draw, sl.Expected(1, 100), lambda p: 0.02 * (1 - p.threshold) < 0.01, alpha=alpha
    )
    not_too_many(failures, runs, alpha)


def test_non_monotone_score_with_heavy_ties():
    """Qualified candidates sit in the middle of the score; five atoms."""
    runs, alpha, n = 4_000, 0.1, 300
    chance = np.array([0.02, 0.30, 0.245, 0.05, 0.004])  # P(Y=1 | atom), atoms equally likely
    above = np.cumsum(chance[::-1])[::-1] / 5

    def draw(rng):
        atom = rng.integers(0, 5, n)
        return atom, rng.random(n) < chance[atom], {}

    failures = runs_of(
        3, runs, draw, sl.Expected(6, 100), lambda p: above[int(p.threshold)] < 0.06, alpha=alpha
    )
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, stats.binom.sf(24, n, 0.0598))  # the boundary lies just below an atom


@pytest.mark.parametrize("split", ["bonferroni", "sidak"])
def test_disjoint_groups_hold_together(split):
    """Both groups at their boundary: P(any group fails) <= alpha, and close to it."""
    runs, alpha = 4_000, 0.2
    targets = {"a": sl.Expected(3, 60), "b": sl.Expected(2, 40)}

    def draw(rng):
        return (
            rng.random(600),
            rng.random(600) < 0.2,
            {"groups": sl.Groups(np.repeat(["a", "b"], 300), purpose="simulation", split=split)},
        )

    def lost(policy):
        grid = np.linspace(0, 1, 4_001)
        both = np.tile(grid, 2)
        listed = policy.select(both, groups=np.repeat(["a", "b"], len(grid))).reshape(2, -1)
        return (0.2 * listed.mean(axis=1) < 0.0499).any()

    failures = runs_of(4, runs, draw, targets, lost, alpha=alpha)
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.12)


def test_overlapping_groups_hold_together():
    """Two groups of 70 % that share 40 % of the rows; shortlisted if any group says so."""
    runs, alpha, n = 3_000, 0.2, 500
    targets = {"x": sl.Expected(3.5, 70), "y": sl.Expected(3.5, 70)}
    grid = np.linspace(0, 1, 2_001)

    def draw(rng):
        kind = rng.choice(3, n, p=[0.3, 0.4, 0.3])  # x only, both, y only
        return (
            rng.random(n),
            rng.random(n) < 0.2,
            {"groups": sl.Groups({"x": kind <= 1, "y": kind >= 1}, purpose="simulation")},
        )

    def lost(policy):
        held = []
        for name in ("x", "y"):
            listed = policy.select(
                grid, groups={"x": np.full(2_001, name == "x"), "y": np.full(2_001, name == "y")}
            )
            held.append(0.2 * listed.mean())
        return min(held) < 0.0499

    failures = runs_of(5, runs, draw, targets, lost, alpha=alpha)
    not_too_many(failures, runs, alpha)


def test_groups_of_unknown_size_use_all_rows():
    """rows="all": rate k_g/m on every row, no group size needed [theory: groups]."""
    runs, alpha, n = 3_000, 0.2, 500
    targets = {"a": sl.Expected(4, 100), "b": sl.Expected(1, 100)}

    def draw(rng):
        groups = np.where(rng.random(n) < 0.8, "a", "b")
        return (
            rng.random(n),
            rng.random(n) < 0.2,
            {"groups": sl.Groups(groups, purpose="simulation", rows="all")},
        )

    def lost(policy):
        t = policy.thresholds
        return 0.8 * 0.2 * (1 - t["a"]) < 0.04 or 0.2 * 0.2 * (1 - t["b"]) < 0.01

    failures = runs_of(6, runs, draw, targets, lost, alpha=alpha)
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.1)


def test_known_shift_is_undone_by_weights():
    """Pool density 2(1-x) against uniform calibration: w = 2(1-x) <= 2; low scores get likelier."""
    runs, alpha, n = 3_000, 0.1, 1_000

    def draw(rng):
        scores = rng.random(n)
        return scores, rng.random(n) < 0.3, {
            "shift": sl.DensityRatio(2 * (1 - scores), 2.0, seed=int(rng.integers(2**31))),
        }  # fmt: skip

    failures = runs_of(
        7, runs, draw, sl.Expected(5, 100), lambda p: 0.3 * (1 - p.threshold) ** 2 < 0.05, alpha=alpha
    )
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.05)


def test_per_pool_at_the_boundary_over_calibration_and_pool():
    """k=5 of 100 in this very pool; untied, so the level is met with equality up to discreteness."""
    runs, alpha, n = 4_000, 0.1, 1_000
    rng = np.random.default_rng(8)
    failures = 0
    for _ in range(runs):
        policy = sl.calibrate(rng.random(n), rng.random(n) < 0.2, sl.PerPool(5, 100), alpha=alpha)
        pool, good = rng.random(100), rng.random(100) < 0.2
        failures += int(np.count_nonzero(policy.select(pool) & good) < 5)
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.08)


@pytest.mark.parametrize("rule", ["pac", "bernstein"])
def test_two_level_rules_bound_the_long_run_of_this_sample(rule):
    """With probability >= 1-alpha1 over calibration, P(pool has < k) <= alpha2."""
    runs, n = 3_000, 1_000

    def draw(rng):
        return rng.random(n), rng.random(n) < 0.3, {}

    def lost(policy):
        return stats.binom.cdf(4, 100, 0.3 * (1 - policy.threshold)) > 0.05

    failures = runs_of(9, runs, draw, sl.PerPool(5, 100), lost, alpha=0.1, rule=rule)
    not_too_many(failures, runs, 0.05)


def test_randomised_ties_keep_the_level_and_split_the_atom():
    """One atom holds everyone: include takes all of it, hash only what is needed."""
    runs, alpha, n = 3_000, 0.1, 400
    rng = np.random.default_rng(10)
    target = sl.Expected(5, 100)
    terms = make_terms(target, alpha=alpha, ties=sl.Hash(()))
    failures, shares = 0, []
    for run in range(runs):
        labels = rng.random(n) < 0.2
        ids = [f"{run}-{i}" for i in range(n)]
        evidence = Evidence(RowColumns(np.ones(n), labels, ids=ids))
        try:
            policy = certify({None: evidence}, terms, Facts())
        except sl.NotCertifiable:
            continue
        share = 1 - policy.cutoffs[0].steps[0].tie_break / 16**13  # of the atom, on average
        failures += 0.2 * share < 0.05
        shares.append(share)
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.06)
    assert 0.25 < np.mean(shares) < 0.4


def test_tie_numbers_are_uniform_and_select_follows_them():
    policy = sl.calibrate(
        np.ones(400), np.arange(400) % 5 == 0, sl.Expected(5, 100), ties=sl.Hash(range(400))
    )
    ids = [f"new-{i}" for i in range(20_000)]
    numbers = np.array(policy.salt.numbers(ids)) / 16**13
    assert stats.kstest(numbers, "uniform").pvalue > 1e-6
    listed = policy.select(np.ones(20_000), ids=ids)
    np.testing.assert_array_equal(listed, numbers * 16**13 >= policy.cutoffs[0].steps[0].tie_break)
    assert policy.select([1.1], ids=["x"])[0]
    assert not policy.select([0.9], ids=["x"])[0]


def test_groups_and_weights_together():
    """Thinned rows, two groups at their boundary: P(any group fails) <= alpha."""
    runs, alpha, n = 1_500, 0.2, 1_000
    targets = {"a": sl.Expected(3, 60), "b": sl.Expected(2, 40)}

    def draw(rng):
        scores = rng.random(n)
        return scores, rng.random(n) < 0.3, {
            "groups": sl.Groups(np.where(rng.random(n) < 0.5, "a", "b"), purpose="simulation"),
            "shift": sl.DensityRatio(2 * (1 - scores), 2.0, seed=int(rng.integers(2**31))),
        }  # fmt: skip

    def lost(policy):
        return any(0.3 * (1 - t) ** 2 < 0.05 for t in policy.thresholds.values())

    failures = runs_of(11, runs, draw, targets, lost, alpha=alpha)
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.1)


@pytest.mark.parametrize("rows", ["own", "all"])
def test_per_pool_targets_by_group(rows):
    """Every pool has its share of each group, at once, with probability >= 1-alpha."""
    runs, alpha, n = 1_500, 0.2, 800
    sizes = {"a": 60, "b": 40} if rows == "own" else {"a": 100, "b": 100}
    targets = {"a": sl.PerPool(3, sizes["a"]), "b": sl.PerPool(1, sizes["b"])}
    rng = np.random.default_rng(12)
    failures = 0
    for _ in range(runs):
        groups = np.where(rng.random(n) < 0.6, "a", "b")
        policy = sl.calibrate(rng.random(n), rng.random(n) < 0.25, targets, alpha=alpha, groups=sl.Groups(groups, purpose="simulation", rows=rows))  # fmt: skip
        pool_groups = (
            np.repeat(["a", "b"], [60, 40]) if rows == "own" else np.where(rng.random(100) < 0.6, "a", "b")
        )
        good = policy.select(rng.random(100), groups=pool_groups) & (rng.random(100) < 0.25)
        failures += np.sum(good & (pool_groups == "a")) < 3 or np.sum(good & (pool_groups == "b")) < 1
    not_too_many(failures, runs, alpha)
    uses_its_budget(failures, runs, 0.08)
