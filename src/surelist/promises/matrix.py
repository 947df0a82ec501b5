"""What can be combined, by which proof: the declarations of all kinds as one page of Markdown.

``surelist promises`` prints it and ``docs/combinations.md`` is what it printed. Nothing is decided here.
"""

from __future__ import annotations

from surelist.promises import kinds
from surelist.promises.conditions import PLAIN, WORDS, Conditions, Proved
from surelist.promises.promise import Promise

TITLES = {"others": "other scores", "split": "alpha by group", "bad_rows": "rows without a score"}
HEAD = """\
# What can be combined

Each promise declares the sets of conditions that it has a proof with, beside its code
(`src/surelist/promises/kinds`). What is not declared is refused, in every front end alike. This page is
those declarations, as `surelist promises` prints them; a test holds it to them. Each line of a table below
is one declared set: any value of each column goes with any value of the others, by the proof that is linked
and [conditions together](statistics.md#together). A condition that has no column stays plain. Numbers can
exclude more, and the refusal says so: `NextPool(recall=…)` needs every label, `PerPool` for a range of pool
sizes goes with no other promise of the same list, and of amounts no row is dropped."""


def page() -> str:
    """The whole page."""
    return "\n\n".join((HEAD, _overview(), _legend(), *map(_kind, kinds.classes()))) + "\n"


def accepted(promise: type[Promise]) -> set[Conditions]:
    """Every set of conditions that a kind has a proof with."""
    needed = promise.others == "needed"
    every = (each for proved in promise.proved_with for each in proved.sets())
    return {each for each in every if each.others == "given" or not needed or each.evidence == "labelling"}


def _overview() -> str:
    rows = [
        [f"[`{each.__name__}`](#{each.__name__.lower()})", each.about.value, f"{len(accepted(each)):,}"]
        for each in kinds.classes()
    ]
    return _table(["promise", "about", "sets with a proof"], rows)


def _legend() -> str:
    rows = [[TITLES.get(name, name), value, words] for (name, value), words in WORDS.items()]
    return "## Conditions\n\n" + _table(["condition", "value", "what is asked for"], rows)


def _kind(promise: type[Promise]) -> str:
    shown = [
        name
        for name in Conditions.__struct_fields__
        if any(_values(promise, each, name) != (getattr(PLAIN, name),) for each in promise.proved_with)
    ]
    rows = [
        [_link(each.section), *(", ".join(_values(promise, each, name)) for name in shown)]
        for each in promise.proved_with
    ]
    units = " Whole pools are the units (`pools=`)." if promise.whole_pools else ""
    table = _table(["proof", *(TITLES.get(name, name) for name in shown)], rows)
    return f"## {promise.__name__}\n\n{promise.help}{units}\n\n{table}"


def _link(section: str) -> str:
    return f"[{section}](statistics.md#{section})"


def _values(promise: type[Promise], proved: Proved, name: str) -> tuple[str, ...]:
    needed = name == "others" and promise.others == "needed" and "rows" in proved.values("evidence")
    return ("given",) if needed else proved.values(name)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
