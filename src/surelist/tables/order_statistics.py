"""Exact order statistics by counting passes: rows stay where they are, only counts come back.

Pass 1 groups scores into the usual bins and brings back, per bin, how many there are and the smallest and
largest of them. Bins are disjoint intervals, so counting down from the top says in which bin the c-th largest
score lies. A bin of one value is the answer; the scores of bins that hold few rows are fetched with their
counts; others are cut more finely first: many bins of one scale all at once, by more bins of that scale, and
a few each on a scale of its own, however unevenly scores are spread.

Every bin expression is built from operations that IEEE 754 rounds correctly (subtraction, multiplication,
square root, floor), so it never decreases when the score grows, on any engine, and finer bins of a scale lie
inside coarser ones exactly. That the bins came back in order and disjoint is checked all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from surelist.errors import InvalidInput, SurelistError
from surelist.score_summary import BINS, USUAL, Scale
from surelist.tables.engines import Frame, plain
from surelist.tables.roles import GROUP, ID, PREFIX, ROWS, SCORE, Columns, any_of
from surelist.tables.sources import Table

BIN, LOW, HIGH, ROOT, QUALIFIED = (PREFIX + name for name in ("bin", "low", "high", "root", "qualified"))
WIDE = 2  # times as many rows may be fetched where those that are not ranked come along
SPLITS = 16  # most intervals cut on scales of their own in one pass
RANGES = 64  # most intervals that are fetched by their ends, which lets files skip rows; more go by bin
LINES = 1 << 16  # about as many bins come back from one pass
DEPTH = 1 << 34  # of the finest bins of a scale: beyond, intervals get scales of their own
TINY = 5e-324

Around = Callable[[Any, float, float], tuple[float, float, int]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Parts(NamedTuple):
    """Bins of one group: number, rows, smallest and largest score of each. Of scores that were fetched one by
    one also the smallest value of the column asked for."""

    bin: Ints
    rows: Ints
    low: Floats
    high: Floats
    first: NDArray[Any] | None = None

    def only(self, kept: Any) -> Parts:
        first = None if self.first is None else self.first[kept]
        return Parts(self.bin[kept], self.rows[kept], self.low[kept], self.high[kept], first)


NOTHING = Parts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class Cut(Struct, frozen=True, eq=False):
    """Bins of a scale, ``depth`` for each of its own: of all scores, or of those of one interval."""

    scale: Scale = USUAL
    depth: int = 1
    of: Interval | None = None

    @property
    def bins(self) -> nw.Expr:
        return bin_of(self.scale, self.depth)


class Interval(Struct, frozen=True, eq=False):
    """Scores of one group from ``low`` to ``high``: how many, how many lie above, and whose bin they are.

    Of one score that was fetched, and that one row has, ``first`` is its value in the column asked for.
    """

    group: Any
    low: float
    high: float
    rows: int
    above: int
    cut: Cut = Cut()
    bin: int = 0
    first: Any = None


Answers = dict[tuple[Any, int], Interval]
Pending = dict[Interval, list[int]]


class OrderStatistics:
    """The scores of a frame with columns SCORE and, if ``grouped``, GROUP; ``bins`` where counted already,
    ``depth`` for each of the usual ones.

    With ``around`` only rows are ranked that have 1 in the column QUALIFIED; ``around`` says which scores
    share a bin with others, and how many rows have them. Where few have, their scores are fetched with
    those that are ranked, and kept in ``known``: per group score to rows and qualified rows. Scores
    are fetched from ``placed``, where it is given, with the smallest value of its column ``first``.
    """

    def __init__(
        self, columns: Columns, frame: Frame, *, grouped: bool, around: Around | None = None,
        bins: Mapping[object, Parts] | None = None, depth: int = 1, placed: Frame = None,
        first: str | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.around, self.first, self.cut = columns, around, first, Cut(depth=depth)
        self.ranked = nw.lit(1) if around is None else nw.col(QUALIFIED)
        self.everyone = frame if placed is None else placed
        self.frame = frame if around is None else frame.filter(self.ranked == 1)
        self.keys = [GROUP] if grouped else []
        self.known: dict[Any, dict[float, tuple[int, int]]] = {}
        if bins is None:
            bins = fetched(columns, counted(self.frame, self.keys, self.cut.bins), "counting scores")
        self.bins = bins

    def find(self, wanted: Mapping[object, Iterable[int]]) -> Answers:
        """The count-th largest score of each group, for each count wanted, as an interval of one score."""
        answers: Answers = {}
        pending: Pending = {}
        for group, counts in wanted.items():
            parts = self.bins.get(group, NOTHING)
            everyone = Interval(group, -math.inf, math.inf, int(parts.rows.sum()), 0)
            self._settle({everyone: list(counts)}, self.cut, parts, answers, pending)
        whole: set[Interval] = set()  # intervals that no bins can split: fetched however large
        while pending:
            divisible = [each for each in pending if each not in whole]
            if sum(each.rows for each in divisible) <= self.columns.table.engine.few:
                self._fetch(pending, answers)
                break
            by_cut: dict[Cut, list[Interval]] = {}
            for each in divisible:
                by_cut.setdefault(each.cut, []).append(each)
            cut, siblings = max(by_cut.items(), key=lambda item: len(item[1]))
            if len(siblings) > SPLITS and cut.depth < DEPTH:
                self._deeper(cut, siblings, answers, pending)
            else:
                largest = sorted(divisible, key=lambda each: -each.rows)[:SPLITS]
                whole |= self._apart(largest, answers, pending)
        return answers

    def _deeper(self, cut: Cut, siblings: list[Interval], answers: Answers, pending: Pending) -> None:
        """Cut intervals by more bins of the scale whose bins they are."""
        bins, groups = {each.bin for each in siblings}, {each.group for each in siblings}
        finer = 1 << max(1, (LINES // (len(bins) * len(groups))).bit_length() - 1)
        deep = replace(cut, depth=min(DEPTH, cut.depth * finer))
        found = self._count_finer(self._inside(self.frame, {cut: bins}, groups), deep.bins)
        for group, own in _by_group({each: pending.pop(each) for each in siblings}).items():
            self._settle(own, deep, found.get(group, NOTHING), answers, pending)

    def _apart(self, intervals: list[Interval], answers: Answers, pending: Pending) -> set[Interval]:
        """Cut each on a scale of its own; those that come back whole."""
        depth = 1 << max(0, (LINES // (len(intervals) * BINS)).bit_length() - 1)
        stride = (BINS + 3) * depth  # bin numbers set aside for each: one more bin at either end
        cuts = [Cut(_own_scale(each), depth, each) for each in intervals]
        within = [self._within(each) for each in intervals]
        scales = [(inside, cut.scale) for inside, cut in zip(within, cuts, strict=True)]
        frame = rooted(self.frame.filter(any_of(within)), scales)
        bins = pick(
            (inside, cut.bins + (number * stride + depth))
            for number, (inside, cut) in enumerate(zip(within, cuts, strict=True))
        )
        found, whole = self._count_finer(frame, bins), set[Interval]()
        for number, (each, cut) in enumerate(zip(intervals, cuts, strict=True)):
            parts = found.get(each.group, NOTHING)
            parts = parts.only(parts.bin // stride == number)
            parts = parts._replace(bin=parts.bin % stride - depth)
            if len(parts.bin) == 1:
                whole.add(each)
            else:
                self._settle({each: pending.pop(each)}, cut, parts, answers, pending)
        return whole

    def _count_finer(self, frame: Frame, bins: nw.Expr) -> dict[Any, Parts]:
        return fetched(self.columns, counted(frame, self.keys, bins), "counting scores more finely")

    def _settle(self, outers: Pending, cut: Cut, parts: Parts, answers: Answers, pending: Pending) -> None:
        """Put every count of these intervals of one group into the bin that holds it; a bin of one value is
        the answer."""
        intervals = sorted(outers, key=lambda each: each.above)
        low, high = (np.array([getattr(each, end) for each in intervals]) for end in ("low", "high"))
        above, rows = (np.array([getattr(each, n) for each in intervals]) for n in ("above", "rows"))
        parts = _descending(parts)
        outer = np.searchsorted(-low, -parts.low)  # the interval that a bin lies in, if any
        held = np.flatnonzero(parts.high <= np.append(high, -math.inf)[outer])
        parts, outer = parts.only(held), outer[held]
        same = np.array_equal(np.bincount(outer, parts.rows, len(rows)), rows)
        require_same_rows(same, self.columns.table)
        ends = np.cumsum(parts.rows) + (above - np.cumsum(rows) + rows)[outer]
        counts = [count for each in intervals for count in outers[each]]
        places = np.searchsorted(ends, counts).tolist()
        holders: dict[int, Interval] = {}
        for count, at in zip(counts, places, strict=True):
            if at not in holders:
                size = int(parts.rows[at])
                first = parts.first[at] if parts.first is not None and size == 1 else None
                holders[at] = Interval(
                    intervals[0].group, float(parts.low[at]), float(parts.high[at]), size,
                    int(ends[at]) - size, cut, int(parts.bin[at]), first,
                )  # fmt: skip
            holder = holders[at]
            if holder.low == holder.high:
                answers[holder.group, count] = holder
            else:
                pending.setdefault(holder, []).append(count)

    def _fetch(self, pending: Pending, answers: Answers) -> None:
        """Bring back the scores of all intervals, with their counts."""
        score, kept = nw.col(SCORE), self.everyone
        wide = self._widened(list(pending))
        if wide is None and self.around is not None:
            kept = kept.filter(self.ranked == 1)
        ranges = wide or list(pending)
        if len(ranges) <= RANGES:
            low, high = min(each.low for each in ranges), max(each.high for each in ranges)
            kept = kept.filter((score >= low) & (score <= high))
            kept = kept.filter(any_of((score >= each.low) & (score <= each.high) for each in ranges))
            if self.keys:
                # numbers first: that leaves few rows whose group, a text, is compared; in a choice, since
                # DuckDB would take a condition on groups alone out of it, and compare those of all rows
                inside = nw.when(any_of(map(self._within, ranges))).then(nw.lit(1)).otherwise(nw.lit(0))
                kept = kept.filter(inside == 1)
        else:
            by_cut: dict[Cut, set[int]] = {}
            for each in pending:
                by_cut.setdefault(each.cut, set()).add(each.bin)
            kept = self._inside(kept, by_cut, {each.group for each in pending})
        counts = [nw.len().alias(ROWS), nw.col(BIN).sum().alias(BIN)]
        if self.first is not None:
            counts.append(nw.col(self.first).min().alias(LOW))
        asked = kept.with_columns(self.ranked.alias(BIN)).group_by(*self.keys, SCORE).agg(*counts)
        numbers = (SCORE, ROWS, BIN) if self.first == ID else (SCORE, ROWS, BIN, LOW)
        raw = self.columns.arrays(asked, "fetching the scores around the thresholds", numbers)
        lines, first = lines_by_group(raw), raw.get(LOW)
        for group, own in _by_group(pending).items():
            at = lines.get(group, NOTHING.bin)
            at = at[np.argsort(-raw[SCORE][at], kind="stable")]
            scores = raw[SCORE][at]
            starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1])[: len(at)])
            scores = scores[starts]  # -0.0 is another's equal
            rows, ranked = (_added(raw[name][at], starts) for name in (ROWS, BIN))
            if wide is not None:
                both = zip(rows.tolist(), ranked.tolist(), strict=True)
                self.known.setdefault(group, {}).update(zip(scores.tolist(), both, strict=True))
            singles = Parts(
                -np.arange(len(starts)), ranked, scores, scores,
                None if first is None else np.asarray(first, dtype=object)[at[starts]],
            ).only(ranked > 0)  # fmt: skip
            self._settle(own, self.cut, singles, answers, {})

    def _widened(self, intervals: list[Interval]) -> list[Interval] | None:
        """With all rows of their bins, qualified or not; None where those are many."""
        if self.around is None or len(intervals) > RANGES:
            return None
        wide = [Interval(each.group, *self.around(each.group, each.low, each.high), 0) for each in intervals]
        return wide if sum(each.rows for each in wide) <= WIDE * self.columns.table.engine.few else None

    def _inside(self, frame: Frame, bins: Mapping[Cut, set[int]], groups: set[object]) -> Frame:
        """Rows of these groups in these bins."""
        if self.keys:
            frame = frame.filter(nw.col(GROUP).is_in(sorted(groups)))
        within = {cut: None if cut.of is None else self._within(cut.of) for cut in bins}
        frame = rooted(frame, [(inside, cut.scale) for cut, inside in within.items()])
        held = {cut: cut.bins.is_in(sorted(numbers)) for cut, numbers in bins.items()}
        inside = (each if within[cut] is None else within[cut] & each for cut, each in held.items())
        return frame.filter(any_of(inside))

    def _within(self, interval: Interval) -> nw.Expr:
        inside = (nw.col(SCORE) >= interval.low) & (nw.col(SCORE) <= interval.high)
        return inside & (nw.col(GROUP) == interval.group) if self.keys else inside


def require_same_rows(same: bool, table: Table) -> None:
    """Raise where a table gave other counts than before."""
    if not same:
        raise InvalidInput(
            table.name, "gave other rows when it was asked again. Write it to a file first, or cache it."
        )


def counted(frame: Frame, keys: Sequence[str], bins: nw.Expr, *more: nw.Expr) -> Frame:
    """Rows, smallest and largest score of each bin."""
    score = nw.col(SCORE)
    counts = nw.len().alias(ROWS), score.min().alias(LOW), score.max().alias(HIGH)
    return frame.with_columns(bins.alias(BIN)).group_by(*keys, BIN).agg(*counts, *more)


def fetched(columns: Columns, frame: Frame, what: str) -> dict[Any, Parts]:
    """Bins of ``counted``, by group (None without groups); where there is no score, low and high are NaN."""
    raw = columns.arrays(frame, what, (BIN, ROWS, LOW, HIGH))
    bins, rows = (np.nan_to_num(raw[name]).astype(np.int64) for name in (BIN, ROWS))
    parts = Parts(bins, rows, raw[LOW], raw[HIGH])
    return {name: parts.only(lines) for name, lines in lines_by_group(raw).items()}


def lines_by_group(raw: Mapping[str, Any]) -> dict[Any, Ints]:
    """Which lines came back for each group; None without groups."""
    if GROUP not in raw:
        return {None: np.arange(len(raw[ROWS]))}
    lines: dict[Any, list[int]] = {}
    for at, name in enumerate(raw[GROUP]):
        lines.setdefault(name, []).append(at)
    named: dict[Any, list[int]] = {}
    for name, held in zip(plain(lines), lines.values(), strict=True):
        named.setdefault(name, []).extend(held)
    return {name: np.array(held, dtype=np.int64) for name, held in named.items()}


def pick(cases: Iterable[tuple[nw.Expr | None, nw.Expr]]) -> nw.Expr:
    """The expression of the case that a row is in; a case of None is everyone's."""
    chosen = nw.lit(0)
    for inside, each in cases:
        chosen = each if inside is None else nw.when(inside).then(each).otherwise(chosen)
    return chosen


def rooted(frame: Frame, cases: Sequence[tuple[nw.Expr | None, Scale]]) -> Frame:
    """With the roots that bins of many magnitudes are about.

    One column after the other: SQL says a root's argument twice, and one of ten roots 1024 times.
    """
    cases = [(inside, scale) for inside, scale in cases if scale.roots]
    if cases:
        score = pick((inside, scale.inside(nw.col(SCORE))) for inside, scale in cases)
        frame = frame.with_columns(score.alias(ROOT))
    root = nw.col(ROOT)
    for taken in range(max((scale.roots for _, scale in cases), default=0)):
        more = pick((inside, root.sqrt() if scale.roots > taken else root) for inside, scale in cases)
        frame = frame.with_columns(more.alias(ROOT))
    return frame


def root_of(scale: Scale) -> nw.Expr:
    """A score as it is before bins of even width are counted off."""
    return nw.col(ROOT) if scale.roots else scale.inside(nw.col(SCORE))


def bin_of(scale: Scale, depth: int = 1) -> nw.Expr:
    """The number of a score's bin, from the lowest up."""
    score, place = nw.col(SCORE), scale.place(root_of(scale))
    if depth > 1:
        place = place * float(depth)
    kind = nw.Int32 if depth == 1 else nw.Int64
    bins: nw.Expr = place.floor().cast(kind)
    if scale is USUAL:  # where scores lie beyond, own bins follow
        return bins
    return bins + ((score > scale.high).cast(kind) - (score < scale.low).cast(kind)) * depth


def _own_scale(interval: Interval) -> Scale:
    """Pass 1 has a bin begin at 0, so no interval has both signs; 0 itself is beyond the scale."""
    low, high = interval.low, interval.high
    return Scale.own(low or TINY, high or -TINY, low, high)


def _descending(parts: Parts) -> Parts:
    """Bins from the top down, checked to be in order and disjoint."""
    parts = parts.only(np.argsort(-parts.bin))
    below = np.append(math.inf, parts.low[:-1])[: len(parts.low)]
    wrong = np.flatnonzero(~((parts.low <= parts.high) & (parts.high < below)))
    if len(wrong):
        high = float(parts.high[wrong[0]])
        raise SurelistError(f"bins of scores overlap at {high!r}: this engine's arithmetic is not exact.")
    return parts


def _by_group(pending: Pending) -> dict[Any, Pending]:
    parts: dict[Any, Pending] = {}
    for each, counts in pending.items():
        parts.setdefault(each.group, {})[each] = counts
    return parts


def _added(counts: Floats, starts: Ints) -> Ints:
    """Sums of the lines from each start to the next."""
    return np.add.reduceat(counts, starts).astype(np.int64) if len(starts) else NOTHING.rows
