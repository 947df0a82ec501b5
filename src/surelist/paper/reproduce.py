"""The use case behind ``surelist paper run``: people in; tables, figures and a summary out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from surelist import _check as check
from surelist._dataclasses import astuple, dataclass, fields, replace
from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.paper import data, figures, page, runner, synthetic
from surelist.paper.claims import PaperClaim, claims
from surelist.paper.experiments import EXPERIMENTS
from surelist.paper.screening import GROUP_LEVELS, Setup
from surelist.paper.summary import Cell, summarise

SYNTHETIC = "synthetic"
SMALLEST = 50_000  # people; fewer leave no room for training and calibration


@dataclass(frozen=True)
class Report:
    """What a reproduction found, and where it is."""

    folder: Path
    claims: list[PaperClaim]
    about: page.AboutRun


def people(sources: Sequence[str], rows: int | None, seed: int) -> data.People:
    """Synthetic people, or those of the files and folders named."""
    if list(sources) == [SYNTHETIC]:
        return synthetic.make(rows or synthetic.ROWS, seed)
    population = data.load([file for source in sources for file in _files(Path(source))])
    return population.first(rows) if rows else population


def reproduce(
    experiments: Sequence[str],
    population: data.People,
    folder: Path,
    *,
    runs: int = 100,
    seed: int = 0,
    group_level: str = "split",
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Run the experiments, resuming what ``folder`` holds, and write everything there."""
    runs = check.as_count(runs, "runs")
    setup = Setup(group_level=check.as_choice(group_level, GROUP_LEVELS, "group_level"))
    for name in experiments:
        check.as_choice(name, EXPERIMENTS, "experiment")
    if len(population) < SMALLEST:
        raise InvalidInput("data", expected=f"at least {SMALLEST:,} people", got=f"{len(population):,}")
    job = runner.plan(experiments, population, runs, seed, setup)
    rows = runner.run(job, population, folder, jobs or runner.cores(), progress)
    about = _about(population, job)
    cells = summarise(rows)
    checked = claims(cells, setup.alpha, setup.group_alpha, about.test_rows, setup.calibration_rows)
    runner.write_tables(rows, folder)
    shown = [replace(each, holds=None) for each in checked] if about.few else checked
    _write_summary(cells, shown, folder)
    drawn = figures.draw_all(cells, setup.alpha, about.caption, folder)
    with writing(folder / "summary.html") as path:
        path.write_text(page.render(about, shown, drawn), encoding="utf-8")
    return Report(folder, shown, about)


def _files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    files = sorted(file for pattern in ("*.zip", "*.csv", "*.parquet") for file in source.glob(pattern))
    if not files:
        raise InvalidInput("data", f"no .zip, .csv or .parquet file in {source}.")
    return files


def _about(population: data.People, job: runner.Job) -> page.AboutRun:
    setup = job.setup
    skipped = {}
    for name, settings in job.settings.items():
        left_out = tuple(s for s in EXPERIMENTS[name].settings if s not in settings)
        if left_out:
            skipped[name] = left_out
    return page.AboutRun(
        source=population.source,
        synthetic=population.synthetic,
        people=len(population),
        test_rows=runner.test_rows(population, setup),
        runs=job.runs,
        seed=job.seed,
        alpha=setup.alpha,
        group_alpha=setup.group_alpha,
        pools=setup.pools,
        absent=population.absent,
        skipped=skipped,
    )


def _write_summary(cells: list[Cell], checked: list[PaperClaim], folder: Path) -> None:
    with writing(folder / "summary.csv") as path:
        columns = [field.name for field in fields(Cell)]
        runner.write_csv(path, columns, (astuple(cell) for cell in cells))
    with writing(folder / "claims.csv") as path:
        columns = [field.name for field in fields(PaperClaim)]
        runner.write_csv(path, columns, (astuple(claim) for claim in checked))
