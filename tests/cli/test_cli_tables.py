"""The command line takes the same path: engines, pools, bad rows, reasons, progress."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from surelist.cli import run
from surelist.cli.output import Progress
from tests.helpers.engines import arrow, write_csv, write_parquet
from tests.tables.test_calibrate_tables import sample
from tests.tables.test_select_tables import many_pools

pytestmark = pytest.mark.slow


@pytest.fixture
def past(tmp_path: Path) -> str:
    return write_parquet(tmp_path / "past.parquet", arrow(sample(2000)))


def calibrate(past: str, output: Path, *more: str) -> int:
    named = ["--label", "label", "--expect", "5", "--pool-size", "100"]
    return run(["calibrate", past, *named, "-o", str(output), *more])


@pytest.mark.parametrize("engine", ["auto", "duckdb", "polars", "spark"])
def test_engines(engine: str, past: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        request.getfixturevalue("spark_session")
    assert calibrate(past, tmp_path / "policy.json", "--engine", engine) == 0
    assert calibrate(past, tmp_path / "other.json") == 0
    threshold = [
        json.loads((tmp_path / name).read_text())["cutoffs"][0]["steps"]
        for name in ("policy.json", "other.json")
    ]
    assert threshold[0] == threshold[1]
    output = tmp_path / "shortlist.parquet"
    select = [
        "select",
        past,
        "--policy",
        str(tmp_path / "policy.json"),
        "-o",
        str(output),
        "--engine",
        engine,
    ]
    assert run([*select, "--reason"]) == 0
    assert "shortlist_reason" in pq.read_table(output).column_names


def test_a_spark_master_needs_spark(past: str, tmp_path: Path, capsys: Any) -> None:
    assert calibrate(past, tmp_path / "policy.json", "--spark-master", "local[2]") == 2
    assert "--spark-master" in capsys.readouterr().err


def test_bad_rows(past: str, tmp_path: Path, capsys: Any) -> None:
    policy = tmp_path / "policy.json"
    assert calibrate(past, policy) == 0
    pool = sample(100, seed=8)
    pool["score"][3] = None
    path = write_csv(tmp_path / "pool.csv", arrow(pool))
    select = ["select", path, "--policy", str(policy), "-o", str(tmp_path / "out.csv")]
    assert run(select) == 2
    assert "spreadsheet row 5" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    assert run([*select, "--on-bad-rows", "drop"]) == 0
    assert "Rows without a finite score, dropped: 1." in capsys.readouterr().err


def test_pools(past: str, tmp_path: Path, capsys: Any) -> None:
    policy = tmp_path / "policy.json"
    assert calibrate(past, policy) == 0
    path = write_csv(tmp_path / "pools.csv", arrow(many_pools()))
    select = ["select", path, "--policy", str(policy), "-o", str(tmp_path / "out.csv"), "--pool", "pool"]
    assert run(select) == 0
    assert "6 pools" in capsys.readouterr().err
    assert run([*select, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sum(each["shortlisted"] for each in said["pools"]) == said["shortlisted"]
    assert [each["pool"] for each in said["pools"]] == [f"v{i}" for i in range(6)]


def test_progress_is_told_on_a_terminal(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress()
    with progress.running(after=0.0):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""  # not a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = ""
    with progress.running(after=0.01):
        progress("counting rows")
        while "s  counting rows ..." not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
    with progress.running(after=600.0):
        progress("in no time")
    rest = capsys.readouterr()
    assert rest.out == ""
    assert "in no time" not in said + rest.err


def test_a_pool_of_another_kind_is_pointed_out_on_stderr_and_in_json(
    past: str, tmp_path: Path, capsys: Any
) -> None:
    policy, pool = tmp_path / "policy.json", tmp_path / "pool.csv"
    assert calibrate(past, policy) == 0
    pool.write_text("score\n" + "\n".join(str(1000 + each) for each in range(30)) + "\n")
    words = ["select", str(pool), "--policy", str(policy), "-o", str(tmp_path / "list.csv")]
    capsys.readouterr()
    assert run(words) == 0
    told = capsys.readouterr().err
    assert "warning: The pool has 30 candidates; the promise is about pools of 100" in told
    assert "warning: 30 of 30 candidates score outside the range of the calibration rows" in told
    assert run([*words, "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [each["kind"] for each in checks if each["warns"]] == ["pool size", "share", "range", "drift"]
