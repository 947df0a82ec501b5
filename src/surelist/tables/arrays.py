"""Whole columns, for the uses that need every row: the guarantee curve, weights, reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surelist._check import OnBadRows
from surelist.errors import InvalidInput
from surelist.tables import bad_rows
from surelist.tables.engines import Files
from surelist.tables.reading import style_of
from surelist.tables.roles import (
    EXACT_INTEGER,
    GROUP,
    ID,
    LABEL,
    POOL,
    SCORE,
    Columns,
    find_columns,
    number_columns,
    require_column,
)
from surelist.tables.sources import Table, open_table

WEIGHT = "weight"
MOST_GROUPS = 60  # that a byte tells apart, with a label


def read_columns(
    source: object,
    columns: Mapping[str, str | None],
    on_bad_rows: OnBadRows = "error",
    *,
    numbers: Mapping[str, str] | None = None,
    any_order: bool = False,
    every_label: bool = False,
) -> dict[str, Any]:
    """Columns by role, in row order: scores, labels and weights as float64, others as text.

    Scores are finite and labels 0, 1 or NaN (missing, unless ``every_label``); other rows are refused as in
    calibration, or rows without a finite score left out with ``on_bad_rows="drop"``. ``numbers`` are
    further columns, NaN where there is no number. With ``any_order`` rows may come in any, all their
    columns together.
    """
    table = source if isinstance(source, Table) else open_table(source)
    if not (table.engine.ordered or any_order):
        raise InvalidInput(table.name, "has no row order, which this needs. Read it into a DataFrame.")
    weight = columns.get(WEIGHT)
    table, more = number_columns(table, numbers or {})
    roles = find_columns(table, **{role: name for role, name in columns.items() if role != WEIGHT})
    wanted: dict[str, nw.Expr] = {SCORE: nw.when(roles.usable).then(roles.score)}
    optional = {LABEL: roles.label, GROUP: roles.group, ID: roles.ident, POOL: roles.pool}
    wanted |= {alias: each for alias, each in optional.items() if each is not None} | more
    asked = roles.frame.with_columns(**wanted).select(*wanted)
    fetched = table.arrays(asked, "reading columns", (SCORE, LABEL, *more))
    if on_bad_rows == "drop":
        finite = np.isfinite(fetched[SCORE])
        bad_rows.stop_for(roles, bad_rows.lost_order(roles, int(np.count_nonzero(~finite))))
        fetched = {alias: np.asarray(values)[finite] for alias, values in fetched.items()}
    _stop_for_bad_rows(roles, fetched[SCORE], fetched.get(LABEL), every_label)
    named = {SCORE: "score", LABEL: "label", GROUP: "group", ID: "id", POOL: "pool"}
    arrays = {named.get(alias, alias): values for alias, values in fetched.items()}
    if weight is not None:
        arrays[WEIGHT] = read_columns(table, {"score": weight})["score"]
    return arrays


def plain_rows(
    table: Table, names: Mapping[str, str | None], groups: Sequence[str | None]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.uint8]] | None:
    """Scores, who is qualified, and the number of each row's group: of a CSV file, parsed once.

    None where a closer look is needed: the file is large, some score or label is not plainly a number, or
    some row has none of these groups.
    """
    roles = {role: name for role, name in names.items() if name is not None}
    known = [each for each in groups if each is not None]
    plain = table.origin.plain and not table.hints.pos_label
    there = {"score", "label"} <= roles.keys() <= {"score", "label", "group"} and {*roles.values()} <= {
        *table.columns
    }
    if not (plain and there and len(known) <= MOST_GROUPS and style_of(table, roles["score"]).plain):
        return None
    table.say("reading scores and labels")
    files = Files(list(table.paths), "csv", table.origin.delimiter)
    group = {roles["group"]: known} if "group" in roles else {}
    with table.reading():
        read = table.engine.plain_rows(files, table.size, roles["score"], roles["label"], group)
    if read is None or not len(read[0]):
        return None
    scores, codes = read
    states = np.bincount(codes, minlength=256).reshape(-1, 4)
    exact = scores.min() > -EXACT_INTEGER and scores.max() < EXACT_INTEGER  # of NaN neither
    if not exact or states[:, 2:].any() or states[max(len(known), 1) :].any():
        return None
    return scores, (codes & 1).view(np.bool_), codes >> 2


def _stop_for_bad_rows(
    columns: Columns, scores: NDArray[np.float64], labels: NDArray[np.float64] | None, every_label: bool
) -> None:
    """The table is asked again only where something is wrong: for the rows to show."""
    unusable = int(np.count_nonzero(~np.isfinite(scores)))
    problems = bad_rows.unusable_scores(columns, unusable)
    if labels is not None:
        strange = ~((labels == 0) | (labels == 1) | np.isnan(labels)) & np.isfinite(scores)
        problems += bad_rows.wrong_labels(columns, int(np.count_nonzero(strange)))
        missing = np.isnan(labels) & np.isfinite(scores)
        problems += bad_rows.missing_labels(columns, int(np.count_nonzero(missing)) if every_label else 0)
    bad_rows.stop_for(columns, problems)


def read_text(source: object, columns: Mapping[str, str | None]) -> dict[str, list[str | None]]:
    """Columns by role as text, in row order; None where there is nothing."""
    table = source if isinstance(source, Table) else open_table(source)
    wanted = {role: require_column(table, role, name) for role, name in columns.items() if name is not None}
    texts = {role: nw.col(name).cast(nw.String) for role, name in wanted.items()}
    rows = table.rows(table.frame.select(**texts), "reading columns")
    by_role = {role: [row[number] for row in rows] for number, role in enumerate(wanted)}
    return {role: [None if not value else str(value) for value in values] for role, values in by_role.items()}
