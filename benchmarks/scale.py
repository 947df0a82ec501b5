"""Calibrate per group and select, at scale: time and peak memory beside hand-written queries.

    python benchmarks/scale.py                      # 10 and 50 million rows of Parquet
    python benchmarks/scale.py --rows 10 50 200 --spark

Every figure of one table comes from one run on one machine; compare ratios, not seconds. Each
contestant runs in a process of its own; its times (on the wall, and of the processor, which
others on the machine disturb less) are the best of the rounds and leave the imports out, its
memory is the peak of the process (Spark: of its Java process too, on a cluster the driver's only;
and no processor time). The cluster is one master and two workers of one core each on loopback. The
thresholds of all contestants must be equal, or the run fails. The data live in a temporary
folder that is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

GROUPS = {"a": (5, 60), "b": (3, 30), "c": (1, 10)}  # k and pool size per group
MILLION = 1_000_000
MASTER = "SURELIST_BENCHMARK_MASTER"


def make_data(path: Path, millions: int) -> None:
    """score float64, label int8, group of three values."""
    import duckdb

    duckdb.sql(
        f"""COPY (
            SELECT score, (random() < score * score * 0.57)::TINYINT AS label,
                CASE WHEN r < 0.6 THEN 'a' WHEN r < 0.9 THEN 'b' ELSE 'c' END AS "group"
            FROM (SELECT random() AS score, random() AS r FROM range({millions * MILLION}))
        ) TO '{path}' (FORMAT parquet)"""
    )


def surelist(data: str, output: str, counts: dict[str, int], engine: str, **options: Any) -> dict[str, float]:
    import surelist as sl

    target = {name: sl.Expected(*promise) for name, promise in GROUPS.items()}
    policy = sl.calibrate_table(
        data, score="score", label="label", target=target, groups=sl.Groups("group", purpose="benchmark"),
        read=sl.Read(engine=engine, **options),
    )  # fmt: skip
    sl.select_table(data, policy, output=output, read=sl.Read(engine=engine, **options))
    return {str(name): threshold for name, threshold in policy.thresholds.items()}


def duckdb_by_hand(data: str, output: str, counts: dict[str, int]) -> dict[str, float]:
    """Counts, then the c-th largest qualified score per group, then the filter."""
    import duckdb

    connection = duckdb.connect()
    source = f"read_parquet('{data}')"
    connection.sql(f'SELECT "group", count(*), sum(label) FROM {source} GROUP BY 1').fetchall()
    thresholds = {}
    for group, count in counts.items():
        thresholds[group] = connection.sql(
            f"SELECT score FROM {source} WHERE label = 1 AND \"group\" = '{group}' "
            f"ORDER BY score DESC LIMIT 1 OFFSET {count - 1}"
        ).fetchall()[0][0]
    chosen = " OR ".join(f"(\"group\" = '{g}' AND score >= {t!r}::DOUBLE)" for g, t in thresholds.items())
    connection.sql(f"COPY (SELECT * FROM {source} WHERE {chosen}) TO '{output}' (FORMAT parquet)")
    return thresholds


def polars_by_hand(data: str, output: str, counts: dict[str, int]) -> dict[str, float]:
    """The same in polars, streaming."""
    import polars as pl

    table = pl.scan_parquet(data)
    table.group_by("group").agg(pl.len(), pl.col("label").sum()).collect(engine="streaming")
    places = pl.col("group").replace_strict(counts, return_dtype=pl.Int64).first() - 1
    found = (
        table.filter(pl.col("label") == 1)
        .group_by("group")
        .agg(pl.col("score").sort(descending=True).get(places))
        .collect(engine="streaming")
    )
    thresholds = dict(found.rows())
    chosen = pl.any_horizontal(
        *((pl.col("group") == group) & (pl.col("score") >= t) for group, t in thresholds.items())
    )
    table.filter(chosen).sink_parquet(output)
    return thresholds


CONTESTANTS = {
    "surelist": lambda *a: surelist(*a, engine="auto"),
    "surelist, duckdb": lambda *a: surelist(*a, engine="duckdb"),
    "polars by hand": polars_by_hand,
    "duckdb by hand": duckdb_by_hand,
    "surelist, spark local": lambda *a: surelist(*a, engine="spark", spark_master="local[*]"),
    "surelist, spark cluster": lambda *a: surelist(*a, engine="spark", spark_master=os.environ[MASTER]),
}


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A standalone cluster as processes on loopback; its address goes to the children."""
    import pyspark

    home = Path(pyspark.__file__).parent
    core = next((home / "jars").glob("spark-core_*.jar")).name.removeprefix("spark-core_")
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": core.split("-")[0],
    }  # fmt: skip
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    os.environ[MASTER] = f"spark://127.0.0.1:{port}"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # the children's drivers stay on loopback too
    java = ["java", "-Xmx256m", "-cp", f"{home}/jars/*"]
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    worker = ["org.apache.spark.deploy.worker.Worker", *host, "--cores", "1", "--memory", "2g"]
    commands = [[*java, "org.apache.spark.deploy.master.Master", *host, "--port", port]]
    commands += [[*java, *worker, "--work-dir", str(folder / f"w{i}"), os.environ[MASTER]] for i in range(2)]
    started = []
    try:
        for command in commands:
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            time.sleep(5)
        yield
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def child(name: str, data: str, folder: str, counts: str, rounds: int) -> None:
    """Run one contestant and print what it took."""
    import duckdb  # noqa: F401
    import polars  # noqa: F401

    import surelist.workflows.tables  # noqa: F401

    best, cpu, thresholds = float("inf"), float("inf"), {}
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        thresholds = CONTESTANTS[name](data, os.path.join(folder, "out.parquet"), json.loads(counts))
        best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - used)
    took = {"seconds": best, "cpu": cpu, "mib": peak_mib()}
    print(json.dumps({**took, "thresholds": dict(sorted(thresholds.items()))}))


def peak_mib() -> float:
    """Peak memory of this process and, for Spark, of the Java process that it started."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        ours = int(fields["Pid"]) == os.getpid()
        if ours or (int(fields["PPid"]) == os.getpid() and fields["Name"].strip() == "java"):
            total += int(fields["VmHWM"].split()[0])
    return total / 1024


def run(name: str, data: Path, folder: Path, counts: dict[str, int], rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        arguments = [sys.executable, "-W", "ignore", __file__, "--child", name, str(data), own]
        done = subprocess.run(
            [*arguments, json.dumps(counts), str(rounds)], stdout=subprocess.PIPE, check=True, text=True
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def critical_counts(data: Path) -> dict[str, int]:
    """Given to the hand-written queries: they do not have to work out the statistics."""
    import surelist as sl

    target = {name: sl.Expected(*promise) for name, promise in GROUPS.items()}
    policy = sl.calibrate_table(
        data, score="score", label="label", target=target, groups=sl.Groups("group", purpose="benchmark")
    )
    return {str(cutoff.group): cutoff.steps[0].critical_count for cutoff in policy.cutoffs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 50], help="millions of rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spark", action="store_true", help="also Spark, local and on a cluster (slow)")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child[:4], int(options.child[4]))
        return
    names = [name for name in CONTESTANTS if options.spark or "spark" not in name]
    head = [
        "rows",
        "contestant",
        "seconds",
        "x best by hand",
        "CPU s",
        "x best by hand",
        "CPU ns per row",
        "peak MiB",
    ]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    sizes = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        cluster(Path(temporary)) if options.spark else nullcontext(),
    ):
        folder = Path(temporary)
        for millions in options.rows:
            data = folder / f"{millions}.parquet"
            make_data(data, millions)
            counts = critical_counts(data)
            found = {name: run(name, data, folder, counts, options.rounds) for name in names}
            sizes.append(
                f"{millions} million rows: {data.stat().st_size / millions / MILLION:.2f} bytes per row."
            )
            data.unlink()
            assert len({json.dumps(each["thresholds"]) for each in found.values()}) == 1, found
            by_hand = [each for name, each in found.items() if "hand" in name]
            wall, cpu = (min(each[what] for each in by_hand) for what in ("seconds", "cpu"))
            for name, each in found.items():
                line = [f"{each['seconds']:.2f}", f"{each['seconds'] / wall:.2f}", "", "", ""]
                if "spark" not in name:
                    line[2:] = [
                        f"{each['cpu']:.2f}",
                        f"{each['cpu'] / cpu:.2f}",
                        f"{1000 * each['cpu'] / millions:.0f}",
                    ]
                print(f"| {millions} million | {name} | {' | '.join(line)} | {each['mib']:.0f} |", flush=True)
    print("\nParquet files, " + " ".join(sizes))


if __name__ == "__main__":
    main()
