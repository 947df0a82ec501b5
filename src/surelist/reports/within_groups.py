"""Are better candidates of a group passed over for worse ones of the same group?

A threshold on one score is fair within a group only if, among its own members, higher scores mean more
qualified ones. A score may be right on average over everyone and not so within a group (Okati, Tsirtsis
and Gomez-Rodriguez, 2023). This looks for it in the calibration rows: a diagnosis, no promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist.reports.audit import ScoreBin, score_bins

CONFIDENCE = 0.95
MOST_BINS = 10
ROWS_PER_BIN = 50  # fewer, and an interval says next to nothing


@dataclass(frozen=True)
class GroupOrder:
    """One group's rows in ``bins`` by score; ``better`` and ``worse`` are two of them in the wrong order.

    ``better`` scores lower, and its share of qualified rows is surely larger. ``passed_over``: it is below
    the threshold and ``worse`` above. With less than two bins there are too few rows to tell.
    """

    group: str
    rows: int
    bins: int
    better: ScoreBin | None = None
    worse: ScoreBin | None = None
    passed_over: bool = False

    def describe(self) -> str:
        if self.bins < 2:
            return f"{self.rows:,} labelled rows are too few to tell; about {2 * ROWS_PER_BIN} are needed."
        if self.better is None or self.worse is None:
            return f"No sign of it in {self.rows:,} labelled rows."
        kept = (
            "is left out while the second is shortlisted"
            if self.passed_over
            else "scores lower; the threshold does not lie between them"
        )
        return (
            f"Of those scoring {_span(self.better)} {_share(self.better, 'at least', self.better.share_low)} "
            f"are qualified, of those scoring {_span(self.worse)} only "
            f"{_share(self.worse, 'at most', self.worse.share_high)}: the first, better group {kept}."
        )


def orders_within_groups(
    scores: NDArray[np.float64], labels: NDArray[Any], groups: Any, thresholds: Mapping[str | None, float]
) -> tuple[GroupOrder, ...]:
    """Every group's rows in bins by score, and the clearest pair of bins in the wrong order.

    The intervals of all bins of all groups hold together with 95 % confidence, so a pair may be picked after
    looking. Rows without a label or group are left out.
    """
    names = np.array(["" if each is None else str(each) for each in groups])
    usable = np.isfinite(scores) & ~np.isnan(labels) & (names != "")
    members = {name: usable & (names == name) for name in np.unique(names[usable]).tolist()}
    bins = {name: _bins(int(np.count_nonzero(mask))) for name, mask in members.items()}
    alpha = (1 - CONFIDENCE) / max(1, sum(each for each in bins.values() if each > 1))
    made = []
    for name, mask in members.items():
        rows = int(np.count_nonzero(mask))
        cut = score_bins(scores[mask], labels[mask], bins[name], alpha=alpha) if bins[name] > 1 else ()
        threshold = thresholds.get(name, thresholds.get(None))
        made.append(_order(name, rows, cut, threshold))
    return tuple(made)


def _bins(rows: int) -> int:
    return min(MOST_BINS, rows // ROWS_PER_BIN)


def _order(name: str, rows: int, bins: tuple[ScoreBin, ...], threshold: float | None) -> GroupOrder:
    """Pairs across the threshold come first, then the widest gap."""
    wrong = []
    for at, worse in enumerate(bins):
        for better in bins[:at]:
            gap = better.share_low - worse.share_high
            if gap > 0:
                across = threshold is not None and better.high < threshold <= worse.low
                wrong.append((across, gap, better, worse))
    if not wrong:
        return GroupOrder(name, rows, len(bins))
    across, _, better, worse = max(wrong, key=lambda each: each[:2])
    return GroupOrder(name, rows, len(bins), better, worse, across)


def _span(each: ScoreBin) -> str:
    return f"{each.low:.3g} to {each.high:.3g}"


def _share(each: ScoreBin, end: str, limit: float) -> str:
    return f"{100 * each.share:.0f}% ({end} {100 * limit:.0f}%)"
