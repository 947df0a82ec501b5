"""Groups: splitting alpha between them, and targets per group [theory: groups]."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np

from surelist import _check as check
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


def equal_opportunity(labels: Any, groups: Any, k: float, pool_size: float) -> dict[str, Expected]:
    """Targets per group in proportion to each group's qualified candidates, summing to k.

    k_g = k P(Y=1, g) / P(Y=1) and m_g = m P(g), both estimated from ``labels`` and ``groups``.
    These rows must not be the calibration rows: a group size estimated from the rows that
    certify it breaks the level (12-18 % failures at 10 %). Where no other rows exist, keep
    the k_g and calibrate with ``group_rows="all"`` and the whole pool's size in each target.
    """
    Expected(k, pool_size)  # checks both
    qualified, _ = check.as_labels(labels)
    check.require_rows(qualified, "labels")
    names = check.as_groups(groups)
    check.require_length(names, len(qualified), "groups")
    found, place = np.unique(names, return_inverse=True)
    members = np.bincount(place)
    counts = np.bincount(place, weights=qualified)
    if not qualified.any():
        raise InvalidInput("labels: expected at least one qualified row, got none.")
    targets = {}
    for name, size, count in zip(found.tolist(), members.tolist(), counts.tolist(), strict=True):
        own_size, own_k = pool_size * size / len(qualified), k * count / int(counts.sum())
        if count == 0:
            raise InvalidInput(f"groups: group {name!r} has no qualified rows. Merge it with another group.")
        if own_k > own_size:
            raise InvalidInput(
                f"k: group {name!r} would need {own_k:.4g} qualified of {own_size:.4g}. Ask for less."
            )
        targets[name] = Expected(own_k, own_size)
    return targets
