"""What calibration asks of a table of whole pools: the qualified rows with their pool, and counts by pool.

Only qualified rows are fetched; how many pools there are is counted where the table is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.tables.evidence import CalibrationRows, Checks, TableEvidence, calibration_rows
from surelist.tables.roles import GROUP, POOL, RANK, ROWS, SCORE, Columns, find_columns
from surelist.tables.sources import Table
from surelist.tables.thresholds import with_ranks

LISTED = ROWS + "_listed"


@dataclass(frozen=True)
class PooledRows:
    """The qualified rows of all pools, what was counted of all rows, and how many pools there are.

    ``unscored`` of the pools have no row with a score: nobody of them can be listed.
    """

    counted: CalibrationRows
    pools: int
    unscored: int
    scores: NDArray[np.float64]
    codes: NDArray[np.int64]
    groups: NDArray[Any] | None = None

    @property
    def counts(self) -> TableEvidence:
        return self.counted.evidence[None]


def pooled_rows(
    table: Table, names: Mapping[str, str | None], *, by_rank: bool = False, **checks: Unpack[Checks]
) -> PooledRows:
    """Whole pools of a table, after the same checks as for rows; by rank, scores are minus ranks."""
    counted = calibration_rows(table, [None], {**names, "group": None}, **checks)
    evidence = counted.evidence[None]
    columns, frame = evidence.scores.columns, evidence.scores.frame
    pools, unscored = _pools(columns)
    if pools > evidence.rows:
        raise InvalidInput(
            f"column {columns.names['score']!r}",
            f"{unscored:,} of {pools:,} pools have no row with a score, and there are only "
            f"{evidence.rows:,} rows with one; {option('on_bad_rows', 'drop')} is for a few bad rows.",
        )
    group = {} if names.get("group") is None else {GROUP: find_columns(table, **names).group}
    if group:
        assert columns.label is not None
        qualified = columns.frame.filter(columns.usable).filter(columns.label == 1)
        frame = qualified.with_columns(**{SCORE: columns.score, POOL: columns.pool}, **group)
    if by_rank:
        assert columns.label is not None
        ranked = with_ranks(columns, keep_order=False).filter(columns.label == 1)
        frame = ranked.with_columns(nw.col(RANK).alias(SCORE), **group)
    columns.table.say("fetching the qualified rows of all pools")
    with columns.table.reading():
        fetched = columns.table.engine.columns(frame.select(SCORE, POOL, *group), (SCORE,))
    groups = _groups(fetched[GROUP], names) if group else None
    return PooledRows(counted, pools, unscored, fetched[SCORE], _codes(fetched[POOL]), groups)


def _groups(values: Any, names: Mapping[str, str | None]) -> NDArray[Any]:
    missing = sum(each is None for each in values)
    if missing:
        raise InvalidInput(
            f"column {names['group']!r}",
            f"{missing:,} qualified rows have no group. Map missing values to a name of their own, e.g. "
            '"unknown".',
        )
    return np.asarray([str(each) for each in values], dtype=object)


def pool_totals(counted: CalibrationRows, threshold: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of each pool, and how many of them are qualified and score at least ``threshold``."""
    columns = counted.evidence[None].scores.columns
    assert columns.pool is not None
    assert columns.label is not None
    _pools(columns)
    listed = nw.when((columns.label == 1) & (columns.score >= threshold)).then(1).otherwise(0)
    marked = columns.frame.filter(columns.usable).with_columns(**{POOL: columns.pool, LISTED: listed})
    by_pool = marked.select(POOL, LISTED).group_by(POOL).agg(nw.len().alias(ROWS), nw.col(LISTED).sum())
    rows = columns.rows(by_pool, "counting by pool")
    return np.array([row[1] for row in rows]), np.array([row[2] for row in rows])


def _pools(columns: Columns) -> tuple[int, int]:
    """How many pools there are, and how many of them have no row with a score.

    A pool whose rows are all dropped is still one: leaving it out would choose pools by their scores.
    """
    if columns.pool is None:
        raise InvalidInput(
            "pool", f"whole pools need the column that says which pool a row is in; pass {option('pool')}."
        )
    everyone = columns.frame.select(**{POOL: columns.pool})
    asked = everyone.select(nw.col(POOL).n_unique().alias(ROWS), nw.col(POOL).null_count().alias(LISTED))
    pools, missing = columns.rows(asked, "counting pools")[0]
    if missing:
        raise InvalidInput(
            f"column {columns.names['pool']!r}",
            f'{missing:,} rows have no pool. Every row needs one, for example "unknown".',
        )
    scored = columns.frame.filter(columns.usable).select(**{POOL: columns.pool})
    with_score = columns.rows(scored.select(nw.col(POOL).n_unique().alias(ROWS)), "counting pools")[0][0]
    return int(pools), int(pools) - int(with_score)


def _codes(values: Any) -> NDArray[np.int64]:
    """Pools as numbers, in any order."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return check.as_codes(values, len(values))[0] if len(values) else np.empty(0, dtype=np.int64)
    numbers: dict[Any, int] = {}
    return np.fromiter((numbers.setdefault(each, len(numbers)) for each in values), np.int64, len(values))
