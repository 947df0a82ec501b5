"""The scores of calibration rows in a few numbers: range, sketch, AUC and fingerprint.

Arrays and every engine give the same answer: each operation on a score is one that IEEE 754 rounds
correctly (multiplication, subtraction, square root, floor), and what is summed are whole numbers. Only of
groups the sketches may have other edges: arrays give each its own bins, tables all the same. A
policy keeps the summary, so that a pool can be compared with the rows it was calibrated on.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist._dataclasses import dataclass

FINGERPRINT = "rows 1"  # the algorithm's name in files: whole-number sums over the (score, label) pairs
BINS = 2048
INTERVALS = 64  # most intervals of the sketch that is kept
SPREAD = 8.0  # doublings of the score that even widths of its 2^r-th root tell apart well
LARGE = 2.0**42  # larger scores are told apart by their smallest and largest only; times a factor below 2^63
FACTORS = (7919.103515625, 1299709.36767578125)  # exact in binary
DIGITS = 2.0**31
PRIME = 2**31 - 1
SURE = 0.01  # an AUC that bins leave less certain than this is not stated

Expression = Any  # an array, or an engine's expression: both have the few operations used here


class ScoreSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """Range, AUC and a sketch: ``rows[i]`` rows score at least ``scores[i]`` and below the next.

    ``auc`` is the chance that a qualified row scores above another one, ties half; None where
    all labels are alike, or where the scores are spread too unevenly to tell.
    """

    lowest: float
    highest: float
    auc: float | None
    scores: tuple[float, ...]
    rows: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.rows)

    def surely_another_auc(self, other: ScoreSummary) -> bool:
        """Whether the AUCs differ by more than bins leave open."""
        return self.auc is not None and other.auc is not None and abs(self.auc - other.auc) > SURE

    def shares(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The sketch as a curve: scores, and the share of rows at or above each."""
        below = list(accumulate((0, *self.rows[:-1])))
        return self.scores, tuple(1 - each / self.total for each in below)

    def share_at_least(self, threshold: float) -> tuple[float, float]:
        """Between which shares of the rows score at least ``threshold``: exact at a sketch's edge."""
        edge = bisect_left(self.scores, threshold)
        surely = sum(self.rows[edge:])
        exact = edge == 0 or threshold > self.highest or threshold in self.scores[edge : edge + 1]
        return surely / self.total, (surely + (0 if exact else self.rows[edge - 1])) / self.total


@dataclass(frozen=True)
class Reached:
    """Rows and qualified rows with scores at least, and strictly above, a threshold."""

    rows: int
    qualified: int
    rows_above: int
    qualified_above: int


@dataclass(frozen=True)
class RowSummary:
    """What a calibration keeps of its rows, beside the thresholds."""

    scores: ScoreSummary
    fingerprint: str
    reached: tuple[Reached, ...]


@dataclass(frozen=True)
class Bins:
    """Bins that do not overlap, by rising score: range, rows and qualified rows of each."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.int64]
    qualified: NDArray[np.int64]


@dataclass(frozen=True)
class Sums:
    """The fingerprint's sums over some rows."""

    first: int
    second: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.first + other.first, self.second + other.second)


def binned(
    score: Expression, low: float, high: float, sqrt: Callable[[Expression], Expression]
) -> Expression:
    """The bin of a score between ``low`` and ``high``, before rounding down; scores beyond count as those.

    Even widths, unless the range spans many orders of magnitude: then widths grow with the score.
    """
    value = score.clip(low, high)
    near, far = sorted((abs(low), abs(high)))
    if low * high >= 0 and near and (far > 4096 * near or not math.isfinite(BINS / (high - low or 1.0))):
        sign = 1.0 if high > 0 else -1.0
        value = value * sign
        for _ in range(_roots(near, far)):
            value, near, far = sqrt(value), math.sqrt(near), math.sqrt(far)
        value, (low, high) = value * sign, sorted((near * sign, far * sign))
    scale = BINS / (high - low) if high > low else 0.0
    return (value - low) * (scale if math.isfinite(scale) else 0.0)


def _roots(near: float, far: float) -> int:
    """How often to take the square root: up to ten times for 600 orders of magnitude."""
    return max(1, math.ceil(math.log2((math.log2(far) - math.log2(near)) / SPREAD)))


def digits(score: Expression, floor: Callable[[Expression], Expression]) -> tuple[Expression, Expression]:
    """Two numbers from 0 to 2^31 that depend on a score's last digits, as floats."""
    bounded = score.clip(-LARGE, LARGE)
    first, second = (bounded * factor for factor in FACTORS)
    return floor((first - floor(first)) * DIGITS), floor((second - floor(second)) * DIGITS)


def mixed(first: Expression, second: Expression) -> Expression:
    """One whole number below 2^31 from two: a sum of these tells one multiset from another."""
    return (first * second + first) % PRIME


def summarise(bins: Bins) -> ScoreSummary:
    """From bins to what is kept: about equally many rows in each interval of the sketch."""
    before = np.cumsum(bins.rows) - bins.rows
    _, first = np.unique(before * INTERVALS // int(bins.rows.sum()), return_index=True)
    return ScoreSummary(
        float(bins.low[0]),
        float(bins.high[-1]),
        _auc(bins),
        tuple(bins.low[first].tolist()),
        tuple(np.add.reduceat(bins.rows, first).tolist()),
    )


def _auc(bins: Bins) -> float | None:
    qualified, others = bins.qualified.astype(float), (bins.rows - bins.qualified).astype(float)
    pairs = qualified.sum() * others.sum()
    if not pairs:
        return None
    above = qualified @ (np.cumsum(others) - others / 2)  # of those in the same bin, half
    unsure = (qualified * others)[bins.low < bins.high].sum()
    return float(above / pairs) if unsure <= SURE * pairs else None


def fingerprint(summary: ScoreSummary, qualified: int, sums: Sums, qualified_sums: Sums) -> str:
    """SHA-256 of the multiset of (score, label): counts, range and sums, in any order of rows."""
    parts = struct.pack("<qqdd", summary.total, qualified, summary.lowest + 0.0, summary.highest + 0.0)
    text = f"surelist {FINGERPRINT} {sums.first} {sums.second} {qualified_sums.first} {qualified_sums.second}"
    return hashlib.sha256(text.encode() + parts).hexdigest()
