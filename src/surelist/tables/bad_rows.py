"""One pass that counts rows per group and everything that is wrong with them.

Rows without a usable score, labels outside {0, 1}, missing and unknown groups are counted
together, and reported together with up to five example rows each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from surelist.errors import InvalidInput
from surelist.tables.engines import Frame
from surelist.tables.roles import ID, POOL, ROW, ROWS, STATE, Columns

UNQUALIFIED, QUALIFIED, LABEL_MISSING, LABEL_WRONG, UNUSABLE = range(5)

ON_BAD_ROWS = ("error", "drop")
EXAMPLES = 5
MOST_GROUPS = 10_000

Counts = dict[tuple[Any, ...], int]


@dataclass(frozen=True)
class Problem:
    """Rows that do not fit, how many, and which."""

    message: str
    count: int
    where: nw.Expr


def count_states(columns: Columns, frame: Frame, state: nw.Expr, keys: Mapping[str, nw.Expr]) -> Counts:
    """Rows per key and state, in one pass."""
    return count_keys(columns, frame, {**keys, STATE: state})


def count_keys(
    columns: Columns, frame: Frame, keys: Mapping[str, nw.Expr], what: str = "counting rows"
) -> Counts:
    """Rows per combination of keys, in one pass."""
    if not keys:
        return {(): int(columns.rows(frame.select(nw.len().alias(ROWS)), what)[0][0])}
    counted = frame.with_columns(**keys).select(*keys).group_by(*keys).agg(nw.len().alias(ROWS))
    if POOL not in keys:
        counted = counted.head(MOST_GROUPS + 1)
    rows = columns.rows(counted, what)
    if len(rows) > MOST_GROUPS and POOL not in keys:
        raise InvalidInput(
            f"column {columns.names['group']!r}: more than {MOST_GROUPS:,} different values; "
            "that is no column of groups."
        )
    found: Counts = {}
    for *key, count in rows:
        found[tuple(key)] = found.get(tuple(key), 0) + int(count)
    return found


def calibration_state(columns: Columns) -> nw.Expr:
    """What each calibration row is: one of the states above."""
    assert columns.label is not None
    assert columns.label_missing is not None
    by_label = (
        nw.when(columns.label == 1).then(nw.lit(QUALIFIED))
        .otherwise(nw.when(columns.label == 0).then(nw.lit(UNQUALIFIED))
        .otherwise(nw.when(columns.label_missing).then(nw.lit(LABEL_MISSING))
        .otherwise(nw.lit(LABEL_WRONG))))
    )  # fmt: skip
    return nw.when(columns.usable).then(by_label).otherwise(nw.lit(UNUSABLE))


def unusable_scores(columns: Columns, count: int) -> Problem:
    """Null, NaN, infinite or unreadable scores."""
    usable = nw.when(columns.usable).then(nw.lit(1)).otherwise(nw.lit(0))
    expected = "a finite number"
    if columns.schema[columns.names["score"]].is_integer():
        expected = "a whole number within 2^53 of 0 (larger ones lose their order as floats)"
    return Problem(
        f"column {columns.names['score']!r}: expected {expected} in every row; "
        'give every candidate a score, or drop these rows with on_bad_rows="drop"',
        count,
        usable == 0,
    )


def wrong_labels(columns: Columns, count: int) -> Problem:
    """Labels other than 0, 1 and missing."""
    assert columns.label is not None
    wrong = calibration_state(columns) == LABEL_WRONG
    return Problem(f"column {columns.names['label']!r}: expected 0 or 1 (1 = qualified)", count, wrong)


def missing_labels(columns: Columns, count: int) -> Problem:
    """Rows without a label: never dropped, kept as not qualified on request."""
    missing = calibration_state(columns) == LABEL_MISSING
    return Problem(
        f"column {columns.names['label']!r}: missing labels; dropping such rows would break the "
        'promise, missing_labels="unqualified" keeps them as not qualified',
        count,
        missing,
    )


def wrong_groups(columns: Columns, sizes: Mapping[Any, int], known: Collection[str]) -> list[Problem]:
    """Rows of no group, or of a group nobody has heard of. ``sizes`` has them by raw value."""
    if columns.group is None:
        return []
    name, problems = columns.names["group"], []
    if sizes.get(None):
        problems.append(
            Problem(
                f'column {name!r}: missing group; map missing values to a name of their own, e.g. "unknown"',
                sizes[None],
                columns.group.is_null(),
            )
        )
    listed = ", ".join(repr(each) for each in sorted(known))
    strange = {raw: n for raw, n in sizes.items() if raw is not None and n and str(raw) not in known}
    for raw, count in sorted(strange.items(), key=lambda item: -item[1])[:EXAMPLES]:
        problems.append(
            Problem(
                f"column {name!r}: unknown group {str(raw)!r}; known groups: {listed}",
                count,
                columns.group == raw,
            )
        )
    return problems


def stop_for(columns: Columns, problems: list[Problem]) -> None:
    """Raise one error that names every problem, how often it occurs, and where."""
    problems = [each for each in problems if each.count]
    if not problems:
        return
    told = [f"{each.message}: {_rows(each.count)}{_examples(columns, each)}." for each in problems]
    if len(told) == 1:
        raise InvalidInput(told[0])
    raise InvalidInput("\n".join([f"{columns.table.name}: {len(told)} problems.", *told]))


def stop_for_repeated_ids(columns: Columns, why: str) -> None:
    """Raise unless every row has an id of its own."""
    assert columns.ident is not None
    name, missing = columns.names["id"], count_missing_ids(columns)
    stop_for(columns, [Problem(f"column {name!r}: missing candidate id", missing, columns.ident.is_null())])
    count, shown = repeated_ids(columns)
    if count:
        raise InvalidInput(f"column {name!r}: expected unique candidate ids, got {shown}. {why}")


def count_missing_ids(columns: Columns) -> int:
    """Rows without an id."""
    assert columns.ident is not None
    missing = columns.frame.filter(columns.ident.is_null()).select(nw.len().alias(ROWS))
    return int(columns.rows(missing, "looking for missing ids")[0][0])


def repeated_ids(columns: Columns) -> tuple[int, str]:
    """How many ids occur more than once (in a pool, where there are pools), and a few of them."""
    assert columns.ident is not None
    keys = {ID: columns.ident} | ({POOL: columns.pool} if columns.pool is not None else {})
    twice = (
        columns.frame.filter(columns.usable)
        .with_columns(**keys)
        .select(*keys)
        .group_by(*keys)
        .agg(nw.len().alias(ROWS))
        .filter(nw.col(ROWS) > 1)
    )
    count = int(columns.rows(twice.select(nw.len().alias(ROWS)), "looking for repeated ids")[0][0])
    if not count:
        return 0, ""
    few = columns.rows(twice.head(EXAMPLES), "fetching examples")
    shown = ", ".join(f"{row[0]!r} {row[-1]} times" for row in sorted(few, key=str))
    return count, shown + (f" and {count - len(few):,} more" if count > len(few) else "")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _examples(columns: Columns, problem: Problem) -> str:
    """Up to five rows, by number where the table has an order."""
    engine, frame = columns.table.engine, columns.frame
    if engine.ordered:
        frame = engine.numbered(frame, ROW)
    wanted = ([ROW] if engine.ordered else []) + list(dict.fromkeys(columns.names.values()))
    rows = columns.rows(frame.filter(problem.where).select(*wanted).head(EXAMPLES), "fetching examples")
    told = []
    for row in rows:
        values = ", ".join(
            f"{name}={value!r}" for name, value in zip(wanted, row, strict=True) if name != ROW
        )
        if engine.ordered:
            place = f"data row {int(row[0]) + 1}" if columns.table.file else f"row {int(row[0])}"
            values = f"{place}: {values}"
        told.append(values)
    return f" ({'; '.join(told)})" if told else ""
