"""How often a table is read: calibration counts in one pass and fetches the scores that decide in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.tables.engines.duckdb import DuckDB
from surelist.tables.engines.polars import Polars

rng = np.random.default_rng(3)
SCORES, LABELS = rng.random(20_000), rng.random(20_000) < 0.2
GROUPS = np.where(rng.random(20_000) < 0.3, "a", "b")
PASSES = {"probabilities": 2, "rounded": 1, "points": 3}


def scores(kind: str) -> Any:
    return {"probabilities": SCORES, "rounded": SCORES.round(1), "points": 300 + 550 * SCORES}[kind]


def noted(monkeypatch: Any, engine: Any, name: str, note: Callable[[Any], None]) -> None:
    """Every frame that this method of the engine gets."""
    method = getattr(engine, name)

    def noting(self: Any, frame: Any, *more: Any) -> Any:
        note(frame)
        return method(self, frame, *more)

    monkeypatch.setattr(engine, name, noting)


@pytest.mark.parametrize("kind", PASSES)
@pytest.mark.parametrize("grouped", [False, True], ids=["together", "groups"])
@pytest.mark.parametrize("engine", [Polars, DuckDB])
def test_a_table_is_calibrated_on_in_two_passes_with_its_summary(kind, grouped, engine, monkeypatch):
    asked: list[int] = []
    for name in ("rows", "columns"):
        noted(monkeypatch, engine, name, lambda frame: asked.append(1))
    frame: Any = pl.LazyFrame({"score": scores(kind), "label": LABELS, "group": GROUPS})
    table = frame if engine is Polars else duckdb.from_arrow(frame.collect().to_arrow())
    target: Any = sl.Expected(5, 100)
    where: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    if grouped:
        target = {name: sl.Expected(2, 50) for name in "ab"}
        where, arrays = ({"groups": sl.Groups(names, purpose="a test")} for names in ("group", GROUPS))
    policy = sl.calibrate_table(table, score="score", label="label", target=target, **where)
    assert len(asked) == PASSES[kind]
    assert policy.cutoffs == sl.calibrate(scores(kind), LABELS, target, **arrays).cutoffs


@pytest.mark.parametrize("most", [1 << 30, 0], ids=["in memory", "on a disk"])
def test_text_is_parsed_once(most, tmp_path, monkeypatch):
    """The numbers of a CSV file are held for the second pass; those of a large one in a Parquet file."""
    monkeypatch.setattr("surelist.tables.engines.duckdb.HELD", most)
    path = tmp_path / "past.csv"
    pl.DataFrame({"score": SCORES, "label": LABELS.astype(int), "group": GROUPS}).write_csv(path)
    asked: list[str] = []
    for name in ("rows", "columns", "held"):
        noted(monkeypatch, DuckDB, name, lambda frame: asked.append(frame.to_native().explain()))
    said: list[str] = []
    target, groups = {name: sl.Expected(2, 50) for name in "ab"}, sl.Groups("group", purpose="a test")
    policy = sl.calibrate_table(
        path, score="score", label="label", target=target, groups=groups, progress=said.append
    )
    scans = [plan for plan in asked if "READ_CSV" in plan.upper()]
    assert len(said) == len(asked) == 4  # how numbers are written, text, counts, scores around the thresholds
    assert len(scans) == 2  # of which the first looks at a few rows
    assert any("READ_PARQUET" in plan.upper() for plan in asked) == (most == 0)
    arrays = sl.calibrate(SCORES, LABELS, target, groups=sl.Groups(GROUPS, purpose="a test"))
    assert policy.cutoffs == arrays.cutoffs
