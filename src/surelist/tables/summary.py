"""Calibration rows of a table by group, state and bin of score: one pass, of which only counts come back.

Counts, order statistics, and the range, sketch, AUC and fingerprint of the scores all begin with these bins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist.score_summary import REACH, USUAL, Bins, Reached, Scale
from surelist.tables import bad_rows, order_statistics as order
from surelist.tables.engines import Frame
from surelist.tables.order_statistics import BIN, HIGH, LOW
from surelist.tables.roles import GROUP, PREFIX, ROWS, SCORE, STATE, Columns

DIGITS = PREFIX + "digits"
MOST_LINES = 1 << 18  # that come back before groups are counted on their own: a column of names has more

Thresholds = Mapping[Any, Sequence[float]]  # by group as the table has it; None without groups


class GroupBins(Struct, frozen=True):
    """One group's rows: how many in each state, usable ones in bins, and the bins of those qualified."""

    states: Mapping[int, int]
    qualified: order.Parts
    bins: Bins
    high: NDArray[np.float64]  # the largest score of each bin

    @classmethod
    def of(cls, lines: Mapping[str, NDArray[Any]]) -> GroupBins:
        """From rows, smallest and largest score, and the fingerprint's sum, of each state and bin."""
        rising = np.argsort(lines[BIN], kind="stable")
        lines = {name: values[rising] for name, values in lines.items()}
        states = Counter[int]()
        for state, count in zip(lines[STATE].tolist(), lines[ROWS].tolist(), strict=True):
            states[state] += count
        usable = {name: values[lines[STATE] != bad_rows.UNUSABLE] for name, values in lines.items()}
        good = usable[STATE] == bad_rows.QUALIFIED
        _, starts = np.unique(usable[BIN], return_index=True)
        low, high = np.minimum.reduceat(usable[LOW], starts), np.maximum.reduceat(usable[HIGH], starts)
        rows, ranked = (np.add.reduceat(each, starts) for each in (usable[ROWS], usable[ROWS] * good))
        sums = sum(usable[DIGITS].tolist()), sum(usable[DIGITS][good].tolist())  # they may exceed 64 bits
        bins = Bins(low, low < high, rows, ranked, float(high.max(initial=-np.inf)), sums)
        return cls(states, order.Parts(*(usable[name][good] for name in (BIN, ROWS, LOW, HIGH))), bins, high)

    @property
    def scale(self) -> Scale:
        """For bins of its own."""
        lowest, highest = float(self.bins.low[0]), self.bins.highest
        good = self.qualified
        if not len(good.bin):
            return Scale.own(lowest, highest, lowest, highest)
        return Scale.own(float(good.low.min()), float(good.high.max()), lowest, highest)

    def reached(self, threshold: float, scores: Mapping[float, tuple[int, int]]) -> Reached | None:
        """Rows and qualified rows at and above a threshold; ``scores`` are those known one by one.

        None where the threshold's bin holds several scores that are not known.
        """
        bins, above = self.bins, self.bins.low > threshold
        rows, qualified = int(bins.rows[above].sum()), int(bins.qualified[above].sum())
        at_rows = at_qualified = 0
        for at in np.flatnonzero(~above & (self.high >= threshold)).tolist():  # one bin, or none
            low, high = bins.low[at], self.high[at]
            inside = {score: n for score, n in scores.items() if low <= score <= high}
            if low == high:
                inside = {threshold: (int(bins.rows[at]), int(bins.qualified[at]))}
            if sum(n for n, _ in inside.values()) != bins.rows[at]:
                return None
            rows += sum(n for score, (n, _) in inside.items() if score > threshold)
            qualified += sum(n for score, (_, n) in inside.items() if score > threshold)
            at_rows, at_qualified = inside.get(threshold, (0, 0))
        return Reached(rows + at_rows, qualified + at_qualified, rows, qualified)


class BinnedRows:
    """The rows of a table in the usual bins, by group as the table has it (None without groups)."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        keys = {} if columns.group is None else {GROUP: columns.group}
        score = nw.when(columns.usable).then(columns.score).otherwise(nw.lit(0.0))
        state = bad_rows.calibration_state(columns)
        frame: Frame = columns.frame.with_columns(**keys, **{SCORE: score, STATE: state})
        self.frame = frame.select(*keys, SCORE, STATE)
        # parsed or opened once: what was read is kept for the second pass
        self.held = columns.table.text or columns.table.holdable
        if self.held:
            columns.table.say("reading scores and labels")
            with columns.table.reading():
                self.frame = columns.table.engine.held(self.frame, columns.table.size)
        self._keys = list(keys)
        counted = self._counted(self.frame, order.bin_of(USUAL), _digits(USUAL))
        raw = self._fetched(counted.head(MOST_LINES + 1) if keys else counted, "counting rows")
        if len(raw[ROWS]) > MOST_LINES:
            bad_rows.count_keys(columns, columns.frame, keys)  # refuses a column of names
            raw = self._fetched(counted, "counting rows")
        self.groups = _by_group(raw)
        if keys:
            bad_rows.require_few_groups(columns, len(self.groups))

    def _counted(self, frame: Frame, bins: nw.Expr, digits: nw.Expr) -> Frame:
        """By state and bin in one number: engines are quicker with one key than with two."""
        frame, both = frame.with_columns(digits.alias(DIGITS)), bins * bad_rows.STATES + nw.col(STATE)
        counted = order.counted(frame, self._keys, both, nw.col(DIGITS).sum().alias(DIGITS))
        return counted.with_columns(nw.col(DIGITS).cast(nw.Int64))

    def _fetched(self, counted: Frame, what: str) -> dict[str, Any]:
        return self.columns.arrays(counted, what, (LOW, HIGH))

    def around(self, group: Any, low: float, high: float) -> tuple[float, float, int]:
        """Smallest and largest score of the bins with scores from ``low`` to ``high``, and their rows."""
        each = self.groups[group]
        held = np.flatnonzero((each.bins.low <= high) & (each.high >= low))
        return float(each.bins.low[held[0]]), float(each.high[held[-1]]), int(each.bins.rows[held].sum())

    @cached_property
    def bins(self) -> dict[Any, Bins]:
        """Per group with rows, bins fine enough for a summary: for some groups own ones, in one more pass."""
        found = {group: each.bins for group, each in self.groups.items() if len(each.bins.rows)}
        coarse = [
            group
            for group, each in found.items()
            if each.low[0] < -REACH or each.highest > REACH or not each.fine
        ]
        if coarse:
            frame = self.frame.filter(nw.col(STATE) != bad_rows.UNUSABLE)
            if self._keys:
                frame = frame.filter(nw.col(GROUP).is_in(coarse))
            cases = [(self._of(group), self.groups[group].scale) for group in coarse]
            bins, digits = (
                order.pick((inside, each(scale)) for inside, scale in cases)
                for each in (order.bin_of, _digits)
            )
            counted = self._counted(order.rooted(frame, cases), bins, digits)
            own = _by_group(self._fetched(counted, "summing up the scores"))
            found |= {group: each.bins for group, each in own.items()}
        return found

    def count_reached(self, thresholds: Thresholds) -> dict[Any, list[Reached]]:
        """The same of every group, by one more pass."""
        score, marks = nw.col(SCORE), dict[str, nw.Expr]()
        for number in range(max(map(len, thresholds.values()))):
            own = order.pick((self._of(group), nw.lit(each[number])) for group, each in thresholds.items())
            marks[f"{PREFIX}at{number}"] = (score >= own).cast(nw.Int64)
            marks[f"{PREFIX}above{number}"] = (score > own).cast(nw.Int64)
        frame = self.frame.filter(nw.col(STATE) != bad_rows.UNUSABLE).with_columns(**marks)
        counted = frame.group_by(*self._keys, STATE).agg(*(nw.col(name).sum() for name in marks))
        found: dict[Any, NDArray[np.int64]] = {}
        for row in self.columns.rows(counted, "counting scores above the thresholds"):
            group, state = row[0] if self._keys else None, row[len(self._keys)]
            at, above = np.array(row[-len(marks) :], dtype=np.int64).reshape(-1, 2).T
            good = int(state == bad_rows.QUALIFIED)
            counts = np.stack([at, at * good, above, above * good], axis=1)
            found[group] = found.get(group, 0) + counts
        return {group: [Reached(*line) for line in counts.tolist()] for group, counts in found.items()}

    def _of(self, group: Any) -> nw.Expr | None:
        return nw.col(GROUP) == group if self._keys else None


def _by_group(raw: Mapping[str, Any]) -> dict[Any, GroupBins]:
    whole = {name: np.asarray(raw[name], dtype=np.int64) for name in (BIN, ROWS, DIGITS)}
    whole[BIN], whole[STATE] = np.divmod(whole[BIN], bad_rows.STATES)
    arrays = whole | {name: raw[name] for name in (LOW, HIGH)}
    return {
        group: GroupBins.of({name: each[lines] for name, each in arrays.items()})
        for group, lines in order.lines_by_group(raw).items()
    }


def _digits(scale: Scale) -> nw.Expr:
    score = nw.col(SCORE)
    if scale is USUAL:  # the product with a score of 10^308 would be infinite; its group gets own bins
        score = score.clip(scale.low, scale.high)
    digits: nw.Expr = scale.digits(score, order.root_of(scale), nw.Expr.floor).cast(nw.Int64)
    return digits
