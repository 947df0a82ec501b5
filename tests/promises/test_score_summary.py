"""Range, sketch, AUC and fingerprint of calibration rows: against sorting, and what no change escapes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

import surelist as sl
from surelist.promises import array_summary
from surelist.promises.array_summary import at_places, summarise_arrays
from surelist.promises.kinds.rate_proofs import RankChain
from surelist.score_summary import Reached

rng = np.random.default_rng(11)
SCORES, LABELS = rng.random(4_000), rng.random(4_000) < 0.3
KINDS = {
    "uniform": SCORES,
    "of both signs": 2 * SCORES - 1,
    "points": np.round(300 + 550 * SCORES),
    "rounded": np.round(SCORES, 2),
    "rare events": SCORES**12,
    "tiny": 1e-12 * SCORES,
    "orders of magnitude": np.exp(200 * SCORES - 100),
    "an outlier": np.where(np.arange(4_000) == np.flatnonzero(~LABELS)[0], -1e9, SCORES),
    "alike": np.full(4_000, 0.25),
    "close": 0.5 + 1e-6 * SCORES,
    "negative orders of magnitude": -np.exp(-30 * SCORES),
}


def fingerprint(scores: Any, labels: Any) -> str:
    return summarise_arrays(scores, scores[labels], []).fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_range_sketch_auc_and_counts_are_those_of_the_rows(kind):
    scores, thresholds = KINDS[kind], list(np.quantile(KINDS[kind], [0.1, 0.5, 0.9]))
    made = summarise_arrays(scores, scores[LABELS], thresholds)
    kept = made.scores
    assert (kept.lowest, kept.highest, kept.total) == (scores.min(), scores.max(), 4_000)
    for edge, share in zip(*kept.shares(), strict=True):
        assert edge in scores
        assert share == pytest.approx((scores >= edge).mean())
    exact = stats.mannwhitneyu(scores[LABELS], scores[~LABELS]).statistic / LABELS.sum() / (~LABELS).sum()
    assert kept.auc == pytest.approx(exact, abs=0.005)
    assert kind == "alike" or len(kept.rows) > 16, len(kept.rows)
    for threshold, reached in zip(thresholds, made.reached, strict=True):
        at, above = scores >= threshold, scores > threshold
        assert reached == Reached(at.sum(), (at & LABELS).sum(), above.sum(), (above & LABELS).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_nothing(kind, monkeypatch):
    whole = summarise_arrays(KINDS[kind], KINDS[kind][LABELS], [KINDS[kind][0]])
    monkeypatch.setattr(array_summary, "BLOCK", 64)
    monkeypatch.setattr(array_summary, "FIRST", 8)
    assert summarise_arrays(KINDS[kind], KINDS[kind][LABELS], [KINDS[kind][0]]) == whole


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"alike"}))
def test_a_change_of_few_rows_inside_one_bin_is_noticed(kind):
    scores = KINDS[kind].copy()
    first, order = fingerprint(scores, LABELS), np.argsort(scores)
    seen = {first}
    for row in range(200, 3_800, 300):
        here, next_ = order[row], order[row + 1]
        if scores[here] == scores[next_]:
            continue
        middle = (scores[here] + scores[next_]) / 2  # the same sum, and the same bin for most
        changed = scores.copy()
        changed[[here, next_]] = middle
        seen.add(fingerprint(changed, LABELS))
        labels = LABELS.copy()
        labels[[here, next_]] = ~labels[[here, next_]]
        seen.add(fingerprint(scores, labels))
        changed = scores.copy()
        changed[here] = scores[here] + 1e-13 if kind == "uniform" else scores[next_]
        seen.add(fingerprint(changed, LABELS))
    different = [row for row in range(200, 3_800, 300) if scores[order[row]] != scores[order[row + 1]]]
    assert len(seen) == 1 + 3 * len(different)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_changes_no_fingerprint(kind):
    order = np.random.default_rng(12).permutation(4_000)
    assert fingerprint(KINDS[kind][order], LABELS[order]) == fingerprint(KINDS[kind], LABELS)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8])
def test_scores_of_other_types_give_the_policy_of_their_float64_and_are_not_copied_as_a_whole(kind):
    rows = 2_000_000
    scores = (np.random.default_rng(1).random(rows) * 100).astype(kind)
    labels = np.random.default_rng(2).random(rows) < 0.05
    target = sl.Expected(2, 100)
    expected = sl.calibrate(scores.astype(np.float64), labels, target)
    tracemalloc.start()
    try:
        policy = sl.calibrate(scores, labels, target)
        calibrating = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        listed = policy.select(scores)
        selecting = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert policy.cutoffs == expected.cutoffs
    assert np.array_equal(listed, scores.astype(np.float64) >= policy.threshold)
    assert calibrating < 8 * rows / 2
    assert selecting < 8 * rows


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_unlabelled_scores_of_other_types_serve_as_their_float64_and_are_not_copied_as_a_whole(kind):
    rng = np.random.default_rng(3)
    scores, others = rng.random(300) * 1e6, (rng.random(3_000_000) * 1e6).astype(kind)
    labels, target = rng.random(300) < scores / 2e6, sl.Expected(5, 100)
    expected = sl.calibrate(scores, labels, target, unlabelled=others.astype(np.float64))
    tracemalloc.start()
    try:
        policy = sl.calibrate(scores, labels, target, unlabelled=others)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert policy.cutoffs == expected.cutoffs
    assert isinstance(policy.cutoffs[0].proof, RankChain)
    assert most < 8 * len(others) * 0.9


def test_short_floats_are_compared_as_float64_with_a_threshold_between_two_of_them():
    scores = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    policy = sl.calibrate(np.array([0.2] * 40), np.ones(40), sl.Expected(1, 10))
    assert policy.threshold == 0.2 < float(scores[1])
    assert policy.select(scores).tolist() == [False, True, True]
    assert policy.select(np.nextafter(scores, np.float32(0))).tolist() == [False, False, True]


@pytest.mark.parametrize("spread", ["even", "tied", "one value", "an outlier", "magnitudes", "both ends"])
def test_scores_at_places_are_those_of_a_sort(spread):
    rng = np.random.default_rng(11)
    even = rng.random(200_000)
    scores = {
        "even": even,
        "tied": np.round(even, 1) - 0.5,
        "one value": np.zeros(200_000),
        "an outlier": np.append(even, [1.7e308, -1.7e308]),
        "magnitudes": (even - 0.5) * 10.0 ** rng.integers(-300, 300, 200_000),
        "both ends": np.where(even < 0.5, -1.7e308, 1.7e308),
    }[spread]
    places = np.sort(rng.choice(200_000, 50, replace=False))
    places[[0, -1]] = 0, len(scores) - 1
    among, between = scores[[7, 150_000]], np.setdiff1d(np.nextafter(scores[:9], 2), scores)
    for probes, shared in ((among, True), (np.append(between, among[0]), True), (between, False)):
        found, same = at_places(scores, places, probes)
        assert np.array_equal(found, np.sort(scores)[places])
        assert same == shared


def test_a_range_that_is_wider_than_any_number_is_one_bin():
    rng = np.random.default_rng(16)
    scores = rng.random(1_500)
    labels, scores = rng.random(1_500) < scores**2, (scores - 0.5) * 3.9
    usual, wide = (sl.calibrate(np.ldexp(scores, by), labels, sl.Expected(1, 300)) for by in (0, 1023))
    steps = [policy.cutoffs[0].steps[0] for policy in (usual, wide)]
    assert steps[1] == replace(steps[0], threshold=float(np.ldexp(steps[0].threshold, 1023)))
    assert (wide.cutoffs[0].scores.total, wide.cutoffs[0].scores.auc) == (1_500, None)
