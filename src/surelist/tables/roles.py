"""Where score, label, group, id and pool are in a table, as expressions that mean one thing.

What engines would answer differently is settled here: scores are float64 before they are
compared, NaN and null are both missing, a CSV's numbers are parsed, an empty text is missing.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Any

import narwhals as nw
from msgspec import Struct, field
from narwhals.dtypes import DType

from surelist.errors import InvalidInput
from surelist.tables.engines import Frame
from surelist.tables.hints import NESTED
from surelist.tables.numbers import NumberStyle
from surelist.tables.reading import choice, label_expressions, labels_of, style_of
from surelist.tables.sources import Table

PREFIX = "__surelist_"
SCORE, LABEL, GROUP, ID, POOL, STATE, ROWS, TIE, ROW, RANK = (
    PREFIX + name for name in ("score", "label", "group", "id", "pool", "state", "rows", "tie", "row", "rank")
)
EXACT_INTEGER = 1 << 53
_IS_2_TO_53 = "^[^1-9]*" + "[^0-9]*".join(("9", "007", "199", "254", "740", "992")) + "[^0-9]*$"


class Columns(Struct, frozen=True):
    """A table and the expressions for the roles its columns play."""

    table: Table
    names: dict[str, str]
    score: nw.Expr
    usable: nw.Expr  # True where there is a finite score; false or null elsewhere
    too_large: nw.Expr | None = None  # True at whole numbers that lose their order as floats
    label: nw.Expr | None = None
    label_missing: nw.Expr | None = None
    group: nw.Expr | None = None
    group_type: DType | None = None
    ident: nw.Expr | None = None
    pool: nw.Expr | None = None
    schema: dict[str, DType] = field(default_factory=dict)

    @property
    def frame(self) -> Frame:
        return self.table.frame

    def rows(self, frame: Frame, what: str) -> list[tuple[Any, ...]]:
        return self.table.rows(frame, what)

    def arrays(self, frame: Frame, what: str, numbers: Collection[str]) -> dict[str, Any]:
        return self.table.arrays(frame, what, numbers)

    def member(self, name: str | None) -> nw.Expr | None:
        """Rows of the group known as ``name``; None where everyone belongs (no groups)."""
        if self.group is None or name is None or self.group_type is None:
            return None
        if self.group_type.is_integer():
            whole = name.removeprefix("-").isdecimal() and str(int(name)) == name
            return self.group == int(name) if whole else nw.lit(False)
        if self.group_type == nw.Boolean:
            return self.group == (name == "True") if name in ("True", "False") else nw.lit(False)
        return self.group == name


def find_columns(table: Table, **names: str | None) -> Columns:
    """The roles ``score``, ``label``, ``group``, ``id``, ``pool`` and ``weight``, checked."""
    wanted = {role: require_column(table, role, name) for role, name in names.items() if name is not None}
    for role, name in wanted.items():
        _require_plain(table, name, number=role == "score")
    clash = next((name for name in table.columns if name.startswith(PREFIX)), None)
    if clash is not None:
        raise InvalidInput(f"column {clash!r}", f"names starting with {PREFIX!r} are taken; rename it.")
    schema = dict(table.schema)
    table, numeric = _parsed(table, wanted, schema)
    schema |= {name: nw.Float64() for name in (SCORE, LABEL)}
    score, usable, too_large = _score(table, wanted["score"], numeric["score"], schema)
    roles: dict[str, Any] = {"too_large": too_large}
    if "label" in wanted:
        roles["label"], roles["label_missing"] = _label(table, numeric["label"], schema)
    if "group" in wanted:
        roles["group"] = name_expression(table, wanted["group"], "group")
        kind = schema[wanted["group"]]
        roles["group_type"] = nw.String() if kind in (nw.Categorical, nw.Enum) else kind
    if "id" in wanted:
        roles["ident"] = name_expression(table, wanted["id"], "id").cast(nw.String)
    if "pool" in wanted:
        roles["pool"] = name_expression(table, wanted["pool"], "pool")
    return Columns(table, wanted, score, usable, schema=schema, **roles)


def number_columns(table: Table, names: Mapping[str, str]) -> tuple[Table, dict[str, nw.Expr]]:
    """Further columns of numbers by role, null where there is no finite one; the table they are in."""
    schema = dict(table.schema)
    frame, numbers = table.frame, dict[str, nw.Expr]()
    for role, given in names.items():
        name = require_column(table, role, given)
        _require_plain(table, name, number=True)
        alias = name
        if table.parsed and schema[name] == nw.String:
            alias = f"{PREFIX}number_{role}"
            frame = table.engine.with_numbers(frame, name, alias, label=False, style=style_of(table, name))
            schema[alias] = nw.Float64()
        number, usable, _ = _score(table, name, alias, schema)
        numbers[role] = nw.when(usable).then(number)
    return table.with_frame(frame), numbers


def require_column(table: Table, role: str, name: str) -> str:
    """What the column is called in the table's frame; an error lists the columns there are."""
    if table.engine.column(name) in table.columns:
        return table.engine.column(name)
    close = difflib.get_close_matches(name, table.titles, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(repr(each) for each in table.titles[:20])
    raise InvalidInput(role, f"{table.name} has no column {name!r}; the columns are {listed}.", remedy=hint)


def _require_plain(table: Table, name: str, *, number: bool) -> None:
    """In JSON a score is a number, and whatever has a role is no list or object."""
    said = table.origin.not_numbers.get(name)
    if said is not None and (number or said.startswith(NESTED)):
        raise InvalidInput(
            f"column {name!r}", expected=f"{'numbers' if number else 'plain values'}", got=f"{said}"
        )


def _parsed(table: Table, names: dict[str, str], schema: dict[str, DType]) -> tuple[Table, dict[str, str]]:
    """Turn text in files into numbers; the columns to read scores and labels from."""
    numeric = dict(names)
    frame = table.frame
    for role, alias in (("score", SCORE), ("label", LABEL)):
        if role in names and table.parsed and schema[names[role]] == nw.String:
            label = role == "label"
            if label and table.hints.pos_label:
                continue
            style = NumberStyle() if label else style_of(table, names[role])
            frame = table.engine.with_numbers(frame, names[role], alias, label=label, style=style)
            numeric[role] = alias
    return table.with_frame(frame), numeric


def _score(
    table: Table, name: str, parsed: str, schema: dict[str, DType]
) -> tuple[nw.Expr, nw.Expr, nw.Expr | None]:
    """The score as float64, where it is usable, and where a whole number lost its order as a float.

    ``parsed`` holds the numbers of a file's text. Asked by name: DuckDB answers ``abs(x) <= largest`` from
    Parquet statistics, which leave NaN out.
    """
    kind, column = schema[parsed], nw.col(parsed)
    if parsed != name:
        # as a float 2^53 + 1 is 2^53: what was written tells them apart; engines look there only if needed
        exact = nw.col(name).str.contains(f"[{style_of(table, name).decimal}eE]|{_IS_2_TO_53}")
        within = (column < EXACT_INTEGER) & (column > -EXACT_INTEGER)
        kept = nw.when(within).then(nw.lit(True)).otherwise(exact)
        return column, column.is_finite() & kept, column.is_finite() & ~kept
    if kind.is_integer() or kind == nw.Decimal:
        exact = nw.when(~_beyond(column)).then(column)  # pyarrow refuses to cast others
        return exact.cast(nw.Float64), ~_beyond(column), _beyond(column)
    if kind.is_numeric() or kind == nw.Boolean:
        number = column if kind == nw.Float64 else column.cast(nw.Float64)
        return number, number.is_finite(), None
    if kind == nw.String:
        raise InvalidInput(
            f"column {name!r}",
            expected="numbers",
            got="text",
            remedy="Convert it first, or give the file itself: decimal commas, thousands and percent "
            "signs are understood there.",
        )
    raise InvalidInput(
        f"column {name!r}", expected="numbers", got=f"a column of type {kind}", remedy="Convert it first."
    )


def _beyond(number: nw.Expr) -> nw.Expr:
    return (number > EXACT_INTEGER) | (number < -EXACT_INTEGER)


def _label(table: Table, name: str, schema: dict[str, DType]) -> tuple[nw.Expr, nw.Expr]:
    kind, column = schema[name], nw.col(name)
    if table.hints.pos_label:
        return label_expressions(labels_of(table, name), kind)
    if kind == nw.Boolean:
        return column.cast(nw.Int8), column.is_null()
    if kind.is_float():
        infinite = (column == math.inf) | (column == -math.inf)
        # Not is_nan: DuckDB answers that from Parquet statistics, which leave NaN out.
        return column, column.is_null() | (~column.is_finite() & ~infinite)
    if kind.is_numeric():
        return column, column.is_null()
    if kind in (nw.String, nw.Categorical, nw.Enum):
        raise InvalidInput(
            f"column {name!r}", f"expected 0 or 1 (1 = qualified), got text; {choice(table, name)}."
        )
    raise InvalidInput(
        f"column {name!r}",
        expected="0 or 1 (1 = qualified)",
        got=f"a column of type {kind}",
        remedy="Convert it first.",
    )


def name_expression(table: Table, name: str, role: str) -> nw.Expr:
    """Names as they are compared: null where there is none."""
    kind, column = table.schema[name], nw.col(name)
    if kind in (nw.Categorical, nw.Enum):
        return column.cast(nw.String)
    if table.text:
        return nw.when(column != "").then(column)
    if kind == nw.String or kind.is_integer() or (kind == nw.Boolean and role != "id"):
        return column
    raise InvalidInput(f"column {name!r}", expected="names or whole numbers", got=f"a column of type {kind}")


def any_of(conditions: Iterable[Any]) -> nw.Expr:
    """Rows of which one of these is true."""
    either: nw.Expr = reduce(operator.or_, conditions)
    return either
