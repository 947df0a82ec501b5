"""What calibration asks of a table: rows, qualified rows and order statistics, by counting.

The rows themselves are never collected. All groups are answered by the same passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import narwhals as nw

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.score_summary import Bins, Reached, RowSummary, summarise
from surelist.tables import bad_rows
from surelist.tables.order_statistics import OrderStatistics
from surelist.tables.roles import GROUP, ID, POOL, ROWS, SCORE, STATE, Columns, find_columns
from surelist.tables.sources import Table
from surelist.tables.summary import QUALIFIED, BinCount, BinnedRows


@dataclass(frozen=True)
class CalibrationRows:
    """The evidence of a table, per group, and what had to be done to its rows."""

    evidence: Mapping[str | None, TableEvidence]
    missing_labels: int
    dropped: int

    def expect(self, counts: Mapping[str | None, Sequence[int]]) -> None:
        """Say which order statistics will be asked for, so that one pass finds them all."""
        first = next(iter(self.evidence.values()))
        first.scores.prefetch({self.evidence[name].raw: each for name, each in counts.items()})


class _Scores:
    """The scores of all groups, with the order statistics asked for so far."""

    def __init__(self, columns: Columns, binned: BinnedRows) -> None:
        assert columns.label is not None
        roles = {SCORE: columns.score} | ({GROUP: columns.group} if columns.group is not None else {})
        further = {} if columns.ident is None else {ID: columns.ident}
        further |= {} if columns.pool is None else {POOL: columns.pool}
        self.columns, self.binned = columns, binned
        usable, good = columns.frame.filter(columns.usable), columns.label == 1
        self.frame = usable.filter(good).with_columns(**roles, **further).select(*roles, *further)
        if binned.held:
            state = nw.col(STATE)
            usable, good = binned.frame.filter(state != bad_rows.UNUSABLE), state == bad_rows.QUALIFIED
        else:  # by the names that files know: they may skip rows
            usable = usable.with_columns(**roles)
        flag = nw.when(good).then(nw.lit(1)).otherwise(nw.lit(0))
        bins = {
            group: [(each.bin, each.rows, each.low, each.high) for each in lines if each.qualified]
            for group, lines in binned.lines.items()
        }
        self.order = OrderStatistics(
            usable.with_columns(**{QUALIFIED: flag}).select(*roles, QUALIFIED), columns.rows,
            score=SCORE, group=GROUP if columns.group is not None else None, qualified=QUALIFIED,
            around=binned.around, bins=bins,
        )  # fmt: skip
        self.known: dict[tuple[Any, int], float] = {}
        self.common: dict[float, dict[Any, list[Reached]]] = {}

    def prefetch(self, wanted: Mapping[Any, Sequence[int]]) -> None:
        missing = {
            group: [count for count in dict.fromkeys(counts) if (group, count) not in self.known]
            for group, counts in wanted.items()
        }
        if any(missing.values()):
            self.known.update(self.order.find(missing))

    @cached_property
    def bins(self) -> dict[Any, Bins]:
        """Per group with rows the bins of its summary, all from one pass if any needs one."""
        return self.binned.bins([group for group, found in self.binned.lines.items() if _any_usable(found)])

    def reached(self, group: Any, thresholds: Sequence[float]) -> list[Reached]:
        """Rows that reach thresholds: known from the scores fetched, or counted for all groups at once."""
        scores = self.order.known.get(group, {})
        found = (self.binned.reached(group, each, scores) for each in thresholds)
        return [
            self._counted_at(group, threshold) if each is None else each
            for each, threshold in zip(found, thresholds, strict=True)
        ]

    def _counted_at(self, group: Any, threshold: float) -> Reached:
        if threshold in self.limits.get(group, ()):
            return dict(zip(self.limits[group], self._counted[group], strict=True))[threshold]
        if threshold not in self.common:  # a cutoff that is another group's
            self.common[threshold] = self.binned.count_reached(dict.fromkeys(self.binned.lines, (threshold,)))
        return self.common[threshold][group][0]

    @cached_property
    def limits(self) -> dict[Any, tuple[float, float]]:
        """Per group its lowest and highest threshold so far."""
        limits: dict[Any, tuple[float, float]] = {}
        for (group, _), score in self.known.items():
            lowest, highest = limits.get(group, (score, score))
            limits[group] = (min(lowest, score), max(highest, score))
        return limits

    @cached_property
    def _counted(self) -> dict[Any, list[Reached]]:
        return self.binned.count_reached(self.limits)


def _any_usable(lines: Sequence[BinCount]) -> bool:
    return any(line.state != bad_rows.UNUSABLE for line in lines)


@dataclass(frozen=True)
class TableEvidence:
    """One group's evidence, asked of the engine. Implements what ``promises`` calls evidence."""

    rows: int
    qualified: int
    raw: Any  # the group as the table has it
    scores: _Scores

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        self.scores.prefetch({self.raw: counts})
        return [self.scores.known[self.raw, count] for count in counts]

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        return summarise(self.scores.bins[self.raw], self.scores.reached(self.raw, thresholds))

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        qualified, columns = self.scores.frame, self.scores.columns
        if columns.group is not None:
            qualified = qualified.filter(nw.col(GROUP) == self.raw)
        above = qualified.filter(nw.col(SCORE) > threshold).select(nw.len().alias(ROWS))
        at = qualified.filter(nw.col(SCORE) == threshold).select(ID)
        count = int(columns.rows(above, "counting scores above the threshold")[0][0])
        return count, [row[0] for row in columns.rows(at, "fetching ids at the threshold")]


@dataclass(frozen=True)
class _Census:
    """Calibration rows by group and state, and what is wrong with them."""

    columns: Columns
    counts: bad_rows.Counts
    binned: BinnedRows | None
    problems: tuple[bad_rows.Problem, ...]

    @property
    def totals(self) -> dict[int, int]:
        """Rows by state."""
        return _by_state(self.counts)


def calibration_rows(
    table: Table,
    groups: Sequence[str | None],
    *,
    names: Mapping[str, str | None],
    group_rows: str,
    hashed: bool,
    missing_labels: str,
    on_bad_rows: str,
    more_groups: bool = False,
) -> CalibrationRows:
    """Count the rows of each group in one pass; stop for rows that do not fit.

    ``more_groups``: rows of other groups are no mistake.
    """
    known = None if more_groups else [name for name in groups if name is not None]
    census = _take_census(
        table,
        names,
        known,
        hashed=hashed,
        missing_labels=missing_labels,
        on_bad_rows=on_bad_rows,
        binned=True,
    )
    bad_rows.stop_for(census.columns, census.problems)
    assert census.binned is not None
    counts, totals, scores = census.counts, census.totals, _Scores(census.columns, census.binned)
    usable = sum(totals.values()) - totals.get(bad_rows.UNUSABLE, 0)
    raws = {_text(key): key[0] if len(key) > 1 else None for key in counts}
    evidence = {}
    for name in groups:
        states = {
            key[-1]: n for key, n in counts.items() if _text(key) == name and key[-1] != bad_rows.UNUSABLE
        }
        group_total = sum(states.values()) - states.get(bad_rows.UNUSABLE, 0)
        rows = usable if group_rows == "all" else group_total
        qualified = states.get(bad_rows.QUALIFIED, 0)
        evidence[name] = TableEvidence(rows, qualified, raws.get(name), scores)
    dropped, missing = totals.get(bad_rows.UNUSABLE, 0), totals.get(bad_rows.LABEL_MISSING, 0)
    return CalibrationRows(evidence, missing, dropped)


def calibration_problems(
    table: Table,
    names: Mapping[str, str | None],
    *,
    hashed: bool = False,
    missing_labels: str = "error",
    on_bad_rows: str = "error",
) -> tuple[bad_rows.Problem, ...]:
    """What ``calibration_rows`` would refuse or warn of, whatever groups there are targets for."""
    try:
        return _take_census(
            table, names, None, hashed=hashed, missing_labels=missing_labels, on_bad_rows=on_bad_rows
        ).problems
    except InvalidInput as error:
        return (bad_rows.problem_of(error),)


def _take_census(
    table: Table,
    names: Mapping[str, str | None],
    groups: Sequence[str] | None,
    *,
    hashed: bool,
    missing_labels: str,
    on_bad_rows: str,
    binned: bool = False,
) -> _Census:
    check.as_choice(on_bad_rows, bad_rows.ON_BAD_ROWS, "on_bad_rows")
    columns = find_columns(table, **names)
    keys = {GROUP: columns.group} if columns.group is not None else {}
    rows = BinnedRows(columns) if binned else None
    counts = (
        bad_rows.count_states(columns, columns.frame, bad_rows.calibration_state(columns), keys)
        if rows is None
        else rows.states
    )
    totals, drop = _by_state(counts), on_bad_rows == "drop"
    sizes: dict[Any, int] = {}
    for key, count in counts.items():
        if columns.group is not None and not (drop and key[-1] == bad_rows.UNUSABLE):
            sizes[key[0]] = sizes.get(key[0], 0) + count
    unusable, everyone = totals.get(bad_rows.UNUSABLE, 0), sum(totals.values())
    problems = (
        bad_rows.mostly_dropped(columns, unusable, everyone)
        if drop
        else bad_rows.unusable_scores(columns, unusable)
    )
    problems += bad_rows.wrong_labels(columns, totals.get(bad_rows.LABEL_WRONG, 0))
    if missing_labels != "unqualified":
        problems += bad_rows.missing_labels(columns, totals.get(bad_rows.LABEL_MISSING, 0))
    problems += bad_rows.wrong_groups(columns, sizes, groups)
    problems += bad_rows.wrong_ids(columns, hashed=hashed)
    if not problems and everyone == 0:
        none = f"{table.name}: expected at least one calibration row, got none."
        problems.append(bad_rows.Problem("no rows", none, none))
    return _Census(columns, counts, rows, tuple(problems))


def _by_state(counts: bad_rows.Counts) -> dict[int, int]:
    totals: dict[int, int] = {}
    for key, count in counts.items():
        totals[key[-1]] = totals.get(key[-1], 0) + count
    return totals


def _text(key: tuple[Any, ...]) -> str | None:
    """The group of a census key, as policies know it."""
    return str(key[0]) if len(key) > 1 and key[0] is not None else None
