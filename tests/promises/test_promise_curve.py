"""One picture per kind of promise: each point is what the rule certifies there, and the promise lies on its curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

import surelist as sl
from surelist import bounds
from surelist.bounds.pools import EThreshold
from surelist.promises.curve import group_curves, promise_curve
from surelist.promises.evidence import PoolRows
from surelist.promises.kinds.betting import other_numbers
from surelist.promises.sampled import Draw
from surelist.reports.evidence import CurvePoints, OwnCurve, RowsEvidence
from surelist.reports.pictures import promise_chart, promise_charts
from tests.helpers.promise_kinds import GROUPS, KINDS, LABELS, POOLS, SCORES, policy_of

OWN = {
    "recall", "per pool", "per pool, two levels", "per pool of many sizes", "precision", "budget", "next pool",
    "next pool, two levels", "next pool by rank", "recall of the next pool", "expected over whole pools", "value",
    "value over whole pools",
}  # fmt: skip
VALUES = 100 * LABELS.astype(float)


def labels_of(kind):
    return VALUES if kind.startswith("value") else LABELS


def shown_of(**parts):
    return RowsEvidence(0, 100, **{"curves": {}, "bins": [], **parts})


def plain(made):
    parts = {name: list(getattr(made, name)) for name in ("list_size", "value", "threshold")}
    return OwnCurve(**{**asdict(made), **parts})


@pytest.mark.parametrize("kind", KINDS)
def test_which_kinds_have_a_curve_of_their_own(kind):
    policy = policy_of(kind)
    made = promise_curve(SCORES, labels_of(kind), policy, pools=POOLS)
    assert (made is not None) == (kind in OWN)
    if made is None:
        return
    target = policy.cutoffs[0].target
    assert (made.title, made.axis, made.share) == target.certified
    assert made.of_pools == target.whole_pools
    assert (np.diff(made.list_size) > 0).all()
    assert kind == "precision" or (np.diff(made.value) >= 0).all()
    length, promised = made.chosen
    if not policy.by_rank:
        assert length == pytest.approx(made.per * np.mean(policy.thresholds[None] <= SCORES))
    just_longer = made.value[made.list_size >= length - 1e-9]
    assert just_longer[0] >= promised or kind == "precision"  # the list that was chosen carries it
    (shown,) = promise_charts(shown_of(own=plain(made)), policy)
    assert shown.marked
    assert shown.heads[1] == ("Listed of each pool, at most" if policy.by_rank else "Threshold")
    assert not (policy.by_rank and any(row[1].startswith("-") for row in shown.rows))
    assert 'class="mark"' in shown.svg
    assert "data-points=" in shown.svg
    assert len(shown.rows) >= 10


def test_the_points_of_recall_and_of_every_pool_are_what_calibration_says_there():
    recall = promise_curve(SCORES, LABELS, policy_of("recall"))
    total = int(LABELS.sum())
    for at in (5, 40, 80):
        kept = int((LABELS & (recall.threshold[at] <= SCORES)).sum())
        assert recall.value[at] == bounds.largest_rate(total, kept, 0.1)
    every = promise_curve(SCORES, LABELS, policy_of("per pool"))
    for at in (8, 15, 30):
        held = int((LABELS & (every.threshold[at] <= SCORES)).sum())
        k = int(every.value[at])
        assert k == 0 or bounds.pool_critical_count(2_000, k, 100, 0.1) <= held
        assert bounds.pool_critical_count(2_000, k + 1, 100, 0.1) > held


def test_a_precision_that_passed_with_several_parts_of_alpha_lies_on_its_curve():
    rng = np.random.default_rng(0)
    scores, others = rng.random(500), rng.random(3_000)
    labels = rng.random(500) < scores
    policy = sl.calibrate(scores, labels, sl.Precision(0.7), unlabelled=others)
    proof: Any = policy.cutoffs[0].proof
    assert proof.parts > 1
    made = promise_curve(scores, labels, policy)
    assert made.value[made.threshold >= policy.threshold][-1] >= 0.7


def test_an_average_has_the_guarantee_curve_with_its_promise_marked():
    policy = policy_of("expected")
    curve = sl.guarantee_curve(SCORES, LABELS)
    points = [list(getattr(curve, name)) for name in ("list_size", "qualified", "threshold")]
    evidence = shown_of(curves={"simultaneous": CurvePoints(*points)})
    shown = promise_chart(evidence, policy)
    assert (shown.guarantee, shown.marked) == (True, True)
    assert not promise_chart(evidence).marked
    assert promise_chart(None) is None
    assert promise_chart(shown_of()) is None


def threshold_of(target, **options):
    """What calibration gives; nobody's where it refuses."""
    try:
        return sl.calibrate(SCORES, LABELS, target, pools=POOLS, **options).threshold
    except sl.NotCertifiable:
        return -np.inf


@pytest.mark.parametrize(("kind", "options"), [
    ("next pool", {}), ("next pool, two levels", {"rule": "pac", "alpha": 0.2}), ("next pool by rank", {"by": "rank"})
])  # fmt: skip
def test_each_point_of_whole_pools_is_the_largest_number_that_calibration_gives_there(kind, options):
    made = promise_curve(SCORES, LABELS, policy_of(kind), pools=POOLS)
    by = options.pop("by", "score")
    limits = {
        k: threshold_of(sl.NextPool(k=k, by=by), **options) for k in range(1, int(made.value.max()) + 2)
    }
    assert made.value.max() >= 3
    for threshold, value in zip(made.threshold, made.value, strict=True):
        assert value == max((k for k, limit in limits.items() if limit >= threshold), default=0)


def test_each_point_of_a_recall_of_the_next_pool_is_what_calibration_gives_there():
    made = promise_curve(SCORES, LABELS, policy_of("recall of the next pool"), pools=POOLS)
    checked = 0
    for at in np.flatnonzero((made.value > 0.01) & (made.value < 0.99))[::9]:
        below, above = (threshold_of(sl.NextPool(recall=made.value[at] + step)) for step in (-1e-9, 1e-6))
        assert below >= made.threshold[at] > above
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize("kind", ["expected over whole pools", "value", "value over whole pools"])
def test_each_point_of_an_average_is_the_shortest_list_that_the_draw_certifies(kind):
    policy, labels = policy_of(kind), labels_of(kind)
    cutoff: Any = policy.cutoffs[0]
    made = promise_curve(SCORES, labels, policy, pools=POOLS)
    target, level, proof = cutoff.target, cutoff.level, cutoff.proof
    units = (np.arange(2_000), 2_000) if target.unit == "row" else (POOLS, 50)
    rows = PoolRows.of(SCORES, labels if target.amounts else labels > 0, *units)
    assert list(other_numbers(rows, target, level, proof, [float(target.k)])) == [
        (float(target.k), policy.threshold)
    ]
    draw, per = Draw(proof.draw), float(target.pool or 1)
    order = draw.order(rows.pools)
    assert len(made.value) > 5
    for k, threshold in zip(made.value, made.threshold, strict=True):
        stake = min(np.sqrt(2 * np.log(1 / level.alpha) / rows.pools) / (0.8 * k / (per**0.5)), 0.9 * per / k)
        test = EThreshold(k / per, stake, draw.uniform, level.alpha)
        for more, certified in ((0, True), (1e-12, False)):
            held = np.where(threshold + more <= SCORES, labels, 0).astype(float)
            totals = np.bincount(units[0], held, minlength=rows.pools)[order]
            assert test.certified(totals) == certified


def test_a_promise_to_all_groups_together_has_the_curve_of_all_rows():
    targets = {name: sl.Expected(1, 100) for name in ("north", "south")} | {"everyone": sl.Expected(5, 100)}
    policy = sl.calibrate(SCORES, LABELS, targets, groups=sl.Groups(GROUPS, rows="all", cutoff="common"))
    made = group_curves(SCORES, LABELS, GROUPS, policy)
    assert list(made) == ["north", "south", "everyone"]
    length, promised = made["everyone"].chosen
    assert length == pytest.approx(100 * np.mean(policy.threshold <= SCORES))
    assert promised >= 5 > made["north"].chosen[1]


@pytest.mark.parametrize("kind", [each for each in KINDS if each.startswith("groups")])
def test_each_group_has_its_curve_at_its_share_of_the_error(kind):
    policy = policy_of(kind)
    assert promise_curve(SCORES, LABELS, policy) is None
    made = group_curves(SCORES, LABELS, GROUPS, policy)
    assert list(made) == ["north", "south"]
    for cutoff in policy.cutoffs:
        curve, mine = made[str(cutoff.group)], np.equal(GROUPS, str(cutoff.group))
        rows = 2_000 if policy.group_rows == "all" else int(mine.sum())
        length, promised = curve.chosen
        assert length == pytest.approx(
            curve.per * np.sum(mine & (policy.thresholds[cutoff.group] <= SCORES)) / rows
        )
        assert curve.value[curve.list_size >= length - 1e-9][0] >= promised
        at = len(curve.value) // 3
        held = int((LABELS & mine & (curve.threshold[at] <= SCORES)).sum())
        if isinstance(cutoff.target, sl.Expected):
            rate = bounds.largest_rate(rows, held, cutoff.level.alpha)
            assert curve.value[at] == pytest.approx(curve.per * rate)
        elif isinstance(cutoff.target, sl.Recall):
            total = int((LABELS & mine).sum())
            assert curve.value[at] == bounds.largest_rate(total, held, cutoff.level.alpha)
        else:
            k = int(curve.value[at])
            needed = [
                bounds.pool_critical_count(rows, each, 50, cutoff.level.alpha) for each in (max(k, 1), k + 1)
            ]
            assert needed[0] <= held or k == 0
            assert needed[1] > held
    shown = promise_charts(shown_of(by_group={name: plain(each) for name, each in made.items()}))
    assert [each.group for each in shown] == ["north", "south"]
    assert all('class="mark"' in each.svg for each in shown)
    assert 'id="curve-1"' in shown[0].svg
    assert promise_charts(shown_of(curves={"exact": CurvePoints([1.0], [0.5], [0.9])}), policy) == ()
