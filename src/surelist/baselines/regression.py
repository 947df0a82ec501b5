"""Average calibration in regression [theory: average-calibration] (the paper's Appendix B)."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelist import _check as check
from surelist import bounds
from surelist._dataclasses import dataclass
from surelist.baselines.results import Floats, as_pools


@dataclass(frozen=True)
class AverageCalibration:
    """The map h(x) = N(f(x))/n: the share of rows that are qualified and score as high as x.

    With probability >= 1-alpha, for every level s in ``levels`` at once:
    ``|P(Y=1, h(X) <= s) - s| <= epsilon``. Small h means a high score (N counts from the top,
    so the event is h <= s; the paper prints >=). Limit: only the attained levels, 0 to the
    share of qualified rows.
    """

    qualified_scores: Floats
    rows: int
    alpha: float
    epsilon: float

    def map(self, scores: Any) -> Floats:
        """h of each score; any shape in, the same shape out."""
        array = as_pools(scores)
        below = np.searchsorted(self.qualified_scores, array, side="left")
        return (len(self.qualified_scores) - below) / self.rows

    @property
    def levels(self) -> Floats:
        """The values that h attains, ascending, 0 included (scores above every qualified row)."""
        distinct = np.unique(self.qualified_scores)
        counts = len(self.qualified_scores) - np.searchsorted(self.qualified_scores, distinct, side="left")
        return np.append(0.0, np.sort(counts) / self.rows)

    def band(self) -> tuple[Floats, Floats]:
        """Lower and upper bounds of P(Y=1, h(X) <= s), one for each of ``levels``."""
        levels = self.levels
        return np.maximum(levels - self.epsilon, 0.0), np.minimum(levels + self.epsilon, 1.0)


def average_calibration(scores: Any, labels: Any, alpha: float = 0.1) -> AverageCalibration:
    """Turn any score into a regression model that is calibrated on average, with its band.

    Proposition 2 read the other way round: the band is DKW's and holds for all levels at
    once. Assumes i.i.d. rows and a score fixed independently of them; any ties.
    """
    check.require_one_index(scores=scores, labels=labels)
    array = check.as_scores(scores)
    qualified, _ = check.as_labels(labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    qualified_scores = np.sort(array[qualified])
    return AverageCalibration(qualified_scores, len(array), alpha, bounds.dkw_epsilon(len(array), alpha))
