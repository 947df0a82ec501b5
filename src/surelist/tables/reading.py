"""What was understood of a file: how its numbers are written, which label means qualified. Shown before use.

``style_of`` decides once per column and table; a sample that only decimal points explain needs no pass
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import narwhals as nw

from surelist._check import DecimalMark
from surelist._dataclasses import dataclass
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.tables.engines import Frame
from surelist.tables.labels import LabelReading, read_labels
from surelist.tables.numbers import (
    SHAPE_DIGIT,
    SHAPE_ZERO,
    WHOLE,
    Ambiguous,
    Decision,
    NumberStyle,
    Seen,
    Shape,
    all_whole,
    decide,
    is_clearly_plain,
)
from surelist.tables.sources import Table

SAMPLE = 1_000
MOST_SHAPES = 5_000
SHOWN = 20
_SHAPE, _ZERO, _COUNT, _EXAMPLE = (f"__surelist_{name}" for name in ("shape", "zero", "count", "example"))
_ROW = "__surelist_row"


@dataclass(frozen=True)
class NumberReading:
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


@dataclass(frozen=True)
class Reading:
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
    origin = table.origin
    numbers = []
    score, label = names.get("score"), names.get("label")
    if score is not None and is_text(table, score):
        made = decision_of(table, score)
        if not made.style.plain or made.others:
            numbers.append(NumberReading(score, made, _not_numbers(table, score, made.style)))
    read = None
    if label is not None and table.hints.pos_label:
        read = labels_of(table, label)
    return Reading(origin.describe() if origin is not None else None, tuple(numbers), read)


def is_text(table: Table, column: str) -> bool:
    """Whether a file's column is text, in which numbers are to be read."""
    return table.parsed and dict(table.frame.collect_schema())[column] == nw.String


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
        if is_clearly_plain(sample) or (all_whole(sample) and _all_whole(table, column)):
            return Decision(NumberStyle())
    try:
        return decide(_shapes(table, column), mark)
    except Ambiguous as fact:
        ask = "" if "percent" in str(fact) else DECIMAL
        raise InvalidInput(f"column {column!r}", f"{fact}.", remedy=ask) from None


def _all_whole(table: Table, column: str) -> bool:
    """Whether a column holds nothing but whole numbers: a cheaper pass than looking at every shape."""
    others = table.frame.select(column).filter(~nw.col(column).str.contains(WHOLE)).head(1)
    return not _fetch(table, others)


def _shapes(table: Table, column: str) -> dict[Shape, Seen]:
    """Every way in which a text of this column looks, in one pass."""
    text = nw.col(column)
    keys = {_SHAPE: text.str.replace_all(SHAPE_DIGIT, "9"), _ZERO: text.str.contains(SHAPE_ZERO)}
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
    table.say("looking at how numbers are written")
    with table.reading():
        return table.engine.rows(frame)


def _not_numbers(table: Table, column: str, style: NumberStyle) -> tuple[int, ...]:
    """The first rows whose text is no number in this style, as a spreadsheet counts them."""
    if not table.engine.ordered:
        return ()
    text = nw.col(column)
    wrong = ~text.str.contains(style.pattern) & (text.str.strip_chars() != "")
    numbered = table.engine.numbered(table.frame, _ROW).filter(wrong).select(_ROW).head(SHOWN)
    return table.sheet_rows([int(row[0]) for row in _fetch(table, numbered)])
