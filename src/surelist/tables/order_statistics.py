"""Exact order statistics by counting passes: rows stay where they are, only counts come back.

Pass 1 groups the qualified scores into bins and brings back, per bin, how many there are and
the smallest and largest of them. Bins are disjoint intervals, so counting down from the top says
in which bin the c-th largest score lies. If that bin holds one value, that is the answer; if it
holds few rows, pass 2 fetches its scores with their counts; else it is split again.

Every bin expression is built from operations that IEEE 754 rounds correctly (subtraction,
multiplication, square root, floor), so it never decreases when the score grows, on any engine.
That the bins came back in order and disjoint is checked all the same.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from typing import Any

import narwhals as nw

from surelist._dataclasses import dataclass
from surelist.errors import SurelistError
from surelist.tables.engines import Frame

BINS = 2048  # per unit of score in pass 1, and per interval when one is split
REACH = 2.0  # scores beyond +-2 share the outermost bins of pass 1 and are split later
FETCH = 1 << 17  # most rows that the scores brought back in one pass may stand for
WIDE = 2  # times as many where those that are not ranked come along
SPLITS = 16  # most intervals split in one pass
RANGES = 64  # most intervals fetched in one pass
STRIDE = 2 * BINS  # bin numbers set aside for each interval that is split
ROOTS = 10  # 2^10-th root: spreads 600 orders of magnitude over less than 1

BIN, COUNT, LOW, HIGH = "__surelist_bin", "__surelist_rows", "__surelist_low", "__surelist_high"
ROOT = "__surelist_root"

Runner = Callable[[Frame, str], list[tuple[Any, ...]]]
Part = tuple[int, int, float, float]  # bin number, rows, smallest and largest score
Answers = dict[tuple[Any, int], float]
Around = Callable[[Any, float, float], tuple[float, float, int]]


@dataclass(frozen=True)
class Interval:
    """Scores of one group from ``low`` to ``high``: how many, and how many lie above."""

    group: Any
    low: float
    high: float
    rows: int
    above: int

    def covers(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high


Pending = dict[Interval, list[int]]


class OrderStatistics:
    """The scores of a frame with columns ``score`` and, for groups, ``group``.

    ``qualified`` names a column of 0 and 1, and only rows with 1 are ranked; then ``around`` says which
    scores share a bin with others, and how many rows have them. Where few have, their scores are
    fetched with those that are ranked, and kept in ``known``: per group score to rows and qualified rows.
    """

    def __init__(
        self, frame: Frame, run: Runner, *, score: str, group: str | None, qualified: str | None = None,
        around: Around | None = None, bins: Mapping[Any, list[Part]] | None = None,
    ) -> None:  # fmt: skip
        self.everyone, self.run, self.around = frame, run, around
        self.frame = frame if qualified is None else frame.filter(nw.col(qualified) == 1)
        self.name, self.score = score, nw.col(score)
        self.qualified = nw.lit(1) if qualified is None else nw.col(qualified)
        self.keys = [group] if group is not None else []
        self.known: dict[Any, dict[float, tuple[int, int]]] = {}
        if bins is not None:  # counted already
            self.bins = {name: _descending(name, parts, above=0) for name, parts in bins.items()}

    @cached_property
    def bins(self) -> dict[Any, list[Interval]]:
        """Per group (None without groups), the bins of pass 1 from the highest scores down."""
        binned = (self.score.clip(-REACH, REACH) * float(BINS)).floor().cast(nw.Int32)
        parts: dict[Any, list[Part]] = {}
        for *key, bin_, rows, low, high in self._histogram(self.frame, binned, "counting scores"):
            parts.setdefault(key[0] if key else None, []).append((bin_, rows, low, high))
        return {group: _descending(group, bins, above=0) for group, bins in parts.items()}

    def find(self, wanted: Mapping[Any, Iterable[int]]) -> Answers:
        """The count-th largest score of each group, for each count wanted."""
        answers: Answers = {}
        pending: Pending = {}
        for group, counts in wanted.items():
            _settle(self.bins.get(group, []), counts, answers, pending)
        whole: set[Interval] = set()  # intervals that no bins can split: fetched however large
        while pending:
            large = [each for each in pending if each.rows > FETCH and each not in whole][:SPLITS]
            if large:
                for each, finer in zip(large, self._split(large), strict=True):
                    if len(finer) == 1:
                        whole.add(each)
                    else:
                        _settle(finer, pending.pop(each), answers, pending)
            else:
                self._fetch(pending, answers)
        return answers

    def _split(self, intervals: list[Interval]) -> list[list[Interval]]:
        """Cut intervals into bins of their own, all in one pass."""
        inside, binned = self._within(intervals[0]), nw.lit(-1)
        for number, each in enumerate(intervals):
            within = self._within(each)
            inside = inside | within
            binned = nw.when(within).then(_cut(self.score, each) + number * STRIDE).otherwise(binned)
        rows = self._histogram(self._rooted(intervals).filter(inside), binned, "counting scores more finely")
        parts: dict[int, list[Part]] = {}
        for *_, bin_, count, low, high in rows:
            parts.setdefault(bin_ // STRIDE, []).append((bin_, count, low, high))
        return [_descending(each.group, parts[number], each.above) for number, each in enumerate(intervals)]

    def _rooted(self, intervals: list[Interval]) -> Frame:
        """With the 1024th root of the scores, where an interval is cut by it.

        One column after the other: SQL says a root's argument twice, and one of ten roots 1024 times.
        """
        frame = self.frame
        if any(_spans_magnitudes(each) for each in intervals):
            frame = frame.with_columns(self.score.abs().alias(ROOT))
            for _ in range(ROOTS):
                frame = frame.with_columns(nw.col(ROOT).sqrt())
        return frame

    def _fetch(self, pending: Pending, answers: Answers) -> None:
        """Bring back the scores of some intervals, with their counts; resolve what they settle."""
        taken = _affordable(pending)
        wide = self._widened(taken)
        frame, taken_wide = (self.frame, taken) if wide is None else (self.everyone, wide)
        scores = _any((self.score >= each.low) & (self.score <= each.high) for each in taken_wide)
        low, high = min(each.low for each in taken_wide), max(each.high for each in taken_wide)
        kept = frame.filter((self.score >= low) & (self.score <= high)).filter(scores)
        if self.keys:  # numbers first: that leaves few rows whose group, a text, is compared
            kept = kept.filter(_any(self._within(each) for each in taken_wide))
        counted = (
            kept.with_columns(self.qualified.alias(BIN))
            .group_by(*self.keys, self.name)
            .agg(nw.len().alias(COUNT), nw.col(BIN).sum().alias(BIN))
        )
        by_group: dict[Any, dict[float, tuple[int, int]]] = {}
        for *key, score, rows, qualified in self.run(counted, "fetching the scores around the thresholds"):
            scores_of = by_group.setdefault(key[0] if key else None, {})
            before = scores_of.get(score, (0, 0))
            scores_of[score] = before[0] + int(rows), before[1] + int(qualified)
        if wide is not None:
            for group, found in by_group.items():
                self.known.setdefault(group, {}).update(found)
        for each in taken:
            values = sorted(
                (s, n) for s, (_, n) in by_group[each.group].items() if n and each.low <= s <= each.high
            )
            singles = _descending(each.group, [(i, n, s, s) for i, (s, n) in enumerate(values)], each.above)
            for settled in [p for p in pending if p.group == each.group and each.covers(p)]:
                _settle(singles, pending.pop(settled), answers, {})

    def _widened(self, intervals: list[Interval]) -> list[Interval] | None:
        """With all rows of their bins, qualified or not; None where those are many."""
        if self.around is None:
            return None
        wide = [Interval(each.group, *self.around(each.group, each.low, each.high), 0) for each in intervals]
        return wide if sum(each.rows for each in wide) <= WIDE * FETCH else None

    def _within(self, interval: Interval) -> nw.Expr:
        inside = (self.score >= interval.low) & (self.score <= interval.high)
        return inside & (nw.col(self.keys[0]) == interval.group) if self.keys else inside

    def _histogram(self, frame: Frame, binned: nw.Expr, what: str) -> list[tuple[Any, ...]]:
        counted = (
            frame.with_columns(binned.alias(BIN))
            .group_by(*self.keys, BIN)
            .agg(nw.len().alias(COUNT), self.score.min().alias(LOW), self.score.max().alias(HIGH))
        )
        return self.run(counted, what)


def _descending(group: Any, parts: list[Part], above: int) -> list[Interval]:
    """Bins as intervals from the top down, checked to be in order and disjoint."""
    intervals: list[Interval] = []
    for _, rows, low, high in sorted(parts, reverse=True):
        if not low <= high or (intervals and not high < intervals[-1].low):
            raise SurelistError(f"bins of scores overlap at {high!r}: this engine's arithmetic is not exact.")
        intervals.append(Interval(group, low, high, rows, above))
        above += rows
    return intervals


def _settle(intervals: list[Interval], counts: Iterable[int], answers: Answers, pending: Pending) -> None:
    """Put every count into the interval that holds it; an interval of one value is the answer."""
    ends = [each.above + each.rows for each in intervals]
    for count in counts:
        holder = intervals[bisect_left(ends, count)]
        if holder.low == holder.high:
            answers[holder.group, count] = float(holder.low)
        else:
            pending.setdefault(holder, []).append(count)


def _affordable(pending: Pending) -> list[Interval]:
    """Intervals to fetch in one pass: a group's whole span where it is small, else one by one."""
    by_group: dict[Any, list[Interval]] = {}
    for each in pending:
        by_group.setdefault(each.group, []).append(each)
    options: list[Interval] = []
    for group, intervals in by_group.items():
        top = min(intervals, key=lambda each: each.above)
        bottom = max(intervals, key=lambda each: each.above)
        rows = bottom.above + bottom.rows - top.above
        span = Interval(group, bottom.low, top.high, rows, top.above)
        options.extend([span] if rows <= FETCH else intervals)
    taken, total = options[:1], options[0].rows
    for each in options[1:RANGES]:
        total += each.rows
        if total > FETCH:
            break
        taken.append(each)
    return taken


def _cut(score: nw.Expr, interval: Interval) -> nw.Expr:
    """The bin of a score within its interval, 0 to BINS.

    Even widths, unless the interval spans many orders of magnitude: then widths grow with the
    score, by way of its 1024th root. Bins of pass 1 end at 0, so no interval has both signs.
    """
    low, high, value = interval.low, interval.high, score
    if _spans_magnitudes(interval):
        sign = 1.0 if high > 0 else -1.0
        near, far = sorted((abs(low), abs(high)))
        for _ in range(ROOTS):
            near, far = math.sqrt(near), math.sqrt(far)
        value, (low, high) = nw.col(ROOT) * sign, sorted((near * sign, far * sign))
    scale = BINS / (high - low) if high > low else math.inf
    if not math.isfinite(scale):
        scale = 0.0
    return ((value - low) * scale).floor().cast(nw.Int32)


def _spans_magnitudes(interval: Interval) -> bool:
    near, far = sorted((abs(interval.low), abs(interval.high)))
    return far > 4096 * near or not math.isfinite(BINS / (interval.high - interval.low))


def _any(conditions: Iterable[nw.Expr]) -> nw.Expr:
    return reduce(operator.or_, conditions)
