"""select, evaluate, show, curve, sql, report: they start without the promises that they are not asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click
from msgspec.structs import replace

from surelist import workflows
from surelist._check import Dialect
from surelist.cli import options as flags, output as printed
from surelist.cli.output import PROGRESS
from surelist.promises.options import OPTIONS


def as_calibrated(**columns: str) -> flags.Decorator:
    """Options for columns that a policy remembers: what is in each."""
    return flags.stacked(
        *(
            click.option(f"--{name}", help=f"Column with {what}; default: as calibrated.")
            for name, what in columns.items()
        )
    )


LABELS, READING = ("pos_label", "neg_label"), ("sheet", "header_row", "decimal", "engine")
policy_option = click.option("--policy", "policy_path", required=True, type=click.Path(), help="Policy file.")


@click.command(cls=flags.HeadedCommand, no_args_is_help=True)
@click.argument("pool", type=flags.STREAM)
@policy_option
@as_calibrated(score="the score", group="the group", id="candidate ids")
@click.option("--pool", "pool_column", help=OPTIONS["pool"].help)
@flags.options("reason", "rank")
@click.option("-o", "--output", required=True, type=flags.STREAM,
              help="Shortlist to write: .csv, .jsonl, .xlsx, .parquet, or - for CSV on stdout.")  # fmt: skip
@flags.reading_options
@flags.plot_and_json
@flags.strict_option
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
    from surelist.promises.policy import Policy

    policy = Policy.load(policy_path)
    read = workflows.source.Read(**{name: given.pop(name) for name in (*READING, "spark_master")})
    with printed.input_file(pool) as path, printed.output_file(output) as target:
        source = workflows.source.Source.of(path, read, progress=PROGRESS)
        opened = replace(source, table=source.open())
        score = given["score"] or (policy.columns or {}).get("score")
        printed.print_reading(opened.reading(score=score).sentences, quiet or json_)
        given |= {"output": target, "pool": pool_column}
        done = workflows.selection.select_table(opened.table, policy, **given)
    printed.draw(done, plot)
    nobody = "Nobody is accepted." if policy.three_ways else "Nobody is on the shortlist."
    found = [*([] if done.shortlisted else [nobody]), *done.warnings]
    if json_:
        click.echo(json.dumps({**done.to_dict(), "output": output}), err=output == "-")
    elif not quiet:
        lines = [each for each in done.describe(checks=("share",)).splitlines() if each not in done.warnings]
        click.echo("\n".join(lines), err=True)
        for each in done.warnings:
            flags.warn(each)
        if not policy.of_collection:  # of whom nothing is promised, as was said already
            click.echo(policy.promise_of(done.candidates), err=True)
    return found


@click.command(cls=flags.HeadedCommand, no_args_is_help=True)
@click.argument("table", type=flags.STREAM)
@policy_option
@as_calibrated(score="the score", label="the label", group="the group", id="candidate ids", pool="the pool")
@flags.options(*LABELS, *READING)
@flags.plot_and_json
@flags.strict_option
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
    from surelist.promises.policy import Policy

    policy = Policy.load(policy_path)
    with printed.input_file(table) as path:
        read = workflows.source.Read(**{name: given.pop(name) for name in (*LABELS, *READING)})
        evaluation = workflows.tables.evaluate_table(path, policy, read=read, **given)
    printed.answer(evaluation, plot, json_, evaluation.to_dict, quiet=quiet)
    return (evaluation.verdict,) if evaluation.consistent is False else ()


@click.command(no_args_is_help=True)
@flags.policy_argument
@flags.plot_and_json
def show(policy_path: str, plot: Path | None, json_: bool) -> None:
    """Print what a POLICY promises, what the promise rests on, and the evidence. - reads it from stdin.

    \b
    Example:
      surelist show policy.json
    """
    policy = flags.read_policy(policy_path)
    printed.draw(policy, plot)
    if json_:
        click.echo(json.dumps(printed.summary_of(policy)))
    else:
        printed.print_policy(policy)


@click.command(cls=flags.HeadedCommand, no_args_is_help=True)
@click.argument("past", type=flags.STREAM)
@flags.options("score", "label", "curve.pool_size", "curve.alpha", "curve.rule", "missing_labels")
@flags.options("pos_label", "neg_label", "sheet", "header_row", "decimal")
@click.option("--expect", type=float, metavar="K", help="Show the list that is certified for this many.")
@flags.plot_and_json
def curve(past: str, expect: float | None, plot: Path | None, json_: bool, **given: Any) -> None:
    """For every list size: how many qualified candidates are certified.

    All points hold at once, so a target may be picked from the curve after looking, with
    the same rule in calibrate. The last line is the command that does it, for --expect or an example.

    \b
    Example:
      surelist curve past.csv --pool-size 100 --plot curve.png
    """
    said = dict(given)
    with printed.input_file(past) as path:
        guarantees = workflows.tables.curve(path, hints=flags.hints_in(given), **given)
    k = guarantees.suggested if expect is None else expect
    chosen = guarantees.shortest(k) if k else None
    if plot:
        guarantees.plot(k=k or None, path=plot)
    if not json_:
        click.echo(guarantees.describe())
        if chosen is not None:
            click.echo(_next_command(past, k, chosen, said))
        return
    settings = {name: given[name] for name in ("alpha", "rule", "pool_size")}
    listed = printed.points(guarantees, "list_size", "qualified", "threshold")
    click.echo(json.dumps({**settings, "points": listed}))


def _next_command(past: str, k: float, chosen: tuple[float, float], given: dict[str, object]) -> str:
    """The exact words that turn a point of the curve into a policy."""
    wanted = {**given, "expect": f"{k:g}", "pool_size": f"{given['pool_size']:g}", "output": "policy.json"}
    if wanted["missing_labels"] == "error":
        del wanted["missing_labels"]
    said = {name: value if isinstance(value, tuple | list) else (value,) for name, value in wanted.items()}
    pairs = [(flags.flag(name), str(each)) for name in said for each in said[name] if each is not None]
    words = ["surelist", "calibrate", past, *(word for pair in pairs for word in pair)]
    return (
        f"\n{chosen[1]:.4g} are certified on a list of {chosen[0]:.4g}. For a promise of {k:g}:\n"
        f"  {shlex.join(words)}"
    )


@click.command(no_args_is_help=True)
@flags.policy_argument
@click.option("--dialect", type=click.Choice(get_args(Dialect)), default="duckdb", help="Whose SQL.")
@as_calibrated(score="the score", group="the group")
@click.option("--pool-size", type=int, metavar="M", help="For promises per pool: candidates in every pool.")
@click.option("--whole-numbers", is_flag=True, help="The score is an integer column.")
@flags.as_json
def sql(policy_path: str, json_: bool, **given: Any) -> None:
    """Print the selection of a POLICY as one SQL expression: true for who is on the shortlist.

    POLICY is a file, or - for stdin. The expression is false, never null, for rows without a finite score
    and for groups without a threshold. Policies whose list cannot be said in one expression are refused,
    and so are those with secret ties.

    \b
    Example:
      surelist sql policy.json --dialect postgres
    """
    policy = flags.read_policy(policy_path)
    text = workflows.selection.selection_sql(policy, **given)
    body = {"sql": text, "dialect": given["dialect"], "promise": policy.promise}
    click.echo(json.dumps(body) if json_ else text)


@click.command(no_args_is_help=True)
@flags.file_argument("policy")
@flags.file_option("--past", help="The calibration rows, for curves and their fingerprint.")
@flags.file_option("--pool", help="A pool: sizes, selection rates and fingerprints of its shortlist.")
@click.option(
    "--attribute", "attributes", multiple=True, help="Column of the pool to report rates by; up to two."
)
@click.option("--name", default="policy", help="Title of the report.")
@flags.output_option("Report: .html, .pdf or .json.")
def report(policy: Path, output: Path, **options: Any) -> None:
    """Write the audit report of a POLICY from files.

    \b
    Example:
      surelist report policy.json --past past.csv --pool new.csv --attribute sex -o report.html
    """
    workflows.summaries.write(policy, output, **options)
    click.echo(f"Written to {output}.", err=True)
