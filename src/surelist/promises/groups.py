"""Groups: splitting alpha between them, and targets per group [theory: groups]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist import _check as check
from surelist.errors import InvalidInput
from surelist.promises.options import GroupSplit
from surelist.promises.promise import Promise


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

    def __call__(self, groups: Any) -> NDArray[Any]:
        """The group of every row after merging; the same for calibration rows and for pools."""
        names = check.as_groups(groups)
        return np.where(np.isin(names, self.kept), names, self.name)

    def describe(self) -> str:
        """What was merged, and what that means."""
        if not self.merged:
            return f"Nothing is merged: every group has at least {self.fewest:,} rows."
        return (
            f"{len(self.merged):,} groups with fewer than {self.fewest:,} rows are one group, {self.name!r}: "
            f"{', '.join(map(repr, self.merged))}. A promise for it is about its candidates together, in "
            "the proportions in which they come; about any one of these groups it says nothing. A group "
            f"that was never seen counts as {self.name!r} too. Decide this on other rows than the "
            "calibration rows, for example on pools without labels, and use it for both."
        )


def merge_groups(groups: Any, *, fewest: int = 200, name: str = "other") -> GroupMerge:
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
