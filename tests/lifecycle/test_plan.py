"""Plans: agreement with simulation, smallest n by brute force, honest intervals, refusals."""

import time

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import surelist as sl
from surelist.lifecycle.plan import Binormal
from surelist.lifecycle.planning import smallest_rows, steady_rows
from surelist.lifecycle.pool_plans import _pools_needed
from surelist.promises.promise import Level
from tests.helpers.simulated_pools import DISTANCE

AUC = float(ndtr(DISTANCE / np.sqrt(2)))
TARGET = sl.Expected(5, 100)


def draw(rng, rows):
    labels = rng.random(rows) < 0.19
    return rng.normal(size=rows) + DISTANCE * labels, labels.astype(int)


def at(plan, rows, rule="exact"):
    return next(row for row in plan.table if row.rows == rows and row.rule == rule)


@pytest.fixture(scope="module")
def guess():
    return sl.plan(TARGET, base_rate=0.19, auc=AUC)


def test_reproduces_the_contract_figures(guess):
    """[theory: exact] excess over the oracle, dkw and exact, by n."""
    assert guess.oracle == pytest.approx(6.5, abs=0.01)
    for rows, exact, dkw in [
        (300, 0.55, 2.68),
        (1000, 0.26, 1.17),
        (10_000, 0.07, 0.32),
        (100_000, 0.02, 0.10),
    ]:
        assert at(guess, rows).excess == pytest.approx(exact, abs=0.02)
        assert at(guess, rows, "dkw").excess == pytest.approx(dkw, abs=0.15)
    assert len([row for row in guess.table if row.rule == "exact"]) == 12


@pytest.mark.slow
@pytest.mark.parametrize("rows", [60, 300])
def test_table_agrees_with_calibrating_simulated_samples(rows):
    rng = np.random.default_rng(0)
    sizes, certified, runs = [], 0, 1500
    model = Binormal(0.19, AUC)
    for _ in range(runs):
        scores, labels = draw(rng, rows)
        try:
            t = sl.calibrate(scores, labels, TARGET).threshold
        except sl.NotCertifiable:
            continue
        certified += 1
        sizes.append(100 * float(model.listed(np.asarray([0.19 * ndtr(DISTANCE - t)]))[0]))
    row = at(sl.plan(TARGET, base_rate=0.19, auc=AUC, sizes=[rows]), rows)
    assert row.assurance == pytest.approx(certified / runs, abs=0.03)
    assert row.list_size == pytest.approx(np.mean(sizes), abs=5 * np.std(sizes) / np.sqrt(len(sizes)))


@pytest.mark.parametrize("target", [TARGET, sl.Expected(12, 100), sl.PerPool(4, 80), sl.Recall(0.8)])
@pytest.mark.parametrize("assurance", [0.5, 0.9])
def test_smallest_n_is_the_smallest(target, assurance):
    level = Level(0.1)
    found = smallest_rows(target, level, 0.19, assurance)

    def holds(n):
        if isinstance(target, sl.Recall):
            needed = min(
                q for q in range(1, n + 2) if target.requirements(q, q, level)[0].count <= q or q > n
            )
        else:
            needed = target.requirements(n, n, level)[0].count
        return binom.sf(needed - 1, n, 0.19) >= assurance

    assert holds(found)
    assert not any(holds(n) for n in range(1, found))


@pytest.mark.parametrize(
    "target", [TARGET, sl.Expected(12, 100), sl.Expected(16, 100), sl.PerPool(4, 80), sl.PerPool(2, 30)]
)
@pytest.mark.parametrize("assurance", [0.5, 0.9])
def test_from_the_number_named_on_it_stays_certifiable_with_that_probability(target, assurance):
    """34 rows make 5 of 100 certifiable with 90 %, and 36 rows with 84 %: 40 and more always do."""
    level = Level(0.1)
    found = steady_rows(target, level, 0.19, assurance)

    def holds(n):
        return binom.sf(target.requirements(n, n, level)[0].count - 1, n, 0.19) >= assurance

    assert not holds(found - 1)
    assert all(holds(n) for n in range(found, 2 * found + 200))
    if target == TARGET and assurance == 0.9:
        assert smallest_rows(target, level, 0.19, assurance) == 34
        assert not holds(36)
        assert found == 40
        assert (
            "40 or more make it certifiable with probability 90%"
            in sl.plan(TARGET, base_rate=0.19, auc=AUC).recommendation()
        )


def test_from_the_number_of_pools_named_on_it_stays_certifiable():
    for never in (0.01, 0.03):
        half, sure = _pools_needed(0.1, never)
        for each, assurance in ((half, 0.5), (sure, 0.9)):
            chances = [binom.cdf((m + 1) // 10 - 1, m, never) for m in range(1, 1000)]
            assert chances[each.rows - 2] < assurance
            assert min(chances[each.rows - 1 :]) >= assurance


def test_targets_beyond_the_qualified_there_are():
    plan = sl.plan(sl.Expected(25, 100), base_rate=0.19, auc=0.8)
    assert np.isnan(plan.oracle)
    assert plan.needs(0.5) is None
    assert plan.enough is None
    assert all(row.list_size is None for row in plan.table)
    assert "Not even everyone" in plan.describe()


@pytest.mark.slow
def test_per_pool_and_recall_plans():
    pool = sl.plan(sl.PerPool(5, 100), base_rate=0.19, auc=AUC, sizes=[1000, 10_000])
    assert {row.rule for row in pool.table} == {"exact", "bernstein"}
    assert at(pool, 1000).list_size < at(pool, 1000, "bernstein").list_size
    recall = sl.plan(sl.Recall(0.95), base_rate=0.19, auc=AUC, sizes=[100, 1000])
    assert at(recall, 100).assurance < 0.01
    assert at(recall, 1000).assurance > 0.99
    assert at(recall, 1000).list_size > recall.oracle
    assert "per 100 candidates" in recall.describe()


def test_enough_is_where_a_label_saves_less_than_a_review(guess):
    sizes = [guess.enough, round(1.5 * guess.enough), round(guess.enough / 2), round(0.75 * guess.enough)]
    rows = {
        row.rows: row.list_size for row in sl.plan(TARGET, base_rate=0.19, auc=AUC, sizes=sizes).table[:4]
    }
    assert 100 * (rows[sizes[0]] - rows[sizes[1]]) < sizes[1] - sizes[0]
    assert 100 * (rows[sizes[2]] - rows[sizes[3]]) > sizes[3] - sizes[2]
    more = sl.plan(TARGET, base_rate=0.19, auc=AUC, sizes=[100], pools=10_000)
    assert more.enough > 5 * guess.enough


@pytest.mark.slow
def test_pilot_intervals_are_honest():
    """95 % intervals from pilots of 400 rows: they cover the truth at least 90 % of the time."""
    rng = np.random.default_rng(1)
    truth = at(sl.plan(TARGET, base_rate=0.19, auc=AUC, sizes=[1000]), 1000).list_size
    needs = sl.plan(TARGET, base_rate=0.19, auc=AUC, sizes=[1000]).needs(0.9)
    runs, covered, covered_rows = 150, 0, 0
    for seed in range(runs):
        plan = sl.plan(TARGET, pilot=draw(rng, 400), sizes=[1000], seed=seed)
        low, high = at(plan, 1000).interval
        covered += low <= truth <= high
        fewest, most = next(n.interval for n in plan.needed if n.assurance == 0.9 and n.rule == "exact")
        covered_rows += fewest <= needs <= most
    assert binom.cdf(covered, runs, 0.9) > 1e-6
    assert binom.cdf(covered_rows, runs, 0.95) > 1e-6
    assert covered / runs > 0.88


def test_pilot_is_seeded_and_flagged():
    pilot = draw(np.random.default_rng(2), 500)
    one, two = (sl.plan(TARGET, pilot=pilot, sizes=[300], seed=4) for _ in range(2))
    assert one == two
    assert sl.plan(TARGET, pilot=pilot, sizes=[300], seed=5) != one
    assert "Do not use the pilot rows for calibration" in one.describe()
    said = sl.plan(TARGET, base_rate=0.19, auc=0.8, sizes=[300]).describe()
    assert said.count("Assumption") == 1
    assert "binormal" in said


def test_ties_in_the_pilot_stand_or_fall_together():
    labels = np.asarray([1] * 20 + [0] * 80)
    plan = sl.plan(sl.Expected(5, 100), pilot=(np.zeros(100), labels), sizes=[1000])
    assert plan.oracle == 100
    assert at(plan, 1000).list_size == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give base_rate= and auc="),
        ({"base_rate": 0.2}, "give base_rate= and auc="),
        ({"base_rate": 0.2, "auc": 0.4}, "from 0.5"),
        ({"base_rate": 1.2, "auc": 0.8}, "base_rate"),
        ({"base_rate": 0.2, "auc": 0.8, "pilot": ([1.0], [1])}, "a pilot replaces"),
        ({"pilot": ([1.0, 2.0], [1, 0])}, "at least 10 qualified"),
        ({"pilot": [1.0]}, "scores, labels"),
        ({"base_rate": 0.2, "auc": 0.8, "sizes": [0]}, "sizes"),
        ({"base_rate": 0.2, "auc": 0.8, "pools": 0}, "pools"),
        ({"base_rate": 0.2, "auc": 0.8, "alpha": 1.0}, "alpha"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(sl.InvalidInput, match=message):
        sl.plan(TARGET, **options)


def test_bad_target_and_unknown_assurance(guess):
    with pytest.raises(
        sl.InvalidInput, match=r"expected a promise that can be planned: Expected\(k, pool_size\), "
    ):
        sl.plan(5, base_rate=0.2, auc=0.8)
    with pytest.raises(sl.InvalidInput, match=r"0\.5 and 0\.9"):
        guess.needs(0.7)


def test_picture(guess, tmp_path):
    from surelist.drawing import axes as plots

    plots.save(guess.plot(), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5000
    plots.save(sl.plan(TARGET, pilot=draw(np.random.default_rng(3), 300)).plot(), tmp_path / "pilot.svg")
    assert b"</svg>" in (tmp_path / "pilot.svg").read_bytes()


def test_a_range_of_pool_sizes_costs_no_more_than_its_smallest():
    begun = time.process_time()
    ranged = sl.plan(sl.PerPool(5, (50, 20_000)), base_rate=0.19, auc=AUC)
    assert time.process_time() - begun < 2
    one = sl.plan(sl.PerPool(5, 50), base_rate=0.19, auc=AUC)
    assert (ranged.table, ranged.needed) == (one.table, one.needed)
