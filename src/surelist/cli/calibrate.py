"""calibrate and list: commands that know every promise, so that the others start without them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from surelist import workflows
from surelist.cli import options as flags, output as printed
from surelist.cli.output import PROGRESS
from surelist.errors import InvalidInput


@click.command(cls=flags.HeadedCommand, no_args_is_help=True)
@click.argument("past", type=flags.STREAM)
@flags.options("score", "label")
@flags.promise_flags()
@flags.options("pool_size", "also", "pool", "unlabelled", "other_score")
@flags.field_options()
@flags.options("audit_rate", "audited_below", "probability", "lowest_rate", "lowest_score")
@flags.options("false_positive", "false_negative", "longest")
@flags.options("alpha", "rule", "calibration_share", "group", "target", "purpose")
@flags.options("group_split", "group_rows", "group_cutoff")
@flags.options("ties", "id", "missing_labels", "pos_label", "neg_label")
@click.option("-o", "--output", required=True, type=flags.STREAM, help="Policy file to write.")
@flags.reading_options
@flags.plot_and_json
@flags.strict_option
def calibrate(*, quiet: bool, **given: Any) -> Sequence[str]:
    """Certify a target from PAST candidates.

    PAST is a file, glob or folder of CSV, JSON Lines or Parquet, an Excel file, or - for CSV or JSON Lines on
    stdin. How it was read (decimal commas, which label means qualified) is printed first and goes into the
    policy.

    Exit code 3 when the target is not certifiable; nothing is written then. With --strict, exit code 5
    when the policy has warnings; it is written all the same.

    \b
    Example:
      surelist calibrate past.csv --score score --label qualified \\
          --expect 5 --pool-size 100 --alpha 0.1 -o policy.json
      surelist calibrate past.csv --group sex --target "women=3.8/76" --target "men=1.2/24" \\
          --purpose "outreach, not selection" -o policy.json
      surelist calibrate past.csv --group sex --target "women=3.8/76" --target "men=1.2/24" \\
          --group-cutoff common -o policy.json
      surelist calibrate past.xlsx --sheet Candidates --score Wert --label Ergebnis --pos-label Ja \\
          --expect 5 --pool-size 100 -o policy.json
      surelist calibrate past.csv --next-pool 5 --pool query -o policy.json
      surelist calibrate past.csv --precision 0.8 --start 0.1 --unlabelled other.csv -o policy.json
    """
    from surelist.promises import policy_file
    from surelist.promises.grammar import drawn_labels, roles_of, target_asked, terms_of

    wanted = flags.asked(given)
    roles, terms, drawn = roles_of(wanted), terms_of(wanted, target_asked(wanted)), drawn_labels(wanted)
    with printed.input_file(given["past"]) as path:
        hints, read_by = flags.hints_in(given), (given["engine"], given["spark_master"], given["on_bad_rows"])
        source = workflows.source.Source(path, *read_by, PROGRESS, hints=hints)
        for each in (source, workflows.source.Source(given["unlabelled"])):
            each.refuse_as_output(given["output"])
        source = replace(source, table=source.open())
        read = source.reading(score=roles.score, label=roles.label)
        printed.print_reading(read.sentences, quiet or given["json_"])
        policy = workflows.certify.certify_source(source, roles, terms, given["unlabelled"], drawn)
    if given["output"] != "-":
        policy.save(given["output"])
    elif policy.salt is None:
        click.echo(policy_file.dumps(policy), nl=False)
    else:
        raise InvalidInput("output", "a policy with --ties hash has a secret salt file; give it a file name.")
    printed.draw(policy, given["plot"])
    said = quiet or given["output"] == "-"
    if given["json_"] and not said:
        click.echo(json.dumps({"policy": given["output"], **printed.summary_of(policy)}))
    elif not said:
        printed.print_policy(policy.read_from())  # how the file was read stands above already
        click.echo(f"\nWritten to {given['output']}.")
    return policy.warnings


@click.command("list", cls=flags.HeadedCommand, no_args_is_help=True)
@click.argument("pool", type=click.Path(exists=True))
@click.option("--rows", "past", required=True, type=click.Path(exists=True), help="File of labelled rows.")
@click.option("--size", type=int, help="One length, fixed before looking at the pool; default: every length.")
@flags.options("share", "score", "label", "alpha", "pos_label", "neg_label", "sheet", "header_row", "decimal")
@flags.plot_and_json
def list_(
    pool: str, past: str, size: int | None, share: float | None, plot: Path | None, json_: bool, **given: Any
) -> None:
    """How many of the first n of this POOL's list are qualified.

    Without --size for every length at once, to choose from after looking. With --size for that one length,
    fixed beforehand, which gives more; with --share too, whether at least this share of it is qualified.

    Exit code 3 when nothing can be said of the list.

    \b
    Example:
      surelist list pool.csv --rows past.csv
      surelist list pool.csv --rows past.csv --size 50
    """
    if size is None and share is not None:
        raise InvalidInput("share", "goes with --size, a length that was fixed beforehand.")
    if size is not None and plot is not None:
        raise InvalidInput("plot", "draws every length; leave --size out.")
    hints, alpha = flags.hints_in(given), given["alpha"]
    made = workflows.tables.list_of(pool, past, size=size, share=share, hints=hints, **given)

    def body() -> dict[str, object]:
        if size is not None:
            return {"promise": made.promise, "threshold": made.threshold, "alpha": alpha}
        listed = printed.points(made, "list_size", "threshold", "at_least", "at_most")
        return {"alpha": alpha, "rows": made.rows, "points": listed}

    printed.answer(made, plot, json_, body)
