"""What promises ask of calibration rows, and the answer from arrays.

Tables answer ``RowCounts`` in a package of their own; whoever does can be certified from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from surelist import score_summary
from surelist.errors import InvalidInput
from surelist.promises.other_scores import require_others
from surelist.promises.pools import PoolRows, pool_rows
from surelist.promises.sampled import SampledLabels
from surelist.promises.state import Requirement, Step
from surelist.score_summary import BINS, Bins, Reached, RowSummary, Sums
from surelist.ties import Salt

BLOCK = 1 << 14  # rows at a time: temporary arrays stay in the processor's cache
BITS = 31

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class RowCounts(Protocol):
    """What any engine can count of one group's rows."""

    @property
    def rows(self) -> int: ...
    @property
    def qualified(self) -> int: ...
    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        """The count-th largest qualified score, for each count."""

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        """How many qualified rows score above, and the ids of those exactly at the threshold."""

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        """Range, sketch, AUC and fingerprint of the group's rows, and how many reach the thresholds."""


class RowColumns(Struct, frozen=True, eq=False):
    """Calibration rows in memory: scores, labels (flags or amounts), and what came with them."""

    scores: Scores
    labels: NDArray[Any]
    pools: Any = None

    @property
    def good(self) -> Mask:
        """Which rows are qualified; an amount above 0 counts as such."""
        return np.asarray(self.labels > 0)

    def part(self, mask: Mask | None) -> RowColumns:
        """Only some of the rows."""
        if mask is None:
            return self
        pools = None if self.pools is None else np.asarray(self.pools, dtype=object)[mask]
        return RowColumns(self.scores[mask], self.labels[mask], pools)


class Evidence(Struct, frozen=True, eq=False):
    """One group's calibration rows as a rule asks for them.

    ``columns`` and ``pooled`` are there where every row, or whole pools, were read; ``others`` are scores of
    other candidates; ``sampled`` says that labels were drawn at two rates. With a ``salt`` ties are broken,
    and the numbers that decided go to ``spent``.
    """

    counts: RowCounts
    group: str | None = None
    columns: RowColumns | None = None
    pooled: PoolRows | None = None
    others: Scores | None = None
    alike: bool = True  # whether the others come from the population of these rows
    sampled: SampledLabels | None = None
    salt: Salt | None = None
    spent: set[int] = field(default_factory=set)

    @property
    def rows(self) -> int:
        return self.counts.rows

    @property
    def qualified(self) -> int:
        return self.counts.qualified

    @property
    def scores(self) -> Scores:
        return self._columns.scores

    @property
    def good(self) -> Mask:
        return self._columns.good

    @property
    def _columns(self) -> RowColumns:
        assert self.columns is not None, "a promise that needs columns was given counts"
        return self.columns

    def steps(self, required: Sequence[Requirement]) -> tuple[Step, ...]:
        """A threshold for each count, ties broken where there is a salt."""
        thresholds = self.counts.nth_largest([each.count for each in required])
        steps = []
        for each, threshold in zip(required, thresholds, strict=True):
            number = None
            if self.salt is not None:
                above, ids = self.counts.tied(threshold)
                numbers = sorted(self.salt.numbers(ids), reverse=True)
                number = numbers[each.count - above - 1]
                self.spent.update(numbers)
            steps.append(Step(each.pool_size, each.count, threshold, number))
        return tuple(steps)

    def pool_rows(self, *, by_rank: bool = False, amounts: bool = False, each_row: bool = False) -> PoolRows:
        """Whole pools as units, or every row as one of its own."""
        if self.pooled is not None:
            return self.pooled
        rows = self._columns
        if not each_row and rows.pools is None:
            raise InvalidInput(
                "pools: whole pools are the units of this promise; pass pools=, one pool id per row."
            )
        labels = rows.labels if amounts else rows.good
        return pool_rows(rows.scores, labels, None if each_row else rows.pools, by_rank=by_rank)

    def require_others(self) -> Scores:
        """Scores of other candidates; the calibration rows' own are refused."""
        assert self.others is not None
        require_others(self.scores, self.others)
        return self.others


class ArrayCounts(Struct, frozen=True, eq=False):
    """Counts from memory: the qualified scores of one group, and all its rows."""

    rows: int
    scores: Scores
    everyone: Scores
    labels: Mask
    ids: list[str] | None = None

    @property
    def qualified(self) -> int:
        return len(self.scores)

    @classmethod
    def of(
        cls, scores: Scores, qualified: Mask, member: Mask | None = None, ids: list[str] | None = None,
        rows: int | None = None,
    ) -> ArrayCounts:  # fmt: skip
        """``member`` marks the group's rows; ``rows`` are those it counts among, where that is more."""
        chosen = qualified if member is None else qualified & member
        texts = [ids[row] for row in np.flatnonzero(chosen)] if ids is not None else None
        everyone, labels = (scores, qualified) if member is None else (scores[member], qualified[member])
        return cls(len(everyone) if rows is None else rows, scores[chosen], everyone, labels, texts)

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        ranks = [len(self.scores) - count for count in counts]
        ordered = np.partition(self.scores, sorted(set(ranks)))
        return [float(ordered[rank]) for rank in ranks]

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        assert self.ids is not None
        above = int(np.count_nonzero(self.scores > threshold))
        return above, [self.ids[row] for row in np.flatnonzero(self.scores == threshold)]

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        span = self.scores if len(self.scores) else self.everyone
        low, high = float(span.min()), float(span.max())
        everyone, qualified = _Counted(low, high, self.everyone), _Counted(low, high, self.scores)
        kept = score_summary.summarise(everyone.bins(qualified))
        digest = score_summary.fingerprint(kept, self.qualified, everyone.sums, qualified.sums)
        return RowSummary(kept, digest, tuple(self._reached(each) for each in thresholds))

    def _reached(self, threshold: float) -> Reached:
        counts = [
            int(np.count_nonzero(each))
            for each in (
                self.everyone >= threshold,
                self.scores >= threshold,
                self.everyone > threshold,
                self.scores > threshold,
            )
        ]
        return Reached(*counts)


class _Counted:
    """Rows, smallest and largest score per bin, and the fingerprint's sums: one pass, block by block."""

    def __init__(self, low: float, high: float, scores: Scores) -> None:
        self.rows = np.zeros(BINS + 3, dtype=np.int64)
        self.smallest, self.largest = np.full(BINS + 3, np.inf), np.full(BINS + 3, -np.inf)
        self.sums = Sums(0, 0)
        for start in range(0, len(scores), BLOCK):
            block = scores[start : start + BLOCK]
            self._count(block, low, high)
            self.sums += _sums(block)

    def _count(self, scores: Scores, low: float, high: float) -> None:
        bins = score_summary.binned(scores, low, high, np.sqrt).astype(np.int64)
        bins += 1
        bins[scores < low] = 0
        bins[scores > high] = BINS + 2
        self.rows += np.bincount(bins, minlength=BINS + 3)
        np.minimum.at(self.smallest, bins, scores)
        np.maximum.at(self.largest, bins, scores)

    def bins(self, qualified: _Counted) -> Bins:
        full = np.flatnonzero(self.rows)
        return Bins(self.smallest[full], self.largest[full], self.rows[full], qualified.rows[full])


def _sums(scores: Scores) -> Sums:
    first, second = (each.astype(np.int64) for each in score_summary.digits(scores, np.floor))
    second *= first
    second += first
    return Sums(int(first.sum()), _sum_of_remainders(second))


def _sum_of_remainders(numbers: NDArray[np.int64]) -> int:
    """The sum of ``mixed``, at a third of the cost: modulo 2^31 - 1 the upper bits count as the lower."""
    for _ in range(2):
        upper = numbers >> BITS
        numbers &= score_summary.PRIME
        numbers += upper
    return int(numbers.sum()) - score_summary.PRIME * int(np.count_nonzero(numbers == score_summary.PRIME))


def rows_fingerprint(scores: Scores, labels: NDArray[Any]) -> str | None:
    """The fingerprint of columns as they are: a label that is missing is not qualified, a row without a
    finite score is left out; None where no row is left."""
    usable = np.isfinite(scores)
    kept, good = scores[usable], (labels == 1)[usable]
    return ArrayCounts(len(kept), kept[good], kept, good).summary([]).fingerprint if len(kept) else None


def fingerprint_of(rows: int, qualified: Mask, scores: Scores) -> str:
    """The fingerprint "arrays 1" of earlier versions and of campaigns: it depends on the order of rows."""
    digest = hashlib.sha256(rows.to_bytes(8, "little"))
    digest.update(np.packbits(qualified).tobytes())
    digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return digest.hexdigest()
