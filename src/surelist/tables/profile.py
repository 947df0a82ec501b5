"""What is in a file, before anyone decides anything: columns, first rows, good guesses.

For front ends that ask a person to confirm. Only names, counts and a few example values leave
this module; it makes no promise and changes nothing. What is wrong with rows is in ``bad_rows``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
from msgspec import Struct
from msgspec.structs import replace
from narwhals.dtypes import DType

from surelist._check import DecimalMark
from surelist.errors import InvalidInput
from surelist.filters import ACCEPT, TRIAGE
from surelist.tables.csv_text import names_in, origin_of
from surelist.tables.engines.duckdb import label_in, literal, number_in, quoted
from surelist.tables.hints import Hints
from surelist.tables.numbers import (
    SHAPE_DIGIT,
    SHAPE_ZERO,
    Ambiguous,
    Decision,
    NumberStyle,
    Seen,
    Shape,
    decide,
)
from surelist.tables.paths import file_format
from surelist.tables.reading import is_text, merged, style_of
from surelist.tables.roles import GROUP, ROWS, name_expression, require_column
from surelist.tables.sources import Table, open_table

HELD = 32 << 20  # bytes of files that are parsed once and held, since several questions follow
DETAILED = 200  # columns beyond these are listed by name only
EXAMPLES = 5
AT_ONCE = 5000  # rows fetched together
FEW = 12  # different values of a column whose values are counted
MOST_SHAPES = 200_000
_NUMBERLIKE = "^[ +-]?[0-9][0-9.,' \u00a0\u202f\u2019]*%?[ ]*$"
Ask = Callable[[str], list[tuple[Any, ...]]]

_NAMES = {
    "score": r"score|prob|pred|rating|rank|risk|likelihood|^wert$|punkte|punktzahl|bewertung|eignung",
    "label": r"label|qualified|eligible|outcome|hired|enrol|relevant|target|positive|decision|result|^y$"
    r"|ergebnis|geeignet|qualifiziert|eingestellt",
    "id": r"(^|_)id$|^id|candidate|applicant|patient|person|name|email|number|^nr$|nummer|kennung"
    r"|^doc(no)?$|^uuid$|^key$",
}


class Column(Struct, frozen=True):
    """One column: how many values are there, are numbers, are 0/1, are different; and what they look like.

    ``lowest`` and ``highest`` are those of its numbers, ``read`` says how these are written where that is
    not plain, ``values`` counts what a column of few values holds, empty ones apart.
    """

    name: str
    filled: int
    numbers: int
    binary: int
    distinct: int
    examples: tuple[str, ...]
    missing: int = 0
    kind: str = "text"
    lowest: float | None = None
    highest: float | None = None
    read: str = ""
    values: tuple[tuple[str, int], ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether everything it holds is a number."""
        return bool(self.filled) and self.numbers == self.filled

    @property
    def labels(self) -> bool:
        """Whether it holds 0 and 1, or true and false."""
        return bool(self.filled) and self.binary == self.filled


class Profile(Struct, frozen=True):
    """A table at a glance."""

    format: str
    rows: int
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    first_rows: tuple[tuple[str, ...], ...]
    guesses: dict[str, str | None]
    doubts: tuple[str, ...] = ()
    read: str | None = None  # the sheet, or the encoding and what separates values


@contextmanager
def _opened(source: Path | Table, held: int = 0) -> Iterator[tuple[Ask, list[str]]]:
    """A file as the table ``input``, to be asked in SQL; one of at most ``held`` bytes is parsed once."""
    table = open_table(source, "duckdb")
    with table.reading():
        native = (table.engine.held(table.frame) if table.size <= held else table.frame).to_native()
        yield lambda sql: native.query("input", sql).fetchall(), table.columns


def shape(path: Path) -> tuple[int, list[str]]:
    """Rows and column names, from a Parquet file's footer or a CSV file's lines: cheap, no parsing.

    For a CSV file the rows are its lines, an upper bound. Names are as written, duplicates too.
    """
    if file_format(path) == "csv":
        with path.open("rb") as file:
            rows = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
        return rows, names_in(str(path), origin_of(str(path)))
    with _opened(path) as (ask, _):
        names = ask(f"SELECT name FROM parquet_schema({literal(str(path))}) OFFSET 1")
        return ask("SELECT count(*) FROM input")[0][0], [str(row[0]) for row in names]


def profile(source: Path | Table) -> Profile:
    """Look over a file: its columns, its first rows, and which column is probably which."""
    table = open_table(source, "duckdb")
    with _opened(table, HELD) as (ask, names):
        rows = ask("SELECT count(*) FROM input")[0][0]
        shown = names[:DETAILED]
        first = ask(f"SELECT {_texts(shown)} FROM input LIMIT {EXAMPLES}")
        columns = _described(ask, table, shown, rows, first) if shown else ()
    return Profile(
        table.origin.form, rows, tuple(names), columns, tuple(map(tuple, _blanked(first))),
        _guess(columns, rows), _doubts(columns), table.origin.describe(),
    )  # fmt: skip


def _texts(names: Sequence[str]) -> str:
    """Columns as texts, as SQL."""
    return ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in names)


def _blanked(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    return [["" if value is None else str(value) for value in row] for row in rows]


def group_names(source: Path | Table, group: str) -> dict[str, int]:
    """How many rows each group has."""
    table = open_table(source)
    named = name_expression(table, require_column(table, "group", group), "group")
    counted = table.frame.select(**{GROUP: named}).group_by(GROUP).agg(nw.len().alias(ROWS))
    with table.reading():
        rows = table.engine.rows(counted.filter(~nw.col(GROUP).is_null()))
    return {str(name): count for name, count in sorted(rows)}


def first_rows(path: Path, limit: int) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows as text."""
    with _opened(path) as (ask, names):
        return names, _blanked(ask(f"SELECT {_texts(names)} FROM input LIMIT {int(limit)}"))


def ranked_rows(
    path: Path, score: str | None, decimal: DecimalMark = "auto"
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Column names and all rows as text, the best score first or as they come, some thousand at a time."""
    table, order = open_table(path, "duckdb", hints=Hints(decimal=decimal)), ""
    if score is not None:
        require_column(table, "score", score)
        style = style_of(table, score) if is_text(table, score) else NumberStyle()
        order = f"ORDER BY {number_in(f'CAST({quoted(score)} AS VARCHAR)', style)} DESC"
    with _opened(table) as (ask, names):
        table.frame.to_native().query(
            "input", f"SELECT row_number() OVER ({order}) AS surelist_rank, {_texts(names)} "
            "FROM input",
        ).create("ranked")  # fmt: skip
        first = 1
        while rows := ask(
            f"SELECT * EXCLUDE surelist_rank FROM ranked WHERE surelist_rank BETWEEN {first} AND "
            f"{first + AT_ONCE - 1} ORDER BY surelist_rank"
        ):
            yield names, _blanked(rows)
            first += AT_ONCE


def convert(path: Path, output: Path) -> None:
    """Write the table in another format."""
    table = open_table(path, "duckdb")
    with table.reading():
        table.engine.write(table.frame, str(output), file_format(output), ",")


def category_counts(
    pool: Path, shortlist: Path, attributes: tuple[str, ...], three_ways: bool = False
) -> dict[tuple[str, ...], tuple[int, int]]:
    """(candidates, shortlisted) per combination of attribute values; empty ones are unknown.

    The file of a triage has everyone, and those accepted are counted.
    """
    everyone, listed = _counted(pool, attributes), _counted(shortlist, attributes, three_ways)
    return {names: (size, listed.get(names, 0)) for names, size in everyone.items()}


def _counted(path: Path, attributes: tuple[str, ...], accepted: bool = False) -> dict[tuple[str, ...], int]:
    with _opened(path) as (ask, names):
        for name in attributes:
            if name not in names:
                columns = ", ".join(repr(each) for each in names[:20])
                raise InvalidInput("attribute", f"there is no column {name!r}; the columns are {columns}.")
        parts = ", ".join(
            f"CASE WHEN trim(lower(coalesce(CAST({quoted(a)} AS VARCHAR), ''))) "
            f"IN ('', 'unknown', 'n/a', 'na') THEN 'unknown' ELSE CAST({quoted(a)} AS VARCHAR) END"
            for a in attributes
        )
        who = f"input WHERE {quoted(TRIAGE)} = {literal(ACCEPT)}" if accepted else "input"
        return {tuple(row[:-1]): row[-1] for row in ask(f"SELECT {parts}, count(*) FROM {who} GROUP BY ALL")}


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


def _described(
    ask: Ask, table: Table, names: list[str], rows: int, first: Sequence[Sequence[object]]
) -> tuple[Column, ...]:
    """All columns, in passes that each ask for all of them; ``first`` are the first rows as text."""
    schema = table.schema
    number = number_in("v")
    counted = ask(
        f"SELECT name, count(*), count({number}), count(*) FILTER ({label_in('v')} IN (0, 1)), "
        f"approx_count_distinct(v), min({number}) FILTER (isfinite({number})), "
        f"max({number}) FILTER (isfinite({number})) FROM {_long(names)} WHERE trim(v) <> '' GROUP BY name"
    )
    facts = {row[0]: row[1:] for row in counted}
    columns: dict[str, Column] = {}
    for at, name in enumerate(names):
        filled, numbers, binary, distinct, low, high = facts.get(name, (0, 0, 0, 0, None, None))
        if schema[name] == nw.String and not table.parsed:
            numbers, binary, low, high = 0, 0, None, None
        seen = sorted({str(row[at]) for row in first if row[at] is not None and str(row[at]).strip()})
        made = Column(
            name, filled, numbers, binary, distinct, tuple(each[:60] for each in seen[:3]), rows - filled,
            lowest=low, highest=high,
        )  # fmt: skip
        columns[name] = replace(made, kind=_kind(schema[name], made))
    if table.parsed:
        texts = [
            each.name for each in columns.values() if schema[each.name] == nw.String and not each.numeric
        ]
        for name, decision in _written_otherwise(ask, texts).items():
            columns[name] = _as_read(ask, columns[name], decision)
    for name, values in _values(ask, [each for each in columns.values() if each.filled]).items():
        columns[name] = replace(columns[name], values=values)
    return tuple(columns.values())


def _long(names: Sequence[str]) -> str:
    """One row per filled cell, as SQL: one expression then serves all columns."""
    return f"(UNPIVOT (SELECT {_texts(names)} FROM input) ON COLUMNS(*) INTO NAME name VALUE v)"


def _kind(kind: DType, column: Column) -> str:
    if kind in (nw.Date, nw.Datetime) or kind.is_temporal():
        return "dates"
    if column.labels and column.distinct <= 4:
        return "0 and 1" if not set(map(str.lower, column.examples)) & {"true", "false"} else "true and false"
    return "numbers" if column.numeric else "text"


def _written_otherwise(ask: Ask, names: list[str]) -> dict[str, Decision]:
    """Text columns that mostly look like numbers in another style than the plain one, in one pass."""
    if not names:
        return {}
    rows = ask(
        f"SELECT name, regexp_replace(v, {literal(SHAPE_DIGIT)}, '9', 'g') AS shape, "
        f"regexp_matches(v, {literal(SHAPE_ZERO)}) AS zero, count(*), min(v) FROM {_long(names)} "
        f"WHERE regexp_matches(v, {literal(_NUMBERLIKE)}) GROUP BY ALL LIMIT {MOST_SHAPES}"
    )
    seen: dict[str, dict[Shape, Seen]] = {}
    for name, shape, zero, count, example in rows:
        seen.setdefault(name, {})[Shape(shape, zero)] = Seen(count, example)
    decided = {}
    for name, shapes in seen.items():
        try:
            decided[name] = decide(shapes)
        except Ambiguous as fact:
            decided[name] = Decision(style=decide(shapes, ".").style, example=str(fact))
    return decided


def _as_read(ask: Ask, column: Column, decision: Decision) -> Column:
    """With its numbers as they are written, where most of it are numbers."""
    if decision.value is None:
        read = f"{decision.example}; choose the decimal mark below"
    elif decision.numbers <= column.numbers or 2 * decision.numbers < column.filled:
        return column
    else:
        read = f"“{(decision.example or '').strip()}” is read as {decision.value:.15g}"
        kind = "numbers" if decision.numbers == column.filled else column.kind
        column = replace(column, numbers=decision.numbers, kind=kind)
    if column.numbers:
        number = number_in("v", decision.style)
        [(low, high)] = ask(f"SELECT min({number}), max({number}) FROM {_long([column.name])}")
        column = replace(column, lowest=low, highest=high)
    return replace(column, read=read)


def _values(ask: Ask, columns: Sequence[Column]) -> dict[str, tuple[tuple[str, int], ...]]:
    """What columns of few values hold, most frequent first, in one pass."""
    names = [each.name for each in columns if each.distinct <= FEW]
    if not names:
        return {}
    texts: dict[str, list[tuple[str | None, int]]] = {}
    for name, value, count in ask(
        f"SELECT name, v, count(*) FROM {_long(names)} WHERE trim(v) <> '' GROUP BY ALL"
    ):
        texts.setdefault(name, []).append((value, count))
    return {name: merged(each)[0][:FEW] for name, each in texts.items()}
