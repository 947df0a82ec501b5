"""What each list length would carry, in the terms of the promise: recall, precision, every pool, groups ...

Each point holds by itself, for a promise fixed beforehand: it shows where the chosen one lies, and is not for
choosing another. For the average over pools see ``curve``, for whole pools as units ``pool_curve``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist import bounds
from surelist._dataclasses import replace
from surelist.promises.averages import Average
from surelist.promises.curve import (
    CurveKind,
    PromiseCurve,
    certified_rates,
    count_at_least,
    list_thresholds,
)
from surelist.promises.pool_curve import pool_curve
from surelist.promises.pools import NextPool
from surelist.promises.reference import FixedSequence, ListedBudget
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.targets import Budget, Expected, PerPool, Precision, Recall

Floats = NDArray[np.float64]
MOST_K = 60  # numbers per pool that are tried
MOST_GROUPS = 6  # that are drawn


def promise_curve(scores: Any, labels: Any, policy: Certificate, *, pools: Any = None) -> PromiseCurve | None:
    """The curve of a policy's kind on its calibration rows; None for kinds that have none, or another one."""
    cutoff = policy.cutoffs[0]
    if policy.grouped or len(policy.cutoffs) > 1 or not _of_all_rows(policy):
        return None
    array = np.asarray(scores, dtype=np.float64)
    if isinstance(cutoff.proof, NextPool | Average):
        return pool_curve(array, labels, pools, cutoff)
    return _curve_of(cutoff, array, np.asarray(labels) > 0, np.ones(len(array), dtype=np.bool_))


def group_curves(scores: Any, labels: Any, groups: Any, policy: Certificate) -> dict[str, PromiseCurve]:
    """The curve of each group's promise, of the first few; empty where there are none.

    Each at the group's share of the chance of error.
    """
    if not policy.grouped or not _of_all_rows(policy):
        return {}
    array, good, names = np.asarray(scores, dtype=np.float64), np.asarray(labels) > 0, check.as_groups(groups)
    all_rows = policy.group_rows == "all"
    made = {
        str(each.group): _curve_of(each, array, good, names == str(each.group), all_rows=all_rows)
        for each in policy.cutoffs[:MOST_GROUPS]
    }
    return {group: curve for group, curve in made.items() if curve is not None}


def _of_all_rows(policy: Certificate) -> bool:
    """Whether every row counts as it is, with its label."""
    return not (policy.shift or policy.thinning or policy.missing_labels)


def _curve_of(
    cutoff: Cutoff, scores: Floats, good: NDArray[np.bool_], mine: NDArray[np.bool_], all_rows: bool = False
) -> PromiseCurve | None:
    """Of the rows of one group, or of everyone; with ``all_rows`` the pool is everybody's."""
    array, per = scores[mine], _pool_size(cutoff)
    rows, held_scores = len(scores) if all_rows else len(array), scores[mine & good]
    thresholds = list_thresholds(array, per)
    listed, held = count_at_least(array, thresholds), count_at_least(held_scores, thresholds)
    certified = _values(cutoff, rows, len(held_scores), listed, held)
    if certified is None:
        return None
    kind, values, promised = certified
    on_list = float(np.count_nonzero(array >= cutoff.steps[0].threshold)) * (per / rows)
    return PromiseCurve(kind, per, listed * (per / rows), values, thresholds, (on_list, promised))


def _pool_size(cutoff: Cutoff) -> float:
    """The pool that list lengths are about: the promise's, else one of 100."""
    if isinstance(cutoff.target, PerPool) and _is_per_pool(cutoff):
        return float(cutoff.target.sizes[0])
    sized = isinstance(cutoff.target, Budget | Expected) and cutoff.target.pool_size
    return float(sized) if sized else 100.0


def _is_per_pool(cutoff: Cutoff) -> bool:
    target = cutoff.target
    return isinstance(target, PerPool) and target.pool_size is not None and cutoff.proof is None


def _values(
    cutoff: Cutoff, rows: int, qualified: int, listed: NDArray[Any], held: NDArray[Any]
) -> tuple[CurveKind, Floats, float] | None:
    target, proof, alpha = cutoff.target, cutoff.proof, cutoff.level.alpha
    if isinstance(target, Recall) and proof is None:
        return "recall", certified_rates(qualified, held, alpha, "exact"), float(target.share)
    if isinstance(target, Precision) and isinstance(proof, FixedSequence):
        each = alpha / proof.starts
        pairs = zip(listed.tolist(), held.tolist(), strict=True)
        shares = [bounds.largest_rate(of, count, each) if of else 0.0 for of, count in pairs]
        return "precision", np.asarray(shares), float(target.share)
    if isinstance(target, Budget) and isinstance(proof, ListedBudget):
        return "budget", target.pool_size * certified_rates(rows, held, alpha, "exact"), float(proof.k)
    if isinstance(target, Expected) and proof is None and cutoff.group is not None and target.pool_size:
        rates = certified_rates(rows, held, alpha, cutoff.level.rule)
        return "expected", float(target.pool_size) * rates, float(target.k)
    if _is_per_pool(cutoff):
        assert isinstance(target, PerPool)
        return "per-pool", _certified_k(cutoff, target, rows, held), float(target.k)
    return None


def _certified_k(cutoff: Cutoff, target: PerPool, rows: int, held: NDArray[Any]) -> Floats:
    """The largest of some numbers that each count certifies for the smallest pool."""
    size, most = target.sizes[0], int(held.max(initial=0))
    tried = np.unique(np.geomspace(1, min(size, max(most, 1)), MOST_K).round().astype(int)).tolist()
    tried = sorted({*tried, target.k})
    needed = [replace(target, k=k).count_at(size, rows, 0, cutoff.level) for k in tried]
    certified: Floats = np.asarray([0, *tried], dtype=np.float64)[np.searchsorted(needed, held, side="right")]
    return certified
