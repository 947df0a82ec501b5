"""The one grammar in which command line, API and page say what they want: words to targets, roles and terms.

Every name is one of ``OPTIONS``. Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from surelist import _check as check
from surelist.errors import InvalidInput
from surelist.promises.options import ListedBy, PromiseKind
from surelist.promises.sampled import SampledLabels
from surelist.promises.targets import AnyTarget, Budget, Expected, PerPool, Precision, Recall, Target
from surelist.promises.terms import GROUP_WARNING, Roles, Targets, Terms, make_terms

KINDS: dict[str, PromiseKind] = {
    "expect": "expected", "expected": "expected", "pool": "per-pool", "per-pool": "per-pool",
    "recall": "recall",
}  # fmt: skip
ALSO = '"expect:K/M", "pool:K/M", "recall:SHARE" or "precision:SHARE"'
GRAMMAR = '"NAME=K/M", "NAME=pool:K/M" or "NAME=recall:SHARE"'

PoolSize = float | str | tuple[float, float]


def roles_of(asked: Mapping[str, Any]) -> Roles:
    """Roles from what a door was given, by the names of ``OPTIONS``; only randomised ties use ids."""
    names: dict[str, Any] = {each.name: asked.get(each.name) for each in fields(Roles)}
    ids = names["id"] if asked.get("ties") == "hash" else None
    return Roles(**{**names, "id": ids, "other_score": tuple(names["other_score"] or ())})


def terms_of(asked: Mapping[str, Any], target: Targets) -> Terms:
    """Terms from what a door was given, by the names of ``OPTIONS``; groups need a purpose there."""
    grouped = asked.get("group") is not None
    if grouped and not (asked.get("purpose") or "").strip():
        raise InvalidInput(f"purpose: cutoffs by group need a sentence on what they are for. {GROUP_WARNING}")
    known = {each.name for each in fields(Terms)} & asked.keys() - {"targets", "also"}
    return make_terms(target, groups_given=grouped, **{name: asked[name] for name in known})


def target_asked(asked: Mapping[str, Any]) -> Targets:
    """The target or targets that promise, k, pool_size, share, target and also describe."""
    promise: PromiseKind = asked.get("promise") or "expected"
    size = asked.get("pool_size")
    if size is not None and asked.get("largest_pool") is not None:
        size = (size, asked["largest_pool"])
    texts, also = asked.get("target") or (), asked.get("also") or ()
    if asked.get("group") is not None:
        if also:
            raise InvalidInput("also: several promises at once go without group=.")
        return group_targets(texts, promise, size)
    if texts:
        raise InvalidInput("target: targets by group need group=, the column with the group.")
    first = special_target(promise, asked, size)
    if first is None:
        first = one_target(promise, k=asked.get("k"), pool_size=size, share=asked.get("share"))
    return [first, *(_also(text, asked.get("start")) for text in also)] if also else first


def special_target(promise: PromiseKind, asked: Mapping[str, Any], size: Any) -> AnyTarget | None:
    """A target that needs more than counts; None where none was asked for."""
    k, share = asked.get("k"), asked.get("share")
    by: ListedBy = asked.get("by") or "score"
    spread, of = asked.get("spread"), asked.get("of") or "count"
    whole = size is None and asked.get("pool") is not None
    _require_fitting(promise, asked)
    if promise in ("pool-recall", "precision") and share is None:
        raise InvalidInput(f"share: expected a number between 0 and 1 for a {promise} promise.")
    if promise == "precision":
        return Precision(cast(float, share), asked.get("start"))
    if promise == "pool-recall":
        return PerPool(recall=share, by=by)
    if promise == "budget":
        if k is None or size is None:
            raise InvalidInput("pool_size: a budget is K of M candidates: k and pool_size go together.")
        return Budget(k, _number(size, "pool_size"))
    if promise == "recall" or k is None:
        return None
    if promise == "per-pool":
        return PerPool(_whole(k), by=by) if whole else None  # type: ignore[arg-type]
    if not whole and of == "count" and spread is None:
        return None
    return Expected(k, None if size is None else _number(size, "pool_size"), spread, of)  # type: ignore[arg-type]


FITTING = {
    "spread": ("expected",), "of": ("expected",), "by": ("per-pool", "pool-recall"), "start": ("precision",),
    "pool_size": ("expected", "per-pool", "budget", "recall"),
}  # fmt: skip


def _require_fitting(promise: PromiseKind, asked: Mapping[str, Any]) -> None:
    """Nothing that was said is passed over in silence."""
    precise = any(text.startswith("precision") for text in asked.get("also") or ())
    for name, promises in FITTING.items():
        given = asked.get(name) not in (None, "count", "score")
        if given and promise not in promises and not (name == "start" and precise):
            raise InvalidInput(f"{name}: does not go with a promise of {promise}; leave it out.")
    if asked.get("by") == "rank" and (asked.get("pool") is None or asked.get("pool_size") is not None):
        raise InvalidInput("by: lists by rank need whole pools: pool= and no pool_size.")


def _also(text: str, start: float | None) -> AnyTarget:
    """One more promise of the same list, in the grammar of targets without a name."""
    kind, _, numbers = text.rpartition(":")
    if kind == "precision":
        return Precision(_share(numbers, "also"), start)
    if kind not in KINDS:
        raise InvalidInput(f"also: expected {ALSO}, got {text!r}.")
    return _target(KINDS[kind], numbers, None, text)


def drawn_labels(asked: Mapping[str, Any]) -> SampledLabels | None:
    """How labels came about, by the names of ``OPTIONS``; None where every row has its own."""
    column, rate, edge = (asked.get(name) for name in ("probability", "audit_rate", "audited_below"))
    lowest, low_score = asked.get("lowest_rate"), asked.get("lowest_score")
    if column is None and (lowest, low_score) != (None, None):
        raise InvalidInput("probability: lowest_rate and lowest_score go with probability=, a column.")
    if column is not None:
        if (rate, edge) != (None, None):
            raise InvalidInput("probability: give either a column or audit_rate and audited_below.")
        if lowest is None:
            raise InvalidInput("lowest_rate: probability= needs it, fixed before labels were drawn.")
        return SampledLabels(asked.get("label"), column, lowest_rate=lowest, lowest_score=low_score)
    if (rate is None) != (edge is None):
        raise InvalidInput("audit_rate: audit_rate and audited_below go together; give both or neither.")
    if rate is None:
        return None
    return SampledLabels(asked.get("label"), check.as_rate(rate, "audit_rate"), above=edge)


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
        name, equals, amount = text.rpartition("=")
        kind, colon, numbers = amount.rpartition(":")
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
        meant = check.share_meant(amount) if promise == "recall" else ""
        raise InvalidInput(f"target: expected numbers as in {GRAMMAR}, got {text!r}.{meant}") from None
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


def _share(text: str, name: str) -> float:
    try:
        return _number(text, name)
    except InvalidInput as error:
        raise InvalidInput(f"{error}{check.share_meant(text)}") from None


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidInput(f"{name}: expected a number, got {value!r}.") from None


def _whole(value: float) -> float:
    return int(value) if abs(value) < 1e15 and float(value).is_integer() else value
