"""How each front end names what a caller can set: ``pool_size=``, ``--pool-size``, the label on the page.

Sentences hold references, marked by :func:`option`, and a front end puts in the names of its own table
(:class:`OptionNames`) when it shows a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# private characters of Unicode, which no text uses
_BEGIN, _NEXT, _END = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(
    f"{_BEGIN}([^{_NEXT}]*){_NEXT}([^{_NEXT}]*){_NEXT}([^{_NEXT}]*){_NEXT}([^{_END}]*){_END}"
)


def option(name: str, value: str = "", *, before: str = "", after: str = "") -> str:
    """A reference to what a caller can set, and perhaps to one of its values.

    ``before`` and ``after`` belong to it: where a front end does not offer the option, they are left out too.

    >>> PYTHON.said(f"Pass {option('pools')}.")
    'Pass pools=.'
    """
    return f"{_BEGIN}{name}{_NEXT}{value}{_NEXT}{before}{_NEXT}{after}{_END}"


class OptionNames:
    """The table of one front end: a name, or ``name=value``, to what is written there.

    None where it has no such option.
    """

    def __init__(self, table: Mapping[str, str | None] | None = None) -> None:
        self.table = table or {}

    def field(self, name: str) -> str:
        """What a sentence is about, at its beginning."""
        return self.table.get(name) or name

    def option(self, name: str, value: str) -> str | None:
        """What can be set, in the middle of a sentence."""
        known = self.table.get(f"{name}={value}", self.table.get(name, name))
        return known if known is None else self.written(known, value)

    def written(self, known: str, value: str) -> str:
        """A keyword of Python."""
        shown = value if value[:1].isdigit() or not value else f'"{value}"'
        return known if "=" in known else f"{known}={shown}"

    def said(self, text: str) -> str:
        """A sentence in the words of this front end."""
        return _MARKED.sub(self._named, text)

    def _named(self, match: re.Match[str]) -> str:
        name, value, before, after = match.groups()
        known = self.option(name, value)
        return "" if known is None else f"{before}{known}{after}"


PYTHON = OptionNames({"ties=hash": "ties=Hash(ids)", "group_cutoff": "Groups(cutoff=...)"})
TABLES = OptionNames(
    {**PYTHON.table, "ties=hash": "ties=Hash(column)", "pools": "pool", "groups": "group", "ids": "id"}
)


class Marked(OptionNames):
    """For a sentence that becomes part of another: references stay marked, those not offered go."""

    def _named(self, match: re.Match[str]) -> str:
        return "" if self.option(match[1], match[2]) is None else match[0]


MARKED = Marked()
