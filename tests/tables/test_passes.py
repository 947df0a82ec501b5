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


def asked_of(path: Any, monkeypatch: Any) -> tuple[Any, list[str], list[str]]:
    """A policy from a CSV file, what was said of each pass, and the plans of those but for the one that reads
    plain rows."""
    asked: list[str] = []
    for name in ("rows", "columns", "held"):
        noted(monkeypatch, DuckDB, name, lambda frame: asked.append(frame.to_native().explain()))
    said: list[str] = []
    target, groups = {name: sl.Expected(2, 50) for name in "ab"}, sl.Groups("group", purpose="a test")
    policy = sl.calibrate_table(
        path, score="score", label="label", target=target, groups=groups, progress=said.append
    )
    arrays = sl.calibrate(SCORES, LABELS, target, groups=sl.Groups(GROUPS, purpose="a test"))
    assert policy.cutoffs == arrays.cutoffs
    return policy, said, asked


def test_plain_text_is_parsed_once_into_memory(tmp_path, monkeypatch):
    path = tmp_path / "past.csv"
    pl.DataFrame({"score": SCORES, "label": LABELS.astype(int), "group": GROUPS}).write_csv(path)
    _, said, asked = asked_of(path, monkeypatch)
    assert said == ["looking at how numbers are written", "reading scores and labels"]
    assert len(asked) == 1


@pytest.mark.parametrize("most", [1 << 30, 0], ids=["in memory", "on a disk"])
def test_text_is_parsed_once(most, tmp_path, monkeypatch):
    """The numbers of a CSV file are held for the second pass; those of a large one in a Parquet file."""
    monkeypatch.setattr("surelist.tables.engines.duckdb.HELD", most)
    path = tmp_path / "past.csv"
    labels = LABELS.astype(int) if most == 0 else LABELS  # true and false are no plain numbers
    pl.DataFrame({"score": SCORES, "label": labels, "group": GROUPS}).write_csv(path)
    _, said, asked = asked_of(path, monkeypatch)
    scans = [plan for plan in asked if "READ_CSV" in plan.upper()]
    assert len(asked) == 4  # how numbers are written, text, counts, scores around the thresholds
    assert len(said) == 5  # and an attempt to read plain rows
    assert len(scans) == 2  # of which the first looks at a few rows
    assert any("READ_PARQUET" in plan.upper() for plan in asked) == (most == 0)


ODD = {
    "plain": ("0.5,1,a", None), "a blank": (" 0.5,1,a", None), "a word": ("0.5,true,a", None), "a fraction": ("0.5,1.0,a", None),
    "no score": (",1,a", "finite"), "no number": ("x,1,a", "finite"), "nan": ("nan,1,a", "finite"), "infinite": ("inf,1,a", "finite"),
    "too large": ("9007199254740993,1,a", "order"), "too low": ("-9007199254740993,1,a", "order"),
    "no label": ("0.5,,a", "missing labels"), "a wrong label": ("0.5,2,a", "expected 0 or 1"),
    "half a label": ("0.5,0.6,a", "expected 0 or 1"), "no group": ("0.5,1,", "missing group"), "another group": ("0.5,1,c", "unknown group 'c'"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_row_of_text_counts_as_it_does_elsewhere(odd, tmp_path):
    """As in a DataFrame where the row is fine; else the same refusal, which names its row."""
    row, refused = ODD[odd]
    rows = [f"{score},{label:d},{group}" for score, label, group in zip(SCORES, LABELS, GROUPS, strict=True)]
    path = tmp_path / "past.csv"
    path.write_text("\n".join(["score,label,group", *rows[:1000], row, *rows[1000:2000]]) + "\n")
    target, groups = {name: sl.Expected(1, 50) for name in "ab"}, sl.Groups("group", purpose="a test")

    def calibrated(table: Any) -> Any:
        return sl.calibrate_table(table, score="score", label="label", target=target, groups=groups)

    if refused is not None:
        with pytest.raises(sl.InvalidInput, match=refused) as error:
            calibrated(path)
        assert "spreadsheet row 1002" in str(error.value)
        return
    extra: dict[str, Any] = {"score": (SCORES, 0.5), "label": (LABELS, True), "group": (GROUPS, "a")}
    table = pl.DataFrame({name: np.insert(each[:2000], 1000, one) for name, (each, one) in extra.items()})
    assert calibrated(path).cutoffs == calibrated(table).cutoffs
