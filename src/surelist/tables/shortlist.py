"""Shortlists as filters that run where the pool is. The pool is never collected."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from surelist import _check as check
from surelist._files import refuse_inputs
from surelist._names import option
from surelist.drawing import Display, Displayed, axes
from surelist.errors import InvalidInput
from surelist.filters import ACCEPT, LOOK, REJECT, TRIAGE, Filter
from surelist.score_summary import PoolCheck
from surelist.tables import bad_rows
from surelist.tables.engines import Beside, Frame, is_remote
from surelist.tables.output import output_format, refuse_columns, write_like
from surelist.tables.pool_scores import Marks, PoolScores, Rows, Sizes, count_pool, pool_keys
from surelist.tables.reading import is_text, style_of
from surelist.tables.roles import POOL, ROW, Columns, find_columns
from surelist.tables.sources import Table
from surelist.tables.thresholds import RowLimits, make_limits, require_named

REASON, RANK = "shortlist_reason", "shortlist_rank"
NOT_PLAIN = ("table", "pools", "scores", "checks")


class PoolCount(Struct, frozen=True):
    """One pool of a table of many."""

    pool: Any
    candidates: int
    shortlisted: int
    drift: tuple[PoolCheck, ...] = ()

    def describe(self) -> str:
        """Who is shortlisted, and how far the pool's scores lie from those of the calibration rows."""
        drift = "".join(f" {each.message}" for each in self.drift)
        return f"{self.pool}: {self.shortlisted:,} of {self.candidates:,}.{drift}"


class Selection(Displayed, Struct, frozen=True):
    """What a selection did. ``table`` is the shortlist, of the same kind as the pool.

    ``groups`` has (candidates, shortlisted) per group, ``pools`` the counts per pool where a pool
    column was given. ``dropped`` rows had no usable score. ``checks`` compare the pool with the
    calibration rows; those that are ``warnings`` deserve a look. Of a triage the shortlist has everyone, with
    a column ``triage``, and those accepted count as shortlisted. Where an ``output`` was asked
    for, the shortlist is there and ``table`` is None.
    """

    candidates: int
    shortlisted: int
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    pools: tuple[PoolCount, ...] = ()
    dropped: int = 0
    repeated_ids: int = 0
    output: str | None = None
    checks: tuple[PoolCheck, ...] = ()
    table: Any = None
    scores: PoolScores | None = None
    triage: dict[str, int] | None = None  # of three lists, how many are on each

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the checks warn of, one sentence each."""
        messages = [each.message for each in self.checks if each.warns]
        messages += [
            f"pool {pool.pool}: {each.message}" for pool in self.pools for each in pool.drift if each.warns
        ]
        return tuple(messages)

    def describe(self, checks: Sequence[str] | None = None) -> str:
        """How many are on the shortlist, by group and pool; what ``checks`` of the pool say (None: all)."""
        lines = [f"{self.shortlisted:,} of {self.candidates:,} candidates are on the shortlist."]
        if self.triage is not None:
            accepted, looked, rejected = (self.triage[each] for each in (ACCEPT, LOOK, REJECT))
            lines = [
                f"Of {self.candidates:,} candidates {accepted:,} are accepted, {rejected:,} rejected, and "
                f"{looked:,} are for people to look at."
            ]
        lines += [f"  {name}: {listed:,} of {size:,}" for name, (size, listed) in self.groups.items()]
        if self.dropped:
            lines.append(f"Rows without a finite score, dropped: {self.dropped:,}.")
        if self.pools:
            sizes = [each.shortlisted for each in self.pools]
            lines.append(
                f"{len(sizes):,} pools; {min(sizes):,} to {max(sizes):,} candidates shortlisted in each."
            )
            lines += [f"  {each.describe()}" for each in self.pools if each.drift]
        said = [each.message for each in self.checks if checks is None or each.kind in checks]
        return "\n".join(lines + said)

    def _display(self) -> Display:
        line, *more = self.describe().splitlines()
        facts = [("written to", self.output)] if self.output is not None else []
        more = [each for each in more if each not in self.warnings]
        short = line.replace(" are on the shortlist.", " on the shortlist")
        folded = [("Groups, pools and checks of the pool", more)]
        return Display(short, line, facts, self.warnings, folded)

    def plot(self, ax: axes.Axes | None = None, *, path: str | os.PathLike[str] | None = None) -> axes.Axes:
        """The share shortlisted, by pool, by group or of all (``plots`` extra; ``path``: also a file)."""
        parts = {str(each.pool): (each.candidates, each.shortlisted) for each in self.pools} or self.groups
        parts = parts or {"all candidates": (self.candidates, self.shortlisted)}
        shares = {name: listed / max(size, 1) for name, (size, listed) in parts.items()}
        return axes.picture(ax, path, axes.draw_shares, shares, self._display().line, "share shortlisted")

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain values."""
        counts = {key: value for key, value in asdict(self).items() if key not in NOT_PLAIN}
        counts["checks"] = [asdict(each) for each in self.checks]
        pools = [{**asdict(pool), "drift": [asdict(each) for each in pool.drift]} for pool in self.pools]
        return counts | ({"pools": pools} if pools else {})


def select_rows(
    table: Table,
    filter: Filter,
    *,
    names: Mapping[str, str | None],
    output: str | os.PathLike[str] | None = None,
    on_bad_rows: str = "error",
    reason: bool = False,
    rank: bool = False,
    marks: Marks | None = None,
) -> Selection:
    """Apply a filter to a pool, or to a table of many pools; count it against ``marks`` by group."""
    check.as_choice(on_bad_rows, bad_rows.ON_BAD_ROWS, "on_bad_rows")
    form, target = None, ""
    if output is not None:
        form, target = output_format(output), os.fspath(output)
        refuse_inputs(target, table.paths)
    _require_applicable(filter, names)
    three = filter.three_ways
    added = _added(table, rank or form == "excel", (reason or form == "excel") and not three, three)
    if form is not None and table.holdable:
        with table.reading():
            table = table.with_frame(table.engine.held(table.frame, table.size))
    columns = find_columns(table, **names)
    plain = not (filter.by_size or filter.by_rank or filter.hashed)
    thresholds = {each.group: each.thresholds[-1].score for each in filter.groups} if plain else {}
    counting = count_pool(columns, marks or {}, thresholds)
    done: list[tuple[PoolScores, int]] = []

    def accept(rows: Sequence[Rows]) -> None:
        counted = counting.read(rows)
        done.append((counted, _stop_for_bad_rows(columns, filter, counted.sizes, on_bad_rows)))

    beside = Beside(counting.frames, accept)
    local = form not in (None, "excel") and not is_remote(target)
    later = plain and local and table.engine.counts_beside
    if not later:
        accept([columns.rows(each, "counting rows") for each in counting.frames])
    sizes = {key: usable for key, (usable, _) in done[0][0].sizes.items() if usable} if done else {}
    limits, frame = make_limits(columns, filter, sizes)
    frame, chosen, spent = limits.conditions(columns, frame)
    _stop_for_calibration_rows(columns, frame, spent)
    if three:  # everyone, each with a list
        chosen = columns.usable
    if on_bad_rows == "drop":  # else there are none
        chosen = chosen & columns.usable
    if RANK in added and table.engine.ordered and not limits.joined:  # ranking may shuffle rows
        frame = table.engine.numbered(frame, ROW)
    shortlist = _shortlist(columns, frame.filter(chosen), limits, added, filter)
    if form is not None:
        _write(columns, shortlist, target, beside if later else None)
    counted, repeated = done[0]
    listed = counted.listed
    if listed is None:
        who = shortlist.filter(nw.col(TRIAGE) == ACCEPT) if three else shortlist
        listed = bad_rows.count_keys(columns, who, pool_keys(columns, by_pool=True), "counting the shortlist")
    result = replace(_summary(columns, filter, counted.sizes, listed), repeated_ids=repeated, scores=counted)
    result = _three_lists(columns, filter, result)
    if form is None:
        return replace(result, table=table.engine.native(shortlist))
    return replace(result, output=target)


def _write(columns: Columns, shortlist: Frame, output: str, beside: Beside | None) -> None:
    table, score = columns.table, columns.names["score"]
    table.say("writing the shortlist")
    styles = {score: style_of(table, score)} if is_text(table, score) else {}
    write_like(table, shortlist, output, styles, beside)


def _require_applicable(filter: Filter, names: Mapping[str, str | None]) -> None:
    if filter.overlapping:
        raise InvalidInput("policy", "its groups overlap; tables take one group column. Use policy.select.")
    require_named(filter, names)
    if filter.hashed and names.get("id") is None:
        raise InvalidInput("id", f"this policy breaks ties by candidate id; pass {option('id')}.")
    filter.require_salt()


def _stop_for_bad_rows(columns: Columns, filter: Filter, sizes: Sizes, on_bad_rows: str) -> int:
    """Stop for rows that do not fit; returns how many ids occur more than once."""
    drop = on_bad_rows == "drop"
    groups: dict[Any, int] = {}
    poolless = 0
    for key, (good, bad) in sizes.items():
        count = good if drop else good + bad
        if columns.group is not None:
            groups[key[-1]] = groups.get(key[-1], 0) + count
        if columns.pool is not None and key[0] is None:
            poolless += count
    unusable, everyone = sum(bad for _, bad in sizes.values()), sum(map(sum, sizes.values()))
    problems = bad_rows.without_scores(columns, unusable, everyone, drop=drop)
    known = [str(each.group) for each in filter.groups]
    problems += bad_rows.wrong_groups(columns, groups, known)
    problems += bad_rows.missing_pools(columns, poolless)
    problems += bad_rows.wrong_ids(columns, hashed=filter.hashed)
    bad_rows.stop_for(columns, problems)
    return sum(each.count for each in problems if each.kind == "repeated id")


def _stop_for_calibration_rows(columns: Columns, frame: Frame, spent: nw.Expr | None) -> None:
    if spent is None:
        return
    name = columns.names["id"]
    again = columns.rows(frame.filter(spent).select(name).head(1), "looking for calibration rows")
    if again:
        raise InvalidInput(
            f"column {name!r}",
            f"candidate {again[0][0]!r} is also a calibration row. Randomised ties need ids that are "
            "unique over calibration and pool.",
        )


def _added(table: Table, rank: bool, reason: bool, three: bool = False) -> tuple[str, ...]:
    """The columns that a list gets beside the pool's."""
    added = ((RANK,) if rank else ()) + ((REASON,) if reason else ()) + ((TRIAGE,) if three else ())
    for name in added:
        left_out = {RANK: " or leave rank out", REASON: " or leave reason out"}.get(name, "")
        refuse_columns(table, name, left_out=left_out)
    return added


def _summary(columns: Columns, filter: Filter, sizes: Sizes, listed: bad_rows.Counts) -> Selection:
    groups = {str(each.group): [0, 0] for each in filter.groups} if filter.grouped else {}
    pools: dict[Any, list[int]] = {}
    for key, (good, _) in sizes.items():
        if not good:
            continue
        tallies = [groups[str(key[-1])]] if groups else []
        if columns.pool is not None:
            tallies.append(pools.setdefault(key[0], [0, 0]))
        for tally in tallies:
            tally[0] += good
            tally[1] += listed.get(key, 0)
    return Selection(
        sum(good for good, _ in sizes.values()),
        sum(listed.values()),
        {name: (size, count) for name, (size, count) in groups.items()},
        tuple(PoolCount(name, tally[0], tally[1]) for name, tally in sorted(pools.items())),
        sum(bad for _, bad in sizes.values()),
    )


def _three_lists(columns: Columns, filter: Filter, result: Selection) -> Selection:
    """A copy with how many are on each of three lists."""
    if filter.looked_from is None:
        return result
    below = columns.frame.filter(columns.usable).filter(columns.score < filter.looked_from)
    rejected = columns.table.count(below, "counting those rejected")
    between = result.candidates - result.shortlisted - rejected
    return replace(result, triage={ACCEPT: result.shortlisted, LOOK: between, REJECT: rejected})


def _shortlist(
    columns: Columns, kept: Frame, limits: RowLimits, added: tuple[str, ...], filter: Filter
) -> Frame:
    ordered = columns.table.engine.ordered
    if RANK in added:
        keys = {RANK: columns.score, POOL: columns.pool if columns.pool is not None else nw.lit(0)}
        kept = kept.with_columns(**keys)
        kept = columns.table.engine.with_ranks(kept, RANK, POOL)
        kept = kept.with_columns((nw.col(RANK) * -1).cast(nw.Int64).alias(RANK))
    if (limits.joined or RANK in added) and ordered:
        kept = kept.sort(ROW)
    if REASON in added:
        kept = kept.with_columns(limits.reason(columns).alias(REASON))
    if TRIAGE in added:
        low, high = filter.looked_from, filter.groups[0].thresholds[0].score
        between = nw.when(columns.score < low).then(nw.lit(REJECT)).otherwise(nw.lit(LOOK))
        three = nw.when(columns.score >= high).then(nw.lit(ACCEPT)).otherwise(between)
        kept = kept.with_columns(three.alias(TRIAGE))
    return kept.select(*columns.table.columns, *added)
