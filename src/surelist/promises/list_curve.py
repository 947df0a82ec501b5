"""For every length of one pool's list: at least and at most so many are qualified [theory: this-list]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._numerals import number
from surelist.bounds.this_list import lower_counts, upper_counts
from surelist.drawing import axes
from surelist.errors import InvalidInput
from surelist.promises.other_scores import require_others
from surelist.promises.phrases import percent

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LINES = 12


@dataclass(frozen=True)
class ListCurve:
    """Lists of one pool by length: ``threshold`` is the score of the last one on it.

    ``at_least`` holds for all lengths at once, except with probability alpha over rows and pool together, so
    a length may be chosen after looking; so does ``at_most``, by itself.

    Examples
    --------
    >>> import surelist as sl
    >>> curve = sl.list_curve([0.9, 0.8, 0.3, 0.1] * 50, [1, 1, 0, 0] * 50, [0.95, 0.7, 0.6, 0.2])
    >>> curve.list_size.tolist()
    [1, 2, 3, 4]
    """

    list_size: Ints
    threshold: Floats
    at_least: Ints
    at_most: Ints
    rows: int
    alpha: float

    def of(self, size: int) -> tuple[int, int]:
        """At least and at most how many of the best ``size`` are qualified."""
        at = int(np.searchsorted(self.list_size, check.as_count(size, "size")))
        if at == len(self.list_size) or self.list_size[at] != size:
            raise InvalidInput("size", f"expected a length that ties allow, got {size!r}; read list_size.")
        return int(self.at_least[at]), int(self.at_most[at])

    def describe(self) -> str:
        """Some lengths, and how sure that is."""
        shown = np.unique(np.geomspace(1, len(self.list_size), LINES).round().astype(int)) - 1
        lines = [f"{'list':>9}  {'at least':>9}  {'at most':>9}  threshold"]
        lines += [
            f"{self.list_size[at]:>9,}  {self.at_least[at]:>9,}  {self.at_most[at]:>9,}  "
            f"{number(float(self.threshold[at]), 6)}"
            for at in shown.tolist()
        ]
        sure = (
            "So many of the first n of this list are qualified. “At least” is wrong for any length with "
            f"probability at most {percent(self.alpha)} over the draw of {self.rows:,} calibration rows and "
            "this pool together, and so is “at most”, by itself: a length may be chosen after looking."
        )
        return "\n".join([*lines, "", sure])

    def plot(self, ax: Any = None, *, path: str | Path | None = None) -> Any:
        """At least and at most how many are qualified, by length (``plots`` extra; ``path``: also a file)."""
        return axes.draw_list(self.list_size, self.at_least, self.at_most, ax, path)


def list_curve(scores: Any, labels: Any, pool: Any, *, alpha: float = 0.1) -> ListCurve:
    """How many of *this* pool's list are qualified, for every length at once.

    Parameters
    ----------
    scores, labels : array_like
        Of the calibration rows, as for ``calibrate``.
    pool : array_like
        The scores of the pool, of which the lists are made.
    alpha : float
        How often a curve may be wrong, over calibration rows and pool together.

    Returns
    -------
    ListCurve
        ``list_size``, ``threshold``, ``at_least`` and ``at_most``, for every length that ties allow.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> rng = np.random.default_rng(6)
    >>> scores, labels = population(rng, 1_000)
    >>> pool, _ = population(rng, 500)
    >>> curve = sl.list_curve(scores, labels, pool)
    >>> curve.of(50)
    (27, 44)
    """
    alpha = check.as_alpha(alpha)
    check.require_one_index(scores=scores, labels=labels)
    rows, others = check.as_scores(scores), check.as_scores(pool, "pool")
    good, _ = check.as_labels(labels)
    check.require_rows(rows, "scores")
    check.require_rows(others, "pool")
    check.require_length(good, len(rows), "labels")
    require_others(rows, others)
    ordered = np.sort(others)
    thresholds = np.unique(others)[::-1]
    listed = len(ordered) - np.searchsorted(ordered, thresholds)
    least = _fewest(rows, good, thresholds, listed, len(others), alpha)
    most = listed - _fewest(rows, ~good, thresholds, listed, len(others), alpha)
    return ListCurve(listed, thresholds, least, np.maximum(most, least), len(rows), alpha)


def _fewest(
    rows: Floats, kind: NDArray[np.bool_], thresholds: Floats, listed: Ints, pool: int, alpha: float
) -> Ints:
    """At least so many of each list are of this kind: two tables, each at half of alpha."""
    others, mine = np.sort(rows[~kind]), np.sort(rows[kind])
    beyond = len(others) - np.searchsorted(others, thresholds)  # rows of the other kind as high as the list
    reached = len(mine) - np.searchsorted(mine, thresholds)
    bound = np.minimum(upper_counts(len(rows), pool, alpha / 2)[beyond], listed)
    # a longer list has no more of them than the shorter one and all that it adds
    bound = np.minimum(bound, listed + np.minimum.accumulate(bound - listed))
    held = np.maximum.accumulate(lower_counts(len(rows), pool, alpha / 2)[reached])
    return np.asarray(np.maximum(np.minimum(held, listed), listed - bound))
