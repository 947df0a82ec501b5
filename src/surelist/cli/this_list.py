"""list: how many of this very pool's list are qualified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from surelist.cli.options import HeadedCommand, as_json, hints_in, options, plot_option
from surelist.errors import InvalidInput


@click.command("list", cls=HeadedCommand, no_args_is_help=True)
@click.argument("pool", type=click.Path(exists=True))
@click.option("--rows", "past", required=True, type=click.Path(exists=True), help="File of labelled rows.")
@click.option("--size", type=int, help="One length, fixed before looking at the pool; default: every length.")
@options("share", "score", "label", "alpha", "pos_label", "neg_label", "sheet", "header_row", "decimal")
@plot_option
@as_json
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
    from surelist.workflows.tables import list_of

    if size is None and share is not None:
        raise InvalidInput("share", "goes with --size, a length that was fixed beforehand.")
    if size is not None and plot is not None:
        raise InvalidInput("plot", "draws every length; leave --size out.")
    made = list_of(
        pool, past, score=given["score"], label=given["label"], alpha=given["alpha"], size=size, share=share,
        hints=hints_in(given),
    )  # fmt: skip
    if plot is not None:
        made.plot(path=plot)
    if not json_:
        click.echo(made.describe())
    elif size is not None:
        click.echo(
            json.dumps({"promise": made.promise, "threshold": made.threshold, "alpha": given["alpha"]})
        )
    else:
        names = ("list_size", "threshold", "at_least", "at_most")
        columns = [getattr(made, name).tolist() for name in names]
        points = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        click.echo(json.dumps({"alpha": given["alpha"], "rows": made.rows, "points": points}))
