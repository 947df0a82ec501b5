"""plan, watch, campaign. Exit code 4: the monitor has raised an alarm; nothing is promised any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs, to_builtins

from surelist import workflows
from surelist.cli import HelpfulGroup, options as flags, output as printed
from surelist.cli.options import SHARE

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign

ALARM = 4
SURPRISING = 1e-4  # p-value of a drift that deserves a look: as for the pools of select

id_option = flags.option("id", default="id")
pool_option = click.option(
    "--pool", "name", required=True, help="Name of the pool, e.g. its date; each pool has its own."
)


@click.command(cls=flags.HeadedCommand, no_args_is_help=True)
@flags.promise_flags()
@flags.field_options()
@flags.options("pool_size", "alpha")
@click.option("--base-rate", type=SHARE, help="Guess: share of qualified candidates.")
@click.option("--auc", type=SHARE, help="Guess: area under the score's ROC curve.")
@flags.file_option("--pilot", help="Instead of a guess: a table of pilot rows.")
@flags.options("score", "label", "missing_labels", "pos_label", "neg_label", "sheet", "header_row", "decimal")
@click.option("--pools", type=int, default=100, help="Pools that will be screened.")
@click.option("--sizes", help="Calibration sizes (or numbers of labels) to tabulate, e.g. 300,1000,3000.")
@click.option("--seed", type=int, default=0, help="Seed of the pilot's resampling.")
@click.option("--labelling", is_flag=True, help="Also: as many labels of rows that surelist chooses.")
@click.option("--collection", type=int, help="Candidates of a collection of which --sizes are labelled.")
@click.option("--paper", is_flag=True, help="Also tabulate the paper's rule.")
@flags.plot_and_json
def plan(sizes: str | None, paper: bool, plot: Path | None, json_: bool, **given: Any) -> None:
    """How many calibration rows a target needs, and what more rows would save.

    \b
    Example:
      surelist plan --expect 5 --pool-size 100 --base-rate 0.19 --auc 0.85
      surelist plan --expect 5 --pool-size 100 --pilot pilot.csv --pools 250 --plot plan.png
      surelist plan --triage 0.9 --reject 0.9 --base-rate 0.5 --auc 0.95
      surelist plan --recall 0.8 --collection 11000 --sizes 1000 --base-rate 0.02 --auc 0.93
    """
    if sizes:
        given["sizes"] = _numbers(sizes, "--sizes")
    made = workflows.lifecycle.plan(_target_in(given), hints=flags.hints_in(given), **given)

    def body() -> dict[str, object]:
        oracle = None if made.oracle != made.oracle else made.oracle
        return {**to_builtins(made), "target": made.target.describe(), "oracle": oracle}

    printed.answer(made, plot, json_, body, made.describe(paper))


def _target_in(given: dict[str, object]) -> Any:
    """The promise that was asked for, taken out of what was given."""
    from surelist.promises.grammar import target_asked

    target = target_asked(flags.asked(given))
    for each in click.get_current_context().command.params:
        if isinstance(each, flags.PromiseOption | flags.FieldOption) or each.name == "pool_size":
            del given[str(each.name)]
    return target


@click.command(no_args_is_help=True)
@flags.file_argument("past")
@flags.file_argument("pool")
@flags.option("score")
@click.option("--pool-score", help="Column with the score in POOL, where it has another name there.")
@flags.options("sheet", "header_row", "decimal")
@flags.plot_and_json
@flags.strict_option
def drift(past: Path, pool: Path, plot: Path | None, json_: bool, quiet: bool, **given: Any) -> Sequence[str]:
    """Have the scores moved? Compare a POOL with the calibration rows PAST; no labels are needed.

    It warns and proves nothing: a promise may break without any drift of scores, and hold in spite of one.
    With --strict, exit code 5 when a gap as large has a probability below 0.0001 without drift.

    \b
    Example:
      surelist drift past.csv new.csv --score score --plot drift.png
    """
    moved = workflows.lifecycle.drift(past, pool, hints=flags.hints_in(given), **given)
    printed.answer(moved, plot, json_, lambda: structs.asdict(moved), quiet=quiet)
    return (moved.describe(),) if moved.p_value < SURPRISING else ()


def _column(name: str, holds: str, default: str | None = None, *, if_there: bool = False) -> flags.Decorator:
    """An option that names a column of the table of reviews."""
    holds += f"  [default: {name}, if there]" * if_there
    said = f"Column {holds}." if holds.startswith("with") else f"Column: {holds}."
    return click.option(flags.flag(name), default=default, help=said)


@click.command(no_args_is_help=True)
@flags.state_argument
@flags.file_argument("reviews")
@flags.file_option("--policy", help="Policy to watch; needed the first time.")
@click.option("--alpha", type=SHARE, help="How often a false alarm may come, ever (first time; 0.05).")
@click.option(
    "--audit-rate", type=SHARE, metavar="SHARE",
    help="For a recall: every unlisted candidate was reviewed with this probability; for a triage: everyone "
    "(first time).",
)  # fmt: skip
@_column("pool", "with the pool's name", "pool")
@_column("pool_size", "candidates in the pool", "pool_size")
@_column("qualified", "qualified candidates on the shortlist; blank while reviews are missing", "qualified")
@_column("unreviewed", "candidates on the shortlist whose review never came", if_there=True)
@_column("missed", "audited candidates who turned out qualified, with --audit-rate")
@_column(
    "unaudited", "candidates drawn for the audit whose review never came  [default: unaudited, if there]"
)
@_column("drawn", "of a triage, how many on the list were drawn for the audit", if_there=True)
@_column(
    "group", "with the group, for policies with groups: one row per pool and group; of a triage the list"
)
@flags.plot_and_json
def watch(state: Path, reviews: Path, plot: Path | None, json_: bool, **options: Any) -> int:
    """Does the promise still hold? Feed the table REVIEWS of reviewed pools to a monitor.

    STATE is a small file made on the first run. Rows are pools in the order of screening; the
    same rows may be fed again and count once. A blank number of qualified stops there: pools
    count in order, and later pools wait until earlier ones are complete. Exit code 4 when the alarm
    is raised.

    \b
    Example:
      surelist watch monitor.json pools.csv --policy policy.json
      surelist watch recall.json pools.csv --policy recall-policy.json --audit-rate 0.05 --missed missed
      surelist watch triage.json audits.csv --policy triage-policy.json --audit-rate 0.05 --group list
    """
    monitor, new, known, blocked = workflows.lifecycle.watch(state, reviews, **options)
    printed.draw(monitor, plot)
    said = [f"{new:,} new pools, {known:,} counted before.", monitor.describe()]
    if blocked is not None:
        said.insert(1, f"Waiting for the reviews of pool {blocked!r}; later pools count after it.")
    printed.say(
        json_, "\n".join(said), new=new, known=known, waiting_for=blocked, pools=monitor.pools,
        e_value=monitor.e_value, alarm=monitor.alarm,
        interval={group or "": list(ends) for group, ends in monitor.intervals.items()},
        unreviewed={group or "": each.total.unreviewed for group, each in monitor.tallies.items()},
        promise=monitor.policy.promise,
    )  # fmt: skip
    return ALARM if monitor.alarm else 0


@click.group(cls=HelpfulGroup)
def campaign() -> None:
    """Screen pools under one promise and learn from their reviews.

    All thresholds of a campaign hold together; they rise at scheduled updates, so lists get
    shorter as reviews come in. With an audit they may fall again. Exit code 4 when the monitor
    has raised an alarm.

    \b
    Example:
      surelist campaign start past.csv --expect 5 --pool-size 100 -o campaign.json
      surelist campaign screen campaign.json monday.csv --pool 2026-03-02 -o shortlist.csv
      surelist campaign review campaign.json reviewed.csv --pool 2026-03-02
      surelist campaign status campaign.json
    """


@campaign.command(cls=flags.HeadedCommand, no_args_is_help=True)
@flags.file_argument("past")
@flags.promise_flags("campaign")
@click.option("--pool-size", required=True, metavar="M", help="Candidates in a pool, or their known average.")
@flags.option("alpha")
@click.option(
    "--schedule", help="Update after these numbers of pools, e.g. 9,45,189; default: rows times four."
)
@click.option("--monitor-alpha", type=SHARE, default=0.05, help="False alarms, ever.")
@click.option(
    "--uncertified", default="refuse", help="refuse, or everyone: shortlist everyone until enough is known."
)
@click.option(
    "--audit-rate", type=SHARE, metavar="SHARE",
    help="Learn from candidates drawn with this probability, listed or not; the threshold may fall then.",
)  # fmt: skip
@flags.options("score", "label", "missing_labels", "pos_label", "neg_label", "sheet", "header_row", "decimal")
@flags.new_state
def start(past: Path, output: Path, json_: bool, **given: Any) -> None:
    """Start a campaign from PAST candidates. Exit code 3 when the target is not certifiable yet.

    \b
    Example:
      surelist campaign start past.csv --expect 5 --pool-size 100 -o campaign.json
    """
    given["schedule"] = _numbers(given["schedule"], "--schedule") if given["schedule"] else None
    target, hints = _target_in(given), flags.hints_in(given)
    begun = workflows.lifecycle.start_campaign(past, output, target, hints=hints, **given)
    _report(begun, json_, [begun.describe()], state=str(output))


@campaign.command(no_args_is_help=True)
@flags.state_argument
@flags.file_argument("candidates", metavar="POOL")
@pool_option
@flags.option("score")
@id_option
@flags.output_option("Shortlist: .csv or .parquet.")
@flags.file_option(
    "--audit",
    metavar="FILE",
    help="Campaigns with an audit: whom to review beside the shortlist (.csv, .xlsx).",
)
@flags.as_json
def screen(
    state: Path, candidates: Path, name: str, output: Path, audit: Path | None, json_: bool, **columns: str
) -> int:
    """Shortlist the candidates of a POOL and remember them for review.

    \b
    Example:
      surelist campaign screen campaign.json monday.csv --pool 2026-03-02 -o shortlist.csv
      surelist campaign screen audited.json monday.csv --pool 2026-03-02 -o shortlist.csv --audit audit.csv
    """
    done = workflows.lifecycle.screen_pool(state, candidates, output, name=name, audit=audit, **columns)
    said = [f"{done.shortlisted:,} of {done.candidates:,} candidates are on the shortlist {output}."]
    facts = {"candidates": done.candidates, "shortlisted": done.shortlisted}
    if done.update is not None:
        rows = f"{done.update.rows:,} rows known"
        said.insert(0, f"Scheduled update after pool {done.update.pools:,}: {rows}.")
    if done.audited is not None:
        said.append(f"{done.audited:,} others were drawn for the audit {audit}; review them too.")
        facts["audited"] = done.audited
    return _report(done.campaign, json_, said, **facts)


@campaign.command(no_args_is_help=True)
@flags.state_argument
@flags.file_argument("reviews")
@pool_option
@flags.option("label")
@id_option
@click.option("--final", is_flag=True, help="Stop waiting for reviews of this pool that are missing.")
@flags.as_json
def review(state: Path, reviews: Path, json_: bool, **given: Any) -> int:
    """Take in REVIEWS of a pool's shortlist, or of its audit: a table with candidate ids and labels.

    Blank labels are reviews that have not come yet. The same table may be fed again.

    \b
    Example:
      surelist campaign review campaign.json reviewed.csv --pool 2026-03-02
    """
    campaign, new, closed = workflows.lifecycle.review_pool(state, reviews, **given)
    said = f"{new:,} new reviews." + (f" {closed:,} given up." if closed else "")
    return _report(campaign, json_, [said], new=new, closed=closed)


@campaign.command(no_args_is_help=True)
@flags.state_argument
@flags.file_option("--policy", help="Also write the policy in force.")
@flags.plot_and_json
def status(state: Path, plot: Path | None, policy: Path | None, json_: bool) -> int:
    """Where a campaign stands, and its list length over time.

    \b
    Example:
      surelist campaign status campaign.json --plot campaign.png
    """
    loaded = workflows.lifecycle.Campaign.load(state)
    printed.draw(loaded, plot)
    if policy is not None:
        loaded.policy.save(policy)
    return _report(loaded, json_, [loaded.describe()])


def _report(campaign: Campaign, json_: bool, said: list[str], **more: object) -> int:
    """What was done, and the promise; 4 after an alarm."""
    monitor = campaign.monitor
    names = ("promise", "threshold", "certified", "alarm", "pools", "rows", "next_update")
    printed.say(
        json_, "\n".join([*said, click.style(campaign.promise, bold=True)]), **more,
        **{name: getattr(campaign, name) for name in names}, missing=campaign.reviews.missing,
        updates=[structs.asdict(update) for update in campaign.updates],
        e_value=None if monitor is None else monitor.e_value,
    )  # fmt: skip
    return ALARM if campaign.alarm else 0


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option}: expected whole numbers, e.g. 9,45,189, got {text!r}.") from None
