"""The use case behind ``python -m paper run``: people in; tables, figures and a summary out.

Runs go on all cores and are resumable. The journal's first line says what is being run; every other line
is one finished run. A line cut short by an interruption is left out on the next start and done again.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import surelist as sl
from paper import data, page, synthetic
from paper.claims import Cell, PaperClaim, claims, summarise
from paper.experiments import EXPERIMENTS, Measurement, fitting_settings, one_run
from paper.inputs import as_choice, as_count, writing
from paper.screening import GROUP_LEVELS, Setup, split

SYNTHETIC = "synthetic"
SMALLEST = 50_000  # people; fewer leave no room for training and calibration
JOURNAL = "journal.jsonl"
ARRAYS = ("features", "qualified", "minority")  # of people, shared by all processes

Progress = Callable[[int, int], None]
Task = tuple[str, int]  # an experiment and the number of a run


@dataclass(frozen=True)
class Report:
    """What a reproduction found, and where it is."""

    folder: Path
    claims: list[PaperClaim]
    about: page.AboutRun


@dataclass(frozen=True)
class Job:
    """What to run: which experiments and settings, how often, from which seed."""

    settings: dict[str, tuple[float, ...]]
    runs: int
    seed: int
    setup: Setup


def people(sources: Sequence[str], rows: int | None, seed: int) -> data.People:
    """Synthetic people, or those of the files and folders named."""
    if list(sources) == [SYNTHETIC]:
        return synthetic.make(rows or synthetic.ROWS, seed)
    population = data.load([file for source in sources for file in _files(Path(source))])
    return population.first(rows) if rows else population


def _files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    files = sorted(file for pattern in ("*.zip", "*.csv", "*.parquet") for file in source.glob(pattern))
    if not files:
        raise sl.InvalidInput("data", f"no .zip, .csv or .parquet file in {source}.")
    return files


def reproduce(
    experiments: Sequence[str],
    population: data.People,
    folder: Path,
    *,
    runs: int = 100,
    seed: int = 0,
    group_level: str = "split",
    jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Run the experiments, resuming what ``folder`` holds, and write everything there."""
    runs = as_count(runs, "runs")
    setup = Setup(group_level=as_choice(group_level, GROUP_LEVELS, "group_level"))
    for name in experiments:
        as_choice(name, EXPERIMENTS, "experiment")
    if len(population) < SMALLEST:
        raise sl.InvalidInput("data", expected=f"at least {SMALLEST:,} people", got=f"{len(population):,}")
    settings = {name: fitting_settings(EXPERIMENTS[name], population, setup) for name in experiments}
    job = Job(settings, runs, seed, setup)
    rows = _run(job, population, folder, jobs or _cores(), progress)
    about = _about(population, job)
    cells = summarise(rows)
    found = claims(cells, setup.alpha, setup.group_alpha, about.test_rows, setup.calibration_rows)
    shown = [replace(each, holds=None) for each in found] if about.few else found
    _write_tables(folder, rows, cells, shown)
    drawn = page.draw_all(cells, setup.alpha, about.caption, folder)
    with writing(folder / "summary.html") as path:
        path.write_text(page.render(about, shown, drawn), encoding="utf-8")
    return Report(folder, shown, about)


def _about(population: data.People, job: Job) -> page.AboutRun:
    """Where the numbers come from; settings that the population is too small for were left out."""
    setup = job.setup
    test = split(population, False, setup, np.random.default_rng(0)).test
    left_out = {
        name: tuple(s for s in EXPERIMENTS[name].settings if s not in settings)
        for name, settings in job.settings.items()
    }
    return page.AboutRun(
        population.source, population.synthetic, len(population), len(test), job.runs, job.seed, setup.alpha,
        setup.group_alpha, setup.pools, population.absent, {name: s for name, s in left_out.items() if s},
    )  # fmt: skip


def _run(job: Job, population: data.People, folder: Path, jobs: int, progress: Progress) -> list[Measurement]:
    """Do every run that ``folder`` does not hold yet, and return all rows in order."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"surelist": sl.__version__, "people": population.fingerprint(), "seed": job.seed}
    done = _resume(folder / JOURNAL, header | asdict(job.setup))
    tasks = [(name, run) for name in job.settings for run in range(job.runs)]
    wanted = {name: set(settings) for name, settings in job.settings.items()}
    missing = [task for task in tasks if not wanted[task[0]] <= {row.setting for row in done.get(task, ())}]
    progress(len(tasks) - len(missing), len(tasks))
    with open(folder / JOURNAL, "a", encoding="utf-8") as journal:
        for task, rows in _work(missing, job, population, jobs):
            done[task] = rows
            journal.write(json.dumps([astuple(row) for row in rows]) + "\n")
            journal.flush()
            progress(1, len(tasks))
    return [row for task in tasks for row in done[task] if row.setting in wanted[task[0]]]


def _resume(path: Path, header: dict[str, Any]) -> dict[Task, list[Measurement]]:
    """Finished runs of the same experiments; starts the journal if there is none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = text[: text.rfind("\n") + 1].splitlines() or [json.dumps(header)]
    saved = json.loads(lines[0])
    if saved != header:
        names = [name for name in header if saved.get(name) != header[name]]
        raise sl.InvalidInput(
            "out",
            f"{path.parent} holds runs with another {', '.join(names)}. Choose another folder, or delete "
            "that one.",
        )
    with writing(path) as clean:  # drops a line that was cut short
        clean.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    finished = [[Measurement(*values) for values in json.loads(line)] for line in lines[1:]]
    return {(rows[0].experiment, rows[0].run): rows for rows in finished}


def _work(
    tasks: list[Task], job: Job, population: data.People, jobs: int
) -> Iterator[tuple[Task, list[Measurement]]]:
    """Finished tasks as they come. Workers share the people through one memory-mapped file each."""
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        for task in tasks:
            yield task, _task(population, job, *task)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ARRAYS:
            np.save(Path(folder) / f"{name}.npy", getattr(population, name))
        others = {name: value for name, value in vars(population).items() if name not in ARRAYS}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, _start_worker, (Path(folder), others, job)) as workers:
            running = {workers.submit(_in_worker, *task): task for task in tasks}
            try:
                for future in as_completed(running):
                    yield running[future], future.result()
            finally:
                workers.shutdown(wait=True, cancel_futures=True)


def _task(population: data.People, job: Job, name: str, number: int) -> list[Measurement]:
    """One thread only: the runs are the parallelism, and sums come out the same on any machine."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1):
        return one_run(population, EXPERIMENTS[name], number, job.seed, job.settings[name], job.setup)


_worker: dict[str, Any] = {}  # one population and job per worker process


def _start_worker(folder: Path, others: dict[str, Any], job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the workers
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    _worker.update(population=data.People(**arrays, **others), job=job)


def _in_worker(name: str, number: int) -> list[Measurement]:
    return _task(_worker["population"], _worker["job"], name, number)


def _cores() -> int:
    """How many processes this machine can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _write_tables(folder: Path, rows: list[Measurement], cells: list[Cell], found: list[PaperClaim]) -> None:
    """Tidy tables: results with one line per method, group, run and setting, also as Parquet."""
    import duckdb

    for name, kind, values in (
        ("results", Measurement, rows),
        ("summary", Cell, cells),
        ("claims", PaperClaim, found),
    ):
        with (
            writing(folder / f"{name}.csv") as path,
            open(path, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(kind)])
            writer.writerows([_cell(value) for value in astuple(each)] for each in values)
    with writing(folder / "results.parquet") as path, duckdb.connect() as engine:
        source, target = (str(each).replace("'", "''") for each in (folder / "results.csv", path))
        engine.execute(
            f"COPY (SELECT * REPLACE (certified = 1 AS certified) FROM read_csv('{source}', header=true)) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def _cell(value: Any) -> Any:
    """Truth values as 1 and 0, numbers with six digits."""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value
