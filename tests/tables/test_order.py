"""Exact order statistics by counting, against sorting: any finite scores, any sizes of fetch."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surelist.errors import SurelistError
from surelist.tables import order_statistics as order
from surelist.tables.engines.duckdb import DuckDB
from surelist.tables.engines.eager import Eager

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
SCORES = st.lists(
    st.one_of(FINITE, st.sampled_from([0.0, -0.0, 0.1, 0.5, 1.0, 5e-324, -5e-324, 1.7976931348623157e308])),
    min_size=1,
    max_size=60,
)


def statistics(scores: list[float], engine: str) -> order.OrderStatistics:
    if engine == "polars":
        frame: Any = nw.from_native(pl.DataFrame({"s": scores}))
        runner: Any = Eager()
    else:
        relation = duckdb.connect(":memory:").from_arrow(pa.table({"s": pa.array(scores, pa.float64())}))
        frame, runner = nw.from_native(relation), DuckDB()
    return order.OrderStatistics(frame, lambda f, _: runner.rows(f), score="s", group=None)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "fetch"), [("polars", 1), ("polars", 1000), ("duckdb", 5)])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scores=SCORES)
def test_every_order_statistic(
    engine: str, fetch: int, scores: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "FETCH", fetch)
    found = statistics(scores, engine).find({None: range(1, len(scores) + 1)})
    assert [found[None, c] for c in range(1, len(scores) + 1)] == sorted(scores, reverse=True)


def test_few_bins_and_much_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of 2 force dozens of passes; the answer stays exact."""
    monkeypatch.setattr(order, "FETCH", 2)
    monkeypatch.setattr(order, "BINS", 2)
    monkeypatch.setattr(order, "STRIDE", 4)
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.random(50) * 1e-200, rng.random(50), rng.random(50) * 1e200, -rng.random(9)])
    wanted = [1, 40, 90, 120, 155, 159]
    found = statistics(scores.tolist(), "polars").find({None: wanted})
    ordered = np.sort(scores)[::-1]
    assert [found[None, c] for c in wanted] == [ordered[c - 1] for c in wanted]


def test_only_counts_come_back() -> None:
    """However many rows: at most one line per bin, then at most the scores of one bin."""
    rng = np.random.default_rng(1)
    scores = rng.random(1_000_000)
    frame = nw.from_native(pl.DataFrame({"s": scores}))
    fetched: list[int] = []

    def run(frame: Any, _: str) -> list[tuple[Any, ...]]:
        rows = Eager().rows(frame)
        fetched.append(len(rows))
        return rows

    found = order.OrderStatistics(frame, run, score="s", group=None).find({None: [300_000]})
    assert found[None, 300_000] == np.sort(scores)[-300_000]
    assert len(fetched) == 2
    assert fetched[0] <= order.BINS + 1
    assert fetched[1] < 2 * len(scores) / order.BINS


def test_an_engine_whose_bins_overlap_is_not_believed() -> None:
    with pytest.raises(SurelistError, match="overlap"):
        order._descending(None, [(0, 1, 0.1, 0.3), (1, 1, 0.2, 0.4)], 0)
    with pytest.raises(SurelistError, match="overlap"):
        order._descending(None, [(0, 1, math.nan, math.nan)], 0)
