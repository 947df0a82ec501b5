"""A pool counted against marks of the calibration scores, asked of an engine: one pass, a few counts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from surelist.score_summary import BINS, PoolCounts, count_scores
from surelist.tables import bad_rows
from surelist.tables.engines import Frame
from surelist.tables.roles import GROUP, POOL, PREFIX, ROWS, SCORE, Columns

PLACE, BIN = PREFIX + "place", PREFIX + "bin"
BELOW, NOWHERE = -1, -2  # places of scores below every mark, and of groups that have none
MOST_LINES = 1 << 16  # of counts by group and bin: scores far apart have more
SMALL, MOST_SCORES = 1 << 24, 1 << 21  # bytes of files whose scores are fetched, and how many at most
MOST_POOLS = 50  # of more, scores are not counted pool by pool
MOST_GROUPS = 20  # of more the scores are not counted: each adds its marks to the query

Marks = Mapping[str | None, Sequence[float]]
NO_THRESHOLDS: Mapping[str | None, float] = {}
Sizes = dict[tuple[Any, ...], tuple[int, int]]  # rows with and without a score, by pool and group
Rows = list[tuple[Any, ...]]


class PoolScores(Struct, frozen=True):
    """Sizes, and how scores lie about the marks: by group, and by pool and group where that was asked for.

    ``listed`` has how many reach their group's threshold, where that came along.
    """

    sizes: Sizes
    groups: dict[str | None, PoolCounts] = field(default_factory=dict)
    pools: dict[Any, dict[str | None, PoolCounts]] = field(default_factory=dict)
    listed: dict[tuple[Any, ...], int] | None = None


class Counting(Struct, frozen=True):
    """Queries of few rows each, which may run beside others, and what their rows say."""

    frames: tuple[Frame, ...]
    read: Callable[[Sequence[Rows]], PoolScores]

    def run(self, columns: Columns) -> PoolScores:
        return self.read([columns.rows(each, "counting rows") for each in self.frames])


def count_pool(columns: Columns, marks: Marks, thresholds: Mapping[str | None, float]) -> Counting:
    """Rows with and without a usable score per pool and group, and how scores lie about the marks."""
    if not marks or len(marks) > MOST_GROUPS:
        return _places(columns, {}, by_pool=True)
    if columns.pool is not None:
        return _pools(columns, marks)
    table, engine = columns.table, columns.table.engine
    if engine.counts_beside:
        return _sums(columns, marks, thresholds)
    if not engine.lazy or (engine.looks and table.size <= SMALL):
        return _scores(columns, marks, thresholds)
    again = engine.looks and not table.text  # where a second pass costs little
    return (_bins if again else _places)(columns, marks, thresholds)


def _scores(columns: Columns, marks: Marks, thresholds: Mapping[str | None, float]) -> Counting:
    """The scores of a table in memory or of a small file, counted here: quicker than to make long queries.

    Rows of other groups are counted in another way, if there are any.
    """
    place: nw.Expr = nw.lit(len(marks), nw.Int8)
    for at, group in enumerate(marks):
        member, own = columns.member(group), nw.lit(at, nw.Int8)
        place = own if member is None else nw.when(member).then(own).otherwise(place)
    score = nw.when(columns.usable).then(columns.score)
    asked, most = columns.frame.select(**{PLACE: place, SCORE: score}), math.inf
    if columns.table.engine.lazy:
        asked, most = asked.head(MOST_SCORES + 1), MOST_SCORES

    def read(_: Sequence[Rows]) -> PoolScores:
        raw = columns.arrays(asked, "counting rows", (SCORE,))
        if len(raw[SCORE]) > most or np.any(raw[PLACE] == len(marks)):
            return _places(columns, marks, thresholds).run(columns)
        sizes: Sizes = {}
        found, listed = {}, {}
        for at, (group, scores) in enumerate(marks.items()):
            own = raw[PLACE] == at
            found[group] = count_scores(raw[SCORE], scores, own)
            key, usable = () if columns.group is None else (group,), found[group].candidates
            sizes[key] = usable, int(np.count_nonzero(own)) - usable
            listed[key] = int(np.count_nonzero(own & (raw[SCORE] >= thresholds.get(group, 0.0))))
        return PoolScores(sizes, found, listed=listed if thresholds else None)

    return Counting((), read)


def _pools(columns: Columns, marks: Marks) -> Counting:
    """Where there are few pools, scores are counted in each."""
    sizes = _places(columns, {}, by_pool=True)

    def read(rows: Sequence[Rows]) -> PoolScores:
        counted = sizes.read(rows).sizes
        few = len({key[0] for key in counted}) <= MOST_POOLS
        return replace(_places(columns, marks, by_pool=few).run(columns), sizes=counted)

    return replace(sizes, read=read)


def _sums(columns: Columns, marks: Marks, thresholds: Mapping[str | None, float]) -> Counting:
    """Comparisons added up, group by group, by an engine that does so while it writes.

    Rows of other groups and rows without a score are counted in another way, if there are any.
    """
    frames = [columns.frame.select(nw.len().alias(ROWS))]
    for group, scores in marks.items():
        member = columns.member(group)
        frame = columns.frame if member is None else columns.frame.filter(member)
        score, at_least = columns.score, (thresholds.get(group, 0.0), *scores)
        found = [columns.usable, *(score >= each for each in at_least), *(score > each for each in scores)]
        frames.append(frame.select(**{f"{PLACE}{at}": each.sum() for at, each in enumerate(found)}))

    def read(rows: Sequence[Rows]) -> PoolScores:
        sizes: Sizes = {}
        found, listed = {}, {}
        for (group, scores), [counts] in zip(marks.items(), rows[1:], strict=True):
            good, reach, *compared = (int(each or 0) for each in counts)
            found[group] = PoolCounts.of(good, compared[: len(scores)], compared[len(scores) :])
            key = () if columns.group is None else (group,)
            sizes[key], listed[key] = (good, 0), reach
        if sum(good for good, _ in sizes.values()) != int(rows[0][0][0]):
            return _places(columns, marks, thresholds).run(columns)
        return PoolScores(sizes, found, listed=listed if thresholds else None)

    return Counting(tuple(frames), read)


def _bins(columns: Columns, marks: Marks, thresholds: Mapping[str | None, float]) -> Counting:
    """Rows by group and bin; those of bins with marks in them once more, by place among the marks."""
    keys, steps = pool_keys(columns, by_pool=False), _steps(marks, thresholds)
    frame = columns.frame.with_columns(**keys, **{BIN: (columns.score * float(BINS)).floor()})
    counted = frame.select(*keys, BIN).group_by(*keys, BIN).agg(nw.len().alias(ROWS))
    marked = {group: [_floor(each * BINS) for each in scores] for group, scores in steps.items()}
    unsure = {math.inf, -math.inf}.union(*marked.values())

    def read(rows: Sequence[Rows]) -> PoolScores:
        if len(rows[0]) > MOST_LINES:
            return _places(columns, marks, thresholds).run(columns)
        places = Counter[tuple[Any, ...]]()
        for *key, at, count in (row for row in rows[0] if row[-2] not in unsure):
            own = marked.get(str(key[0]) if key else None)
            if at is None or own is None:
                places[*key, None if at is None else NOWHERE] += count
            else:
                places[*key, 2 * bisect_right(own, at) - 2 if at > own[0] else BELOW] += count
        lines: Rows = [(*place, count) for place, count in places.items()]
        held = sorted(unsure & {row[-2] for row in rows[0]})
        if held:
            few = frame.filter(nw.col(BIN).is_in(held)).with_columns(**{PLACE: _place_of(columns, steps)})
            again = few.select(*keys, PLACE).group_by(*keys, PLACE).agg(nw.len().alias(ROWS))
            lines += columns.rows(again, "counting scores about the marks")
        return _read_places(columns, marks, thresholds, lines)

    return Counting((counted.head(MOST_LINES + 1),), read)


def _steps(marks: Marks, thresholds: Mapping[str | None, float]) -> dict[str | None, list[float]]:
    """The marks of each group and its threshold, rising."""
    return {
        group: sorted({*scores, *([thresholds[group]] if group in thresholds else ())})
        for group, scores in marks.items()
    }


def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


def _place_of(columns: Columns, marks: Marks) -> nw.Expr:
    """Where a score lies among the marks of its group; null where there is none."""
    place: nw.Expr = nw.lit(NOWHERE, nw.Int16)
    for group, scores in marks.items():
        member, score = columns.member(group), columns.score
        below = nw.lit(BELOW, nw.Int16)
        reached = nw.when(score >= scores[0]).then(_place(score, scores, 0)).otherwise(below)
        place = reached if member is None else nw.when(member).then(reached).otherwise(place)
    return nw.when(columns.usable).then(place)


def _places(
    columns: Columns, marks: Marks, thresholds: Mapping[str | None, float] = NO_THRESHOLDS,
    *, by_pool: bool = False,
) -> Counting:  # fmt: skip
    """One query: rows by group (and pool) and by place among the marks."""
    keys = pool_keys(columns, by_pool=by_pool) | {PLACE: _place_of(columns, _steps(marks, thresholds))}
    counted = columns.frame.with_columns(**keys).select(*keys).group_by(*keys).agg(nw.len().alias(ROWS))
    if columns.pool is None:  # enough to notice that a column of names was taken for one of groups
        counted = counted.head(bad_rows.MOST_GROUPS + 1)
    return Counting((counted,), lambda rows: _read_places(columns, marks, thresholds, rows[0], by_pool))


def _read_places(
    columns: Columns, marks: Marks, thresholds: Mapping[str | None, float], rows: Rows, by_pool: bool = False
) -> PoolScores:
    """From rows by group (and pool) and by place among the marks, with thresholds among them."""
    if columns.pool is None:
        bad_rows.require_few_groups(columns, len(rows))
    steps = _steps(marks, thresholds)
    sizes: dict[tuple[Any, ...], list[int]] = {}
    parts: dict[tuple[Any, ...], dict[str | None, Counter[int]]] = {(): {}}
    listed: dict[tuple[Any, ...], int] = {}
    for *key, at, count in rows:
        sizes.setdefault(tuple(key), [0, 0])[at is None] += int(count)
        name = str(key[-1]) if columns.group is not None else None
        if at is None or name not in marks:
            continue
        for pool in ((), tuple(key[:1])) if by_pool else ((),):  # all pools, and its own
            parts.setdefault(pool, {}).setdefault(name, Counter())[int(at)] += int(count)
        if name in thresholds and at >= 2 * steps[name].index(thresholds[name]):
            listed[tuple(key)] = listed.get(tuple(key), 0) + int(count)
    counts = {
        pool: {name: _counts(marks[name], steps[name], groups[name]) for name in marks if name in groups}
        for pool, groups in parts.items()
    }
    nobody = {name: _counts(marks[name], steps[name], Counter()) for name in marks}
    pools = {pool[0]: groups for pool, groups in counts.items() if pool}
    known = thresholds and thresholds.keys() == marks.keys()
    return PoolScores(
        {key: (good, bad) for key, (good, bad) in sizes.items()}, nobody | counts[()], pools,
        listed if known else None,
    )  # fmt: skip


def pool_keys(columns: Columns, *, by_pool: bool) -> dict[str, nw.Expr]:
    """What rows are counted by."""
    keys = {POOL: columns.pool} if by_pool and columns.pool is not None else {}
    return keys | ({GROUP: columns.group} if columns.group is not None else {})


def _place(score: nw.Expr, marks: Sequence[float], first: int) -> nw.Expr:
    """Twice the number of the highest mark at or below a score, and one more where it is that mark."""
    if len(marks) == 1:
        at, beyond = nw.lit(2 * first + 1, nw.Int16), nw.lit(2 * first, nw.Int16)
        return nw.when(score == marks[0]).then(at).otherwise(beyond)
    half = len(marks) // 2
    upper, lower = _place(score, marks[half:], first + half), _place(score, marks[:half], first)
    return nw.when(score >= marks[half]).then(upper).otherwise(lower)


def _counts(marks: Sequence[float], steps: Sequence[float], places: Counter[int]) -> PoolCounts:
    """Of places among ``steps``, some of which are the marks: at 2n or beyond is at least the n-th step."""
    numbers = [steps.index(each) for each in marks]
    at_least = [sum(count for at, count in places.items() if at >= 2 * number) for number in numbers]
    equal = [places[2 * number + 1] for number in numbers]
    above = [reached - same for reached, same in zip(at_least, equal, strict=True)]
    return PoolCounts.of(places.total(), at_least, above)
