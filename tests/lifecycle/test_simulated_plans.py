"""Plans for precision, a budget and whole pools: agreement with calibrating simulated rows, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

import surelist as sl

DISTANCE = 1.6
AUC = float(ndtr(DISTANCE / np.sqrt(2)))


def draw(rng, rows):
    labels = rng.random(rows) < 0.19
    return rng.normal(size=rows) + DISTANCE * labels, labels


def at(plan, rows):
    return next(row for row in plan.table if row.rows == rows)


def test_a_budget_agrees_with_calibrating():
    rng = np.random.default_rng(0)
    plan = sl.plan(sl.Budget(10, 100), base_rate=0.19, auc=AUC, sizes=[500])
    certified = []
    for _ in range(150):
        others, _ = draw(rng, 5000)
        scores, labels = draw(rng, 500)
        proof: Any = sl.calibrate(scores, labels, sl.Budget(10, 100), unlabelled=others).cutoffs[0].proof
        certified.append(proof.k)
    assert at(plan, 500).list_size == pytest.approx(np.mean(certified), abs=0.2)
    assert "certified" in plan.describe()
    assert "Such a list holds" in plan.describe()


def test_precision_agrees_with_calibrating_and_supplies_the_start():
    rng = np.random.default_rng(0)
    plan = sl.plan(sl.Precision(0.5), base_rate=0.19, auc=AUC, sizes=[500])
    target = sl.Precision(0.5, start=plan)
    assert target.start == plan.start == pytest.approx(plan.oracle / 200, abs=1e-3)
    lists = []
    for _ in range(150):
        others, _ = draw(rng, 5000)
        scores, labels = draw(rng, 500)
        try:
            policy = sl.calibrate(scores, labels, target, unlabelled=others)
        except sl.NotCertifiable:
            continue
        lists.append(100 * float(np.mean(draw(rng, 20_000)[0] >= policy.threshold)))
    row = at(plan, 500)
    assert row.assurance == pytest.approx(len(lists) / 150, abs=0.08)
    assert row.list_size == pytest.approx(np.mean(lists), abs=1.0)


def clustered(rng, pools):
    codes = np.repeat(np.arange(pools), rng.integers(20, 100, pools))
    z = rng.standard_normal(len(codes))
    labels = rng.random(len(codes)) < expit(-2 + 1.8 * z + 0.7 * rng.standard_normal(pools)[codes])
    return z, labels, codes


@pytest.mark.parametrize("target", [sl.NextPool(k=2), sl.NextPool(recall=0.7), sl.PoolAverage(3, spread=3)])
def test_whole_pools_agree_with_calibrating(target):
    rng = np.random.default_rng(4)
    plan = sl.plan(target, pilot=clustered(rng, 1500), sizes=[60])
    judge, _, of = clustered(rng, 500)
    lists, certified = [], 0
    for _ in range(120):
        scores, labels, codes = clustered(rng, 60)
        try:
            policy = sl.calibrate(scores, labels, target, pools=codes)
        except sl.NotCertifiable:
            continue
        certified += 1
        lists.append(float(np.count_nonzero(judge >= policy.threshold)) / (of.max() + 1))
    row = at(plan, 60)
    assert row.assurance == pytest.approx(certified / 120, abs=0.1)
    assert row.list_size == pytest.approx(np.mean(lists), rel=0.08)
    assert any(line.split()[:1] == ["pools"] for line in plan.describe().splitlines())


def test_the_fewest_pools_are_those_that_the_rule_needs():
    pilot = np.tile([3.0, 2.0, 1.0], 40), np.ones(120), np.repeat(np.arange(40), 3)
    assert sl.plan(sl.NextPool(k=1), pilot=pilot).needs(0.9) == 9  # 1/alpha - 1
    assert sl.plan(sl.NextPool(k=1), pilot=pilot, alpha=0.05).needs(0.9) == 19
    assert sl.plan(sl.NextPool(k=4), pilot=pilot).needs(0.9) is None


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        (sl.NextPool(k=3), {"base_rate": 0.2, "auc": 0.8}, "a pilot with pools"),
        (sl.PoolAverage(3), {"pilot": ([1.0], [1])}, "a pilot with pools"),
        ([sl.Expected(5, 100), sl.Precision(0.5)], {"base_rate": 0.2, "auc": 0.8}, "one by one"),
        (sl.PoolAverage(50, of="value"), {"base_rate": 0.2, "auc": 0.8}, "no plan for amounts"),
        (sl.Value(50, 100), {"base_rate": 0.2, "auc": 0.8}, "no plan for amounts"),
        (sl.Precision(0.5), {}, "give base_rate= and auc="),
        (sl.Budget(5, 100), {"base_rate": 0.2, "auc": 0.8, "labelling": True}, "labelling"),
        (sl.Precision(0.5), {"base_rate": 0.2, "auc": 0.8, "labelling": True}, "give collection="),
        (sl.Recall(0.5), {"base_rate": 0.2, "auc": 0.8, "labelling": True}, "give collection="),
        (sl.Expected(5, 100), {"base_rate": 0.2, "auc": 0.8, "collection": 500}, "Recall and Precision"),
        (sl.Recall(0.5), {"base_rate": 0.2, "auc": 0.8, "collection": 0}, "collection"),
    ],
)
def test_what_cannot_be_planned_says_so(target, options, words):
    with pytest.raises(sl.InvalidInput, match=words):
        sl.plan(target, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "labels"), [(sl.Recall(0.8), 400), (sl.Precision(0.6), 300)])
def test_a_collection_agrees_with_labelling(target, labels):
    plan = sl.plan(target, base_rate=0.19, auc=AUC, collection=3000, sizes=[labels])
    rng, lists = np.random.default_rng(0), []
    for _ in range(20):
        scores, truth = draw(rng, 3000)
        work = sl.Labelling(scores, target, labels=labels)
        while len(rows := work.ask()):
            work.tell(rows, truth[rows])
        lists.append(work.listed)
    row = at(plan, labels)
    assert row.assurance == 1
    assert row.list_size == pytest.approx(np.mean(lists), rel=0.25)
    assert (
        f"With {labels} labels: certified in 20 of 20 simulations, with a list of about " in plan.describe()
    )
    assert plan == sl.plan(target, base_rate=0.19, auc=AUC, collection=3000, sizes=[labels])
    assert plan.recommended == labels


@pytest.mark.slow
def test_what_a_collection_allows_at_best():
    plan = sl.plan(sl.Recall(0.95), base_rate=0.02, auc=0.93, collection=11_000, sizes=[1000])
    row = at(plan, 1000)
    assert row.list_size is not None
    assert row.shortest == 5267 < row.list_size < 11_000
    assert plan.oracle < row.list_size
    said = plan.recommendation()
    assert "no rule that ends its list at a score is sure to leave out half of these 11,000" in said
    assert "unless at least 209 of them (1.9%) qualify. With 220 qualified its list has 5,267 at best" in said
    pilot = draw(np.random.default_rng(2), 400)
    assert sl.plan(sl.Recall(0.8), pilot=pilot, collection=3000, sizes=[300]).table[0].assurance > 0.5


@pytest.mark.parametrize("target", [sl.Recall(0.9), sl.Precision(0.9)])
@pytest.mark.parametrize(
    ("size", "labels"),
    [(1, 1), (2, 1), (7, 30), (40, 5), (150, 150), pytest.param(10**8, 120, marks=pytest.mark.slow)],
)
def test_plans_of_collections_of_any_size(target, size, labels):
    (row,) = sl.plan(target, base_rate=0.1, auc=0.9, collection=size, sizes=[labels]).table
    assert row.rows == min(size, labels)
    assert row.list_size is None if row.assurance == 0 else 0 < row.list_size <= size


def test_the_usual_budgets_and_the_picture(tmp_path):
    plan = sl.plan(sl.Precision(0.99), base_rate=0.001, auc=0.6, collection=500)
    assert [row.rows for row in plan.table] == [300, 500]
    assert plan.oracle == 0
    assert "0 of 500 candidates" in plan.describe()
    plan.plot(path=tmp_path / "plan.svg")
