"""DuckDB: the engine behind files, and behind relations that users hand in."""

from __future__ import annotations

from typing import Any

import duckdb
import narwhals as nw

from surelist.tables.engines.base import Engine, Frame, appearing, plain
from surelist.ties import HEX_DIGITS


class DuckDB(Engine):
    """Streams through files of any size; spills to disk what does not fit."""

    name = "duckdb"
    errors = (duckdb.Error,)

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return [plain(row) for row in frame.to_native().fetchall()]

    def with_numbers(self, frame: Frame, column: str, alias: str, *, label: bool) -> Frame:
        text = f"trim({quoted(column)})"
        number = f"TRY_CAST({text} AS DOUBLE)"
        if label:
            number = (
                f"CASE WHEN {text} = '' THEN NULL WHEN lower({text}) = 'true' THEN 1 "
                f"WHEN lower({text}) = 'false' THEN 0 "
                f"WHEN {text} IS NOT NULL THEN coalesce({number}, -1) END"
            )
        return _project(frame, f"*, {number} AS {quoted(alias)}")

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        name = quoted(column)
        digits = f"substr(sha256({literal(key)} || {name}), 1, {HEX_DIGITS})"
        return _project(frame, f"* REPLACE ({digits} AS {name})")

    def numbered(self, frame: Frame, alias: str) -> Frame:
        return _project(frame, f"*, row_number() OVER () - 1 AS {quoted(alias)}")

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        relation = frame.to_native()
        with appearing(output) as target:
            if form == "parquet":
                relation.write_parquet(target)
                return
            packed = "gzip" if output.lower().endswith(".gz") else "none"
            relation.write_csv(target, header=True, sep=delimiter, compression=packed)


def read_parquet(files: list[str]) -> Any:
    """A relation over Parquet files, on a connection of its own."""
    return duckdb.connect(":memory:").sql(f"SELECT * FROM read_parquet({_listed(files)})")


def read_csv(files: list[str], delimiter: str) -> Any:
    """A relation over CSV files, every column text, on a connection of its own."""
    return duckdb.connect(":memory:").sql(
        f"SELECT * FROM read_csv({_listed(files)}, all_varchar=true, header=true, "
        f"delim={literal(delimiter)}, quote='\"', escape='\"', "
        "comment='', skip=0)"  # else DuckDB may take lines starting with # for comments
    )


def _project(frame: Frame, sql: str) -> Frame:
    return nw.from_native(frame.to_native().project(sql))


def _listed(files: list[str]) -> str:
    return "[" + ", ".join(literal(each) for each in files) + "]"


def quoted(name: str) -> str:
    """A column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"
