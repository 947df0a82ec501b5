"""What calibration asks of a table: rows, qualified rows and order statistics, by counting.

The rows themselves are never collected. All groups are answered by the same passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import narwhals as nw

from surelist import _check as check
from surelist._dataclasses import dataclass, replace
from surelist.errors import InvalidInput
from surelist.score_summary import RowSummary
from surelist.tables import bad_rows
from surelist.tables.order_statistics import OrderStatistics
from surelist.tables.roles import GROUP, ID, POOL, ROWS, SCORE, Columns, find_columns
from surelist.tables.sources import Table
from surelist.tables.summary import summarise_rows


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
    """The qualified scores of all groups, with the order statistics asked for so far."""

    def __init__(self, columns: Columns) -> None:
        assert columns.label is not None
        roles = {SCORE: columns.score} | ({GROUP: columns.group} if columns.group is not None else {})
        if columns.ident is not None:
            roles[ID] = columns.ident
        if columns.pool is not None:
            roles[POOL] = columns.pool
        self.columns = columns
        self.frame = (
            columns.frame.filter((columns.label == 1) & columns.usable).with_columns(**roles).select(*roles)
        )
        group = GROUP if columns.group is not None else None
        bare = self.frame.select(SCORE, *([GROUP] if group else []))
        self.order = OrderStatistics(bare, columns.rows, score=SCORE, group=group)
        self.known: dict[tuple[Any, int], float] = {}

    def prefetch(self, wanted: Mapping[Any, Sequence[int]]) -> None:
        missing = {
            group: [count for count in dict.fromkeys(counts) if (group, count) not in self.known]
            for group, counts in wanted.items()
        }
        if any(missing.values()):
            self.known.update(self.order.find(missing))

    @cached_property
    def summaries(self) -> dict[Any, tuple[tuple[float, float], RowSummary]]:
        """Per group its lowest and highest threshold so far, and the summary of its rows there."""
        limits: dict[Any, tuple[float, float]] = {}
        for (group, _), score in self.known.items():
            lowest, highest = limits.get(group, (score, score))
            limits[group] = (min(lowest, score), max(highest, score))
        made = summarise_rows(self.columns, *self.span, limits)
        return {group: (limits[group], made[group]) for group in limits}

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest qualified score of all groups."""
        ends = [end for bins in self.order.bins.values() for each in bins for end in (each.low, each.high)]
        return min(ends, default=0.0), max(ends, default=0.0)


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
        if not thresholds:
            return summarise_rows(self.scores.columns, *self.scores.span, {self.raw: ()})[self.raw]
        limits, made = self.scores.summaries[self.raw]
        reached = dict(zip(limits, made.reached, strict=True))
        return replace(made, reached=tuple(reached[each] for each in thresholds))

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
) -> CalibrationRows:
    """Count the rows of each group in one pass; stop for rows that do not fit."""
    known = [name for name in groups if name is not None]
    census = _take_census(
        table, names, known, hashed=hashed, missing_labels=missing_labels, on_bad_rows=on_bad_rows
    )
    bad_rows.stop_for(census.columns, census.problems)
    counts, totals, scores = census.counts, census.totals, _Scores(census.columns)
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
        return (bad_rows.Problem("table", str(error), str(error)),)


def _take_census(
    table: Table,
    names: Mapping[str, str | None],
    groups: Sequence[str] | None,
    *,
    hashed: bool,
    missing_labels: str,
    on_bad_rows: str,
) -> _Census:
    check.as_choice(on_bad_rows, bad_rows.ON_BAD_ROWS, "on_bad_rows")
    columns = find_columns(table, **names)
    keys = {GROUP: columns.group} if columns.group is not None else {}
    counts = bad_rows.count_states(columns, columns.frame, bad_rows.calibration_state(columns), keys)
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
    return _Census(columns, counts, tuple(problems))


def _by_state(counts: bad_rows.Counts) -> dict[int, int]:
    totals: dict[int, int] = {}
    for key, count in counts.items():
        totals[key[-1]] = totals.get(key[-1], 0) + count
    return totals


def _text(key: tuple[Any, ...]) -> str | None:
    """The group of a census key, as policies know it."""
    return str(key[0]) if len(key) > 1 and key[0] is not None else None
