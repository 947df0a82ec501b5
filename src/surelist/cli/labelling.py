"""label: which rows to label. Exit code 3: not certifiable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from surelist.cli import HelpfulGroup
from surelist.cli.options import (
    HeadedCommand,
    as_json,
    asked,
    option,
    options,
    plot_option,
    promise_flags,
    stacked,
)

state_argument = click.argument("state", type=click.Path(path_type=Path))
state_option = click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="State file to write."
)
label_option = option("label", default="label")
next_options = stacked(
    state_argument,
    click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(path_type=Path),
        help="Sheet to fill in: .csv or .xlsx.",
    ),
    click.option("--count", type=int, help="At most this many rows."),
    label_option,
    as_json,
)
record_options = stacked(
    state_argument,
    click.argument("sheet", type=click.Path(path_type=Path)),
    label_option,
    click.option("--final", is_flag=True, help="Blank labels of this sheet will not come."),
    click.option(
        "--correct", is_flag=True, help="Labels that differ from those on record correct them, on record."
    ),
    as_json,
)


@click.group(cls=HelpfulGroup)
def label() -> None:
    """From a scored collection without labels to a certified list: which rows to label.

    \b
    Example:
      surelist label start candidates.parquet --expect 5 --pool-size 100 --labels 300 -o work.json
      surelist label next work.json -o sheet.csv
      surelist label record work.json sheet.csv
      surelist label status work.json --policy policy.json
    """


@label.command(name="start", cls=HeadedCommand, no_args_is_help=True)
@click.argument("collection", type=click.Path(path_type=Path))
@promise_flags("labelling")
@option("reject_recall")
@option("pool_size")
@click.option("--labels", type=int, required=True, help="How many rows can be labelled in all.")
@option("alpha")
@option("score")
@click.option("--id", "id", help="Column with the candidate's id, kept for the drawn rows.")
@option("group", help="Column with the group: one design each, alpha and labels shared evenly.")
@option("target", more=" Also women=at-least:K. One promise for all groups needs none.")
@option("purpose")
@options("engine", "spark_master")
@click.option("--judge", metavar="COLUMN", help="Column with a model's verdicts, instead of --score.")
@click.option("--block", type=int, help="Label rows of this many best candidates, without a pilot.")
@state_option
@as_json
def start_label(collection: Path, output: Path, json_: bool, **given: Any) -> None:
    """Draw the rows to label from COLLECTION, a table of scored candidates.

    --expect and --per-pool promise about future pools like it; --at-least, --recall and --precision
    about the collection itself, whatever it is.
    """
    from surelist.workflows import labelling

    if given["purpose"] is None and given["group"] is not None:
        raise click.UsageError("--group needs --purpose: what cutoffs per group are for.")
    source = click.get_current_context().get_parameter_source("score")
    if given["judge"] is not None and source is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--judge makes the score; leave --score out.")
    target = _target(given)
    kept = ("labels", "alpha", "score", "judge", "id", "group", "purpose", "engine", "spark_master", "block")
    work = labelling.start_labelling(collection, output, target, **{name: given[name] for name in kept})
    say(json_, work.describe(), state=str(output), waiting=len(work.ask()))


def _target(given: dict[str, Any]) -> Any:
    """One target for all, or one for each group named."""
    from surelist.promises.grammar import group_targets, target_asked

    if not given["target"]:
        return target_asked(asked({**given, "group": None}) | {"group": None})
    if given["group"] is None:
        raise click.UsageError("--target goes with --group, instead of a promise for all groups.")
    asked(given)
    return group_targets(given["target"], pool_size=given["pool_size"])


@label.command(name="next", no_args_is_help=True)
@next_options
def next_label(**given: Any) -> None:
    """Write a sheet with the rows to label now, all their columns and an empty label column."""
    from surelist.workflows.labelling import next_labels

    write_asked(next_labels, "rows", **given)


@label.command(name="record", no_args_is_help=True)
@record_options
def record_label(json_: bool, **given: Any) -> None:
    """Take a filled-in SHEET (.csv, .xlsx) back; in parts, in any order, and again.

    With --correct a mistyped label can be mended: a pilot's until labels of the block are recorded, any other
    until status has shown the result.
    """
    from surelist.workflows.labelling import record_labels

    done = record_labels(**given)
    corrected = f", {done.corrected:,} corrected" if done.corrected else ""
    say(
        json_, f"{done.new:,} new labels{corrected}; {done.waiting:,} to come.", new=done.new,
        waiting=done.waiting, corrected=done.corrected,
    )  # fmt: skip


@label.command(name="status", no_args_is_help=True)
@state_argument
@click.option("--policy", type=click.Path(path_type=Path), help="Write the certified policy.")
@click.option("--shortlist", type=click.Path(path_type=Path), help="Write the list of the collection itself.")
@plot_option
@as_json
def status_label(
    state: Path, policy: Path | None, shortlist: Path | None, plot: Path | None, json_: bool
) -> None:
    """The design, what has come, and the promise. Exit code 3 when the labels do not suffice."""
    from surelist.workflows import labelling

    work = labelling.load_labelling(state)
    if plot:
        work.plot(path=plot)
    waiting = len(work.ask())
    if waiting and (policy or shortlist):
        raise click.UsageError(f"{waiting:,} labels are still to come; nothing is certified before.")
    if waiting:
        say(json_, work.describe(), waiting=waiting, promise=None)
        return
    made = labelling.finish_labelling(work, policy=policy, shortlist=shortlist)
    say(json_, work.describe(), waiting=0, promise=made.promise, thresholds=[*made.thresholds.values()])


def write_asked(
    write_sheet: Callable[..., int], what: str, state: Path, output: Path, json_: bool, **options: Any
) -> None:
    """Write a sheet of what is to be labelled now, and say so."""
    rows = write_sheet(state, output, **options)
    message = (
        f"{rows:,} {what} to label are in {output}." if rows else "Nothing is to be labelled: see status."
    )
    say(json_, message, rows=rows, sheet=str(output) if rows else None)


def say(json_: bool, text: str, **facts: Any) -> None:
    """The text for people, or the facts for machines."""
    click.echo(json.dumps(facts) if json_ else text)
