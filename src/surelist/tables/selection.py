"""Shortlists as filters that run where the pool is. The pool is never collected."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from surelist import _validation as check
from surelist.errors import InvalidInput, TableWarning
from surelist.policy import Policy
from surelist.tables import census
from surelist.tables.columns import GROUP, POOL, ROW, Columns, find_columns
from surelist.tables.engines import Frame
from surelist.tables.limits import Limits, fixed_limits, pool_limits
from surelist.tables.opening import Table, delimiter_of, file_format
from surelist.targets import PerPool

REASON = "shortlist_reason"
OUT, IN, SPENT, UNUSABLE = range(4)


@dataclass(frozen=True)
class PoolCount:
    """One pool of a table of many."""

    pool: Any
    candidates: int
    shortlisted: int


@dataclass(frozen=True)
class Selection:
    """What a selection did. ``table`` is the shortlist, of the same kind as the pool.

    ``groups`` has (candidates, shortlisted) per group, ``pools`` the counts per pool where a pool
    column was given. ``dropped`` rows had no usable score. Where an ``output`` was asked for,
    the shortlist is there and ``table`` is None.
    """

    candidates: int
    shortlisted: int
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    pools: tuple[PoolCount, ...] = ()
    dropped: int = 0
    repeated_ids: int = 0
    output: str | None = None
    table: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain values."""
        counts = {key: value for key, value in vars(self).items() if key not in ("table", "pools")}
        return counts | ({"pools": [vars(each) for each in self.pools]} if self.pools else {})


def select_rows(
    table: Table,
    policy: Policy,
    *,
    names: Mapping[str, str | None],
    output: str | os.PathLike[str] | None = None,
    on_bad_rows: str = "error",
    reason: bool = False,
) -> Selection:
    """Filter a pool, or a table of many pools, by the policy's thresholds."""
    check.as_choice(on_bad_rows, census.ON_BAD_ROWS, "on_bad_rows")
    form = file_format(output) if output is not None else None
    _require_applicable(policy, names)
    if reason and REASON in table.columns:
        raise InvalidInput(f"column {REASON!r}: the pool has one already; rename it or leave reason out.")
    columns = find_columns(table, **names)
    repeated = _repeated_ids(columns, policy)
    limits, frame = _limits(columns, policy)
    frame, chosen, spent = limits.conditions(columns, frame)
    counts = _count(columns, frame, chosen, spent)
    _stop_for_bad_rows(columns, policy, counts, on_bad_rows, frame, spent)
    result = _summary(counts, policy, columns, repeated)
    limits.require_covered(result.pools)
    shortlist = _shortlist(columns, frame, chosen, limits, reason)
    if output is None or form is None:
        return Selection(**{**vars(result), "table": shortlist.to_native()})
    target = os.fspath(output)
    table.say("writing the shortlist")
    with table.reading():
        table.engine.write(shortlist, target, form, delimiter_of(target, table.delimiter))
    return Selection(**{**vars(result), "output": target})


def _require_applicable(policy: Policy, names: Mapping[str, str | None]) -> None:
    if policy.overlapping:
        raise InvalidInput("policy: its groups overlap; tables take one group column. Use policy.select.")
    if names.get("score") is None:
        raise InvalidInput("score: the policy remembers no score column; pass score=.")
    if policy.grouped and names.get("group") is None:
        raise InvalidInput("group: this policy has groups and remembers no group column; pass group=.")
    if policy.salt_hash is not None and names.get("id") is None:
        raise InvalidInput("id: this policy breaks ties by candidate id; pass id=.")
    if policy.salt_hash is not None and policy.salt is None:
        raise InvalidInput(
            "policy: its salt is missing. Keep the .salt file beside the policy file and load again."
        )


def _repeated_ids(columns: Columns, policy: Policy) -> int:
    if columns.ident is None:
        return 0
    if policy.salt_hash is not None:
        why = "Randomised ties are valid only when every candidate has one id."
        census.stop_for_repeated_ids(columns, why)
        return 0
    count, shown = census.repeated_ids(columns)
    if count:
        warnings.warn(f"column {columns.names['id']!r}: ids occur more than once: {shown}.", TableWarning, 4)
    return count


def _limits(columns: Columns, policy: Policy) -> tuple[Limits, Frame]:
    """The thresholds in force: fixed, by the size of the table, or by the size of each pool."""
    if not isinstance(policy.cutoffs[0].target, PerPool):
        return fixed_limits(policy, None), columns.frame
    if columns.pool is not None:
        return pool_limits(columns, policy)
    keys = {GROUP: columns.group} if columns.group is not None else {}
    usable = nw.when(columns.usable).then(nw.lit(1)).otherwise(nw.lit(0))
    sizes: dict[str | None, int] = {}
    for key, count in census.count_states(columns, columns.frame, usable, keys).items():
        if key[-1] == 1:
            name = str(key[0]) if keys else None
            sizes[name] = sizes.get(name, 0) + count
    return fixed_limits(policy, sizes), columns.frame


def _count(columns: Columns, frame: Frame, chosen: nw.Expr, spent: nw.Expr | None) -> census.Counts:
    """Rows per pool, group and whether shortlisted, in one pass."""
    keys = {POOL: columns.pool} if columns.pool is not None else {}
    if columns.group is not None:
        keys[GROUP] = columns.group
    inside = nw.when(chosen).then(nw.lit(IN)).otherwise(nw.lit(OUT))
    if spent is not None:
        inside = nw.when(spent).then(nw.lit(SPENT)).otherwise(inside)
    state = nw.when(columns.usable).then(inside).otherwise(nw.lit(UNUSABLE))
    return census.count_states(columns, frame, state, keys)


def _stop_for_bad_rows(
    columns: Columns,
    policy: Policy,
    counts: census.Counts,
    on_bad_rows: str,
    frame: Frame,
    spent: nw.Expr | None,
) -> None:
    drop = on_bad_rows == "drop"
    groups: dict[Any, int] = {}
    poolless = bad = again = 0
    for key, count in counts.items():
        bad += count if key[-1] == UNUSABLE else 0
        again += count if key[-1] == SPENT else 0
        if drop and key[-1] == UNUSABLE:
            continue
        if columns.group is not None:
            groups[key[-2]] = groups.get(key[-2], 0) + count
        if columns.pool is not None and key[0] is None:
            poolless += count
    problems = [] if drop else [census.unusable_scores(columns, bad)]
    known = [str(cutoff.group) for cutoff in policy.cutoffs]
    problems.extend(census.wrong_groups(columns, groups, known))
    if poolless and columns.pool is not None:
        message = f"column {columns.names['pool']!r}: missing pool"
        problems.append(census.Problem(message, poolless, columns.pool.is_null()))
    census.stop_for(columns, problems)
    if again and spent is not None:
        name = columns.names["id"]
        first = columns.rows(frame.filter(spent).select(nw.col(name)).head(1), "fetching examples")[0][0]
        raise InvalidInput(
            f"column {name!r}: candidate {first!r} is also a calibration row ({again:,} such rows). "
            "Randomised ties need ids that are unique over calibration and pool."
        )


def _summary(counts: census.Counts, policy: Policy, columns: Columns, repeated: int) -> Selection:
    groups = {str(each.group): [0, 0] for each in policy.cutoffs} if policy.grouped else {}
    pools: dict[Any, list[int]] = {}
    candidates = shortlisted = dropped = 0
    for key, count in counts.items():
        if key[-1] == UNUSABLE:
            dropped += count
            continue
        listed = count if key[-1] == IN else 0
        candidates, shortlisted = candidates + count, shortlisted + listed
        tallies = [groups[str(key[-2])]] if groups else []
        if columns.pool is not None:
            tallies.append(pools.setdefault(key[0], [0, 0]))
        for tally in tallies:
            tally[0] += count
            tally[1] += listed
    return Selection(
        candidates,
        shortlisted,
        {name: (size, listed) for name, (size, listed) in groups.items()},
        tuple(PoolCount(name, *tally) for name, tally in sorted(pools.items())),
        dropped,
        repeated,
    )


def _shortlist(columns: Columns, frame: Frame, chosen: nw.Expr, limits: Limits, reason: bool) -> Frame:
    kept = frame.filter(chosen & columns.usable)
    if limits.joined and columns.table.engine.ordered:
        kept = kept.sort(ROW)
    if reason:
        kept = kept.with_columns(limits.reason(columns).alias(REASON))
    return kept.select(*columns.table.columns, *([REASON] if reason else []))
