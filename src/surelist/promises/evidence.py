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

from surelist._names import option
from surelist.errors import InvalidInput
from surelist.promises.array_summary import summarise_arrays
from surelist.promises.other_scores import require_others
from surelist.promises.pools import PoolRows, pool_rows
from surelist.promises.promise import Promise
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.state import Requirement, Step
from surelist.score_summary import RowSummary
from surelist.ties import Salt

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

    numbers: NDArray[Any]  # the scores as they came: whole numbers and short floats are not copied
    labels: NDArray[Any]
    pools: Any = None

    @property
    def scores(self) -> Scores:
        """The scores as float64."""
        return self.numbers.astype(np.float64, copy=False)

    @property
    def good(self) -> Mask:
        """Which rows are qualified; an amount above 0 counts as such."""
        return self.labels if self.labels.dtype == np.bool_ else np.asarray(self.labels > 0)

    def only(self, mask: Mask | None) -> RowColumns:
        """All rows, of which only some can count as qualified."""
        return self if mask is None else RowColumns(self.numbers, self.good & mask, self.pools)

    def part(self, mask: Mask | None) -> RowColumns:
        """Only some of the rows."""
        if mask is None:
            return self
        pools = None if self.pools is None else np.asarray(self.pools, dtype=object)[mask]
        return RowColumns(self.numbers[mask], self.labels[mask], pools)


class Evidence(Struct, frozen=True, eq=False):
    """One group's calibration rows as a rule asks for them.

    ``columns`` and ``pooled`` are there where every row, or whole pools, were read; ``others`` are scores of
    other candidates; ``labels_given`` are the labels as they came. With a ``salt`` ties are broken,
    and the numbers that decided go to ``spent``. Under one cutoff for all groups, ``beside`` has every
    group's promise and rows.
    """

    counts: RowCounts
    group: str | None = None
    columns: RowColumns | None = None
    pooled: PoolRows | None = None
    others: Scores | None = None
    alike: bool = True  # whether the others come from the population of these rows
    labels_given: Any = None
    salt: Salt | None = None
    spent: set[int] = field(default_factory=set)
    beside: tuple[tuple[Promise, Evidence], ...] = ()

    @property
    def sampled(self) -> SampledLabels | None:
        """That labels were drawn at two rates, and how."""
        labels = self.labels_given
        return labels if isinstance(labels, SampledLabels) and labels.above is not None else None

    @property
    def noise(self) -> NoisyLabels | None:
        """How often labels may be wrong."""
        return self.labels_given if isinstance(self.labels_given, NoisyLabels) else None

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
                "pools",
                f"whole pools are the units of this promise; pass {option('pools')}, one pool id per row.",
            )
        labels = rows.labels if amounts else rows.good
        return pool_rows(rows.scores, labels, None if each_row else rows.pools, by_rank=by_rank)

    def require_others(self) -> Scores:
        """Scores of other candidates; the calibration rows' own are refused."""
        assert self.others is not None
        require_others(self.scores, self.others)
        return self.others


class ArrayCounts(Struct, frozen=True, eq=False):
    """Counts from memory: the qualified scores of one group, a copy of its own, and all its rows'."""

    rows: int
    scores: Scores
    everyone: NDArray[Any]
    ids: list[str] | None = None

    @property
    def qualified(self) -> int:
        return len(self.scores)

    @classmethod
    def of(
        cls, scores: NDArray[Any], qualified: Mask, member: Mask | None = None, ids: list[str] | None = None,
        rows: int | None = None,
    ) -> ArrayCounts:  # fmt: skip
        """``member`` marks the group's rows; ``rows`` are those it counts among, where that is more."""
        chosen = qualified if member is None else qualified & member
        texts = [ids[row] for row in np.flatnonzero(chosen)] if ids is not None else None
        everyone = scores if member is None else scores.compress(member)  # faster than scores[member]
        own = scores.compress(chosen).astype(np.float64, copy=False)
        return cls(len(everyone) if rows is None else rows, own, everyone, texts)

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        ranks = [len(self.scores) - count for count in counts]
        if self.ids is None:  # else the order of the scores is that of the ids
            self.scores.partition(sorted(set(ranks)))
            return [float(self.scores[rank]) for rank in ranks]
        ordered = np.partition(self.scores, sorted(set(ranks)))
        return [float(ordered[rank]) for rank in ranks]

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        assert self.ids is not None
        above = int(np.count_nonzero(self.scores > threshold))
        return above, [self.ids[row] for row in np.flatnonzero(self.scores == threshold)]

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        return summarise_arrays(self.everyone, self.scores, thresholds)


def rows_fingerprint(scores: Scores, labels: NDArray[Any]) -> str | None:
    """The fingerprint of columns as they are: a label that is missing is not qualified, a row without a
    finite score is left out; None where no row is left."""
    usable = np.isfinite(scores)
    kept, good = scores[usable], (labels == 1)[usable]
    return summarise_arrays(kept, kept[good], []).fingerprint if len(kept) else None


def fingerprint_of(rows: int, qualified: Mask, scores: Scores) -> str:
    """The fingerprint "arrays 1" of earlier versions and of campaigns: it depends on the order of rows."""
    digest = hashlib.sha256(rows.to_bytes(8, "little"))
    digest.update(np.packbits(qualified).tobytes())
    digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return digest.hexdigest()
