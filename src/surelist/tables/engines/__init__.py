"""One module per engine, behind one small interface: nobody else asks an engine for its name.

``engine_of`` says who runs a table that was handed in, ``reader_of`` who reads files.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import get_args

import narwhals as nw

from surelist._check import EngineName
from surelist.errors import InvalidInput
from surelist.tables.engines.base import Beside, Engine, Files, Frame, is_remote, plain

ENGINES = get_args(EngineName)

__all__ = ["ENGINES", "Beside", "Engine", "Files", "Frame", "engine_of", "is_remote", "plain", "reader_of"]


def engine_of(frame: Frame) -> tuple[Engine, Frame]:
    """The engine behind a frame, and the frame as the engine takes it."""
    kind = frame.implementation
    if kind.is_duckdb():
        from surelist.tables.engines.duckdb import DuckDB

        return DuckDB(), frame
    if kind.is_pyspark() or kind.is_pyspark_connect():
        from surelist.tables.engines import spark

        return spark.Spark(frame.to_native().sparkSession), spark.readable(frame.to_native())
    if kind.is_polars() and isinstance(frame, nw.LazyFrame):
        from surelist.tables.engines.polars import Polars

        return Polars(), frame
    if (kind.is_pandas() or kind.is_polars() or kind.is_pyarrow()) and isinstance(frame, nw.DataFrame):
        from surelist.tables.engines.eager import Eager

        return Eager(), frame
    raise InvalidInput("table", f"{kind} tables are not supported; convert to polars, pyarrow or Parquet.")


def reader_of(files: Files, engine: str, spark_master: str | None) -> Engine:
    """The engine that reads files: the one asked for, or the best for them."""
    if engine == "spark":
        from surelist.tables.engines import spark

        return spark.Spark(spark.session(spark_master))
    # polars streams plain Parquet fastest, where it is installed; DuckDB does everything else
    best = engine == "auto" and files.form == "parquet" and not files.partitioned and find_spec("polars")
    if engine == "polars" or best:
        from surelist.tables.engines.polars import Polars

        return Polars()
    from surelist.tables.engines.duckdb import DuckDB

    return DuckDB()
