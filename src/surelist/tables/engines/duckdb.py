"""DuckDB: the engine behind files, and behind relations that users hand in."""

from __future__ import annotations

import glob
import secrets
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np

from surelist._files import named_folder, remove
from surelist.filters import HEX_DIGITS
from surelist.tables.engines.base import HELD, PLAIN, Engine, Files, Frame, appearing, is_remote
from surelist.tables.numbers import NumberStyle

_BUFFER = 4 << 20  # bytes of a CSV file that are read at a time: as fast as 32 MiB, in less memory
_LIMITS: dict[str, str] = {}  # of this process


def limit(memory_bytes: int, folder: Path) -> None:
    """From now on, connections of this process take no more memory, and spill to ``folder``."""
    _LIMITS.update(memory_limit=f"{memory_bytes}B", temp_directory=str(folder))


def connect() -> duckdb.DuckDBPyConnection:
    """A database of its own in memory.

    Without threads of its own for writing, which DuckDB 2 has: an interrupted COPY may wait for them forever.
    """
    database = duckdb.connect(":memory:", config=dict(_LIMITS))
    with suppress(duckdb.Error):
        database.execute("SET async_threads = 0")
    return database


class DuckDB(Engine):
    """Streams through files of any size; spills to disk what does not fit."""

    name = "duckdb"
    skips_blank_lines = True
    errors = (duckdb.Error,)

    def __init__(self) -> None:
        self._database: duckdb.DuckDBPyConnection | None = None

    def _connection(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the one database of this table, which takes a while to make."""
        if self._database is None:
            self._database = connect()
        return self._database.cursor()

    def folder(self) -> Path:
        """A new folder that is there as long as the engine."""
        folder = named_folder(_LIMITS.get("temp_directory"))
        weakref.finalize(self, remove, folder)
        folder.mkdir(0o700)
        return folder

    def held(self, frame: Frame, size: float = 0) -> Frame:
        name, relation = f"held_{secrets.token_hex(8)}", frame.to_native()
        if size > HELD:  # to a Parquet file
            path = literal(str(self.folder() / f"{name}.parquet"))
            # in any order and in small pieces: an order would be waited for, in memory
            how = "FORMAT parquet, ROW_GROUP_SIZE 61440, PRESERVE_ORDER false"
            relation.query("input", f"COPY (SELECT * FROM input) TO {path} ({how})")
            name = f"read_parquet({path})"
        else:
            relation.create(name)
        if self._database is None:  # a relation that was handed in
            return nw.from_native(relation.query("input", f"SELECT * FROM {name}"))
        return nw.from_native(self._connection().sql(f"SELECT * FROM {name}"))

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return [tuple(None if each != each else each for each in row) for row in frame.to_native().fetchall()]

    def was_interrupted(self, error: Exception) -> bool:
        return isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted"

    def scan(self, files: Files) -> Frame:
        """On a connection of its own."""
        paths = _listed(files.paths)
        if files.form == "parquet":
            reader = f"read_parquet({paths}, hive_partitioning={str(files.partitioned).lower()})"
        elif files.columns is not None:
            reader = json_reader(files.paths, files.columns, files.partitioned)
        else:
            reader = csv_reader(paths, files.delimiter, files.partitioned)
        return nw.from_native(self._connection().sql(f"SELECT * FROM {reader}"))

    def plain_rows(
        self, files: Files, size: float, score: str, label: str, groups: Mapping[str, Sequence[str]]
    ) -> tuple[Any, Any] | None:
        if size > HELD or any(path.lower().endswith(".gz") for path in files.paths):
            return None
        code = f"CASE {quoted(label)} WHEN 0 THEN 0 WHEN 1 THEN 1 ELSE 3 END"
        for column, names in groups.items():
            known = " ".join(f"WHEN {literal(name)} THEN {4 * at}" for at, name in enumerate(names))
            code += f" + CASE {quoted(column)} {known} ELSE {4 * len(names)} END"
        reader = csv_reader(_listed(files.paths), files.delimiter, numbers=(score, label))
        asked = f"SELECT {quoted(score)} AS score, ({code})::UTINYINT AS code FROM {reader}"
        try:
            read = self._connection().sql(asked).fetchnumpy()
        except duckdb.Error as error:
            if self.was_interrupted(error):
                raise
            return None  # what it stumbled over is said by whoever looks closely
        return None if hasattr(read["score"], "mask") else (read["score"], read["code"])

    def columns(self, frame: Frame, numbers: Collection[str]) -> dict[str, Any]:
        raw = frame.to_native().fetchnumpy()
        return {name: _filled(values, name in numbers) for name, values in raw.items()}

    def with_numbers(
        self, frame: Frame, column: str, alias: str, *, label: bool, style: NumberStyle = PLAIN
    ) -> Frame:
        number = label_in(quoted(column)) if label else number_in(quoted(column), style)
        return _project(frame, f"*, {number} AS {quoted(alias)}")

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        name = quoted(column)
        digits = f"substr(sha256({literal(key)} || {name}), 1, {HEX_DIGITS})"
        return _project(frame, f"* REPLACE ({digits} AS {name})")

    def numbered(self, frame: Frame, alias: str) -> Frame:
        return _project(frame, f"*, row_number() OVER () - 1 AS {quoted(alias)}")

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        relation = frame.to_native()
        with appearing(output) as target:  # a temporary file already: DuckDB needs none of its own
            if form == "parquet":
                relation.write_parquet(target, use_tmp_file=False)
                return
            packed = "gzip" if output.lower().endswith(".gz") else "none"
            if form == "json":
                how = f"FORMAT json, COMPRESSION {packed}, USE_TMP_FILE false"
                relation.query("input", f"COPY (SELECT * FROM input) TO {literal(target)} ({how})")
                return
            relation.write_csv(target, header=True, sep=delimiter, compression=packed, use_tmp_file=False)


def _listed(paths: Sequence[str]) -> str:
    """Paths as SQL; a name is a name, stars and brackets included, but for those of addresses."""
    return f"[{', '.join(literal(each if is_remote(each) else glob.escape(each)) for each in paths)}]"


def objects_in(paths: Sequence[str]) -> str:
    """JSON Lines as one column ``json``, as SQL."""
    return f"read_ndjson_objects({_listed(paths)})"


def json_reader(paths: Sequence[str], columns: Mapping[str, str], partitioned: bool = False) -> str:
    """JSON Lines as columns of these types, as SQL."""
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    return (
        f"read_json({_listed(paths)}, format='newline_delimited', columns={{{types}}}, "
        f"hive_partitioning={str(partitioned).lower()})"
    )


def csv_reader(paths: str, delimiter: str, partitioned: bool = False, numbers: Collection[str] = ()) -> str:
    """CSV as text, as SQL, but for columns of numbers; DuckDB may take lines starting with # for comments
    where it is not told."""
    doubles = ", ".join(f"{literal(name)}: 'DOUBLE'" for name in numbers)
    types = f"types={{{doubles}}}, " if numbers else ""
    return (
        f"read_csv({paths}, all_varchar=true, {types}header=true, delim={literal(delimiter)}, quote='\"', "
        f"escape='\"', hive_partitioning={str(partitioned).lower()}, comment='', skip=0, "
        f"buffer_size={_BUFFER})"
    )


def _project(frame: Frame, sql: str) -> Frame:
    return nw.from_native(frame.to_native().project(sql))


def _filled(values: Any, number: bool) -> Any:
    """DuckDB gives a masked array where there are nulls; without one, numpy.ma is not loaded."""
    data, mask = np.asarray(values), np.broadcast_to(getattr(values, "mask", False), values.shape)
    if number:
        filled: Any = np.array(data, dtype=np.float64) if mask.any() else data.astype(np.float64, copy=False)
        filled[mask] = np.nan
        return filled
    if values.dtype.kind in "iu" and not mask.any():
        return data
    return [None if gone else value for value, gone in zip(data, mask, strict=True)]


def number_in(text: str, style: NumberStyle = PLAIN) -> str:
    """The number in a text, as SQL; NULL where there is none."""
    if style.plain:  # DuckDB alone would also take 1_000 and +-1
        number = f"coalesce(TRY_CAST({text} AS DOUBLE), TRY_CAST(trim({text}) AS DOUBLE))"
        return f"CASE WHEN NOT (contains({text}, '_') OR contains({text}, '+-')) THEN {number} END"
    bare = f"translate(regexp_replace({text}, {literal(style.noise)}, '', 'g'), '\u2212,', '-.')"
    if style.percent:
        bare = f"{bare} || 'e-2'"
    return f"CASE WHEN regexp_matches({text}, {literal(style.pattern)}) THEN TRY_CAST({bare} AS DOUBLE) END"


def label_in(text: str) -> str:
    """The label in a text, as SQL: true is 1, false 0, NULL where blank, -1 where it is no number."""
    return (
        f"CASE WHEN {text} = '0' THEN 0 WHEN {text} = '1' THEN 1 WHEN trim({text}) = '' THEN NULL "
        f"WHEN lower(trim({text})) = 'true' THEN 1 WHEN lower(trim({text})) = 'false' THEN 0 "
        f"WHEN {text} IS NOT NULL THEN coalesce({number_in(text)}, -1) END"
    )


def quoted(name: str) -> str:
    """A column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"
