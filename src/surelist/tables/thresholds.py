"""A filter's thresholds as expressions over a table: one per group, or one per pool and group; and as SQL.

``filter_sql`` is for whoever selects inside a database; sqlglot writes the dialects. Its expression is true
for candidates on the shortlist and false for all others, rows without a finite score included: what
``select`` with ``on_bad_rows="drop"`` lists, bit for bit. SQL cannot refuse a table: what ``select`` refuses
(an unknown group, a pool that is too small) is false or cannot be said, and a filter that needs more than the
row at hand is refused here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import narwhals as nw
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check
from surelist._check import Dialect
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.filters import ACCEPT, HEX_DIGITS, LOOK, REJECT, Filter, GroupFilter, Threshold
from surelist.tables.engines import Frame
from surelist.tables.roles import EXACT_INTEGER, GROUP, POOL, PREFIX, RANK, ROW, ROWS, TIE, Columns, any_of


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


LARGEST = sys.float_info.max


def filter_sql(
    filter: Filter,
    names: Mapping[str, str | None],
    dialect: Dialect,
    *,
    pool_size: int | None = None,
    whole_numbers: bool = False,
) -> str:
    """The expression in ``dialect``; ``names`` are the columns ``score`` and, with groups, ``group``.

    ``pool_size`` says how many candidates with a score every pool has, for thresholds that depend on it. Of
    a triage it is a text, "accept", "look" or "reject" (NULL without a finite score);
    ``whole_numbers`` says that the score is an integer column, where those beyond 2^53 have no exact float.
    """
    check.as_choice(dialect, get_args(Dialect), "dialect")
    _require_expressible(filter, names, pool_size)
    exp = _sqlglot()
    score = exp.column(names["score"], quoted=True)
    number = exp.cast(score, "double")
    conditions = [
        exp.and_(_member(exp, names.get("group"), each), number >= _float(exp, _threshold(each, pool_size)))
        for each in filter.groups
    ]
    listed = exp.and_(exp.or_(*conditions), number <= _float(exp, LARGEST))
    if whole_numbers:
        listed = exp.and_(listed, score.between(-EXACT_INTEGER, EXACT_INTEGER))
    if filter.three_ways and filter.looked_from is not None:
        low = _float(exp, filter.looked_from)
        finite = number.between(_float(exp, -LARGEST), _float(exp, LARGEST))
        three = exp.case().when(listed, exp.Literal.string(ACCEPT))
        three = three.when(finite.and_(number < low), exp.Literal.string(REJECT))
        three = three.when(finite, exp.Literal.string(LOOK))
        return str(three.sql(dialect=dialect, identify=True))
    return str(exp.func("coalesce", listed, exp.false()).sql(dialect=dialect, identify=True))


def require_named(filter: Filter, names: Mapping[str, str | None]) -> None:
    """Raise where nothing says in which column scores, or groups, are."""
    if names.get("score") is None:
        raise InvalidInput("score", f"the policy remembers no score column; pass {option('score')}.")
    if filter.grouped and names.get("group") is None:
        raise InvalidInput(
            "group", f"this policy has groups and remembers no group column; pass {option('group')}."
        )


def _require_expressible(filter: Filter, names: Mapping[str, str | None], pool_size: int | None) -> None:
    if filter.hashed:
        raise InvalidInput(
            "policy",
            "its ties are broken by a secret salt, which SQL would print for everyone to see. Use select, "
            f"or calibrate with {option('ties', 'include')}.",
        )
    if filter.by_rank:
        raise InvalidInput(
            "policy", "it lists each pool's best by rank, not by a threshold of the score; use select."
        )
    if filter.overlapping:
        raise InvalidInput(
            "policy", "its groups overlap, so one group column cannot say them; use policy.select."
        )
    if filter.by_size and pool_size is None:
        raise InvalidInput(
            "pool_size",
            "this policy's threshold depends on how many candidates a pool has, and SQL would not refuse "
            "a pool that is too small. Give the pool_size that every pool has, or use select.",
        )
    if pool_size is not None and not filter.by_size:
        raise InvalidInput("pool_size", "this policy's threshold is the same for every pool; leave it out.")
    if filter.grouped and filter.size_by_group and filter.by_size:
        raise InvalidInput(
            "policy", "its thresholds depend on how many candidates of each group a pool has; use select."
        )
    require_named(filter, names)
    if filter.grouped and any(each.group in ("True", "False") for each in filter.groups):
        raise InvalidInput(
            "group",
            "its groups are called True and False, and every database writes booleans in its own way; "
            "calibrate on a column of text.",
        )


def _threshold(group: GroupFilter, pool_size: int | None) -> float:
    return group.thresholds[-1].score if pool_size is None else group.threshold(pool_size).score


def _float(exp: Any, value: float) -> Any:
    """A float that every engine reads back to the last bit: its shortest text, cast there."""
    return exp.cast(exp.Literal.string(repr(-LARGEST if value == -math.inf else value)), "double")


def _member(exp: Any, column: str | None, group: GroupFilter) -> Any:
    if group.group is None or column is None:
        return None
    return exp.cast(exp.column(column, quoted=True), "text").eq(exp.Literal.string(group.group))


def _sqlglot() -> Any:
    try:
        from sqlglot import exp
    except ImportError as error:
        raise MissingDependency("SQL needs sqlglot: pip install 'surelist[sql]'.") from error
    return exp
