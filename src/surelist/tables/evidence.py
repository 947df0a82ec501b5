"""What calibration asks of a table: rows, qualified rows and order statistics, by counting.

The rows themselves are never collected. All groups are answered by the same passes. Of a table of whole pools
only the qualified rows are fetched, with their pool; how many pools there are is counted where the table is.
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

from surelist import _check as check
from surelist._arrays import Column
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.score_summary import Reached, RowSummary, summarise
from surelist.tables import bad_rows
from surelist.tables.order_statistics import QUALIFIED, OrderStatistics
from surelist.tables.roles import GROUP, ID, POOL, RANK, ROWS, SCORE, STATE, Columns, find_columns
from surelist.tables.sources import Table
from surelist.tables.summary import BinnedRows
from surelist.tables.thresholds import with_ranks

LISTED = ROWS + "_listed"


class CalibrationRows(Struct, frozen=True):
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
        self.columns, self.binned = columns, binned
        usable, good = columns.frame.filter(columns.usable), columns.label == 1
        self.frame = usable.filter(good).with_columns(**roles, **further).select(*roles, *further)
        if binned.held:
            state = nw.col(STATE)
            usable, good = binned.frame.filter(state != bad_rows.UNUSABLE), state == bad_rows.QUALIFIED
        else:  # by the names that files know: they may skip rows
            usable = usable.with_columns(**roles)
        flag = nw.when(good).then(nw.lit(1)).otherwise(nw.lit(0))
        usable = usable.with_columns(**{QUALIFIED: flag}).select(*roles, QUALIFIED)
        self.order = OrderStatistics(
            columns,
            usable,
            grouped=columns.group is not None,
            around=binned.around,
            bins={group: each.qualified for group, each in binned.groups.items()},
        )
        self.known: dict[tuple[Any, int], float] = {}
        self.common: dict[float, dict[Any, list[Reached]]] = {}

    def prefetch(self, wanted: Mapping[object, Sequence[int]]) -> None:
        missing = {
            group: [count for count in dict.fromkeys(counts) if (group, count) not in self.known]
            for group, counts in wanted.items()
        }
        self.known.update({key: each.low for key, each in self.order.find(missing).items()})

    def reached(self, group: object, threshold: float) -> Reached:
        """Rows that reach a threshold: known from the scores fetched, or counted for all groups at once."""
        found = self.binned.groups[group].reached(threshold, self.order.known.get(group, {}))
        if found is not None:
            return found
        if threshold in self.limits.get(group, ()):
            return self._counted[group][self.limits[group].index(threshold)]
        if threshold not in self.common:  # a cutoff that is another group's
            everyone = dict.fromkeys(self.binned.groups, (threshold,))
            self.common[threshold] = self.binned.count_reached(everyone)
        return self.common[threshold][group][0]

    @cached_property
    def limits(self) -> dict[Any, tuple[float, float]]:
        """Per group its lowest and highest threshold so far."""
        scores: dict[Any, list[float]] = {}
        for (group, _), score in self.known.items():
            scores.setdefault(group, []).append(score)
        return {group: (min(each), max(each)) for group, each in scores.items()}

    @cached_property
    def _counted(self) -> dict[Any, list[Reached]]:
        return self.binned.count_reached(self.limits)


class TableEvidence(Struct, frozen=True):
    """One group's evidence, asked of the engine. Implements what ``promises`` calls evidence."""

    rows: int
    qualified: int
    raw: Any  # the group as the table has it
    scores: _Scores

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        self.scores.prefetch({self.raw: counts})
        return [self.scores.known[self.raw, count] for count in counts]

    def summary(self, thresholds: Sequence[float]) -> RowSummary:
        reached = [self.scores.reached(self.raw, each) for each in thresholds]
        return summarise(self.scores.binned.bins[self.raw], reached)

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        qualified, columns = self.scores.frame, self.scores.columns
        if columns.group is not None:
            qualified = qualified.filter(nw.col(GROUP) == self.raw)
        at = qualified.filter(nw.col(SCORE) == threshold).select(ID)
        above = qualified.filter(nw.col(SCORE) > threshold)
        count = columns.table.count(above, "counting scores above the threshold")
        return count, [row[0] for row in columns.rows(at, "fetching ids at the threshold")]


class Checks(Struct, frozen=True):
    """How rows that do not fit are taken."""

    hashed: bool = False
    missing_labels: str = "error"
    on_bad_rows: str = "error"


class Census:
    """Calibration rows by group and state, and what is wrong with them, whatever ``groups`` (None) there are.

    Fatal problems are collected, not raised: the page shows them all.
    """

    def __init__(
        self, table: Table, names: Mapping[str, str | None], groups: Sequence[str] | None, checks: Checks
    ) -> None:
        check.as_choice(checks.on_bad_rows, bad_rows.ON_BAD_ROWS, "on_bad_rows")
        columns = self.columns = find_columns(table, **names)
        self.binned, drop = BinnedRows(columns), checks.on_bad_rows == "drop"
        self.totals, sizes = Counter[int](), dict[Any, int]()
        for raw, each in self.binned.groups.items():
            self.totals.update(each.states)
            left_out = each.states.get(bad_rows.UNUSABLE, 0) if drop else 0
            sizes[raw] = sum(each.states.values()) - left_out
        unusable, everyone = self.totals[bad_rows.UNUSABLE], self.totals.total()
        problems = bad_rows.without_scores(columns, unusable, everyone, drop=drop)
        problems += bad_rows.wrong_labels(columns, self.totals[bad_rows.LABEL_WRONG])
        if checks.missing_labels != "unqualified":
            problems += bad_rows.missing_labels(columns, self.totals[bad_rows.LABEL_MISSING])
        problems += bad_rows.wrong_groups(columns, sizes, groups)
        problems += bad_rows.wrong_ids(columns, hashed=checks.hashed)
        if not problems and everyone == 0:
            none = f"{table.name}: expected at least one calibration row, got none."
            problems.append(bad_rows.Problem("no rows", none, none))
        self.problems = tuple(problems)


def calibration_rows(
    table: Table,
    groups: Sequence[str | None],
    names: Mapping[str, str | None],
    checks: Checks,
    *,
    group_rows: str = "own",
    more_groups: bool = False,
) -> CalibrationRows:
    """Count the rows of each group in one pass; stop for rows that do not fit.

    ``more_groups``: rows of other groups are no mistake.
    """
    known = None if more_groups else [name for name in groups if name is not None]
    census = Census(table, names, known, checks)
    bad_rows.stop_for(census.columns, census.problems)
    totals, scores = census.totals, _Scores(census.columns, census.binned)
    grouped = census.columns.group is not None
    found = {
        str(raw) if grouped else None: raw for raw in census.binned.groups if raw is not None or not grouped
    }
    evidence = {}
    for name in groups:
        raw = found.get(name)
        states = Counter(census.binned.groups[raw].states if name in found else {})
        counted = totals if group_rows == "all" else states
        rows = counted.total() - counted[bad_rows.UNUSABLE]
        evidence[name] = TableEvidence(rows, states[bad_rows.QUALIFIED], raw, scores)
    return CalibrationRows(evidence, totals[bad_rows.LABEL_MISSING], totals[bad_rows.UNUSABLE])


class PooledRows(Struct, frozen=True):
    """The qualified rows of all pools, what was counted of all rows, and how many pools there are.

    ``unscored`` of the pools have no row with a score: nobody of them can be listed.
    """

    counted: CalibrationRows
    pools: int
    unscored: int
    scores: NDArray[np.float64]
    codes: NDArray[np.int64]
    groups: Column | None = None

    @property
    def counts(self) -> TableEvidence:
        return self.counted.evidence[None]


def pooled_rows(
    table: Table, names: Mapping[str, str | None], checks: Checks, *, by_rank: bool = False
) -> PooledRows:
    """Whole pools of a table, after the same checks as for rows; by rank, scores are minus ranks."""
    counted = calibration_rows(table, [None], {**names, "group": None}, checks)
    evidence = counted.evidence[None]
    columns = evidence.scores.columns
    assert columns.label is not None
    pools, unscored = _pools(columns)
    if pools > evidence.rows:
        raise InvalidInput(
            f"column {columns.names['score']!r}",
            f"{unscored:,} of {pools:,} pools have no row with a score, and there are only "
            f"{evidence.rows:,} rows with one; {option('on_bad_rows', 'drop')} is for a few bad rows.",
        )
    group = {} if names.get("group") is None else {GROUP: find_columns(table, **names).group}
    frame = with_ranks(columns, keep_order=False) if by_rank else columns.frame.filter(columns.usable)
    wanted = {SCORE: nw.col(RANK) if by_rank else columns.score, POOL: columns.pool, **group}
    qualified = frame.filter(columns.label == 1).with_columns(**wanted).select(*wanted)
    fetched = columns.arrays(qualified, "fetching the qualified rows of all pools", (SCORE,))
    groups = _groups(fetched[GROUP], names) if group else None
    codes, _ = check.as_codes(fetched[POOL], len(fetched[SCORE]))
    return PooledRows(counted, pools, unscored, fetched[SCORE], codes, groups)


def _groups(values: Any, names: Mapping[str, str | None]) -> Column:
    missing = sum(each is None for each in values)
    if missing:
        raise InvalidInput(
            f"column {names['group']!r}",
            f"{missing:,} qualified rows have no group. Map missing values to a name of their own, e.g. "
            '"unknown".',
        )
    return np.asarray([str(each) for each in values], dtype=object)


def pool_totals(counted: CalibrationRows, threshold: float) -> tuple[Column, Column]:
    """Rows of each pool, and how many of them are qualified and score at least ``threshold``."""
    columns = counted.evidence[None].scores.columns
    assert columns.pool is not None
    assert columns.label is not None
    _pools(columns)
    listed = nw.when((columns.label == 1) & (columns.score >= threshold)).then(1).otherwise(0)
    marked = columns.frame.filter(columns.usable).with_columns(**{POOL: columns.pool, LISTED: listed})
    by_pool = marked.select(POOL, LISTED).group_by(POOL).agg(nw.len().alias(ROWS), nw.col(LISTED).sum())
    rows = columns.rows(by_pool, "counting by pool")
    return np.array([row[1] for row in rows]), np.array([row[2] for row in rows])


def _pools(columns: Columns) -> tuple[int, int]:
    """How many pools there are, and how many of them have no row with a score.

    A pool whose rows are all dropped is still one: leaving it out would choose pools by their scores.
    """
    if columns.pool is None:
        raise InvalidInput(
            "pool", f"whole pools need the column that says which pool a row is in; pass {option('pool')}."
        )
    everyone = columns.frame.select(**{POOL: columns.pool})
    asked = everyone.select(nw.col(POOL).n_unique().alias(ROWS), nw.col(POOL).null_count().alias(LISTED))
    pools, missing = columns.rows(asked, "counting pools")[0]
    if missing:
        raise InvalidInput(
            f"column {columns.names['pool']!r}",
            f'{missing:,} rows have no pool. Every row needs one, for example "unknown".',
        )
    scored = columns.frame.filter(columns.usable).select(**{POOL: columns.pool})
    with_score = columns.rows(scored.select(nw.col(POOL).n_unique().alias(ROWS)), "counting pools")[0][0]
    return int(pools), int(pools) - int(with_score)
