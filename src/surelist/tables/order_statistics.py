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
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import narwhals as nw

from surelist._dataclasses import dataclass, replace
from surelist.errors import InvalidInput, SurelistError
from surelist.score_summary import BINS, USUAL, Scale
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, PREFIX, ROWS, SCORE, Columns
from surelist.tables.sources import Table

BIN, LOW, HIGH, ROOT, QUALIFIED = (PREFIX + name for name in ("bin", "low", "high", "root", "qualified"))
WIDE = 2  # times as many rows may be fetched where those that are not ranked come along
SPLITS = 16  # most intervals cut on scales of their own in one pass
RANGES = 64  # most intervals that are fetched by their ends, which lets files skip rows; more go by bin
LINES = 1 << 16  # about as many bins come back from one pass
DEPTH = 1 << 34  # of the finest bins of a scale: beyond, intervals get scales of their own
TINY = 5e-324

Part = tuple[int, int, float, float]  # bin number, rows, smallest and largest score
Around = Callable[[Any, float, float], tuple[float, float, int]]


@dataclass(frozen=True, eq=False)
class Cut:
    """Bins of a scale, ``depth`` for each of its own: of all scores, or of those of one interval."""

    scale: Scale = USUAL
    depth: int = 1
    of: Interval | None = None

    @property
    def bins(self) -> nw.Expr:
        return bin_of(self.scale, self.depth)


@dataclass(frozen=True, eq=False)
class Interval:
    """Scores of one group from ``low`` to ``high``: how many, how many lie above, and whose bin they are.

    Of one score that was fetched, ``first`` is the smallest value of the column asked for.
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
        bins: Mapping[Any, list[Part]] | None = None, depth: int = 1, placed: Frame = None,
        first: str | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.around, self.first, self.cut = columns, around, first, Cut(depth=depth)
        self.ranked = nw.lit(1) if around is None else nw.col(QUALIFIED)
        self.everyone = frame if placed is None else placed
        self.frame = frame if around is None else frame.filter(self.ranked == 1)
        self.keys = [GROUP] if grouped else []
        self.known: dict[Any, dict[float, tuple[int, int]]] = {}
        if bins is None:
            bins = by_group(columns.rows(counted(self.frame, self.keys, self.cut.bins), "counting scores"))
        self.bins = {name: _descending(parts) for name, parts in bins.items()}

    def find(self, wanted: Mapping[Any, Iterable[int]]) -> Answers:
        """The count-th largest score of each group, for each count wanted, as an interval of one score."""
        answers: Answers = {}
        pending: Pending = {}
        for group, counts in wanted.items():
            everyone = Interval(group, -math.inf, math.inf, 0, 0)
            _settle(everyone, self.cut, self.bins.get(group, []), counts, answers, pending)
        whole: set[Interval] = set()  # intervals that no bins can split: fetched however large
        while pending:
            divisible = [each for each in pending if each not in whole]
            if sum(each.rows for each in divisible) <= self.columns.table.engine.few:
                self._fetch(pending, answers)
                break
            for each, (cut, parts) in self._split(divisible).items():
                if len(parts) == 1 and cut.of is each:
                    whole.add(each)
                else:
                    _settle(each, cut, parts, pending.pop(each), answers, pending)
        return answers

    def _split(self, intervals: list[Interval]) -> dict[Interval, tuple[Cut, list[Part]]]:
        """Cut some intervals more finely, in one pass."""
        by_cut: dict[Cut, list[Interval]] = {}
        for each in intervals:
            by_cut.setdefault(each.cut, []).append(each)
        cut, siblings = max(by_cut.items(), key=lambda item: len(item[1]))
        if len(siblings) > SPLITS and cut.depth < DEPTH:
            return self._deeper(cut, siblings)
        return self._apart(sorted(intervals, key=lambda each: -each.rows)[:SPLITS])

    def _deeper(self, cut: Cut, siblings: list[Interval]) -> dict[Interval, tuple[Cut, list[Part]]]:
        """By more bins of the scale whose bins they are."""
        bins, groups = {each.bin for each in siblings}, {each.group for each in siblings}
        finer = 1 << max(1, (LINES // (len(bins) * len(groups))).bit_length() - 1)
        deep = replace(cut, depth=min(DEPTH, cut.depth * finer))
        frame = self._inside(self.frame, {cut: bins}, groups)
        parts: dict[tuple[Any, int], list[Part]] = {}
        for *key, bin_, rows, low, high in self._count_finer(frame, deep.bins):
            outer = bin_ * cut.depth // deep.depth
            parts.setdefault((key[0] if key else None, outer), []).append((bin_, rows, low, high))
        return {each: (deep, self._inner(each, parts.get((each.group, each.bin), []))) for each in siblings}

    def _apart(self, intervals: list[Interval]) -> dict[Interval, tuple[Cut, list[Part]]]:
        """Each on a scale of its own."""
        depth = 1 << max(0, (LINES // (len(intervals) * BINS)).bit_length() - 1)
        stride = (BINS + 3) * depth  # bin numbers set aside for each: one more bin at either end
        cuts = [Cut(_own_scale(each), depth, each) for each in intervals]
        within = [self._within(each) for each in intervals]
        frame = rooted(
            self.frame.filter(_any(within)), list(zip(within, [cut.scale for cut in cuts], strict=True))
        )
        bins = pick(
            (inside, cut.bins + (number * stride + depth))
            for number, (inside, cut) in enumerate(zip(within, cuts, strict=True))
        )
        parts: list[list[Part]] = [[] for _ in cuts]
        for *_, bin_, rows, low, high in self._count_finer(frame, bins):
            parts[bin_ // stride].append((bin_ % stride - depth, rows, low, high))
        return {
            each: (cut, self._inner(each, part))
            for each, part, cut in zip(intervals, parts, cuts, strict=True)
        }

    def _count_finer(self, frame: Frame, bins: nw.Expr) -> list[tuple[Any, ...]]:
        return self.columns.rows(counted(frame, self.keys, bins), "counting scores more finely")

    def _inner(self, outer: Interval, parts: list[Part]) -> list[Part]:
        require_same_rows(sum(part[1] for part in parts) == outer.rows, self.columns.table)
        return _descending(parts)

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
            kept = kept.filter(_any((score >= each.low) & (score <= each.high) for each in ranges))
            if self.keys:  # numbers first: that leaves few rows whose group, a text, is compared
                kept = kept.filter(_any(map(self._within, ranges)))
        else:
            by_cut: dict[Cut, set[int]] = {}
            for each in pending:
                by_cut.setdefault(each.cut, set()).add(each.bin)
            kept = self._inside(kept, by_cut, {each.group for each in pending})
        counts = [nw.len().alias(ROWS), nw.col(BIN).sum().alias(BIN)]
        if self.first is not None:
            counts.append(nw.col(self.first).min().alias(LOW))
        asked = kept.with_columns(self.ranked.alias(BIN)).group_by(*self.keys, SCORE).agg(*counts)
        found: dict[Any, dict[float, list[Any]]] = {}
        for row in self.columns.rows(asked, "fetching the scores around the thresholds"):
            scores = found.setdefault(row[0] if self.keys else None, {})
            value, rows, ranked, *first = row[len(self.keys) :]
            sums = scores.setdefault(value, [0, 0, first[0] if first else None])  # -0.0 is another's equal
            sums[0], sums[1] = sums[0] + int(rows), sums[1] + int(ranked)
            sums[2] = min(sums[2], first[0]) if first and sums[2] is not None else None
        if wide is not None:
            for group, scores in found.items():
                self.known.setdefault(group, {}).update({s: (n[0], n[1]) for s, n in scores.items()})
        values = {group: sorted(s for s, n in scores.items() if n[1]) for group, scores in found.items()}
        for each, counts_wanted in pending.items():
            own, lines = values.get(each.group, []), found.get(each.group, {})
            held = own[bisect_left(own, each.low) : bisect_right(own, each.high)]
            singles = self._inner(each, [(at, lines[s][1], s, s) for at, s in enumerate(held)])
            _settle(each, each.cut, singles, counts_wanted, answers, {})
            for count in counts_wanted if self.first is not None else ():
                single = answers[each.group, count]
                answers[each.group, count] = replace(single, first=lines[single.low][2])

    def _widened(self, intervals: list[Interval]) -> list[Interval] | None:
        """With all rows of their bins, qualified or not; None where those are many."""
        if self.around is None or len(intervals) > RANGES:
            return None
        wide = [Interval(each.group, *self.around(each.group, each.low, each.high), 0) for each in intervals]
        return wide if sum(each.rows for each in wide) <= WIDE * self.columns.table.engine.few else None

    def _inside(self, frame: Frame, bins: Mapping[Cut, set[int]], groups: set[Any]) -> Frame:
        """Rows of these groups in these bins."""
        if self.keys:
            frame = frame.filter(nw.col(GROUP).is_in(sorted(groups)))
        within = {cut: None if cut.of is None else self._within(cut.of) for cut in bins}
        frame = rooted(frame, [(inside, cut.scale) for cut, inside in within.items()])
        held = {cut: cut.bins.is_in(sorted(numbers)) for cut, numbers in bins.items()}
        return frame.filter(
            _any(each if within[cut] is None else within[cut] & each for cut, each in held.items())
        )

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


def by_group(lines: Iterable[tuple[Any, ...]]) -> dict[Any, list[Part]]:
    """Bins that came back, by group (None without groups)."""
    parts: dict[Any, list[Part]] = {}
    for *key, bin_, rows, low, high in lines:
        parts.setdefault(key[0] if key else None, []).append((int(bin_), int(rows), low, high))
    return parts


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
        frame = frame.with_columns(
            pick((inside, scale.inside(nw.col(SCORE))) for inside, scale in cases).alias(ROOT)
        )
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


def _descending(parts: list[Part]) -> list[Part]:
    """Bins from the top down, checked to be in order and disjoint."""
    parts, below = sorted(parts, reverse=True), math.inf
    for _, _, low, high in parts:
        if not low <= high < below:
            raise SurelistError(f"bins of scores overlap at {high!r}: this engine's arithmetic is not exact.")
        below = low
    return parts


def _settle(
    outer: Interval, cut: Cut, parts: list[Part], counts: Iterable[int], answers: Answers, pending: Pending
) -> None:
    """Put every count into the bin that holds it; a bin of one value is the answer."""
    ends = list(accumulate((rows for _, rows, _, _ in parts), initial=outer.above))
    holders: dict[int, Interval] = {}
    for count in counts:
        at = bisect_left(ends, count, 1) - 1
        if at not in holders:
            bin_, rows, low, high = parts[at]
            holders[at] = Interval(outer.group, float(low), float(high), rows, ends[at], cut, bin_)
        if holders[at].low == holders[at].high:
            answers[outer.group, count] = holders[at]
        else:
            pending.setdefault(holders[at], []).append(count)


def _any(conditions: Iterable[Any]) -> nw.Expr:
    either: nw.Expr = reduce(operator.or_, conditions)
    return either
