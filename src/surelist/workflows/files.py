"""Files that people look over before anything is decided, and those they take home: lists, templates, rows
that do not fit."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from surelist._check import MissingLabels
from surelist.promises.terms import Roles
from surelist.tables import bad_rows
from surelist.tables.arrays import read_columns
from surelist.tables.csv_text import origin_of
from surelist.tables.output import NO_STYLES, escape_cell, meant_by, write_workbook
from surelist.tables.profile import Profile, group_names, profile as profile_table
from surelist.tables.reading import is_text, style_of
from surelist.tables.roles import find_columns
from surelist.tables.shortlist import RANK, REASON
from surelist.tables.sources import Table
from surelist.workflows.source import Source
from surelist.workflows.tables import problems

TEMPLATE = (
    ("candidate_id", "score", "qualified"),
    [("example-1", 0.84, "yes"), ("example-2", 0.31, "no"), ("example-3", 0.57, "")],
)

__all__ = ["Profile", "escape_cell", "group_names", "meant_by", "problems"]  # and what is here

MOST_ROWS = 100_000  # of each problem


def write_list(
    source: Source, output: Path, *, score: str, group: str | None, reasons: Mapping[str | None, str]
) -> None:
    """A shortlist with rank and reason. No cell runs as a formula; CSV is written as the pool's file was."""
    table = source.open()
    with table.reading():
        rows = table.engine.rows(table.frame)
    values = read_columns(table, {"score": score})["score"]
    ranks = (1 + np.searchsorted(np.sort(-values), -values)).tolist()
    whose = table.columns.index(group) if group is not None else None
    why = [reasons[None if whose is None else str(row[whose])] for row in rows]
    names = [*table.columns, RANK, REASON]
    listed = [(*row, rank, reason) for row, rank, reason in zip(rows, ranks, why, strict=True)]
    if output.suffix == ".xlsx":
        styles = {score: style_of(table, score)} if is_text(table, score) else NO_STYLES
        write_workbook(output, names, listed, texts=table.text, styles=styles, formats=table.origin.formats)
    else:
        encoding, delimiter = _manner(table, score)
        _write_csv(output, [names, *listed], encoding, delimiter)


def _manner(table: Table, score: str) -> tuple[str, str]:
    """The encoding and the separator of the file that came; a workbook's decimal commas need semicolons."""
    origin = table.origin
    if origin.form not in ("csv", "json"):
        commas = is_text(table, score) and style_of(table, score).decimal == ","
        return "utf-8-sig", ";" if commas else ","
    plain = {"utf-8": "utf-8-sig", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}
    return plain.get(origin.encoding, origin.encoding), origin.delimiter


def _write_csv(output: Path, rows: Iterable[Sequence[object]], encoding: str, delimiter: str) -> None:
    with output.open("w", newline="", encoding=encoding, errors="replace") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([_text(cell) for cell in row] for row in rows)


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (datetime.date, datetime.datetime)):
        return cell.isoformat()
    return escape_cell(str(cell))


def write_template(output: Path) -> None:
    """A file to fill in: past candidates with a score and what became of them."""
    names, rows = TEMPLATE
    if output.suffix == ".xlsx":
        write_workbook(output, names, rows, sheet="past candidates")
    else:
        _write_csv(output, [names, *rows], "utf-8-sig", ",")


def escape_file(path: Path) -> Path:
    """The same table with escaped cells, in place; a byte-order mark tells Excel it is UTF-8."""
    separator = origin_of(str(path)).delimiter
    csv.field_size_limit(1 << 30)  # a cell may be as large as an upload
    escaped = path.with_name(f"safe-{path.name}")
    with (
        path.open(newline="", encoding="utf-8-sig") as source,
        escaped.open("w", newline="", encoding="utf-8-sig") as out,
    ):
        rows = csv.reader(source, delimiter=separator)
        writer = csv.writer(out, delimiter=separator)
        writer.writerows([escape_cell(cell) for cell in row] for row in rows)
    path.unlink()
    return escaped


def profile(source: Source) -> Profile:
    """What is in a file."""
    return profile_table(replace(source, engine="duckdb").open())  # asked in SQL, Parquet files too


def reading(source: Source, score: str, label: str) -> tuple[str, ...]:
    """What is understood of these columns, in sentences."""
    return source.reading(score=score, label=label).sentences


def write_problem_rows(source: Source, roles: Roles, missing_labels: MissingLabels, output: Path) -> None:
    """All rows that stand in the way of a calibration, whole, with their row in the file and why."""
    table = source.open()
    columns = find_columns(table, **roles.names("score", "label", "group", "id"))
    rows: list[tuple[int, str, *tuple[object, ...]]] = [
        (table.sheet_rows([number])[0], why, *cells)
        for why, number, cells in bad_rows.rows_that_stop(
            columns, unlabelled=missing_labels == "error", most=MOST_ROWS
        )
    ]
    names = ["row in the file", "problem", *table.columns]
    rows.sort(key=lambda row: row[0])
    write_workbook(output, names, rows, sheet="problems")
