"""stop and validate: when a review may stop; whether decisions kept enough. Exit code 3: not certifiable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from surelist.cli import HelpfulGroup
from surelist.cli.labelling import (
    next_options,
    record_options,
    say,
    state_argument,
    state_option,
    write_asked,
)
from surelist.cli.options import SHARE, as_json, plot_option


@click.group(cls=HelpfulGroup)
def stop() -> None:
    """May a review stop? A test of what was not reviewed, after any review whatever.

    \b
    Example:
      surelist stop start rest.csv --found 195 --recall 0.95 -o stop.json
      surelist stop start export.csv --decided included --recall 0.95 -o stop.json
      surelist stop next stop.json -o sheet.csv
      surelist stop record stop.json sheet.csv
      surelist stop status stop.json
      surelist stop report stop.json -o report.html
    """


recall_option = click.option(
    "--recall", type=SHARE, required=True, help="Share of all relevant items to certify."
)
alpha_option = click.option(
    "--alpha", type=SHARE, default=0.05, show_default=True, help="How often it may be wrong."
)
looks_option = click.option(
    "--looks", type=int, default=10, show_default=True, help="The most looks to plan."
)
report_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the report as a page, .html."
)


@stop.command(name="plan", no_args_is_help=True)
@click.option("--found", type=int, required=True, help="Relevant items that the review has found.")
@click.option("--rest", type=int, required=True, help="How many items were not reviewed.")
@recall_option
@alpha_option
@looks_option
def plan_stop(**given: Any) -> None:
    """The looks that a test would take, and how likely each is to be the last. Nothing is drawn.

    \b
    Example:
      surelist stop plan --found 195 --rest 8000 --recall 0.95
    """
    from surelist.workflows import labelling

    click.echo(labelling.plan_stop(**given))


@stop.command(name="start", no_args_is_help=True)
@click.argument("rest", type=click.Path(path_type=Path))
@click.option("--found", type=int, help="Relevant items that the review has found.")
@click.option(
    "--decided", metavar="COLUMN", help="Instead: REST has everything, and in this column the review's "
    "decisions: 1 relevant, 0 not, blank for what was not reviewed.",
)  # fmt: skip
@recall_option
@alpha_option
@looks_option
@state_option
@as_json
def start_stop(rest: Path, output: Path, json_: bool, **options: Any) -> None:
    """Plan the looks at REST, a table of everything that was not reviewed, and draw from it.

    An export of a whole project goes with --decided: relevant decisions are counted, and what has none
    is written beside the state as STATE.rest.csv.

    \b
    Example:
      surelist stop start asreview.csv --decided included --recall 0.9 -o stop.json
    """
    from surelist.workflows import labelling

    test = labelling.start_stop(rest, output, **options)
    say(json_, test.describe(), state=str(output), looks=list(test.sizes), level=test.level)


@stop.command(name="next", no_args_is_help=True)
@next_options
def next_stop(**given: Any) -> None:
    """Write a sheet with the items to label now, up to the next look."""
    from surelist.workflows.labelling import next_items

    write_asked(next_items, "items", **given)


@stop.command(name="record", no_args_is_help=True)
@record_options
def record_stop(json_: bool, **given: Any) -> None:
    """Take a filled-in SHEET back, in its order; a label that will not come counts as relevant.

    With --correct a label is mended, on record. One that turns out not to be relevant after it was counted at
    a look stays a hit; one that turns out to be relevant may withdraw a certificate.
    """
    from surelist.workflows.labelling import record_items

    test = record_items(**given)
    say(json_, test.describe(), drawn=test.drawn, hits=test.hits, certified=test.certified, lost=test.lost)


@stop.command(name="status", no_args_is_help=True)
@state_argument
@plot_option
@as_json
def status_stop(state: Path, plot: Path | None, json_: bool) -> int:
    """Certified, go on, or lost: more hits than the last look allows (exit code 3)."""
    from surelist.workflows.labelling import load_stop

    test = load_stop(state)
    if plot is not None:
        test.plot(path=plot)
    say(
        json_, test.describe(), drawn=test.drawn, hits=test.hits, certified=test.certified,
        lost=test.lost, over=test.over, recall_now=test.recall_now,
    )  # fmt: skip
    return 3 if test.over and not test.certified else 0


@stop.command(name="report", no_args_is_help=True)
@state_argument
@report_option
def report_stop(state: Path, output: Path | None) -> int:
    """What was tested and what came out, for the files. Exit code 3 where nothing is certified
    once all labels are in."""
    from surelist.workflows.labelling import load_stop

    return _report(load_stop(state), output)


@click.group(cls=HelpfulGroup)
def validate() -> None:
    """Did decisions that are made keep enough? A test by one random sample, whoever decided.

    \b
    Example:
      surelist validate plan decided.csv --decided produced --recall 0.8
      surelist validate start decided.csv --decided produced --recall 0.8 --sample 1000 -o check.json
      surelist validate next check.json -o sheet.csv
      surelist validate record check.json sheet.csv
      surelist validate report check.json -o report.html
    """


table_argument = click.argument("table", type=click.Path(path_type=Path))
decided_option = click.option(
    "--decided", metavar="COLUMN", required=True, help="Column of decisions: 1 kept; 0 or blank left out."
)


@validate.command(name="plan", no_args_is_help=True)
@table_argument
@decided_option
@recall_option
@alpha_option
@click.option(
    "--sample", type=int, multiple=True, default=(200, 500, 1000, 2000, 5000), show_default=True,
    help="Rows to label. Repeat.",
)  # fmt: skip
def plan_validation(**given: Any) -> None:
    """What samples of each size can certify of the decisions in TABLE. Nothing is drawn."""
    from surelist.workflows import labelling

    click.echo(labelling.plan_validation(**given))


@validate.command(name="start", no_args_is_help=True)
@table_argument
@decided_option
@recall_option
@click.option("--sample", type=int, required=True, help="How many rows can be labelled in all.")
@alpha_option
@state_option
@as_json
def start_validation(table: Path, output: Path, json_: bool, **given: Any) -> None:
    """Draw rows from TABLE, in which everything is decided: of those kept and of those left out."""
    from surelist.workflows import labelling

    test = labelling.start_validation(table, output, **given)
    say(json_, test.describe(), state=str(output), waiting=len(test.ask()))


@validate.command(name="next", no_args_is_help=True)
@next_options
def next_validation(**given: Any) -> None:
    """Write a sheet with the rows to label now, in mixed order and without their decisions."""
    from surelist.workflows.labelling import next_decided

    write_asked(next_decided, "rows", **given)


@validate.command(name="record", no_args_is_help=True)
@record_options
def record_validation(json_: bool, **given: Any) -> None:
    """Take a filled-in SHEET back; in parts, in any order. A label that will not come counts against the
    decisions.

    With --correct a label is mended, as long as others are to come.
    """
    from surelist.workflows.labelling import record_decided

    test = record_decided(**given)
    say(json_, test.describe(), waiting=len(test.ask()), kept_at_least=test.kept_at_least)


@validate.command(name="report", no_args_is_help=True)
@state_argument
@report_option
@as_json
def report_validation(state: Path, output: Path | None, json_: bool) -> int:
    """What the decisions kept at least. Exit code 3 where the recall asked for is not certified once all
    labels are in."""
    from surelist.workflows.labelling import load_validation

    test = load_validation(state)
    facts = {"waiting": len(test.ask()), "kept_at_least": test.kept_at_least, "certified": test.certified}
    return _report(test, output, **(facts if json_ else {}))


def _report(test: Any, output: Path | None, **facts: Any) -> int:
    from surelist.workflows.labelling import report

    if output is not None:
        report(test, output)
    say(bool(facts), test.describe(), **facts)
    return 0 if test.certified or len(test.ask()) else 3
