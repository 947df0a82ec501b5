"""Targets as files say them: a kind and its numbers."""

from __future__ import annotations

from typing import Literal

from surelist._dataclasses import dataclass
from surelist.promises.targets import AnyTarget, AtLeast, Budget, Expected, PerPool, Precision, Recall


@dataclass(frozen=True)
class ExpectedFields:
    """``Expected`` with rows as units."""

    kind: Literal["expected"]
    k: float
    pool_size: float


@dataclass(frozen=True)
class AverageFields:
    """``Expected`` with whole pools as units, or of values."""

    kind: Literal["average"]
    k: float
    pool_size: float | None
    spread: float | None
    of: Literal["count", "value"]


@dataclass(frozen=True)
class PerPoolFields:
    """``PerPool`` with rows as units."""

    kind: Literal["per-pool"]
    k: int
    smallest_pool: int
    largest_pool: int


@dataclass(frozen=True)
class NextPoolFields:
    """``PerPool`` with whole pools as units."""

    kind: Literal["next-pool"]
    k: int | None
    recall: float | None
    by: Literal["score", "rank"]


@dataclass(frozen=True)
class RecallFields:
    """``Recall`` in a file."""

    kind: Literal["recall"]
    share: float


@dataclass(frozen=True)
class PrecisionFields:
    """``Precision`` in a file."""

    kind: Literal["precision"]
    share: float
    start: float | None


@dataclass(frozen=True)
class BudgetFields:
    """``Budget`` in a file."""

    kind: Literal["budget"]
    size: float
    pool_size: float


@dataclass(frozen=True)
class AtLeastFields:
    """``AtLeast`` in a file."""

    kind: Literal["at-least"]
    k: int


TargetFields = (
    ExpectedFields | PerPoolFields | RecallFields
    | AverageFields | NextPoolFields | PrecisionFields | BudgetFields | AtLeastFields
)  # fmt: skip


def target_fields(target: AnyTarget) -> TargetFields:
    """A target as files say it."""
    if isinstance(target, Expected):
        if target.pool_size is None or target.of == "value":
            size, spread = _float(target.pool_size), _float(target.spread)
            return AverageFields("average", float(target.k), size, spread, target.of)
        return ExpectedFields("expected", float(target.k), float(target.pool_size))
    if isinstance(target, PerPool):
        if target.pool_size is None:
            return NextPoolFields("next-pool", target.k, _float(target.recall), target.by)
        return PerPoolFields("per-pool", int(target.k), *target.sizes)
    if isinstance(target, Precision):
        return PrecisionFields("precision", float(target.share), _float(target.start))
    if isinstance(target, Budget):
        return BudgetFields("budget", float(target.size), float(target.pool_size))
    if isinstance(target, AtLeast):
        return AtLeastFields("at-least", target.k)
    return RecallFields("recall", float(target.share))


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def target_of(fields: TargetFields) -> AnyTarget:
    """The target that a file says."""
    if isinstance(fields, ExpectedFields):
        return Expected(fields.k, fields.pool_size)
    if isinstance(fields, AverageFields):
        return Expected(fields.k, fields.pool_size, fields.spread, fields.of)  # type: ignore[arg-type]
    if isinstance(fields, PerPoolFields):
        sizes = (fields.smallest_pool, fields.largest_pool)
        return PerPool(fields.k, sizes if sizes[0] != sizes[1] else sizes[0])
    if isinstance(fields, NextPoolFields):
        return PerPool(fields.k, recall=fields.recall, by=fields.by)  # type: ignore[arg-type]
    if isinstance(fields, PrecisionFields):
        return Precision(fields.share, fields.start)
    if isinstance(fields, BudgetFields):
        return Budget(fields.size, fields.pool_size)
    if isinstance(fields, AtLeastFields):
        return AtLeast(fields.k)
    return Recall(fields.share)
