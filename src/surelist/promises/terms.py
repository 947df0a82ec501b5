"""What is asked, as values: ``Terms`` (what to promise, and how), ``Roles`` (which column is what).

How front ends say them is in ``grammar``. Nothing here sees data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check
from surelist._check import EVERYONE, MissingLabels
from surelist._names import Marked, option
from surelist.errors import GroupCutoffWarning, InvalidInput
from surelist.promises import kinds
from surelist.promises.conditions import Conditions, Groups, Hash, group_alpha, promise_shares, split_alpha
from surelist.promises.options import GroupCutoff, GroupKeys, GroupRows, GroupSplit, Rule
from surelist.promises.promise import Level, Promise

GROUP_WARNING = (
    "Cutoffs that differ by group are unlawful in some uses: in the United States, Title VII section 703(l) "
    "forbids different cutoff scores by race, colour, religion, sex or national origin in employment tests. "
    f"State what these are for with {option('purpose', '...')}; it is recorded in the policy. "
    f"{option('group_cutoff', 'common')} has one cutoff for everybody. This is not legal advice."
)
Targets = Promise | Sequence[Promise] | Mapping[Any, Promise]


class Terms(Struct, frozen=True, eq=False):
    """What the user asked for, checked: the targets by group and how to certify them."""

    targets: Mapping[str | None, Promise]
    alpha: float = 0.1
    rule: Rule = "exact"
    calibration_share: float = 0.5
    group_split: GroupSplit = "bonferroni"
    group_rows: GroupRows = "own"
    group_cutoff: GroupCutoff = "own"
    group_keys: GroupKeys | None = None
    overlapping: bool = False
    purpose: str | None = None
    hashed: bool = False  # ties are broken by a hash of candidate ids
    missing_labels: MissingLabels = "error"
    also: tuple[Promise, ...] = ()  # promised of the same list, at the same time
    scores: int = 1  # how many scores are certified, to choose one of them after looking

    def __post_init__(self) -> None:
        check.as_alpha(self.calibration_share, "calibration_share")
        check.as_choice(self.missing_labels, get_args(MissingLabels), "missing_labels")
        check.set_value(self, "alpha", check.as_alpha(self.alpha))
        if self.common:
            for each in self.targets.values():
                require_one_threshold(each)

    @property
    def grouped(self) -> bool:
        return None not in self.targets

    @property
    def asked(self) -> list[tuple[str | None, Promise]]:
        """Every promise, beside the name of its group."""
        return [*self.targets.items(), *((None, each) for each in self.also)]

    @property
    def common(self) -> bool:
        """Whether one cutoff has to keep the promises to all groups."""
        return self.grouped and self.group_cutoff == "common"

    @property
    def all_targets(self) -> tuple[Promise, ...]:
        return tuple(each for _, each in self.asked)

    def conditions(self, **rows: str) -> Conditions:
        """What the promises rest on; ``rows`` says how the calibration rows came about."""
        overlapping = " overlapping" if self.overlapping else ""
        groups = {"own": overlapping.strip() or "own", "all": f"all{overlapping}"}[self.group_rows]
        return Conditions(
            rule=self.rule, groups=groups if self.grouped else "none",  # type: ignore[arg-type]
            split="sidak" if self.grouped and self.group_split == "sidak" else "even",
            cutoff="common" if self.common else "own",
            ties="hash" if self.hashed else "include", promises="several" if self.also else "one",
            **rows,  # type: ignore[arg-type]
        )  # fmt: skip

    @property
    def level(self) -> Level:
        """The level at which each group, promise and score is certified."""
        alpha = self.alpha / self.scores
        if self.grouped:
            alpha = group_alpha(alpha, self.all_targets, self.group_split, common=self.common)
        else:
            alpha /= promise_shares(self.all_targets)
        return Level(alpha, self.rule, self.calibration_share)

    def levels(self, rows: int, *, joint: bool) -> dict[Promise, Level]:
        """The level of each promise; ``joint``: nothing of a pool to come entered any rule."""
        promises, level = self.all_targets, self.level
        fixed = [each for each in promises if each.fixed_boundary]
        if self.also and fixed and joint:
            part = self.alpha / self.scores / promise_shares(promises, joint=True)
            for promise in promises:
                together = promise.beside_fixed(fixed, rows, replace(level, alpha=part))
                if together is not None and together.beside is not None:
                    own = {each: replace(level, alpha=together.beside) for each in fixed}
                    rest = dict.fromkeys(promises, replace(level, alpha=part))
                    return {**rest, **own, promise: together}
        return dict.fromkeys(promises, level)

    @property
    def own_level(self) -> Level:
        """The level at which each group would be certified if cutoffs differed."""
        if not self.common:
            return self.level
        groups = sum(name != EVERYONE for name in self.targets)
        alpha = split_alpha(self.alpha / self.scores, max(groups, 1), self.group_split)
        return Level(alpha, self.rule, self.calibration_share)

    def refuse_estimated(self, counted: Mapping[str | None, tuple[int, int]]) -> None:
        """Targets that were estimated from these very rows were chosen after looking at them."""
        names = [name for name in self.targets if name != EVERYONE]
        targets = [self.targets[name] for name in names]
        if len(names) > 1 and targets[0].estimated(targets, [counted[name][1] for name in names]):
            same = "these targets by group are exactly in proportion to the qualified calibration rows of"
            estimate = "each group, as an estimate from these rows is. Estimate them from other rows"
            digits = "targets that were not estimated from these may be given in three digits"
            raise InvalidInput("target", f"{same} {estimate}; {digits}.")


class Roles(Struct, frozen=True):
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


def make_terms(
    target: Targets, *, groups: Groups | None = None, ties: object = "include", **settings: Any
) -> Terms:
    """Terms from a target, or from a mapping of group to target; ``settings`` are fields of ``Terms``.

    Called by the public functions themselves: the warning about groups points at their callers.
    """
    also: tuple[Promise, ...] = ()
    if groups is not None and not isinstance(groups, Groups):
        raise InvalidInput("groups", expected="Groups(names, purpose=...)", got="the names alone")
    if ties != "include" and not isinstance(ties, Hash):
        raise InvalidInput("ties", expected='"include" or Hash(ids)', got=repr(ties))
    if isinstance(target, (list, tuple)):
        target, also = _several(target, groups is not None)
    if groups is not None:
        settings |= {"purpose": groups.purpose, "overlapping": isinstance(groups.names, Mapping)}
        settings |= {f"group_{name}": getattr(groups, name) for name in ("split", "rows", "cutoff")}
    terms = Terms(
        _by_group(target, groups is not None), also=also, hashed=isinstance(ties, Hash),
        group_keys=_keys_of(target), **settings,
    )  # fmt: skip
    require_purpose(terms.purpose, groups_given=groups is not None and not terms.common, level=4)
    return terms


def require_purpose(purpose: object, *, groups_given: bool, level: int) -> None:
    """A purpose for groups that can be written down; a warning, ``level`` calls up, where there is none."""
    if groups_given and purpose is None:
        warnings.warn(GROUP_WARNING, GroupCutoffWarning, stacklevel=level)
    elif purpose is not None:
        if not isinstance(purpose, str) or not purpose.strip():
            sentence = "a sentence on what the cutoffs are for"
            raise InvalidInput("purpose", expected=sentence, got=repr(purpose))
        check.as_text(purpose, "purpose")


def _several(targets: Sequence[object], groups_given: bool) -> tuple[Promise, tuple[Promise, ...]]:
    """Promises of one list at once: counts and shares of rows, and precision."""
    if groups_given:
        raise InvalidInput("target", f"several promises at once go without {option('groups')}.")
    checked = [_checked(each, f"target[{number}]") for number, each in enumerate(targets)]
    if len({type(each) for each in checked}) != len(checked) or len(checked) < 2:
        raise InvalidInput("target", "expected several promises, each of another kind.")
    for each in checked:
        require_one_threshold(each)
    return checked[0], tuple(checked[1:])


def require_one_threshold(promise: Promise) -> None:
    """Raise where a promise has a threshold for each pool size, and one list has to keep several."""
    if not promise.one_threshold:
        alone = f"{promise!r} has several thresholds and goes alone; give one pool size."
        raise InvalidInput("target", alone)


def _keys_of(target: object) -> GroupKeys | None:
    """What groups are named by, where it is not text."""
    kinds = {type(check.plain(each)) for each in target} if isinstance(target, Mapping) else set()
    if len(kinds) != 1:
        return None
    keys: dict[type, GroupKeys] = {int: "whole numbers", bool: "true or false"}
    return keys.get(kinds.pop())


def _by_group(target: Targets, groups_given: bool) -> dict[str | None, Promise]:
    if isinstance(target, Mapping):
        if not groups_given:
            raise InvalidInput("groups", f"a mapping of targets needs {option('groups')}, one name per row.")
        targets: dict[str | None, Promise] = {}
        for key, each in target.items():
            name = check.group_name(key, "target")
            if name in targets:
                raise InvalidInput("target", f"group {name!r} appears twice.")
            targets[name] = _checked(each, f"target[{key!r}]")
        if not targets:
            raise InvalidInput("target", expected="at least one group", got="an empty mapping")
        if len({type(each) for each in targets.values()}) > 1:
            raise InvalidInput("target", "expected the same kind of target for every group.")
        if len({each.by_rank for each in targets.values()}) > 1:
            raise InvalidInput("target", "one list goes by score or by rank; the same for every group.")
        return targets
    if groups_given:
        raise InvalidInput("target", f"with {option('groups')}, give a mapping of group to target.")
    return {None: _checked(target, "target")}


def _checked(target: object, name: str) -> Promise:
    if not isinstance(target, Promise):
        raise InvalidInput(name, f"expected a promise: {kinds.offered()}; got {target!r}.")
    return target


EVERY_LABEL = Marked({"missing_labels": None})


@contextmanager
def fitting_advice(terms: Terms) -> Iterator[None]:
    """Nobody is told to count missing labels as not qualified where a promise refuses that."""
    try:
        yield
    except InvalidInput as error:
        if not any(each.every_label for each in terms.all_targets):
            raise
        raise error.changed(EVERY_LABEL.said) from error
