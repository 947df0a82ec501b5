"""The score summary of calibration rows, asked of an engine: one pass, only bins and sums come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from surelist import score_summary
from surelist.score_summary import Bins, Reached, RowSummary, Sums
from surelist.tables.roles import GROUP, PREFIX, SCORE, Columns

BIN, QUALIFIED, LOW, HIGH, ROWS, FIRST, SECOND = (
    PREFIX + name for name in ("bin", "qualified", "low", "high", "rows", "first", "second")
)
Thresholds = Mapping[Any, Sequence[float]]  # by group as the table has it; None without groups


def summarise_rows(
    columns: Columns, low: float, high: float, thresholds: Thresholds
) -> dict[Any, RowSummary]:
    """Per group a summary of its usable rows; ``low`` and ``high`` span the qualified scores."""
    assert columns.label is not None
    score, keys = nw.col(SCORE), [GROUP] if columns.group is not None else []
    roles = {SCORE: columns.score} | ({GROUP: columns.group} if columns.group is not None else {})
    qualified = nw.when(columns.label == 1).then(nw.lit(1)).otherwise(nw.lit(0))
    frame = columns.frame.filter(columns.usable).with_columns(**roles, **{QUALIFIED: qualified})
    frame = frame.select(*roles, QUALIFIED)
    first, second = score_summary.digits(score, lambda each: each.floor())
    bins = score_summary.binned(score, low, high, lambda each: each.sqrt()).floor().cast(nw.Int32)
    bins = bins - (score < low).cast(nw.Int32) + (score > high).cast(nw.Int32)
    frame = frame.with_columns(
        **{BIN: bins, FIRST: first.cast(nw.Int64), SECOND: second.cast(nw.Int64)}
    ).with_columns(**{SECOND: score_summary.mixed(nw.col(FIRST), nw.col(SECOND))})
    counted = _counted(thresholds)
    frame = frame.with_columns(**counted) if counted else frame
    once = [FIRST, SECOND, *counted]
    twice = {f"{name}_q": nw.col(name) * nw.col(QUALIFIED) for name in once}
    summed = [QUALIFIED, *once, *twice]
    counts = (
        frame.with_columns(**twice)
        .group_by(*keys, BIN)
        .agg(
            nw.len().alias(ROWS),
            score.min().alias(LOW),
            score.max().alias(HIGH),
            *(nw.col(name).sum().alias(f"{name}_sum") for name in summed),
        )
    )
    rows = columns.rows(counts, "summing up the scores")
    by_group: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_group.setdefault(row[0] if keys else None, []).append(row[len(keys) + 1 :])
    return {group: _summary(parts) for group, parts in by_group.items()}


def _counted(thresholds: Thresholds) -> dict[str, nw.Expr]:
    """Columns that are 1 for rows at, and for rows above, each threshold of their group."""
    score = nw.col(SCORE)
    counts: dict[str, nw.Expr] = {}
    for number in range(max(len(each) for each in thresholds.values())):
        at, above = nw.lit(0), nw.lit(0)
        for group, values in thresholds.items():
            inside = score >= values[number], score > values[number]
            if group is not None:
                member = nw.col(GROUP) == group
                inside = inside[0] & member, inside[1] & member
            at = nw.when(inside[0]).then(nw.lit(1)).otherwise(at)
            above = nw.when(inside[1]).then(nw.lit(1)).otherwise(above)
        counts |= {f"{PREFIX}at{number}": at, f"{PREFIX}above{number}": above}
    return counts


def _summary(parts: list[tuple[Any, ...]]) -> RowSummary:
    """From rows of (rows, low, high, qualified, sums, sums over the qualified)."""
    parts = sorted(parts, key=lambda part: part[1])
    rows, low, high, good_rows = (np.array(each) for each in list(zip(*parts, strict=True))[:4])
    bins = Bins(low.astype(float), high.astype(float), rows.astype(np.int64), good_rows.astype(np.int64))
    totals = [sum(int(part[at]) for part in parts) for at in range(3, len(parts[0]))]
    qualified, sums = totals[0], totals[1:]
    half = len(sums) // 2
    everyone, good = sums[:half], sums[half:]
    kept = score_summary.summarise(bins)
    digest = score_summary.fingerprint(kept, qualified, Sums(*everyone[:2]), Sums(*good[:2]))
    reached = [Reached(everyone[at], good[at], everyone[at + 1], good[at + 1]) for at in range(2, half, 2)]
    return RowSummary(kept, digest, tuple(reached))
