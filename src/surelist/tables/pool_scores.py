"""A pool counted against marks of the calibration scores, asked of an engine: one pass, a few counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from surelist.pool_counts import PoolCounts
from surelist.tables.bad_rows import count_keys
from surelist.tables.roles import GROUP, PREFIX, Columns

EDGE, EXACT = PREFIX + "edge", PREFIX + "exact"
MOST_GROUPS = 20  # of more the scores are not counted: each adds its marks to the query

Marks = Mapping[str | None, Sequence[float]]


def count_pool(columns: Columns, marks: Marks) -> dict[str | None, PoolCounts]:
    """Per group, how its candidates with a score lie about its marks."""
    if not marks or len(marks) > MOST_GROUPS:
        return {}
    edge: nw.Expr = nw.lit(None, nw.Float64)
    for group, scores in marks.items():
        member = columns.member(group)
        own = nw.when(columns.score >= scores[0]).then(_highest_reached(columns.score, scores))
        edge = own if member is None else nw.when(member).then(own).otherwise(edge)
    exact = nw.when(columns.score == edge).then(nw.lit(1)).otherwise(nw.lit(0))
    keys = {GROUP: columns.group} if columns.group is not None else {}
    rows = columns.frame.filter(columns.usable)
    counted = count_keys(columns, rows, {**keys, EDGE: edge, EXACT: exact}, "counting the pool's scores")
    by_group: dict[str | None, dict[tuple[Any, int], int]] = {group: {} for group in marks}
    for (*key, reached, same), rows_there in counted.items():
        name = str(key[0]) if key else None
        if name in by_group:
            by_group[name][reached, int(same)] = rows_there
    return {group: _counts(marks[group], parts) for group, parts in by_group.items()}


def _highest_reached(score: nw.Expr, marks: Sequence[float]) -> nw.Expr:
    """The highest mark at or below a score, by bisection."""
    if len(marks) == 1:
        return nw.lit(marks[0])
    half = len(marks) // 2
    upper, lower = _highest_reached(score, marks[half:]), _highest_reached(score, marks[:half])
    return nw.when(score >= marks[half]).then(upper).otherwise(lower)


def _counts(marks: Sequence[float], parts: Mapping[tuple[Any, int], int]) -> PoolCounts:
    inside = [parts.get((mark, 0), 0) + parts.get((mark, 1), 0) for mark in marks]
    exact = [parts.get((mark, 1), 0) for mark in marks]
    return PoolCounts(
        sum(parts.values()),
        tuple(sum(inside[number:]) for number in range(len(marks))),
        parts.get((marks[-1], 0), 0),
        sum(exact),
        sum(each > 0 for each in exact),
    )
