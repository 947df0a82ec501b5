"""Calibration rows of a table by group, state and bin of score: one pass, of which only counts come back.

Counts, order statistics, and the range, sketch, AUC and fingerprint of the scores all begin with these bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from surelist._dataclasses import dataclass
from surelist.score_summary import REACH, USUAL, Bins, Reached, Scale
from surelist.tables import bad_rows
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, PREFIX, SCORE, STATE, Columns

BIN, ROWS, LOW, HIGH, DIGITS, QUALIFIED, ROOT = (
    PREFIX + name for name in ("bin", "rows", "low", "high", "digits", "qualified", "root")
)
MOST_LINES = 1 << 18  # that come back before groups are counted on their own: a column of names has more

Thresholds = Mapping[Any, Sequence[float]]  # by group as the table has it; None without groups


@dataclass(frozen=True)
class BinCount:
    """Rows of one group and state in one bin: how many, smallest and largest score, the fingerprint's sum."""

    state: int
    bin: int
    rows: int
    low: float
    high: float
    digits: int

    @property
    def qualified(self) -> int:
        return self.rows if self.state == bad_rows.QUALIFIED else 0


class BinnedRows:
    """The rows of a table in the usual bins, by group as the table has it (None without groups)."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        keys = {} if columns.group is None else {GROUP: columns.group}
        score = nw.when(columns.usable).then(columns.score).otherwise(nw.lit(0.0))
        state = bad_rows.calibration_state(columns)
        frame: Frame = columns.frame.with_columns(**keys, **{SCORE: score, STATE: state})
        self.frame = frame.select(*keys, SCORE, STATE)
        self.held = columns.table.text  # parsed once: its numbers are kept for the second pass
        if self.held:
            columns.table.say("reading scores and labels")
            with columns.table.reading():
                self.frame = columns.table.engine.held(self.frame, columns.table.size)
        self._keys = list(keys)
        counted = self._counted(self.frame, _bin(USUAL), _digits(USUAL))
        rows = columns.rows(counted.head(MOST_LINES + 1) if keys else counted, "counting rows")
        if len(rows) > MOST_LINES:
            bad_rows.count_states(columns, columns.frame, state, keys)  # refuses a column of names
            rows = columns.rows(counted, "counting rows")
        self.lines = self._by_group(rows)

    def _counted(self, frame: Frame, bins: nw.Expr, digits: nw.Expr) -> Frame:
        score = nw.col(SCORE)
        return (
            frame.with_columns(**{BIN: bins, DIGITS: digits})
            .group_by(*self._keys, STATE, BIN)
            .agg(
                nw.len().alias(ROWS),
                score.min().alias(LOW),
                score.max().alias(HIGH),
                nw.col(DIGITS).sum().alias(DIGITS),
            )
        )

    def _by_group(self, rows: list[tuple[Any, ...]]) -> dict[Any, list[BinCount]]:
        lines: dict[Any, list[BinCount]] = {}
        for *key, state, bin_, count, low, high, digits in rows:
            line = BinCount(int(state), int(bin_), int(count), float(low), float(high), int(digits))
            lines.setdefault(key[0] if key else None, []).append(line)
        return lines

    @cached_property
    def states(self) -> bad_rows.Counts:
        """Rows by group, where there are groups, and state."""
        counts: bad_rows.Counts = {}
        for group, lines in self.lines.items():
            for each in lines:
                key = (group, each.state) if self._keys else (each.state,)
                counts[key] = counts.get(key, 0) + each.rows
        if self._keys:
            bad_rows.require_few_groups(self.columns, len(counts))
        return counts

    @cached_property
    def _merged(self) -> dict[Any, list[list[BinCount]]]:
        """Usable rows: lines of one bin together, by rising score."""
        return {group: _merge(lines) for group, lines in self.lines.items()}

    def around(self, group: Any, low: float, high: float) -> tuple[float, float, int]:
        """Smallest and largest score of the bins with scores from ``low`` to ``high``, and their rows."""
        held = [each for each in self._merged[group] if _low(each) <= high and _high(each) >= low]
        return _low(held[0]), _high(held[-1]), sum(line.rows for each in held for line in each)

    def bins(self, groups: Sequence[Any]) -> dict[Any, Bins]:
        """Bins that are fine enough for a summary: of some groups, own ones, in one more pass."""
        found = {group: _bins(self._merged[group]) for group in groups}
        coarse = [
            group
            for group, each in found.items()
            if each.low[0] < -REACH or each.highest > REACH or not each.fine
        ]
        if coarse:
            scales = {group: self._own(group) for group in coarse}
            frame = self.frame.filter(nw.col(STATE) != bad_rows.UNUSABLE)
            if self._keys:
                frame = frame.filter(nw.col(GROUP).is_in(coarse))
            bins, digits = (
                _by_group({group: each(scale) for group, scale in scales.items()}) for each in (_bin, _digits)
            )
            frame = _rooted(frame, scales)
            rows = self.columns.rows(self._counted(frame, bins, digits), "summing up the scores")
            found |= {group: _bins(_merge(lines)) for group, lines in self._by_group(rows).items()}
        return found

    def _own(self, group: Any) -> Scale:
        usable = [line for each in self._merged[group] for line in each]
        span = [line for line in usable if line.qualified] or usable
        ends = [
            end
            for lines in (span, usable)
            for end in (min(line.low for line in lines), max(line.high for line in lines))
        ]
        return Scale.own(*ends)

    def reached(
        self, group: Any, threshold: float, scores: Mapping[float, tuple[int, int]]
    ) -> Reached | None:
        """Rows and qualified rows at and above a threshold; ``scores`` are those known one by one.

        None where the threshold's bin holds several scores that are not known.
        """
        rows = qualified = at_rows = at_qualified = 0
        for each in reversed(self._merged[group]):
            if _high(each) < threshold:
                break
            counts = sum(line.rows for line in each), sum(line.qualified for line in each)
            if _low(each) > threshold:
                rows, qualified = rows + counts[0], qualified + counts[1]
            elif _low(each) == _high(each):
                at_rows, at_qualified = counts
            else:
                inside = {s: n for s, n in scores.items() if _low(each) <= s <= _high(each)}
                if sum(n for n, _ in inside.values()) != counts[0]:
                    return None
                rows += sum(n for s, (n, _) in inside.items() if s > threshold)
                qualified += sum(n for s, (_, n) in inside.items() if s > threshold)
                at_rows, at_qualified = inside.get(threshold, (0, 0))
        return Reached(rows + at_rows, qualified + at_qualified, rows, qualified)

    def count_reached(self, thresholds: Thresholds) -> dict[Any, list[Reached]]:
        """The summaries of every group, by one more pass."""
        marks = _marks(thresholds)
        good = nw.when(nw.col(STATE) == bad_rows.QUALIFIED).then(nw.lit(1)).otherwise(nw.lit(0))
        frame = self.frame.filter(nw.col(STATE) != bad_rows.UNUSABLE).with_columns(
            **{QUALIFIED: good}, **marks
        )
        twice = {f"{name}_q": nw.col(name) * nw.col(QUALIFIED) for name in marks}
        sums = [nw.col(name).sum().alias(f"{name}_sum") for name in (*marks, *twice)]
        frame = frame.with_columns(**twice)
        counted = frame.group_by(*self._keys).agg(*sums) if self._keys else frame.select(*sums)
        found: dict[Any, list[Reached]] = {}
        for row in self.columns.rows(counted, "counting scores above the thresholds"):
            counts = [int(each) for each in row[len(self._keys) :]]
            half = len(counts) // 2
            everyone, qualified = counts[:half], counts[half:]
            found[row[0] if self._keys else None] = [
                Reached(everyone[at], qualified[at], everyone[at + 1], qualified[at + 1])
                for at in range(0, half, 2)
            ]
        return found


def _floor(each: nw.Expr) -> nw.Expr:
    return each.floor()


def _by_group(expressions: Mapping[Any, nw.Expr]) -> nw.Expr:
    """Each group's own; a group None is everyone."""
    chosen = nw.lit(0)
    for group, each in expressions.items():
        chosen = each if group is None else nw.when(nw.col(GROUP) == group).then(each).otherwise(chosen)
    return chosen


def _rooted(frame: Frame, scales: Mapping[Any, Scale]) -> Frame:
    """With the roots that bins of many magnitudes are about.

    One column after the other: SQL says a root's argument twice, and one of ten roots 1024 times.
    """
    roots = {group: scale.roots for group, scale in scales.items() if scale.roots}
    if roots:
        inside = {group: scales[group].inside(nw.col(SCORE)) for group in roots}
        frame = frame.with_columns(**{ROOT: _by_group(inside)})
    for taken in range(max(roots.values(), default=0)):
        more = {group: nw.col(ROOT).sqrt() if roots[group] > taken else nw.col(ROOT) for group in roots}
        frame = frame.with_columns(**{ROOT: _by_group(more)})
    return frame


def _root(scale: Scale) -> nw.Expr:
    inside: nw.Expr = scale.inside(nw.col(SCORE))
    return nw.col(ROOT) if scale.roots else inside


def _bin(scale: Scale) -> nw.Expr:
    score = nw.col(SCORE)
    bins: nw.Expr = scale.place(_root(scale)).floor().cast(nw.Int32)
    if scale is USUAL:  # where scores lie beyond, own bins follow
        return bins
    return bins - (score < scale.low).cast(nw.Int32) + (score > scale.high).cast(nw.Int32)


def _digits(scale: Scale) -> nw.Expr:
    score = nw.col(SCORE)
    if scale is USUAL:  # the product with a score of 10^308 would be infinite; its group gets own bins
        score = score.clip(scale.low, scale.high)
    digits: nw.Expr = scale.digits(score, _root(scale), _floor).cast(nw.Int64)
    return digits


def _merge(lines: Sequence[BinCount]) -> list[list[BinCount]]:
    merged: dict[int, list[BinCount]] = {}
    for line in lines:
        if line.state != bad_rows.UNUSABLE:
            merged.setdefault(line.bin, []).append(line)
    return [merged[bin_] for bin_ in sorted(merged)]


def _low(lines: Sequence[BinCount]) -> float:
    return min(line.low for line in lines)


def _high(lines: Sequence[BinCount]) -> float:
    return max(line.high for line in lines)


def _bins(merged: Sequence[Sequence[BinCount]]) -> Bins:
    low, high = (np.array([end(each) for each in merged]) for end in (_low, _high))
    rows = np.array([sum(line.rows for line in each) for each in merged], dtype=np.int64)
    qualified = np.array([sum(line.qualified for line in each) for each in merged], dtype=np.int64)
    lines = [line for each in merged for line in each]
    sums = sum(line.digits for line in lines), sum(line.digits for line in lines if line.qualified)
    return Bins(low, low < high, rows, qualified, float(high[-1]), sums)


def _marks(thresholds: Thresholds) -> dict[str, nw.Expr]:
    """Columns that are 1 for rows at, and for rows above, each threshold of their group."""
    score = nw.col(SCORE)
    marks: dict[str, nw.Expr] = {}
    for number in range(max(len(each) for each in thresholds.values())):
        at, above = nw.lit(0), nw.lit(0)
        for group, values in thresholds.items():
            inside = score >= values[number], score > values[number]
            if group is not None:
                member = nw.col(GROUP) == group
                inside = inside[0] & member, inside[1] & member
            at = nw.when(inside[0]).then(nw.lit(1)).otherwise(at)
            above = nw.when(inside[1]).then(nw.lit(1)).otherwise(above)
        marks |= {f"{PREFIX}at{number}": at, f"{PREFIX}above{number}": above}
    return marks
