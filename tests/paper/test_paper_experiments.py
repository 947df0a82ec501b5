"""One run of an experiment against slow definitions: who takes part, noise, methods, evaluation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from paper import methods, synthetic
from paper.experiments import EXPERIMENTS, fitting_settings, one_run
from paper.screening import Scored, Setup, split, train

SETUP = Setup(train_rows=2000, calibration_rows=3000, pools=50)


@pytest.fixture(scope="module")
def people():
    return synthetic.make(60_000, seed=3)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_fifth_is_qualified_and_the_halves_are_apart(people, grouped):
    halves = split(people, grouped, SETUP, np.random.default_rng(0))
    everyone = np.concatenate([halves.train, halves.calibration, halves.test])
    assert len(np.unique(everyone)) == len(everyone)
    assert abs(len(halves.train) + len(halves.calibration) - len(halves.test)) <= 100
    assert len(halves.test) % SETUP.pool_size == 0
    half = np.concatenate([halves.train, halves.calibration])
    for part in (people.minority, ~people.minority) if grouped else (np.ones(len(people), bool),):
        rest = np.count_nonzero(part & ~people.qualified)
        kept = everyone[part[everyone]]
        assert people.qualified[kept].mean() == pytest.approx(0.2, abs=0.004)
        assert len(kept) == pytest.approx(rest * 1.25, abs=110)  # nobody unqualified is left out
        drawn = people.qualified[half][part[half]]
        assert stats.binomtest(int(drawn.sum()), len(drawn), 0.2).pvalue > 1e-6
    other = split(people, grouped, SETUP, np.random.default_rng(1))
    assert not np.array_equal(np.sort(other.test), np.sort(halves.test))


def test_rare_qualified_people_are_all_kept(people):
    few = np.flatnonzero(people.qualified)[2000:]
    qualified = people.qualified.copy()
    qualified[few] = False
    rare = type(people)(people.features, qualified, people.minority, people.names, "rare")
    halves = split(rare, False, SETUP, np.random.default_rng(0))
    everyone = np.concatenate([halves.train, halves.calibration, halves.test])
    assert rare.qualified[everyone].sum() >= 1980
    assert rare.qualified[everyone].mean() == pytest.approx(0.2, abs=0.005)


def test_the_classifier_is_scikit_learns_pipeline(people):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.arange(10_000)
    reference = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=1000))
    reference.fit(people.features[rows].astype(float), people.qualified[rows])
    others = np.arange(20_000, 30_000)
    expected = reference.predict_proba(people.features[others].astype(float))[:, 1]
    found = train(people, rows).score(people, others)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
    assert (found.qualified == people.qualified[others]).all()


def test_noise_is_beta_on_the_share_asked_for():
    rng = np.random.default_rng(4)
    minority = rng.random(40_000) < 0.3
    before = Scored(np.full(40_000, 2.0), np.zeros(40_000, bool), minority)
    after = before.noisy(0.4, np.random.default_rng(5), minority_only=False).scores
    noise = after[after != 2]
    assert stats.binomtest(len(noise), 40_000, 0.4).pvalue > 1e-6
    assert stats.kstest(noise, stats.beta(1, 4).cdf).pvalue > 1e-6
    only = before.noisy(1.0, rng, minority_only=True).scores
    assert ((only != 2) == minority).all()
    assert before.noisy(0.0, rng, minority_only=False) is before


def slow_average(fitted, pools, member, k):
    """Loops over pools and candidates, chances by the definitions of the bands."""
    found = {}
    for name in [*fitted.bands, *fitted.pool_rules]:
        size = wins = 0.0
        for row, inside in enumerate(np.ones(pools.scores.shape, bool) if member is None else member):
            if name in fitted.pool_rules:
                chance = fitted.pool_rules[name](pools.scores[row][inside], k, None).chance
            else:
                bands = fitted.bands[name]
                chance = [
                    next((c for t, c in zip(bands.thresholds, bands.chances, strict=True) if s >= t), 0.0)
                    for s in pools.scores[row][inside]
                ]
            size += sum(chance)
            wins += sum(c for c, y in zip(chance, pools.qualified[row][inside], strict=True) if y)
        found[name] = (size / len(pools.scores), wins / len(pools.scores))
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_evaluation_against_loops(grouped):
    rng = np.random.default_rng(6)
    scores = np.round(rng.random(4000), 2)
    labels = rng.random(4000) < scores / 2
    fitted = methods.fit(Scored(scores, labels, labels), sl.Expected(5, 100), 0.1)
    fitted.bands["everyone"] = methods.EVERYONE
    shape = (30, 100)
    pool = np.round(rng.random(shape), 2)
    candidates = Scored(pool, rng.random(shape) < pool / 2, rng.random(shape) < 0.4)
    member = candidates.minority if grouped else None
    expected = slow_average(fitted, candidates, member, 2.5)
    found = fitted.average(candidates, 2.5, member)
    assert set(found) == set(expected) == {*methods.METHODS, "everyone"} - {"Oracle"}
    for name, (size, wins) in expected.items():
        assert (found[name].size, found[name].qualified) == pytest.approx((size, wins), abs=1e-9), name


def test_a_refusal_lists_everyone_and_is_recorded():
    scores = np.linspace(0, 1, 200)
    rows = Scored(scores, scores > 0.9, scores > 0.9)
    fitted = methods.fit(rows, sl.Expected(9, 100), 0.1)
    assert {"CSS", "Exact", *methods.UMB} <= fitted.refused
    assert fitted.bands["CSS"] is methods.EVERYONE
    fitted.add_css("blind", rows, sl.Expected(9, 100), 0.1)
    assert "blind" in fitted.refused


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_a_run_is_determined_by_its_numbers(people, name):
    experiment = EXPERIMENTS[name]
    settings = fitting_settings(experiment, people, SETUP)[:2]
    rows = one_run(people, experiment, 3, 7, settings, SETUP)
    assert rows == one_run(people, experiment, 3, 7, settings, SETUP)
    assert rows != one_run(people, experiment, 4, 7, settings, SETUP)
    assert rows != one_run(people, experiment, 3, 8, settings, SETUP)
    alone = one_run(people, experiment, 3, 7, settings[1:], SETUP)  # settings do not disturb each other
    assert alone == [row for row in rows if row.setting == settings[1]]
    oracle = [row for row in rows if row.method == "Oracle"]
    assert all(row.eq == 1 for row in oracle)
    for row in rows:
        assert row.eq == (row.qualified >= row.k - 1e-9)
        assert row.ss >= row.qualified
        assert row.ss_pools == pytest.approx(row.ss, rel=0.5)
    expected = {"all"} if not experiment.grouped else {"majority", "minority", "all"}
    assert {row.group for row in rows} == expected
    if experiment.grouped:
        assert {row.method for row in rows} >= {"CSS (Diversity)", "CSS (No Diversity)"}
        own = [
            row for row in rows if row.group != "all" and row.method == "Exact" and row.setting == settings[0]
        ]
        assert sum(row.k for row in own) == pytest.approx(SETUP.k)


def test_groups_are_certified_as_calibrate_does(people):
    """The thresholds of the diversity run are those of one policy with groups, at alpha/2 each."""
    rng = np.random.default_rng(8)
    scores, labels = rng.random(3000), rng.random(3000) < 0.3
    group = np.where(rng.random(3000) < 0.3, "minority", "majority")
    targets = {"majority": sl.Expected(3.5, 70), "minority": sl.Expected(1.5, 30)}
    for rule, method in (("dkw", "CSS"), ("exact", "Exact")):
        policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(group, "a test"), rule=rule)
        for name, target in targets.items():
            rows = Scored(scores, labels, labels).take(group == name)
            fitted = methods.fit(rows, target, SETUP.group_alpha)
            assert fitted.bands[method].thresholds == (policy.thresholds[name],)
    assert Setup(group_level="each").group_alpha == 0.1
    assert Setup().group_alpha == 0.05


def test_groups_spend_half_of_alpha_each_unless_told_otherwise(people):
    sizes = {}
    for level in ("split", "each"):
        setup = Setup(train_rows=2000, calibration_rows=3000, pools=5, group_level=level)
        rows = one_run(people, EXPERIMENTS["diversity-noise"], 0, 0, (0.4,), setup)
        sizes[level] = {(row.method, row.group): row.ss for row in rows}
    for group in ("majority", "minority"):
        for method in ("CSS (Diversity)", "Exact", "UMB 1"):
            assert sizes["split"][method, group] > sizes["each"][method, group]
        for method in ("CSS (No Diversity)", "Isotonic", "Platt", "Oracle"):
            assert sizes["split"][method, group] == sizes["each"][method, group]


def test_settings_that_do_not_fit_are_left_out_or_refused(people):
    sizes = fitting_settings(EXPERIMENTS["calibration-size"], people, SETUP)
    assert sizes == (1e3, 2e3, 5e3, 1e4)
    assert fitting_settings(EXPERIMENTS["noise"], people, SETUP) == EXPERIMENTS["noise"].settings
    with pytest.raises(sl.InvalidInput, match=r"needs 3,000 calibration rows beside 2,000 for training"):
        fitting_settings(EXPERIMENTS["noise"], people.first(10_000), SETUP)
    with pytest.raises(sl.InvalidInput, match="too few for 2,000 training rows"):
        fitting_settings(EXPERIMENTS["noise"], people.first(3_000), SETUP)


def test_experiments_are_numbered_apart():
    numbers = [experiment.number for experiment in EXPERIMENTS.values()]
    assert len(set(numbers)) == len(numbers)
    for one, other in itertools.pairwise(EXPERIMENTS["diversity-size"].settings):
        assert one < other
