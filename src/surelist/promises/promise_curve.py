"""What each list length would carry, in the terms of the promise: recall, precision, every pool, a budget.

Each point holds by itself, for a promise fixed beforehand: it shows where the chosen one lies, and is not for
choosing another. For the average over pools see ``curve``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surelist import bounds
from surelist._dataclasses import dataclass, replace
from surelist.promises.curve import certified_rates, count_at_least, list_thresholds
from surelist.promises.reference import FixedSequence, ListedBudget
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.targets import Budget, PerPool, Precision, Recall

Floats = NDArray[np.float64]
Kind = Literal["recall", "per-pool", "precision", "budget"]
MOST_K = 60  # numbers per pool that are tried


@dataclass(frozen=True)
class PromiseCurve:
    """For lists of ``list_size`` of ``per`` candidates the ``value`` certified, and the point ``chosen``."""

    kind: Kind
    per: float
    list_size: Floats
    value: Floats
    threshold: Floats
    chosen: tuple[float, float]


def promise_curve(scores: Any, labels: Any, policy: Certificate) -> PromiseCurve | None:
    """The curve of a policy's kind on its calibration rows; None for kinds that have none, or another one."""
    cutoff = policy.cutoffs[0]
    if policy.grouped or len(policy.cutoffs) > 1 or policy.shift or policy.thinning or policy.missing_labels:
        return None
    array, good = np.asarray(scores, dtype=np.float64), np.asarray(labels) > 0
    per = _pool_size(cutoff)
    thresholds = list_thresholds(array, per)
    listed, held = count_at_least(array, thresholds), count_at_least(array[good], thresholds)
    certified = _values(cutoff, len(array), int(good.sum()), listed, held)
    if certified is None:
        return None
    kind, values, promised = certified
    on_list = float(np.mean(array >= cutoff.steps[0].threshold)) * per
    return PromiseCurve(kind, per, listed * (per / len(array)), values, thresholds, (on_list, promised))


def _pool_size(cutoff: Cutoff) -> float:
    """The pool that list lengths are about: the promise's, else one of 100."""
    if isinstance(cutoff.target, PerPool) and _is_per_pool(cutoff):
        return float(cutoff.target.sizes[0])
    return float(cutoff.target.pool_size) if isinstance(cutoff.target, Budget) else 100.0


def _is_per_pool(cutoff: Cutoff) -> bool:
    target = cutoff.target
    return isinstance(target, PerPool) and target.pool_size is not None and cutoff.proof is None


def _values(
    cutoff: Cutoff, rows: int, qualified: int, listed: NDArray[Any], held: NDArray[Any]
) -> tuple[Kind, Floats, float] | None:
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
