"""Who is at given ranks of a table's order by score: counts come back, then the few rows around each rank.

The best score has rank 0. Ties are in the order of the table's rows; on an engine without one, in that of a
number made from their ids. ``order_statistics`` finds the score at a rank, and among many rows of one score
the place that a row has: places are ordered as scores are.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist.errors import InvalidInput
from surelist.score_summary import USUAL
from surelist.tables import bad_rows, order_statistics as order
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, ID, ROW, SCORE, find_columns
from surelist.tables.sources import Table

FINER = 32  # bins for each of the usual ones: many ranks are asked for
PLACES = 1 << 52  # numbers made from ids lie below

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class RankedRows(Struct, frozen=True):
    """Rows at ranks: their numbers where rows have an order, their ids where they have none; scores, and how
    many score as high or higher."""

    rows: Ints | None
    scores: Floats
    ids: list[str] | None
    reaching: Ints


class RankedTable:
    """A table of scored candidates in the order of their scores, in groups or as a whole.

    ``sizes``: candidates by group; without groups there is one, None.
    """

    def __init__(self, table: Table, *, score: str, id: str | None = None, group: str | None = None) -> None:
        self._ordered = table.engine.ordered
        if not self._ordered and id is None:
            raise InvalidInput(
                "id", f"{table.name} has no row order, so drawn rows are known by their ids. Name the column."
            )
        ident = None if self._ordered else id
        columns = self._columns = find_columns(table, score=score, id=ident, group=group)
        frame, grouped = self._frame(places=False), group is not None
        counted = order.counted(frame, [GROUP] if grouped else [], order.bin_of(USUAL, FINER))
        bins = order.fetched(columns, counted, "counting candidates")
        sizes = {raw: int(parts.rows.sum()) for raw, parts in bins.items()}
        unusable = sum(int(parts.rows[np.isnan(parts.low)].sum()) for parts in bins.values())
        problems = bad_rows.unusable_scores(columns, unusable)
        bad_rows.stop_for(columns, problems + bad_rows.wrong_groups(columns, sizes, None))
        if not sum(sizes.values()):
            raise InvalidInput(table.name, "has no rows.")
        self._raw = {str(raw) if grouped else None: raw for raw in sorted(sizes, key=str)}
        self.sizes: dict[str | None, int] = {name: sizes[raw] for name, raw in self._raw.items()}
        self._placed = self._frame(places=True)
        self._order = order.OrderStatistics(
            columns, frame, grouped=grouped, bins=bins, depth=FINER, placed=self._placed,
            first=ROW if self._ordered else ID,
        )  # fmt: skip

    def _frame(self, *, places: bool) -> Frame:
        """Scores and groups; with ``places``, what orders ties as well."""
        columns, engine = self._columns, self._columns.table.engine
        wanted: dict[str, nw.Expr] = {SCORE: nw.when(columns.usable).then(columns.score)}
        wanted |= {} if columns.group is None else {GROUP: columns.group}
        if not places:
            return columns.frame.with_columns(**wanted).select(*wanted)
        if self._ordered:
            return engine.numbered(columns.frame, ROW).with_columns(**wanted).select(*wanted, ROW)
        wanted |= {} if columns.ident is None else {ID: columns.ident}
        return engine.with_places(columns.frame.with_columns(**wanted).select(*wanted), ID, ROW)

    def _of(self, frame: Frame, group: str | None) -> Frame:
        return frame if self._columns.group is None else frame.filter(nw.col(GROUP) == self._raw[group])

    def at(self, group: str | None, ranks: Ints) -> RankedRows:
        """The rows at these ranks of the group's order, in the order asked for."""
        raw, asked = self._raw[group], ranks.tolist()
        found = self._order.find({raw: {rank + 1: None for rank in asked}})
        by_rank = {rank: found[raw, rank + 1] for rank in asked}
        firsts = {rank: each.first for rank, each in by_rank.items() if each.rows == 1}
        tied = {rank: each for rank, each in by_rank.items() if firsts.get(rank) is None}
        if tied:
            alone = all(each.rows == 1 for each in tied.values())
            firsts |= (self._alone if alone else self._among_ties)(group, tied)
        scores = np.array([by_rank[rank].low for rank in asked], dtype=np.float64)
        rows = [firsts[rank] for rank in asked]
        reaching = np.array([by_rank[rank].above + by_rank[rank].rows for rank in asked], dtype=np.int64)
        if self._ordered:
            return RankedRows(np.array(rows, dtype=np.int64), scores, None, reaching)
        return RankedRows(None, scores, rows, reaching)

    def _with_scores(self, group: str | None, asked: dict[int, order.Interval]) -> Frame:
        values = sorted({each.low for each in asked.values()})
        zeros = [-0.0, 0.0] if 0.0 in values else []
        return self._of(self._placed, group).filter(nw.col(SCORE).is_in([*values, *zeros]))

    def _alone(self, group: str | None, asked: dict[int, order.Interval]) -> dict[int, Any]:
        """Which row is at a rank whose score no other row has."""
        place = ROW if self._ordered else ID
        kept = self._with_scores(group, asked).select(SCORE, place)
        found = self._columns.arrays(kept, "fetching the rows around the ranks", (SCORE,))
        by_score = dict(zip(found[SCORE].tolist(), found[place], strict=True))
        same = len(by_score) == len(found[SCORE]) == len(asked)
        order.require_same_rows(same, self._columns.table)
        return {rank: by_score[each.low] for rank, each in asked.items()}

    def _among_ties(self, group: str | None, tied: dict[int, order.Interval]) -> dict[int, Any]:
        """Which row is at a rank of one score's rows, by their places, of which the lowest is the first.

        Places become fractions by a power of two, so that they stay what they are.
        """
        score, zero = nw.col(SCORE), nw.lit(0.0)
        frame = self._with_scores(group, tied)
        most = sum(self.sizes.values()) if self._ordered else PLACES
        scale = float(1 << most.bit_length())
        named = {
            GROUP: nw.when(score == 0.0).then(zero).otherwise(score),
            SCORE: nw.col(ROW).cast(nw.Float64) * (-1 / scale),
        }
        placed = frame.with_columns(**named).select(*named)
        places = order.OrderStatistics(self._columns, placed, grouped=True)
        wanted: dict[Any, list[int]] = {}
        for rank, each in tied.items():
            wanted.setdefault(each.low, []).append(rank + 1 - each.above)
        found = places.find(wanted)
        at = {rank: found[each.low, rank + 1 - each.above] for rank, each in tied.items()}
        rows = {rank: round(each.low * -scale) for rank, each in at.items()}
        if self._ordered:
            return rows
        kept = frame.filter(nw.col(ROW).is_in(sorted(set(rows.values())))).select(SCORE, ROW, ID)
        ids: dict[tuple[float, int], list[Any]] = {}
        for value, place, ident in self._columns.rows(kept, "fetching the rows around the ranks"):
            ids.setdefault((value, place), []).append(ident)
        return {
            rank: sorted(ids[each.group, rows[rank]], key=str)[rank - tied[rank].above - each.above]
            for rank, each in at.items()
        }
