"""Files that engines do not read as they are: Excel sheets, and text in other encodings.

Each becomes a table in a DuckDB of its own; a sheet's columns keep their types.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import msgspec

from surelist.errors import InvalidInput
from surelist.tables import excel
from surelist.tables.csv_text import decoded, explain
from surelist.tables.engines.duckdb import connect, csv_reader, json_reader, literal
from surelist.tables.hints import Hints, Origin


def adopt(path: str, text: Origin | None, hints: Hints) -> tuple[duckdb.DuckDBPyRelation, Origin]:
    """A relation over the rows of a text or, without one, of a workbook; and what they were before."""
    connection = connect()
    with tempfile.TemporaryDirectory(prefix="surelist-") as folder:
        if text is None:
            spool = Path(folder) / "rows.jsonl"
            reader, origin = _from_sheet(path, hints, spool)
        else:
            spool, origin = Path(folder) / "rows.csv", text
            decoded(path, text, spool)
            reader = csv_reader(literal(str(spool)), text.delimiter)
        try:
            connection.execute(f"CREATE TABLE adopted AS SELECT * FROM {reader}")
        except duckdb.Error as error:
            reason = explain((str(spool),), origin.delimiter) if text is not None else None
            reason = reason or f"{path}: cannot be read: {str(error).splitlines()[0]}"
            raise InvalidInput("", reason.replace(str(spool), path)) from error
    return connection.sql("SELECT * FROM adopted"), origin


def _from_sheet(path: str, hints: Hints, spool: Path) -> tuple[str, Origin]:
    read = excel.read_sheet(path, hints.sheet, hints.header_row)
    encode = msgspec.json.Encoder().encode
    with spool.open("wb") as file:
        for row in excel.values_of(read):
            file.write(encode(dict(zip(read.names, row, strict=True))) + b"\n")
    return json_reader([str(spool)], dict(zip(read.names, excel.kinds_of(read), strict=True))), read.origin
