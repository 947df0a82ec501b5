"""The thresholds in force for each row: one per group, or one per pool and group."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw

from surelist.errors import InvalidInput
from surelist.promises.policy import Cutoff, Policy, Step
from surelist.promises.targets import PerPool
from surelist.tables.engines.base import Frame
from surelist.tables.roles import GROUP, POOL, PREFIX, ROW, ROWS, TIE, Columns
from surelist.ties import HEX_DIGITS


@dataclass(frozen=True)
class Limit:
    """One group's threshold, tie digits and reason, as literals or as columns joined by pool."""

    cutoff: Cutoff
    threshold: nw.Expr
    tie: nw.Expr | None
    reason: nw.Expr


@dataclass(frozen=True)
class Limits:
    """All groups' limits of one policy."""

    policy: Policy
    limits: tuple[Limit, ...]
    joined: bool = False

    def conditions(self, columns: Columns, frame: Frame) -> tuple[Frame, nw.Expr, nw.Expr | None]:
        """The frame, who is shortlisted, and, with randomised ties, who was a calibration row."""
        if self.policy.salt is None or not self.limits:
            return frame, _any(self._at_least(columns, each) for each in self.limits), None
        assert columns.ident is not None
        tied = _any(_both(columns.member(e.cutoff.group), columns.score == e.threshold) for e in self.limits)
        frame = frame.with_columns(nw.when(tied & columns.usable).then(columns.ident).alias(TIE))
        frame = columns.table.engine.with_hashes(frame, TIE, self.policy.salt.key)
        digits = [f"{number:0{HEX_DIGITS}x}" for number in sorted(self.policy.salt.spent)]
        spent = nw.col(TIE).is_in(digits)
        return frame, _any(self._at_least(columns, each) for each in self.limits), spent

    def reason(self, columns: Columns) -> nw.Expr:
        """Which group's threshold let the candidate in."""
        told: nw.Expr = nw.lit(None, nw.String)
        for each in self.limits:
            member = columns.member(each.cutoff.group)
            told = each.reason if member is None else nw.when(member).then(each.reason).otherwise(told)
        return told

    def _at_least(self, columns: Columns, limit: Limit) -> nw.Expr:
        member = columns.member(limit.cutoff.group)
        if limit.tie is None:
            return _both(member, columns.score >= limit.threshold)
        at = (columns.score == limit.threshold) & (nw.col(TIE) >= limit.tie)
        return _both(member, (columns.score > limit.threshold) | at)


def make_limits(
    columns: Columns, policy: Policy, sizes: Mapping[tuple[Any, ...], int]
) -> tuple[Limits, Frame]:
    """The limits in force, and the frame they apply to. ``sizes``: candidates by pool and group."""
    if not isinstance(policy.cutoffs[0].target, PerPool):
        fixed = [_limit(cutoff, cutoff.steps[-1]) for cutoff in policy.cutoffs]
        return Limits(policy, tuple(fixed)), columns.frame
    by_pool = _pool_sizes(columns, policy, sizes)
    if columns.pool is not None:
        _require_covered(policy, by_pool)
        return _joined_limits(columns, policy)
    own = by_pool.get(None, {})
    steps = [cutoff.step(own.get(cutoff.group, 0)) for cutoff in policy.cutoffs]
    found = [_limit(cutoff, step) for cutoff, step in zip(policy.cutoffs, steps, strict=True)]
    return Limits(policy, tuple(found)), columns.frame


def _pool_sizes(
    columns: Columns, policy: Policy, sizes: Mapping[tuple[Any, ...], int]
) -> dict[Any, dict[str | None, int]]:
    """Candidates that count for each group's promise, by pool (None: the whole table is one)."""
    found: dict[Any, dict[str | None, int]] = {}
    whole = policy.group_rows == "all" or not policy.grouped
    for key, size in sizes.items():
        own = found.setdefault(key[0] if columns.pool is not None else None, {})
        for cutoff in policy.cutoffs:
            if whole or str(key[-1]) == cutoff.group:
                own[cutoff.group] = own.get(cutoff.group, 0) + size
    return found


def _require_covered(policy: Policy, by_pool: Mapping[Any, Mapping[str | None, int]]) -> None:
    for pool, own in sorted(by_pool.items()):
        for cutoff in policy.cutoffs:
            try:
                cutoff.step(own.get(cutoff.group, 0))
            except InvalidInput as error:
                raise InvalidInput(f"pool {pool!r}: {str(error).removeprefix('pool: ')}") from None


def _joined_limits(columns: Columns, policy: Policy) -> tuple[Limits, Frame]:
    """Limits by the size of each pool, joined to the rows by pool (and group)."""
    assert columns.pool is not None
    keys = {POOL: columns.pool}
    if policy.grouped and policy.group_rows == "own" and columns.group is not None:
        keys[GROUP] = columns.group
    sizes = (
        columns.frame.filter(columns.usable)
        .with_columns(**keys).select(*keys)
        .group_by(*keys).agg(nw.len().alias(ROWS))
    )  # fmt: skip
    limits, chosen = [], {}
    for place, cutoff in enumerate(policy.cutoffs):
        names = [f"{PREFIX}{what}_{place}" for what in ("threshold", "tie_break", "reason")]
        chosen[names[0]] = _by_size(cutoff.steps, lambda step: nw.lit(step.threshold))
        chosen[names[1]] = _by_size(cutoff.steps, lambda step: nw.lit(_digits(step)))
        chosen[names[2]] = _by_size(cutoff.steps, lambda step, of=cutoff: nw.lit(_why(of, step)))
        tie = nw.col(names[1]) if policy.salt_hash is not None else None
        limits.append(Limit(cutoff, nw.col(names[0]), tie, nw.col(names[2])))
    frame = columns.frame
    if columns.table.engine.ordered:
        frame = columns.table.engine.numbered(frame, ROW)
    frame = frame.with_columns(**keys).join(
        sizes.with_columns(**chosen).select(*keys, *chosen), on=list(keys), how="left"
    )
    return Limits(policy, tuple(limits), joined=True), frame


def _limit(cutoff: Cutoff, step: Step) -> Limit:
    tie = nw.lit(_digits(step)) if step.tie_break is not None else None
    return Limit(cutoff, nw.lit(step.threshold), tie, nw.lit(_why(cutoff, step)))


def _digits(step: Step) -> str:
    return f"{step.tie_break or 0:0{HEX_DIGITS}x}"


def _why(cutoff: Cutoff, step: Step) -> str:
    whose = f"group {cutoff.group}: " if cutoff.group is not None else ""
    return f"{whose}score >= {step.threshold!r}"


def _by_size(steps: Sequence[Step], value: Any) -> nw.Expr:
    """The value of the step in force for a pool's size, by bisection: shallow, however many steps."""
    if len(steps) == 1:
        found: nw.Expr = value(steps[0])
        return found
    half = len(steps) // 2
    upper, lower = _by_size(steps[half:], value), _by_size(steps[:half], value)
    return nw.when(nw.col(ROWS) >= steps[half].pool_size).then(upper).otherwise(lower)


def _both(member: nw.Expr | None, condition: nw.Expr) -> nw.Expr:
    return condition if member is None else member & condition


def _any(conditions: Any) -> nw.Expr:
    found: nw.Expr = reduce(operator.or_, conditions)
    return found
