"""What is asked, as values: ``Terms`` (what to promise, and how), ``Roles`` (which column is what).

Also the one grammar in which command line, API and page say targets. Nothing here sees data.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast, get_args

from surelist import _check as check
from surelist._check import MissingLabels
from surelist.errors import GroupCutoffWarning, InvalidInput
from surelist.promises.groups import split_alpha
from surelist.promises.options import GroupRows, GroupSplit, PromiseKind, Rule, Ties
from surelist.promises.targets import AnyTarget, Budget, Expected, Level, PerPool, Precision, Recall, Target

GROUP_WARNING = (
    "Cutoffs that differ by group are unlawful in some uses: in the United States, Title VII section 703(l) "
    "forbids different cutoff scores by race, colour, religion, sex or national origin in employment tests. "
    'State what these are for with purpose="..."; it is recorded in the policy. This is not legal advice.'
)
KINDS: dict[str, PromiseKind] = {
    "expect": "expected", "expected": "expected", "pool": "per-pool", "per-pool": "per-pool",
    "recall": "recall",
}  # fmt: skip
SPECIAL = ("pool-recall", "precision", "budget")
GRAMMAR = '"NAME=K/M", "NAME=pool:K/M" or "NAME=recall:SHARE"'

Targets = AnyTarget | Sequence[AnyTarget] | Mapping[Any, AnyTarget]
PoolSize = float | str | tuple[float, float]


@dataclass(frozen=True)
class Terms:
    """What the user asked for, checked: the targets by group and how to certify them."""

    targets: Mapping[str | None, AnyTarget]
    alpha: float = 0.1
    rule: Rule = "exact"
    calibration_share: float = 0.5
    group_split: GroupSplit = "bonferroni"
    group_rows: GroupRows = "own"
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
        _by_group(target, groups_given), purpose=purpose, also=also, estimated_from=seen, **settings
    )
    if groups_given and purpose is None:
        warnings.warn(GROUP_WARNING, GroupCutoffWarning, stacklevel=3)
    elif purpose is not None:
        if not isinstance(purpose, str) or not purpose.strip():
            raise InvalidInput(f"purpose: expected a sentence on what the cutoffs are for, got {purpose!r}.")
        check.as_text(purpose, "purpose")
    return terms


def roles_of(asked: Mapping[str, Any]) -> Roles:
    """Roles from what a door was given, by the names of ``OPTIONS``; only randomised ties use ids."""
    names = {each.name: asked.get(each.name) for each in fields(Roles)}
    return Roles(**{**names, "id": names["id"] if asked.get("ties") == "hash" else None})


def terms_of(asked: Mapping[str, Any], target: Targets) -> Terms:
    """Terms from what a door was given, by the names of ``OPTIONS``; groups need a purpose there."""
    grouped = asked.get("group") is not None
    if grouped and not (asked.get("purpose") or "").strip():
        raise InvalidInput(f"purpose: cutoffs by group need a sentence on what they are for. {GROUP_WARNING}")
    known = {each.name for each in fields(Terms)} & asked.keys() - {"targets"}
    return make_terms(target, groups_given=grouped, **{name: asked[name] for name in known})


def target_asked(asked: Mapping[str, Any]) -> Targets:
    """The target, or the targets by group, that promise, k, pool_size, share and target describe."""
    promise: PromiseKind = asked.get("promise") or "expected"
    size = asked.get("pool_size")
    if size is not None and asked.get("largest_pool") is not None:
        size = (size, asked["largest_pool"])
    texts = asked.get("target") or ()
    if asked.get("group") is None:
        if texts:
            raise InvalidInput("target: targets by group need group=, the column with the group.")
        if size is None or promise in SPECIAL:
            special = special_target(promise, asked, size)
            if special is not None:
                return special
        return one_target(promise, k=asked.get("k"), pool_size=size, share=asked.get("share"))
    return group_targets(texts, promise, size)


def special_target(promise: PromiseKind, asked: Mapping[str, Any], size: Any) -> AnyTarget | None:
    """A target that needs more than counts; None where none was asked for."""
    k, share = asked.get("k"), asked.get("share")
    if promise in ("pool-recall", "precision") and share is None:
        raise InvalidInput(f"share: expected a number between 0 and 1 for a {promise} promise.")
    if promise == "precision":
        return Precision(cast(float, share), asked.get("start"))
    if promise == "pool-recall":
        return PerPool(recall=share)
    if promise == "budget":
        if k is None or size is None:
            raise InvalidInput("pool_size: a budget is K of M candidates: k and pool_size go together.")
        return Budget(k, _number(size, "pool_size"))
    if asked.get("pool") is None or k is None or promise == "recall":
        return None
    if promise == "expected":
        return Expected(k, spread=asked.get("spread"))
    return PerPool(_whole(k))  # type: ignore[arg-type]


def one_target(
    promise: PromiseKind, *, k: float | None = None, pool_size: PoolSize | None = None,
    share: float | None = None,
) -> Target:  # fmt: skip
    """One target from its numbers. ``pool_size`` may be the text of a size or of a range, 50-200."""
    if promise == "recall":
        if share is None:
            raise InvalidInput("share: expected a number between 0 and 1 for a recall promise.")
        return Recall(share)
    if k is None or pool_size is None:
        missing = "k" if k is None else "pool_size"
        raise InvalidInput(f"{missing}: expected a number; k and pool_size go together.")
    if promise == "expected":
        if isinstance(pool_size, tuple):
            raise InvalidInput(f"pool_size: expected one number for an expected promise, got {pool_size!r}.")
        return Expected(k, _number(pool_size, "pool_size"))
    return PerPool(_whole(k), _sizes(pool_size))  # type: ignore[arg-type]


def group_targets(
    texts: Sequence[str], promise: PromiseKind = "expected", pool_size: PoolSize | None = None
) -> dict[str, Target]:
    """Targets by group, each said as NAME=K/M, NAME=K/50-200, NAME=K (with ``pool_size``) or NAME=SHARE.

    ``expect:``, ``pool:`` or ``recall:`` before the numbers says the promise, else ``promise`` does.
    """
    targets: dict[str, Target] = {}
    for text in texts:
        name, equals, text_of_target = text.rpartition("=")
        kind, colon, numbers = text_of_target.rpartition(":")
        if not equals or not name or (colon and kind not in KINDS):
            raise InvalidInput(f"target: expected {GRAMMAR}, got {text!r}.")
        if name in targets:
            raise InvalidInput(f"target: group {name!r} appears twice.")
        targets[name] = _target(KINDS[kind] if colon else promise, numbers, pool_size, text)
    if not targets:
        raise InvalidInput(f"target: with group=, give one target per group: {GRAMMAR}.")
    return targets


def _target(promise: PromiseKind, numbers: str, pool_size: PoolSize | None, text: str) -> Target:
    amount, slash, size = numbers.partition("/")
    try:
        value = float(amount)
    except ValueError:
        raise InvalidInput(f"target: expected numbers as in {GRAMMAR}, got {text!r}.") from None
    if promise == "recall":
        if slash:
            raise InvalidInput(f"target: recall is a share without a pool size, got {text!r}.")
        return one_target(promise, share=value)
    return one_target(promise, k=value, pool_size=size if slash else pool_size)


def _sizes(size: PoolSize) -> Any:
    """A size or a range of sizes, from numbers or from text such as 50-200."""
    if isinstance(size, tuple):
        return tuple(_whole(_number(each, "pool_size")) for each in size)
    low, dash, high = size.strip().partition("-") if isinstance(size, str) else ("", "", "")
    if low and dash:
        return tuple(_whole(_number(each, "pool_size")) for each in (low, high))
    return _whole(_number(size, "pool_size"))


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidInput(f"{name}: expected a number, got {value!r}.") from None


def _whole(value: float) -> float:
    return int(value) if abs(value) < 1e15 and float(value).is_integer() else value


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
            f"{name}: expected Expected, PerPool, Recall, Precision or Budget, got {target!r}."
        )
    return target
