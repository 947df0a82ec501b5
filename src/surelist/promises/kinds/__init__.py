"""One module per promise. ``KINDS`` in the order in which every front end offers them.

Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from surelist._files import shaped
from surelist.errors import PolicyFileError
from surelist.promises.options import Option, fields_of as fields_of, required as required
from surelist.promises.promise import Promise, Proof

# the name of a kind in files, flags and addresses: where it lives
KINDS = {
    "expected": ("expected", "Expected"),
    "per-pool": ("per_pool", "PerPool"),
    "recall": ("recall", "Recall"),
    "precision": ("precision", "Precision"),
    "triage": ("triage", "Triage"),
    "budget": ("budget", "Budget"),
    "next-pool": ("next_pool", "NextPool"),
    "pool-average": ("betting", "PoolAverage"),
    "value": ("betting", "Value"),
    "false-share": ("false_share", "FalseShare"),
    "this-list": ("this_list", "ThisList"),
    "at-least": ("at_least", "AtLeast"),
}
Value = TypeVar("Value", Promise, Proof)
FIRST = next(iter(KINDS))
PROOFS = {
    "counts": ("counts", "Counts"),
    "looks": ("counts", "Looks"),
    "rank-chain": ("rate_proofs", "RankChain"),
    "audited": ("rate_proofs", "Audited"),
    "fixed-sequence": ("precision", "FixedSequence"),
    "two-lists": ("triage", "TwoLists"),
    "budget": ("budget", "ListedBudget"),
    "next-pool": ("next_pool", "PoolRank"),
    "row-bets": ("betting", "RowBets"),
    "pool-bets": ("betting", "PoolBets"),
    "false-share": ("false_share", "ConformalList"),
    "this-list": ("this_list", "ListHeld"),
    "block-sample": ("few_labels", "BlockSample"),
    "control-sample": ("few_labels", "ControlSample"),
    "prefix-sample": ("few_labels", "PrefixSample"),
    "two-draws": ("few_labels", "TwoDraws"),
    "accepted-rejected": ("few_labels", "AcceptedRejected"),
    "noisy-rate": ("rate_proofs", "NoisyRate"),
    "noisy-share": ("rate_proofs", "NoisyShare"),
}


@cache
def promise_class(kind: str) -> type[Promise] | None:
    """The class of a kind of promise; None for an unknown one."""
    found: type[Promise] | None = _found(KINDS, kind)
    return found


def _found(table: dict[str, tuple[str, str]], kind: object) -> Any:
    if not isinstance(kind, str) or kind not in table:
        return None
    module, name = table[kind]
    return getattr(import_module(f"{__name__}.{module}"), name)


def read(raw: dict[str, object], base: type[Value]) -> Value:
    """A promise, or a proof, as files say it: its kind and its numbers."""
    kind = raw.get("kind")
    found: type[Value] | None = _found(KINDS if base is Promise else PROOFS, kind)
    if found is None:
        raise PolicyFileError("", f"unknown kind {kind!r}.")
    try:
        return shaped(raw, found)
    except msgspec.ValidationError as error:
        raise PolicyFileError(str(kind), f"{error}.") from error


def classes() -> list[type[Promise]]:
    """Every kind, in the order in which front ends offer them."""
    return [_found(KINDS, kind) for kind in KINDS]


def fields() -> dict[str, Option]:
    """The fields of every kind by name; the first kind that has one describes it."""
    found: dict[str, Option] = {}
    for each in classes():
        found |= {name: option for name, option in fields_of(each).items() if name not in found}
    return found


def optional(promise: type[Promise]) -> tuple[str, ...]:
    """The other fields."""
    return promise.__struct_fields__[len(required(promise)) :]


def whole_pools_like(promise: type[Promise]) -> str | None:
    """The kind like it whose units are whole pools."""
    like = promise.in_whole_pools.partition("(")[0]
    return next((kind for kind, (_, name) in KINDS.items() if name == like), None)


def named(text: str) -> str | None:
    """The kind that a name stands for, its own or the short one."""
    pairs = zip(KINDS, classes(), strict=True)
    return next((kind for kind, each in pairs if text and text in (kind, each.alias)), None)


def which(has: Callable[[type[Promise]], bool]) -> str:
    """The first kind of which something is true."""
    return next(kind for kind, each in zip(KINDS, classes(), strict=True) if has(each))


def offered(which: Callable[[type[Promise]], bool] = lambda kind: True) -> str:
    """What can be asked for, as Python writes it: every kind, or those of which something is true."""
    some = filter(which, classes())
    shown = ((each.__name__, required(each) or each.__struct_fields__[:1]) for each in some)
    return ", ".join(f"{name}({', '.join(fields)})" for name, fields in shown)
