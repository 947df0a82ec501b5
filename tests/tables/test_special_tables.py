"""Promises that need more than counts, from tables of every kind and from the command line."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import surelist as sl
from surelist.cli import run as command_line
from surelist.examples import population


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    scores, labels = population(rng, 3000)
    pools = rng.integers(0, 60, 3000)
    return pd.DataFrame({"score": scores, "qualified": labels.astype(int), "query": [f"q{i}" for i in pools],
                         "number": pools, "other": scores + rng.normal(0, 0.05, 3000), "value": labels * 10.0})  # fmt: skip


def kinds(frame: pd.DataFrame, folder: Path):
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    return {
        "pandas": frame, "polars": pl.from_pandas(frame), "lazy": pl.from_pandas(frame).lazy(),
        "arrow": pa.Table.from_pandas(frame), "csv": folder / "rows.csv", "parquet": folder / "rows.parquet",
    }  # fmt: skip


@pytest.mark.parametrize("pool", ["query", "number"])
@pytest.mark.parametrize("target", [sl.NextPool(k=3), sl.NextPool(recall=0.8), sl.NextPool(k=2, by="rank")])
def test_whole_pools_are_the_same_from_every_table(rows, tmp_path, pool, target):
    arrays = sl.calibrate(rows.score, rows.qualified, target, pools=rows[pool])
    for name, table in kinds(rows, tmp_path).items():
        policy = sl.calibrate_table(table, score="score", label="qualified", pool=pool, target=target)
        assert policy.threshold == arrays.threshold, name
        assert policy.cutoffs[0].proof == arrays.cutoffs[0].proof
        assert policy.promise == arrays.promise
        assert (policy.columns or {})["pool"] == pool


def test_duckdb_reads_pools_too(rows, tmp_path):
    rows.to_parquet(tmp_path / "rows.parquet")
    policy = sl.calibrate_table(
        tmp_path / "rows.parquet",
        score="score",
        label="qualified",
        pool="query",
        target=sl.NextPool(k=3),
        read=sl.Read(engine="duckdb"),
    )
    assert (
        policy.threshold
        == sl.calibrate(rows.score, rows.qualified, sl.NextPool(k=3), pools=rows["query"]).threshold
    )


def test_averages_from_a_table_count_pools_without_qualified_rows(rows):
    empty = pd.DataFrame({"score": [0.1] * 20, "qualified": 0, "query": [f"e{i}" for i in range(20)]})
    table = pd.concat([rows[["score", "qualified", "query"]], empty])
    policy = sl.calibrate_table(
        table, score="score", label="qualified", pool="query", target=sl.PoolAverage(2, spread=3)
    )
    assert policy.cutoffs[0].proof.units == 80  # type: ignore[attr-defined]


def test_a_row_without_a_pool_is_an_error_that_names_the_column(rows):
    table = rows.copy()
    table.loc[5, "query"] = None
    with pytest.raises(sl.InvalidInput, match=r"'query': 1 rows have no pool"):
        sl.calibrate_table(table, score="score", label="qualified", pool="query", target=sl.NextPool(k=1))
    with pytest.raises(sl.InvalidInput, match="pass pool="):
        sl.calibrate_table(rows, score="score", label="qualified", target=sl.NextPool(k=1))


def test_rows_as_units_warn_where_pools_are_alike(rows):
    alike = rows.assign(qualified=(rows.number % 3 == 0).astype(int))
    with pytest.warns(sl.PoolWarning, match="resemble"):
        sl.calibrate_table(alike, score="score", label="qualified", pool="query", target=sl.Expected(5, 100))


def test_unlabelled_scores_values_several_scores_and_sampled_labels(rows, tmp_path):
    other = pd.DataFrame({"score": population(np.random.default_rng(2), 4000)[0]})
    other.to_csv(tmp_path / "other.csv", index=False)
    for target in (sl.Precision(0.5, start=0.1), sl.Budget(10, 100)):
        made = [
            sl.calibrate_table(rows, score="score", label="qualified", target=target, unlabelled=each)
            for each in (other, tmp_path / "other.csv", other.score.to_numpy())
        ]
        assert len({policy.threshold for policy in made}) == 1
    best = sl.calibrate_table(rows, score=["other", "score"], label="qualified", target=sl.Expected(5, 100))
    assert best.choice is not None
    assert (
        sl.select_table(rows, best).shortlisted
        == best.select({best.choice.chosen: rows[best.choice.chosen]}).sum()
    )
    with pytest.raises(sl.InvalidInput, match="was made for"):
        sl.select_table(rows, best, score=({"other", "score"} - {best.choice.chosen}).pop())
    value = sl.calibrate_table(rows, score="score", label="value", target=sl.Value(30, 100))
    assert "a value of 30" in value.promise
    drawn = rows.assign(qualified=rows.qualified.where((rows.score >= 0.6) | (rows.number < 12)))
    label = sl.SampledLabels("qualified", probability=0.2, above=0.6)
    audited = sl.calibrate_table(drawn, score="score", label=label, target=sl.Expected(5, 100))
    assert (
        audited.threshold
        == sl.calibrate(
            drawn.score, sl.SampledLabels(drawn.qualified, probability=0.2, above=0.6), sl.Expected(5, 100)
        ).threshold
    )


def run(*words: str) -> tuple[int, str]:
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = command_line(list(words))
    return code, output.getvalue() + errors.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "said"), [
    (["--next-pool", "3", "--pool", "query"], "next pool holds at least 3"),
    (["--pool-recall", "0.8", "--pool", "query"], "keeps at least 80% of that pool's own"),
    (["--pool-average", "2", "--pool", "query", "--spread", "2"], "at least 2 qualified candidates on average over pools;"),
    (["--precision", "0.5", "--start", "0.1", "--unlabelled", "OTHER"], "at least 50% of those"),
    (["--budget", "10", "--pool-size", "100", "--unlabelled", "OTHER"], "on average over pools of 100"),
    (["--expect", "5", "--pool-size", "100", "--unlabelled", "OTHER"], "unlabelled scores"),
    (["--expect", "5", "--pool-size", "100", "--audit-rate", "0.2", "--audited-below", "0.6"], "that were labelled"),
])  # fmt: skip
def test_the_command_line_makes_shows_and_applies_them(rows, tmp_path, words, said):
    path = tmp_path / "rows.csv"
    table = rows.copy()
    if "--audit-rate" in words:
        table["qualified"] = table.qualified.where((table.score >= 0.6) | (table.number < 12))
    table.to_csv(path, index=False)
    pd.DataFrame({"score": population(np.random.default_rng(2), 4000)[0]}).to_csv(
        tmp_path / "other.csv", index=False
    )
    words = [str(tmp_path / "other.csv") if word == "OTHER" else word for word in words]
    code, output = run("calibrate", str(path), *words, "-o", str(tmp_path / "p.json"))
    assert code == 0, output
    assert said in " ".join(output.split()).replace("At least", "at least")
    code, output = run("show", str(tmp_path / "p.json"))
    assert code == 0
    assert "evidence:" in output
    code, output = run("show", str(tmp_path / "p.json"), "--json")
    assert json.loads(output)["format"] == 1
    drawn = "--audit-rate" in words
    past = [] if drawn else ["--past", str(path)]
    code, output = run("report", str(tmp_path / "p.json"), *past, "-o", str(tmp_path / "r.html"))
    assert code == 0, output
    assert "Evidence:" in (tmp_path / "r.html").read_text()
    code, output = run(
        "select", str(path), "--policy", str(tmp_path / "p.json"), "-o", str(tmp_path / "list.csv")
    )
    assert code == 0, output
    policy = sl.Policy.load(tmp_path / "p.json")
    assert len(pd.read_csv(tmp_path / "list.csv")) == policy.select(rows.score).sum()


@pytest.mark.parametrize(("words", "code", "said"), [
    (["--pool-recall", "0.8"], 2, "--pool"),
    (["--precision", "0.5"], 2, "--unlabelled"),
    (["--expect", "5", "--pool-size", "100", "--audit-rate", "0.2"], 2, "--audited-below"),
    (["--next-pool", "50", "--pool", "query"], 3, "Not certifiable"),
])  # fmt: skip
def test_the_command_line_says_what_is_missing_in_flags(rows, tmp_path, words, code, said):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    found, output = run("calibrate", str(tmp_path / "rows.csv"), *words, "-o", str(tmp_path / "p.json"))
    assert found == code, output
    assert said in output
    assert not (tmp_path / "p.json").exists()
