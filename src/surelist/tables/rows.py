"""A few rows of a table by their numbers, with all their columns; and a shortlist that names rows too."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw

from surelist._files import refuse_inputs, writing
from surelist.errors import InvalidInput
from surelist.tables.csv_text import delimiter_of
from surelist.tables.engines import Frame
from surelist.tables.output import output_format, write_like, write_workbook
from surelist.tables.roles import ROW, find_columns
from surelist.tables.sources import Table


def count_rows(table: Table) -> int:
    """How many rows there are."""
    table.say("counting rows")
    with table.reading():
        return int(table.engine.rows(table.frame.select(nw.len()))[0][0])


def rows_at(table: Table, rows: Sequence[int]) -> list[tuple[Any, ...]]:
    """The rows with these numbers (from 0), each with all its columns, in the order asked for."""
    if not rows:
        return []
    kept = _numbered(table).filter(nw.col(ROW).is_in(list(rows))).select(ROW, *table.columns)
    table.say("fetching the drawn rows")
    with table.reading():
        fetched = {int(row[0]): row[1:] for row in table.engine.rows(kept)}
    gone = next((row for row in rows if row not in fetched), None)
    if gone is not None:
        raise InvalidInput(f"{table.name}: row {gone:,} is not there any more; the table has changed.")
    return [fetched[row] for row in rows]


def write_sheet(
    output: str | os.PathLike[str],
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    inputs: Sequence[str],
) -> None:
    """A small sheet for a person to fill in, CSV or Excel, complete or not at all."""
    form = output_format(output)
    if form == "parquet" or os.fspath(output).endswith(".gz"):
        raise InvalidInput(
            f"output: expected a name ending in .csv, .tsv or .xlsx, got {os.fspath(output)!r}."
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
    table: Table, output: str | os.PathLike[str], score: str, threshold: float, rows: Sequence[int]
) -> None:
    """Everyone at or above the threshold and the rows named, with all their columns, in the table's order."""
    target = os.fspath(output)
    refuse_inputs(target, table.paths)
    columns = find_columns(table, score=score)
    kept = _numbered(columns.table).filter(
        (columns.usable & (columns.score >= threshold)) | nw.col(ROW).is_in(list(rows))
    )
    if table.engine.lazy:
        kept = kept.sort(ROW)
    table.say("writing the list")
    write_like(table, kept.select(*table.columns), target)


def _numbered(table: Table) -> Frame:
    if not table.engine.ordered:
        raise InvalidInput(
            f"{table.name}: has no row order, which drawing rows needs. Name the Parquet files instead, read "
            "with another engine."
        )
    return table.engine.numbered(table.frame, ROW)
