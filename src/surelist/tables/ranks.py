"""Who is at given ranks of a table's order by score: counts come back, then the few rows around each rank.

The best score has rank 0. Ties are in the order of the table's rows; on an engine without one, in that of a
number made from their ids. Scores are counted in *cells* of equal width between the best and the worst; those
that hold a wanted rank are cut finer until they hold little, then fetched and sorted. Many rows of one score
are counted by their place instead.

A cell is ``floor(x * 2^j)`` of a number x that never falls when the score falls (subtraction and
multiplication are monotone in floating point), so finer cells lie inside coarser ones exactly.
"""

from __future__ import annotations

import math
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.tables import bad_rows
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, ID, ROW, SCORE, find_columns
from surelist.tables.sources import Table

CELLS = 1 << 16  # of the first pass
MOST_CELLS = 1 << 18  # that one pass may bring back
DEPTH = 1 << 34  # of the finest cells: beyond, one cell is looked at on its own
PLACES = 1 << 52  # numbers made from ids lie below

CELL, COUNT, LOW, HIGH = "__surelist_cell", "__surelist_count", "__surelist_low", "__surelist_high"

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankedRows:
    """Rows at ranks: their numbers where rows have an order, their ids where they have none; and scores."""

    rows: Ints | None
    scores: Floats
    ids: list[str] | None


@dataclass(frozen=True)
class _Span:
    """A stretch of a group's order: its scores, how many rows, and how many above it."""

    group: Any
    low: float
    high: float
    above: int
    rows: int
    whole: bool

    def cell(self, depth: int) -> nw.Expr:
        """The number of a score's cell, from the best down; quarters, because differences may overflow."""
        width = 0.25 * self.high - 0.25 * self.low
        scale = CELLS / width if width > 0 else 0.0
        number = (0.25 * self.high - 0.25 * nw.col(SCORE)) * (scale if math.isfinite(scale) else 0.0)
        return (number * float(depth)).floor().cast(nw.Int64)


@dataclass(frozen=True)
class _Cells:
    """Cells at one depth, in order: number, rows, rows above, smallest and largest score of each."""

    depth: int
    number: Ints
    rows: Ints
    above: Ints
    low: Floats
    high: Floats

    def holding(self, ranks: Ints) -> _Cells:
        return self.only(np.unique(self.of(ranks)[1]))

    def of(self, ranks: Ints) -> tuple[Ints, Ints]:
        """Which of the ranks are in a cell, and in which."""
        if not len(self.rows):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        cell = np.searchsorted(self.above, ranks, side="right") - 1
        inside = np.flatnonzero((cell >= 0) & (ranks < (self.above + self.rows)[cell]))
        return inside, cell[inside]

    def only(self, kept: Any) -> _Cells:
        parts = (self.number, self.rows, self.above, self.low, self.high)
        return _Cells(self.depth, *(each[kept] for each in parts))


class RankedTable:
    """A table of scored candidates in the order of their scores, in groups or as a whole.

    ``sizes``: candidates by group; without groups there is one, None.
    """

    def __init__(self, table: Table, *, score: str, id: str | None = None, group: str | None = None) -> None:
        if not table.engine.ordered and id is None:
            raise InvalidInput(
                "id", f"{table.name} has no row order, so drawn rows are known by their ids. Name the column."
            )
        self._columns = find_columns(table, score=score, id=None if table.engine.ordered else id, group=group)
        self._few = table.engine.few
        self._spans: dict[str | None, _Span] = {}
        self._count()
        self.sizes: dict[str | None, int] = {name: span.rows for name, span in self._spans.items()}
        self._places = float(sum(self.sizes.values()) if table.engine.ordered else PLACES)

    def _count(self) -> None:
        """Candidates and the ends of their scores; what is wrong with rows stops it."""
        score, columns = nw.col(SCORE), self._columns
        parts = (
            nw.len().alias(COUNT),
            score.count().alias(CELL),
            score.min().alias(LOW),
            score.max().alias(HIGH),
        )
        frame, grouped = self._frame(places=False), columns.group is not None
        counted = frame.group_by(GROUP).agg(*parts) if grouped else frame.select(*parts)
        named = [row if grouped else (None, *row) for row in columns.rows(counted, "counting candidates")]
        problems = bad_rows.unusable_scores(columns, sum(int(row[1]) - int(row[2]) for row in named))
        problems += bad_rows.wrong_groups(columns, {row[0]: int(row[1]) for row in named}, None)
        bad_rows.stop_for(columns, problems)
        for raw, rows, _, low, high in sorted(named, key=lambda row: str(row[0])):
            if rows:
                name = str(raw) if grouped else None
                self._spans[name] = _Span(raw, float(low), float(high), 0, int(rows), whole=True)
        if not self._spans:
            raise InvalidInput(columns.table.name, "has no rows.")

    def _frame(self, span: _Span | None = None, *, places: bool) -> Frame:
        """Scores, of a span or of all; with ``places``, what orders ties as well."""
        columns, engine = self._columns, self._columns.table.engine
        wanted: dict[str, nw.Expr] = {SCORE: nw.when(columns.usable).then(columns.score)}
        wanted |= {} if columns.group is None else {GROUP: columns.group}
        wanted |= {ID: columns.ident} if places and columns.ident is not None else {}
        frame = engine.numbered(columns.frame, ROW) if places and engine.ordered else columns.frame
        frame = frame.with_columns(**wanted).select(*wanted, *([ROW] if places and engine.ordered else []))
        if span is not None and columns.group is not None:
            frame = frame.filter(nw.col(GROUP) == span.group)
        if span is not None and not span.whole:
            frame = frame.filter((nw.col(SCORE) >= span.low) & (nw.col(SCORE) <= span.high))
        return engine.with_places(frame, ID, ROW) if places and not engine.ordered else frame

    def at(self, group: str | None, ranks: Ints) -> RankedRows:
        """The rows at these ranks of the group's order, in the order asked for."""
        wanted = np.unique(ranks)
        rows, scores = np.zeros(len(wanted)), np.zeros(len(wanted))
        ids: Any = np.empty(len(wanted), dtype=object)
        spans = [self._spans[group]]
        while spans:
            span = spans.pop()
            held = wanted[(wanted >= span.above) & (wanted < span.above + span.rows)]
            cells = self._narrow(span, held)
            tied = cells.low == cells.high
            crowded = tied & (cells.rows[tied].sum() > self._few)
            inner = ~tied & (cells.rows > self._few) & ((cells.low > span.low) | (cells.high < span.high))
            spans += [_inner(span, cells, at) for at in np.flatnonzero(inner).tolist()]
            for pieces, code in (
                (cells.only(~crowded & ~inner), span.cell(cells.depth)),
                *(self._by_row(span, cells.only(crowded), held) if crowded.any() else ()),
            ):
                at, fetched = self._fetch(span, pieces, code, wanted)
                rows[at], scores[at], ids[at] = fetched
        back = np.searchsorted(wanted, ranks)
        numbers = rows[back].astype(np.int64) if self._columns.table.engine.ordered else None
        return RankedRows(numbers, scores[back], ids[back].tolist() if numbers is None else None)

    def reaching(self, group: str | None, scores: list[float]) -> list[int]:
        """How many of the group score at or above each of these, in one pass."""
        if not scores:
            return []
        counts = [
            (nw.col(SCORE) >= each).cast(nw.Int64).sum().alias(f"{COUNT}{at}")
            for at, each in enumerate(scores)
        ]
        frame = self._frame(self._spans[group], places=False).select(*counts)
        return [int(each) for each in self._columns.rows(frame, "counting scores")[0]]

    def _narrow(self, span: _Span, ranks: Ints) -> _Cells:
        """The cells that hold these ranks, cut until those of several scores hold little."""
        frame = self._frame(span, places=False)
        cells = self._cells(frame, span.cell(1), 1, span.above)
        _require(cells.rows.sum() == span.rows, self._columns.table)
        cells = cells.holding(ranks)
        while True:
            several = cells.low < cells.high
            if cells.rows[several].sum() <= self._few or cells.depth >= DEPTH:
                return cells
            finer = 1 << max(1, (MOST_CELLS // len(cells.number)).bit_length() - 1)
            depth = min(DEPTH, cells.depth * finer)
            inside = frame.filter(span.cell(cells.depth).is_in(cells.number.tolist()))
            cells = self._cells(inside, span.cell(depth), depth, span.above, cells).holding(ranks)

    def _cells(
        self, frame: Frame, code: nw.Expr, depth: int, above: int, outer: _Cells | None = None
    ) -> _Cells:
        """Rows by cell, in one pass; ``outer`` are the cells that these are cut from."""
        score, counts = nw.col(SCORE), [nw.len().alias(COUNT)]
        if outer is not None:  # the first pass, over everyone, only counts
            counts += [score.min().alias(LOW), score.max().alias(HIGH)]
        counted = frame.with_columns(code.alias(CELL)).group_by(CELL).agg(*counts)
        table = self._columns.table
        table.say("counting scores")
        with table.reading():
            raw = table.engine.gathered(counted, (CELL, COUNT, LOW, HIGH))
        order = np.argsort(raw[CELL])
        number, rows = (raw[name][order].astype(np.int64) for name in (CELL, COUNT))
        before = np.append(0, np.cumsum(rows)[:-1]) + above
        if outer is not None:
            cell = np.searchsorted(outer.number, number // (depth // outer.depth))
            _require(np.array_equal(np.bincount(cell, rows, len(outer.rows)), outer.rows), table)
            before += (outer.above - before[np.searchsorted(cell, np.arange(len(outer.rows)))])[cell]
        low, high = (
            raw[name][order] if outer is not None else np.full(len(rows), end)
            for name, end in ((LOW, -np.inf), (HIGH, np.inf))
        )
        return _Cells(depth, number, rows, before, low, high)

    def _by_row(self, span: _Span, tied: _Cells, ranks: Ints) -> list[tuple[_Cells, nw.Expr]]:
        """Rows of one score by their place among all rows: as many pieces as leave little in each."""
        per_piece = max(1, self._few // (2 * len(ranks)))
        room = min(MOST_CELLS * 4 // len(tied.number), (1 << 62) // (CELLS + 1) // tied.depth)
        pieces = max(1, min(room, int(tied.rows.max()) // per_piece + 1))
        piece = (nw.col(ROW).cast(nw.Float64) * (pieces / (self._places + 1))).floor().cast(nw.Int64)
        code = span.cell(tied.depth) * pieces + piece
        frame = self._frame(span, places=True).filter(span.cell(tied.depth).is_in(tied.number.tolist()))
        outer = _Cells(1, tied.number, tied.rows, tied.above, tied.low, tied.high)
        return [(self._cells(frame, code, pieces, span.above, outer).holding(ranks), code)]

    def _fetch(
        self, span: _Span, cells: _Cells, code: nw.Expr, wanted: Ints
    ) -> tuple[Ints, tuple[Floats, Floats, Any]]:
        """Which of the wanted ranks these cells hold, and place, score and id of the rows there."""
        at, cell = cells.of(wanted)
        if not len(at):
            return at, (np.zeros(0), np.zeros(0), [])
        frame = self._frame(span, places=True).filter(code.is_in(cells.number.tolist()))
        names = [SCORE, ROW] + ([ID] if self._columns.ident is not None else [])
        table = self._columns.table
        table.say("fetching the rows around the ranks")
        with table.reading():
            raw = table.engine.gathered(frame.select(*names), (SCORE, ROW))
        _require(len(raw[SCORE]) == cells.rows.sum(), table)
        ids = np.array(raw.get(ID, [None] * len(raw[SCORE])), dtype=object)
        keys = [raw[ROW], -raw[SCORE]]
        if not table.engine.ordered:
            keys = [np.array([str(each) for each in ids]), *keys]
        starts = np.cumsum(cells.rows) - cells.rows
        order = np.lexsort(keys)[(starts - cells.above)[cell] + wanted[at]]
        return at, (raw[ROW][order], raw[SCORE][order], ids[order])


def _inner(span: _Span, cells: _Cells, at: int) -> _Span:
    low, high = float(cells.low[at]), float(cells.high[at])
    return _Span(span.group, low, high, int(cells.above[at]), int(cells.rows[at]), whole=False)


def _require(same: bool, table: Table) -> None:
    if not same:
        raise InvalidInput(
            table.name, "gave other rows when it was asked again. Write it to a file first, or cache it."
        )
