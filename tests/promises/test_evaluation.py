"""A look back: what a policy kept, with exact intervals, and whether that fits what it promised."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import surelist as sl
from surelist.cli import run as command_line
from surelist.examples import population

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def policy() -> sl.Policy:
    scores, labels = population(np.random.default_rng(1), 2000)
    return sl.calibrate(scores, labels, sl.Expected(5, 100))


def test_shares_are_counted_and_intervals_exact(policy):
    scores, labels = population(np.random.default_rng(2), 4000)
    found = sl.evaluate(policy, scores, labels)
    kept, listed = found.kept[0], policy.select(scores)
    assert (kept.listed.count, kept.listed.of) == (listed.sum(), 4000)
    assert (kept.found.count, kept.recall.of, kept.precision.of) == (
        (listed & labels).sum(),
        labels.sum(),
        listed.sum(),
    )
    exact = stats.binomtest(kept.recall.count, kept.recall.of).proportion_ci(0.95, "exact")
    assert (kept.recall.low, kept.recall.high) == pytest.approx((exact.low, exact.high), abs=1e-6)
    assert found.consistent
    assert "Consistent with the promise" in found.describe()


def test_a_broken_promise_is_found_and_a_true_one_hardly_ever_accused(policy):
    rng = np.random.default_rng(3)
    scores, labels = population(rng, 4000)
    broken = sl.evaluate(policy, scores, labels & (rng.random(4000) < 0.4))
    assert not broken.consistent
    assert "speak against" in broken.verdict
    accused = 0
    for _ in range(400):  # exactly what is promised, and no more
        on_list = rng.random(300) < 0.05
        accused += not sl.evaluate(policy, np.where(on_list, 1.0, 0.0), on_list).consistent
    assert stats.binom.sf(accused - 1, 400, 0.05) > 1e-6


def test_pools_are_judged_one_by_one():
    rng = np.random.default_rng(4)
    pools = np.repeat(np.arange(80), 25)
    scores, labels = rng.random(2000), rng.random(2000) < 0.4
    for target in (sl.NextPool(k=3), sl.NextPool(recall=0.8), sl.NextPool(k=3, by="rank"), sl.PerPool(3, 25)):
        made = sl.calibrate(scores, labels, target, pools=pools)
        found = sl.evaluate(
            made, rng.random(1000), rng.random(1000) < 0.4, pools=np.repeat(np.arange(40), 25)
        )
        assert found.pools is not None
        assert found.pools.of == 40
        assert found.consistent is not None  # how often it accuses: test_judging
    made = sl.calibrate(scores, labels, sl.NextPool(k=3), pools=pools)
    worse = sl.evaluate(made, rng.random(1000), rng.random(1000) < 0.1, pools=np.repeat(np.arange(40), 25))
    assert not worse.consistent
    assert "fell short" in worse.verdict
    by_rank = sl.calibrate(scores, labels, sl.NextPool(k=3, by="rank"), pools=pools)
    with pytest.raises(sl.InvalidInput, match="pool by pool"):
        sl.evaluate(by_rank, scores, labels)


def test_groups_and_other_promises_have_their_own_shares():
    rng = np.random.default_rng(5)
    scores, labels = population(rng, 4000)
    sex = np.where(rng.random(4000) < 0.5, "f", "m")
    grouped = sl.calibrate(
        scores,
        labels,
        {"f": sl.Expected(3, 50), "m": sl.Expected(2, 50)},
        groups=sl.Groups(sex, purpose="a test"),
    )
    later, truth = population(rng, 4000)
    found = sl.evaluate(grouped, later, truth, groups=np.where(rng.random(4000) < 0.5, "f", "m"))
    assert [each.group for each in found.kept] == [None, "f", "m"]
    assert sum(each.listed.of for each in found.kept[1:]) == 4000
    unlabelled, _ = population(rng, 4000)
    for target in (sl.Recall(0.7), sl.Precision(0.5, start=0.1), sl.Budget(10, 100)):
        extra = {} if isinstance(target, sl.Recall) else {"unlabelled": unlabelled}
        assert sl.evaluate(sl.calibrate(scores, labels, target, **extra), later, truth).consistent


def test_tables_and_the_command_line_say_the_same(policy, tmp_path):
    rng = np.random.default_rng(6)
    scores, labels = population(rng, 3000)
    table = pd.DataFrame({"score": scores, "qualified": labels.astype(int)})
    table.to_csv(tmp_path / "later.csv", index=False)
    policy.with_columns(score="score", label="qualified").save(tmp_path / "p.json")
    expected = sl.evaluate(policy, scores, labels)
    assert sl.evaluate_table(table, sl.Policy.load(tmp_path / "p.json")) == expected
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert (
            command_line(
                ["evaluate", str(tmp_path / "later.csv"), "--policy", str(tmp_path / "p.json"), "--json"]
            )
            == 0
        )
    assert json.loads(output.getvalue()) == json.loads(json.dumps(expected.to_dict()))
    with pytest.raises(sl.InvalidInput, match="remembers no score"):
        sl.evaluate_table(table, policy)


def test_pools_short_of_an_exact_promise_have_their_exact_law():
    """Of 3 calibration pools the second smallest is the threshold; 2 new ones: every order is equally likely."""
    from itertools import permutations

    chances = {0: 0, 1: 0, 2: 0}
    for order in permutations(range(5)):
        chances[sum(each < sorted(order[:3])[1] for each in order[3:])] += 1
    made = sl.calibrate([1.0, 2, 3], [1, 1, 1], sl.NextPool(k=1), pools=[0, 1, 2], alpha=0.5)
    one = 1 - sl.bounds.pool_tail(3, 1, 2, 2)
    both = 1 - sl.bounds.pool_tail(3, 2, 2, 2)
    assert made.threshold == 2
    assert one == pytest.approx((chances[1] + chances[2]) / 120)
    assert both == pytest.approx(chances[2] / 120)


def test_what_everyone_gets_beside_groups_of_all_rows_is_a_whole_sentence():
    scores, labels = population(np.random.default_rng(6), 2_000)
    names = np.where(np.arange(2_000) % 2, "x", "y")
    targets = {"x": sl.Expected(1, 100), "everyone": sl.Expected(7, 100)}
    groups = sl.Groups(names, rows="all", cutoff="common")
    policy = sl.calibrate(scores, labels, targets, groups=groups)
    verdict = sl.evaluate(policy, scores, labels, groups=names).verdict
    assert "% of all candidates are qualified and listed, 7% are promised" in verdict
