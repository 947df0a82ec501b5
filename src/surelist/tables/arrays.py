"""Whole columns, for the uses that need every row: the guarantee curve, weights, reviews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from surelist.errors import InvalidInput
from surelist.tables.roles import GROUP, ID, LABEL, SCORE, find_columns, require_column
from surelist.tables.sources import Table, open_table

WEIGHT = "weight"


def read_columns(source: Any, columns: Mapping[str, str | None]) -> dict[str, Any]:
    """Columns by role, in row order: scores, labels and weights as float64, others as text."""
    table = source if isinstance(source, Table) else open_table(source)
    if not table.engine.ordered:
        raise InvalidInput(f"{table.name}: has no row order, which this needs. Read it into a DataFrame.")
    weight = columns.get(WEIGHT)
    found = find_columns(table, **{role: name for role, name in columns.items() if role != WEIGHT})
    roles: dict[str, Any] = {SCORE: found.score}
    for alias, expression in ((LABEL, found.label), (GROUP, found.group), (ID, found.ident)):
        if expression is not None:
            roles[alias] = expression
    table.say("reading columns")
    with table.reading():
        arrays = table.engine.columns(found.frame.with_columns(**roles).select(*roles), (SCORE, LABEL))
    named = {SCORE: "score", LABEL: "label", GROUP: "group", ID: "id"}
    result = {named[alias]: values for alias, values in arrays.items()}
    if weight is not None:
        result[WEIGHT] = read_columns(table, {"score": weight})["score"]
    return result


def read_text(source: Any, columns: Mapping[str, str | None]) -> dict[str, list[str | None]]:
    """Columns by role as text, in row order; None where there is nothing."""
    table = source if isinstance(source, Table) else open_table(source)
    wanted = {role: name for role, name in columns.items() if name is not None}
    for role, name in wanted.items():
        require_column(table, role, name)
    texts = {role: nw.col(name).cast(nw.String) for role, name in wanted.items()}
    table.say("reading columns")
    with table.reading():
        rows = table.engine.rows(table.frame.select(**texts))
    found = {role: [row[place] for row in rows] for place, role in enumerate(wanted)}
    return {role: [None if not value else str(value) for value in values] for role, values in found.items()}
