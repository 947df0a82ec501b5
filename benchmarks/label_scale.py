"""Labelling a large collection: processor seconds to the first rows, from stage to stage and to the list, and memory.

    python benchmarks/label_scale.py [--millions 10] [--engine memory|parquet|spark] [--target recall] [--scores crowded]

Each turn is a process of its own. Half of the crowded scores are one of ten numbers, the others are close to
0. Labels are drawn with the score's rank as their chance. For Spark the driver's processor time is that of
Python and its JVM together, in which local mode runs the tasks too; ``to the driver`` is what the results
of all tasks held, by Spark's own counters. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

MILLION = 1_000_000
PARTS = 20  # files of a table
TARGETS = ("at-least", "recall", "precision", "triage")
SCORES = ("normal", "crowded")


def make_data(folder: Path, millions: float, scores: str) -> None:
    """id int64 and score float64, in files of equal size."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    ends = np.linspace(0, round(millions * MILLION), PARTS + 1).astype(int)
    for part, (first, last) in enumerate(itertools.pairwise(ends)):
        rng, rows = np.random.default_rng(part), last - first
        values = rng.standard_normal(rows)
        if scores == "crowded":
            values = np.where(rng.random(rows) < 0.5, rng.integers(1, 11, rows) / 10, rng.random(rows) ** 30)
        pq.write_table(
            pa.table({"id": np.arange(first, last), "score": values}), folder / f"{part:02}.parquet"
        )


def used() -> float:
    """Processor seconds of this process and those it started, also those that still run."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = time.process_time()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def spark_session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for name, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "driver.memory": "4g",
                        "driver.host": "127.0.0.1", "sql.shuffle.partitions": "4"}.items():  # fmt: skip
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def to_driver(spark: Any) -> tuple[int, int, int]:
    """Jobs, rows read, and bytes of results, by Spark's own counters."""
    time.sleep(2)  # what executors report arrives late
    store = spark._jsc.sc().statusStore()
    none = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    found = store.stageList(None, False, False, none, None)
    stages = [found.apply(place) for place in range(found.size())]
    size = 0
    for each in stages:
        tasks = store.taskList(each.stageId(), each.attemptId(), 1 << 20)
        metrics = [tasks.apply(place).taskMetrics() for place in range(tasks.size())]
        size += sum(each.get().resultSize() for each in metrics if each.isDefined())
    return store.jobsList(None).size(), sum(each.inputRecords() for each in stages), size


def turn(engine: str, data: str, target: str, labels: int) -> str:
    """One labelling from scores to its list, in words."""
    import numpy as np

    import surelist as sl
    from surelist.workflows import label_tables

    for name in ("duckdb", "polars", "scipy.special"):  # imports are not counted
        importlib.import_module(name)

    promise = {"at-least": sl.AtLeast(1000), "recall": sl.Recall(0.9), "precision": sl.Precision(0.8),
               "triage": sl.Triage(0.8, reject_recall=0.9)}[target]  # fmt: skip
    rng, output = np.random.default_rng(1), Path(data).parent / "list.parquet"
    spark = spark_session() if engine == "spark" else None
    scores: Any = None
    if engine == "memory":
        import pyarrow.parquet as pq

        scores = pq.read_table(data, columns=["score"])["score"].to_numpy()
    table = data if spark is None else spark.read.parquet(data)
    before = (0, 0, 0) if spark is None else to_driver(spark)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def timed(function: Callable[[], Any]) -> tuple[Any, float]:
        start = used()
        return function(), used() - start

    def begin() -> Any:
        if engine == "memory":
            return sl.Labelling(scores, promise, labels=labels)
        return sl.label_table(table, promise, labels=labels, score="score", id="id" if spark else None)

    work, first = timed(begin)
    stages = []
    while len(rows := work.ask()):
        chance = 1 / (1 + np.exp(3 - 2 * np.array([work.score(row) for row in rows.tolist()])))
        labels_now = rng.random(len(rows)) < chance
        stages.append(timed(partial(work.tell, rows, labels_now))[1])

    def finish() -> str:
        try:
            policy = work.policy
        except sl.NotCertifiable:
            return "refused"
        if engine == "memory":
            return f"{int(work.select(scores).sum()):,} listed"
        opened = sl_table(table)
        label_tables.write_certified(work, policy, opened, output)
        return f"{work.listed:,} listed" if work.listed is not None else "listed"

    said, last = timed(finish)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    told = f"{first:.2f} s to the first rows, {max(stages):.2f} s for the longest of {len(stages)} stages, {last:.2f} s to the list; "
    told += f"{grown:,.0f} MiB more memory{'' if spark is None else ' in Python'}; {said}"
    if spark is not None:
        jobs, read, size = (now - then for now, then in zip(to_driver(spark), before, strict=True))
        told += f"; {jobs} jobs, {read:,} rows read, {size / 1e6:.2f} MB to the driver"
    return told


def sl_table(table: Any) -> Any:
    from surelist.workflows.source import Source

    return Source(table, "auto", None).open()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--millions", type=float, default=10)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--engine", choices=("memory", "parquet", "spark"), nargs="*", default=["memory"])
    parser.add_argument("--scores", choices=SCORES, nargs="*", default=SCORES)
    parser.add_argument("--target", choices=TARGETS, nargs="*", default=["at-least", "recall", "precision"])
    parser.add_argument("--turn", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turn:
        print(turn(*options.turn, labels=options.labels))
        return
    for scores in options.scores:
        with tempfile.TemporaryDirectory() as folder:
            make_data(data := Path(folder) / "all", options.millions, scores)
            for engine in options.engine:
                for target in options.target:
                    words = ["--turn", engine, str(data), target, "--labels", str(options.labels)]
                    command = [sys.executable, "-W", "ignore", __file__, *words]
                    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                    said = done.stdout.splitlines()[-1]
                    print(
                        f"{options.millions:g} million {scores} scores, {engine}, {target}: {said}; load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
