"""polars LazyFrames, handed in or over files: streamed, never collected as a whole."""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw

from surelist._names import option
from surelist.errors import MissingDependency
from surelist.tables.engines.base import (
    HELD,
    PLAIN,
    Beside,
    Engine,
    Files,
    Frame,
    is_remote,
    tie_digits,
    unpacked,
)
from surelist.tables.numbers import NumberStyle

COMPRESSION: Final = "snappy"  # as other engines write, and quicker


class Polars(Engine):
    """Streams through the columns a query needs."""

    name = "polars"
    counts_beside = True
    holds_small_files = True

    def __init__(self) -> None:
        try:
            import polars
        except ImportError as error:
            raise MissingDependency(
                f"{option('engine', 'polars')} needs polars: pip install polars."
            ) from error
        self.errors = (polars.exceptions.PolarsError,)

    def scan(self, files: Files) -> Frame:
        import polars

        patterns = any(map(is_remote, files.paths))  # elsewhere names are names, whatever they hold
        if files.form == "parquet":
            scanned = polars.scan_parquet(files.paths, hive_partitioning=files.partitioned, glob=patterns)
        else:
            scanned = polars.scan_csv(
                files.paths, separator=files.delimiter, infer_schema=False, glob=patterns,
                with_column_names=lambda names: [each.replace('""', '"') for each in names],
            )  # fmt: skip
        return nw.from_native(scanned)

    def held(self, frame: Frame, size: float = 0) -> Frame:
        return frame if size > HELD else nw.from_native(self._collect(frame).to_native().rechunk().lazy())

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return list(self._collect(frame).rows())

    def _collect(self, frame: Frame) -> Frame:
        return nw.from_native(frame.to_native().collect(engine="streaming"))

    def with_numbers(
        self, frame: Frame, column: str, alias: str, *, label: bool, style: NumberStyle = PLAIN
    ) -> Frame:
        import polars as pl

        text = pl.col(column).str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
        if not style.plain:
            bare = text.str.replace_all(style.noise, "").str.replace("\u2212", "-", literal=True)
            bare = bare.str.replace(",", ".", literal=True) + pl.lit("e-2" if style.percent else "")
            number = pl.when(text.str.contains(style.pattern)).then(bare.cast(pl.Float64, strict=False))
        if label:
            lower = text.str.to_lowercase()
            number = (
                pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0)
                .when(text == "").then(None)
                .when(text.is_not_null()).then(pl.coalesce(number, -1.0))
            )  # fmt: skip
        return nw.from_native(frame.to_native().with_columns(number.alias(alias)))

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        import polars as pl

        def digits(texts: pl.Series) -> pl.Series:
            hashes = [None if each is None else tie_digits(key, each) for each in texts]
            return pl.Series(texts.name, hashes, pl.String)

        hashed = pl.col(column).map_batches(digits, return_dtype=pl.String, is_elementwise=True)
        return nw.from_native(frame.to_native().with_columns(hashed))

    def numbered(self, frame: Frame, alias: str) -> Frame:
        return nw.from_native(frame.to_native().with_row_index(alias))

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        self.write_beside(frame, output, form, delimiter, Beside((), lambda rows: None))

    def write_beside(self, frame: Frame, output: str, form: str, delimiter: str, beside: Beside) -> None:
        import polars as pl

        native = frame.to_native()
        with unpacked(output) as target:
            if form == "parquet":
                sink = native.sink_parquet(target, compression=COMPRESSION, lazy=True)
            elif form == "json":
                sink = native.sink_ndjson(target, lazy=True)
            else:
                sink = native.sink_csv(target, separator=delimiter, lazy=True)
            queries = [each.to_native() for each in beside.frames]
            beside.accept([each.rows() for each in pl.collect_all([sink, *queries], engine="streaming")[1:]])
