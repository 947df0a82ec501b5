"""From whatever holds candidates (DataFrame, relation, path, glob, folder) to one ``Table``."""

from __future__ import annotations

import glob
import gzip
import importlib.util
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
from surelist.tables.engines.base import Eager, Engine, Frame, PolarsLazy, is_remote

FORMATS = {".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".tsv.gz": "csv", ".parquet": "parquet"}
ENGINES = ("auto", "duckdb", "polars", "spark")

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
    say: Callable[[str], None] = _silent  # told at the start of every pass over the data

    def with_frame(self, frame: Frame) -> Table:
        """The same table after a step."""
        return replace(self, frame=frame)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn the engine's complaints about unreadable data into one sentence."""
        unreadable: tuple[type[Exception], ...] = (*self.engine.errors, NarwhalsError)
        try:
            yield
        except unreadable as error:
            first = str(error).strip().splitlines()[0]
            raise InvalidInput(f"{self.name}: cannot be read: {first}") from error


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

    ``engine`` and ``spark_master`` say who reads files; ``progress`` is told of every pass.
    """
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
    if engine not in ("auto", table.engine.name):
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
    engine = _engine_of(frame)
    name = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
    return Table(frame, engine, name, frame.collect_schema().names())


def _engine_of(frame: Frame) -> Engine:
    kind = frame.implementation
    if kind.is_duckdb():
        from surelist.tables.engines.duckdb import DuckDB

        return DuckDB()
    if kind.is_pyspark() or kind.is_pyspark_connect():
        from surelist.tables.engines.spark import Spark

        return Spark(frame.to_native().sparkSession)
    if kind.is_polars() and isinstance(frame, nw.LazyFrame):
        return PolarsLazy()
    if (kind.is_pandas() or kind.is_polars() or kind.is_pyarrow()) and isinstance(frame, nw.DataFrame):
        return Eager()
    raise InvalidInput(f"table: {kind} tables are not supported; convert to polars, pyarrow or Parquet.")


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
    return replace(_open_path(output, table.engine.name, None, delimiter), say=table.say)


def _open_path(source: str, engine: str, spark_master: str | None, delimiter: str | None = None) -> Table:
    files = _files(source)
    form = file_format(files[0])
    if any(file_format(each) != form for each in files):
        raise InvalidInput(f"file: {source} mixes CSV and Parquet files; give one kind.")
    delimiter = delimiter or (_delimiter(files[0]) if form == "csv" else ",")
    frame, runner = _scan(files, form, delimiter, engine, spark_master)
    table = Table(frame, runner, source, [], form == "csv", delimiter, file=True)
    with table.reading():
        return replace(table, columns=frame.collect_schema().names())


def _scan(
    files: list[str], form: str, delimiter: str, engine: str, spark_master: str | None
) -> tuple[Frame, Engine]:
    if engine == "spark":
        from surelist.tables.engines import spark

        session = spark.session(spark_master)
        return nw.from_native(spark.read(session, files, form, delimiter)), spark.Spark(session)
    if engine == "polars" or (engine == "auto" and _polars_is_best(files, form)):
        return _scan_polars(files, form, delimiter)
    import duckdb

    from surelist.tables.engines import duckdb as duck

    try:
        relation = duck.read_parquet(files) if form == "parquet" else duck.read_csv(files, delimiter)
    except duckdb.Error as error:
        raise InvalidInput(f"{files[0]}: cannot be read: {str(error).splitlines()[0]}") from error
    return nw.from_native(relation), duck.DuckDB()


def _polars_is_best(files: list[str], form: str) -> bool:
    """Polars streams plain Parquet fastest, where it is installed; DuckDB does everything else."""
    plain = form == "parquet" and not any(is_remote(each) or _HIVE.search(each) for each in files)
    return plain and importlib.util.find_spec("polars") is not None


def _scan_polars(files: list[str], form: str, delimiter: str) -> tuple[Frame, Engine]:
    try:
        import polars
    except ImportError as error:
        raise MissingDependency("engine='polars' needs polars: pip install polars.") from error
    if form == "parquet":
        hive = any(_HIVE.search(each) for each in files)
        return nw.from_native(polars.scan_parquet(files, hive_partitioning=hive)), PolarsLazy()
    scanned = polars.scan_csv(files, separator=delimiter, infer_schema=False)
    return nw.from_native(scanned), PolarsLazy()


def _files(source: str) -> list[str]:
    """The files behind a path, glob or folder; addresses go to the engine as they are."""
    if is_remote(source):
        return [source]
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [source]
    if glob.has_magic(source):
        found = sorted(each for each in glob.glob(source, recursive=True) if Path(each).is_file())
        if found:
            return found
        raise InvalidInput(f"file: no file matches {source}.")
    raise InvalidInput(f"file: {source} does not exist.")


def _folder(path: Path) -> list[str]:
    """Data files of a folder, as Spark and others write them; never those still being written."""
    if (path / "_temporary").exists() and not (path / "_SUCCESS").exists():
        raise InvalidInput(f"file: {path} is half-written: whatever wrote it did not finish. Write it again.")
    found = []
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(("_", ".")) for part in each.relative_to(path).parts)
        if not hidden and each.is_file() and each.name.lower().endswith(tuple(FORMATS)):
            found.append(str(each))
    if not found:
        raise InvalidInput(f"file: {path} is a folder without files ending in {', '.join(FORMATS)}.")
    return found


def _delimiter(path: str) -> str:
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
