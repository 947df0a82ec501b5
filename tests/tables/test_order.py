"""Exact order statistics by counting, against sorting: any finite scores, any sizes of fetch."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from surelist import score_summary
from surelist.errors import SurelistError
from surelist.tables import order_statistics as order
from surelist.tables.engines.base import Engine
from surelist.tables.engines.eager import Eager
from surelist.tables.roles import SCORE, find_columns
from surelist.tables.sources import open_table

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
SCORES = st.lists(
    st.one_of(FINITE, st.sampled_from([0.0, -0.0, 0.1, 0.5, 1.0, 5e-324, -5e-324, 1.7976931348623157e308])),
    min_size=1,
    max_size=60,
)


def statistics(scores: Any, engine: str) -> order.OrderStatistics:
    table: Any = pl.DataFrame({"s": scores})
    if engine == "duckdb":
        table = duckdb.connect(":memory:").from_arrow(pa.table({"s": pa.array(scores, pa.float64())}))
    columns = find_columns(open_table(table), score="s")
    return order.OrderStatistics(columns, columns.frame.select(**{SCORE: columns.score}), grouped=False)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "fetch"), [("polars", 1), ("polars", 1000), ("duckdb", 5)])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scores=SCORES)
def test_every_order_statistic(
    engine: str, fetch: int, scores: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "few", fetch)
    found = statistics(scores, engine).find({None: range(1, len(scores) + 1)})
    assert [found[None, c].low for c in range(1, len(scores) + 1)] == sorted(scores, reverse=True)


def test_few_bins_and_much_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of 2 force dozens of passes; the answer stays exact."""
    monkeypatch.setattr(Engine, "few", 2)
    monkeypatch.setattr(order, "BINS", 2)
    monkeypatch.setattr(order, "LINES", 2)
    monkeypatch.setattr(score_summary, "BINS", 2)
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.random(50) * 1e-200, rng.random(50), rng.random(50) * 1e200, -rng.random(9)])
    wanted = [1, 40, 90, 120, 155, 159]
    found = statistics(scores.tolist(), "polars").find({None: wanted})
    ordered = np.sort(scores)[::-1]
    assert [found[None, c].low for c in wanted] == [ordered[c - 1] for c in wanted]


def test_only_counts_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows: at most one line per bin, then at most the scores of one bin."""
    fetched: list[int] = []
    plain = Eager.columns

    def counting(self: Eager, frame: Any, numbers: Any) -> dict[str, Any]:
        fetched.append(len(frame))
        return plain(self, frame, numbers)

    monkeypatch.setattr(Eager, "columns", counting)
    scores = np.random.default_rng(1).random(1_000_000)
    found = statistics(scores, "polars").find({None: [300_000]})
    assert found[None, 300_000].low == np.sort(scores)[-300_000]
    assert len(fetched) == 2
    assert fetched[0] <= score_summary.BINS + 1
    assert fetched[1] < 2 * len(scores) / score_summary.BINS


@pytest.mark.parametrize("kind", ["even", "far", "clustered"])
def test_many_order_statistics_take_few_passes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins that hold much are cut all at once, however many, and those of a cluster on a scale of its own."""
    passes: list[int] = []
    plain = Eager.columns

    def counting(self: Eager, frame: Any, numbers: Any) -> dict[str, Any]:
        passes.append(len(frame))
        return plain(self, frame, numbers)

    monkeypatch.setattr(Eager, "columns", counting)
    monkeypatch.setattr(Engine, "few", 1000)
    rng = np.random.default_rng(2)
    scores = rng.random(100_000)
    if kind == "far":
        scores = 300 + 550 * scores
    elif kind == "clustered":
        scores = np.where(rng.random(100_000) < 0.5, scores, 0.7 + scores * 1e-12)
    wanted = sorted(rng.choice(100_000, 200, replace=False).tolist())
    found = statistics(scores, "polars").find({None: [rank + 1 for rank in wanted]})
    ordered = np.sort(scores)[::-1]
    assert [found[None, rank + 1].low for rank in wanted] == ordered[wanted].tolist()
    assert len(passes) <= 6
    assert max(passes) <= 2 * order.LINES


def parts(lines: list[tuple[int, int, float, float]]) -> order.Parts:
    return order.Parts(*map(np.array, zip(*lines, strict=True)))


def test_an_engine_whose_bins_overlap_is_not_believed() -> None:
    with pytest.raises(SurelistError, match="overlap"):
        order._descending(parts([(0, 1, 0.1, 0.3), (1, 1, 0.2, 0.4)]))
    with pytest.raises(SurelistError, match="overlap"):
        order._descending(parts([(0, 1, math.nan, math.nan)]))
