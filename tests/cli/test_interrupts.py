"""A run that is stopped, or whose reader leaves, ends in one line and tears nothing."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.helpers.service import BUSY

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "surelist"]
QUIET = ("Interrupted; nothing was written.",)


def make_pool(path: Path, rows: int) -> None:
    duckdb.sql(
        "COPY (SELECT range AS id, range * 0.6180339887498949 % 1 AS score, "
        f"(range * 0.7548776662466927 % 1 < 0.3)::int AS label FROM range({rows})) "
        f"TO '{path}'"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool whose shortlist takes a moment to write, and a policy that lists nearly everyone."""
    path = tmp_path_factory.mktemp("interrupted")
    make_pool(path / "past.csv", 2_000)
    make_pool(path / "pool.csv", 400_000)
    calibrate = ["calibrate", "past.csv", "--label", "label", "--expect", "20", "--pool-size", "100"]
    subprocess.run([*COMMAND, *calibrate, "-o", "policy.json"], cwd=path, check=True, capture_output=True)
    return path


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=pipe, stderr=pipe, text=True)


def test_ctrl_c_during_a_query_is_one_line_and_exit_code_1(folder):
    words = ("--label", "label", "--expect", "5", "--pool-size", "100", "-o", "p.json")
    for seconds in (0.0, 0.2):
        for rows in (4_000_000, 16_000_000, 64_000_000):  # more where it was done before the signal came
            if not (large := folder / f"large{rows}.csv").exists():
                make_pool(large, rows)
            run = start(folder, "calibrate", large.name, *words)
            _wait_for_reading(run, large, seconds)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=BUSY)
            if run.returncode:
                break
            (folder / "p.json").unlink()
        assert out == ""
        assert tuple(line for line in err.splitlines() if line) == QUIET
        assert run.returncode == 1
        assert not (folder / "p.json").exists()


ENDS = """
import random, sys, threading, duckdb
from surelist.tables.engines.duckdb import connect
database, rng = connect(), random.Random(1)
for _ in range(40):
    stop = threading.Timer(rng.random() * 0.1, database.interrupt)
    stop.start()
    try:
        database.execute("COPY (SELECT range, hash(range) FROM range(4000000)) TO 'held.parquet' "
                         "(FORMAT parquet, ROW_GROUP_SIZE 61440, PRESERVE_ORDER false)")
    except (duckdb.InterruptException, RuntimeError):
        pass
    stop.join()
"""


def test_writing_that_is_interrupted_ends(tmp_path):
    """With threads of its own for writing, DuckDB 2 waits for ever after a few of these."""
    done = subprocess.run([sys.executable, "-c", ENDS], cwd=tmp_path, timeout=BUSY, capture_output=True)
    assert done.returncode == 0


def test_an_engine_that_says_it_was_interrupted_is_believed(folder):
    """DuckDB's own words for Ctrl-C during a query, whatever the speed of the machine."""
    from surelist.tables.sources import open_table

    table = open_table(folder / "past.csv")
    for error in (
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
    ):
        with pytest.raises(KeyboardInterrupt), table.reading():
            raise error


@pytest.mark.parametrize(
    "words",
    [("--help",), ("show", "policy.json"), ("select", "pool.csv", "--policy", "policy.json", "-o", "-")],
)
def test_a_reader_who_leaves_early_is_no_failure(folder, words):
    for _ in range(3):
        line = " ".join([*(f"'{each}'" for each in COMMAND), *words])
        run = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line} | head -1"], cwd=folder, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        assert "Traceback" not in run.stderr
        assert "Broken pipe" not in run.stderr
        assert len(run.stdout.splitlines()) == 1


def test_a_reader_who_leaves_before_the_first_line_is_no_failure(folder):
    line = " ".join([*(f"'{each}'" for each in COMMAND), "show", "policy.json"])
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} | true"], cwd=folder, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("trials", [12, pytest.param(40, marks=pytest.mark.exhaustive)])
def test_of_many_interrupted_writes_none_is_torn(folder, trials):
    """Killed, terminated or interrupted while the temporary file is there: old or new, never in between."""
    rng, cut = random.Random(1), 0
    signals = itertools.cycle((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    expected: dict[str, int] = {}
    for ending in ("csv", "parquet"):
        output = folder / f"complete.{ending}"
        start(folder, "select", "pool.csv", "--policy", "policy.json", "-o", output.name).communicate()
        expected[ending] = _rows(output)
    for trial in range(10 * trials):
        if trial >= trials and cut >= trials // 12:
            break
        ending = ("csv", "parquet")[trial % 2]
        output = folder / f"shortlist.{ending}"
        output.write_text("old")
        run = start(folder, "select", "pool.csv", "--policy", "policy.json", "-o", output.name)
        _wait_for_writing(run, folder)
        time.sleep(rng.random() * 0.05)
        os.kill(run.pid, next(signals))
        run.communicate(timeout=BUSY)
        if output.read_bytes() == b"old":
            cut += 1
        else:
            assert _rows(output) == expected[ending], trial
        for left in folder.glob(".*.part*"):
            left.unlink()
    assert cut >= trials // 12  # else all of them came too late to say anything


def _wait_for_reading(run: subprocess.Popen[str], file: Path, seconds: float) -> None:
    """Until the process has the file open and has then worked so long, by its own clock: others may be busy too."""
    opened = None
    while run.poll() is None and (opened is None or _worked(run.pid) < opened + seconds):
        if opened is None and any(_link(each) == str(file) for each in Path(f"/proc/{run.pid}/fd").glob("*")):
            opened = _worked(run.pid)
        time.sleep(0.002)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:  # closed in between
        return ""


def _worked(process: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for_writing(run: subprocess.Popen[str], folder: Path) -> None:
    while run.poll() is None and not list(folder.glob(".*.part*")):
        time.sleep(0.002)


def _rows(path: Path) -> int:
    rows: int = duckdb.sql(f"SELECT count(*), count(score) FROM '{path}'").fetchall()[0][1]
    return rows
