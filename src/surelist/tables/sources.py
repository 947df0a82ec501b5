"""From whatever holds candidates (DataFrame, relation, path, glob, folder) to one ``Table``."""

from __future__ import annotations

import glob
import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
from narwhals.exceptions import NarwhalsError

from surelist import _check as check
from surelist._dataclasses import dataclass, field, replace
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.tables import excel
from surelist.tables.converted import adopt
from surelist.tables.csv_text import delimiter_of, explain, not_text, origin_of, require_whole, sheet_rows
from surelist.tables.engines import ENGINES, Engine, Files, Frame, engine_of, is_remote, reader_of
from surelist.tables.hints import NO_HINTS, Hints, Origin
from surelist.tables.json_lines import columns_of
from surelist.tables.labels import LabelReading
from surelist.tables.numbers import Decision

FORMATS = {
    ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".tsv.gz": "csv", ".txt": "csv", ".parquet": "parquet",
    ".jsonl": "json", ".jsonl.gz": "json", ".ndjson": "json", ".ndjson.gz": "json",
    **dict.fromkeys(excel.ENDINGS, "excel"),
}  # fmt: skip

_PARTITION = re.compile(r"(?<=/)([^/=]+)=[^/]*(?=/)")  # folders named column=value


def _silent(_: str) -> None:
    """Nobody asked about progress."""


@dataclass(frozen=True)
class Table:
    """A table that can be asked, and what is needed to talk about it."""

    frame: Frame
    engine: Engine
    name: str
    columns: list[str]
    text: bool = False  # a CSV: every column is text, numbers are parsed where needed
    delimiter: str = ","
    paths: tuple[str, ...] = ()  # the files it is read from
    say: Callable[[str], None] = _silent  # called at the start of every pass over the data
    hints: Hints = field(default_factory=Hints)
    origin: Origin | None = None  # of CSV and Excel: rows have numbers there
    decisions: dict[str, Decision] = field(default_factory=dict, compare=False, repr=False)  # see ``reading``
    label_readings: dict[str, LabelReading] = field(default_factory=dict, compare=False, repr=False)

    @property
    def titles(self) -> list[str]:
        """Its columns as people call them."""
        return [self.engine.title(name) for name in self.columns]

    @property
    def file(self) -> bool:
        """Whether it is read from files."""
        return bool(self.paths)

    @property
    def size(self) -> float:
        """Bytes of its files; infinite where that is not known."""
        known = self.file and all(map(os.path.isfile, self.paths))
        return sum(map(os.path.getsize, self.paths)) if known else math.inf

    @property
    def parsed(self) -> bool:
        """Whether texts in it may be numbers; in JSON and in DataFrames a text is a text."""
        return self.file and (self.origin is None or self.origin.form != "json")

    @property
    def formats(self) -> Mapping[str, str]:
        """How columns of a workbook show their numbers, where that is as percent or an amount of money."""
        return {} if self.origin is None else self.origin.formats

    def with_frame(self, frame: Frame) -> Table:
        """A copy of the table with another frame."""
        return replace(self, frame=frame)

    def sheet_rows(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Data rows (from 0) as people find them: as a spreadsheet counts, header included; else from 1."""
        if self.origin is None:
            return tuple(row + 1 for row in rows)
        if self.origin.form == "csv" and self.engine.skips_blank_lines and len(self.paths) == 1 and rows:
            known = {} if is_remote(self.paths[0]) else sheet_rows(self.paths[0], self.origin, rows)
            return tuple(known.get(row, self.origin.row(row)) for row in rows)
        return tuple(map(self.origin.row, rows))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn the engine's complaints about unreadable data into one sentence."""
        with _reading(self.name, self.engine, self.paths if self.text else (), self.delimiter):
            yield


@contextmanager
def _reading(name: str, engine: Engine, csv_files: tuple[str, ...], delimiter: str) -> Iterator[None]:
    unreadable: tuple[type[Exception], ...] = (*engine.errors, NarwhalsError)
    if is_remote(name):  # what an engine's file systems raise
        unreadable += (OSError, ImportError, ValueError)
    try:
        yield
    except Exception as error:
        if engine.was_interrupted(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, unreadable):
            raise
        local = tuple(each for each in csv_files if not is_remote(each))
        said = str(error).strip() or type(error).__name__
        reason = explain(local, delimiter) or f"{name}: cannot be read: {said.splitlines()[0]}"
        if is_remote(name) and "httpfs" in said:
            reason = (
                f"file: {name}: DuckDB reads addresses with its extension httpfs, which is not installed and "
                "could not be downloaded. Install it (INSTALL httpfs) or download the file; Parquet is read "
                "without it where polars is installed."
            )
        raise InvalidInput("", reason) from error


def file_format(path: str | os.PathLike[str]) -> str:
    """``csv``, ``json``, ``parquet`` or ``excel``, by extension."""
    name = os.fspath(path).lower()
    for ending, form in FORMATS.items():
        if name.endswith(ending):
            return form
    raise InvalidInput("file", expected=f"a name ending in {', '.join(FORMATS)}", got=repr(Path(path).name))


def open_table(
    source: Any,
    engine: str = "auto",
    spark_master: str | None = None,
    progress: Callable[[str], None] | None = None,
    hints: Hints = NO_HINTS,
) -> Table:
    """A table from a path, glob or folder, a DataFrame, a DuckDB relation or a Spark DataFrame.

    ``engine`` and ``spark_master`` say who reads files; ``progress`` is called at every pass.
    """
    if isinstance(source, Table):
        return (
            source
            if hints in (NO_HINTS, source.hints)
            else replace(source, hints=hints, decisions={}, label_readings={})
        )
    check.as_choice(engine, ENGINES, "engine")
    if spark_master is not None and engine != "spark":
        raise InvalidInput("spark_master", f"goes with {option('engine', 'spark')}.")
    if isinstance(source, (str, os.PathLike)):
        table = _open_path(os.fspath(source), engine, spark_master, hints)
    else:
        table = _open_frame(source)
    if hints.sheet is not None and (table.origin is None or table.origin.sheet is None):
        raise InvalidInput("sheet", f"goes with Excel files; {table.name} is none. Leave it out.")
    if hints.header_row is not None and (table.origin is None or table.origin.form == "json"):
        raise InvalidInput(
            "header_row", f"goes with CSV and Excel files; {table.name} is none. Leave it out."
        )
    _require_names(table)
    table = replace(table, say=progress or _silent, hints=hints)
    if table.file:
        return table
    if not table.engine.is_called(engine):
        raise InvalidInput(
            "engine",
            f"a {table.name} is asked where it is; {option('engine', engine)} is for files. Leave it out.",
        )
    return table


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
    if not _known_to_narwhals(source) and hasattr(source, "__arrow_c_stream__"):
        source = _from_stream(source)
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        raise InvalidInput(
            "table",
            expected="a path, a pandas, polars or PySpark DataFrame, a pyarrow Table, a DuckDB relation "
            "or an Arrow stream",
            got=f"{type(source).__name__}",
        ) from error
    engine, frame = engine_of(frame)
    name = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
    return Table(frame, engine, name, frame.collect_schema().names())


def _known_to_narwhals(source: Any) -> bool:
    return isinstance(nw.from_native(source, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def _from_stream(source: Any) -> Any:
    """A stream can be read once and is needed more often: keep it as an Arrow table."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependency("An Arrow stream needs pyarrow: pip install pyarrow.") from error
    return pyarrow.table(source)


def reopen(table: Table, output: str, delimiter: str) -> Table:
    """What the table's own engine has just written."""
    files = Files(files_of(output), file_format(output), delimiter)
    return replace(_scan(files, table.engine, output), say=table.say)


def _open_path(source: str, engine: str, spark_master: str | None, hints: Hints) -> Table:
    paths = files_of(source)
    form = file_format(paths[0])
    if any(file_format(each) != form for each in paths):
        raise InvalidInput("file", f"{source} mixes CSV, JSON, Excel and Parquet files; give one kind.")
    if form == "excel":
        if is_remote(source):
            raise InvalidInput("file", f"{source}: workbooks are read from a disk only. Download it.")
        if len(paths) > 1:
            raise InvalidInput("file", f"{source} is {len(paths)} workbooks; give one at a time.")
        return _adopted(source, paths[0], None, hints, engine)
    origin = Origin("csv", delimiter=delimiter_of(source)) if form == "csv" else None
    if origin is not None and not is_remote(source):
        origin = origin_of(paths[0], hints.header_row)
        for each in paths:
            require_whole(each, origin)
        if not origin.plain and len(paths) == 1:
            return _adopted(source, paths[0], origin, hints, engine)
        if hints.header_row is not None and len(paths) > 1:
            raise InvalidInput("header_row", f"{source} is {len(paths)} files; give one at a time.")
    files = Files(paths, form, "," if origin is None else origin.delimiter)
    if form == "json":
        _require_duckdb(source, engine, "JSON Lines")
        engine = "duckdb"
        with _reading(source, reader_of(files, engine, None), (), ","):
            columns, origin = columns_of(paths, source)
        files = replace(files, columns=columns)
    partitions, others = _partitions(source, paths)
    if partitions:
        base = source if is_remote(source) else str(_base(source))
        reader = reader_of(replace(files, base=base), engine, spark_master)
        files = _partitioned(files, base, reader, partitions, others)
    return replace(_scan(files, reader_of(files, engine, spark_master), source), origin=origin)


def _require_duckdb(source: str, engine: str, what: str) -> None:
    if engine not in ("auto", "duckdb"):
        raise InvalidInput("engine", f"{source} is {what}, which DuckDB reads. Leave it out.")


def _adopted(source: str, path: str, text: Origin | None, hints: Hints, engine: str) -> Table:
    """A file that no engine reads as it is."""
    _require_duckdb(source, engine, "a workbook" if text is None else "no UTF-8 text")
    relation, origin = adopt(path, text, hints)
    engine_used, frame = engine_of(nw.from_native(relation))
    names = frame.collect_schema().names()
    return Table(
        frame, engine_used, source, names, text is not None, origin.delimiter, (path,), origin=origin
    )


def adopt_upload(path: Path, hints: Hints, output: Path) -> Origin | None:
    """A file that no engine reads as it is becomes ``output``, a Parquet file; None where none is needed."""
    form = file_format(path)
    if form == "parquet" or (form == "csv" and origin_of(str(path), hints.header_row).plain):
        if hints.sheet is not None:
            raise InvalidInput("sheet", f"goes with Excel files; {path} is none. Leave it out.")
        reason = not_text(str(path)) if form == "csv" else None
        if reason is not None:
            raise InvalidInput("file", f"{path}: {reason}")
        return None
    table = open_table(path, "duckdb", hints=hints)
    with table.reading():
        table.engine.write(table.frame, str(output), "parquet", ",")
    return table.origin


def open_adopted(path: str, name: str, origin: Origin, hints: Hints) -> Table:
    """A table of ``adopt_upload``, as if it were still what it was."""
    table = _open_path(path, "duckdb", None, NO_HINTS)
    _require_names(table)
    return replace(
        table, name=name, text=origin.form == "csv", delimiter=origin.delimiter, origin=origin, hints=hints
    )


def _base(source: str) -> Path | None:
    """The folder that a user named, or the one from which a pattern starts; None of a file."""
    folder = Path(source)
    if folder.is_dir():
        return folder
    if folder.exists() or not glob.has_magic(source):
        return None
    fixed = itertools.takewhile(lambda part: not glob.has_magic(part), folder.parts)
    return Path(*fixed)


def _partitions(source: str, paths: list[str]) -> tuple[list[str], list[str]]:
    """Columns that folders named column=value stand for, in the folder a user named, and above it.

    Only folders and patterns over them: whoever names a file means what is in it.
    """
    if is_remote(source):
        return (_PARTITION.findall(source), []) if glob.has_magic(source) else ([], [])
    folder = _base(source)
    if folder is None:
        return [], []
    inside = [_PARTITION.findall(f"/{Path(each).relative_to(folder).as_posix()}") for each in paths]
    above = _PARTITION.findall(f"{folder.absolute().as_posix()}/")
    return list(dict.fromkeys(name for names in inside for name in names)), above


def _partitioned(
    files: Files, source: str, reader: Engine, partitions: list[str], others: list[str]
) -> Files:
    """With the folders' columns, unless the files have these themselves: those count."""
    present = _scan(replace(files, paths=files.paths[:1]), reader, source).columns
    if all(name in present for name in partitions):
        return files
    twice = [name for name in (*partitions, *others) if name in present]
    if twice:
        raise InvalidInput(
            "file",
            f"{source}: the folders named {twice[0]}=... and the files both have a column {twice[0]!r}. "
            "Rename the folders, or name the files.",
        )
    return replace(files, base=source, unwanted=tuple(name for name in others if name not in partitions))


def _scan(files: Files, engine: Engine, name: str) -> Table:
    text = files.form == "csv"
    with _reading(name, engine, tuple(files.paths) if text else (), files.delimiter):
        frame = engine.scan(files)
        columns = frame.collect_schema().names()
        unwanted = [each for each in files.unwanted if each in columns]
        if unwanted:
            frame = frame.drop(*unwanted)
            columns = [each for each in columns if each not in unwanted]
    return Table(frame, engine, name, columns, text, files.delimiter, tuple(files.paths))


def files_of(source: str | os.PathLike[str]) -> list[str]:
    """The files behind a path, glob or folder; addresses go to the engine as they are.

    A path that exists is that file or folder, brackets and stars in its name included.
    """
    source = os.fspath(source)
    if is_remote(source):
        return [source]
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [source]
    if glob.has_magic(source):
        matches = sorted(each for each in glob.glob(source, recursive=True) if Path(each).is_file())
        if matches:
            return matches
        raise InvalidInput("file", f"no file matches {source}.")
    raise InvalidInput("file", f"{source} does not exist.")


def _folder(path: Path) -> list[str]:
    """Data files of a folder, as Spark and others write them; never those still being written."""
    if (path / "_temporary").exists() and not (path / "_SUCCESS").exists():
        raise InvalidInput(
            "file", f"{path} is half-written: whatever wrote it did not finish. Write it again."
        )
    files = []
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(("_", ".", "~$")) for part in each.relative_to(path).parts)
        known = tuple(each for each in FORMATS if each != ".txt")  # beside tables that is a note
        if not hidden and each.is_file() and each.name.lower().endswith(known):
            files.append(str(each))
    if not files:
        raise InvalidInput("file", f"{path} is a folder without files ending in {', '.join(FORMATS)}.")
    return files
