"""A filter's thresholds as expressions over a table: one per group, or one per pool and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
from msgspec import Struct

from surelist._dataclasses import replace
from surelist.errors import InvalidInput
from surelist.filters import Filter, GroupFilter, Threshold
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, POOL, PREFIX, RANK, ROW, ROWS, TIE, Columns, any_of
from surelist.ties import HEX_DIGITS


class Limit(Struct, frozen=True):
    """One group's threshold, tie digits and reason, as literals or as columns joined by pool."""

    group: str | None
    threshold: nw.Expr
    tie: nw.Expr | None
    reason: nw.Expr


class RowLimits(Struct, frozen=True):
    """All groups' limits of one filter."""

    filter: Filter
    limits: tuple[Limit, ...]
    joined: bool = False
    ranked: bool = False

    def conditions(self, columns: Columns, frame: Frame) -> tuple[Frame, nw.Expr, nw.Expr | None]:
        """The frame, who is shortlisted, and, with randomised ties, who was a calibration row."""
        salt = self.filter.salt
        if salt is None:
            return frame, self._at_least_own(columns), None
        assert columns.ident is not None
        tied = any_of(_both(columns.member(e.group), columns.score == e.threshold) for e in self.limits)
        frame = frame.with_columns(nw.when(tied & columns.usable).then(columns.ident).alias(TIE))
        frame = columns.table.engine.with_hashes(frame, TIE, salt.key)
        digits = [f"{number:0{HEX_DIGITS}x}" for number in sorted(salt.spent)]
        spent = nw.col(TIE).is_in(digits)
        return frame, any_of(self._at_least(columns, each) for each in self.limits), spent

    def reason(self, columns: Columns) -> nw.Expr:
        """Which group's threshold let the candidate in."""
        reason: nw.Expr = nw.lit(None, nw.String)
        for each in self.limits:
            member = columns.member(each.group)
            reason = each.reason if member is None else nw.when(member).then(each.reason).otherwise(reason)
        return reason

    def _at_least_own(self, columns: Columns) -> nw.Expr:
        """Compared once, with its group's threshold; first with the lowest, so that files may skip rows."""
        if self.ranked:
            return nw.col(RANK) >= self.limits[0].threshold
        members = [columns.member(each.group) for each in self.limits]
        owns = [
            each.threshold if member is None else nw.when(member).then(each.threshold)
            for each, member in zip(self.limits, members, strict=True)
        ]
        chosen = columns.score >= nw.coalesce(*owns)  # flat, however many groups
        if self.joined or len(self.limits) == 1:
            return chosen
        lowest = min(step.score for each in self.filter.groups for step in each.thresholds)
        return (columns.score >= lowest) & chosen

    def _at_least(self, columns: Columns, limit: Limit) -> nw.Expr:
        member = columns.member(limit.group)
        if limit.tie is None:
            return _both(member, columns.score >= limit.threshold)
        at = (columns.score == limit.threshold) & (nw.col(TIE) >= limit.tie)
        return _both(member, (columns.score > limit.threshold) | at)


def make_limits(
    columns: Columns, filter: Filter, sizes: Mapping[tuple[object, ...], int]
) -> tuple[RowLimits, Frame]:
    """The limits in force, and the frame they apply to. ``sizes``: candidates by pool and group."""
    if filter.by_rank:
        only = _limit(filter.groups[0], filter.groups[0].thresholds[0])
        why = replace(only, reason=nw.lit(filter.rank_reason))
        return RowLimits(filter, (why,), joined=True, ranked=True), with_ranks(columns, keep_order=True)
    if not filter.by_size:
        return RowLimits(
            filter, tuple(_limit(each, each.thresholds[-1]) for each in filter.groups)
        ), columns.frame
    by_pool = _pool_sizes(columns, filter, sizes)
    if columns.pool is not None:
        _require_covered(filter, by_pool)
        return _joined_limits(columns, filter)
    sizes_of = by_pool.get(None, {})
    limits = [_limit(each, each.threshold(sizes_of.get(each.group, 0))) for each in filter.groups]
    return RowLimits(filter, tuple(limits)), columns.frame


def _pool_sizes(
    columns: Columns, filter: Filter, sizes: Mapping[tuple[object, ...], int]
) -> dict[Any, dict[str | None, int]]:
    """Candidates that count for each group's threshold, by pool (None: the whole table is one)."""
    by_pool: dict[Any, dict[str | None, int]] = {}
    for key, size in sizes.items():
        sizes_of = by_pool.setdefault(key[0] if columns.pool is not None else None, {})
        for each in filter.groups:
            if not filter.size_by_group or str(key[-1]) == each.group:
                sizes_of[each.group] = sizes_of.get(each.group, 0) + size
    return by_pool


def _require_covered(filter: Filter, by_pool: Mapping[object, Mapping[str | None, int]]) -> None:
    for pool, sizes_of in sorted(by_pool.items()):
        for each in filter.groups:
            try:
                each.threshold(sizes_of.get(each.group, 0))
            except InvalidInput as error:
                raise InvalidInput(f"pool {pool!r}", error.problem) from None


def _joined_limits(columns: Columns, filter: Filter) -> tuple[RowLimits, Frame]:
    """Limits by the size of each pool, joined to the rows by pool (and group)."""
    assert columns.pool is not None
    keys = {POOL: columns.pool}
    if filter.size_by_group and columns.group is not None:
        keys[GROUP] = columns.group
    sizes = (
        columns.frame.filter(columns.usable)
        .with_columns(**keys).select(*keys)
        .group_by(*keys).agg(nw.len().alias(ROWS))
    )  # fmt: skip
    limits, chosen = [], {}
    for number, each in enumerate(filter.groups):
        score, tie, reason = (f"{PREFIX}{what}_{number}" for what in ("threshold", "tie_break", "reason"))
        steps = each.thresholds
        chosen[score] = _by_size(steps, [step.score for step in steps])
        chosen[tie] = _by_size(steps, [_digits(step) for step in steps])
        chosen[reason] = _by_size(steps, [each.reason(step) for step in steps])
        digits = nw.col(tie) if filter.hashed else None
        limits.append(Limit(each.group, nw.col(score), digits, nw.col(reason)))
    frame = columns.frame
    if columns.table.engine.ordered:
        frame = columns.table.engine.numbered(frame, ROW)
    frame = frame.with_columns(**keys).join(
        sizes.with_columns(**chosen).select(*keys, *chosen), on=list(keys), how="left"
    )
    return RowLimits(filter, tuple(limits), joined=True), frame


def with_ranks(columns: Columns, *, keep_order: bool) -> Frame:
    """Usable rows with minus their rank in their pool; without a pool column the table is one pool."""
    engine, frame = columns.table.engine, columns.frame
    if keep_order and engine.ordered:
        frame = engine.numbered(frame, ROW)
    pool = nw.lit(0) if columns.pool is None else columns.pool
    named = frame.filter(columns.usable).with_columns(**{RANK: columns.score, POOL: pool})
    return engine.with_ranks(named, RANK, POOL)


def _limit(group: GroupFilter, threshold: Threshold) -> Limit:
    tie = nw.lit(_digits(threshold)) if threshold.tie_break is not None else None
    return Limit(group.group, nw.lit(threshold.score), tie, nw.lit(group.reason(threshold)))


def _digits(threshold: Threshold) -> str:
    return f"{threshold.tie_break or 0:0{HEX_DIGITS}x}"


def _by_size(thresholds: Sequence[Threshold], values: Sequence[float | str]) -> nw.Expr:
    """The value of the threshold in force for a pool's size, by bisection: shallow, however many."""
    if len(thresholds) == 1:
        return nw.lit(values[0])
    half = len(thresholds) // 2
    upper, lower = _by_size(thresholds[half:], values[half:]), _by_size(thresholds[:half], values[:half])
    return nw.when(nw.col(ROWS) >= thresholds[half].pool_size).then(upper).otherwise(lower)


def _both(member: nw.Expr | None, condition: nw.Expr) -> nw.Expr:
    return condition if member is None else member & condition
