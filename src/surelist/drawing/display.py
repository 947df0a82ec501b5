"""How objects show themselves: one line in a prompt, a small piece of HTML in a notebook.

An object says what there is to say as a ``Display``; how that looks is decided here, once, for all of them.
Everything is escaped, and there is no script and nothing fetched: a name out of a table stays a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

BOX = "border-left:3px solid #0b6e4f;padding:.2em .9em;margin:.4em 0;max-width:56em;line-height:1.45"
LABEL = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;opacity:.75"
VALUE = "text-align:left;vertical-align:top;padding:.1em 0;overflow-wrap:anywhere"
TABLE = "white-space:pre-wrap;overflow-x:auto;background:none;margin:.3em 0"
WARNING = "border-left:3px solid #c1440e;padding:.1em .6em"


class Display(Struct, frozen=True):
    """What an object says of itself, as plain text.

    ``line`` is all of it in a few words; ``promise`` the sentence that matters most; ``facts`` are named
    values; ``warnings`` deserve a look; ``folded`` has lists under a heading, shown on request.
    """

    line: str
    promise: str
    facts: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    folded: Sequence[tuple[str, Sequence[str]]] = ()


class Displayed:
    """Shows itself in prompts and notebooks by what ``_display`` says."""

    def _display(self) -> Display:
        raise NotImplementedError

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__}: {self._display().line}>"
        except AttributeError:  # it was never finished: its making was refused
            return object.__repr__(self)

    def _repr_html_(self) -> str:
        return as_html(type(self).__name__, self._display())


def as_html(name: str, shown: Display, heading: str = "div") -> str:
    """A display as HTML that fits into any page, light or dark; its name is a ``heading``."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{LABEL}">{_text(label)}</th>'
        f'<td style="{VALUE}">{_text(value)}</td></tr>'
        for label, value in shown.facts
    )
    parts = [
        f'<div class="surelist" style="{BOX}"><{heading} style="opacity:.75">{_text(name)}</{heading}>',
        f"<strong>{_text(shown.promise)}</strong>",
        f'<table style="border:0;margin:.4em 0">{rows}</table>' if rows else "",
        *(f'<div style="{WARNING}">{_text(each)}</div>' for each in shown.warnings),
        *(_folded(heading, lines) for heading, lines in shown.folded if lines),
    ]
    return "".join(parts) + "</div>"


def as_page(name: str, shown: Display) -> str:
    """A display as an HTML file of its own, with everything that is folded open."""
    style = "font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem"
    body = as_html(name, shown, "h1").replace("<details", "<details open")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" '
        'content="light dark"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{_text(name)}</title></head><body style="{style}"><main>{body}</main></body></html>\n'
    )


def _folded(heading: str, lines: Sequence[str]) -> str:
    if any("   " in line for line in lines):  # a table of numbers
        body = f'<pre style="{TABLE}">{escape(chr(10).join(lines))}</pre>'
    else:
        body = f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"
    return f"<details><summary>{_text(heading)}</summary>{body}</details>"


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
