"""The scores of calibration rows in a few numbers: range, sketch, AUC and fingerprint, all from bins.

The usual bins are as wide as 1/2048, wherever scores lie between -2 and 2: nothing need be known to count in
them, so that one pass over a table counts rows, bins and the fingerprint's sum. Scores beyond, or so many
different ones in one bin that sketch or AUC would be coarse, get bins of their own between the smallest and
largest qualified score, in a second pass; which of the two is decided by the rows, not by who counts them.

Arrays and every engine give the same answer: each operation on a score is one that IEEE 754 rounds
correctly (multiplication, subtraction, square root, floor), and what is summed are whole numbers. A
policy keeps the summary, so that a pool can be compared with the rows it was calibrated on.

The fingerprint is the SHA-256 of the number of rows and of qualified rows in each bin, of each bin's smallest
score, of the largest of all, and of one sum over all rows and one over the qualified: of the whole part of
2^30 x^2, where x are the digits behind the point of a large factor times the score, and in own bins also of
the place among them. It is the same for any order of rows. Who moves a row to another bin, or changes
the number of qualified rows or the smallest score of one, is always noticed. Another change inside bins
keeps both sums only by chance, about once in 10^8, unless it is made for that with the constants below: it
recognises rows, it is no signature. Digits below about 2^-50 of the largest score are not looked at.

A pool is counted against a few of these scores (``PoolCounts``), on arrays; tables count in their own
package, and what the counts mean is worked out in ``promises.pool_checks``.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats, Ints, Mask
from surelist._files import Count, Part

FINGERPRINT = "rows 1"  # the algorithm's name in what is hashed
BINS = 2048  # per unit of score, or between the smallest and the largest
REACH = 2.0  # the usual bins lie between -2 and 2
INTERVALS = 64  # most intervals of the sketch that is kept
SPREAD = 8.0  # doublings of the score that even widths of its 2^r-th root tell apart well
FACTOR = 663608941.7370713  # 2^30 times the golden section: its multiples are spread evenly behind the point
STEPS = 2.0**30
SMALLEST = -900  # binary exponent below which scores count as one another's equals in the sums
SURE = 0.01  # an AUC that bins leave less certain than this is not stated
COARSE, FEW = 32, 8  # a bin of several scores holds at most a 32nd of the rows, or few

Expression = Any  # an array, or an engine's expression: both have the few operations used here


class ScoreSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """Range, AUC and a sketch: ``rows[i]`` rows score at least ``scores[i]`` and below the next.

    ``auc`` is the chance that a qualified row scores above another one, ties half; None where
    all labels are alike, or where the scores are spread too unevenly to tell.
    """

    lowest: float
    highest: float
    auc: Part | None
    scores: tuple[float, ...]
    rows: tuple[Count, ...]

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


class Reached(Struct, frozen=True):
    """Rows and qualified rows with scores at least, and strictly above, a threshold."""

    rows: int
    qualified: int
    rows_above: int
    qualified_above: int


class RowSummary(Struct, frozen=True):
    """What a calibration keeps of its rows, beside the thresholds."""

    scores: ScoreSummary
    fingerprint: str
    reached: tuple[Reached, ...]


class Bins(Struct, frozen=True):
    """Bins that do not overlap, by rising score: smallest score, whether there are several scores, rows and
    qualified rows of each; the largest score of all; the fingerprint's sums."""

    low: Floats
    several: Mask
    rows: Ints
    qualified: Ints
    highest: float
    sums: tuple[int, int]  # over all rows, and over the qualified

    @property
    def fine(self) -> bool:
        """Whether they are fine enough for sketch and AUC."""
        crowded = int(self.rows[self.several].max(initial=0))
        return crowded <= max(FEW, int(self.rows.sum()) // COARSE) and self.unsure <= SURE * self.pairs

    @property
    def pairs(self) -> float:
        """Pairs of a qualified and another row."""
        qualified = float(self.qualified.sum())
        return qualified * (float(self.rows.sum()) - qualified)

    @property
    def unsure(self) -> float:
        """Pairs of which it is not known which scores higher."""
        qualified, rows = (each[self.several].astype(float) for each in (self.qualified, self.rows))
        return float(qualified @ (rows - qualified))


class Scale(Struct, frozen=True):
    """How scores are put into bins, and what is summed of them.

    Even widths, unless the range spans many orders of magnitude: then widths grow with the score, by way of
    its 2^r-th root. Scores beyond ``low`` and ``high`` are counted in a bin below and one above.
    """

    low: float
    high: float
    roots: int = 0
    start: float = 0.0  # of the first bin, as a root
    per_unit: float = float(BINS)
    factor: float = FACTOR
    places: float = 0.0  # another factor, of the place in own bins: for small scores beside large ones

    @classmethod
    def own(cls, low: float, high: float, lowest: float, highest: float) -> Scale:
        """For qualified scores from ``low`` to ``high`` among scores from ``lowest`` to ``highest``."""
        near, far = sorted((abs(low), abs(high)))
        start, end, roots = low, high, 0
        if low * high >= 0 and near and (far > 4096 * near or not math.isfinite(BINS / (high - low or 1.0))):
            sign, roots = (1.0 if high > 0 else -1.0), _roots(near, far)
            for _ in range(roots):
                near, far = math.sqrt(near), math.sqrt(far)
            start, end = sorted((near * sign, far * sign))
        per_unit = BINS / (end - start) if end > start else 0.0
        start = start if per_unit else 0.0  # as where the range is wider than any number: all in one bin
        exponent = max(math.frexp(max(abs(lowest), abs(highest)))[1], SMALLEST)
        factor = math.ldexp(FACTOR, -exponent)
        per_unit = per_unit if math.isfinite(per_unit) else 0.0
        return cls(low, high, roots, start, per_unit, factor, FACTOR / BINS)

    def inside(self, score: Expression) -> Expression:
        """The score of which ``roots`` square roots are taken next; scores beyond count as the ends."""
        value = score.clip(self.low, self.high)
        return value * -1.0 if self._turned else value

    @property
    def _turned(self) -> bool:
        return self.roots > 0 and self.high <= 0

    def place(self, root: Expression) -> Expression:
        """The bin of a score, before rounding down."""
        value = root * -1.0 if self._turned else root
        return (value - self.start) * self.per_unit if self.start else value * self.per_unit

    def digits(
        self, score: Expression, root: Expression, floor: Callable[[Expression], Expression]
    ) -> Expression:
        """A whole number up to 2^30 that depends on all digits of the score, as a float."""
        product = score * self.factor
        if self.places:
            product = product + self.place(root) * self.places
        behind = product - floor(product)
        return floor(behind * behind * STEPS)


USUAL = Scale(-REACH, REACH)


def _roots(near: float, far: float) -> int:
    """How often to take the square root: up to ten times for 600 orders of magnitude."""
    doublings = max(SPREAD, math.log2(far) - math.log2(near))
    return max(1, math.ceil(math.log2(doublings / SPREAD)))


def summarise(bins: Bins, reached: Iterable[Reached] = ()) -> RowSummary:
    """From bins to what is kept: about equally many rows in each interval of the sketch."""
    before = np.cumsum(bins.rows) - bins.rows
    _, first = np.unique(before * INTERVALS // int(bins.rows.sum()), return_index=True)
    low = bins.low + 0.0  # without a negative zero
    scores = ScoreSummary(
        float(low[0]),
        bins.highest + 0.0,
        _auc(bins),
        tuple(low[first].tolist()),
        tuple(np.add.reduceat(bins.rows, first).tolist()),
    )
    return RowSummary(scores, _fingerprint(bins), tuple(reached))


def _auc(bins: Bins) -> float | None:
    pairs = bins.pairs
    if not pairs or bins.unsure > SURE * pairs:
        return None
    qualified, others = bins.qualified.astype(float), (bins.rows - bins.qualified).astype(float)
    return float(qualified @ (np.cumsum(others) - others / 2) / pairs)  # of those in the same bin, half


def _fingerprint(bins: Bins) -> str:
    digest = hashlib.sha256(f"surelist {FINGERPRINT} {len(bins.rows)} {bins.sums}".encode())
    digest.update(struct.pack("<d", bins.highest + 0.0))
    for each, kind in ((bins.rows, "<i8"), (bins.qualified, "<i8"), (bins.low + 0.0, "<f8")):
        digest.update(np.ascontiguousarray(each, dtype=kind).tobytes())
    return digest.hexdigest()


BLOCK = 1 << 15  # scores at a time: they stay in the processor's cache


class PoolCounts(Struct, frozen=True):
    """Candidates with a score, counted against rising ``marks``: the calibration rows' lowest score first,
    their highest last.

    ``at_least`` counts scores at or above each mark, ``above`` those beyond the last; ``equal`` those
    that are exactly a mark, and ``met`` the marks that are somebody's score.
    """

    candidates: int
    at_least: tuple[int, ...]
    above: int
    equal: int
    met: int

    @classmethod
    def of(cls, candidates: int, at_least: Sequence[int], above: Sequence[int]) -> PoolCounts:
        """From how many scores are at least, and above, each mark."""
        equal = [reached - over for reached, over in zip(at_least, above, strict=True)]
        return cls(candidates, tuple(at_least), above[-1], sum(equal), sum(map(bool, equal)))

    @property
    def outside(self) -> int:
        """Candidates below the first mark or above the last."""
        return self.candidates - self.at_least[0] + self.above


class PoolCheck(Struct, frozen=True):
    """One comparison of a pool with what was calibrated: a sentence, and whether it is a warning.

    ``kind``: pool size, share, range, drift, calibration rows. ``gap`` is what a drift is measured by: how
    far apart the shares of pool and calibration rows are that reach some score.
    """

    kind: str
    warns: bool
    message: str
    group: str | None = None
    gap: float | None = None


def count_scores(scores: Floats, marks: Sequence[float], among: Mask | None = None) -> PoolCounts:
    """Count an array of scores, or those ``among`` it, block by block; NaN is nobody's score."""
    below, candidates = np.zeros((2, len(marks)), dtype=np.int64), 0
    for at in range(0, len(scores), BLOCK):
        block = scores[at : at + BLOCK]
        ordered = np.sort(block if among is None else block.compress(among[at : at + BLOCK]))
        candidates += int(ordered.searchsorted(np.nan))
        below += ordered.searchsorted(marks), ordered.searchsorted(marks, side="right")
    at_least, above = (candidates - below).tolist()
    return PoolCounts.of(candidates, at_least, above)
