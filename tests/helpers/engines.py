"""The engine is a fixture axis: the same test on every kind of table that candidates come in."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import surelist as sl
from surelist._check import EngineName

Data = dict[str, list[Any]]
LEAN_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # seconds of work: compiling it well never pays
TYPES = {
    "score": pa.float64(),
    "label": pa.int8(),
    "group": pa.string(),
    "id": pa.int64(),
    "pool": pa.string(),
}


@dataclass
class Engine:
    name: str
    make: Callable[[pa.Table], Any]
    reader: EngineName = "auto"
    ordered: bool = True
    text: bool = False  # a CSV: every column comes back as text

    @property
    def options(self) -> dict[str, Any]:
        return self.reading()

    def reading(self, **how: Any) -> dict[str, Any]:
        """The keyword that has this engine read a file, and read it in this way."""
        return {"read": sl.Read(engine=self.reader, **how)}

    def table(self, data: Data | pa.Table, **types: Any) -> Any:
        return self.make(data if isinstance(data, pa.Table) else arrow(data, **types))

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """Rows of a result, None where missing, sorted where the engine has no order."""
        frame = nw.from_native(table)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        found = [{k: _plain(v) for k, v in row.items()} for row in frame.rows(named=True)]
        return found if self.ordered else sorted(found, key=str)

    def expected(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What ``rows`` look like after this engine has read them."""
        found = [{k: _plain(v) for k, v in row.items()} for row in rows]
        if self.text:
            found = [{k: None if v is None else str(v) for k, v in row.items()} for row in found]
        return found if self.ordered else sorted(found, key=str)


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    return value.item() if hasattr(value, "item") else value


def arrow(data: Data, **types: Any) -> pa.Table:
    known = TYPES | types
    return pa.table({k: pa.array(v, type=known.get(k), from_pandas=False) for k, v in data.items()})


def write_csv(path: Path, table: pa.Table) -> str:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return str(path)


def write_lines(path: Path, table: pa.Table) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
    return str(path)


def write_parquet(path: Path, table: pa.Table) -> str:
    pq.write_table(table, path)
    return str(path)


def write_folder(path: Path, table: pa.Table) -> str:
    (path / "part").mkdir(parents=True)
    half = len(table) // 2
    pq.write_table(table.slice(0, half), path / "a.parquet")
    pq.write_table(table.slice(half), path / "part" / "b.parquet")
    (path / "_SUCCESS").touch()
    return str(path)


@dataclass
class Capsule:
    """Nothing but the Arrow PyCapsule interface."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")  # not the default connection


def from_duckdb(table: pa.Table) -> Any:
    return _database().cursor().from_arrow(table)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    from tests.helpers.service import missing  # a plugin of its own

    if not shutil.which("java"):
        missing("Java")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").appName("surelist-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", LEAN_JVM)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


EVERY = [
    "pandas", "pandas-nullable", "polars", "polars-lazy", "pyarrow", "duckdb", "spark",
    "parquet", "parquet-polars", "csv", "csv-polars", "jsonl",
]  # fmt: skip
MORE = ["capsule", "parquet-folder", "csv-gz", "csv-spark"]  # the same engines by other ways in


def build(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    if name.endswith("spark"):
        spark = request.getfixturevalue("spark_session")
        if name == "spark":
            places = iter(range(1000))

            def from_spark(table: pa.Table) -> Any:
                path = write_parquet(tmp_path / f"spark{next(places)}.parquet", table)
                return spark.read.parquet(path)

            return Engine(name, from_spark, ordered=False)
    made = iter(range(1000))

    def file(write: Callable[[Path, pa.Table], str], ending: str) -> Callable[[pa.Table], Any]:
        return lambda table: write(tmp_path / f"in{next(made)}{ending}", table)

    return {
        "pandas": Engine(name, lambda t: t.to_pandas()),
        "pandas-nullable": Engine(name, lambda t: t.to_pandas().convert_dtypes()),
        "polars": Engine(name, pl.from_arrow),
        "polars-lazy": Engine(name, lambda t: pl.from_arrow(t).lazy()),  # type: ignore[union-attr]
        "pyarrow": Engine(name, lambda t: t),
        "capsule": Engine(name, Capsule),
        "duckdb": Engine(name, from_duckdb),
        "parquet": Engine(name, file(write_parquet, ".parquet"), "duckdb"),
        "parquet-folder": Engine(name, file(write_folder, "")),
        "parquet-polars": Engine(name, file(write_parquet, ".parquet"), "polars"),
        "csv": Engine(name, file(write_csv, ".csv"), text=True),
        "jsonl": Engine(name, file(write_lines, ".jsonl")),
        "csv-gz": Engine(name, file(write_csv, ".csv.gz"), text=True),
        "csv-polars": Engine(name, file(write_csv, ".csv"), "polars", text=True),
        "csv-spark": Engine(name, file(write_csv, ".csv"), "spark", ordered=False, text=True),
    }[name]


@pytest.fixture(params=EVERY)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return build(request.param, tmp_path, request)


@pytest.fixture(params=[*EVERY, *MORE])
def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return build(request.param, tmp_path, request)
