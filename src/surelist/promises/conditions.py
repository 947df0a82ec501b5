"""What else a promise rests on, as values, and which of them it has a proof with.

A request is its promise and its *conditions*: what the evidence is, how labels came about, shift, groups,
ties, other scores, several scores or promises, pools beside rows, dropped rows. Each kind declares the sets
of conditions that it has a proof with, and the section of ``docs/statistics.md`` that has it; whatever is not
declared is refused, here, for every front end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product, starmap
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist.errors import InvalidInput
from surelist.promises.options import GroupCutoff, GroupRows, GroupSplit


class Groups(Struct, frozen=True, eq=False):
    """Who is in which group, and how their promises go together [theory: groups].

    Parameters
    ----------
    names : array_like or mapping
        One group name per row, or, for overlapping groups, a mapping of name to boolean mask; of a table the
        name of its column.
    cutoff : {"own", "common"}
        ``"common"`` is one cutoff for everybody that keeps every group's target [theory: common-cutoff]; a
        target named "everyone" is then about all rows.
    purpose : str, optional
        What cutoffs that differ by group are for; recorded in the policy.
    split : {"bonferroni", "sidak"}
        How alpha is shared: evenly, or, for disjoint groups with rows of their own, by Šidák's rule.
    rows : {"own", "all"}
        ``"all"`` counts all rows for every group, with the size of the *whole* pool in each target: for group
        sizes that are not known.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> names = np.where(np.arange(1_000) % 2, "north", "south")
    >>> targets = {"north": sl.Expected(2, 50), "south": sl.Expected(2, 50)}
    >>> policy = sl.calibrate(scores, labels, targets, groups=sl.Groups(names, purpose="an example"))
    >>> sorted(policy.thresholds)
    ['north', 'south']
    >>> alike = sl.calibrate(scores, labels, targets, groups=sl.Groups(names, cutoff="common"))
    >>> round(alike.threshold, 3)
    0.516
    """

    names: Any
    purpose: str | None = None
    split: GroupSplit = "bonferroni"
    rows: GroupRows = "own"
    cutoff: GroupCutoff = "own"


class Hash(Struct, frozen=True, eq=False):
    """Ties are broken by a secret salt and the candidates' ids [theory: ties].

    Parameters
    ----------
    ids : array_like
        One id per row, unique over calibration rows and pools; of a table the name of its column.

    Examples
    --------
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> ids = [f"candidate {row}" for row in range(1_000)]
    >>> policy = sl.calibrate(scores.round(1), labels, sl.Expected(5, 100), ties=sl.Hash(ids))
    >>> policy.select([0.2, 0.9], ids=["anna", "bert"]).tolist()
    [False, True]
    """

    ids: Any


class Conditions(Struct, frozen=True):
    """The conditions of one request; the defaults are those of a plain one."""

    rule: str = "exact"
    evidence: Literal["rows", "labelling", "campaign", "audited campaign"] = "rows"
    labels: Literal["complete", "missing", "two rates", "thinned", "noisy"] = "complete"
    shift: Literal["none", "known", "within"] = "none"
    groups: Literal["none", "own", "overlapping", "all", "all overlapping"] = "none"
    cutoff: Literal["own", "common"] = "own"
    split: Literal["even", "sidak"] = "even"
    ties: Literal["include", "hash"] = "include"
    others: Literal["none", "given"] = "none"
    scores: Literal["one", "several"] = "one"
    promises: Literal["one", "several"] = "one"
    pools: Literal["none", "beside"] = "none"
    bad_rows: Literal["none", "dropped"] = "none"

    @property
    def possible(self) -> bool:
        """Šidák's rule is one for disjoint groups with rows of their own; a common cutoff is of groups."""
        return (self.split == "even" or self.groups == "own") and (
            self.cutoff == "own" or self.groups != "none"
        )

    def beside(self) -> dict[str, str]:
        """Those that are not the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(PLAIN, name)}


PLAIN = Conditions()
EVIDENCE = {
    "rows": "calibration rows", "labelling": "a labelling", "campaign": "a campaign",
    "audited campaign": "an audited campaign",
}  # fmt: skip
# what a person asked for, by condition and value
WORDS = {
    **{("evidence", value): words for value, words in EVIDENCE.items()},
    ("labels", "missing"): "missing labels that count as not qualified",
    ("labels", "two rates"): "labels known above a score and audited below it",
    ("labels", "thinned"): "labels drawn with known probabilities",
    ("labels", "noisy"): "labels that may be wrong",
    ("shift", "known"): "a known shift",
    ("shift", "within"): "a shift known within a factor",
    ("groups", "own"): "groups",
    ("groups", "overlapping"): "overlapping groups",
    ("groups", "all"): "groups of all rows",
    ("groups", "all overlapping"): "overlapping groups of all rows",
    ("cutoff", "common"): "one cutoff for all groups",
    ("split", "sidak"): "groups that share alpha by Šidák's rule",
    ("ties", "hash"): "ties broken by candidate id",
    ("others", "given"): "unlabelled scores",
    ("scores", "several"): "several scores",
    ("promises", "several"): "several promises of one list",
    ("pools", "beside"): "pools beside rows",
    ("bad_rows", "dropped"): "dropped rows",
}


EVERY = ("own", "overlapping", "all", "all overlapping")  # groups
HASH, SEVERAL, SIDAK, BESIDE, DROPPED = ("hash",), ("several",), ("sidak",), ("beside",), ("dropped",)
COMMON, BY_GROUP = ("common",), ("groups", "cutoff")


class Proved(Struct, frozen=True):
    """A set of conditions under which a kind has a proof: any of each of these, together with any of the
    others.

    ``section`` names the proof in ``docs/statistics.md``; why conditions go together:
    [theory: together]. A condition that is not named stays plain.
    """

    section: str
    rule: tuple[str, ...] = ("exact",)
    evidence: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    shift: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    cutoff: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    bad_rows: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # conditions of which the plain value is not covered

    def covers(self, asked: Conditions) -> bool:
        every = asdict(asked).items()
        return asked.possible and all(value in self.values(name) for name, value in every)

    def values(self, name: str) -> tuple[str, ...]:
        """The values of a condition that it covers."""
        declared = getattr(self, name)
        return declared if name == "rule" or name in self.only else (getattr(PLAIN, name), *declared)

    def sets(self) -> Iterator[Conditions]:
        """Every set of conditions that it covers."""
        every = (self.values(name) for name in Conditions.__struct_fields__)
        return (each for each in starmap(Conditions, product(*every)) if each.possible)


def from_rows(
    section: str, labels: tuple[str, ...], groups: tuple[str, ...], shift: tuple[str, ...],
    rule: tuple[str, ...] = ("exact",), common_rule: tuple[str, ...] = ("exact",),
) -> tuple[Proved, ...]:  # fmt: skip
    """The sets of a promise whose units are rows: plain ones, some dropped, shifted; each with cutoffs by
    group, and with one for all groups."""
    disjoint = tuple(each for each in groups if "overlapping" not in each)
    known = tuple(each for each in labels if each != "thinned")
    every = (
        Proved(section, rule, labels=labels, groups=groups, ties=HASH, scores=SEVERAL),
        Proved(section, rule, labels=known, groups=disjoint, ties=HASH, pools=BESIDE, bad_rows=DROPPED),
        Proved("shift", rule, (), known, shift, groups, ties=HASH, scores=SEVERAL, pools=BESIDE),
    )
    common = {section: "common-cutoff", "shift": "shift"}
    return (
        *(replace(each, split=SIDAK) for each in every),
        *(
            replace(each, section=common[each.section], rule=common_rule, cutoff=COMMON, only=BY_GROUP)
            for each in every
        ),
    )


LABELLED = Proved(
    "few-labels", evidence=("labelling",), labels=("missing",), groups=("own",), only=("evidence",)
)

NOW = {  # keywords of earlier versions, and what says the same
    "weights": "shift=DensityRatio(ratios, bound)",
    "weight_bound": "shift=DensityRatio(ratios, bound)",
    "weights_exact": "shift=DensityRatio(ratios, bound, exact=True)",
    "seed": "shift=DensityRatio(ratios, bound, seed=...)",
    "weight": "shift=DensityRatio(column, bound)",
    "ids": "ties=Hash(ids)",
    "id": "ties=Hash(column)",
    "purpose": "groups=Groups(names, purpose=...)",
    "group": "groups=Groups(column)",
    "group_split": "groups=Groups(names, split=...)",
    "group_rows": "groups=Groups(names, rows=...)",
    "pos_label": "read=Read(pos_label=...)",
    "neg_label": "read=Read(neg_label=...)",
    "sheet": "read=Read(sheet=...)",
    "decimal": "read=Read(decimal=...)",
    "engine": "read=Read(engine=...)",
    "spark_master": "read=Read(spark_master=...)",
}


def refuse_earlier(given: dict[str, Any], function: str) -> None:
    """Answer a keyword of an earlier version with today's, and one that never was with a TypeError."""
    for name in given:
        if name in NOW:
            raise InvalidInput(name, f"{name}= is now {NOW[name]}.")
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
