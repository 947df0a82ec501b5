"""What each list length would carry, in the terms of the promise: recall, precision, every pool, groups ...

Each point holds by itself, for a promise fixed beforehand: it shows where the chosen one lies, and is not for
choosing another. What is certified at a point is worked out by the proof, in ``kinds``; for the average over
pools see ``curve``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist import _check as check
from surelist.promises.curve import count_at_least, list_thresholds
from surelist.promises.state import Certificate, Cutoff

Floats = NDArray[np.float64]
MOST_GROUPS = 6  # that are drawn


class PromiseCurve(Struct, frozen=True, eq=False):
    """For lists of ``list_size`` of ``per`` candidates the ``value`` certified, and the point ``chosen``.

    ``title`` and ``axis`` say what is certified, in more and in fewer words; ``share``: values are shares.
    ``of_pools``: list lengths are averages over whole pools.
    """

    title: str
    axis: str
    share: bool
    of_pools: bool
    per: float
    list_size: Floats
    value: Floats
    threshold: Floats
    chosen: tuple[float, float]


class CurveRows(Struct, frozen=True, eq=False):
    """Calibration rows of one group, or of everyone; ``rows`` are those that it is counted among."""

    scores: Floats
    labels: NDArray[Any]
    rows: int
    pools: Any = None

    @property
    def good(self) -> NDArray[np.bool_]:
        return np.asarray(self.labels > 0)

    def drawn(self, cutoff: Cutoff, value: Any) -> PromiseCurve:
        """The curve of what ``value`` says is certified of (listed rows, qualified ones among them), per
        length."""
        per = float(cutoff.target.pool or 100.0)
        thresholds = list_thresholds(self.scores, per)
        listed, held = (count_at_least(each, thresholds) for each in (self.scores, self.scores[self.good]))
        values, promised = value(listed, held)
        on_list = float(np.count_nonzero(self.scores >= cutoff.steps[0].threshold)) * (per / self.rows)
        return self.curve(cutoff, per, listed * (per / self.rows), values, thresholds, (on_list, promised))

    def curve(self, cutoff: Cutoff, per: float, *numbers: Any) -> PromiseCurve:
        title, axis, share = cutoff.target.certified
        return PromiseCurve(title, axis, share, cutoff.target.whole_pools, per, *numbers)


def promise_curve(scores: Any, labels: Any, policy: Certificate, *, pools: Any = None) -> PromiseCurve | None:
    """The curve of a policy's promise on its calibration rows; None for kinds that have none, or another
    one."""
    if policy.grouped or policy.several or not _of_all_rows(policy):
        return None
    array = np.asarray(scores, dtype=np.float64)
    rows = CurveRows(array, np.asarray(labels, dtype=np.float64), len(array), pools)
    return policy.cutoffs[0].proof.curve(policy.cutoffs[0], rows)


def group_curves(scores: Any, labels: Any, groups: Any, policy: Certificate) -> dict[str, PromiseCurve]:
    """The curve of each group's promise, of the first few; empty where there are none.

    Each at the group's share of the chance of error.
    """
    if not policy.grouped or not _of_all_rows(policy):
        return {}
    array, values, names = np.asarray(scores, dtype=np.float64), np.asarray(labels), check.as_groups(groups)
    made = {}
    for each in policy.cutoffs[:MOST_GROUPS]:
        mine = names == str(each.group)
        among = len(array) if policy.group_rows == "all" else int(np.count_nonzero(mine))
        made[str(each.group)] = each.proof.curve(each, CurveRows(array[mine], values[mine], among))
    return {group: curve for group, curve in made.items() if curve is not None}


def _of_all_rows(policy: Certificate) -> bool:
    """Whether every row counts as it is, with its label."""
    return not (policy.shift or policy.thinning or policy.missing_labels)
