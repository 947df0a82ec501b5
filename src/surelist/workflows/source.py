"""``Source``: a table that somebody named, and who is to read it; and errors in the words of tables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from surelist._check import DecimalMark, EngineName, OnBadRows
from surelist._files import refuse_inputs
from surelist._names import TABLES
from surelist.errors import InvalidInput
from surelist.tables.hints import LABELS, NO_HINTS, REMEMBERED, Hints, Origin
from surelist.tables.paths import files_of
from surelist.tables.reading import Reading, reading_of
from surelist.tables.roles import require_column
from surelist.tables.sources import Table, open_adopted, open_table

__all__ = ["LABELS", "NO_HINTS", "REMEMBERED", "Hints", "Origin", "Source"]


class Read(Struct, frozen=True):
    """How a file is to be read, where the file does not say it by itself.

    Parameters
    ----------
    sheet : str, optional
        Which sheet of an Excel file, if several are not empty.
    header_row : int, optional
        The row of a CSV or Excel file with the column names, counted from 1 as a spreadsheet does. By default
        the first one, below titles that stand alone in their rows.
    decimal : {"auto", ".", ","}
        The decimal mark of numbers in text. By default the whole column decides, and where it does not
        ("1,234") that is an error.
    pos_label, neg_label : value or sequence of values
        The labels that mean qualified, such as ``"yes"``, and those that do not, where there are several; an
        empty one is missing, and one that is in neither is an error. Without them labels are 0 and 1, or true
        and false.
    engine : {"auto", "duckdb", "polars", "spark"}
        Engine that reads the files; ``"auto"`` is polars for Parquet where it is installed, else DuckDB.
    spark_master : str, optional
        With ``engine="spark"``: ``"local[*]"``, ``"spark://host:7077"``.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Read(decimal=",", pos_label=("yes", "perhaps")).decimal
    ','
    """

    sheet: str | None = None
    decimal: DecimalMark = "auto"
    pos_label: Any = ()
    neg_label: Any = ()
    engine: EngineName = "auto"
    spark_master: str | None = None
    header_row: int | None = None

    @property
    def hints(self) -> Hints:
        return Hints(self.sheet, self.decimal, self.pos_label, self.neg_label, self.header_row)


PLAIN = Read()
_JSON_OBJECT = re.compile(rb"\s*\{\s*[\"}]")


def begins_as_json(start: bytes) -> bool:
    """Whether a file begins with a JSON object: no line of column names begins so."""
    return _JSON_OBJECT.match(start) is not None


class Source(Struct, frozen=True):
    """A path or table, who reads it, what to do with bad rows, and the name a person knows it by."""

    table: Any
    engine: EngineName = "auto"
    spark_master: str | None = None
    on_bad_rows: OnBadRows = "error"
    progress: Callable[[str], None] | None = None
    name: str | None = None
    hints: Hints = NO_HINTS
    origin: Origin | None = None  # of a file that was adopted: what it was before

    @classmethod
    def of(cls, table: Any, read: Read | None, **more: Any) -> Source:
        """A table that is to be read in this way."""
        read = read or PLAIN
        return cls(table, read.engine, read.spark_master, hints=read.hints, **more)

    def open(self) -> Table:
        """The table, ready to be asked."""
        if self.origin is not None and not isinstance(self.table, Table):
            return open_adopted(os.fspath(self.table), self.name or "the table", self.origin, self.hints)
        opened = open_table(self.table, self.engine, self.spark_master, self.progress, self.hints)
        return replace(opened, name=self.name) if self.name is not None else opened

    def reading(self, *, score: str | None = None, label: str | None = None) -> Reading:
        """What is understood of these columns, before anything is done with them."""
        opened, names = self.open(), {"score": score, "label": label}
        return reading_of(
            opened,
            {role: require_column(opened, role, name) for role, name in names.items() if name is not None},
        )

    def refuse_as_output(self, output: str) -> None:
        """Raise where writing ``output`` would replace a file of this table."""
        if isinstance(self.table, (str, os.PathLike)):
            refuse_inputs(output, files_of(self.table))


@contextmanager
def words_of_tables() -> Iterator[None]:
    """Errors name the columns of a table (pool=, group=, id=), not the arrays of ``calibrate``."""
    try:
        yield
    except InvalidInput as error:
        error.names = TABLES
        raise
