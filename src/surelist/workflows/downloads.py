"""Lists and templates that people open in a spreadsheet: Excel, and CSV in the manner of their own file."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from surelist.tables.arrays import read_columns
from surelist.tables.output import NO_STYLES, escape_cell, write_workbook
from surelist.tables.reading import is_text, style_of
from surelist.tables.shortlist import RANK, REASON
from surelist.tables.sources import Table
from surelist.workflows.source import Source

TEMPLATE = (
    ("candidate_id", "score", "qualified"),
    [("example-1", 0.84, "yes"), ("example-2", 0.31, "no"), ("example-3", 0.57, "")],
)

__all__ = ["escape_cell", "escape_file", "write_list", "write_template"]


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
        write_workbook(output, names, listed, texts=table.text, styles=styles, formats=table.formats)
    else:
        encoding, delimiter = _manner(table, score)
        _write_csv(output, [names, *listed], encoding, delimiter)


def _manner(table: Table, score: str) -> tuple[str, str]:
    """The encoding and the separator of the file that came; a workbook's decimal commas need semicolons."""
    origin = table.origin
    if origin is None or origin.form == "excel":
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


def escape_file(path: Path, separator: str) -> Path:
    """The same table with escaped cells, in place; a byte-order mark tells Excel it is UTF-8."""
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
