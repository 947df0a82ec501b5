"""One picture per kind of promise: each point is what the rule certifies there, and the promise lies on its curve."""

from __future__ import annotations

import numpy as np
import pytest

import surelist as sl
from surelist import bounds
from surelist.promises.promise_curve import promise_curve
from surelist.reports.pictures import promise_chart
from tests.helpers.promise_kinds import KINDS, LABELS, SCORES, policy_of

OWN = {
    "recall": "recall", "per pool": "per-pool", "per pool, two levels": "per-pool",
    "per pool of many sizes": "per-pool", "precision": "precision", "budget": "budget",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_which_kinds_have_a_curve_of_their_own(kind):
    policy = policy_of(kind)
    made = promise_curve(SCORES, LABELS, policy)
    assert (made and made.kind) == OWN.get(kind)
    if made is None:
        return
    assert (np.diff(made.list_size) > 0).all()
    assert kind == "precision" or (np.diff(made.value) >= 0).all()
    length, promised = made.chosen
    assert length == pytest.approx(made.per * np.mean(policy.thresholds[None] <= SCORES))
    just_longer = made.value[made.list_size >= length - 1e-9]
    assert just_longer[0] >= promised or kind == "precision"  # the list that was chosen carries it
    shown = promise_chart({"own": {**vars(made), "list_size": list(made.list_size), "value": list(made.value),
                                   "threshold": list(made.threshold)}})  # fmt: skip
    assert shown.marked
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


def test_an_average_has_the_guarantee_curve_with_its_promise_marked():
    policy = policy_of("expected")
    curve = sl.guarantee_curve(SCORES, LABELS)
    evidence = {"pool_size": 100, "curves": {"simultaneous": {name: list(getattr(curve, name)) for name in
                ("list_size", "qualified", "threshold")}}}  # fmt: skip
    shown = promise_chart(evidence, policy)
    assert (shown.kind, shown.marked) == ("expected", True)
    assert not promise_chart(evidence).marked
    assert promise_chart(None) is None
    assert promise_chart({"pool_size": 100, "curves": {}}) is None
