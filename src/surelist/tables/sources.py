"""From whatever holds candidates (DataFrame, relation, path, glob, folder) to one ``Table``."""

from __future__ import annotations

import glob
import gzip
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
from narwhals.exceptions import NarwhalsError

from surelist import _check as check
from surelist.errors import InvalidInput, MissingDependency
from surelist.tables.engines import ENGINES, Engine, Files, Frame, engine_of, is_remote, reader_of

FORMATS = {".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".tsv.gz": "csv", ".parquet": "parquet"}

_HIVE = re.compile(r"[/\\][^/\\=]+=[^/\\]*[/\\]")  # folders named column=value


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
    file: bool = False
    say: Callable[[str], None] = _silent  # called at the start of every pass over the data

    def with_frame(self, frame: Frame) -> Table:
        """The same table after a step."""
        return replace(self, frame=frame)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn the engine's complaints about unreadable data into one sentence."""
        with _reading(self.name, self.engine):
            yield


@contextmanager
def _reading(name: str, engine: Engine) -> Iterator[None]:
    unreadable: tuple[type[Exception], ...] = (*engine.errors, NarwhalsError)
    try:
        yield
    except unreadable as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(f"{name}: cannot be read: {first}") from error


def file_format(path: str | os.PathLike[str]) -> str:
    """``csv`` or ``parquet``, by extension."""
    name = os.fspath(path).lower()
    for ending, form in FORMATS.items():
        if name.endswith(ending):
            return form
    raise InvalidInput(f"file: expected a name ending in {', '.join(FORMATS)}, got {Path(path).name!r}.")


def delimiter_of(path: str | Path, default: str = ",") -> str:
    """Tab for .tsv, else ``default``."""
    return "\t" if ".tsv" in Path(path).suffixes else default


def open_table(
    source: Any,
    engine: str = "auto",
    spark_master: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Table:
    """A table from a path, glob or folder, a DataFrame, a DuckDB relation or a Spark DataFrame.

    ``engine`` and ``spark_master`` say who reads files; ``progress`` is called at every pass.
    """
    if isinstance(source, Table):
        return source
    check.as_choice(engine, ENGINES, "engine")
    if spark_master is not None and engine != "spark":
        raise InvalidInput('spark_master: goes with engine="spark".')
    if isinstance(source, (str, os.PathLike)):
        table = _open_path(os.fspath(source), engine, spark_master)
    else:
        table = _open_frame(source)
    table = replace(table, say=progress or _silent)
    if table.file:
        return table
    if not table.engine.is_called(engine):
        raise InvalidInput(
            f"engine: a {table.name} is asked where it is; engine={engine!r} is for files. Leave it out."
        )
    return table


def _open_frame(source: Any) -> Table:
    if not _known_to_narwhals(source) and hasattr(source, "__arrow_c_stream__"):
        source = _from_stream(source)
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        raise InvalidInput(
            "table: expected a path, a pandas, polars or PySpark DataFrame, a pyarrow Table, a DuckDB "
            f"relation or an Arrow stream, got {type(source).__name__}."
        ) from error
    engine = engine_of(frame)
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
    files = Files(_paths(output), file_format(output), delimiter)
    return replace(_scan(files, table.engine, output), say=table.say)


def _open_path(source: str, engine: str, spark_master: str | None) -> Table:
    paths = _paths(source)
    form = file_format(paths[0])
    if any(file_format(each) != form for each in paths):
        raise InvalidInput(f"file: {source} mixes CSV and Parquet files; give one kind.")
    delimiter = separator_of(paths[0]) if form == "csv" else ","
    files = Files(paths, form, delimiter, partitioned=any(_HIVE.search(each) for each in paths))
    return _scan(files, reader_of(files, engine, spark_master), source)


def _scan(files: Files, engine: Engine, name: str) -> Table:
    with _reading(name, engine):
        frame = engine.scan(files)
        columns = frame.collect_schema().names()
    return Table(frame, engine, name, columns, files.form == "csv", files.delimiter, file=True)


def _paths(source: str) -> list[str]:
    """The files behind a path, glob or folder; addresses go to the engine as they are."""
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
        raise InvalidInput(f"file: no file matches {source}.")
    raise InvalidInput(f"file: {source} does not exist.")


def _folder(path: Path) -> list[str]:
    """Data files of a folder, as Spark and others write them; never those still being written."""
    if (path / "_temporary").exists() and not (path / "_SUCCESS").exists():
        raise InvalidInput(f"file: {path} is half-written: whatever wrote it did not finish. Write it again.")
    files = []
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(("_", ".")) for part in each.relative_to(path).parts)
        if not hidden and each.is_file() and each.name.lower().endswith(tuple(FORMATS)):
            files.append(str(each))
    if not files:
        raise InvalidInput(f"file: {path} is a folder without files ending in {', '.join(FORMATS)}.")
    return files


def separator_of(path: str) -> str:
    """Tab for .tsv; else the one of , ; tab | that the header line has most of."""
    if is_remote(path):
        return delimiter_of(path)
    if delimiter_of(path) == "\t":
        return "\t"
    opened = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            header = re.sub('"[^"]*"', "", file.readline(1 << 20).decode("utf-8", errors="replace"))
    except OSError as error:
        raise InvalidInput(f"file: cannot read {path}: {error.strerror or error}.") from error
    return max(",;\t|", key=header.count)
