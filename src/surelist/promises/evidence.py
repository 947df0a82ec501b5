"""What calibration needs to know of calibration rows, and the answer from arrays.

Tables answer in their own room; whoever implements ``Evidence`` can be certified from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surelist import score_summary
from surelist.promises.terms import Terms
from surelist.score_summary import BINS, Bins, Reached, RowSummary, Sums

BLOCK = 1 << 16  # rows at a time: temporary arrays stay in the processor's cache

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Evidence(Protocol):
    """What calibration needs to know of one group's rows."""

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


@dataclass(frozen=True)
class ArrayEvidence:
    """Evidence in memory: the qualified scores of one group, and all its rows."""

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
        cls,
        scores: Scores,
        qualified: Mask,
        member: Mask | None,
        ids: list[str] | None,
        terms: Terms,
        kept: Mask | None,
    ) -> ArrayEvidence:
        """``member`` marks the group's rows; with group_rows="all" every kept row counts."""
        chosen = qualified if member is None else qualified & member
        rows = len(scores) if member is None else int(np.count_nonzero(member))
        if terms.grouped and terms.group_rows == "all":
            rows = len(scores) if kept is None else int(np.count_nonzero(kept))
        texts = [ids[row] for row in np.flatnonzero(chosen)] if ids is not None else None
        everyone, labels = (scores, qualified) if member is None else (scores[member], qualified[member])
        return cls(rows, scores[chosen], everyone, labels, texts)

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
        bins = _Bins(float(span.min()), float(span.max()))
        sums, qualified_sums = Sums(0, 0), Sums(0, 0)
        for start in range(0, len(self.everyone), BLOCK):
            part = slice(start, start + BLOCK)
            scores, labels = self.everyone[part], self.labels[part]
            bins.add(scores, labels)
            numbers = _numbers(scores)
            sums += _total(numbers)
            qualified_sums += _total([each[labels] for each in numbers])
        kept = score_summary.summarise(bins.bins())
        digest = score_summary.fingerprint(kept, self.qualified, sums, qualified_sums)
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


class _Bins:
    """Counts, smallest and largest score per bin, block by block."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.rows, self.qualified = np.zeros((2, BINS + 3), dtype=np.int64)
        self.smallest = np.full(BINS + 3, np.inf)
        self.largest = np.full(BINS + 3, -np.inf)

    def add(self, scores: Scores, labels: Mask) -> None:
        bins = np.floor(score_summary.binned(scores, self.low, self.high, np.sqrt)).astype(np.int64) + 1
        bins -= scores < self.low
        bins += scores > self.high
        self.rows += np.bincount(bins, minlength=BINS + 3)
        self.qualified += np.bincount(bins[labels], minlength=BINS + 3)
        np.minimum.at(self.smallest, bins, scores)
        np.maximum.at(self.largest, bins, scores)

    def bins(self) -> Bins:
        full = np.flatnonzero(self.rows)
        return Bins(self.smallest[full], self.largest[full], self.rows[full], self.qualified[full])


def _numbers(scores: Scores) -> list[NDArray[np.int64]]:
    first, second = (each.astype(np.int64) for each in score_summary.digits(scores, np.floor))
    return [first, score_summary.mixed(first, second)]


def _total(numbers: Sequence[NDArray[Any]]) -> Sums:
    return Sums(*(int(each.sum()) for each in numbers))


def rows_fingerprint(scores: Scores, labels: NDArray[Any]) -> str | None:
    """The fingerprint of columns as they are: a label that is missing is not qualified, a row without a
    finite score is left out; None where no row is left."""
    usable = np.isfinite(scores)
    kept, good = scores[usable], (labels == 1)[usable]
    return ArrayEvidence(len(kept), kept[good], kept, good).summary([]).fingerprint if len(kept) else None


def fingerprint_of(rows: int, qualified: Mask, scores: Scores) -> str:
    """The fingerprint "arrays 1" of earlier versions and of campaigns: it depends on the order of rows."""
    digest = hashlib.sha256(rows.to_bytes(8, "little"))
    digest.update(np.packbits(qualified).tobytes())
    digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return digest.hexdigest()
