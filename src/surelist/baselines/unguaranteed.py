"""The baselines that promise nothing [theory: baselines]: uncalibrated, Platt, isotonic.

They are what people do. Every result carries ``guarantee="no guarantee"``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.baselines.oracles import take_until
from surelist.baselines.results import NO_GUARANTEE, Bands, Floats, PoolShortlists, as_pools
from surelist.errors import InvalidInput, MissingDependency, NotCertifiable, Shortfall
from surelist.promises.kinds.expected import Expected


def uncalibrated(pools: Any, k: float, member: Any = None) -> PoolShortlists:
    """Take the scores for probabilities: per pool, from the top until they sum to k.

    The optimal rule of Theorem 1 *if* every score were the true P(Y=1|x); no guarantee
    otherwise. ``pools`` is one pool or one pool per row; ``member`` marks the candidates who
    may be chosen (a group). Where the scores sum to less than k everyone is shortlisted.
    """
    return take_until(pools, k, member, method="Uncalibrated", guarantee=NO_GUARANTEE)


@dataclass(frozen=True)
class PlattMap:
    """A fitted logistic map from score to probability, 1/(1+exp(-(slope F + intercept)))."""

    slope: float
    intercept: float
    guarantee: str = NO_GUARANTEE

    def probability(self, scores: Any) -> Floats:
        """The mapped scores, in the shape they came in."""
        return _logistic(self.slope * as_pools(scores) + self.intercept)

    def shortlist(self, pools: Any, k: float, member: Any = None) -> PoolShortlists:
        """Per pool, from the top until the mapped scores sum to k. No guarantee."""
        return take_until(self.probability(pools), k, member, method="Platt", guarantee=NO_GUARANTEE)


def platt(scores: Any, labels: Any) -> PlattMap:
    """Fit Platt's logistic map on calibration rows (scikit-learn underneath). No guarantee.

    Right only if the log odds are linear in the score; even then the fit is an estimate and
    the list falls short of k about as often as not.
    """
    array, qualified = _rows(scores, labels)
    if not 0 < np.count_nonzero(qualified) < len(qualified):
        raise InvalidInput("labels", "Platt's map needs qualified and unqualified rows, got only one kind.")
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise _missing("platt") from error
    centre, scale = float(array.mean()), float(array.std()) or 1.0
    # C is finite so that a score which separates the labels perfectly has a slope at all
    fitted = LogisticRegression(C=1e6, solver="newton-cholesky", tol=1e-9, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(((array - centre) / scale)[:, None], qualified)
    slope = float(fitted.coef_[0, 0]) / scale
    return PlattMap(slope, float(fitted.intercept_[0]) - slope * centre)


def isotonic(scores: Any, labels: Any, target: Expected) -> Bands:
    """Isotonic regression of the cumulative rate N(t)/n on the score. No guarantee.

    The rate is monotone already, so the fit changes nothing: the threshold is the
    ceil(n k/m)-th largest qualified score, which falls short about half the time.
    """
    array, qualified = _rows(scores, labels)
    if not isinstance(target, Expected):
        raise InvalidInput("target", expected="Expected", got=repr(target))
    try:
        from sklearn.isotonic import IsotonicRegression
    except ImportError as error:
        raise _missing("isotonic") from error
    points, index = np.unique(-array, return_inverse=True)
    counts = np.cumsum(np.bincount(index, weights=qualified, minlength=len(points)))
    fitted = IsotonicRegression().fit_transform(points, counts)
    needed = math.ceil(len(array) * target.rate)
    reached = int(np.searchsorted(fitted, needed - 1e-6))
    if reached == len(points):
        raise NotCertifiable(_too_few(target, len(array), int(counts[-1]), needed))
    return Bands("Isotonic", (float(-points[reached]),), (1.0,), NO_GUARANTEE)


def _rows(scores: Any, labels: Any) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    check.require_one_index(scores=scores, labels=labels)
    array = check.as_scores(scores)
    qualified, _ = check.as_labels(labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    return array, qualified


def _logistic(values: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-values)))


def _missing(name: str) -> MissingDependency:
    return MissingDependency(f"{name}: scikit-learn is needed; pip install 'surelist[sklearn]'.")


def _too_few(target: Expected, rows: int, qualified: int, needed: int) -> Shortfall:
    return Shortfall(
        target=f"{target.describe()} (isotonic, {NO_GUARANTEE})",
        rows=rows,
        qualified_available=qualified,
        critical_count=needed,
        largest_k=target.pool_size * qualified / rows,
        largest_share=None,
        rows_needed=None,
    )
