"""Whole columns, for the uses that need every row: the guarantee curve, weights, reviews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

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
    arrays = _fetch(table, found.frame.with_columns(**roles).select(*roles), list(roles))
    named = {SCORE: "score", LABEL: "label", GROUP: "group", ID: "id"}
    result = {named[alias]: values for alias, values in arrays.items()}
    if weight is not None:
        result[WEIGHT] = read_columns(table, {"score": weight})["score"]
    return result


def _fetch(table: Table, frame: Any, names: list[str]) -> dict[str, Any]:
    table.say("reading columns")
    native = frame.to_native()
    with table.reading():
        if table.engine.name == "duckdb":
            raw = native.fetchnumpy()
            return {name: _filled(raw[name], name) for name in names}
        eager = frame if table.engine.name == "eager" else frame.collect()
    return {name: _plain(eager[name].to_list(), name) for name in names}


def _filled(values: Any, name: str) -> Any:
    """DuckDB gives a masked array where there are nulls."""
    mask = np.ma.getmaskarray(values)
    if name in (SCORE, LABEL):
        numbers = np.array(np.ma.getdata(values), dtype=np.float64)
        numbers[mask] = np.nan
        return numbers
    return _plain([None if gone else value for value, gone in zip(values, mask, strict=True)], name)


def _plain(values: list[Any], name: str) -> Any:
    if name in (SCORE, LABEL):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return values


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
