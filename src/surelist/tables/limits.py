"""The thresholds in force for each row: one per group, or one per pool and group."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw

from surelist.errors import InvalidInput
from surelist.policy import Cutoff, Policy, Step
from surelist.tables.columns import GROUP, POOL, PREFIX, ROW, ROWS, TIE, Columns
from surelist.tables.engines import Frame
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
    sizes: Mapping[tuple[Any, ...], int] | None = None  # candidates per pool (and group)

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

    def require_covered(self, pools: Sequence[Any]) -> None:
        """Every pool is large enough for the promise, in every group."""
        if self.sizes is None:
            return
        whole = not self.policy.grouped or self.policy.group_rows == "all"
        for pool in pools:
            for each in self.limits:
                key = (pool.pool,) if whole else (pool.pool, each.cutoff.group)
                try:
                    each.cutoff.step(self.sizes.get(key, 0))
                except InvalidInput as error:
                    raise InvalidInput(f"pool {pool.pool!r}: {str(error).removeprefix('pool: ')}") from None

    def _at_least(self, columns: Columns, limit: Limit) -> nw.Expr:
        member = columns.member(limit.cutoff.group)
        if limit.tie is None:
            return _both(member, columns.score >= limit.threshold)
        at = (columns.score == limit.threshold) & (nw.col(TIE) >= limit.tie)
        return _both(member, (columns.score > limit.threshold) | at)


def fixed_limits(policy: Policy, sizes: Mapping[str | None, int] | None) -> Limits:
    """Limits that are the same for every row; ``sizes`` per group where they matter."""
    found = []
    for cutoff in policy.cutoffs:
        if sizes is None:
            step = cutoff.steps[-1]
        elif cutoff.group is None or policy.group_rows == "all":
            step = cutoff.step(sum(sizes.values()))
        else:
            step = cutoff.step(sizes.get(cutoff.group, 0))
        found.append(_limit(cutoff, step))
    return Limits(policy, tuple(found))


def pool_limits(columns: Columns, policy: Policy) -> tuple[Limits, Frame]:
    """Limits by the size of each pool, joined to the rows by pool (and group)."""
    assert columns.pool is not None
    keys = {POOL: columns.pool}
    own = policy.grouped and policy.group_rows == "own"
    if own and columns.group is not None:
        keys[GROUP] = columns.group
    sizes = (
        columns.frame.filter(columns.usable)
        .with_columns(**keys).select(*keys)
        .group_by(*keys).agg(nw.len().alias(ROWS))
    )  # fmt: skip
    counted = columns.rows(sizes, "counting candidates per pool")
    limits, chosen = [], {}
    for place, cutoff in enumerate(policy.cutoffs):
        each = _limit(cutoff, cutoff.steps[0])
        names = [f"{PREFIX}{what}_{place}" for what in ("threshold", "tie_break", "reason")]
        chosen[names[0]] = _by_size(cutoff.steps, lambda step: nw.lit(step.threshold))
        chosen[names[2]] = _by_size(cutoff.steps, lambda step, of=cutoff: nw.lit(_why(of, step)))
        if each.tie is not None:
            chosen[names[1]] = _by_size(cutoff.steps, lambda step: nw.lit(_digits(step)))
        tie = nw.col(names[1]) if each.tie is not None else None
        limits.append(Limit(cutoff, nw.col(names[0]), tie, nw.col(names[2])))
    frame = columns.frame
    if columns.table.engine.ordered:
        frame = columns.table.engine.numbered(frame, ROW)
    frame = frame.with_columns(**keys).join(
        sizes.with_columns(**chosen).select(*keys, *chosen), on=list(keys), how="left"
    )
    by_pool = {(row[0], *(str(each) for each in row[1:-1])): int(row[-1]) for row in counted}
    return Limits(policy, tuple(limits), joined=True, sizes=by_pool), frame


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
