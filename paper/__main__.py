"""``python -m paper``: the paper's experiments, the census files, the impossibility construction."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import surelist as sl

if TYPE_CHECKING:
    from paper.reproduce import Report

MARKS = {
    True: click.style("holds        ", fg="green") + "  ",
    False: click.style("DOES NOT HOLD", fg="red") + "  ",
    None: "",  # too few runs
}
EXPERIMENTS = ("noise", "calibration-size", "diversity-noise", "diversity-size")


class Commands(click.Group):
    """Errors are one line, with exit code 2 where what was asked for is wrong."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except sl.SurelistError as error:
            raise click.UsageError(str(error)) from error


@click.group(cls=Commands)
def cli() -> None:
    """Reproduce the ICML 2022 paper: experiments, census data, impossibility."""


@cli.command()
@click.argument("experiment", type=click.Choice([*EXPERIMENTS, "all"]))
@click.option(
    "--data", multiple=True, default=("synthetic",), show_default=True,
    help="PUMS person file (.csv, .zip, .parquet) or a folder of them; repeat for several. "
    '"synthetic" makes people up.',
)  # fmt: skip
@click.option("--runs", type=click.IntRange(1), default=100, show_default=True, help="Runs per setting.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for results."
)
@click.option("--rows", type=click.IntRange(1), help="Use only this many people.")
@click.option(
    "--group-level", type=click.Choice(["split", "each"]), default="split", show_default=True,
    help="Level per group: alpha/2 as in the paper's Algorithm 3, or alpha in each as in the authors' code.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Processes; all cores by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON.")
def run(
    experiment: str, data: tuple[str, ...], runs: int, seed: int, out: Path, rows: int | None,
    group_level: str, jobs: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Run experiments and write results, figures and summary.html to a folder.

    Interrupted? The same command goes on where it stopped.

    \b
    Example:
      python -m paper run noise --runs 10 --out results
      python -m paper run all --data psam_p10.csv --data csv_phi.zip --out results
    """
    from paper.reproduce import people, reproduce

    names = EXPERIMENTS if experiment == "all" else (experiment,)
    click.echo(f"Reading {', '.join(data)} ...", err=True)
    population = people(data, rows, seed)
    click.echo(f"{len(population):,} people from {population.source}.", err=True)
    try:
        with Bar() as bar:
            report = reproduce(
                names, population, out, runs=runs, seed=seed, group_level=group_level, jobs=jobs, progress=bar
            )
    except KeyboardInterrupt:
        click.echo("\nStopped. The same command goes on from here.", err=True)
        raise click.exceptions.Exit(1) from None
    if as_json:
        click.echo(json.dumps([vars(claim) for claim in report.claims], indent=2))
    else:
        _print_claims(report)


@cli.command("fetch-acs")
@click.option("--year", type=click.IntRange(2000, 2100), default=2018, show_default=True)
@click.option("--states", required=True, help="Two-letter states, comma-separated, for example DE,HI,VT.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default="acs", show_default=True,
    help="Folder for the files.",
)  # fmt: skip
@click.option("--base-url", help="Another server with the Census Bureau's layout (a mirror).")
def fetch_acs(year: int, states: str, out: Path, base_url: str | None) -> None:
    """Download PUMS person files from the Census Bureau, with retries and resume.

    Every file is checked (complete archive, person file, the task's columns) and its SHA-256
    is kept in SHA256SUMS beside it.

    \b
    Example:
      python -m paper fetch-acs --year 2018 --states DE,VT --out acs
      python -m paper run all --data acs --out results
    """
    from paper.fetch import BASE_URL, FetchError, fetch, state_list

    for state in state_list(states):
        try:
            file = fetch(year, state, out, base_url or BASE_URL, lambda line: click.echo(line, err=True))
        except FetchError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{file.path}  {file.size:,} bytes  sha256 {file.sha256}")


@cli.command()
@click.option("--k", type=float, default=5, show_default=True, help="Qualified candidates wanted.")
@click.option("--pool-size", type=click.IntRange(2), default=100, show_default=True)
def impossibility(k: float, pool_size: int) -> None:
    """Show why no calibrated score gives the best list for every pool (Proposition 1)."""
    from paper.baselines import impossibility as construct

    example = construct(k, pool_size)
    few, many = example.oracle_sizes
    click.echo(
        f"Two kinds of candidates: a is qualified for certain, b with probability {k / pool_size:g}.\n"
        "A perfectly calibrated score that is not the truth itself gives both the same value,\n"
        "so its policy treats a pool of only a and a pool of only b alike.\n\n"
        f"best list, pool of only a: {few:8.2f} candidates\n"
        f"best list, pool of only b: {many:8.2f} candidates\n\n"
        "Whatever list size the policy chooses, on one of the two pools it misses the best list by\n"
        f"  size:      at least {example.size_miss.min():.4g} candidates"
        f" (Proposition 1: {example.size_bound:.4g})\n"
        f"  qualified: at least {example.qualified_miss.min():.4g} candidates"
        f" (Proposition 1: {example.qualified_bound:.4g}; sharp: {example.qualified_sharp:.4g})\n\n"
        "Hence promises on average over pools, which surelist makes, or for one pool with a\n"
        "probability (PerPool), but never the best list for every pool."
    )


class Bar:
    """A progress bar on stderr with the time left, counted from this start, not from a resume."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.started = time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, total: int) -> None:
        """``done`` more of ``total`` runs; the first call tells what was there already."""
        if self.bar is None:
            if done:
                click.echo(f"Going on: {done} of {total} runs were there already.", err=True)
            self.bar = click.progressbar(
                length=total - done, label="runs", file=sys.stderr, show_eta=True, show_pos=True
            )
            self.bar.__enter__()
            return
        self.bar.update(done)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.__exit__(*error)
        if error[0] is None:
            click.echo(f"Done in {time.monotonic() - self.started:.0f} s.", err=True)


def _print_claims(report: Report) -> None:
    if report.about.synthetic:
        click.echo("SYNTHETIC people, made up from margins of a census file; not census results.")
    if report.about.few:
        click.echo(f"Only {report.about.runs} runs: no verdicts.")
    last = None
    for claim in report.claims:
        if claim.experiment != last:
            click.echo(f"\n{claim.experiment}")
            last = claim.experiment
        mark = MARKS[claim.holds]
        click.echo(f"  {mark}{claim.says}  [{claim.measured}]")
    click.echo(f"\n{report.folder / 'summary.html'}")


if __name__ == "__main__":
    cli(prog_name="python -m paper")
