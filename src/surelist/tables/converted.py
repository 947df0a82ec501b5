"""Files that engines do not read as they are: Excel sheets, and text in other encodings.

Each becomes a table in a DuckDB of its own, or one Parquet file; a sheet's columns keep their types.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from surelist.errors import InvalidInput
from surelist.tables import excel
from surelist.tables.csv_text import Manner, decoded, explain, manner_of, not_text
from surelist.tables.engines.duckdb import connect, csv_reader, json_reader, literal, quoted
from surelist.tables.hints import Hints, Origin
from surelist.tables.json_lines import columns_of


def adopt(path: str, manner: Manner | None, hints: Hints) -> tuple[duckdb.DuckDBPyRelation, Origin]:
    """A relation over the file's rows, and what they were before."""
    with _loaded(path, manner, hints) as (connection, select, origin):
        connection.execute(f"CREATE TABLE adopted AS {select}")
        return connection.sql("SELECT * FROM adopted"), origin


def adopt_as_parquet(path: str, manner: Manner | None, hints: Hints, output: Path) -> Origin:
    """The same rows as a Parquet file."""
    with _loaded(path, manner, hints) as (connection, select, origin):
        connection.execute(f"COPY ({select}) TO {literal(str(output))} (FORMAT parquet)")
        connection.close()
        return origin


def _json_as_parquet(path: Path, output: Path) -> Origin:
    try:
        columns, origin = columns_of([str(path)], str(path))
        select = f"SELECT * FROM {json_reader([str(path)], columns)}"
        with connect() as connection:
            connection.execute(f"COPY ({select}) TO {literal(str(output))} (FORMAT parquet)")
    except duckdb.Error as error:
        raise InvalidInput("file", f"cannot read {path}: {str(error).splitlines()[0]}") from error
    return origin


def adopt_upload(path: Path, sheet: str | None, output: Path) -> Origin | None:
    """A file that no engine reads as it is becomes ``output``, a Parquet file; None where none is needed."""
    form = {".csv": "csv", ".parquet": "parquet", ".jsonl": "json"}.get(path.suffix, "excel")
    if sheet is not None and form != "excel":
        raise InvalidInput("sheet", f"goes with Excel files; {path} is none. Leave it out.")
    if form == "parquet":
        return None
    if form == "json":
        return _json_as_parquet(path, output)
    manner = manner_of(str(path)) if form == "csv" else None
    if manner is not None and manner.plain:
        reason = not_text(str(path))
        if reason is not None:
            raise InvalidInput("file", f"{path}: {reason}")
        return None
    return adopt_as_parquet(str(path), manner, Hints(sheet), output)


@contextmanager
def _loaded(
    path: str, manner: Manner | None, hints: Hints
) -> Iterator[tuple[duckdb.DuckDBPyConnection, str, Origin]]:
    with tempfile.TemporaryDirectory(prefix="surelist-") as folder:
        spool = Path(folder) / "rows.csv"
        if manner is None:
            select, origin = _from_sheet(path, hints, spool)
        else:
            decoded(path, manner, spool)
            select = f"SELECT * FROM {csv_reader(literal(str(spool)), manner.delimiter)}"
            origin = manner.origin
        try:
            yield connect(), select, origin
        except duckdb.Error as error:
            delimiter = manner.delimiter if manner else ","
            reason = explain((str(spool),), delimiter)
            reason = reason or f"{path}: cannot be read: {str(error).splitlines()[0]}"
            raise InvalidInput("", reason.replace(str(spool), path)) from error


def _from_sheet(path: str, hints: Hints, spool: Path) -> tuple[str, Origin]:
    read = excel.read_sheet(path, hints.sheet, hints.header_row)
    with spool.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in excel.texts_of(read):
            writer.writerow(row)
    kinds = ", ".join(
        f"{literal(name)}: {literal(kind)}"
        for name, kind in zip(read.names, excel.kinds_of(read), strict=True)
    )
    reader = (
        f"read_csv({literal(str(spool))}, header=false, columns={{{kinds}}}, delim=',', quote='\"', "
        "escape='\"', comment='', skip=0, auto_detect=false, allow_quoted_nulls=true, nullstr='', "
        "new_line='\\n', max_line_size=1073741824)"
    )
    return f"SELECT {', '.join(map(quoted, read.names))} FROM {reader}", read.origin
