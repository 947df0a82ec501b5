"""Calibrate per group and select from files: time and peak memory beside hand-written queries of the same engine.

    python benchmarks/scale.py                          # 20 million rows of Parquet; CSV; many small files
    python benchmarks/scale.py --rows 20 50

Each engine runs in a process of its own and takes turns with its hand-written pair (count and order statistic;
filter); the best round of each counts. Ratios are of processor seconds, which others on the machine disturb
little, and of seconds on the wall. Memory is the peak of a process that calibrates and selects once, without
the pair. Thresholds and lists of both must be equal, or the run fails. The data live in a temporary folder that
is removed at the end. For Spark see ``spark_cluster.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from figures import Figure, show

GROUPS = {"a": (5, 60), "b": (3, 30), "c": (1, 10)}  # k and pool size per group
MILLION = 1_000_000
FILES = 200  # small ones
LIMITS = {"calibrate": 1.5, "select": 1.2}
BINS = 1 << 16
DRAWN = {"polars": 3, "duckdb": 3}  # times one pass that counts


def make_data(path: Path, millions: float, how: str = "FORMAT parquet") -> None:
    """score float64, label int8, group of three values."""
    import duckdb

    duckdb.sql(
        f"""COPY (
            SELECT score, (random() < score * score * 0.57)::TINYINT AS label,
                CASE WHEN r < 0.6 THEN 'a' WHEN r < 0.9 THEN 'b' ELSE 'c' END AS "group"
            FROM (SELECT random() AS score, random() AS r FROM range({round(millions * MILLION)}))
        ) TO '{path}' ({how})"""
    )


def calibrated(data: str, engine: str) -> Any:
    import surelist as sl

    target = {name: sl.Expected(*promise) for name, promise in GROUPS.items()}
    return sl.calibrate_table(
        data, score="score", label="label", target=target, groups=sl.Groups("group", purpose="benchmark"),
        read=sl.Read(engine=engine),  # type: ignore[arg-type]
    )  # fmt: skip


def selected(data: str, policy: Any, output: str, engine: str) -> int:
    import surelist as sl

    read = sl.Read(engine=engine)  # type: ignore[arg-type]
    return sl.select_table(data, policy, output=output, read=read).shortlisted


def duckdb_source(data: str) -> str:
    if data.endswith(".csv"):
        return f"(SELECT score::DOUBLE AS score, label::TINYINT AS label, \"group\" FROM read_csv('{data}', all_varchar=true))"
    return f"read_parquet('{data}/*.parquet')" if os.path.isdir(data) else f"read_parquet('{data}')"


def duckdb_thresholds(data: str, counts: dict[str, int]) -> dict[str, float]:
    """Counts, then the c-th largest qualified score per group."""
    import duckdb

    connection, source = duckdb.connect(), duckdb_source(data)
    connection.sql(f'SELECT "group", count(*), sum(label) FROM {source} GROUP BY 1').fetchall()
    return {
        group: connection.sql(
            f"SELECT score FROM {source} WHERE label = 1 AND \"group\" = '{group}' "
            f"ORDER BY score DESC LIMIT 1 OFFSET {count - 1}"
        ).fetchall()[0][0]
        for group, count in counts.items()
    }


def duckdb_select(data: str, thresholds: dict[str, float], output: str) -> None:
    import duckdb

    chosen = " OR ".join(f"(\"group\" = '{g}' AND score >= {t!r}::DOUBLE)" for g, t in thresholds.items())
    duckdb.connect().sql(
        f"COPY (SELECT * FROM {duckdb_source(data)} WHERE {chosen}) TO '{output}' (FORMAT parquet)"
    )


def polars_thresholds(data: str, counts: dict[str, int]) -> dict[str, float]:
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
    return dict(found.rows())


def polars_select(data: str, thresholds: dict[str, float], output: str) -> None:
    import polars as pl

    chosen = pl.any_horizontal(
        *((pl.col("group") == group) & (pl.col("score") >= t) for group, t in thresholds.items())
    )
    pl.scan_parquet(data).filter(chosen).sink_parquet(output)


BY_HAND: dict[str, tuple[Callable[..., dict[str, float]], Callable[..., None]]] = {
    "polars": (polars_thresholds, polars_select),
    "duckdb": (duckdb_thresholds, duckdb_select),
}


def in_turns(
    engine: str, data: str, counts: dict[str, int], rounds: int, folder: str
) -> dict[str, list[float]]:
    """Best seconds of the processor and on the wall, of each of four jobs."""
    import duckdb
    import polars  # noqa: F401

    import surelist.workflows.tables  # noqa: F401

    find, filter = BY_HAND[engine]
    outputs = [os.path.join(folder, f"{engine}-{who}.parquet") for who in ("hand", "ours")]
    policy = calibrated(data, engine)
    thresholds = {str(name): value for name, value in policy.thresholds.items()}
    assert find(data, counts) == thresholds
    jobs: dict[str, Callable[[], Any]] = {
        "calibrate, bare": lambda: find(data, counts),
        "calibrate, ours": lambda: calibrated(data, engine),
        "select, bare": lambda: filter(data, thresholds, outputs[0]),
        "select, ours": lambda: selected(data, policy, outputs[1], engine),
    }
    best = {name: [float("inf")] * 2 for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            used, began = time.process_time(), time.perf_counter()
            job()
            took = time.process_time() - used, time.perf_counter() - began
            best[name] = [min(pair) for pair in zip(best[name], took, strict=True)]
    wanted = duckdb.sql(f"SELECT count(*), sum(score) FROM {duckdb_source(outputs[0])}").fetchall()
    assert (
        duckdb.sql(f"SELECT count(*), sum(score) FROM {duckdb_source(outputs[1])}").fetchall()[0][0]
        == wanted[0][0]
    )
    return best


def once(engine: str, data: str, folder: str) -> float:
    """Peak MiB of a process that calibrates and selects."""
    selected(data, calibrated(data, engine), os.path.join(folder, "once.parquet"), engine)
    return peak()


def read_once(engine: str, data: str) -> float:
    """Peak MiB of a process that calibrates."""
    calibrated(data, engine)
    return peak()


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def child(job: str, *arguments: Any) -> Any:
    """A job in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--child", job, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compared(engine: str, what: str, data: Path, rounds: int, folder: Path) -> list[Figure]:
    counts = {str(each.group): each.steps[0].critical_count for each in calibrated(str(data), "auto").cutoffs}
    best = child("in_turns", engine, str(data), counts, rounds, str(folder))
    found = []
    for job, limit in LIMITS.items():
        cpu, wall = (
            ours / bare for ours, bare in zip(best[f"{job}, ours"], best[f"{job}, bare"], strict=True)
        )
        found.append(Figure(f"{job}, {engine}", what, cpu, limit))
        found.append(Figure(f"{job}, {engine}, on the wall", what, wall))
        found.append(Figure(f"{job}, {engine}, processor seconds", what, best[f"{job}, ours"][0]))
    return found


def figures(millions: list[int], rounds: int = 3) -> list[Figure]:
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for size in millions:
            data, what = folder / f"{size}.parquet", f"{size} million rows"
            make_data(data, size)
            for engine in ("polars", "duckdb"):
                found += compared(engine, what, data, rounds, folder)
                found.append(
                    Figure(f"peak MiB, {engine}", what, child("once", engine, str(data), str(folder)), 250)
                )
            data.unlink()
        found += small_files(folder, rounds) + text(folder, rounds) + drawn(folder, rounds)
    return found


def small_files(folder: Path, rounds: int) -> list[Figure]:
    """Many of 5,000 rows each."""
    many = folder / "many"
    many.mkdir()
    for number in range(FILES):
        make_data(many / f"{number}.parquet", 0.005)
    return [
        each
        for engine in ("polars", "duckdb")
        for each in compared(engine, f"{FILES} small files", many, rounds, folder)
    ]


def text(folder: Path, rounds: int) -> list[Figure]:
    """CSV beside one scan of it that reads the three columns, each in a database of its own, as for Parquet."""
    import duckdb

    data = folder / "text.csv"
    make_data(data, 2, "HEADER")
    scan = f'SELECT "group", count(*), sum(label), max(score) FROM {duckdb_source(str(data))} GROUP BY 1'
    bare, ours = float("inf"), float("inf")
    for _ in range(rounds):
        began = time.process_time()
        duckdb.connect().sql(scan).fetchall()
        bare, began = min(bare, time.process_time() - began), time.process_time()
        calibrated(str(data), "duckdb")
        ours = min(ours, time.process_time() - began)
    make_data(data, 20, "HEADER")
    return [
        Figure("calibrate from CSV", "2 million rows", ours / bare, 1.3),
        Figure(
            "peak MiB, calibrate from CSV", "20 million rows", child("read_once", "duckdb", str(data)), 250
        ),
        Figure(  # DuckDB holds back rows that are to be written in order: more, the more memory there is
            "peak MiB, and select", "20 million rows", child("once", "duckdb", str(data), str(folder))
        ),
    ]


def drawn(folder: Path, rounds: int, millions: float = 10) -> list[Figure]:
    """Rows for 1,200 labels beside the engine's own count of scores in as many bins, in one pass."""
    import duckdb
    import polars as pl

    import surelist as sl

    data = str(folder / "drawn.parquet")
    make_data(Path(data), millions)
    places = (pl.col("score") * BINS).floor().cast(pl.Int64)
    counted = pl.scan_parquet(data).group_by(places).len()
    by_hand: dict[str, Callable[[], Any]] = {
        "polars": lambda: counted.collect(engine="streaming"),
        "duckdb": lambda: duckdb.sql(
            f"SELECT floor(score * {BINS})::BIGINT AS bin, count(*) FROM '{data}' GROUP BY bin"
        ).fetchnumpy(),
    }
    found = []
    for engine, bare in by_hand.items():
        ours = partial(sl.label_table, data, sl.AtLeast(50), labels=1200, score="score", engine=engine)
        best = [float("inf")] * 2
        for _ in range(rounds):
            for at, job in enumerate((bare, ours)):
                began = time.process_time()
                job()
                best[at] = min(best[at], time.process_time() - began)
        where = f"{millions:g} million rows"
        found.append(Figure(f"draw for 1,200 labels, {engine}", where, best[1] / best[0], DRAWN[engine]))
        found.append(Figure(f"draw for 1,200 labels, {engine}, seconds", where, best[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[20], help="millions of rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        job, arguments = options.child
        print(
            json.dumps(
                {"in_turns": in_turns, "once": once, "read_once": read_once}[job](*json.loads(arguments))
            )
        )
        return
    show(figures(options.rows, options.rounds))


if __name__ == "__main__":
    main()
