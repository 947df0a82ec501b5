"""Targets by group in proportion to each group's qualified candidates [theory: groups]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surelist import _check as check
from surelist.errors import InvalidInput
from surelist.promises.kinds.expected import Expected


class GroupTargets(dict[Any, Expected]):
    """Targets by group that were estimated from rows, and what those rows are known by.

    ``estimated_from`` has, per group, the rows and the qualified rows: calibration refuses these very
    rows, because on them the targets were chosen after looking.
    """

    estimated_from: dict[str, tuple[int, int]]


def equal_opportunity(labels: Any, groups: Any, k: float, pool_sizes: Mapping[Any, float]) -> GroupTargets:
    """Targets per group in proportion to each group's qualified candidates, summing to k.

    k_g = k P(Y=1, g) / P(Y=1) is estimated from ``labels`` and ``groups``; the size of a pool per
    group is known and given in ``pool_sizes`` (for ``Groups(..., rows="all")``, the whole pool's size for
    every group). These rows must not be the calibration rows: targets estimated on the rows that
    certify them were false in 10-33 % at 10 %, and ``calibrate`` refuses them [theory: groups].

    Parameters
    ----------
    labels : array_like
        0 or 1 of rows that are not the calibration rows.
    groups : array_like
        The group of each row.
    k : float
        Qualified candidates that all groups together are promised.
    pool_sizes : mapping of group to float
        Candidates of each group in a pool.

    Returns
    -------
    dict
        A target per group, for ``calibrate``.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

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
        raise InvalidInput("labels", expected="at least one qualified row", got="none")
    if not isinstance(pool_sizes, Mapping):
        raise InvalidInput(
            "pool_sizes",
            expected="a mapping of group to the size of its pools",
            got=repr(pool_sizes),
            remedy="They have to be known, not estimated from rows.",
        )
    keys = {check.group_name(key, "pool_sizes"): key for key in pool_sizes}
    sizes = {name: pool_sizes[key] for name, key in keys.items()}
    known, codes = np.unique(names, return_inverse=True)
    unseen = sorted(set(sizes) - set(known.tolist()))
    if unseen:
        raise InvalidInput(
            "pool_sizes",
            f"group {unseen[0]!r} has no rows, so its share of the qualified is not known. Gather rows of "
            "it, or let it be part of a larger group: merge_groups.",
        )
    if sorted(sizes) != known.tolist():
        raise InvalidInput("pool_sizes", expected=f"the groups {known.tolist()}", got=f"{sorted(sizes)}")
    members, counts = np.bincount(codes), np.bincount(codes, weights=qualified).astype(int)
    targets = GroupTargets()
    for name, count in zip(known.tolist(), counts.tolist(), strict=True):
        if count == 0:
            raise InvalidInput("groups", f"group {name!r} has no qualified rows. Merge it: merge_groups.")
        try:
            targets[keys[name]] = Expected(k * count / int(counts.sum()), sizes[name])
        except InvalidInput as error:
            raise InvalidInput("k", f"group {name!r}: {error} Ask for less.") from error
    rows = zip(members.tolist(), counts.tolist(), strict=True)
    targets.estimated_from = dict(zip(known.tolist(), rows, strict=True))
    return targets
