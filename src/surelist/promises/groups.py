"""Groups: splitting alpha between them, and targets per group [theory: groups]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.promises.options import GroupSplit
from surelist.promises.targets import Expected


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


def joint_alpha(alpha: float, groups: int) -> float:
    """The chance that one of several independent groups fails, each at ``alpha``: sidak, the other way."""
    return -math.expm1(groups * math.log1p(-alpha))


@dataclass(frozen=True)
class GroupMerge:
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
        raise InvalidInput(f"name: {name!r} is a group that stays; call the merged one something else.")
    return GroupMerge(tuple(kept), tuple(small), name, fewest)


class GroupTargets(dict[Any, Expected]):
    """Targets by group that were estimated from rows, and what those rows are known by.

    ``estimated_from`` has, per group, the rows and the qualified rows: calibration refuses these very
    rows, because on them the targets were chosen after looking.
    """

    estimated_from: dict[str, tuple[int, int]]


def equal_opportunity(labels: Any, groups: Any, k: float, pool_sizes: Mapping[Any, float]) -> GroupTargets:
    """Targets per group in proportion to each group's qualified candidates, summing to k.

    k_g = k P(Y=1, g) / P(Y=1) is estimated from ``labels`` and ``groups``; the size of a pool per
    group is known and given in ``pool_sizes`` (for ``group_rows="all"``, the whole pool's size for
    every group). These rows must not be the calibration rows: targets estimated on the rows that
    certify them were false in 10-33 % at 10 %, and ``calibrate`` refuses them [theory: groups].

    Returns
    -------
    dict
        A target per group, for ``calibrate``.

    Examples
    --------
    >>> import surelist as sl
    >>> labels, groups = [1, 1, 1, 0, 1, 0, 0, 0], ["a", "a", "a", "a", "b", "b", "b", "b"]
    >>> targets = sl.equal_opportunity(labels, groups, k=5, pool_sizes={"a": 50, "b": 50})
    >>> targets["a"].k, targets["b"].k
    (3.75, 1.25)
    """
    k = check.as_positive(k, "k")
    check.require_one_index(labels=labels, groups=groups)
    qualified, _ = check.as_labels(labels)
    check.require_rows(qualified, "labels")
    names = check.as_groups(groups)
    check.require_length(names, len(qualified), "groups")
    if not qualified.any():
        raise InvalidInput("labels: expected at least one qualified row, got none.")
    if not isinstance(pool_sizes, Mapping):
        raise InvalidInput(
            f"pool_sizes: expected a mapping of group to the size of its pools, got {pool_sizes!r}. They "
            "have to be known, not estimated from rows."
        )
    keys = {check.group_name(key, "pool_sizes"): key for key in pool_sizes}
    sizes = {name: pool_sizes[key] for name, key in keys.items()}
    known, codes = np.unique(names, return_inverse=True)
    unseen = sorted(set(sizes) - set(known.tolist()))
    if unseen:
        raise InvalidInput(
            f"pool_sizes: group {unseen[0]!r} has no rows, so its share of the qualified is not known. "
            "Gather rows of it, or let it be part of a larger group: merge_groups."
        )
    if sorted(sizes) != known.tolist():
        raise InvalidInput(f"pool_sizes: expected the groups {known.tolist()}, got {sorted(sizes)}.")
    members, counts = np.bincount(codes), np.bincount(codes, weights=qualified).astype(int)
    targets = GroupTargets()
    for name, count in zip(known.tolist(), counts.tolist(), strict=True):
        if count == 0:
            raise InvalidInput(f"groups: group {name!r} has no qualified rows. Merge it: merge_groups.")
        try:
            targets[keys[name]] = Expected(k * count / int(counts.sum()), sizes[name])
        except InvalidInput as error:
            raise InvalidInput(f"k: group {name!r}: {error} Ask for less.") from error
    rows = zip(members.tolist(), counts.tolist(), strict=True)
    targets.estimated_from = dict(zip(known.tolist(), rows, strict=True))
    return targets
