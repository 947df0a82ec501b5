"""Numbers that an auditor asks for: selection rates, impact ratios, how labels follow scores.

Are better candidates of a group passed over for worse ones of the same group? A threshold on one score is
fair within a group only if, among its own members, higher scores mean more qualified ones. A score may be
right on average over everyone and not so within a group (Okati, Tsirtsis and Gomez-Rodriguez, 2023).
``orders_within_groups`` looks for it in the calibration rows: a diagnosis, no promise.

Intervals are exact (Clopper-Pearson): they cover with at least the stated confidence for every
sample size. Nothing here passes or fails anyone; these are inputs to an audit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist import _check as check, bounds
from surelist._arrays import Floats
from surelist.errors import InvalidInput

SMALL_SHARE = 0.02
UNKNOWN = "unknown"
CONFIDENCE = 0.95
MOST_BINS = 10
ROWS_PER_BIN = 50  # fewer, and an interval says next to nothing


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
    attributes: tuple[str, ...], counts: Mapping[tuple[str, ...], tuple[int, int]], confidence: float = 0.95
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
    categories = []
    for names in sorted(counts, key=lambda names: (UNKNOWN in names, names)):
        (size, listed), (low, high) = counts[names], intervals[names]
        rate = listed / size if size else 0.0
        ratio: tuple[float | None, float | None, float | None] = (None, None, None)
        if names == reference:
            ratio = (1.0, None, None)
        elif reference is not None and UNKNOWN not in names:
            best_size, best_listed = counts[reference]
            best_low, best_high = intervals[reference]
            upper = high / best_low if best_low else None
            ratio = (rate / (best_listed / best_size), low / best_high, upper)
        small, is_reference = size < SMALL_SHARE * total, names == reference
        about = (size, listed, size / total, rate, low, high)
        categories.append(Category(names, *about, *ratio, small, is_reference))
    return ImpactTable(attributes, tuple(categories), confidence)


def _reference(counts: Mapping[tuple[str, ...], tuple[int, int]], total: int) -> tuple[str, ...] | None:
    known = {n: c for n, c in counts.items() if UNKNOWN not in n and c[0] > 0}
    large = {n: c for n, c in known.items() if c[0] >= SMALL_SHARE * total} or known
    best = max(large, key=lambda n: (large[n][1] / large[n][0], large[n][0]), default=None)
    return best if best is not None and large[best][1] > 0 else None


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
    scores: object, labels: object, bins: int = 10, missing_labels: str = "error", alpha: float = 0.05
) -> tuple[ScoreBin, ...]:
    """About ``bins`` groups of rows of equal size by score, each with an exact interval, 95 % by default.

    Tied scores share a bin. Rows without a label are left out: nobody knows whether they are
    qualified. This describes the labelled calibration rows; no promise rests on it.
    """
    array, qualified, missing = check.labelled_rows(scores, labels, missing_labels)
    if missing:
        known = ~np.isnan(check._numbers(np.asarray(labels), "labels"))
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


class GroupOrder(Struct, frozen=True):
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
    scores: Floats, labels: NDArray[Any], groups: Any, thresholds: Mapping[str | None, float]
) -> tuple[GroupOrder, ...]:
    """Every group's rows in bins by score, and the clearest pair of bins in the wrong order.

    The intervals of all bins of all groups hold together with 95 % confidence, so a pair may be picked after
    looking. Rows without a label or group are left out.
    """
    names = np.array(["" if each is None else str(each) for each in groups])
    usable = np.isfinite(scores) & ~np.isnan(labels) & (names != "")
    members = {name: usable & (names == name) for name in np.unique(names[usable]).tolist()}
    rows = {name: int(np.count_nonzero(mask)) for name, mask in members.items()}
    bins = {name: min(MOST_BINS, count // ROWS_PER_BIN) for name, count in rows.items()}
    alpha = (1 - CONFIDENCE) / max(1, sum(each for each in bins.values() if each > 1))
    made = []
    for name, mask in members.items():
        cut = score_bins(scores[mask], labels[mask], bins[name], alpha=alpha) if bins[name] > 1 else ()
        made.append(_order(name, rows[name], cut, thresholds.get(name, thresholds.get(None))))
    return tuple(made)


def _order(name: str, rows: int, bins: tuple[ScoreBin, ...], threshold: float | None) -> GroupOrder:
    """Pairs across the threshold come first, then the widest gap."""
    wrong = [
        (threshold is not None and better.high < threshold <= worse.low, gap, better, worse)
        for at, worse in enumerate(bins)
        for better in bins[:at]
        if (gap := better.share_low - worse.share_high) > 0
    ]
    if not wrong:
        return GroupOrder(name, rows, len(bins))
    across, _, better, worse = max(wrong, key=lambda each: each[:2])
    return GroupOrder(name, rows, len(bins), better, worse, across)


def _span(each: ScoreBin) -> str:
    return f"{each.low:.3g} to {each.high:.3g}"


def _share(each: ScoreBin, end: str, limit: float) -> str:
    return f"{100 * each.share:.0f}% ({end} {100 * limit:.0f}%)"


def noise_supported(both: int, split: int) -> str:
    """How often labels are wrong at most, as far as two reviewers of ``both`` candidates show it who disagree
    about ``split`` of them: a bound to assume, and why it is none that is proved."""
    high = bounds.exact_interval(both, split, 2 * (1 - CONFIDENCE))[1]
    seen = (
        f"Two people marked {both:,} {'candidate' if both == 1 else 'candidates'}, each on their own, and "
        f"disagree about {split:,}. "
    )
    if high >= 0.5:  # as often as by two coins
        return seen + "That is too little to support any bound on how often labels are wrong."
    wrong = math.ceil(1000 * (1 - math.sqrt(1 - 2 * high)) / 2) / 10
    return seen + (
        f"If both err equally often, at any candidate alike and independently, at most {wrong:g} % of labels "
        "are wrong; this bound itself fails with probability at most 5 %. It is an assumption, never a "
        "proof: what both get wrong does not show, and nobody was asked about those who are not listed."
    )
