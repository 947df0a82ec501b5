"""A pool counted against marks of the calibration scores, asked of an engine: one pass, a few counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from surelist._dataclasses import dataclass, field
from surelist.pool_counts import PoolCounts
from surelist.tables.bad_rows import count_states
from surelist.tables.roles import GROUP, POOL, PREFIX, Columns

EDGE, EXACT = PREFIX + "edge", PREFIX + "exact"
MOST_POOLS = 50  # of more, scores are not counted pool by pool
MOST_GROUPS = 20  # of more the scores are not counted: each adds its marks to the query

Marks = Mapping[str | None, Sequence[float]]
Sizes = dict[tuple[Any, ...], tuple[int, int]]  # rows with and without a score, by pool and group


@dataclass(frozen=True)
class PoolScores:
    """Sizes, and how scores lie about the marks: by group, and by pool and group where that was asked for."""

    sizes: Sizes
    groups: dict[str | None, PoolCounts] = field(default_factory=dict)
    pools: dict[Any, dict[str | None, PoolCounts]] = field(default_factory=dict)


def count_pool(columns: Columns, marks: Marks, *, by_pool: bool = False) -> PoolScores:
    """Rows with and without a score, by group as the table has it; and how scores lie about the marks."""
    edge: nw.Expr = nw.lit(None, nw.Float64)
    for group, scores in marks.items():
        member = columns.member(group)
        reached = nw.when(columns.score >= scores[0]).then(_highest_reached(columns.score, scores))
        edge = reached if member is None else nw.when(member).then(reached).otherwise(edge)
    frame = columns.frame.with_columns(edge.alias(EDGE))  # once: it is long
    exact = nw.when(columns.score == nw.col(EDGE)).then(nw.lit(1)).otherwise(nw.lit(0))
    usable = nw.when(columns.usable).then(nw.lit(1)).otherwise(nw.lit(0))
    keys = {POOL: columns.pool} if by_pool and columns.pool is not None else {}
    keys |= {GROUP: columns.group} if columns.group is not None else {}
    counted = count_states(columns, frame, usable, {**keys, EDGE: nw.col(EDGE), EXACT: exact})
    sizes: dict[tuple[Any, ...], list[int]] = {}
    parts: dict[tuple[Any, ...], dict[str | None, Counter[tuple[Any, int]]]] = {(): {}}
    for (*key, mark, same, good), rows in counted.items():
        sizes.setdefault(tuple(key), [0, 0])[1 - good] += rows
        name = str(key[-1]) if columns.group is not None else None
        if good and name in marks:
            for pool in ((), tuple(key[:1])) if by_pool else ((),):  # all pools, and its own
                parts.setdefault(pool, {}).setdefault(name, Counter())[mark, int(same)] += rows
    counts = {
        pool: {group: _counts(marks[group], groups[group]) for group in marks if group in groups}
        for pool, groups in parts.items()
    }
    together = {group: counts[()].get(group) or _counts(marks[group], {}) for group in marks}
    pools = {pool[0]: groups for pool, groups in counts.items() if pool}
    return PoolScores({key: (good, bad) for key, (good, bad) in sizes.items()}, together, pools)


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
