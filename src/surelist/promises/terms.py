"""What is asked, as values: ``Terms`` (what to promise, and how), ``Roles`` (which column is what).

How the doors say them is in ``asked``. Nothing here sees data.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from surelist import _check as check
from surelist._check import MissingLabels
from surelist._dataclasses import dataclass
from surelist.errors import GroupCutoffWarning, InvalidInput
from surelist.promises.groups import split_alpha
from surelist.promises.options import GroupKeys, GroupRows, GroupSplit, Rule, Ties
from surelist.promises.targets import AnyTarget, Budget, Expected, Level, PerPool, Precision, Recall

GROUP_WARNING = (
    "Cutoffs that differ by group are unlawful in some uses: in the United States, Title VII section 703(l) "
    "forbids different cutoff scores by race, colour, religion, sex or national origin in employment tests. "
    'State what these are for with purpose="..."; it is recorded in the policy. This is not legal advice.'
)
Targets = AnyTarget | Sequence[AnyTarget] | Mapping[Any, AnyTarget]


@dataclass(frozen=True)
class Terms:
    """What the user asked for, checked: the targets by group and how to certify them."""

    targets: Mapping[str | None, AnyTarget]
    alpha: float = 0.1
    rule: Rule = "exact"
    calibration_share: float = 0.5
    group_split: GroupSplit = "bonferroni"
    group_rows: GroupRows = "own"
    group_keys: GroupKeys | None = None
    overlapping: bool = False
    purpose: str | None = None
    ties: Ties = "include"
    missing_labels: MissingLabels = "error"
    also: tuple[AnyTarget, ...] = ()  # promised of the same list, at the same time
    scores: int = 1  # how many scores are certified, to choose one of them after looking
    # rows and qualified rows per group that the targets were estimated from: not to be calibrated on
    estimated_from: Mapping[str, tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        check.as_alpha(self.calibration_share, "calibration_share")
        for name, kind in (
            ("group_split", GroupSplit),
            ("group_rows", GroupRows),
            ("ties", Ties),
            ("missing_labels", MissingLabels),
        ):
            check.as_choice(getattr(self, name), get_args(kind), name)
        object.__setattr__(self, "alpha", check.as_alpha(self.alpha))
        for each in self.all_targets:
            check.as_choice(self.rule, each.rules, f"rule (for {type(each).__name__} targets)")
            if self.group_rows == "all" and isinstance(each, Recall):
                raise InvalidInput('group_rows: "all" goes with Expected and PerPool targets, got Recall.')
        if self.group_split == "sidak" and (self.overlapping or self.group_rows == "all"):
            raise InvalidInput(
                'group_split: "sidak" needs disjoint groups with rows of their own; use "bonferroni".'
            )
        if self.purpose is not None and not self.grouped:
            raise InvalidInput(f"purpose: goes with groups=, got {self.purpose!r} without.")

    @property
    def grouped(self) -> bool:
        return None not in self.targets

    @property
    def all_targets(self) -> tuple[AnyTarget, ...]:
        return (*self.targets.values(), *self.also)

    @property
    def level(self) -> Level:
        """The level at which each group, promise and score is certified."""
        alpha = self.alpha / self.scores
        if self.grouped:
            alpha = split_alpha(alpha, len(self.targets), self.group_split)
        else:
            alpha /= 1 + len(self.also)
        return Level(alpha, self.rule, self.calibration_share)


@dataclass(frozen=True)
class Roles:
    """Which column of a table is what."""

    score: str | None
    label: str | None = None
    group: str | None = None
    id: str | None = None
    weight: str | None = None
    pool: str | None = None
    other_score: tuple[str, ...] = ()  # the best of them and of score is kept

    @property
    def scores(self) -> tuple[str, ...]:
        """All score columns, the first one first."""
        return (self.score or "", *self.other_score)

    def names(self, *roles: str) -> dict[str, str | None]:
        """Role to column, for these roles."""
        return {role: getattr(self, role) for role in roles}


def make_terms(target: Targets, *, groups_given: bool, purpose: str | None = None, **settings: Any) -> Terms:
    """Terms from a target, or from a mapping of group to target; ``settings`` are fields of ``Terms``.

    Called by the public functions themselves: the warning about groups points at their callers.
    """
    also: tuple[AnyTarget, ...] = ()
    if isinstance(target, (list, tuple)):
        target, also = _several(target, groups_given)
    seen = getattr(target, "estimated_from", None)
    terms = Terms(
        _by_group(target, groups_given), purpose=purpose, also=also, estimated_from=seen,
        group_keys=_keys_of(target), **settings,
    )  # fmt: skip
    require_purpose(purpose, groups_given=groups_given, level=4)
    return terms


def require_purpose(purpose: Any, *, groups_given: bool, level: int) -> None:
    """A purpose for groups that can be written down; a warning, ``level`` calls up, where there is none."""
    if groups_given and purpose is None:
        warnings.warn(GROUP_WARNING, GroupCutoffWarning, stacklevel=level)
    elif purpose is not None:
        if not isinstance(purpose, str) or not purpose.strip():
            raise InvalidInput(f"purpose: expected a sentence on what the cutoffs are for, got {purpose!r}.")
        check.as_text(purpose, "purpose")


def _several(targets: Sequence[Any], groups_given: bool) -> tuple[AnyTarget, tuple[AnyTarget, ...]]:
    """Promises of one list at once: counts and shares of rows, and precision."""
    if groups_given:
        raise InvalidInput("target: several promises at once go without groups=.")
    checked = [_checked(each, f"target[{number}]") for number, each in enumerate(targets)]
    if len({type(each) for each in checked}) != len(checked) or len(checked) < 2:
        raise InvalidInput("target: expected several promises, each of another kind.")
    for each in checked:
        sizes = getattr(each, "pool_size", 1)
        if (
            isinstance(each, Budget)
            or sizes is None
            or isinstance(sizes, tuple)
            or getattr(each, "of", "") == "value"
        ):
            raise InvalidInput(
                f"target: {each!r} goes alone; together go Expected(k, pool_size), PerPool(k, pool_size), "
                "Recall and Precision."
            )
    return checked[0], tuple(checked[1:])


def _keys_of(target: Any) -> GroupKeys | None:
    """What groups are named by, where it is not text."""
    kinds = {type(check.plain(each)) for each in target} if isinstance(target, Mapping) else set()
    if len(kinds) != 1:
        return None
    keys: dict[type, GroupKeys] = {int: "whole numbers", bool: "true or false"}
    return keys.get(kinds.pop())


def _by_group(target: Targets, groups_given: bool) -> dict[str | None, AnyTarget]:
    if isinstance(target, Mapping):
        if not groups_given:
            raise InvalidInput("groups: a mapping of targets needs groups=, one name per row.")
        targets: dict[str | None, AnyTarget] = {}
        for key, each in target.items():
            name = check.group_name(key, "target")
            if name in targets:
                raise InvalidInput(f"target: group {name!r} appears twice.")
            targets[name] = _checked(each, f"target[{key!r}]")
        if not targets:
            raise InvalidInput("target: expected at least one group, got an empty mapping.")
        if len({type(each) for each in targets.values()}) > 1:
            raise InvalidInput("target: expected the same kind of target for every group.")
        return targets
    if groups_given:
        raise InvalidInput("target: with groups=, give a mapping of group to target.")
    return {None: _checked(target, "target")}


def _checked(target: Any, name: str) -> AnyTarget:
    if not isinstance(target, (Expected, PerPool, Recall, Precision, Budget)):
        raise InvalidInput(
            f"{name}: must be one of Expected(k, pool_size), PerPool(k, pool_size), Recall(share), "
            f"Precision(share), Budget(size, pool_size), got {target!r}."
        )
    return target
