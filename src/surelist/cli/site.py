"""``surelist docs``, the documentation of this installation, and ``surelist promises``, a page of it."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import click

from surelist._version import __version__

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
    from surelist.promises.matrix import page

    click.echo(page(), nl=False)
