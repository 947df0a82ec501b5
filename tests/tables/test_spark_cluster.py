"""A real standalone cluster on loopback: one master, two workers, one of them killed at work."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import surelist as sl
from tests.helpers.engines import LEAN_JVM
from tests.helpers.service import missing

pytestmark = pytest.mark.slow

pyspark = pytest.importorskip("pyspark") if not os.environ.get("CI") else __import__("pyspark")
HOME = Path(pyspark.__file__).parent
ROWS, FILES = 200_000, 16


def start(kind: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [
        java,
        *LEAN_JVM.split(),
        "-Xmx256m",
        "-cp",
        f"{HOME}/jars/*",
        f"org.apache.spark.deploy.{kind}",
        *arguments,
    ]
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    core = next((HOME / "jars").glob("spark-core_*.jar")).name
    environment["SPARK_SCALA_VERSION"] = core.removeprefix("spark-core_").split("-")[0]
    with log.open("wb") as file:
        return subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )


def wait_for(condition: Any, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen within {seconds} s")
        time.sleep(0.2)


def said(log: Path, pattern: str) -> str:
    """What a process says of itself in its log, as soon as it does."""
    wait_for(lambda: re.search(pattern, log.read_text()), 600, pattern)
    return re.search(pattern, log.read_text())[1]


class Cluster:
    """Master and workers as processes of their own."""

    def __init__(self, folder: Path) -> None:
        log, host = folder / "master.log", ("--host", "127.0.0.1", "--webui-port", "0")  # any free port
        self.processes = [start("master.Master", log, *host, "--port", "0")]
        self.url = said(log, r"Starting Spark master at (spark://\S+:[1-9]\d*)")
        self.ui = said(log, r"Bound MasterWebUI to \S+ and started at (http://\S+:\d+)") + "/json/"
        for place in range(2):
            self.processes.append(
                start(
                    "worker.Worker",
                    folder / f"worker{place}.log",
                    *host,
                    "--cores",
                    "1",
                    "--memory",
                    "1g",
                    "--work-dir",
                    str(folder / f"work{place}"),
                    self.url,
                )
            )
        wait_for(lambda: self.status().count('"ALIVE"') >= 3, 600, "the cluster's start")

    def status(self) -> str:
        try:
            with urllib.request.urlopen(self.ui, timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def kill_worker(self, place: int) -> None:
        """The worker and the executors it started: they share its process group."""
        os.killpg(self.processes[1 + place].pid, signal.SIGKILL)

    def stop(self) -> None:
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if not shutil.which("java"):
        missing("Java")
    made = Cluster(tmp_path)
    yield made
    made.stop()


def write_pool(folder: Path) -> None:
    rng = np.random.default_rng(5)
    folder.mkdir()
    for place in range(FILES):
        ids = np.arange(place, ROWS, FILES)
        scores = rng.random(len(ids))
        table = pa.table(
            {"id": ids, "score": scores, "label": (rng.random(len(ids)) < scores).astype(np.int8)}
        )
        pq.write_table(table, folder / f"part-{place:02d}.parquet")


DRIVER = """
import sys, surelist as sl
from pyspark.sql import SparkSession, functions as F
master, pool, output = sys.argv[1:]
spark = (SparkSession.builder.master(master).appName("surelist-cluster")
    .config("spark.ui.enabled", "false").config("spark.executor.memory", "480m")
    .config("spark.executor.cores", "1").config("spark.cores.max", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.files.maxPartitionBytes", "256k").config("spark.sql.files.openCostInBytes", "256k")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate())
policy = sl.calibrate_table(pool, score="score", label="label", target=sl.Expected(20, 100), read=sl.Read(engine="spark"))
print("calibrated", repr(policy.threshold), flush=True)
slow = F.expr("if(id % 12 = 0, reflect('java.lang.Thread', 'sleep', 1L), null)")
table = spark.read.parquet(pool)
say = lambda what: print("pass:", what, flush=True)
done = sl.select_table(table.withColumn("extra", slow), policy, output=output, progress=say)
print("done", done.candidates, done.shortlisted, flush=True)
spark.stop()
"""


COUNTERS = """
import json, sys, surelist as sl
from pyspark.sql import SparkSession
master, pool = sys.argv[1:]
spark = (SparkSession.builder.master(master).appName("surelist-counters")
    .config("spark.ui.enabled", "false").config("spark.executor.memory", "480m")
    .config("spark.executor.cores", "1").config("spark.cores.max", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.files.maxPartitionBytes", "1m").config("spark.sql.files.openCostInBytes", "256k")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate())
store, quantiles = spark._jsc.sc().statusStore(), spark.sparkContext._gateway.new_array(spark._jvm.double, 0)

def counters():
    spark._jsc.sc().listenerBus().waitUntilEmpty()  # what executors reported has arrived
    found = store.stageList(None, False, False, quantiles, None)
    stages = [found.apply(place) for place in range(found.size())]
    names = ("inputRecords", "shuffleWriteRecords", "shuffleWriteBytes")
    read = [each for each in stages if each.inputRecords()]
    return {"scans": len(read), **{name: sum(getattr(each, name)() for each in stages) for name in names}}

table, before = spark.read.parquet(pool), counters()
policy = sl.calibrate_table(table, score="score", label="label", target=sl.Expected(20, 100))
between = counters()
done = sl.select_table(table, policy)
after = counters()
plan = done.table._jdf.queryExecution().executedPlan().toString()
print(json.dumps({
    "calibrate": {name: between[name] - before[name] for name in before},
    "select": {name: after[name] - between[name] for name in before},
    "parts": [table.rdd.getNumPartitions(), done.table.rdd.getNumPartitions()], "plan": plan,
}))
spark.stop()
"""


@pytest.mark.exhaustive
def test_bins_are_all_that_is_shuffled_and_a_selection_keeps_the_partitions(cluster, tmp_path):
    """Two passes to calibrate: bins, then the one bin that matters; a shortlist is a filter of each part."""
    pool, log = tmp_path / "pool", tmp_path / "driver.log"
    write_pool(pool)
    command = [sys.executable, "-W", "ignore", "-c", COUNTERS, cluster.url, str(pool)]
    with log.open("wb") as file:
        done = subprocess.run(command, stdout=-1, stderr=file, text=True)
    assert done.returncode == 0, log.read_text()[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    calibrate, select, parts = found["calibrate"], found["select"], found["parts"]
    assert (calibrate["scans"], calibrate["inputRecords"]) == (2, 2 * ROWS)
    # at most two states in 2,048 bins from every part, and the scores of one bin
    assert 2048 < calibrate["shuffleWriteRecords"] <= parts[0] * 2 * 2049 + ROWS / 1000
    assert calibrate["shuffleWriteBytes"] < 60 * calibrate["shuffleWriteRecords"]
    assert (select["scans"], select["inputRecords"]) == (1, ROWS)  # pool and list at once
    assert select["shuffleWriteRecords"] <= parts[0] * 40
    assert parts[0] == parts[1] > 1
    assert "Exchange" not in found["plan"]
    assert "PushedFilters: [IsNotNull(score), GreaterThanOrEqual(score," in found["plan"]


@pytest.mark.exhaustive
def test_a_killed_worker_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    pool, output = tmp_path / "pool", tmp_path / "shortlist.parquet"
    write_pool(pool)
    log = tmp_path / "driver.log"
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, cluster.url, str(pool), str(output)]
    with log.open("wb") as file, subprocess.Popen(command, stdout=-1, stderr=file, text=True) as driver:
        try:
            assert driver.stdout is not None
            said = []
            for line in driver.stdout:
                said.append(line.strip())
                if said[-1] == "pass: writing the shortlist":
                    break
            assert said[-1:] == ["pass: writing the shortlist"], log.read_text()[-3000:]
            # In the middle: some parts are written, and the output is not there under its name.
            wait_for(lambda: any(tmp_path.glob(".shortlist*.part/new/_temporary/**/part-*")), 600, "writing")
            assert not output.exists()
            cluster.kill_worker(0)
            rest, _ = driver.communicate()
        finally:
            driver.kill()
    assert driver.returncode == 0, log.read_text()[-3000:]
    lost = "Lost executor" in log.read_text()
    whole = pq.read_table(pool)
    expected = sl.calibrate(whole["score"].to_numpy(), whole["label"].to_numpy(), sl.Expected(20, 100))
    assert f"calibrated {expected.threshold!r}" in said
    wanted = whole["id"].to_numpy()[expected.select(whole["score"].to_numpy())]
    got = pq.read_table(output)["id"].to_numpy()
    assert f"done {ROWS} {len(wanted)}" in rest
    assert len(got) == len(np.unique(got))
    assert sorted(got) == sorted(wanted)
    assert (output / "_SUCCESS").exists()
    assert not list(tmp_path.glob(".shortlist*"))
    assert lost, "the worker died too late to be missed"
