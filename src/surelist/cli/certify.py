"""select, show, curve, demo, completion, and what they print like calibrate."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from surelist.cli.options import (
    HeadedCommand,
    as_json,
    flag,
    hints_in,
    options,
    plot_option,
    policy_argument,
    read_policy,
    reading_options,
    strict_option,
    warn,
)
from surelist.cli.progress import PROGRESS
from surelist.errors import InvalidInput
from surelist.promises.options import OPTIONS

if TYPE_CHECKING:
    from surelist.promises.policy import Policy


@click.command(cls=HeadedCommand, no_args_is_help=True)
@click.argument("pool", type=click.Path(allow_dash=True))
@click.option("--policy", "policy_path", required=True, type=click.Path(), help="Policy file.")
@click.option("--score", help="Column with the score; default: as calibrated.")
@click.option("--group", help="Column with the group; default: as calibrated.")
@click.option("--id", help="Column with candidate ids; default: as calibrated.")
@click.option("--pool", "pool_column", help=OPTIONS["pool"].help)
@options("reason", "rank")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(allow_dash=True),
    help="Shortlist to write: .csv, .jsonl, .xlsx, .parquet, or - for CSV on stdout.",
)
@reading_options
@plot_option
@as_json
@strict_option
def select(
    pool: str, policy_path: str, output: str, pool_column: str | None, plot: Path | None, json_: bool,
    quiet: bool, **given: Any,
) -> Sequence[str]:  # fmt: skip
    """Shortlist the candidates of a POOL.

    POOL is a file, glob or folder of CSV, JSON Lines or Parquet, an Excel file, or - for CSV or JSON Lines on
    stdin. The shortlist has the pool's columns and order, an .xlsx also rank and reason; --engine spark
    writes a folder.
    With --strict, exit code 5 when nobody is listed or the pool has warnings; it is written all the same.

    \b
    Example:
      surelist select new.csv --policy policy.json -o shortlist.csv
    """
    from surelist.workflows import selection as workflows
    from surelist.workflows.source import Read, Source

    policy = workflows.load_policy(policy_path)
    names = ("sheet", "header_row", "decimal", "engine", "spark_master")
    read = Read(**{name: given.pop(name) for name in names})
    with input_file(pool) as path, _output(output) as target:
        source = Source.of(path, read, progress=PROGRESS)
        opened = replace(source, table=source.open())
        score = given["score"] or (policy.columns or {}).get("score")
        print_reading(opened.reading(score=score).sentences, quiet or json_)
        done = workflows.select_table(opened.table, policy, output=target, pool=pool_column, **given)
    draw_policy(done, plot)
    found = [*([] if done.shortlisted else ["Nobody is on the shortlist."]), *done.warnings]
    if json_:
        click.echo(json.dumps({**done.to_dict(), "output": output}), err=output == "-")
    elif not quiet:
        lines = [each for each in done.describe(checks=("share",)).splitlines() if each not in done.warnings]
        click.echo("\n".join(lines), err=True)
        for each in done.warnings:
            warn(each)
        click.echo(policy.promise_of(done.candidates), err=True)
    return found


@click.command(cls=HeadedCommand, no_args_is_help=True)
@click.argument("table", type=click.Path(allow_dash=True))
@click.option("--policy", "policy_path", required=True, type=click.Path(), help="Policy file.")
@click.option("--score", help="Column with the score; default: as calibrated.")
@click.option("--label", help="Column with the label; default: as calibrated.")
@click.option("--group", help="Column with the group; default: as calibrated.")
@click.option("--id", help="Column with candidate ids; default: as calibrated.")
@click.option("--pool", help="Column with the pool; default: as calibrated.")
@options("pos_label", "neg_label", "sheet", "header_row", "decimal", "engine")
@plot_option
@as_json
@strict_option
def evaluate(
    table: str, policy_path: str, plot: Path | None, json_: bool, quiet: bool, **given: Any
) -> Sequence[str]:
    """Compare what a policy kept with its promise, on a TABLE of labelled candidates it never saw.

    Shares come with exact 95% intervals. Do not use calibration rows. With --strict, exit code 5 when the
    rows speak against the promise.

    \b
    Example:
      surelist evaluate later.csv --policy policy.json
    """
    from surelist.workflows import tables as workflows
    from surelist.workflows.source import Read

    policy = workflows.load_policy(policy_path)
    with input_file(table) as path:
        names = ("pos_label", "neg_label", "sheet", "header_row", "decimal", "engine")
        read = Read(**{name: given.pop(name) for name in names})
        evaluation = workflows.evaluate_table(path, policy, read=read, **given)
    draw_policy(evaluation, plot)
    if not quiet:
        click.echo(json.dumps(evaluation.to_dict()) if json_ else evaluation.describe())
    return (evaluation.verdict,) if evaluation.consistent is False else ()


@click.command(no_args_is_help=True)
@policy_argument
@plot_option
@as_json
def show(policy_path: str, plot: Path | None, json_: bool) -> None:
    """Print what a POLICY promises, what the promise rests on, and the evidence. - reads it from stdin.

    \b
    Example:
      surelist show policy.json
    """
    policy = read_policy(policy_path)
    draw_policy(policy, plot)
    if json_:
        click.echo(json.dumps(summary_of(policy)))
    else:
        print_policy(policy)


@click.command(cls=HeadedCommand, no_args_is_help=True)
@click.argument("past", type=click.Path(allow_dash=True))
@options("score", "label", "curve.pool_size", "curve.alpha", "curve.rule", "missing_labels")
@options("pos_label", "neg_label", "sheet", "header_row", "decimal")
@click.option("--expect", type=float, metavar="K", help="Show the list that is certified for this many.")
@plot_option
@as_json
def curve(past: str, expect: float | None, plot: Path | None, json_: bool, **given: Any) -> None:
    """For every list size: how many qualified candidates are certified.

    All points hold at once, so a target may be picked from the curve after looking, with
    the same rule in calibrate. The last line is the command that does it, for --expect or an example.

    \b
    Example:
      surelist curve past.csv --pool-size 100 --plot curve.png
    """
    from surelist.workflows import tables as workflows

    said = dict(given)
    with input_file(past) as path:
        guarantees = workflows.curve(path, hints=hints_in(given), **given)
    k = guarantees.suggested if expect is None else expect
    chosen = guarantees.shortest(k) if k else None
    if plot:
        guarantees.plot(k=k or None, path=plot)
    if not json_:
        click.echo(guarantees.describe())
        if chosen is not None:
            click.echo(_next_command(past, k, chosen, said))
        return
    names = ("list_size", "qualified", "threshold")
    columns = (getattr(guarantees, name).tolist() for name in names)
    points = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    settings = {name: given[name] for name in ("alpha", "rule", "pool_size")}
    click.echo(json.dumps({**settings, "points": points}))


def _next_command(past: str, k: float, chosen: tuple[float, float], given: dict[str, Any]) -> str:
    """The exact words that turn a point of the curve into a policy."""
    wanted = {**given, "expect": f"{k:g}", "pool_size": f"{given['pool_size']:g}", "output": "policy.json"}
    if wanted["missing_labels"] == "error":
        del wanted["missing_labels"]
    said = {name: value if isinstance(value, tuple | list) else (value,) for name, value in wanted.items()}
    flags = [(flag(name), str(each)) for name, values in said.items() for each in values if each is not None]
    words = ["surelist", "calibrate", past, *(word for pair in flags for word in pair)]
    return (
        f"\n{chosen[1]:.4g} are certified on a list of {chosen[0]:.4g}. For a promise of {k:g}:\n"
        f"  {shlex.join(words)}"
    )


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default="surelist-demo",
    show_default=True,
    help="Where the example files go.",
)
@click.option("--seed", type=click.IntRange(min=0), default=5, show_default=True, help="Seed of the example.")
@as_json
def demo(folder: str, seed: int, json_: bool) -> None:
    """Make an example, calibrate, select, and show the result. Needs nothing but the package.

    \b
    Example:
      surelist demo
    """
    from surelist.workflows import demo as workflow

    made = workflow.demo(Path(folder), seed)
    if json_:
        click.echo(json.dumps({
            "promise": made.policy.promise, "threshold": made.policy.threshold,
            "candidates": made.selection.candidates, "shortlisted": made.selection.shortlisted,
            "lists": made.lists, "folder": str(made.folder),
        }))  # fmt: skip
        return
    listed, total = made.selection.shortlisted, made.selection.candidates
    click.echo(
        f"Made 1,000 past trial candidates with a score and a label, and a pool of {total} new ones.\n"
    )
    click.secho(f"Review {listed} of {total}.", bold=True)
    click.echo(f"{made.policy.promise}\n")
    click.echo("Candidates to review        this pool   average pool")
    for rule, name in (("exact", "exact rule (default)"), ("dkw", "the paper's rule (dkw)")):
        size, average = made.lists[rule]
        click.echo(f"  {name:<26}{size:>9}{average:>15.1f}")
    click.echo(f"\nFiles in {made.folder}{os.sep}: past.csv, new.csv, policy.json, shortlist.csv")
    click.echo(f"Next: surelist show {made.folder / 'policy.json'}")


@click.command(no_args_is_help=True)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      surelist completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from surelist.cli import cli

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(cli, {}, "surelist", "_SURELIST_COMPLETE").source())


@contextmanager
def input_file(name: str) -> Iterator[str]:
    """The input as a file; stdin is spooled to one first."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        from surelist.workflows.source import begins_as_json

        with path.open("rb") as spool:
            lines = begins_as_json(spool.read(1 << 12))
        yield str(path.rename(path.with_suffix(".jsonl")) if lines else path)


@contextmanager
def _output(name: str) -> Iterator[str]:
    """The output as a file; stdout gets it whole, once it is complete."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdout.csv"
        yield str(path)
        with path.open("rb") as done:
            for block in iter(lambda: done.read(1 << 20), b""):
                sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()


def draw_policy(shown: Any, plot: Path | None) -> None:
    """Draw it where a file for it was named."""
    if plot is not None:
        shown.plot(path=plot)


def save_policy(policy: Policy, output: str) -> None:
    """To a file, or printed."""
    if output != "-":
        policy.save(output)
        return
    from surelist.promises import policy_file

    if policy.salt is not None:
        raise InvalidInput("output", "a policy with --ties hash has a secret salt file; give it a file name.")
    click.echo(policy_file.dumps(policy), nl=False)


def summary_of(policy: Policy) -> dict[str, Any]:
    """What --json prints of a policy."""
    from msgspec import structs

    from surelist.promises import policy_file

    excess = {
        "" if name is None else str(name): structs.asdict(bound)
        for name, bound in policy.excess_bound.items()
    }
    return {
        **policy_file.to_dict(policy),
        "conditions": list(policy.conditions),
        "warnings": list(policy.warnings),
        "excess_bound": excess,
    }


def print_reading(sentences: Sequence[str], quiet: bool) -> None:
    """What was understood of a file, before anything is done with it; JSON has it in the policy."""
    for each in () if quiet else sentences:
        click.echo(each, err=True)


def print_policy(policy: Policy) -> None:
    """The promise in bold, then why and on what conditions."""
    promise, _, rest = policy.describe().partition("\n")
    click.secho(promise, bold=True)
    click.echo(rest)
