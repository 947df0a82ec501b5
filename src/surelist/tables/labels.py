"""Labels as people write them: yes and no, Ja and Nein. Which one means qualified is said, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw

from surelist.errors import InvalidInput

if TYPE_CHECKING:
    from surelist.tables.sources import Table

MOST_VALUES = 1_000
SHOWN = 20
_VALUE, _COUNT = "__surelist_value", "__surelist_rows"
Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LabelReading:
    """Which value of a column means qualified, and how often each value occurs; blank ones are missing."""

    column: str
    positive: str
    counts: Counts
    missing: int

    def describe(self) -> str:
        yes = sum(count for value, count in self.counts if _same(value, self.positive))
        others = [(value, count) for value, count in self.counts if not _same(value, self.positive)]
        rest = f"; not qualified: {listed(others)}" if others else ""
        empty = f"; empty: {_rows(self.missing)}" if self.missing else ""
        return f"{self.column}: {self.positive!r} means qualified ({_rows(yes)}){rest}{empty}."


def value_counts(table: Table, column: str) -> tuple[Counts, int]:
    """Values of a column with how often they occur, most frequent first, and how many are blank.

    Spellings that differ in case or outer blanks are one value.
    """
    text = nw.col(column).cast(nw.String)
    counted = table.frame.select(**{_VALUE: text}).group_by(_VALUE).agg(nw.len().alias(_COUNT))
    table.say("counting labels")
    with table.reading():
        rows = table.engine.rows(counted.head(MOST_VALUES + 1))
    if len(rows) > MOST_VALUES:
        raise InvalidInput(
            f"column {column!r}: more than {MOST_VALUES:,} different values; that is no column of labels."
        )
    merged: dict[str, list[tuple[str, int]]] = {}
    missing = 0
    for value, count in rows:
        shown = "" if value is None else str(value).strip()
        if not shown or shown.lower() == "nan":
            missing += int(count)
        else:
            merged.setdefault(shown.lower(), []).append((shown, int(count)))
    found = [(max(each, key=lambda v: v[1])[0], sum(n for _, n in each)) for each in merged.values()]
    return tuple(sorted(found, key=lambda item: (-item[1], item[0]))), missing


def listed(counts: Sequence[tuple[str, int]]) -> str:
    """Values with their counts, in words."""
    shown = ", ".join(f"{value[:80]!r} ({_rows(count)})" for value, count in counts[:SHOWN])
    return shown + (f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else "")


def choice(table: Table, column: str) -> str:
    """What to do about labels other than 0 and 1."""
    counts, missing = value_counts(table, column)
    empty = f", empty ({_rows(missing)})" if missing else ""
    return f"the values are {listed(counts)}{empty}; say which one means qualified with pos_label="


def read_labels(table: Table, column: str, positive: str) -> LabelReading:
    """The labels of a column, where one value was said to mean qualified; it must be there."""
    counts, missing = value_counts(table, column)
    if not any(_same(value, positive) for value, _ in counts):
        there = f"the values are {listed(counts)}" if counts else "it is empty"
        raise InvalidInput(f"pos_label: no row of column {column!r} has {positive!r}; {there}.")
    return LabelReading(column, positive, counts, missing)


def label_expressions(column: str, kind: Any, positive: str) -> tuple[nw.Expr, nw.Expr]:
    """1 where the value means qualified and 0 elsewhere; and where there is none."""
    number = _number(positive)
    if kind.is_numeric() and number is not None:
        value = nw.col(column)
        missing = value.is_null() | ~value.is_finite() if kind.is_float() else value.is_null()
        marked = value == number
    else:
        text = nw.col(column).cast(nw.String).str.strip_chars().str.to_lowercase()
        missing = text.is_null() | (text == "")
        marked = text == positive.lower()
    return nw.when(~missing).then(nw.when(marked).then(nw.lit(1)).otherwise(nw.lit(0))), missing


def _same(value: str, positive: str) -> bool:
    if value.lower() == positive.lower():
        return True
    one, other = _number(value), _number(positive)
    return one is not None and one == other


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
