"""What else a promise rests on, as values, and which of them it has a proof with.

A request is its promise and its *conditions*: what the evidence is, how labels came about, shift, groups,
ties, other scores, several scores or promises, pools beside rows, dropped rows. Each kind declares the sets
of conditions that it has a proof with, and the section of ``docs/statistics.md`` that has it; whatever is not
declared is refused, in ``proved``, for every front end. Here too: how groups and promises share alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product, starmap
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist import _check as check
from surelist._arrays import Column
from surelist.errors import InvalidInput
from surelist.promises.options import OPTIONS, GroupCutoff, GroupRows, GroupSplit

if TYPE_CHECKING:
    from surelist.promises.promise import Promise


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

    def __post_init__(self) -> None:
        for name in ("split", "rows", "cutoff"):
            choices = get_args(OPTIONS[f"group_{name}"].kind)
            check.as_choice(getattr(self, name), choices, f"group_{name}")


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
        shared = self.cutoff == "own" or self.groups != "none"
        return shared and (self.split == "even" or self.groups == "own")

    def beside(self) -> dict[str, str]:
        """Those that are not the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(PLAIN, name)}


PLAIN = Conditions()
EVIDENCE = {"rows": "calibration rows", "labelling": "a labelling", "campaign": "a campaign"}
EVIDENCE |= {"audited campaign": "an audited campaign"}
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
GIVEN, ONE_LIST = ("given",), {"scores": SEVERAL, "promises": SEVERAL}


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
) -> Iterator[Proved]:  # fmt: skip
    """The sets of a promise whose units are rows: plain ones, some dropped, shifted; each with cutoffs by
    group, and with one for all groups."""
    disjoint = tuple(each for each in groups if "overlapping" not in each)
    known = tuple(each for each in labels if each != "thinned")
    every = (
        Proved(section, rule, labels=labels, groups=groups, ties=HASH, scores=SEVERAL),
        Proved(section, rule, labels=known, groups=disjoint, ties=HASH, pools=BESIDE, bad_rows=DROPPED),
        Proved("shift", rule, (), known, shift, groups, ties=HASH, scores=SEVERAL, pools=BESIDE),
    )
    for each in every:
        yield replace(each, split=SIDAK)
    for each in every:
        shared = "shift" if each.section == "shift" else "common-cutoff"
        yield replace(each, section=shared, rule=common_rule, cutoff=COMMON, only=BY_GROUP)


OF_LABELLING = Proved("", evidence=("labelling",), labels=("missing",), groups=("own",), only=("evidence",))
LABELLED = replace(OF_LABELLING, section="few-labels")

NOW = {  # keywords of earlier versions, and what says the same
    **dict.fromkeys(("weights", "weight_bound"), "shift=DensityRatio(ratios, bound)"),
    "weights_exact": "shift=DensityRatio(ratios, bound, exact=True)",
    "seed": "shift=DensityRatio(ratios, bound, seed=...)",
    "weight": "shift=DensityRatio(column, bound)",
    "ids": "ties=Hash(ids)",
    "id": "ties=Hash(column)",
    **dict.fromkeys(("purpose", "group_purpose"), "groups=Groups(names, purpose=...)"),
    "group": "groups=Groups(column)",
    "group_split": "groups=Groups(names, split=...)",
    "group_rows": "groups=Groups(names, rows=...)",
}
OF_READING = ("pos_label", "neg_label", "sheet", "decimal", "engine", "spark_master")
NOW |= {name: f"read=Read({name}=...)" for name in OF_READING}


def refuse_earlier(given: dict[str, object], function: str) -> None:
    """Answer a keyword of an earlier version with today's, and one that never was with a TypeError."""
    for name in given:
        if name in NOW:
            raise InvalidInput(name, f"{name}= is now {NOW[name]}.")
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def split_alpha(alpha: float, groups: int, split: str = "bonferroni") -> float:
    """The level at which each of ``groups`` groups is certified so that all hold at alpha.

    ``bonferroni``: alpha/|G|, for any groups. ``sidak``: 1-(1-alpha)^(1/|G|), for disjoint
    groups that each use their own calibration rows only.
    """
    alpha = check.as_alpha(alpha)
    check.as_choice(split, get_args(GroupSplit), "group_split")
    groups = check.as_count(groups, "groups")
    if groups == 1:
        return alpha
    if split == "sidak":
        return -math.expm1(math.log1p(-alpha) / groups) * (1 - 1e-15)
    return alpha / groups


def promise_shares(promises: Sequence[Promise], *, joint: bool = False) -> int:
    """Between how many several promises of one list share alpha [theory: no-split].

    Those whose boundary the population fixes share one between them, with ``joint`` also those that have a
    joint level with them; each of the others has its own.
    """
    others = sum(not (each.fixed_boundary or (joint and each.joins_fixed)) for each in promises)
    return others + (others < len(promises))


def group_alpha(alpha: float, promises: Sequence[Promise], split: str, *, common: bool) -> float:
    """The level at which each group's promise is certified so that all hold at alpha.

    Under one cutoff for all groups nothing is shared, unless single pools are promised and rows are the
    units [theory: common-cutoff].
    """
    if common and all(each.fixed_boundary or each.whole_pools for each in promises):
        return alpha
    return split_alpha(alpha, len(promises), split)


def joint_alpha(alpha: float, groups: int) -> float:
    """The chance that one of several independent groups fails, each at ``alpha``: sidak, the other way."""
    return -math.expm1(groups * math.log1p(-alpha))


class GroupMerge(Struct, frozen=True):
    """Which groups stay, and that all others, also those never seen, are one. Call it with group names.

    A promise for the merged group is about its candidates taken together, in the proportions in which they
    come: it says nothing about any one of the groups inside it.
    """

    kept: tuple[str, ...]
    merged: tuple[str, ...]
    name: str
    fewest: int

    def __call__(self, groups: object) -> Column:
        """The group of every row after merging; the same for calibration rows and for pools."""
        names = check.as_groups(groups)
        return np.where(np.isin(names, self.kept), names, self.name)

    def describe(self) -> str:
        """What was merged, and what that means."""
        if not self.merged:
            return f"Nothing is merged: every group has at least {self.fewest:,} rows."
        one = f"{len(self.merged):,} groups with fewer than {self.fewest:,} rows are one group, {self.name!r}"
        about = "A promise for it is about its candidates together, in the proportions in which they come"
        none = "about any one of these groups it says nothing"
        unseen = f"A group that was never seen counts as {self.name!r}"
        decide = "Decide this on other rows than the calibration rows, for example on pools without labels"
        merged = ", ".join(map(repr, self.merged))
        return f"{one}: {merged}. {about}; {none}. {unseen} too. {decide}, and use it for both."


def merge_groups(groups: object, *, fewest: int = 200, name: str = "other") -> GroupMerge:
    """Merge groups with fewer than ``fewest`` rows into one, called ``name``.

    Many small groups certify little: each needs rows of its own and a share of alpha. The result is called
    with the groups of calibration rows and of pools, and its ``describe`` says what merging means.

    Parameters
    ----------
    groups
        Group names of rows that are not the calibration rows; labels and scores play no part.
    fewest
        Groups with fewer rows than this are merged.
    name
        What the merged group is called.

    Returns
    -------
    GroupMerge
        Callable: group names in, group names after merging out.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import surelist as sl
    >>> merge = sl.merge_groups(["a"] * 300 + ["b"] * 300 + ["c"] * 5 + ["d"] * 2)
    >>> merge.merged
    ('c', 'd')
    >>> merge(["a", "c", "never seen"]).tolist()
    ['a', 'other', 'other']
    """
    names = check.as_groups(groups)
    check.require_rows(names, "groups")
    fewest = check.as_count(fewest, "fewest")
    known, counts = np.unique(names, return_counts=True)
    small, kept = known[counts < fewest].tolist(), known[counts >= fewest].tolist()
    if check.group_name(name, "name") in kept:
        raise InvalidInput("name", f"{name!r} is a group that stays; call the merged one something else.")
    return GroupMerge(tuple(kept), tuple(small), name, fewest)
