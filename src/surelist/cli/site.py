"""What comes with an installation: docs, promises (a page of them), demo and completion."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from pathlib import Path

import click

from surelist import workflows
from surelist._version import __version__
from surelist.cli.options import as_json

SITE = Path(__file__).parents[1] / "site" / "index.html"


@click.command()
@click.option(
    "--open/--no-open", "opens", default=None, help="Open it in a browser (default: on a terminal)."
)
def docs(opens: bool | None) -> None:
    """Open the documentation, or say where it is.

    \b
    Example:
      surelist docs --no-open
    """
    if not SITE.exists():
        raise click.ClickException(
            f"this installation of surelist {__version__} came without its documentation. From a checkout, "
            "`make docs` builds it; the pages are in docs/."
        )
    click.echo(SITE)
    if opens or (opens is None and sys.stdout.isatty()):
        webbrowser.open(SITE.as_uri())


@click.command()
def promises() -> None:
    """Print what can be combined, and by which proof, as Markdown.

    \b
    Example:
      surelist promises
    """
    from surelist.promises.proved import page

    click.echo(page(), nl=False)


@click.command()
@click.option(
    "--folder", type=click.Path(file_okay=False), default="surelist-demo", help="Where the example files go."
)
@click.option("--seed", type=click.IntRange(min=0), default=5, help="Seed of the example.")
@as_json
def demo(folder: str, seed: int, json_: bool) -> None:
    """Make an example, calibrate, select, and show the result. Needs nothing but the package.

    \b
    Example:
      surelist demo
    """
    made = workflows.demo.demo(Path(folder), seed)
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
