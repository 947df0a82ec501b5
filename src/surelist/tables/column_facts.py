"""What each column of a file holds: type, range, missing, examples, values; a few passes for all columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from surelist._dataclasses import dataclass, replace
from surelist.tables.engines.duckdb import label_in, literal, number_in, quoted
from surelist.tables.labels import merged
from surelist.tables.numbers import SHAPE_DIGIT, SHAPE_ZERO, Ambiguous, Decision, Seen, Shape, decide
from surelist.tables.sources import Table

FEW = 12  # different values of a column whose values are counted
MOST_SHAPES = 200_000
_NUMBERLIKE = "^[ +-]?[0-9][0-9.,' \u00a0\u202f\u2019]*%?[ ]*$"
Ask = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Column:
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


def text_of(name: str) -> str:
    """A column as text, as SQL."""
    return f"CAST({quoted(name)} AS VARCHAR)"


def describe_columns(
    ask: Ask, table: Table, names: list[str], rows: int, first: Sequence[Sequence[object]]
) -> tuple[Column, ...]:
    """All columns, in passes that each ask for all of them; ``first`` are the first rows as text."""
    if not names:
        return ()
    schema = dict(table.frame.collect_schema())
    counted = _counted(ask, names, rows, first)
    texts = {each for each in names if schema[each] == nw.String}
    if not table.parsed:
        counted = [_as_text(each) if each.name in texts else each for each in counted]
    columns = [replace(each, kind=_kind(schema[each.name], each)) for each in counted]
    unclear = [each.name for each in columns if each.name in texts and each.numbers < each.filled]
    styled = _written_otherwise(ask, unclear if table.parsed else [])
    columns = [_as_read(each, styled.get(each.name)) for each in columns]
    ranges = _ranges(ask, [each for each in columns if each.read and each.numbers], styled)
    values = _values(ask, [each.name for each in columns if each.filled and each.distinct <= FEW])
    return tuple(
        replace(
            each, lowest=ranges.get(each.name, (each.lowest, each.highest))[0],
            highest=ranges.get(each.name, (each.lowest, each.highest))[1], values=values.get(each.name, ()),
        )
        for each in columns
    )  # fmt: skip


def _long(names: Sequence[str]) -> str:
    """One row per filled cell, as SQL: one expression then serves all columns."""
    listed = ", ".join(f"{text_of(name)} AS {quoted(name)}" for name in names)
    return f"(UNPIVOT (SELECT {listed} FROM input) ON COLUMNS(*) INTO NAME name VALUE v)"


def _counted(ask: Ask, names: list[str], rows: int, first: Sequence[Sequence[object]]) -> list[Column]:
    number = number_in("v")
    counted = ask(
        f"SELECT name, count(*), count({number}), count(*) FILTER ({label_in('v')} IN (0, 1)), "
        f"approx_count_distinct(v), min({number}) FILTER (isfinite({number})), "
        f"max({number}) FILTER (isfinite({number})) FROM {_long(names)} WHERE trim(v) <> '' GROUP BY name"
    )
    facts = {row[0]: row[1:] for row in counted}
    columns = []
    for at, name in enumerate(names):
        filled, numbers, binary, distinct, low, high = facts.get(name, (0, 0, 0, 0, None, None))
        seen = sorted({str(row[at]) for row in first if row[at] is not None and str(row[at]).strip()})
        examples = tuple(each[:60] for each in seen[:3])
        columns.append(
            Column(name, filled, numbers, binary, distinct, examples, rows - filled, lowest=low, highest=high)
        )
    return columns


def _kind(kind: DType, column: Column) -> str:
    if kind in (nw.Date, nw.Datetime) or kind.is_temporal():
        return "dates"
    if column.labels and column.distinct <= 4:
        return "0 and 1" if not set(map(str.lower, column.examples)) & {"true", "false"} else "true and false"
    return "numbers" if column.numeric else "text"


def _as_text(column: Column) -> Column:
    return replace(column, numbers=0, binary=0, lowest=None, highest=None)


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


def _as_read(column: Column, decision: Decision | None) -> Column:
    """With its numbers counted as they are written, where most of it are numbers."""
    if decision is None:
        return column
    if decision.value is None:
        return replace(column, read=f"{decision.example}; choose the decimal mark below")
    if decision.numbers <= column.numbers or 2 * decision.numbers < column.filled:
        return column
    read = f"“{(decision.example or '').strip()}” is read as {decision.value:.15g}"
    kind = "numbers" if decision.numbers == column.filled else column.kind
    return replace(column, numbers=decision.numbers, kind=kind, read=read)


def _ranges(
    ask: Ask, columns: list[Column], styled: dict[str, Decision]
) -> dict[str, tuple[float | None, float | None]]:
    """The lowest and the highest number of columns that write them otherwise, a pass for each such way."""
    ranges = {}
    for style in {styled[each.name].style for each in columns}:
        number = number_in("v", style)
        names = [each.name for each in columns if styled[each.name].style == style]
        rows = ask(f"SELECT name, min({number}), max({number}) FROM {_long(names)} GROUP BY name")
        ranges.update({name: (low, high) for name, low, high in rows})
    return ranges


def _values(ask: Ask, names: list[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """What columns of few values hold, most frequent first, in one pass."""
    if not names:
        return {}
    rows = ask(f"SELECT name, v, count(*) FROM {_long(names)} WHERE trim(v) <> '' GROUP BY ALL")
    texts: dict[str, list[tuple[str | None, int]]] = {}
    for name, value, count in rows:
        texts.setdefault(name, []).append((value, count))
    return {name: merged(each)[0][:FEW] for name, each in texts.items()}
