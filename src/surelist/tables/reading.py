"""What was understood of a file: how its numbers are written, which label means qualified. Shown before use.

``style_of`` decides once per column and table; a sample that only decimal points explain needs no pass
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import narwhals as nw
from msgspec import Struct
from narwhals.dtypes import DType

from surelist._check import DecimalMark
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.tables import numbers
from surelist.tables.engines import Frame
from surelist.tables.hints import rows_in_words
from surelist.tables.numbers import Ambiguous, Decision, NumberStyle, Seen, Shape
from surelist.tables.sources import Table

SAMPLE = 1_000
MOST_SHAPES = 5_000
SHOWN = 20
_SHAPE, _ZERO, _COUNT, _EXAMPLE, _ROW, _VALUE = (
    f"__surelist_{name}" for name in ("shape", "zero", "rows", "example", "row", "value")
)

MOST_VALUES = 1_000
# missing ones as people and spreadsheets write them; "-" is none of them: beside "+" it is a label
_ERRORS = ["#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"]
NO_LABEL = frozenset(["nan", "n/a", "n.a.", "na", "null", "?", *_ERRORS])
Counts = tuple[tuple[str, int], ...]


class NumberReading(Struct, frozen=True):
    """How the numbers of a text column were read, and where there is none."""

    column: str
    decision: Decision
    rows: tuple[int, ...] = ()  # up to twenty cells that are no numbers, as a spreadsheet counts rows

    def describe(self) -> str:
        parts = []
        if not self.decision.style.plain and self.decision.example is not None:
            text, value = self.decision.example.strip(), self.decision.value
            parts.append(f"{text!r} read as {value:.15g} ({self.decision.style.describe()})")
        if self.decision.others:
            count = self.decision.others
            shown = ", ".join(f"{row:,}" for row in self.rows)
            more = f" and {count - len(self.rows):,} more" if count > len(self.rows) else ""
            what = "1 cell is not a number" if count == 1 else f"{count:,} cells are not numbers"
            where = f": row{'' if count == 1 else 's'} {shown}{more}" if shown else ""
            parts.append(f"{what}{where}")
        return f"{self.column}: {'; '.join(parts)}." if parts else ""


class LabelReading(Struct, frozen=True):
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
        empty = f"; empty: {rows_in_words(self.missing)}" if self.missing else ""
        words = f"; no label: {listed(self.no_label)}" if self.no_label else ""
        return f"{self.column}: {_said(self.positive)} qualified ({rows_in_words(yes)}){rest}{empty}{words}."


class Reading(Struct, frozen=True):
    """What was understood of a table, in sentences; nothing where it is plain."""

    file: str | None = None
    numbers: tuple[NumberReading, ...] = ()
    labels: LabelReading | None = None

    @property
    def decimal(self) -> DecimalMark:
        """The decimal mark of scores in text that are not plain; else ``auto``."""
        return next((cast(DecimalMark, each.decision.style.decimal) for each in self.numbers), "auto")

    @property
    def sentences(self) -> tuple[str, ...]:
        first = [f"Read: {self.file}."] if self.file else []
        rest = [each.describe() for each in self.numbers] + ([self.labels.describe()] if self.labels else [])
        return tuple(each for each in (*first, *rest) if each)


def reading_of(table: Table, names: Mapping[str, str | None]) -> Reading:
    """What was understood of the columns with these roles."""
    read_numbers = []
    score, label = names.get("score"), names.get("label")
    if score is not None and is_text(table, score):
        made = decision_of(table, score)
        if not made.style.plain or made.others:
            read_numbers.append(NumberReading(score, made, _not_numbers(table, score, made.style)))
    read = None
    if label is not None and table.hints.pos_label:
        read = labels_of(table, label)
    return Reading(table.origin.describe(), tuple(read_numbers), read)


def is_text(table: Table, column: str) -> bool:
    """Whether a file's column is text, in which numbers are to be read."""
    return table.parsed and table.schema[column] == nw.String


def style_of(table: Table, column: str) -> NumberStyle:
    """How a text column of a file writes numbers."""
    return decision_of(table, column).style


def decision_of(table: Table, column: str) -> Decision:
    """The style with what it rests on, worked out once; raises where nothing in the column decides."""
    if column not in table.decisions:
        table.decisions[column] = _decide(table, column)
    return table.decisions[column]


def labels_of(table: Table, column: str) -> LabelReading:
    """How labels are read where somebody said which value means qualified, worked out once."""
    if column not in table.label_readings:
        said = table.hints.pos_label, table.hints.neg_label
        table.label_readings[column] = read_labels(table, column, *said)
    return table.label_readings[column]


# what to do where a column does not say which mark is the decimal one
DECIMAL = (
    option("decimal", ",", before="Say which mark is the decimal one: ")
    + option("decimal", ".", before=" or ", after=".")
)  # fmt: skip


def _decide(table: Table, column: str) -> Decision:
    mark = table.hints.mark
    if mark is None:
        if not table.engine.looks:
            return Decision(NumberStyle())
        sample = [str(row[0]) for row in _fetch(table, table.frame.select(column).head(SAMPLE)) if row[0]]
        sample = [text for text in sample if text.strip()]
        if numbers.is_clearly_plain(sample):
            return Decision(NumberStyle())
    try:
        return numbers.decide(_shapes(table, column), mark)
    except Ambiguous as fact:
        ask = "" if "percent" in str(fact) else DECIMAL
        raise InvalidInput(f"column {column!r}", f"{fact}.", remedy=ask) from None


def _shapes(table: Table, column: str) -> dict[Shape, Seen]:
    """Every way in which a text of this column looks, in one pass."""
    text = nw.col(column)
    keys = {
        _SHAPE: text.str.replace_all(numbers.SHAPE_DIGIT, "9"),
        _ZERO: text.str.contains(numbers.SHAPE_ZERO),
    }
    counted = (
        table.frame.select(**keys, **{_EXAMPLE: text})
        .group_by(_SHAPE, _ZERO)
        .agg(nw.len().alias(_COUNT), nw.col(_EXAMPLE).min())
    )
    rows = _fetch(table, counted.select(_SHAPE, _ZERO, _COUNT, _EXAMPLE).head(MOST_SHAPES + 1))
    if len(rows) > MOST_SHAPES:
        raise InvalidInput(
            f"column {column!r}", expected="numbers", got=f"texts of more than {MOST_SHAPES:,} kinds"
        )
    return {
        Shape(shape, bool(zero)): Seen(int(count), example)
        for shape, zero, count, example in rows
        if shape is not None
    }


def _fetch(table: Table, frame: Frame) -> list[tuple[Any, ...]]:
    return table.rows(frame, "looking at how numbers are written")


def _not_numbers(table: Table, column: str, style: NumberStyle) -> tuple[int, ...]:
    """The first rows whose text is no number in this style, as a spreadsheet counts them."""
    if not table.engine.ordered:
        return ()
    text = nw.col(column)
    wrong = ~text.str.contains(style.pattern) & (text.str.strip_chars() != "")
    numbered = table.engine.numbered(table.frame, _ROW).filter(wrong).select(_ROW).head(SHOWN)
    return table.sheet_rows([int(row[0]) for row in _fetch(table, numbered)])


def _said(labels: Sequence[str]) -> str:
    """'a' means; 'a' and 'b' mean."""
    *first, last = map(repr, labels)
    return f"{', '.join(first)} and {last} mean" if first else f"{last} means"


def _texts(table: Table, column: str) -> list[tuple[str | None, int]]:
    """Every text of a column, as it is, with how often it occurs."""
    text = nw.col(column).cast(nw.String)
    counted = table.frame.select(**{_VALUE: text}).group_by(_VALUE).agg(nw.len().alias(_COUNT))
    rows = table.rows(counted.head(MOST_VALUES + 1), "counting labels")
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
    shown = ", ".join(f"{value[:80]!r} ({rows_in_words(count)})" for value, count in counts[:SHOWN])
    return shown + (f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else "")


def choice(table: Table, column: str) -> str:
    """What to do about labels other than 0 and 1."""
    counts, missing = merged(_texts(table, column))
    empty = f", empty ({rows_in_words(missing)})" if missing else ""
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
    positive = [number for number in map(_number, read.positive) if number is not None]
    value = nw.col(read.column)
    if kind.is_numeric() and positive:
        missing = value.is_null() | ~value.is_finite() if kind.is_float() else value.is_null()
        marked = value == positive[0]
        for number in positive[1:]:
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
