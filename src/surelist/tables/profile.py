"""What is in a file, before anyone decides anything: columns, first rows, good guesses.

For front ends that ask a person to confirm. Only names, counts and a few example values leave
this module; it makes no promise and changes nothing. What is wrong with rows is in ``bad_rows``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from surelist._check import DecimalMark
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.tables.column_facts import Column, describe_columns, text_of
from surelist.tables.csv_text import names_in, origin_of
from surelist.tables.engines.duckdb import connect, literal, number_in, quoted
from surelist.tables.hints import Hints
from surelist.tables.numbers import NumberStyle
from surelist.tables.reading import is_text, style_of
from surelist.tables.roles import GROUP, ROWS, name_expression, require_column
from surelist.tables.sources import Table, file_format, open_table

HELD = 32 << 20  # bytes of files that are parsed once and held, since several questions follow
DETAILED = 200  # columns beyond these are listed by name only
EXAMPLES = 5
AT_ONCE = 5000  # rows fetched together

_NAMES = {
    "score": r"score|prob|pred|rating|rank|risk|likelihood|^wert$|punkte|punktzahl|bewertung|eignung",
    "label": r"label|qualified|eligible|outcome|hired|enrol|relevant|target|positive|decision|result|^y$"
    r"|ergebnis|geeignet|qualifiziert|eingestellt",
    "id": r"(^|_)id$|^id|candidate|applicant|patient|person|name|email|number|^nr$|nummer|kennung",
}


@dataclass(frozen=True)
class Profile:
    """A table at a glance."""

    format: str
    rows: int
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    first_rows: tuple[tuple[str, ...], ...]
    guesses: dict[str, str | None]
    doubts: tuple[str, ...] = ()
    read: str | None = None  # the sheet, or the encoding and what separates values


class _Input:
    """A file as the table ``input``, to be asked in SQL."""

    def __init__(self, table: Table) -> None:
        self._relation = (table.engine.held(table.frame) if table.size <= HELD else table.frame).to_native()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._relation.query("input", sql).fetchall()
        return rows


@contextmanager
def _opened(source: Path | Table) -> Iterator[tuple[_Input, list[str]]]:
    table = open_table(source, "duckdb")
    with table.reading():
        yield _Input(table), table.columns


def shape(path: Path) -> tuple[int, list[str]]:
    """Rows and column names, from a Parquet file's footer or a CSV file's lines: cheap, no parsing.

    For a CSV file the rows are its lines, an upper bound. Names are as written, duplicates too.
    """
    if file_format(path) == "csv":
        with path.open("rb") as file:
            rows = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
        return rows, names_in(str(path), origin_of(str(path)))
    connection = connect()
    try:
        where = literal(str(path))
        rows = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({where})").fetchone()[0]
        names = connection.execute(f"SELECT name FROM parquet_schema({where}) OFFSET 1").fetchall()
    except duckdb.Error as error:
        raise InvalidInput("file", f"cannot read {path}: {str(error).splitlines()[0]}") from error
    finally:
        connection.close()
    return int(rows), [str(row[0]) for row in names]


def profile(source: Path | Table) -> Profile:
    """Look over a file: its columns, its first rows, and which column is probably which."""
    table = open_table(source, "duckdb")
    with _opened(table) as (connection, names):
        rows = connection.rows("SELECT count(*) FROM input")[0][0]
        shown = names[:DETAILED]
        first = connection.rows(
            f"SELECT {', '.join(text_of(name) for name in shown)} FROM input LIMIT {EXAMPLES}"
        )
        columns = describe_columns(connection.rows, table, shown, rows, first)
    cells = tuple(tuple("" if value is None else str(value) for value in row) for row in first)
    read = table.origin.describe() if table.origin is not None else None
    return Profile(
        table.origin.form if table.origin is not None else file_format(table.paths[0]), rows, tuple(names),
        columns, cells, _guess(columns, rows), _doubts(columns), read,
    )  # fmt: skip


def group_names(source: Path | Table, group: str) -> dict[str, int]:
    """How many rows each group has."""
    table = open_table(source)
    named = name_expression(
        table, require_column(table, "group", group), dict(table.frame.collect_schema()), "group"
    )
    counted = table.frame.select(**{GROUP: named}).group_by(GROUP).agg(nw.len().alias(ROWS))
    with table.reading():
        rows = table.engine.rows(counted.filter(~nw.col(GROUP).is_null()))
    return {str(name): count for name, count in sorted(rows)}


def first_rows(path: Path, limit: int) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows as text."""
    with _opened(path) as (connection, names):
        parts = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in names)
        rows = connection.rows(f"SELECT {parts} FROM input LIMIT {int(limit)}")
    return names, [["" if value is None else value for value in row] for row in rows]


def ranked_rows(
    path: Path, score: str, decimal: DecimalMark = "auto"
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Column names and all rows as text, the best score first, some thousand at a time."""
    table = open_table(path, "duckdb", hints=Hints(decimal=decimal))
    require_column(table, "score", score)
    names = table.columns
    parts = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in names)
    style = style_of(table, score) if is_text(table, score) else NumberStyle()
    order = number_in(f"CAST({quoted(score)} AS VARCHAR)", style)
    with table.reading():
        native = table.frame.to_native()
        native.query(
            "input", f"SELECT row_number() OVER (ORDER BY {order} DESC) AS surelist_rank, {parts} FROM input"
        ).create("ranked")
        first = 1
        while rows := native.query(
            "input", f"SELECT * FROM ranked WHERE surelist_rank BETWEEN {first} AND {first + AT_ONCE - 1} "
            "ORDER BY surelist_rank",
        ).fetchall():  # fmt: skip
            yield names, [["" if value is None else value for value in row[1:]] for row in rows]
            first += AT_ONCE


def convert(path: Path, output: Path) -> None:
    """Write the table in another format."""
    table = open_table(path, "duckdb")
    with table.reading():
        table.engine.write(table.frame, str(output), file_format(output), ",")


def category_counts(
    pool: Path, shortlist: Path, attributes: tuple[str, ...]
) -> dict[tuple[str, ...], tuple[int, int]]:
    """(candidates, shortlisted) per combination of attribute values; empty ones are unknown."""
    everyone, listed = (_counted(path, attributes) for path in (pool, shortlist))
    return {names: (size, listed.get(names, 0)) for names, size in everyone.items()}


def _counted(path: Path, attributes: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    with _opened(path) as (connection, names):
        for name in attributes:
            if name not in names:
                columns = ", ".join(repr(each) for each in names[:20])
                raise InvalidInput("attribute", f"there is no column {name!r}; the columns are {columns}.")
        parts = ", ".join(
            f"CASE WHEN trim(lower(coalesce(CAST({quoted(a)} AS VARCHAR), ''))) "
            f"IN ('', 'unknown', 'n/a', 'na') THEN 'unknown' ELSE CAST({quoted(a)} AS VARCHAR) END"
            for a in attributes
        )
        rows = connection.rows(f"SELECT {parts}, count(*) FROM input GROUP BY ALL")
    return {tuple(row[:-1]): row[-1] for row in rows}


def _doubts(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Columns that are named like a score or label and do not hold one: why they were not taken."""
    sentences = []
    for role, what in (("score", "numbers"), ("label", "0 or 1")):
        for each in columns:
            wrong = each.filled - (each.numbers if role == "score" else each.binary)
            if role == "label" and each.values:
                continue  # which value means qualified is asked for
            if wrong and re.search(_NAMES[role], each.name.lower()):
                examples = ", ".join(repr(example) for example in each.examples)
                sentences.append(
                    f"{each.name!r} is named like a {role}, but {wrong:,} of its {each.filled:,} values "
                    f"are not {what} (it holds {examples})."
                )
    return tuple(sentences)


def _guess(columns: tuple[Column, ...], rows: int) -> dict[str, str | None]:
    """A column for each role where both its name and what it holds fit; otherwise none.

    For score and label the name decides first, and it has to decide: where the column that is named best
    does not hold what it should, or two are named as well, none is taken for it in its stead.
    """
    guesses: dict[str, str | None] = {"score": None, "label": None, "group": None, "id": None}
    fits = {
        "label": [c for c in columns if (c.labels and c.distinct <= 4) or 1 < len(c.values) <= 8],
        "score": [c for c in columns if c.filled and c.numbers == c.filled and c.binary < c.filled],
        "id": [c for c in columns if rows and c.filled == rows and c.distinct >= 0.9 * rows],
    }
    for role in ("label", "score", "id"):  # not group: cutoffs by group are a decision, never a guess
        named = [c for c in columns if re.search(_NAMES[role], c.name.lower())]
        if role != "id":
            exactly = [c for c in named if re.fullmatch(_NAMES[role], c.name.strip().lower())]
            named = exactly or named
            named = named if len(named) == 1 else []
        free = [c.name for c in named if c in fits[role] and c.name not in guesses.values()]
        guesses[role] = free[0] if free else None
    return guesses
