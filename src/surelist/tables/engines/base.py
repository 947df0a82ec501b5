"""What engines do differently, behind one small interface; each engine is a module beside this one.

Everything that can be expressed in narwhals is expressed there, once, elsewhere. An engine adds
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from msgspec import Struct

from surelist._files import remove, unfinished, writing
from surelist.filters import HEX_DIGITS
from surelist.tables.numbers import NumberStyle

PLAIN = NumberStyle()
HELD = 64 << 20  # bytes of files whose columns are held in memory, if any are held
_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)

Frame = Any  # nw.DataFrame or nw.LazyFrame: both have the few verbs used here


def is_missing(value: object) -> bool:
    """None, NaN, and the missing values of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def plain(row: Iterable[object]) -> tuple[Any, ...]:
    """A row as Python values, None where missing."""
    return tuple(None if is_missing(v) else v.item() if hasattr(v, "item") else v for v in row)


class Files(Struct, frozen=True):
    """Files of one format that are one table."""

    paths: list[str]
    form: str
    delimiter: str
    base: str | None = None  # below this folder, those named column=value hold a column each
    unwanted: tuple[str, ...] = ()  # columns that folders above it seem to hold
    columns: Mapping[str, str] | None = None  # of JSON: their types, as SQL

    @property
    def partitioned(self) -> bool:
        return self.base is not None


class Beside(Struct, frozen=True):
    """Queries to run while another result is written; ``accept`` raises where nothing may appear."""

    frames: Sequence[Frame]
    accept: Callable[[Sequence[list[tuple[Any, ...]]]], None]


def as_column(values: Iterable[object], number: bool) -> Any:
    """Python values as a float64 array with NaN where missing, or as a list."""
    if number:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return list(values)


def _values(series: Any, number: bool) -> Any:
    """A fetched column; plain numbers without a detour by way of Python's own."""
    if series.dtype.is_float() or (series.dtype.is_integer() and not series.is_null().any()):
        array = series.to_numpy()
        return array.astype(np.float64) if number else array
    return as_column(series.to_list(), number)


class Engine(ABC):
    """One way to run queries."""

    name: str  # what users call it
    ordered = True  # rows have an order worth keeping
    looks = True  # a small look at a table costs little
    skips_blank_lines = False  # of a CSV file, where spreadsheets count them
    counts_beside = False  # one pass writes and answers queries
    holds_small_files = False  # many of them take longer to open again than to keep
    lazy = True  # a result is worked out again whenever it is asked for
    few = 1 << 17  # rows that may be brought back at a time
    errors: tuple[type[Exception], ...] = ()  # what it raises when data cannot be read

    def column(self, name: str) -> str:
        """What a column that people call so is called in its frames."""
        return name

    def title(self, column: str) -> str:
        """What people call it."""
        return column

    def native(self, frame: Frame) -> Any:
        """A table for people, with their names."""
        return frame.to_native()

    def was_interrupted(self, error: Exception) -> bool:
        """Whether this is how it says that a person stopped it."""
        return False

    def scan(self, files: Files) -> Frame:
        """A table over files; columns of a CSV stay text."""
        raise NotImplementedError("files are read by other engines")

    def plain_rows(
        self, files: Files, size: float, score: str, label: str, groups: Mapping[str, Sequence[str]]
    ) -> tuple[Any, Any] | None:
        """Scores of CSV files of ``size`` bytes, and a code for each row: its label, and four times the
        number of its group among those named; 3, and one more than there are groups, for any other. None
        where that is too much for memory, and where a score or a label is no plain number."""
        return None

    @abstractmethod
    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        """Fetch a small result."""

    def columns(self, frame: Frame, numbers: Collection[str]) -> dict[str, Any]:
        """Fetch whole columns: those in ``numbers`` as float64 with NaN where missing, others as lists."""
        fetched = self._collect(frame)
        return {name: _values(fetched[name], name in numbers) for name in fetched.columns}

    def held(self, frame: Frame, size: float = 0) -> Frame:
        """A copy that is quick to ask again, where the engine can keep one as long as the table.

        ``size``: bytes of the files it comes from; the copy of large ones is on a disk, if there is one.
        """
        return frame

    def _collect(self, frame: Frame) -> Frame:
        return frame

    def with_numbers(
        self, frame: Frame, column: str, alias: str, *, label: bool, style: NumberStyle = PLAIN
    ) -> Frame:
        """Add ``alias``: the numbers in a text column written in this style, null where there is none.

        With ``label``, true and false are 1 and 0, and text that is no number is -1: a wrong
        label is not a missing one.
        """
        raise NotImplementedError("only files have columns of text to be parsed")

    @abstractmethod
    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        """Replace the text in ``column`` by the tie digits of ``surelist.filters``; null stays null."""

    def with_ranks(self, frame: Frame, column: str, within: str) -> Frame:
        """Replace the numbers in ``column`` by minus their rank within their pool, ties sharing the best."""
        rank = nw.col(column).rank("min", descending=True).over(within).cast(nw.Float64)
        return frame.with_columns((rank * -1).alias(column))

    def numbered(self, frame: Frame, alias: str) -> Frame:
        """Add the row number, from 0, as ``alias``."""
        return frame.with_row_index(alias)

    def with_places(self, frame: Frame, column: str, alias: str) -> Frame:
        """Add ``alias``: a number below 2^52 made from the text in ``column``, for rows without an order."""
        raise NotImplementedError("rows have an order: they are numbered")

    @abstractmethod
    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        """Write ``csv``, ``json`` (lines) or ``parquet`` under ``output``, complete or not at all."""

    def write_beside(self, frame: Frame, output: str, form: str, delimiter: str, beside: Beside) -> None:
        """As ``write``, in one pass with other queries."""
        raise NotImplementedError("counts first, then writes")


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
        loose = unfinished(Path(temporary + ".loose"))
        try:
            yield str(loose)
            with loose.open("rb") as source, gzip.open(temporary, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        finally:
            remove(loose)


def tie_digits(key: str, text: str) -> str:
    """The tie number of ``surelist.filters`` as hexadecimal digits: they sort like the number."""
    return hashlib.sha256((key + text).encode()).hexdigest()[:HEX_DIGITS]
