"""A million rows on every engine, and what is left when a writer is killed."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import surelist as sl
from tests.helpers.engines import Engine

pytestmark = pytest.mark.slow

TARGET = {"a": sl.Expected(4, 60), "b": sl.Expected(2, 30), "c": sl.Expected(0.5, 10)}


@pytest.fixture(scope="module")
def million() -> pa.Table:
    rng = np.random.default_rng(11)
    scores = np.round(rng.random(1_000_000), 5)  # ten rows at every score
    return pa.table(
        {
            "id": np.arange(1_000_000),
            "score": scores,
            "label": (rng.random(1_000_000) < scores).astype(np.int8),
            "group": pa.array(rng.choice(["a", "b", "c"], 1_000_000, p=[0.6, 0.3, 0.1])),
        }
    )


@pytest.fixture(scope="module")
def expected(million: pa.Table) -> sl.Policy:
    scores, labels = (million[name].to_numpy() for name in ("score", "label"))
    groups = million["group"].to_pylist()
    return sl.calibrate(scores, labels, TARGET, groups=sl.Groups(groups, purpose="test"))


def test_a_million_rows(engine: Engine, million: pa.Table, expected: sl.Policy, tmp_path: Path) -> None:
    if engine.name in ("csv-polars", "pandas-nullable"):
        pytest.skip("the same code as its neighbour, slower")
    table: Any = engine.table(million)
    policy = sl.calibrate_table(
        table,
        score="score",
        label="label",
        target=TARGET,
        groups=sl.Groups("group", purpose="test"),
        **engine.options,
    )
    assert policy.thresholds == expected.thresholds
    output = tmp_path / "out.parquet"
    done = sl.select_table(table, policy, output=output, **engine.options)
    mask = expected.select(million["score"].to_numpy(), million["group"].to_pylist())
    got = pq.read_table(output)["id"].cast(pa.int64()).to_numpy()
    wanted = million["id"].to_numpy()[mask]
    assert done.shortlisted == len(wanted)
    assert np.array_equal(got if engine.ordered else np.sort(got), wanted)


WRITER = """
import sys, surelist as sl
policy = sl.Policy.load(sys.argv[1])
sl.select_table(sys.argv[2], policy, output=sys.argv[3], read=sl.Read(engine=sys.argv[4]))
"""


@pytest.mark.parametrize("engine_name", ["duckdb", "polars"])
def test_a_killed_writer_leaves_no_output(
    engine_name: str, million: pa.Table, expected: sl.Policy, tmp_path: Path
) -> None:
    pool, output = tmp_path / "pool.parquet", tmp_path / "shortlist.csv.gz"
    expected.with_columns(score="score", group="group").save(tmp_path / "policy.json")
    arguments = [
        sys.executable,
        "-c",
        WRITER,
        str(tmp_path / "policy.json"),
        str(pool),
        str(output),
        engine_name,
    ]
    for copies in (4, 16, 48):  # more rows where the machine was faster than the signal
        pq.write_table(pa.concat_tables([million] * copies), pool)
        writer = subprocess.Popen(arguments)
        while not any(tmp_path.glob(".shortlist*")) and writer.poll() is None:
            time.sleep(0.001)
        writer.kill()
        if writer.wait() == -signal.SIGKILL and not output.exists():
            return
        with gzip.open(output) as whole:  # it was done before it could be killed
            while whole.read(1 << 24):
                pass
        output.unlink()
    pytest.fail("the writer was never caught at work")
