"""sql: a policy's selection for whoever selects inside a database."""

from __future__ import annotations

import json
from typing import Any, get_args

import click

from surelist._check import Dialect
from surelist.cli.options import as_json, policy_argument, read_policy


@click.command(no_args_is_help=True)
@policy_argument
@click.option(
    "--dialect", type=click.Choice(get_args(Dialect)), default="duckdb", show_default=True, help="Whose SQL."
)
@click.option("--score", help="Column with the score; default: as calibrated.")
@click.option("--group", help="Column with the group; default: as calibrated.")
@click.option("--pool-size", type=int, metavar="M", help="For promises per pool: candidates in every pool.")
@click.option("--whole-numbers", is_flag=True, help="The score is an integer column.")
@as_json
def sql(policy_path: str, json_: bool, **given: Any) -> None:
    """Print the selection of a POLICY as one SQL expression: true for who is on the shortlist.

    POLICY is a file, or - for stdin. The expression is false, never null, for rows without a finite score
    and for groups without a threshold. Policies whose list cannot be said in one expression are refused,
    and so are those with secret ties.

    \b
    Example:
      surelist sql policy.json --dialect postgres
    """
    from surelist.workflows.sql import selection_sql

    policy = read_policy(policy_path)
    text = selection_sql(policy, **given)
    click.echo(
        json.dumps({"sql": text, "dialect": given["dialect"], "promise": policy.promise}) if json_ else text
    )
