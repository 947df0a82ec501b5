"""label, stop and validate: what asks people for labels, sheet by sheet. Exit code 3: not certifiable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from surelist import workflows
from surelist.cli import HelpfulGroup, options as flags
from surelist.cli.options import SHARE, Decorator
from surelist.cli.output import draw, print_reading, say

label_option = flags.option("label", default="label")


class SheetGroup(HelpfulGroup):
    """A group whose state asks for labels: ``next`` writes a sheet to fill in, ``record`` takes it back.

    Each is made from a function that has its help and nothing else. ``facts`` are what JSON says of a state.
    """

    facts: tuple[str, ...] = ()

    def writes(self, what: str) -> Decorator:
        """``next``; ``what`` is in the sheet."""

        @flags.state_argument
        @flags.output_option("Sheet to fill in: .csv or .xlsx.")
        @click.option("--count", type=int, help="At most this many rows.")
        @label_option
        @flags.as_json
        def next_(state: Path, output: Path, json_: bool, **given: Any) -> None:
            rows = workflows.labelling.next_sheet(str(self.name), state, output, **given)
            there = f"{rows:,} {what} to label are in {output}."
            shown = "status" if "status" in self.commands else "report"
            said = there if rows else f"Nothing is to be labelled: see {shown}."
            say(json_, said, rows=rows, sheet=str(output) if rows else None)

        return self._with_help("next", next_)

    def records(self, *facts: str) -> Decorator:
        """``record``, which says these facts of the state that comes of it."""
        self.facts = facts

        @flags.state_argument
        @flags.file_argument("sheet")
        @label_option
        @click.option("--final", is_flag=True, help="Blank labels of this sheet will not come.")
        @click.option(
            "--correct", is_flag=True, help="Labels that differ from those on record correct them, on record."
        )
        @flags.as_json
        def record(json_: bool, **given: Any) -> None:
            work, new, mended = workflows.labelling.record_sheet(str(self.name), **given)
            if facts:
                self.said(work, json_)
                return
            corrected, waiting = f", {mended:,} corrected" if mended else "", len(work.ask())
            most = getattr(work, "most_looks", None)
            free = f", for as long as people like: {most:,} looks at most" if most else ""
            said = f"{new:,} new labels{corrected}; {waiting:,} to come{free}."
            say(json_, said, new=new, waiting=waiting, corrected=mended)

        return self._with_help("record", record)

    def reports(self, *facts: str) -> Decorator:
        """``report``: what came out, in words or as a page; JSON says ``facts``, or those of ``record``."""
        self.facts = facts or self.facts

        @flags.state_argument
        @flags.output_option("Write the report as a page, .html.", required=False)
        @flags.as_json
        def report(state: Path, output: Path | None, json_: bool) -> int:
            test = workflows.labelling.load(str(self.name), state)
            if output is not None:
                workflows.labelling.write_report(test, output)
            return self.said(test, json_)

        return self._with_help("report", report)

    def _with_help(self, name: str, command: Any) -> Decorator:
        return lambda said: self.command(name=name, help=said.__doc__, no_args_is_help=True)(command)

    def said(self, test: Any, json_: bool) -> int:
        """Say where a test stands; 3 where nothing is certified and nothing more is to be labelled."""
        waiting = len(test.ask())
        say(json_, test.describe(), waiting=waiting, **{name: getattr(test, name) for name in self.facts})
        return 0 if test.certified or waiting else 3


@click.group(cls=SheetGroup)
def label() -> None:
    """From a scored collection without labels to a certified list: which rows to label.

    \b
    Example:
      surelist label start candidates.parquet --expect 5 --pool-size 100 --labels 300 -o work.json
      surelist label next work.json -o sheet.csv
      surelist label record work.json sheet.csv
      surelist label status work.json --shortlist list.csv
      surelist label report work.json -o report.html
    """


@label.command(name="start", cls=flags.HeadedCommand, no_args_is_help=True)
@flags.file_argument("collection")
@flags.promise_flags("labelling")
@flags.options("reject_recall", "pool_size")
@click.option("--labels", type=int, required=True, help="How many rows can be labelled in all.")
@flags.options("alpha", "score")
@click.option("--id", "id", help="Column with the candidate's id, kept for the drawn rows.")
@flags.option("group", help="Column with the group: one design each, alpha and labels shared evenly.")
@flags.option("target", more=" Also women=at-least:K. One promise for all groups needs none.")
@flags.option("purpose")
@flags.options("engine", "spark_master")
@click.option("--judge", metavar="COLUMN", help="Column with a model's verdicts, instead of --score.")
@click.option("--block", type=int, help="Label rows of this many best candidates, without a pilot.")
@flags.new_state
def start_label(collection: Path, output: Path, json_: bool, **given: Any) -> None:
    """Draw the rows to label from COLLECTION, a table of scored candidates.

    --expect and --per-pool promise about future pools like it; --at-least, --recall, --precision and --triage
    about the collection itself, whatever it is. After the labels of a triage people look at those between the
    two lists, for as long as they like.
    """
    if given["purpose"] is None and given["group"] is not None:
        raise click.UsageError("--group needs --purpose: what cutoffs per group are for.")
    source = click.get_current_context().get_parameter_source("score")
    if given["judge"] is not None and source is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--judge makes the score; leave --score out.")
    target = _target(given)
    kept = ("labels", "alpha", "score", "judge", "id", "group", "purpose", "engine", "spark_master", "block")
    asked = {name: given[name] for name in kept}
    work = workflows.labelling.start_labelling(collection, output, target, **asked)
    print_reading(workflows.labelling.how_read(work), json_)
    say(json_, work.describe(), state=str(output), waiting=len(work.ask()))


def _target(given: dict[str, Any]) -> Any:
    """One target for all, or one for each group named."""
    from surelist.promises.grammar import group_targets, target_asked

    if not given["target"]:
        return target_asked(flags.asked({**given, "group": None}) | {"group": None})
    if given["group"] is None:
        raise click.UsageError("--target goes with --group, instead of a promise for all groups.")
    flags.asked(given)
    return group_targets(given["target"], pool_size=given["pool_size"])


@label.writes("rows")
def _() -> None:
    """Write a sheet with the rows to label now, all their columns and an empty label column."""


@label.records()
def _() -> None:
    """Take a filled-in SHEET (.csv, .xlsx) back; in parts, in any order, and again.

    With --correct a mistyped label can be mended: of a pilot, a look or a part of a sample until labels of
    the next stage are recorded, of the last stage until status has shown the result, of any other until the
    next stage is asked for.
    """


@label.command(name="status", no_args_is_help=True)
@flags.state_argument
@flags.file_option("--policy", help="Write the certified policy.")
@flags.file_option("--shortlist", help="Write the list of the collection itself.")
@flags.plot_and_json
def status_label(
    state: Path, policy: Path | None, shortlist: Path | None, plot: Path | None, json_: bool
) -> None:
    """The design, what has come, and the promise. Exit code 3 when the labels do not suffice."""
    work = workflows.labelling.load("label", state)
    draw(work, plot)
    waiting = len(work.ask())
    if waiting and (policy or shortlist):
        end = "" if work.needs_all else " Where they never will, record their sheet with --final."
        raise click.UsageError(f"{waiting:,} labels are still to come; nothing is certified before.{end}")
    if waiting:
        say(json_, work.describe(), waiting=waiting, promise=None)
        return
    made = workflows.labelling.finish_labelling(work, policy=policy, shortlist=shortlist)
    say(json_, work.describe(), waiting=0, promise=made.promise, thresholds=[*made.thresholds.values()])


@label.reports("certified", "listed")
def _() -> None:
    """The design, what was labelled and what came out, for the files. Exit code 3 where nothing is certified
    once all labels are in."""


@click.group(cls=SheetGroup)
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


test_options = flags.stacked(
    click.option("--recall", type=SHARE, required=True, help="Share of all relevant items to certify."),
    click.option("--alpha", type=SHARE, default=0.05, help="How often it may be wrong."),
)
looks_option = click.option("--looks", type=int, default=10, help="The most looks to plan.")


@stop.command(name="plan", no_args_is_help=True)
@click.option("--found", type=int, required=True, help="Relevant items that the review has found.")
@click.option("--rest", type=int, required=True, help="How many items were not reviewed.")
@test_options
@looks_option
def plan_stop(**given: Any) -> None:
    """The looks that a test would take, and how likely each is to be the last. Nothing is drawn.

    \b
    Example:
      surelist stop plan --found 195 --rest 8000 --recall 0.95
    """
    click.echo(workflows.labelling.plan_stop(**given))


@stop.command(name="start", no_args_is_help=True)
@flags.file_argument("rest")
@click.option("--found", type=int, help="Relevant items that the review has found.")
@click.option(
    "--decided",
    metavar="COLUMN",
    help="Instead: REST has everything, and in this column the review's "
    "decisions: 1 relevant, 0 not, blank for what was not reviewed.",
)
@test_options
@looks_option
@flags.new_state
def start_stop(rest: Path, output: Path, json_: bool, **options: Any) -> None:
    """Plan the looks at REST, a table of everything that was not reviewed, and draw from it.

    An export of a whole project goes with --decided: relevant decisions are counted, and what has none
    is written beside the state as STATE.rest.csv.

    \b
    Example:
      surelist stop start asreview.csv --decided included --recall 0.9 -o stop.json
    """
    test = workflows.labelling.start_stop(rest, output, **options)
    say(json_, test.describe(), state=str(output), looks=list(test.sizes), level=test.level)


@stop.writes("items")
def _() -> None:
    """Write a sheet with the items to label now, up to the next look."""


@stop.records("drawn", "hits", "certified", "lost", "over", "recall_now")
def _() -> None:
    """Take a filled-in SHEET back, in its order; a label that will not come counts as relevant.

    With --correct a label is mended, on record. One that turns out not to be relevant after it was counted at
    a look stays a hit; one that turns out to be relevant may withdraw a certificate.
    """


@stop.command(name="status", no_args_is_help=True)
@flags.state_argument
@flags.plot_and_json
def status_stop(state: Path, plot: Path | None, json_: bool) -> int:
    """Certified, go on, or lost: more hits than the last look allows (exit code 3)."""
    test = workflows.labelling.load("stop", state)
    draw(test, plot)
    return stop.said(test, json_)


@stop.reports()
def _() -> None:
    """What was tested and what came out, for the files. Exit code 3 where nothing is certified
    once all labels are in."""


@click.group(cls=SheetGroup)
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


decisions = flags.stacked(
    flags.file_argument("table"),
    click.option(
        "--decided", metavar="COLUMN", required=True, help="Column of decisions: 1 kept; 0 or blank left out."
    ),
    test_options,
)


@validate.command(name="plan", no_args_is_help=True)
@decisions
@click.option(
    "--sample", type=int, multiple=True, default=(200, 500, 1000, 2000, 5000), help="Rows to label. Repeat."
)
def plan_validation(**given: Any) -> None:
    """What samples of each size can certify of the decisions in TABLE. Nothing is drawn."""
    click.echo(workflows.labelling.plan_validation(**given))


@validate.command(name="start", no_args_is_help=True)
@decisions
@click.option("--sample", type=int, required=True, help="How many rows can be labelled in all.")
@flags.new_state
def start_validation(table: Path, output: Path, json_: bool, **given: Any) -> None:
    """Draw rows from TABLE, in which everything is decided: of those kept and of those left out."""
    test = workflows.labelling.start_validation(table, output, **given)
    say(json_, test.describe(), state=str(output), waiting=len(test.ask()))


@validate.writes("rows")
def _() -> None:
    """Write a sheet with the rows to label now, in mixed order and without their decisions."""


@validate.records("kept_at_least", "certified")
def _() -> None:
    """Take a filled-in SHEET back; in parts, in any order. A label that will not come counts against the
    decisions.

    With --correct a label is mended, as long as others are to come.
    """


@validate.reports()
def _() -> None:
    """What the decisions kept at least. Exit code 3 where the recall asked for is not certified once all
    labels are in."""
