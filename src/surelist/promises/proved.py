"""Whether a request has a proof: what no kind declares is refused, for every front end [theory: together].

The declarations of all kinds are also a page of Markdown: ``surelist promises`` prints it, and
``docs/combinations.md`` is what it printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from msgspec.structs import replace

from surelist import _check as check
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.conditions import EVIDENCE, PLAIN, WORDS, Conditions, Proved
from surelist.promises.promise import About, Promise

PROBABILITIES = f"every row's {option('probability')} and {option('lowest_rate')}"
# what two conditions that do not go together can be replaced by
INSTEAD = {
    ("labels", "two rates", "scores", "several"): (
        f"where every label is known by one score it is not by another. Give one score, or {PROBABILITIES}"
    ),
    ("shift", "within", "others", "given"): (
        "other scores shorten the list only where they come from the population of the rows that the ratios "
        "keep, which wrong ratios need not give. Leave unlabelled scores out"
    ),
}
SOME_LABELS = (
    "labels of some rows alone do not show whether candidates of one pool resemble one another. Leave the "
    "pools out"
)
INSTEAD |= {("labels", some, "pools", "beside"): SOME_LABELS for some in ("two rates", "thinned")}
OTHER_LABELS = f"give {PROBABILITIES} instead"


def proof_of(promise: Promise | type[Promise], asked: Conditions) -> Proved | None:
    """The declared set that covers a request; None where there is none."""
    return next((each for each in promise.proved_with if each.covers(asked)), None)


def require_proof(promise: Promise, asked: Conditions) -> None:
    """Raise where nothing that the kind declares covers what was asked for [theory: together].

    The error says what does not go together.
    """
    _require_evidence(promise, asked.evidence)
    check.as_choice(asked.rule, promise.rules, "rule", f" for {type(promise).__name__}")
    if promise.others == "needed" and asked.others == "none" and asked.evidence != "labelling":
        others = "other candidates from the same population, without labels"
        whose = "the pool that it is about" if promise.about is About.THIS_POOL else others
        needs = f"{type(promise).__name__} needs scores of {whose}"
        raise InvalidInput("unlabelled", f"{needs}; pass {option('unlabelled')}.")
    if promise.every_label and asked.labels == "missing":
        asked = replace(asked, labels="complete")  # refused where one is missing, which only the rows show
    if proof_of(promise, asked) is not None:
        return
    beside = {name: value for name, value in asked.beside().items() if name not in ("rule", "evidence")}
    what = type(promise).__name__ + ("" if asked.rule == "exact" else f" by {option('rule', asked.rule)}")
    listed = ", ".join(WORDS[each] for each in beside.items())
    if asked.others == "none" and proof_of(promise, replace(asked, others="given")) is not None:
        needs = f"{what} with {listed} needs scores of other candidates from the same population"
        raise InvalidInput("unlabelled", f"{needs}; pass {option('unlabelled')}.")

    def proved(**some: str) -> bool:
        needed = {"others": beside["others"]} if promise.others == "needed" and "others" in beside else {}
        needed |= {"groups": "own"} if {"split", "cutoff"} & set(some) else {}
        plain = replace(PLAIN, rule=asked.rule, evidence=asked.evidence)
        plain = replace(plain, **{**needed, **some})
        cutoffs = {plain.cutoff, asked.cutoff} if "groups" in some else {plain.cutoff}
        return any(
            proof_of(promise, replace(plain, others=others, cutoff=cutoff))
            for others in {plain.others, asked.others}
            for cutoff in cutoffs
        )

    for name, value in beside.items():
        if not proved(**{name: value}):
            # labels known above a score would do if each had been drawn with its own probability
            drawn = asked.labels == "two rates" and proof_of(promise, replace(asked, labels="thinned"))
            instead = OTHER_LABELS if drawn else "leave one out"
            neither = f"{what} and {WORDS[name, value]} have no proof together"
            raise InvalidInput(_keyword(name), f"{neither}; {instead}.")
    for (a, x), (b, y) in combinations(beside.items(), 2):
        if not proved(**{a: x, b: y}):
            why = INSTEAD.get((a, x, b, y), f"there is no proof of {what} with both. Leave one out")
            raise InvalidInput(_keyword(b), f"{WORDS[a, x]} and {WORDS[b, y]} do not go together: {why}.")
    raise InvalidInput("target", f"{what} has no proof with all of {listed} together; leave one out.")


def _require_evidence(promise: Promise, asked: str) -> None:
    """Raise where a kind has no proof from evidence of this sort at all."""
    if proved_from(promise, asked):
        return
    have = " or ".join(words for value, words in EVIDENCE.items() if proved_from(promise, value))
    only = f"{type(promise).__name__} has no proof from {EVIDENCE[asked]}, only from {have}."
    offered = kinds.offered(lambda kind: proved_from(kind, asked))
    raise InvalidInput("target", f"{only} From {EVIDENCE[asked]} ask for {offered}.")


def proved_from(promise: Promise | type[Promise], evidence: str = "rows") -> bool:
    """Whether a kind has any proof from evidence of this sort."""
    return any(evidence in each.values("evidence") for each in promise.proved_with)


def require_use(promises: Sequence[Promise], asked: Conditions) -> None:
    """Raise where unlabelled scores were given and no promise of the list uses them."""
    if asked.others == "none" or any(each.others == "needed" for each in promises):
        return
    if all(each.others == "refused" for each in promises):
        kind = type(promises[0]).__name__
        raise InvalidInput("unlabelled", f"does not help a {kind} promise; leave it out.")
    pair = ("shift", "within", "others", "given")
    if asked.shift == "within":
        apart = f"{WORDS[pair[:2]]} and {WORDS[pair[2:]]} do not go together"
        raise InvalidInput("unlabelled", f"{apart}: {INSTEAD[pair]}.")


def _keyword(name: str) -> str:
    other = {"others": "unlabelled", "promises": "target", "split": "groups", "cutoff": "groups"}
    return (other | {"bad_rows": "on_bad_rows", "evidence": "target"}).get(name, name)


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
    every = kinds.classes()
    overview = [
        [f"[`{each.__name__}`](#{each.__name__.lower()})", each.about.value, f"{len(accepted(each)):,}"]
        for each in every
    ]
    legend = [[TITLES.get(name, name), value, words] for (name, value), words in WORDS.items()]
    tables = (
        _table(["promise", "about", "sets with a proof"], overview),
        "## Conditions",
        _table(["condition", "value", "what is asked for"], legend),
    )
    return "\n\n".join((HEAD, *tables, *map(_kind, every))) + "\n"


def accepted(promise: type[Promise]) -> set[Conditions]:
    """Every set of conditions that a kind has a proof with."""
    needed = promise.others == "needed"
    every = (each for proved in promise.proved_with for each in proved.sets())
    return {each for each in every if each.others == "given" or not needed or each.evidence == "labelling"}


def _kind(promise: type[Promise]) -> str:
    shown = [
        name
        for name in Conditions.__struct_fields__
        if any(_values(promise, each, name) != (getattr(PLAIN, name),) for each in promise.proved_with)
    ]
    rows = [
        [
            f"[{each.section}](statistics.md#{each.section})",
            *(", ".join(_values(promise, each, name)) for name in shown),
        ]
        for each in promise.proved_with
    ]
    units = " Whole pools are the units (`pools=`)." if promise.whole_pools else ""
    table = _table(["proof", *(TITLES.get(name, name) for name in shown)], rows)
    return f"## {promise.__name__}\n\n{promise.help}{units}\n\n{table}"


def _values(promise: type[Promise], proved: Proved, name: str) -> tuple[str, ...]:
    needed = name == "others" and promise.others == "needed" and "rows" in proved.values("evidence")
    return ("given",) if needed else proved.values(name)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
