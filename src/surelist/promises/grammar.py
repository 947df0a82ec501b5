"""The one grammar in which command line, API and page say what they want: words to targets, roles and terms.

Every name is one of ``OPTIONS`` or a field of a kind of promise. Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surelist import _check as check
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.conditions import Groups, Hash
from surelist.promises.options import OPTIONS, Sizes
from surelist.promises.promise import Promise
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.terms import GROUP_WARNING, Roles, Targets, Terms, make_terms

Asked = Mapping[str, Any]  # what a front end was given, by name
OF_GROUPS = ("purpose", "group_split", "group_rows", "group_cutoff")
PoolSize = float | str | tuple[float, float]


def roles_of(asked: Asked) -> Roles:
    """Roles from what a front end was given, by the names of ``OPTIONS``; only randomised ties use ids."""
    names: dict[str, Any] = {name: asked.get(name) for name in Roles.__struct_fields__}
    ids = names["id"] if asked.get("ties") == "hash" else None
    return Roles(**{**names, "id": ids, "other_score": tuple(names["other_score"] or ())})


def terms_of(asked: Asked, target: Targets) -> Terms:
    """Terms from what a front end was given, by the names of ``OPTIONS``; groups need a purpose there."""
    group, purpose = asked.get("group"), asked.get("purpose")
    for name in OF_GROUPS if group is None else ():
        if (given := asked.get(name)) not in (None, OPTIONS[name].default):
            raise InvalidInput(name, f"goes with {option('group')}, got {given!r} without.")
    alike = asked.get("group_cutoff") == "common"
    if group is not None and not alike and not (purpose or "").strip():
        sentence = "cutoffs by group need a sentence on what they are for"
        raise InvalidInput("purpose", f"{sentence}. {GROUP_WARNING}")
    groups = None
    if group is not None:
        given = {name: asked.get(f"group_{name}") for name in ("split", "rows", "cutoff")}
        groups = Groups(group, purpose, **{name: value for name, value in given.items() if value is not None})
    known = ("alpha", "rule", "calibration_share", "missing_labels")
    ties = Hash(asked.get("id")) if asked.get("ties") == "hash" else "include"
    settings = {name: asked[name] for name in known if name in asked}
    return make_terms(target, groups=groups, ties=ties, **settings)


def target_asked(asked: Asked) -> Targets:
    """The target or targets that promise, its numbers, target and also describe."""
    kind = asked.get("promise") or kinds.FIRST
    size = asked.get("pool_size")
    if size is not None and asked.get("largest_pool") is not None:
        size = (size, asked["largest_pool"])
    texts, also = asked.get("target") or (), asked.get("also") or ()
    if asked.get("group") is not None:
        if also:
            raise InvalidInput("also", f"several promises at once go without {option('group')}.")
        return group_targets(texts, kind, size)
    if texts:
        raise InvalidInput("target", f"targets by group need {option('group')}, the column with the group.")
    plain = {name: option.default for name, option in kinds.fields().items()}
    given = {name: asked.get(name, default) for name, default in plain.items()} | {"pool_size": size}
    others = [said(text, None, None, "also", beside=given) for text in also]
    taken = {name for each in others for name in kinds.optional(type(each))}
    left = {name: value for name, value in given.items() if name not in taken and value != plain[name]}
    first = one_target(kind, left)
    return [first, *others] if others else first


def one_target(kind: str, given: Asked) -> Promise:
    """One promise from its numbers, by the names of its fields; None where nothing was said.

    ``pool_size`` may be the text of a size or of a range, 50-200.
    """
    promise = kinds.promise_class(kind)
    if promise is None:
        raise InvalidInput("promise", expected=f"one of {', '.join(kinds.KINDS)}", got=repr(kind))
    numbers = {name: value for name, value in given.items() if value is not None}
    for name in numbers:
        if name not in promise.__struct_fields__:
            raise InvalidInput(name, f"does not go with a promise of {kind}; leave it out.")
    for name in kinds.required(promise):
        if name not in numbers:
            with_it = ", ".join(kinds.required(promise))
            whole = kinds.whole_pools_like(promise) if name == "pool_size" else None
            more = f" Of whole pools, whatever their size: {option('promise', whole)}." if whole else ""
            raise InvalidInput(name, f"expected a number; a promise of {kind} needs {with_it}.{more}")
    described = kinds.fields_of(promise)
    reads = {name: _sizes if described[name].kind is Sizes else _whole for name in numbers}
    return promise(**{name: reads[name](value) for name, value in numbers.items()})


def group_targets(
    texts: Sequence[str], kind: str = kinds.FIRST, pool_size: PoolSize | None = None
) -> dict[str, Promise]:
    """Targets by group, each said as NAME=K/M, NAME=K/50-200, NAME=K (with ``pool_size``) or NAME=SHARE.

    The name of a promise and a colon before the numbers says which, else ``kind`` does.
    """
    targets: dict[str, Promise] = {}
    for text in texts:
        name, equals, amount = text.rpartition("=")
        if not equals or not name:
            raise InvalidInput("target", expected=f"{grammar('NAME=')}", got=repr(text))
        if name in targets:
            raise InvalidInput("target", f"group {name!r} appears twice.")
        targets[name] = said(amount, kind, pool_size, "target", shown=text)
    if not targets:
        each = f"give one target per group: {grammar('NAME=')}"
        raise InvalidInput("target", f"with {option('group')}, {each}.")
    return targets


def said(
    text: str, kind: str | None, pool_size: PoolSize | None, option: str, *,
    beside: Asked | None = None, shown: str | None = None,
) -> Promise:  # fmt: skip
    """One promise in few words, such as pool:3/100: its name, and its numbers in the order of its fields.

    What it may have more is taken from ``beside``.
    """
    prefix, colon, numbers = text.rpartition(":")
    kind = kinds.named(prefix) if colon else kind
    promise = None if kind is None else kinds.promise_class(kind)
    if promise is None or kind is None:
        raise InvalidInput(option, expected=f"{grammar()}", got=repr(shown or text))
    fields, values = promise.__struct_fields__, numbers.split("/")
    if len(values) > len(kinds.required(promise)) or not all(values):
        how = f"{promise.alias}:{'/'.join(name.upper() for name in kinds.required(promise))}"
        raise InvalidInput(option, expected=f"{how}", got=repr(shown or text))
    given: dict[str, Any] = dict(zip(fields, values, strict=False))
    if "pool_size" in fields:
        given.setdefault("pool_size", pool_size)
    described = kinds.fields_of(promise)
    read = {
        name: value if described[name].kind is Sizes else _number(value, option, shown or text)
        for name, value in given.items()
    }
    return one_target(kind, {name: (beside or {}).get(name) for name in kinds.optional(promise)} | read)


def grammar(before: str = "") -> str:
    """How promises are said in few words."""
    named = [(each.alias, "/".join(kinds.required(each)).upper()) for each in kinds.classes() if each.alias]
    shown = [f'"{before}{alias}:{fields}"' for alias, fields in named]
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


# ways in which labels come about: what each has to be given, and what else it may be
DRAWN, WRONG = ("probability", "lowest_rate", "lowest_score"), ("false_positive", "false_negative", "longest")
WAYS = (DRAWN, WRONG, ("audit_rate", "audited_below"))


def drawn_labels(asked: Asked) -> SampledLabels | NoisyLabels | None:
    """How labels came about, by the names of ``OPTIONS``; None where every row has its own."""
    said = [names for names in WAYS if any(asked.get(name) is not None for name in names)]
    if not said:
        return None
    first, second, *_ = names = said[0]
    if len(said) > 1:
        raise InvalidInput(first, f"{option(first)} and {option(said[1][0])} do not go together; give one.")
    if missing := next((name for name in (first, second) if asked.get(name) is None), None):
        raise InvalidInput(missing, f"{option(first)} and {option(second)} go together; give both.")
    given: list[Any] = [asked.get(name) for name in ("label", *names)]
    label, one, other, *more = given
    if first == "false_positive":
        return NoisyLabels(label, one, other, *more)
    if first == "audit_rate":
        return SampledLabels(label, check.as_rate(one, first), above=other)
    return SampledLabels(label, one, None, other, *more)


def _sizes(size: PoolSize) -> Any:
    """A size or a range of sizes, from numbers or from text such as 50-200."""
    if isinstance(size, tuple):
        return tuple(_whole(_number(each, "pool_size", each)) for each in size)
    low, dash, high = size.strip().partition("-") if isinstance(size, str) else ("", "", "")
    if low and dash:
        return tuple(_whole(_number(each, "pool_size", size)) for each in (low, high))
    return _whole(_number(size, "pool_size", size))


def _number(value: Any, name: str, shown: object) -> float:
    try:
        return float(value)
    except ValueError:
        meant = check.share_meant(value)
        raise InvalidInput(name, expected="a number", got=repr(shown), remedy=meant) from None


def _whole(value: object) -> Any:
    if isinstance(value, float) and abs(value) < 1e15 and value.is_integer():
        return int(value)
    return value
