"""A few rows of a table by their numbers, with all their columns; and a shortlist that names rows too."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw

from surelist._files import refuse_inputs, writing
from surelist.errors import InvalidInput
from surelist.tables.csv_text import delimiter_of
from surelist.tables.engines import Frame
from surelist.tables.output import output_format, write_like, write_workbook
from surelist.tables.roles import ID, ROW, find_columns
from surelist.tables.sources import Table

Row = tuple[Any, ...]


def count_rows(table: Table) -> int:
    """How many rows there are."""
    table.say("counting rows")
    with table.reading():
        return int(table.engine.rows(table.frame.select(nw.len()))[0][0])


def rows_at(table: Table, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[Row]:
    """The rows with these numbers (from 0), with all their columns or those named, in the order asked for."""
    if not rows:
        return []
    kept = _numbered(table).filter(nw.col(ROW).is_in(list(rows)))
    fetched = {int(row[0]): row[1:] for row in _drawn(table, kept.select(ROW, *(columns or table.columns)))}
    gone = next((row for row in rows if row not in fetched), None)
    if gone is not None:
        raise InvalidInput(table.name, f"row {gone + 1:,} is not there any more; the table has changed.")
    return [fetched[row] for row in rows]


def rows_with_ids(
    table: Table, column: str, ids: Sequence[str], columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of these candidates, with all their columns or those named, in the order asked for."""
    if not ids:
        return []
    column = table.engine.column(column)
    named = table.frame.with_columns(nw.col(column).cast(nw.String).alias(ID))
    kept = named.filter(nw.col(ID).is_in(list(ids))).select(ID, *(columns or table.columns))
    fetched: dict[str, Row] = {}
    for row in _drawn(table, kept):
        if row[0] in fetched:
            raise InvalidInput(f"column {column!r}", expected="unique candidate ids", got=f"{row[0]!r} twice")
        fetched[row[0]] = row[1:]
    gone = next((name for name in ids if name not in fetched), None)
    if gone is not None:
        raise InvalidInput(table.name, f"candidate {gone!r} is not there any more; the table has changed.")
    return [fetched[name] for name in ids]


def _drawn(table: Table, kept: Frame) -> list[Row]:
    table.say("fetching the drawn rows")
    with table.reading():
        return table.engine.rows(kept)


def write_sheet(
    output: str | os.PathLike[str],
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    inputs: Sequence[str],
) -> None:
    """A small sheet for a person to fill in, CSV or Excel, complete or not at all."""
    form = output_format(output)
    if form == "parquet" or os.fspath(output).endswith(".gz"):
        raise InvalidInput(
            "output", expected="a name ending in .csv, .tsv or .xlsx", got=repr(os.fspath(output))
        )
    refuse_inputs(os.fspath(output), inputs)
    if form == "excel":
        write_workbook(output, header, rows)
        return
    with writing(Path(output)) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        sheet = csv.writer(file, delimiter=delimiter_of(os.fspath(output)))
        sheet.writerow(header)
        sheet.writerows([["" if value is None else value for value in row] for row in rows])


def write_listed(
    table: Table,
    output: str | os.PathLike[str],
    thresholds: Mapping[str | None, float],
    roles: Mapping[str, str | None],
    *,
    rows: Sequence[int] = (),
    ids: Sequence[str] = (),
    without: Sequence[int] = (),
    without_ids: Sequence[str] = (),
) -> None:
    """Everyone at or above their group's threshold and the rows named, but for those ``without``: all
    columns, in the table's order.

    ``thresholds`` by group, None without groups; ``roles`` names the columns of score, group and id. Rows are
    named by number, or by id on an engine without an order of rows.
    """
    target = os.fspath(output)
    refuse_inputs(target, table.paths)
    columns = find_columns(table, **roles)
    kept, engine = nw.lit(False), table.engine
    for group, threshold in thresholds.items():
        listed, member = columns.usable & (columns.score >= threshold), columns.member(group)
        kept = kept | (listed if member is None else listed & member)
    frame = engine.numbered(columns.frame, ROW) if engine.ordered else columns.frame
    if rows:
        kept = kept | nw.col(ROW).is_in(list(rows))
    if ids and columns.ident is not None:
        kept = kept | columns.ident.is_in(list(ids))
    if without:
        kept = kept & ~nw.col(ROW).is_in(list(without))
    if without_ids and columns.ident is not None:
        kept = kept & ~columns.ident.is_in(list(without_ids))
    frame = frame.filter(kept)
    if engine.lazy and engine.ordered:
        frame = frame.sort(ROW)
    table.say("writing the list")
    write_like(table, frame.select(*table.columns), target)


def _numbered(table: Table) -> Frame:
    if not table.engine.ordered:
        raise InvalidInput(
            table.name,
            "has no row order, which drawing rows needs. Name the Parquet files instead, read with "
            "another engine.",
        )
    return table.engine.numbered(table.frame, ROW)
