"""Numbers that an auditor asks for: selection rates, impact ratios, how labels follow scores.

Intervals are exact (Clopper-Pearson): they cover with at least the stated confidence for every
sample size. Nothing here passes or fails anyone; these are inputs to an audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist import bounds
from surelist.errors import InvalidInput

SMALL_SHARE = 0.02
UNKNOWN = "unknown"


class Category(Struct, frozen=True):
    """One row of an impact table. ``ratio`` is None for the unknown category."""

    names: tuple[str, ...]
    candidates: int
    shortlisted: int
    share: float
    rate: float
    rate_low: float
    rate_high: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    small: bool
    reference: bool

    @property
    def unknown(self) -> bool:
        return UNKNOWN in self.names

    @property
    def name(self) -> str:
        return " · ".join(self.names)


class ImpactTable(Struct, frozen=True):
    """Selection rates by category, each against the most-selected one."""

    attributes: tuple[str, ...]
    categories: tuple[Category, ...]
    confidence: float

    @property
    def title(self) -> str:
        return " × ".join(self.attributes)


def impact_table(
    attributes: tuple[str, ...],
    counts: Mapping[tuple[str, ...], tuple[int, int]],
    confidence: float = 0.95,
) -> ImpactTable:
    """Rates and ratios from (candidates, shortlisted) per category.

    All intervals hold together with probability at least ``confidence``: alpha is split evenly
    between the categories, so that the reference may be chosen after looking. A ratio's bounds
    are the quotients of the rates' bounds. The reference is the most-selected category with at
    least 2 % of the candidates; smaller ones are marked, the unknown one is only counted.
    """
    alpha = 1 - check.as_alpha(confidence, "confidence")
    total = sum(size for size, _ in counts.values())
    for names, (size, listed) in counts.items():
        if not 0 <= listed <= size:
            raise InvalidInput(
                "counts", f"{listed} of {size} shortlisted in category {names!r} is impossible."
            )
    if total == 0:
        return ImpactTable(attributes, (), confidence)
    intervals = {
        names: bounds.exact_interval(size, listed, alpha / len(counts))
        for names, (size, listed) in counts.items()
    }
    reference = _reference(counts, total)
    categories = [
        _category(names, counts, intervals, reference, total)
        for names in sorted(counts, key=lambda names: (UNKNOWN in names, names))
    ]
    return ImpactTable(attributes, tuple(categories), confidence)


def _reference(counts: Mapping[tuple[str, ...], tuple[int, int]], total: int) -> tuple[str, ...] | None:
    known = {n: c for n, c in counts.items() if UNKNOWN not in n and c[0] > 0}
    large = {n: c for n, c in known.items() if c[0] >= SMALL_SHARE * total} or known
    best = max(large, key=lambda n: (large[n][1] / large[n][0], large[n][0]), default=None)
    return best if best is not None and large[best][1] > 0 else None


def _category(
    names: tuple[str, ...],
    counts: Mapping[tuple[str, ...], tuple[int, int]],
    intervals: Mapping[tuple[str, ...], tuple[float, float]],
    reference: tuple[str, ...] | None,
    total: int,
) -> Category:
    size, listed = counts[names]
    low, high = intervals[names]
    rate = listed / size if size else 0.0
    ratio: tuple[float | None, float | None, float | None] = (None, None, None)
    if reference is not None and UNKNOWN not in names:
        best_size, best_listed = counts[reference]
        best_low, best_high = intervals[reference]
        ratio = (rate / (best_listed / best_size), low / best_high, high / best_low if best_low else None)
        if names == reference:
            ratio = (1.0, None, None)
    return Category(
        names, size, listed, size / total, rate, low, high, *ratio,
        small=size < SMALL_SHARE * total, reference=names == reference,
    )  # fmt: skip


class ScoreBin(Struct, frozen=True):
    """Calibration rows between two scores, and how many of them are qualified."""

    low: float
    high: float
    rows: int
    qualified: int
    share: float
    share_low: float
    share_high: float


def score_bins(
    scores: Any, labels: Any, bins: int = 10, missing_labels: str = "error", alpha: float = 0.05
) -> tuple[ScoreBin, ...]:
    """About ``bins`` groups of rows of equal size by score, each with an exact interval, 95 % by default.

    Tied scores share a bin. Rows without a label are left out: nobody knows whether they are
    qualified. This describes the labelled calibration rows; no promise rests on it.
    """
    check.require_one_index(scores=scores, labels=labels)
    array, column = check.as_scores(scores), np.asarray(labels)
    qualified, missing = check.as_labels(column, missing=missing_labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    if missing:
        known = ~np.isnan(check._numbers(column, "labels"))
        array, qualified = array[known], qualified[known]
    if not len(array):
        return ()
    cuts = np.unique(np.quantile(array, np.linspace(0, 1, bins + 1)[1:-1], method="lower"))
    number = np.searchsorted(cuts, array, side="left")
    sizes = np.bincount(number, minlength=len(cuts) + 1)
    counts = np.bincount(number, weights=qualified, minlength=len(cuts) + 1)
    filled = []
    for index in np.flatnonzero(sizes).tolist():
        inside = array[number == index]
        size, count = int(sizes[index]), int(counts[index])
        low, high = bounds.exact_interval(size, count, alpha)
        filled.append(
            ScoreBin(float(inside.min()), float(inside.max()), size, count, count / size, low, high)
        )
    return tuple(filled)
