"""calibrate, select, show, curve, demo, completion."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from surelist.cli.promises import parse_target
from surelist.errors import InvalidInput

if TYPE_CHECKING:
    from surelist.promises.policy import Policy

as_json = click.option("--json", "json_", is_flag=True, help="Print JSON, for machines.")


def on_tables(command: Any) -> Any:
    """The options of commands that read tables of any size."""
    for option in (
        click.option(
            "--spark-master", metavar="URL", help="With --engine spark: local[*], spark://host:7077."
        ),
        click.option(
            "--engine",
            type=click.Choice(["auto", "duckdb", "polars", "spark"]),
            default="auto",
            show_default=True,
            help="Who reads the files; auto: polars for Parquet if installed, else DuckDB.",
        ),
        click.option(
            "--on-bad-rows",
            type=click.Choice(["error", "drop"]),
            default="error",
            show_default=True,
            help="Stop, or drop rows without a finite score and say how many.",
        ),
    ):
        command = option(command)
    return command


@click.command(no_args_is_help=True)
@click.argument("past", type=click.Path(allow_dash=True))
@click.option("--score", default="score", show_default=True, help="Column with the score.")
@click.option("--label", default="qualified", show_default=True, help="Column with the label, 1 = qualified.")
@click.option("--expect", type=float, metavar="K", help="At least K qualified in an average pool.")
@click.option("--per-pool", type=int, metavar="K", help="At least K qualified in every single pool.")
@click.option("--recall", type=float, metavar="SHARE", help="Keep this share of all qualified candidates.")
@click.option("--pool-size", metavar="M", help="Candidates in a pool; with --per-pool also a range, 50-200.")
@click.option(
    "--alpha", type=float, default=0.1, show_default=True, help="How often the promise may be false."
)
@click.option(
    "--rule",
    default="exact",
    show_default=True,
    help="exact; --expect: dkw, simultaneous; --per-pool: pac, bernstein.",
)
@click.option(
    "--calibration-share",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of alpha spent on the calibration rows by pac and bernstein.",
)
@click.option("--group", help="Column with the group; needs --target and --purpose.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=K/M",
    help='Target of a group, e.g. "women=3.8/76", "women=pool:3/76" or "women=recall:0.9". Repeat.',
)
@click.option("--purpose", help="What cutoffs per group are for; recorded in the policy.")
@click.option("--group-split", default="bonferroni", show_default=True, help="bonferroni or sidak.")
@click.option(
    "--group-rows",
    default="own",
    show_default=True,
    help="own, or all: every row counts for every group and M is the whole pool's size.",
)
@click.option("--ties", default="include", show_default=True, help="include, or hash (needs --id).")
@click.option("--id", "ident", help="Column with candidate ids, for --ties hash.")
@click.option("--missing-labels", default="error", show_default=True, help="error or unqualified.")
@click.option("-o", "--output", required=True, type=click.Path(allow_dash=True), help="Policy file to write.")
@on_tables
@as_json
def calibrate(**options: Any) -> None:
    """Certify a target from PAST candidates.

    PAST is a file, glob or folder of CSV or Parquet, or - for CSV on stdin.

    Exit code 3 when the target is not certifiable; nothing is written then.

    \b
    Example:
      surelist calibrate past.csv --score score --label qualified \\
          --expect 5 --pool-size 100 --alpha 0.1 -o policy.json
      surelist calibrate past.csv --group sex --target "women=3.8/76" --target "men=1.2/24" \\
          --purpose "outreach, not selection" -o policy.json
    """
    from surelist.workflows import tables as workflows

    target, ties = parse_target(options), options["ties"]
    with _input(options["past"]) as path:
        policy = workflows.calibrate_table(
            path, score=options["score"], label=options["label"], target=target, alpha=options["alpha"],
            rule=options["rule"], group=options["group"], purpose=options["purpose"],
            id=options["ident"] if ties == "hash" else None, ties=ties,
            calibration_share=options["calibration_share"], group_split=options["group_split"],
            group_rows=options["group_rows"], missing_labels=options["missing_labels"],
            on_bad_rows=options["on_bad_rows"], engine=options["engine"],
            spark_master=options["spark_master"], progress=_Progress(),
        )  # fmt: skip
    _save_policy(policy, options["output"])
    quiet = options["output"] == "-"
    if options["json_"] and not quiet:
        click.echo(json.dumps({"policy": options["output"], **_summary(policy)}))
    elif not quiet:
        _print_policy(policy)
        click.echo(f"\nWritten to {options['output']}.")


@click.command(no_args_is_help=True)
@click.argument("pool", type=click.Path(allow_dash=True))
@click.option("--policy", "policy_path", required=True, type=click.Path(), help="Policy file.")
@click.option("--score", help="Column with the score; default: as calibrated.")
@click.option("--group", help="Column with the group; default: as calibrated.")
@click.option("--id", "ident", help="Column with candidate ids; default: as calibrated.")
@click.option("--pool", "pool_column", help="Column that says which pool a candidate is in, for many pools.")
@click.option("--reason", is_flag=True, help="Add a column shortlist_reason: the threshold that was met.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(allow_dash=True),
    help="Shortlist to write: .csv, .parquet, or - for CSV on stdout.",
)
@on_tables
@as_json
def select(pool: str, policy_path: str, output: str, json_: bool, **options: Any) -> None:
    """Shortlist the candidates of a POOL.

    POOL is a file, glob or folder of CSV or Parquet, or - for CSV on stdin. The shortlist has
    the pool's columns and order; --engine spark writes a folder of that name.

    \b
    Example:
      surelist select new.csv --policy policy.json -o shortlist.csv
    """
    from surelist.workflows import tables as workflows

    policy = workflows.load_policy(policy_path)
    with _input(pool) as path, _output(output) as target:
        done = workflows.select_table(
            path, policy, output=target, score=options["score"], group=options["group"],
            id=options["ident"], pool=options["pool_column"], reason=options["reason"],
            on_bad_rows=options["on_bad_rows"], engine=options["engine"],
            spark_master=options["spark_master"], progress=_Progress(),
        )  # fmt: skip
    if json_:
        click.echo(json.dumps({**done.to_dict(), "output": output}), err=output == "-")
        return
    click.echo(f"{done.shortlisted:,} of {done.candidates:,} candidates are on the shortlist.", err=True)
    for name, (size, listed) in done.groups.items():
        click.echo(f"  {name}: {listed:,} of {size:,}", err=True)
    if done.dropped:
        click.echo(f"Rows without a finite score, dropped: {done.dropped:,}.", err=True)
    if done.pools:
        sizes = [each.shortlisted for each in done.pools]
        click.echo(
            f"{len(sizes):,} pools; {min(sizes):,} to {max(sizes):,} candidates shortlisted in each. "
            "--json has them all.",
            err=True,
        )
    click.echo(policy.promise, err=True)


@click.command(no_args_is_help=True)
@click.argument("policy_path", metavar="POLICY", type=click.Path())
@as_json
def show(policy_path: str, json_: bool) -> None:
    """Print what a POLICY promises, what the promise rests on, and the evidence.

    \b
    Example:
      surelist show policy.json
    """
    from surelist.workflows import tables as workflows

    policy = workflows.load_policy(policy_path)
    if json_:
        click.echo(json.dumps(_summary(policy)))
    else:
        _print_policy(policy)


@click.command(no_args_is_help=True)
@click.argument("past", type=click.Path(allow_dash=True))
@click.option("--score", default="score", show_default=True, help="Column with the score.")
@click.option("--label", default="qualified", show_default=True, help="Column with the label.")
@click.option("--pool-size", type=float, default=100, show_default=True, help="Candidates in a pool.")
@click.option("--alpha", type=float, default=0.1, show_default=True, help="How often the curve may be wrong.")
@click.option("--rule", default="simultaneous", show_default=True, help="simultaneous, or dkw (the paper's).")
@click.option("--missing-labels", default="error", show_default=True, help="error or unqualified.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Also draw it: .png, .svg or .pdf.")
@as_json
def curve(
    past: str,
    score: str,
    label: str,
    pool_size: float,
    alpha: float,
    rule: str,
    missing_labels: str,
    plot: str | None,
    json_: bool,
) -> None:
    """For every list size: how many qualified candidates are certified.

    All points hold at once, so a target may be picked from the curve after looking, with
    the same rule in calibrate.

    \b
    Example:
      surelist curve past.csv --pool-size 100 --plot curve.png
    """
    from surelist.workflows import tables as workflows

    with _input(past) as path:
        found = workflows.curve(
            path,
            score=score,
            label=label,
            pool_size=pool_size,
            alpha=alpha,
            rule=rule,
            missing_labels=missing_labels,
        )
    if plot:
        found.plot(path=plot)
    if not json_:
        click.echo(found.describe())
        return
    names = ("list_size", "qualified", "threshold")
    columns = (getattr(found, name).tolist() for name in names)
    points = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    click.echo(json.dumps({"alpha": alpha, "rule": rule, "pool_size": pool_size, "points": points}))


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
        here, average = made.lists[rule]
        click.echo(f"  {name:<26}{here:>9}{average:>15.1f}")
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

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "surelist", "_SURELIST_COMPLETE").source())


class _Progress:
    """Says on stderr what is being done, once it has taken a while."""

    def __init__(self, after: float = 2.0) -> None:
        self.start, self.after = time.monotonic(), after

    def __call__(self, what: str) -> None:
        elapsed = time.monotonic() - self.start
        if elapsed > self.after and sys.stderr.isatty():
            click.echo(f"{elapsed:5.0f} s  {what} ...", err=True)


@contextmanager
def _input(name: str) -> Iterator[str]:
    """The input as a file; stdin is spooled to one first."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        yield str(path)


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


def _save_policy(policy: Policy, output: str) -> None:
    if output != "-":
        policy.save(output)
        return
    from surelist.promises import policy_file

    if policy.salt is not None:
        raise InvalidInput("output: a policy with --ties hash has a secret salt file; give it a file name.")
    click.echo(policy_file.dumps(policy), nl=False)


def _summary(policy: Policy) -> dict[str, Any]:
    from surelist.promises import policy_file

    excess = {name or "": asdict(bound) for name, bound in policy.excess_bound.items()}
    return {**policy_file.to_dict(policy), "conditions": list(policy.conditions), "excess_bound": excess}


def _print_policy(policy: Policy) -> None:
    promise, _, rest = policy.describe().partition("\n")
    click.secho(promise, bold=True)
    click.echo(rest)
