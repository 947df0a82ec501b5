"""What a selection asks of an engine: few columns, filters where the files are, one pass where that is possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import surelist as sl
from surelist.promises.pool_checks import marks_of
from surelist.score_summary import count_scores
from surelist.tables.engines.duckdb import DuckDB
from surelist.tables.engines.polars import Polars
from tests.helpers.engines import Engine

rng = np.random.default_rng(8)
ROWS = 3_000
SCORES, LABELS = rng.random(ROWS), rng.random(ROWS) < 0.2
GROUPS = np.where(rng.random(ROWS) < 0.3, "a", "b")
LAWS = {
    "probabilities": lambda x: x,
    "rounded": lambda x: np.round(x, 2),
    "points": lambda x: np.floor(300 + 550 * x),
    "logits": lambda x: np.log(x / (1 - x)) * 3,
    "close together": lambda x: 0.5 + x * 2.0**-30,
    "far apart": lambda x: np.exp(1400 * (x - 0.5)),
    "about zero": lambda x: np.where(x < 0.5, -0.0, np.round(x - 0.6, 1)),
}


def calibrated(scores: Any, grouped: bool = True) -> sl.Policy:
    target: Any = {name: sl.Expected(2, 50) for name in "ab"} if grouped else sl.Expected(2, 50)
    groups = sl.Groups(GROUPS, purpose="a test") if grouped else None
    return sl.calibrate(scores, LABELS, target, groups=groups)


@pytest.mark.parametrize("law", LAWS)
def test_a_pool_lies_about_the_calibration_rows_as_arrays_say(law: str, engine: Engine) -> None:
    """New scores, calibration rows that came back, scores beyond the calibration rows, at the marks and cutoffs."""
    change = LAWS[law]
    past = change(SCORES)
    policy = calibrated(past)
    marks = marks_of(policy)
    scores = np.concatenate(
        [
            change(np.random.default_rng(9).random(400)),
            past[:50],
            [past.min() - 1, past.max() * 2 + 1],
            *marks.values(),
            [*policy.thresholds.values()],
        ]
    )
    names = np.where(np.arange(len(scores)) % 3 == 0, "a", "b")
    data = {"score": scores.tolist(), "group": names.tolist()}
    done = sl.select_table(engine.table(data), policy, score="score", group="group", **engine.options)
    assert done.scores is not None
    assert done.scores.groups == {name: count_scores(scores[names == name], marks[name]) for name in marks}
    listed = policy.select(scores, names)
    assert done.groups == {name: (sum(names == name), sum(listed[names == name])) for name in "ab"}
    assert done.checks == policy.checks_of(scores, names, listed)


@pytest.mark.parametrize("most", [ROWS, ROWS - 1], ids=["as many", "one more"])
@pytest.mark.parametrize("other", [None, "c"], ids=["known groups", "another"])
def test_a_small_file_of_too_many_rows_or_other_groups_is_counted_in_the_engine(
    most, other, tmp_path, monkeypatch
):
    """The same counts and refusals in either way."""
    monkeypatch.setattr("surelist.tables.pool_scores.MOST_SCORES", most)
    path, groups = tmp_path / "pool.parquet", np.append(GROUPS[1:], other or "a")
    pl.DataFrame({"score": SCORES, "group": groups}).write_parquet(path)
    policy = calibrated(SCORES)
    asked = plans(monkeypatch, DuckDB)
    how: dict[str, Any] = {"score": "score", "group": "group", "read": sl.Read(engine="duckdb")}
    if other is not None:
        with pytest.raises(sl.InvalidInput, match=r"unknown group 'c'.*row 3000"):
            sl.select_table(path, policy, **how)
        return
    done = sl.select_table(path, policy, **how)
    assert len(asked) == (1 if most == ROWS else 2)
    listed = policy.select(SCORES, groups)
    assert done.checks == policy.checks_of(SCORES, groups, listed)


def test_groups_with_scores_all_over_the_place_are_not_taken_for_a_column_of_names(tmp_path, monkeypatch):
    """Six groups, each with scores in every 2,048th of a unit: more than there may be groups."""
    monkeypatch.setattr("surelist.tables.pool_scores.SMALL", 0)
    scores, groups = np.tile((np.arange(2048) + 0.5) / 2048, 6), np.repeat(list("abcdef"), 2048)
    targets = {name: sl.Expected(2, 50) for name in "abcdef"}
    chosen = sl.Groups(groups, purpose="a test")
    policy = sl.calibrate(scores, np.arange(len(scores)) % 5 == 0, targets, groups=chosen)
    path = tmp_path / "pool.parquet"
    pl.DataFrame({"score": scores, "group": groups}).write_parquet(path)
    done = sl.select_table(path, policy, score="score", group="group", read=sl.Read(engine="duckdb"))
    listed = policy.select(scores, groups)
    assert done.groups == {name: (2048, int(listed[groups == name].sum())) for name in "abcdef"}
    assert done.checks == policy.checks_of(scores, groups, listed)


@pytest.fixture
def wide(tmp_path: Path) -> str:
    """A file with columns that a selection does not need, and rows in the order of their scores."""
    order = np.sort(SCORES)
    more = {name: ["x" * 20] * ROWS for name in ("note", "address")}
    path = tmp_path / "wide.parquet"
    pl.DataFrame({"score": order, "group": GROUPS, **more}).write_parquet(path, row_group_size=100)
    return str(path)


def plans(monkeypatch: pytest.MonkeyPatch, engine: type[Any]) -> list[str]:
    asked: list[str] = []

    def noted(name: str) -> None:
        method = getattr(engine, name)

        def noting(self: Any, frame: Any, *more: Any) -> Any:
            asked.append(frame.to_native().explain())
            return method(self, frame, *more)

        monkeypatch.setattr(engine, name, noting)

    for name in ("rows", "columns"):
        noted(name)
    return asked


# rows by bin, bins with marks and thresholds in them; of a small file the scores: who is listed is among them
@pytest.mark.parametrize(("small", "passes"), [(0, 2), (1 << 24, 1)], ids=["large", "small"])
def test_duckdb_reads_two_columns_to_count_and_filters_in_the_file(small, passes, wide, monkeypatch):
    monkeypatch.setattr("surelist.tables.pool_scores.SMALL", small)
    asked = plans(monkeypatch, DuckDB)
    policy = calibrated(SCORES)
    done = sl.select_table(wide, policy, score="score", group="group", read=sl.Read(engine="duckdb"))
    assert len(asked) == passes
    for plan in asked:
        assert "Projections: score, group" in plan
        assert "note" not in plan
    lowest = min(policy.thresholds.values())
    assert f"Filters: score >= {lowest!r}" in done.table.explain().replace("\n", " ")
    assert done.table.select("note").count("*").fetchall() == [(done.shortlisted,)]
    assert "address" not in done.table.select("note").explain()


def test_polars_reads_two_columns_to_count_and_filters_in_the_file(wide, monkeypatch):
    asked = plans(monkeypatch, Polars)
    policy = calibrated(SCORES)
    done = sl.select_table(wide, policy, score="score", group="group", read=sl.Read(engine="polars"))
    assert len(asked) == 3  # all rows, and those of each group: who is listed is counted with them
    assert "PROJECT 2/4 COLUMNS" in asked[-1]
    lowest = min(policy.thresholds.values())
    plan = done.table.explain()
    assert f'SELECTION: (col("score") >= {lowest:.6f})' in plan
    assert "FILTER" not in plan  # apart from the scan


@pytest.mark.parametrize("grouped", [False, True], ids=["together", "groups"])
@pytest.mark.parametrize("name", ["list.parquet", "list.csv", "list.csv.gz"])
def test_polars_counts_while_it_writes(grouped, name, wide, tmp_path, monkeypatch):
    asked = plans(monkeypatch, Polars)
    passes: list[int] = []
    together = pl.collect_all

    def counting(frames: Any, **options: Any) -> Any:
        passes.append(len(frames))
        return together(frames, **options)

    monkeypatch.setattr(pl, "collect_all", counting)
    policy = calibrated(SCORES, grouped)
    columns = {"score": "score", "group": "group" if grouped else None}
    output = tmp_path / name
    done = sl.select_table(wide, policy, output=output, read=sl.Read(engine="polars"), **columns)
    assert (passes, asked) == ([4 if grouped else 3], [])  # the list, all rows, and each group
    written = pl.read_parquet(output) if name.endswith("parquet") else pl.read_csv(output)
    assert len(written) == done.shortlisted
    other = sl.select_table(wide, policy, read=sl.Read(engine="duckdb"), **columns)
    assert (done.candidates, done.shortlisted, done.groups) == (
        other.candidates,
        other.shortlisted,
        other.groups,
    )
    assert done.checks == other.checks


def test_polars_opens_small_files_once(wide, tmp_path, monkeypatch):
    """They are held while rows are counted, fetched and written."""
    table, folder = (
        pl.read_parquet(wide).with_columns(label=pl.Series(LABELS).cast(pl.Int8)),
        tmp_path / "many",
    )
    folder.mkdir()
    for number in range(30):
        table[number * 100 : number * 100 + 100].write_parquet(folder / f"{number:02}.parquet")
    scans: list[str] = []
    collect = pl.LazyFrame.collect

    def noting(self: Any, **options: Any) -> Any:
        scans.extend(["scan"] * self.explain().count("Parquet SCAN"))
        return collect(self, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", noting)
    target: Any = {name: sl.Expected(2, 50) for name in "ab"}
    columns: Any = {"score": "score", "groups": sl.Groups("group", purpose="a test"), "label": "label"}
    table.write_parquet(tmp_path / "whole.parquet")
    files = folder, tmp_path / "whole.parquet"
    policy, whole = (sl.calibrate_table(each, target=target, **columns) for each in files)
    assert policy.cutoffs == whole.cutoffs
    assert len(scans) == 1 + 2  # the small files once, the one file twice
    scans.clear()
    done = sl.select_table(folder, policy, output=tmp_path / "list.parquet")
    assert scans == ["scan"]
    assert (
        len(pl.read_parquet(tmp_path / "list.parquet"))
        == done.shortlisted
        == sum(count for _, count in sl.select_table(wide, policy).groups.values())
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize(
    ("column", "value"), [("score", float("nan")), ("score", None), ("group", "c"), ("group", None)]
)
def test_a_bad_row_that_is_found_while_writing_leaves_nothing(engine, column, value, wide, tmp_path):
    table = pl.read_parquet(wide)
    values = table[column].to_list()
    values[-1] = value
    bad = tmp_path / "bad.parquet"
    table.with_columns(pl.Series(column, values, table[column].dtype)).write_parquet(bad)
    output = tmp_path / "list.parquet"
    output.write_bytes(b"as it was")
    policy, columns = calibrated(SCORES), {"score": "score", "group": "group"}
    with pytest.raises(sl.InvalidInput, match=f"column '{column}'.*1 row .row {ROWS}"):
        sl.select_table(bad, policy, output=output, read=sl.Read(engine=engine), **columns)
    assert output.read_bytes() == b"as it was"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.parquet", "list.parquet", "wide.parquet"]
