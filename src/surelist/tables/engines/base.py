"""What engines do differently, behind one small interface; and the two that need no SQL.

Everything that can be said in narwhals is said in narwhals, once, elsewhere. An engine adds
what narwhals has no word for: fetching a few rows without further packages, numbers from
text, SHA-256, row numbers, and files that appear only when complete.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw

from surelist._files import writing
from surelist.ties import HEX_DIGITS

_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)

Frame = Any  # nw.DataFrame or nw.LazyFrame: both have the few verbs used here


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def plain(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row as Python values, None where missing."""
    return tuple(None if is_missing(v) else v.item() if hasattr(v, "item") else v for v in row)


class Engine(ABC):
    """One way to run queries."""

    name: str
    ordered = True  # rows have an order worth keeping
    errors: tuple[type[Exception], ...] = ()  # what it raises when data cannot be read

    @abstractmethod
    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        """Fetch a small result."""

    @abstractmethod
    def with_numbers(self, frame: Frame, column: str, alias: str, *, label: bool) -> Frame:
        """Add ``alias``: the numbers in a text column, null where there is none.

        With ``label``, true and false are 1 and 0, and text that is no number is -1: a wrong
        label is not a missing one.
        """

    @abstractmethod
    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        """Replace the text in ``column`` by the tie digits of ``surelist.ties``; null stays null."""

    @abstractmethod
    def numbered(self, frame: Frame, alias: str) -> Frame:
        """Add the row number, from 0, as ``alias``."""

    @abstractmethod
    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        """Write ``csv`` or ``parquet`` under ``output``, complete or not at all."""


def is_remote(path: str) -> bool:
    """An address such as s3://bucket/key, which only the engine can read or write."""
    return _REMOTE.match(path) is not None


@contextmanager
def appearing(output: str) -> Iterator[str]:
    """Where to write so that ``output`` appears complete; object stores do that by themselves."""
    if is_remote(output):
        yield output
        return
    with writing(Path(output)) as temporary:
        yield str(temporary)


@contextmanager
def unpacked(output: str) -> Iterator[str]:
    """As ``appearing``, for writers that know no gzip: packed at the end where .gz was asked for."""
    with appearing(output) as temporary:
        if not output.lower().endswith(".gz"):
            yield temporary
            return
        loose = Path(temporary + ".loose")
        try:
            yield str(loose)
            with loose.open("rb") as source, gzip.open(temporary, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        finally:
            loose.unlink(missing_ok=True)


def tie_digits(key: str, text: str) -> str:
    """The tie number of ``surelist.ties`` as hexadecimal digits: they sort like the number."""
    return hashlib.sha256((key + text).encode()).hexdigest()[:HEX_DIGITS]


class Eager(Engine):
    """pandas, pyarrow and polars DataFrames."""

    name = "eager"

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return [plain(row) for row in frame.rows()]

    def with_numbers(self, frame: Frame, column: str, alias: str, *, label: bool) -> Frame:
        raise NotImplementedError("only files have columns of text to be parsed")

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        texts = frame[column].to_list()
        digits = [None if is_missing(each) else tie_digits(key, each) for each in texts]
        new = nw.new_series(column, digits, nw.String, backend=frame.implementation)
        if frame.implementation.is_pandas():
            new = nw.maybe_set_index(new, index=nw.maybe_get_index(frame))
        return frame.with_columns(new)

    def numbered(self, frame: Frame, alias: str) -> Frame:
        return frame.with_row_index(alias)

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        native, kind = frame.to_native(), frame.implementation
        with unpacked(output) as target:
            if kind.is_polars():
                _polars_write(native, target, form, delimiter)
            elif kind.is_pandas():
                if form == "parquet":
                    native.to_parquet(target, index=False)
                else:
                    native.to_csv(target, sep=delimiter, index=False)
            elif form == "parquet":
                from pyarrow import parquet

                parquet.write_table(native, target)
            else:
                from pyarrow import csv

                options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
                csv.write_csv(native, target, options)


class PolarsLazy(Engine):
    """polars LazyFrames: streamed, never collected as a whole."""

    name = "polars"

    def __init__(self) -> None:
        import polars

        self.errors = (polars.exceptions.PolarsError,)

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = frame.to_native().collect(engine="streaming").rows()
        return found

    def with_numbers(self, frame: Frame, column: str, alias: str, *, label: bool) -> Frame:
        import polars as pl

        text = pl.col(column).str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
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
            found = [None if each is None else tie_digits(key, each) for each in texts]
            return pl.Series(texts.name, found, pl.String)

        hashed = pl.col(column).map_batches(digits, return_dtype=pl.String, is_elementwise=True)
        return nw.from_native(frame.to_native().with_columns(hashed))

    def numbered(self, frame: Frame, alias: str) -> Frame:
        return nw.from_native(frame.to_native().with_row_index(alias))

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        with unpacked(output) as target:
            if form == "parquet":
                frame.to_native().sink_parquet(target)
            else:
                frame.to_native().sink_csv(target, separator=delimiter)


def _polars_write(native: Any, path: str, form: str, delimiter: str) -> None:
    if form == "parquet":
        native.write_parquet(path)
    else:
        native.write_csv(path, separator=delimiter)
