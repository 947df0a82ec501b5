"""Have the scores moved? A two-sample check without labels, which warns and proves nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from surelist import _check as check, _numerals as numerals
from surelist._arrays import special, stats
from surelist.drawing import Display, Displayed, axes
from surelist.promises.phrases import percent

if TYPE_CHECKING:
    from surelist._arrays import Floats

PAIRS = 10**7  # of a calibration row and a candidate, up to which p-values are exact
CAVEAT = (
    "Scores without labels cannot prove the promise broken or intact: a shift may leave it true, "
    "and it may break without any shift in the scores. Review pools and watch those."
)


class Drift(Displayed, Struct, frozen=True):
    """How far the scores of a pool lie from those of the calibration rows.

    Parameters
    ----------
    gap : float
        The largest difference between the shares that score at least some value (Kolmogorov-Smirnov).
    at : float
        That value.
    share_before, share_now : float
        The shares of calibration rows and of candidates that score at least so much.
    higher : float
        The chance that a random candidate scores above a random calibration row, ties half.
    p_value : float
        How often a gap as large comes by chance where nothing has moved, at most.
    rows, candidates : int
        How many of each were compared.
    caveat : str
        What scores without labels cannot show.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> round(sl.drift(scores, scores + 0.1).higher, 1)
    0.7
    """

    gap: float
    at: float
    share_before: float
    share_now: float
    higher: float
    p_value: float
    rows: int
    candidates: int
    caveat: str = CAVEAT

    def describe(self) -> str:
        """The effect in words, and what it does not prove."""
        return (
            f"{percent(round(self.share_now, 4))} of {self.candidates:,} candidates score at least "
            f"{numerals.number(self.at, 6)}, and {percent(round(self.share_before, 4))} of {self.rows:,} "
            f"calibration rows: the largest gap ({100 * self.gap:.1f} points; a gap as large has probability "
            f"{numerals.chance(self.p_value)} without drift). A random candidate scores above a random "
            f"calibration row {percent(round(self.higher, 3))} of the time (50% without drift). {self.caveat}"
        )

    def _display(self) -> Display:
        gap = f"{100 * self.gap:.1f} points at {numerals.number(self.at, 6)}"
        chance = numerals.chance(self.p_value)
        facts = [
            ("calibration rows at or above it", percent(round(self.share_before, 4))),
            ("candidates at or above it", percent(round(self.share_now, 4))),
            ("p-value without drift", chance),
            ("a random candidate above a random row", percent(round(self.higher, 3))),
            ("rows and candidates", f"{self.rows:,} and {self.candidates:,}"),
        ]
        said, folded = f"Largest gap between the shares: {gap}.", [("Caveat", [self.caveat])]
        return Display(f"largest gap {gap}, p = {chance}", said, facts, folded=folded)

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Where the gap is largest: both shares (needs the ``plots`` extra; ``path``: also a file)."""
        shares = {
            f"{self.rows:,} calibration rows": self.share_before,
            f"{self.candidates:,} candidates": self.share_now,
        }
        title = f"The largest gap, {100 * self.gap:.1f} points (p = {numerals.chance(self.p_value)})"
        return axes.picture(
            ax, path, axes.draw_shares, shares, title, f"share that scores at least {self.at:.6g}"
        )


def drift(calibration_scores: object, pool_scores: object) -> Drift:
    """Two-sample check without labels (Kolmogorov-Smirnov), with effect sizes a person can read.

    ``gap`` is the largest difference between the shares that score at least some value, and
    ``at`` that value; ``higher`` is the chance that a random candidate of the pool scores above
    a random calibration row, ties half. The p-value is exact up to ten million pairs of a row and a
    candidate, and within 0.01 of the exact one beyond; ties make it too large.

    Parameters
    ----------
    calibration_scores, pool_scores : array_like
        Scores of the calibration rows and of the pool, finite numbers.

    Returns
    -------
    Drift
        Effect sizes and a p-value; ``describe`` puts them in words.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> sl.drift(scores, scores[:500]).gap < 0.1
    True
    """
    before = np.sort(check.as_scores(calibration_scores, "calibration_scores"))
    now = np.sort(check.as_scores(pool_scores, "pool_scores"))
    check.require_rows(before, "calibration_scores")
    check.require_rows(now, "pool_scores")
    values = np.unique(np.concatenate([before, now]))
    share_before = 1 - np.searchsorted(before, values) / len(before)
    share_now = 1 - np.searchsorted(now, values) / len(now)
    widest = int(np.argmax(np.abs(share_before - share_now)))
    gap = float(abs(share_before[widest] - share_now[widest]))
    below = np.searchsorted(before, now) + np.searchsorted(before, now, side="right")
    higher = float(below.sum() / (2 * len(before) * len(now)))
    p_value = _p_value(before, now, gap)
    return Drift(
        gap, float(values[widest]), float(share_before[widest]), float(share_now[widest]), higher,
        p_value, len(before), len(now),
    )  # fmt: skip


def _p_value(before: Floats, now: Floats, gap: float) -> float:
    """The chance of a gap at least as large without drift."""
    pairs, total = len(before) * len(now), len(before) + len(now)
    smallest = gap * math.lcm(len(before), len(now)) < 1.5
    if smallest or special.kolmogorov(gap * math.sqrt(pairs / total)) > 1 - 1e-7:
        return 1.0  # but for a millionth at most; SciPy's own sum may round above 1 and give up
    return float(stats.ks_2samp(before, now, method="exact" if pairs <= PAIRS else "asymp").pvalue)
