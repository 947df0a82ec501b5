"""Labels as people write them: yes and no, Ja and Nein. Which one means qualified is said, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput

if TYPE_CHECKING:
    from surelist.tables.sources import Table

MOST_VALUES = 1_000
SHOWN = 20
# missing ones as people and spreadsheets write them; "-" is none of them: beside "+" it is a label
NO_LABEL = frozenset(
    [
        "nan",
        "n/a",
        "n.a.",
        "na",
        "null",
        "?",
        "#n/a",
        "#div/0!",
        "#value!",
        "#ref!",
        "#name?",
        "#num!",
        "#null!",
    ],
)
_VALUE, _COUNT = "__surelist_value", "__surelist_rows"
Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LabelReading:
    """Which value of a column means qualified, and how often each value occurs; blank ones are missing.

    ``qualified`` and ``unlabelled`` are the texts as they are in the table, so that rows count as they
    are said to: engines do not agree on what is a blank and what is lower case.
    """

    column: str
    positive: str
    counts: Counts
    missing: int
    no_label: Counts = ()
    qualified: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()

    def describe(self) -> str:
        yes = sum(count for value, count in self.counts if _same(value, self.positive))
        others = [(value, count) for value, count in self.counts if not _same(value, self.positive)]
        rest = f"; not qualified: {listed(others)}" if others else ""
        empty = f"; empty: {_rows(self.missing)}" if self.missing else ""
        words = f"; no label: {listed(self.no_label)}" if self.no_label else ""
        return f"{self.column}: {self.positive!r} means qualified ({_rows(yes)}){rest}{empty}{words}."


def _texts(table: Table, column: str) -> list[tuple[str | None, int]]:
    """Every text of a column, as it is, with how often it occurs."""
    text = nw.col(column).cast(nw.String)
    counted = table.frame.select(**{_VALUE: text}).group_by(_VALUE).agg(nw.len().alias(_COUNT))
    table.say("counting labels")
    with table.reading():
        rows = table.engine.rows(counted.head(MOST_VALUES + 1))
    if len(rows) > MOST_VALUES:
        raise InvalidInput(
            f"column {column!r}: more than {MOST_VALUES:,} different values; that is no column of labels."
        )
    return [(None if value is None else str(value), int(count)) for value, count in rows]


def _merged(texts: Sequence[tuple[str | None, int]]) -> tuple[Counts, int]:
    """Values with how often they occur, most frequent first, and how many are blank.

    Spellings that differ in case or outer blanks are one value.
    """
    merged: dict[str, list[tuple[str, int]]] = {}
    missing = 0
    for value, count in texts:
        shown = "" if value is None else value.strip()
        if not shown or shown.lower() == "nan":
            missing += count
        else:
            merged.setdefault(shown.lower(), []).append((shown, count))
    counts = [(max(each, key=lambda v: v[1])[0], sum(n for _, n in each)) for each in merged.values()]
    return tuple(sorted(counts, key=lambda item: (-item[1], item[0]))), missing


def listed(counts: Sequence[tuple[str, int]]) -> str:
    """Values with their counts, in words."""
    shown = ", ".join(f"{value[:80]!r} ({_rows(count)})" for value, count in counts[:SHOWN])
    return shown + (f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else "")


def choice(table: Table, column: str) -> str:
    """What to do about labels other than 0 and 1."""
    counts, missing = _merged(_texts(table, column))
    empty = f", empty ({_rows(missing)})" if missing else ""
    return f"the values are {listed(counts)}{empty}; say which one means qualified with pos_label="


def read_labels(table: Table, column: str, positive: str) -> LabelReading:
    """The labels of a column, where one value was said to mean qualified; it must be there."""
    texts = _texts(table, column)
    counts, missing = _merged(texts)
    if not any(_same(value, positive) for value, _ in counts):
        there = f"the values are {listed(counts)}" if counts else "it is empty"
        raise InvalidInput(f"pos_label: no row of column {column!r} has {positive!r}; {there}.")
    raw = [text for text, _ in texts if text is not None]
    qualified = tuple(text for text in raw if _same(text.strip(), positive))
    return LabelReading(
        column, positive, tuple(each for each in counts if not _is_no_label(each[0], positive)), missing,
        tuple(each for each in counts if _is_no_label(each[0], positive)), qualified,
        tuple(text for text in raw if not text.strip() or _is_no_label(text.strip(), positive)),
    )  # fmt: skip


def _is_no_label(value: str, positive: str) -> bool:
    return value.lower() in NO_LABEL and not _same(value, positive)


def label_expressions(read: LabelReading, kind: Any) -> tuple[nw.Expr, nw.Expr]:
    """1 where the value means qualified and 0 elsewhere; and where there is none."""
    number = _number(read.positive)
    value = nw.col(read.column)
    if kind.is_numeric() and number is not None:
        missing = value.is_null() | ~value.is_finite() if kind.is_float() else value.is_null()
        marked = value == number
    else:
        text = value.cast(nw.String)
        missing, marked = text.is_null(), text.is_in(list(read.qualified))
        if read.unlabelled:
            missing = missing | text.is_in(list(read.unlabelled))
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
