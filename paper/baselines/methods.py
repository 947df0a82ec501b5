"""The paper's other algorithms from calibration rows: with a guarantee or, as people do it, without.

``umb`` is uniform mass binning [theory: bins] (Algorithm 4, "UMB B bins"). Its bins cost twice the DKW band
each, so its lists are longer than those of ``rule="dkw"`` except for scores that carry next to no
information, where its randomised last bin can use a fraction of a threshold step. Uncalibrated, Platt and
isotonic promise nothing [theory: baselines]; their results carry ``guarantee="no guarantee"``. Average
calibration in regression [theory: average-calibration] is the paper's Appendix B.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surelist as sl
from paper.baselines.oracles import take_until
from paper.baselines.results import NO_GUARANTEE, Bands, NotEnoughRows, PoolShortlists
from paper.inputs import Floats, as_alpha, as_count, as_pools, labelled_rows


def umb(
    scores: Any,
    labels: Any,
    target: sl.Expected,
    *,
    bins: int = 5,
    alpha: float = 0.1,
    randomised: bool = True,
) -> Bands:
    """Certify ``target`` from ``bins`` score bins of equal mass, or raise ``NotEnoughRows``.

    Theorem: Proposition 6 bounds every score interval by 2*epsilon at once, so with
    probability >= 1-alpha the list holds >= k qualified candidates on average. Assumes i.i.d.
    rows and a score fixed independently of them; tied scores share a bin. ``randomised=False``
    takes the last bin whole (and can then never be shorter than ``rule="dkw"``). Limit: the
    last bin is shortlisted at random, candidate by candidate.
    """
    if not isinstance(target, sl.Expected):
        raise sl.InvalidInput("target", expected="Expected", got=repr(target))
    array, qualified = labelled_rows(scores, labels)
    bins, alpha, n = as_count(bins, "bins"), as_alpha(alpha), len(array)
    edges = _edges(array, bins)
    qualified_scores = array[qualified]
    counts = np.array([np.count_nonzero(qualified_scores >= edge) for edge in edges])
    needed = [sl.bounds.bins_critical_count(n, target.rate, alpha, a) for a in range(1, len(edges) + 1)]
    certified = np.flatnonzero(counts >= needed)
    if not len(certified):
        raise _refusal(target, n, counts, needed, alpha, bins)
    last = int(certified[0])
    share = _share(n, target, alpha, counts, last) if randomised else 1.0
    wrong = f"wrong with probability at most {alpha:g} over the draw of the calibration rows"
    thresholds, chances = tuple(edges[: last + 1].tolist()), (1.0,) * last + (share,)
    return Bands(f"UMB {bins} bins", thresholds, chances, f"{target.describe()}, {wrong}")


def _edges(scores: Floats, bins: int) -> Floats:
    """Lower edges, best bin first: the ceil(b n / bins)-th largest score, the last -inf."""
    n = len(scores)
    ranks = -(-np.arange(1, bins) * n // bins)
    inner = np.partition(scores, n - ranks)[n - ranks] if bins > 1 else np.empty(0)
    return np.append(np.unique(inner)[::-1], -np.inf)


def _share(n: int, target: sl.Expected, alpha: float, counts: NDArray[np.int64], last: int) -> float:
    """Theta: the part of the last bin that just certifies the target, rounded up."""
    width = 2 * sl.bounds.dkw_epsilon(n, alpha)
    before = (int(counts[last - 1]) if last else 0) / n - last * width
    through = int(counts[last]) / n - (last + 1) * width
    share = (float(target.rate) - before) / (through - before)
    return min(1.0, share * (1 + 1e-12))


def _refusal(
    target: sl.Expected, n: int, counts: NDArray[np.int64], needed: list[int], alpha: float, bins: int
) -> NotEnoughRows:
    """Told for the number of bins that comes closest."""
    width = 2 * sl.bounds.dkw_epsilon(n, alpha)
    taken = np.arange(1, len(counts) + 1)
    closest = int(np.argmax(counts - np.asarray(needed)))
    excess = counts / n - float(target.rate)
    rows = [n * (a * width / e) ** 2 for a, e in zip(taken.tolist(), excess.tolist(), strict=True) if e > 0]
    top = f"the top {closest + 1} of {bins} bins" if bins > 1 else "the one bin"
    said = f"{target.describe()} (alpha={alpha:g}, uniform mass binning, counted in {top})"
    largest = max(0.0, target.pool_size * float(np.max(counts / n - taken * width)))
    rows_needed = math.ceil(min(rows)) if rows else None
    return NotEnoughRows(said, n, int(counts[closest]), needed[closest], largest, rows_needed)


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
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-(self.slope * as_pools(scores) + self.intercept))))

    def shortlist(self, pools: Any, k: float, member: Any = None) -> PoolShortlists:
        """Per pool, from the top until the mapped scores sum to k. No guarantee."""
        return take_until(self.probability(pools), k, member, method="Platt", guarantee=NO_GUARANTEE)


def platt(scores: Any, labels: Any) -> PlattMap:
    """Fit Platt's logistic map on calibration rows (scikit-learn underneath). No guarantee.

    Right only if the log odds are linear in the score; even then the fit is an estimate and
    the list falls short of k about as often as not.
    """
    array, qualified = labelled_rows(scores, labels)
    if not 0 < np.count_nonzero(qualified) < len(qualified):
        raise sl.InvalidInput(
            "labels", "Platt's map needs qualified and unqualified rows, got only one kind."
        )
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


def isotonic(scores: Any, labels: Any, target: sl.Expected) -> Bands:
    """Isotonic regression of the cumulative rate N(t)/n on the score. No guarantee.

    The rate is monotone already, so the fit changes nothing: the threshold is the
    ceil(n k/m)-th largest qualified score, which falls short about half the time.
    """
    array, qualified = labelled_rows(scores, labels)
    if not isinstance(target, sl.Expected):
        raise sl.InvalidInput("target", expected="Expected", got=repr(target))
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
        available, largest = int(counts[-1]), target.pool_size * int(counts[-1]) / len(array)
        said = f"{target.describe()} (isotonic, {NO_GUARANTEE})"
        raise NotEnoughRows(said, len(array), available, needed, largest, None)
    return Bands("Isotonic", (float(-points[reached]),), (1.0,), NO_GUARANTEE)


def _missing(name: str) -> sl.MissingDependency:
    return sl.MissingDependency(f"{name}: scikit-learn is needed; pip install 'surelist[sklearn]'.")


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
    array, qualified = labelled_rows(scores, labels)
    qualified_scores = np.sort(array[qualified])
    return AverageCalibration(qualified_scores, len(array), alpha, sl.bounds.dkw_epsilon(len(array), alpha))
