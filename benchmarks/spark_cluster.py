"""Spark on a standalone cluster: one worker against two of one core each, beside a job written by hand, and local.

    python benchmarks/spark_cluster.py                     # 20 million rows
    python benchmarks/spark_cluster.py --rows 100

The job by hand counts labels in bins of the score and sorts the one bin that matters; to select it writes a
filter. Each turn starts a cluster of its own, takes all jobs twice, and keeps the best of each: seconds on the
wall, since more workers save nothing else, and processor seconds of the tasks, which other work on the
machine disturbs less. Jobs, scans, rows read and bytes shuffled are Spark's own counts of ours. Both sides must
find the same threshold and as many candidates. Data live in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import Figure, show

MILLION = 1_000_000
GAIN = 1.6  # with two workers, where the job by hand gains as much
BINS = 2048
PROMISE = (5, 60)  # k and pool size
COUNTED = ("inputRecords", "shuffleWriteRecords", "shuffleWriteBytes", "executorCpuTime")
TOLD = ("jobs", "scans", *COUNTED[:-1])
ONE, TWO, LOCAL = "1 worker", "2 workers", "local"


def make_data(path: Path, millions: float) -> None:
    """score float64 and label int8."""
    import duckdb

    duckdb.sql(
        f"""COPY (
            SELECT score, (random() < score * score * 0.57)::TINYINT AS label
            FROM (SELECT random() AS score FROM range({round(millions * MILLION)}))
        ) TO '{path}' (FORMAT parquet)"""
    )


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of a standalone cluster: processes on loopback, workers of one core each."""
    import pyspark

    home = Path(pyspark.__file__).parent
    core = next((home / "jars").glob("spark-core_*.jar")).name.removeprefix("spark-core_")
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": core.split("-")[0],
    }  # fmt: skip
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # the children's drivers stay on loopback too
    java = ["java", "-Xmx256m", "-cp", f"{home}/jars/*"]
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    logs, started = [folder / f"{name}.log" for name in ("master", *range(workers))], []

    def start(command: list[str], log: Path, ready: str) -> str:
        """What the process says when it is ready, after these words."""
        with log.open("wb") as file:
            started.append(subprocess.Popen([*java, *command], env=environment, stdout=file, stderr=file))
        while ready not in log.read_text():
            assert started[-1].poll() is None, log.read_text()
            time.sleep(0.1)
        return log.read_text().split(ready)[1].split()[0]

    try:
        master = ["org.apache.spark.deploy.master.Master", *host, "--port", "0"]
        address = start(master, logs[0], "Starting Spark master at ")
        worker = ["org.apache.spark.deploy.worker.Worker", *host, "--cores", "1", "--memory", "2g"]
        for number in range(workers):
            place = ["--work-dir", str(folder / f"work{number}"), address]
            start([*worker, *place], logs[1 + number], "Successfully registered with master ")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def by_hand(table: Any, count: int) -> float:
    """The score of the qualified row at this place from the top: bins, then the bin that holds it."""
    binned = table.selectExpr("score", "label", f"CAST(floor(score * {BINS}) AS INT) AS bin")
    bins = binned.groupBy("bin").agg({"*": "count", "label": "sum"}).collect()
    left = count
    for row in sorted(bins, key=lambda each: -each["bin"]):
        if left <= row["sum(label)"]:
            break
        left -= row["sum(label)"]
    inside = binned.where(f"label = 1 AND bin = {row['bin']}").select("score").collect()
    return float(sorted((each[0] for each in inside), reverse=True)[left - 1])


def session(address: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(address).appName("benchmark")
    for name, value in {
        "ui.showConsoleProgress": "false", "ui.enabled": "false", "executor.cores": "1", "executor.memory": "1g",
        "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "sql.shuffle.partitions": "4",
        "sql.files.maxPartitionBytes": "32m",  # enough parts for two to share evenly
    }.items():  # fmt: skip
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def counts(spark: Any) -> dict[str, int]:
    """What Spark has done so far, by its own counters."""
    time.sleep(2)  # what executors report arrives late
    store = spark._jsc.sc().statusStore()
    none = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    found = store.stageList(None, False, False, none, None)
    stages = [found.apply(place) for place in range(found.size())]
    scans = sum(each.inputRecords() > 0 for each in stages)
    totals = {name: sum(getattr(each, name)() for each in stages) for name in COUNTED}
    return {"jobs": store.jobsList(None).size(), "scans": scans, **totals}


def turn(address: str, data: str, folder: str) -> dict[str, dict[str, float]]:
    """Of each of four jobs the best seconds on the wall, and what Spark counts of it."""
    import surelist as sl

    spark = session(address)
    table, target = spark.read.parquet(data), sl.Expected(*PROMISE)
    policy = sl.calibrate_table(table, score="score", label="label", target=target)
    threshold, count = policy.threshold, policy.cutoffs[0].steps[0].critical_count
    assert by_hand(table, count) == threshold
    listed = [f"{folder}/{who}.parquet" for who in ("hand", "ours")]
    filtered = table.where(f"score >= {threshold!r}D")
    jobs: dict[str, Callable[[], Any]] = {
        "calibrate, bare": lambda: by_hand(table, count),
        "calibrate, ours": lambda: sl.calibrate_table(table, score="score", label="label", target=target),
        "select, bare": lambda: filtered.write.mode("overwrite").parquet(listed[0]),
        "select, ours": lambda: sl.select_table(table, policy, output=listed[1]),
    }
    found: dict[str, dict[str, float]] = {}
    for name in [*jobs] * 2:
        before, began = counts(spark), time.perf_counter()
        jobs[name]()
        seconds = time.perf_counter() - began
        used: dict[str, float] = {key: value - before[key] for key, value in counts(spark).items()}
        earlier = found.get(name, {})
        used["processor"] = min(used.pop("executorCpuTime") / 1e9, earlier.get("processor", float("inf")))
        found[name] = {**used, "seconds": min(seconds, earlier.get("seconds", float("inf")))}
    rows = [spark.read.parquet(each).count() for each in listed]
    assert rows[0] == rows[1], rows
    spark.stop()
    return found


Turns = Mapping[str, Mapping[str, Mapping[str, float]]]  # by place and job: what was measured


def figures(millions: float) -> list[Figure]:
    """The same on a cluster of one worker, on one of two, and in this machine's own processes."""
    turns = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "data.parquet"
        make_data(data, millions)

        def measured(address: str) -> Any:
            command = [sys.executable, "-W", "ignore", __file__, "--turn", address, str(data), str(folder)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            return json.loads(done.stdout.splitlines()[-1])

        for workers, place in ((1, ONE), (2, TWO)):
            with cluster(folder, workers) as address:
                turns[place] = measured(address)
        turns[LOCAL] = measured("local[2]")
    return compared(turns, f"{millions:g} million rows")


def compared(turns: Turns, where: str) -> list[Figure]:
    """Seconds with two workers for each with one, held to a limit where the job by hand gains as much."""
    found = []
    for job in ("calibrate", "select"):
        for place, jobs in turns.items():
            for who, name in (("ours", ""), ("bare", " by hand")):
                for what in ("processor", "seconds"):
                    value = jobs[f"{job}, {who}"][what]
                    found.append(Figure(f"{job}, spark{name}, {what}", f"{where}, {place}", value))
        bare, ours = (
            turns[TWO][f"{job}, {who}"]["seconds"] / turns[ONE][f"{job}, {who}"]["seconds"]
            for who in ("bare", "ours")
        )
        found.append(Figure(f"{job}, spark by hand, 2 workers for 1", where, bare))
        held = 1 / GAIN if bare <= 1 / GAIN else None
        found.append(Figure(f"{job}, spark, 2 workers for 1", where, ours, held))
        counted = turns[TWO][f"{job}, ours"]
        found += [Figure(f"{job}, spark, {what}", where, counted[what]) for what in TOLD]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=20, help="millions of rows")
    parser.add_argument("--turn", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turn:
        print(json.dumps(turn(*options.turn)))
        return
    sys.exit(any(each.broken for each in show(figures(options.rows))))


if __name__ == "__main__":
    main()
