"""Spark: DataFrames of a session handed in, or files read through a master's address."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import narwhals as nw

from surelist._files import temporary_folder
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.filters import HEX_DIGITS
from surelist.tables.engines.base import PLAIN, Engine, Files, Frame, as_column, is_remote, plain
from surelist.tables.numbers import NumberStyle

SPARK = option("engine", "spark")
HELP = (
    'Spark needs the spark extra and Java 17 or newer: pip install "surelist[spark]", and on Debian or '
    "Ubuntu apt-get install openjdk-17-jre-headless (set JAVA_HOME if Java is elsewhere)."
)
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # Java would also take 1d and 0.5f
_KEY = "__surelist_key"
_SAFE = str.maketrans(".`", "\u2024\u02cb")  # Spark reads these in names as its own; they look the same so
_TITLES = str.maketrans("\u2024\u02cb", ".`")
_CSV = {"header": "true", "quote": '"', "escape": '"', "nullValue": "", "emptyValue": ""}


class Spark(Engine):
    """Runs on the cluster; rows have no order, and a shortlist is a folder of files."""

    name = "spark"
    looks = False
    skips_blank_lines = True
    ordered = False
    few = 1 << 16

    def __init__(self, spark: Any) -> None:
        from pyspark.errors import PySparkException

        self.spark = spark
        self.errors = (PySparkException,)

    def scan(self, files: Files) -> Frame:
        """CSV with line breaks inside quotes."""
        where = [each if is_remote(each) else _address(each) for each in files.paths]
        reader = self.spark.read
        if files.base is not None:
            reader = reader.option("basePath", _address(files.base))
        if files.form == "parquet":
            return readable(reader.parquet(*where))
        options = {**_CSV, "sep": files.delimiter, "multiLine": "true", "mode": "FAILFAST"}
        return readable(reader.options(**options, enforceSchema="false").csv(where))

    def column(self, name: str) -> str:
        return name.translate(_SAFE)

    def title(self, column: str) -> str:
        return column.translate(_TITLES)

    def native(self, frame: Frame) -> Any:
        native = frame.to_native()
        titles = [*map(self.title, native.columns)]
        return native if titles == native.columns else native.toDF(*titles)

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return [plain(row) for row in frame.to_native().collect()]

    def columns(self, frame: Frame, numbers: Collection[str]) -> dict[str, Any]:
        rows, names = self.rows(frame), frame.collect_schema().names()
        return {name: as_column([row[at] for row in rows], name in numbers) for at, name in enumerate(names)}

    def with_numbers(
        self, frame: Frame, column: str, alias: str, *, label: bool, style: NumberStyle = PLAIN
    ) -> Frame:
        from pyspark.sql import functions as F

        text = F.trim(F.col(_escaped(column)))
        number = F.when(text.rlike(_NUMBER), text.cast("double"))
        if not style.plain:
            bare = F.translate(F.regexp_replace(text, style.noise, ""), "\u2212,", "-.")
            bare = F.concat(bare, F.lit("e-2" if style.percent else ""))
            number = F.when(text.rlike(style.pattern), bare.cast("double"))
        if label:
            lower = F.lower(text)
            number = (
                F.when(lower == "true", 1.0).when(lower == "false", 0.0)
                .when(text == "", None).when(text.isNotNull(), F.coalesce(number, F.lit(-1.0)))
            )  # fmt: skip
        return nw.from_native(frame.to_native().withColumn(alias, number))

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        """The key comes in as a one-row table: a literal would show in plans and event logs."""
        from pyspark.sql import functions as F

        secret = F.broadcast(self.spark.createDataFrame([(key,)], f"{_KEY} string"))
        digits = F.substring(F.sha2(F.concat(F.col(_KEY), F.col(column)), 256), 1, HEX_DIGITS)
        return nw.from_native(frame.to_native().crossJoin(secret).withColumn(column, digits).drop(_KEY))

    def with_places(self, frame: Frame, column: str, alias: str) -> Frame:
        from pyspark.sql import functions as F

        number = F.shiftrightunsigned(F.xxhash64(F.col(_escaped(column))), 12)
        return nw.from_native(frame.to_native().withColumn(alias, number))

    def numbered(self, frame: Frame, alias: str) -> Frame:
        raise NotImplementedError("rows of a Spark DataFrame have no order")

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        native = self.native(frame)
        if is_remote(output):  # complete when Spark has put its _SUCCESS file there
            _write(native, output, form, delimiter)
            return
        target = Path(output).absolute()
        _require_replaceable(target)
        try:
            with temporary_folder(target.parent, f".{target.name}.", ".part") as part:
                part.chmod(0o755)
                _write(native, (part / "new").as_uri(), form, delimiter)
                if target.exists():
                    os.replace(target, part / "old")
                os.replace(part / "new", target)
        except OSError as error:
            raise InvalidInput("output", f"cannot write {target}: {error.strerror or error}.") from error


def _write(native: Any, where: str, form: str, delimiter: str) -> None:
    if form == "parquet":
        native.write.parquet(where)
        return
    packed = {"compression": "gzip"} if where.endswith(".gz") else {}
    if form == "json":
        native.write.options(ignoreNullFields="false", **packed).json(where)
        return
    unchanged = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    native.write.options(**_CSV, **unchanged, **packed, sep=delimiter).csv(where)


def _require_replaceable(target: Path) -> None:
    """Replace what an earlier run wrote, never a folder of something else."""
    if target.is_dir() and any(target.iterdir()) and not (target / "_SUCCESS").exists():
        raise InvalidInput("output", f"{target} is a folder that Spark did not write; choose another name.")


def readable(native: Any) -> Frame:
    """A table whose column names Spark does not read as its own."""
    names = [name.translate(_SAFE) for name in native.columns]
    return nw.from_native(native if names == native.columns else native.toDF(*names))


def session(master: str | None) -> Any:
    """The session in use, or a new one at ``master`` (this machine's cores by default)."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependency(f"{SPARK}: PySpark is not installed. {HELP}") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None and active.sparkContext.master != master:
            raise InvalidInput(
                "spark_master",
                f"a session at {active.sparkContext.master} is running here already; stop it before asking "
                f"for {master}.",
            )
        return active
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise MissingDependency(f"{SPARK}: Java was not found. {HELP}")
    builder = SparkSession.builder.appName("surelist").master(master or "local[*]")
    try:
        return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except PySparkException as error:
        raise MissingDependency(f"{SPARK}: Spark did not start: {error}. {HELP}") from error


def _address(path: str) -> str:
    """A local path as an address; Spark would take some for patterns, and read other files."""
    full = str(Path(path).absolute())
    pattern = re.search(r"[][{}*?\\]", full)
    if pattern:
        raise InvalidInput(
            "file",
            f"{path}: Spark takes {pattern.group()!r} in a path for a pattern. Rename it, or use another "
            "engine.",
        )
    return f"file://{full}"


def _escaped(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
