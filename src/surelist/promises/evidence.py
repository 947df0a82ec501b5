"""What promises ask of calibration rows, as rows or as whole pools, and the answer from arrays.

Tables answer ``RowCounts`` in a package of their own; whoever does can be certified from. Inside a pool
anything may depend on anything [theory: pools].
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from surelist import _check as check
from surelist._arrays import Column, Floats, Ints, Mask
from surelist._names import option
from surelist.bounds.counts import twins_apart
from surelist.errors import InvalidInput
from surelist.filters import Salt, ranks_within
from surelist.promises.array_summary import summarise_arrays
from surelist.promises.promise import Promise
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.state import Counted, Requirement, Step
from surelist.score_summary import RowSummary


class RowCounts(Counted, Protocol):
    """What any engine can count of one group's rows."""

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        """The count-th largest qualified score, for each count."""

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        """How many qualified rows score above, and the ids of those exactly at the threshold."""

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        """Range, sketch, AUC and fingerprint of the group's rows, and how many reach the thresholds."""


class RowColumns(Struct, frozen=True, eq=False, dict=True):
    """Calibration rows in memory, and what is counted of them: scores, labels (flags or amounts), and what
    came with them.

    ``among``: the rows that a group's count among, where that is more than its own.
    """

    numbers: Column  # the scores as they came: whole numbers and short floats are not copied
    labels: Column
    pools: object = None
    ids: list[str] | None = None
    among: int | None = None

    @property
    def rows(self) -> int:
        return len(self.numbers) if self.among is None else self.among

    @property
    def scores(self) -> Floats:
        """The scores as float64."""
        return self.numbers.astype(np.float64, copy=False)

    @property
    def good(self) -> Mask:
        """Which rows are qualified; an amount above 0 counts as such."""
        return self.labels if self.labels.dtype == np.bool_ else np.asarray(self.labels > 0)

    @cached_property
    def hits(self) -> Floats:
        """The scores of the qualified rows, a copy of their own."""
        return self.numbers.compress(self.good).astype(np.float64, copy=False)  # faster than numbers[good]

    @property
    def qualified(self) -> int:
        return len(self.hits)

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        ranks = [len(self.hits) - count for count in counts]
        self.hits.partition(sorted(set(ranks)))
        return [float(self.hits[rank]) for rank in ranks]

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        assert self.ids is not None
        above = int(np.count_nonzero(self.hits > threshold))
        return above, [self.ids[row] for row in np.flatnonzero(self.good & (self.scores == threshold))]

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        return summarise_arrays(self.numbers, self.hits, thresholds)

    def only(self, mask: Mask | None) -> RowColumns:
        """All rows, of which only some can count as qualified."""
        return self if mask is None else replace(self, labels=self.good & mask)

    def part(self, mask: Mask | None) -> RowColumns:
        """Only some of the rows."""
        if mask is None:
            return self
        pools = None if self.pools is None else np.asarray(self.pools, dtype=object)[mask]
        ids = None if self.ids is None else [self.ids[row] for row in np.flatnonzero(mask)]
        return RowColumns(self.numbers.compress(mask), self.labels.compress(mask), pools, ids, self.among)


class Evidence(Struct, frozen=True, eq=False):
    """One group's calibration rows as a rule asks for them.

    ``columns`` and ``pooled`` are there where every row, or whole pools, were read; ``others`` are scores of
    other candidates, as they came; ``labels_given`` are the labels as they came. With a ``salt`` ties are
    broken, and the numbers that decided go to ``spent``. Under one cutoff for all groups, ``beside`` has
    every group's promise and rows.
    """

    counts: RowCounts
    group: str | None = None
    columns: RowColumns | None = None
    pooled: PoolRows | None = None
    others: Column | None = None
    alike: bool = True  # whether the others come from the population of these rows
    labels_given: object = None
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
    def scores(self) -> Floats:
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
            what = f"pass {option('pools')}, one pool id per row"
            raise InvalidInput("pools", f"whole pools are the units of this promise; {what}.")
        labels, count = rows.labels if amounts else rows.good, len(rows.scores)
        codes, pools = (np.arange(count), count) if each_row else check.as_codes(rows.pools, count)
        return PoolRows.of(rows.scores, labels, codes, pools, by_rank=by_rank)

    def require_others(self) -> Floats:
        """Scores of other candidates; the calibration rows' own are refused, which only draws from one
        population can tell."""
        if self.alike:
            require_others(self.scores, self.other_scores)
        return self.other_scores

    @property
    def other_scores(self) -> Floats:
        """Scores of other candidates as float64."""
        assert self.others is not None
        return self.others.astype(np.float64, copy=False)


def rows_fingerprint(scores: Floats, labels: Column) -> str | None:
    """The fingerprint of columns as they are: a label that is missing is not qualified, a row without a
    finite score is left out; None where no row is left."""
    usable = np.isfinite(scores)
    kept, good = scores[usable], (labels == 1)[usable]
    return summarise_arrays(kept, kept[good], []).fingerprint if len(kept) else None


def scores_fingerprint(scores: Floats) -> str:
    """SHA-256 of a pool's scores, in any order."""
    return hashlib.sha256(np.sort(scores).astype("<f8").tobytes()).hexdigest()


class PoolRows(Struct, frozen=True, eq=False):
    """The qualified rows of whole pools: scores and pool numbers, best score first.

    ``values`` are what each row is worth (1 where labels are 0 and 1). By rank, a row's score is minus
    its rank in its pool, tied rows sharing the best one. The last ``unscored`` pools have no row with a
    score: whoever is qualified there is never listed, so they reach nothing.
    """

    pools: int
    rows: int
    scores: Floats
    codes: Ints
    values: Floats | None = None
    unscored: int = 0

    @classmethod
    def of(
        cls, scores: Floats, values: Floats | Mask, codes: Ints, pools: int, *, by_rank: bool = False
    ) -> PoolRows:
        if by_rank:
            scores = ranks_within(scores, codes)
        chosen = np.flatnonzero(values > 0)
        order = chosen[np.argsort(-scores[chosen], kind="stable")]
        worth = None if values.dtype == np.bool_ else values[order].astype(np.float64)
        return cls(pools, len(scores), scores[order], codes[order], worth)

    @classmethod
    def of_qualified(cls, rows: int, pools: int, scores: Floats, codes: Ints, unscored: int = 0) -> PoolRows:
        """From the qualified rows alone; pools without any have no code."""
        order = np.argsort(-scores, kind="stable")
        return cls(pools, rows, scores[order], codes[order], unscored=unscored)

    @property
    def qualified(self) -> int:
        return len(self.scores)

    def reached(self, needed_of: Callable[[Ints], Ints]) -> Floats:
        """V: the score at which each pool reaches what is needed of it; -inf where it never does.

        ``needed_of`` says how many qualified ones the list of a pool must hold that has so many. +inf
        where that is none: a pool without qualified candidates keeps any share of them.
        """
        sizes = np.bincount(self.codes, minlength=self.pools)
        needed = needed_of(sizes)
        by_pool = np.argsort(self.codes, kind="stable")  # best first within each pool
        starts = np.cumsum(sizes) - sizes
        values = np.where(needed == 0, math.inf, -math.inf)
        values[self.pools - self.unscored :] = -math.inf
        enough = np.flatnonzero((needed > 0) & (needed <= sizes))
        values[enough] = self.scores[by_pool[starts[enough] + needed[enough] - 1]]
        return values

    def totals(self, count: int) -> Floats:
        """What each pool's list holds when the best ``count`` qualified rows are on it."""
        worth = None if self.values is None else self.values[:count]
        return np.bincount(self.codes[:count], worth, minlength=self.pools).astype(np.float64)


BY_CHANCE = 1e-9  # that rows and others, drawn alike, are refused
SCRAMBLED = np.uint64(0x3C6EF372FE94F82A)  # without a pattern, and even: the sign of a zero is no matter
SORTED = 400_000  # scores of rows and others together, about, of which those that come twice are looked for


def require_others(scores: Floats, unlabelled: Floats, name: str = "unlabelled") -> None:
    """Refuse unlabelled scores that hold calibration rows, or are among them."""
    if hold_rows(scores, unlabelled):
        own = "these scores hold some of the calibration rows' own, or are ranks within a file: more scores"
        twice = "than by chance are that of one calibration row and of one of these"
        others = "They have to be scores of other candidates, by a score fixed before"
        raise InvalidInput(name, f"{own} {twice}. {others}: leave the labelled rows out.")


def hold_rows(rows: Floats, others: Floats) -> bool:
    """Whether some were given on both sides, by the scores that come exactly twice [theory: setting].

    Of draws from one population both lie anywhere; of somebody who was given twice one lies here, one there.
    """
    rows, others = (some_of(each, len(rows) + len(others)) for each in (rows, others))
    values, times = np.unique(np.concatenate([rows, others]), return_counts=True)
    mine, own = np.unique(rows, return_counts=True)
    pairs = values[times == 2]
    apart = int(np.isin(pairs, mine[own == 1], assume_unique=True).sum())
    return twins_apart(apart, len(pairs), len(rows), len(others)) <= BY_CHANCE


def some_of(scores: Floats, total: int) -> Floats:
    """Of many scores some, whichever side they are on: those whose bits, scrambled, are low."""
    if total <= SORTED:
        return scores
    most = np.uint64(2**64 // -(-total // SORTED) - 1)
    blocks = (scores[at : at + SORTED] for at in range(0, len(scores), SORTED))
    return np.concatenate([each[each.view(np.uint64) * SCRAMBLED <= most] for each in blocks])
