"""Many runs on all cores, resumable: a journal that grows run by run, and tables at the end.

The journal's first line says what is being run; every other line is one finished run. A line cut
short by an interruption is left out on the next start and that run is done again.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from surelist._dataclasses import asdict, astuple, dataclass, fields
from surelist._files import writing
from surelist._version import __version__
from surelist.errors import InvalidInput
from surelist.paper.data import People
from surelist.paper.experiments import EXPERIMENTS, Measurement, fitting_settings, one_run
from surelist.paper.screening import Setup, split

JOURNAL = "journal.jsonl"
COLUMNS = tuple(field.name for field in fields(Measurement))

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """What to run: which experiments and settings, how often, from which seed."""

    settings: dict[str, tuple[float, ...]]
    runs: int
    seed: int
    setup: Setup

    def tasks(self) -> list[tuple[str, int]]:
        return [(name, run) for name in self.settings for run in range(self.runs)]


def plan(names: Sequence[str], population: People, runs: int, seed: int, setup: Setup) -> Job:
    """The settings of each experiment that the population is large enough for."""
    settings = {name: fitting_settings(EXPERIMENTS[name], population, setup) for name in names}
    return Job(settings, runs, seed, setup)


def run(job: Job, population: People, folder: Path, jobs: int, progress: Progress) -> list[Measurement]:
    """Do every run that ``folder`` does not hold yet, and return all rows in order."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"surelist": __version__, "people": population.fingerprint(), "seed": job.seed} | asdict(
        job.setup
    )
    done = _resume(folder / JOURNAL, header)
    tasks = job.tasks()
    missing = [task for task in tasks if not _covered(done.get(task), job.settings[task[0]])]
    progress(len(tasks) - len(missing), len(tasks))
    with open(folder / JOURNAL, "a", encoding="utf-8") as journal:
        for task, rows in _work(missing, job, population, jobs):
            done[task] = rows
            journal.write(json.dumps([astuple(row) for row in rows]) + "\n")
            journal.flush()
            progress(1, len(tasks))
    wanted = {name: set(settings) for name, settings in job.settings.items()}
    return [row for task in tasks for row in done[task] if row.setting in wanted[task[0]]]


def write_tables(rows: Sequence[Measurement], folder: Path) -> None:
    """``results.csv`` and ``results.parquet``, tidy: one line per method, group, run and setting."""
    import duckdb

    with writing(folder / "results.csv") as path:
        write_csv(path, COLUMNS, (astuple(row) for row in rows))
    source = str(folder / "results.csv").replace("'", "''")
    with writing(folder / "results.parquet") as path, duckdb.connect() as engine:
        target = str(path).replace("'", "''")
        engine.execute(
            f"COPY (SELECT * REPLACE (certified = 1 AS certified) FROM read_csv('{source}', header=true)) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def write_csv(path: Path, columns: Sequence[str], rows: Any) -> None:
    """Plain CSV; truth values as 1 and 0, numbers with six digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def _resume(path: Path, header: dict[str, Any]) -> dict[tuple[str, int], list[Measurement]]:
    """Finished runs of the same experiments; starts the journal if there is none."""
    lines = _whole_lines(path)
    if not lines:
        with writing(path) as fresh:
            fresh.write_text(json.dumps(header) + "\n", encoding="utf-8")
        return {}
    saved = json.loads(lines[0])
    if saved != header:
        names = [name for name in header if saved.get(name) != header[name]]
        raise InvalidInput(
            "out",
            f"{path.parent} holds runs with another {', '.join(names)}. Choose another folder, or delete "
            "that one.",
        )
    with writing(path) as clean:  # drops a line that was cut short
        clean.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    done: dict[tuple[str, int], list[Measurement]] = {}
    for line in lines[1:]:
        rows = [Measurement(*values) for values in json.loads(line)]
        done[rows[0].experiment, rows[0].run] = rows
    return done


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def _covered(rows: list[Measurement] | None, settings: tuple[float, ...]) -> bool:
    return rows is not None and set(settings) <= {row.setting for row in rows}


def _work(
    tasks: list[tuple[str, int]], job: Job, population: People, jobs: int
) -> Iterator[tuple[tuple[str, int], list[Measurement]]]:
    """Finished tasks as they come. Workers share the people through one memory-mapped file each."""
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        for name, number in tasks:
            yield (name, number), _task(population, job, name, number)
        return
    with tempfile.TemporaryDirectory() as folder:
        _share(population, Path(folder))
        context = multiprocessing.get_context("spawn")
        start = (folder, population.names, population.source, population.synthetic, job)
        with ProcessPoolExecutor(jobs, context, _start_worker, start) as workers:
            yield from _collect(workers, tasks)


def _collect(
    workers: ProcessPoolExecutor, tasks: list[tuple[str, int]]
) -> Iterator[tuple[tuple[str, int], list[Measurement]]]:
    running: dict[Future[list[Measurement]], tuple[str, int]] = {
        workers.submit(_in_worker, *task): task for task in tasks
    }
    try:
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def _task(population: People, job: Job, name: str, number: int) -> list[Measurement]:
    """One thread only: the runs are the parallelism, and sums come out the same on any machine."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1):
        return one_run(population, EXPERIMENTS[name], number, job.seed, job.settings[name], job.setup)


_worker: dict[str, Any] = {}  # one population and job per worker process


def _share(population: People, folder: Path) -> None:
    for name in ("features", "qualified", "minority"):
        np.save(folder / f"{name}.npy", getattr(population, name))


def _start_worker(folder: str, names: tuple[str, ...], source: str, synthetic: bool, job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the workers
    arrays = [
        np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ("features", "qualified", "minority")
    ]
    _worker["population"] = People(arrays[0], arrays[1], arrays[2], names, source, synthetic)
    _worker["job"] = job


def _in_worker(name: str, number: int) -> list[Measurement]:
    return _task(_worker["population"], _worker["job"], name, number)


def cores() -> int:
    """How many processes this machine can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def test_rows(population: People, setup: Setup) -> int:
    """How many people the test half holds."""
    return len(split(population, False, setup, np.random.default_rng(0)).test)
