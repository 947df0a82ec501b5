"""From whatever holds candidates (DataFrame, relation, path, glob, folder) to one ``Table``."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import narwhals as nw
from msgspec import Struct, field
from msgspec.structs import replace
from narwhals.dtypes import DType
from narwhals.exceptions import NarwhalsError

from surelist import _check as check
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency, SurelistError
from surelist.tables import excel
from surelist.tables.csv_text import (
    delimiter_of,
    even_lines,
    explain,
    lines_of,
    origin_of,
    require_whole,
    sheet_rows,
)
from surelist.tables.engines import ENGINES, Engine, Files, Frame, engine_of, is_remote, reader_of
from surelist.tables.engines.duckdb import DuckDB
from surelist.tables.hints import NO_HINTS, NOT_A_FILE, Hints, Origin
from surelist.tables.json_lines import columns_of
from surelist.tables.numbers import Decision
from surelist.tables.paths import base_of, file_format, files_of, partitions_in

if TYPE_CHECKING:
    from surelist.tables.reading import LabelReading

SMALL, MOST_SMALL = 1 << 20, 16  # bytes of a small file; so many such files are held in memory


def _silent(_: str) -> None: ...


class Table(Struct, frozen=True, dict=True, eq=False):
    """A table that can be asked, and what is needed to talk about it."""

    frame: Frame
    engine: Engine
    name: str
    columns: list[str]
    paths: tuple[str, ...] = ()  # the files it is read from
    say: Callable[[str], None] = _silent  # called at the start of every pass over the data
    hints: Hints = field(default_factory=Hints)
    origin: Origin = NOT_A_FILE
    decisions: dict[str, Decision] = field(default_factory=dict)  # see ``reading``
    label_readings: dict[str, LabelReading] = field(default_factory=dict)

    @property
    def text(self) -> bool:
        """Whether it is a CSV: every column is text, numbers are parsed where needed."""
        return self.origin.form == "csv"

    @property
    def titles(self) -> list[str]:
        """Its columns as people call them."""
        return [self.engine.title(name) for name in self.columns]

    @property
    def file(self) -> bool:
        """Whether it is read from files."""
        return bool(self.paths)

    @cached_property
    def schema(self) -> dict[str, DType]:
        """What type each column has."""
        return dict(self.frame.collect_schema())

    @cached_property
    def size(self) -> float:
        """Bytes of its files; infinite where that is not known."""
        try:
            found = [os.stat(path) for path in self.paths]
        except OSError:
            return math.inf
        known = self.file and all(stat.S_ISREG(each.st_mode) for each in found)
        return sum(each.st_size for each in found) if known else math.inf

    @property
    def holdable(self) -> bool:
        """Whether it is many small files of an engine that had better keep what it has read of them."""
        small = min(len(self.paths), MOST_SMALL) * SMALL
        return self.engine.holds_small_files and len(self.paths) > 1 and self.size <= small

    @property
    def parsed(self) -> bool:
        """Whether texts in it may be numbers; in JSON and in DataFrames a text is a text."""
        return self.file and self.origin.form != "json"

    def with_frame(self, frame: Frame) -> Table:
        """A copy of the table with another frame."""
        return replace(self, frame=frame)

    def sheet_rows(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Data rows (from 0) as people find them: as a spreadsheet counts, header included; else from 1."""
        if self.text and self.engine.skips_blank_lines and len(self.paths) == 1 and rows:
            known = {} if is_remote(self.paths[0]) else sheet_rows(self.paths[0], self.origin, rows)
            return tuple(known.get(row, self.origin.row(row)) for row in rows)
        return tuple(map(self.origin.row, rows))

    @property
    def row_name(self) -> str:
        """What people call the number of a row."""
        return (
            "spreadsheet row" if self.origin.form in ("csv", "excel") else "row" if self.file else "position"
        )

    def place(self, row: int) -> str:
        """A data row (from 0) as people find it, in words."""
        return f"{self.row_name} {self.sheet_rows([row])[0] if self.file else row}"

    def rows(self, frame: Frame, what: str) -> list[tuple[Any, ...]]:
        """Run one pass and fetch its small result."""
        self.say(what)
        with self.reading():
            return self.engine.rows(frame)

    def count(self, frame: Frame | None = None, what: str = "counting rows") -> int:
        """How many rows the table has, or a frame of it, in one pass."""
        counted = (self.frame if frame is None else frame).select(nw.len().alias("rows"))
        return int(self.rows(counted, what)[0][0])

    def arrays(self, frame: Frame, what: str, numbers: Collection[str]) -> dict[str, Any]:
        """Run one pass and fetch its columns: ``numbers`` as float64, NaN where missing, others as lists."""
        self.say(what)
        with self.reading():
            return self.engine.columns(frame, numbers)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn the engine's complaints about unreadable data into one sentence."""
        with _reading(self.name, self.engine, self.paths if self.text else (), self.hints.header_row):
            yield


@contextmanager
def _reading(name: str, engine: Engine, texts: Sequence[str], header_row: int | None) -> Iterator[None]:
    """``texts`` are the files of a CSV table."""
    # of an address, whatever file systems and those who know the keys to them raise
    unreadable: tuple[type[Exception], ...] = (
        (Exception,) if is_remote(name) else (*engine.errors, NarwhalsError)
    )
    try:
        yield
    except Exception as error:
        if engine.was_interrupted(error):
            raise KeyboardInterrupt from error
        if isinstance(error, SurelistError) or not isinstance(error, unreadable):
            raise
        said = str(error).strip() or type(error).__name__
        local = [each for each in texts if not is_remote(each)]
        reason = explain(local, header_row) or f"{name}: cannot be read: {said.splitlines()[0]}"
        if is_remote(name) and "httpfs" in said:
            reason = (
                f"file: {name}: DuckDB reads addresses with its extension httpfs, which is not installed and "
                "could not be downloaded. Install it (INSTALL httpfs) or download the file; Parquet is read "
                "without it where polars is installed."
            )
        raise InvalidInput("", reason) from error


def open_table(
    source: object,
    engine: str = "auto",
    spark_master: str | None = None,
    progress: Callable[[str], None] | None = None,
    hints: Hints = NO_HINTS,
) -> Table:
    """A table from a path, glob or folder, a DataFrame or relation; ``progress`` is called at every pass."""
    if isinstance(source, Table):
        if hints in (NO_HINTS, source.hints):
            return source
        return replace(source, hints=hints, decisions={}, label_readings={})
    check.as_choice(engine, ENGINES, "engine")
    if spark_master is not None and engine != "spark":
        raise InvalidInput("spark_master", f"goes with {option('engine', 'spark')}.")
    if isinstance(source, (str, os.PathLike)):
        table = _open_path(os.fspath(source), engine, spark_master, hints)
    else:
        table = _open_frame(source)
    _require_place(hints, table.origin.form, table.name)
    _require_names(table)
    if not table.file and engine not in ("auto", table.engine.name):
        raise InvalidInput(
            "engine",
            f"a {table.name} is asked where it is; {option('engine', engine)} is for files. Leave it out.",
        )
    return replace(table, say=progress or _silent, hints=hints)


def _require_place(hints: Hints, form: str, path: str) -> None:
    for name, among in (("sheet", {"excel": "Excel"}), ("header_row", {"csv": "CSV", "excel": "Excel"})):
        if getattr(hints, name) is not None and form not in among:
            what = " and ".join(among.values())
            raise InvalidInput(name, f"goes with {what} files; {path} is none. Leave it out.")


def _require_names(table: Table) -> None:
    """Refuse names of columns that an engine takes for patterns: it would answer about other columns."""
    if isinstance(table.frame, nw.DataFrame) and not table.frame.implementation.is_polars():
        return
    expression = table.engine.name == "polars" or isinstance(table.frame, nw.DataFrame)
    for name in table.columns:
        if name == "*" or (expression and name.startswith("^") and name.endswith("$")):
            raise InvalidInput(
                f"column {name!r}",
                "the engine that reads the table takes this for a pattern of names. Rename it.",
            )


def _open_frame(source: Any) -> Table:
    known = isinstance(nw.from_native(source, pass_through=True), (nw.DataFrame, nw.LazyFrame))
    table = source
    if not known and hasattr(source, "__arrow_c_stream__"):  # it can be read once and is needed more often
        try:
            import pyarrow
        except ImportError as error:
            raise MissingDependency("An Arrow stream needs pyarrow: pip install pyarrow.") from error
        table = pyarrow.table(source)
    try:
        frame = nw.from_native(table)
    except TypeError as error:
        raise InvalidInput(
            "table",
            expected="a path, a pandas, polars or PySpark DataFrame, a pyarrow Table, a DuckDB relation "
            "or an Arrow stream",
            got=f"{type(source).__name__}",
        ) from error
    engine, frame = engine_of(frame)
    kind = f"{type(table).__module__.split('.')[0]} {type(table).__name__}"
    return Table(frame, engine, kind, frame.collect_schema().names())


def _open_path(source: str, engine: str, spark_master: str | None, hints: Hints) -> Table:
    paths = files_of(source)
    form = file_format(paths[0])
    if other := next((each for each in paths if file_format(each) != form), None):
        raise InvalidInput("file", f"{source} holds both {paths[0]} and {other}; give files of one kind.")
    if form == "excel":
        return _open_workbook(source, paths, engine, hints)
    origin = Origin.of(form, delimiter_of(source))
    origins: list[Origin] = []
    if form == "csv" and not is_remote(source):
        origins = [origin_of(each, hints.header_row) for each in paths]
        for each, looks in zip(paths, origins, strict=True):
            require_whole(each, looks)
        origin = origins[0]
    folder = base_of(source)
    partitions, others = partitions_in(source, folder, paths)
    base = None if not partitions else source if folder is None else str(folder)
    files = Files(paths, form, origin.delimiter, base)
    duck = DuckDB()
    reader: Engine = duck
    if not all(each.plain for each in origins):
        _require_duckdb(source, engine, "no plain UTF-8 text")
        copies = _decoded(paths, origins, folder or Path(source).parent, duck.folder())
        files = replace(files, paths=copies)
    elif form == "json":
        _require_duckdb(source, engine, "JSON Lines")
        with _reading(source, reader, (), None):
            columns, origin = columns_of(paths, source)
        files = replace(files, columns=columns)
    else:
        reader = reader_of(files, engine, spark_master)
    if partitions:
        files = _partitioned(files, source, reader, partitions, others)
    return _scan(files, reader, source, origin, paths, hints.header_row)


def _require_duckdb(source: str, engine: str, what: str) -> None:
    if engine not in ("auto", "duckdb"):
        raise InvalidInput("engine", f"{source} is {what}, which DuckDB reads. Leave it out.")


def _decoded(paths: Sequence[str], origins: Sequence[Origin], above: Path, folder: Path) -> list[str]:
    """Copies in UTF-8 that begin with the names, as far below ``folder`` as the files are below ``above``."""
    copies = [folder / f"{os.path.relpath(each, above)}.csv" for each in paths]
    for path, origin, copy in zip(paths, origins, copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("w", encoding="utf-8", newline="") as out:
            out.writelines(even_lines(lines_of(path, origin)))
    return list(map(str, copies))


def _open_workbook(source: str, paths: list[str], engine: str, hints: Hints) -> Table:
    if is_remote(source):
        raise InvalidInput("file", f"{source}: workbooks are read from a disk only. Download it.")
    if len(paths) > 1:
        raise InvalidInput("file", f"{source} is {len(paths)} workbooks; give one at a time.")
    _require_duckdb(source, engine, "a workbook")
    sheet = excel.read_sheet(paths[0], hints.sheet, hints.header_row)
    reader, encode = DuckDB(), msgspec.json.Encoder().encode
    spool = reader.folder() / "rows.jsonl"
    with spool.open("wb") as file:
        for row in sheet.rows:
            file.write(encode(dict(zip(sheet.kinds, row, strict=True))) + b"\n")
    table = _scan(Files([str(spool)], "json", ",", columns=sheet.kinds), reader, source, sheet.origin, paths)
    return replace(table, frame=reader.held(table.frame))


def adopt_upload(path: Path, hints: Hints, output: Path) -> Origin | None:
    """A file that no engine reads as it is becomes ``output``, a Parquet file; None where none is needed."""
    form = file_format(path)
    origin = origin_of(str(path), hints.header_row) if form == "csv" else None
    if form == "parquet" or (origin is not None and origin.plain):
        _require_place(hints, form, str(path))
        for _ in lines_of(str(path), origin) if origin is not None else ():
            pass  # raises where it stops being UTF-8
        return None
    table = open_table(path, "duckdb", hints=hints)
    with table.reading():
        table.engine.write(table.frame, str(output), "parquet", ",")
    return table.origin


def open_adopted(path: str, name: str, origin: Origin, hints: Hints) -> Table:
    """A table of ``adopt_upload``, as if it were still what it was."""
    table = _open_path(path, "duckdb", None, NO_HINTS)
    _require_names(table)
    return replace(table, name=name, origin=origin, hints=hints)


def _partitioned(
    files: Files, source: str, reader: Engine, partitions: list[str], others: list[str]
) -> Files:
    """With the folders' columns, unless the files have these themselves: those count."""
    present = _scan(replace(files, paths=files.paths[:1], base=None), reader, source).columns
    if all(name in present for name in partitions):
        return replace(files, base=None)
    twice = next((name for name in (*partitions, *others) if name in present), None)
    if twice is not None:
        raise InvalidInput(
            "file",
            f"{source}: the folders named {twice}=... and the files both have a column {twice!r}. "
            "Rename the folders, or name the files.",
        )
    return replace(files, unwanted=tuple(name for name in others if name not in partitions))


def _scan(
    files: Files, engine: Engine, name: str, origin: Origin = NOT_A_FILE, paths: Sequence[str] = (),
    header_row: int | None = None,
) -> Table:  # fmt: skip
    """``paths`` are the files as people know them, where copies are read."""
    known = tuple(paths or files.paths)
    with _reading(name, engine, known if files.form == "csv" else (), header_row):
        frame = engine.scan(files)
        columns = frame.collect_schema().names()
        unwanted = [each for each in files.unwanted if each in columns]
        if unwanted:
            frame, columns = frame.drop(*unwanted), [each for each in columns if each not in unwanted]
    return Table(frame, engine, name, columns, known, origin=origin)
