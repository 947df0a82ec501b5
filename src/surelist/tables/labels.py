"""Labels as people write them: yes and no, Ja and Nein. Which one means qualified is said, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import narwhals as nw

from surelist._dataclasses import dataclass
from surelist._names import option
from surelist.errors import InvalidInput

if TYPE_CHECKING:
    from narwhals.dtypes import DType

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
    """Which values of a column mean qualified, and how often each value occurs; blank ones are missing.

    ``qualified`` and ``unlabelled`` are the texts as they are in the table, so that rows count as they
    are said to: engines do not agree on what is a blank and what is lower case.
    """

    column: str
    positive: tuple[str, ...]
    counts: Counts
    missing: int
    no_label: Counts = ()
    qualified: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()

    def describe(self) -> str:
        yes = sum(count for value, count in self.counts if _is_one_of(value, self.positive))
        others = [(value, count) for value, count in self.counts if not _is_one_of(value, self.positive)]
        rest = f"; not qualified: {listed(others)}" if others else ""
        empty = f"; empty: {_rows(self.missing)}" if self.missing else ""
        words = f"; no label: {listed(self.no_label)}" if self.no_label else ""
        return f"{self.column}: {_said(self.positive)} qualified ({_rows(yes)}){rest}{empty}{words}."


def _said(labels: Sequence[str]) -> str:
    """'a' means; 'a' and 'b' mean."""
    *first, last = map(repr, labels)
    return f"{', '.join(first)} and {last} mean" if first else f"{last} means"


def _texts(table: Table, column: str) -> list[tuple[str | None, int]]:
    """Every text of a column, as it is, with how often it occurs."""
    text = nw.col(column).cast(nw.String)
    counted = table.frame.select(**{_VALUE: text}).group_by(_VALUE).agg(nw.len().alias(_COUNT))
    table.say("counting labels")
    with table.reading():
        rows = table.engine.rows(counted.head(MOST_VALUES + 1))
    if len(rows) > MOST_VALUES:
        raise InvalidInput(
            f"column {column!r}", f"more than {MOST_VALUES:,} different values; that is no column of labels."
        )
    return [(None if value is None else str(value), int(count)) for value, count in rows]


def merged(texts: Sequence[tuple[str | None, int]]) -> tuple[Counts, int]:
    """Values with how often they occur, most frequent first, and how many are blank.

    Spellings that differ in case or outer blanks are one value, and so are 0 and 0.0.
    """
    spellings: dict[float | str, list[tuple[str, int]]] = {}
    missing = 0
    for value, count in texts:
        shown = "" if value is None else value.strip()
        if not shown or shown.lower() == "nan":
            missing += count
        else:
            number = _number(shown)
            spellings.setdefault(shown.lower() if number is None else number, []).append((shown, count))
    counts = [(max(each, key=lambda v: v[1])[0], sum(n for _, n in each)) for each in spellings.values()]
    return tuple(sorted(counts, key=lambda item: (-item[1], item[0]))), missing


def listed(counts: Sequence[tuple[str, int]]) -> str:
    """Values with their counts, in words."""
    shown = ", ".join(f"{value[:80]!r} ({_rows(count)})" for value, count in counts[:SHOWN])
    return shown + (f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else "")


def choice(table: Table, column: str) -> str:
    """What to do about labels other than 0 and 1."""
    counts, missing = merged(_texts(table, column))
    empty = f", empty ({_rows(missing)})" if missing else ""
    return f"the values are {listed(counts)}{empty}; say which one means qualified with {option('pos_label')}"


def read_labels(
    table: Table, column: str, positive: Sequence[str], negative: Sequence[str] = ()
) -> LabelReading:
    """The labels of a column, where some values were said to mean qualified; they must be there.

    One other value means not qualified; where there are several, each has to be named.
    """
    texts = _texts(table, column)
    counts, missing = merged(texts)
    for each in positive:
        if not any(_is_one_of(value, [each]) for value, _ in counts):
            there = f"the values are {listed(counts)}" if counts else "it is empty"
            raise InvalidInput("pos_label", f"no row of column {column!r} has {each!r}; {there}.")
        if _is_one_of(each, negative):
            raise InvalidInput("neg_label", f"{each!r} was said to mean qualified too; say one of both.")
    said = (*positive, *negative)
    others = [each for each in counts if not _is_one_of(each[0], said) and not _is_no_label(each[0], said)]
    if others and (negative or len(others) > 1):
        raise InvalidInput(
            "pos_label",
            f"{_said(positive)} qualified, and column {column!r} also holds {listed(others)}. Name every "
            f"other value that means qualified with {option('pos_label')}, and each that does not with "
            f"{option('neg_label')}.",
        )
    raw = [text for text, _ in texts if text is not None]
    return LabelReading(
        column, tuple(positive), tuple(each for each in counts if not _is_no_label(each[0], said)), missing,
        tuple(each for each in counts if _is_no_label(each[0], said)),
        tuple(text for text in raw if _is_one_of(text.strip(), positive)),
        tuple(text for text in raw if not text.strip() or _is_no_label(text.strip(), said)),
    )  # fmt: skip


def _is_no_label(value: str, said: Sequence[str]) -> bool:
    return value.lower() in NO_LABEL and not _is_one_of(value, said)


def label_expressions(read: LabelReading, kind: DType) -> tuple[nw.Expr, nw.Expr]:
    """1 where the value means qualified and 0 elsewhere; and where there is none."""
    numbers = [number for number in map(_number, read.positive) if number is not None]
    value = nw.col(read.column)
    if kind.is_numeric() and numbers:
        missing = value.is_null() | ~value.is_finite() if kind.is_float() else value.is_null()
        marked = value == numbers[0]
        for number in numbers[1:]:
            marked = marked | (value == number)
    else:
        text = value.cast(nw.String)
        missing, marked = text.is_null(), text.is_in(list(read.qualified))
        if read.unlabelled:
            missing = missing | text.is_in(list(read.unlabelled))
    return nw.when(~missing).then(nw.when(marked).then(nw.lit(1)).otherwise(nw.lit(0))), missing


def _is_one_of(value: str, labels: Sequence[str]) -> bool:
    number = _number(value)
    return any(
        value.lower() == each.lower() or (number is not None and number == _number(each)) for each in labels
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
