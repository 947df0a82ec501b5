"""Everything that can be wrong with the rows of a table, counted and put into words once.

Rows without a usable score, labels outside {0, 1}, missing and unknown groups, repeated ids: each
is a ``Problem`` with its sentence, how many rows it concerns and up to five of them. Calibration
and selection refuse by these sentences, and pages show them.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import narwhals as nw
from msgspec import Struct

from surelist import _check as check
from surelist._names import MARKED, option
from surelist.errors import InvalidInput, TableWarning
from surelist.tables.engines import Frame
from surelist.tables.hints import rows_in_words
from surelist.tables.reading import DECIMAL, choice
from surelist.tables.roles import ID, POOL, ROW, ROWS, Columns

STATES = 5
UNQUALIFIED, QUALIFIED, LABEL_MISSING, LABEL_WRONG, UNUSABLE = range(STATES)

ON_BAD_ROWS = get_args(check.OnBadRows)
EXAMPLES = 5
DROPPING = ", or drop these rows with "
MOST_GROUPS = 10_000

Counts = dict[tuple[Any, ...], int]


class Example(Struct, frozen=True):
    """A row that does not fit: its number as people count, where rows have an order, and its values."""

    row: int | None
    values: Mapping[str, object]


class Problem(Struct, frozen=True):
    """Something about a table that does not fit.

    ``kind`` says what: score, label, missing label, missing group, unknown group, missing id,
    repeated id, missing pool, mostly dropped, no rows, table. ``message`` is the fact, ``sentence``
    the whole of what Python says about it, with what to do. Problems that do not ``stop`` anyone
    are warnings.
    """

    kind: str
    message: str
    sentence: str
    column: str | None = None
    count: int = 0
    examples: tuple[Example, ...] = ()
    stops: bool = True


def problem_of(error: InvalidInput) -> Problem:
    """An error about the table as a whole."""
    message = error.said(MARKED)
    return Problem("decimal" if error.remedy == DECIMAL else "table", message, message)


def count_keys(
    columns: Columns, frame: Frame, keys: Mapping[str, nw.Expr], what: str = "counting rows"
) -> Counts:
    """Rows per combination of keys, in one pass."""
    if not keys:
        return {(): columns.table.count(frame, what)}
    counted = frame.with_columns(**keys).select(*keys).group_by(*keys).agg(nw.len().alias(ROWS))
    if POOL not in keys:
        counted = counted.head(MOST_GROUPS + 1)
    rows = columns.rows(counted, what)
    if POOL not in keys:
        require_few_groups(columns, len(rows))
    counts: Counts = {}
    for *key, count in rows:
        counts[tuple(key)] = counts.get(tuple(key), 0) + int(count)
    return counts


def require_few_groups(columns: Columns, counted: int) -> None:
    """Refuse a column with thousands of names as one of groups."""
    if counted > MOST_GROUPS:
        raise InvalidInput(
            f"column {columns.names['group']!r}",
            f"more than {MOST_GROUPS:,} different values; that is no column of groups.",
        )


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


def without_scores(columns: Columns, unusable: int, rows: int, *, drop: bool) -> list[Problem]:
    """Rows without a usable score. To drop them was asked for: if that would leave less than half, then the
    column is wrong, not its rows."""
    if not drop:
        return unusable_scores(columns, unusable)
    problems = lost_order(columns, unusable)
    if problems or unusable * 2 <= rows:
        return problems
    message = f"expected a finite number in at least half of the {rows:,} rows"
    few = option("on_bad_rows", "drop", after=" is for a few bad rows; ")
    remedy = f"{few}check the column, e.g. for decimal commas"
    return _rows("mostly dropped", columns, "score", message, unusable, _unusable(columns), remedy)


def unusable_scores(columns: Columns, count: int) -> list[Problem]:
    """Null, NaN, infinite or unreadable scores."""
    problems = lost_order(columns, count)
    count -= sum(each.count for each in problems)
    remedy = f"give every candidate a score{option('on_bad_rows', 'drop', before=DROPPING)}"
    message = "expected a finite number in every row"
    return problems + _rows("score", columns, "score", message, count, _unusable(columns), remedy)


def lost_order(columns: Columns, unusable: int) -> list[Problem]:
    """Whole numbers that lose their order as floats: never dropped, since they may be the best scores."""
    if not unusable or columns.too_large is None:
        return []
    count = columns.table.count(columns.frame.filter(columns.too_large), "looking for large scores")
    return _rows("score", columns, "score", check.LOST, count, columns.too_large, "rescale them")


def _unusable(columns: Columns) -> nw.Expr:
    bad = nw.when(columns.usable).then(nw.lit(1)).otherwise(nw.lit(0)) == 0
    if columns.too_large is None:
        return bad
    return bad & (nw.when(columns.too_large).then(nw.lit(1)).otherwise(nw.lit(0)) == 0)


def wrong_labels(columns: Columns, count: int) -> list[Problem]:
    """Labels other than 0, 1 and missing."""
    if not count:
        return []
    wrong = calibration_state(columns) == LABEL_WRONG
    remedy = choice(columns.table, columns.names["label"])
    return _rows("label", columns, "label", "expected 0 or 1 (1 = qualified)", count, wrong, remedy)


def missing_labels(columns: Columns, count: int) -> list[Problem]:
    """Rows without a label: never dropped, kept as not qualified on request."""
    missing = calibration_state(columns) == LABEL_MISSING
    remedy = f"dropping such rows would break the promise, so {check.KEEPING}"
    return _rows("missing label", columns, "label", "missing labels", count, missing, remedy)


def wrong_groups(
    columns: Columns, sizes: Mapping[object, int], known: Collection[str] | None
) -> list[Problem]:
    """Rows of no group, or of a group not ``known`` (None: any will do). ``sizes`` has them by raw value."""
    if columns.group is None:
        return []
    remedy = 'map missing values to a name of their own, e.g. "unknown"'
    absent = columns.group.is_null()
    problems = _rows("missing group", columns, "group", "missing group", sizes.get(None, 0), absent, remedy)
    if known is None:
        return problems
    listed = ", ".join(repr(each) for each in sorted(known))
    strange = {raw: n for raw, n in sizes.items() if raw is not None and n and str(raw) not in known}
    for raw, count in sorted(strange.items(), key=lambda item: -item[1])[:EXAMPLES]:
        message = f"unknown group {str(raw)!r}; known groups: {listed}"
        problems += _rows("unknown group", columns, "group", message, count, columns.group == raw)
    return problems


def missing_pools(columns: Columns, count: int) -> list[Problem]:
    """Candidates of a table of many pools who are in none."""
    if columns.pool is None:
        return []
    return _rows("missing pool", columns, "pool", "missing pool", count, columns.pool.is_null())


def wrong_ids(columns: Columns, *, hashed: bool) -> list[Problem]:
    """Missing and repeated candidate ids: fatal where ties are broken by id, else a warning."""
    if columns.ident is None:
        return []
    absent = columns.ident.is_null()
    count = columns.table.count(columns.frame.filter(absent), "looking for missing ids")
    problems = _rows("missing id", columns, "id", "missing candidate id", count, absent, stops=hashed)
    count, shown = repeated_ids(columns, by_pool=not hashed)
    if count:
        message = f"column {columns.names['id']!r}: expected unique candidate ids, got {shown}"
        why = "Randomised ties are valid only when every candidate has one id."
        if not hashed:
            why = "Rows of one candidate are not independent draws."
        sentence = f"{message}. {why}"
        problems.append(Problem("repeated id", message, sentence, columns.names["id"], count, stops=hashed))
    return problems


def rows_that_stop(
    columns: Columns, *, unlabelled: bool, most: int
) -> list[tuple[str, int, tuple[Any, ...]]]:
    """Why, where (from 0) and what: every row that stands in the way, up to so many of each kind."""
    state = calibration_state(columns)
    wheres = {
        "no usable score": _unusable(columns),
        check.LOST: columns.too_large,
        "label is neither 0 nor 1": state == LABEL_WRONG,
        "no label": state == LABEL_MISSING if unlabelled else None,
        "no group": None if columns.group is None else columns.group.is_null(),
        "no id": None if columns.ident is None else columns.ident.is_null(),
    }
    table = columns.table
    frame = table.engine.numbered(columns.frame, ROW)
    examples = []
    for why, where in wheres.items():
        if where is not None:
            kept = frame.filter(where).select(ROW, *table.columns).head(most)
            examples += [(why, int(row[0]), row[1:]) for row in columns.rows(kept, "fetching problem rows")]
    return examples


def stop_for(columns: Columns, problems: Sequence[Problem]) -> None:
    """Raise one error that names every problem that stops, how often it occurs, and where; warn of others."""
    refusal = refusal_for(columns.table.name, problems)
    if refusal is not None:
        raise InvalidInput("", refusal)
    for each in problems:
        warnings.warn(each.sentence, TableWarning, 5)


def refusal_for(table: str, problems: Sequence[Problem]) -> str | None:
    """What an error says about these problems; None where none of them stops anyone."""
    sentences = [each.sentence for each in problems if each.stops]
    if len(sentences) < 2:
        return sentences[0] if sentences else None
    return "\n".join([f"{table}: {len(sentences)} problems.", *sentences])


def repeated_ids(columns: Columns, *, by_pool: bool) -> tuple[int, str]:
    """How many ids occur more than once (``by_pool``: in a pool, where there are pools), and a few of them.

    Rows of one id share the number that breaks their ties, in whichever pools they are [theory: ties].
    """
    assert columns.ident is not None
    pools = {POOL: columns.pool} if by_pool and columns.pool is not None else {}
    keys = {ID: columns.ident} | pools
    twice = (
        columns.frame.filter(columns.usable)
        .with_columns(**keys)
        .select(*keys)
        .filter(~nw.col(ID).is_null())
        .group_by(*keys)
        .agg(nw.len().alias(ROWS))
        .filter(nw.col(ROWS) > 1)
    )
    count = columns.table.count(twice, "looking for repeated ids")
    if not count:
        return 0, ""
    few = columns.rows(twice.head(EXAMPLES), "fetching examples")
    shown = ", ".join(f"{row[0]!r} {row[-1]} times" for row in sorted(few, key=str))
    return count, shown + (f" and {count - len(few):,} more" if count > len(few) else "")


def _rows(
    kind: str, columns: Columns, role: str, message: str, count: int, where: nw.Expr, remedy: str = "",
    *, stops: bool = True,
) -> list[Problem]:  # fmt: skip
    """A problem of ``count`` rows, with a few of them; none where there are none."""
    if not count:
        return []
    name = columns.table.engine.title(columns.names[role])
    examples = _examples(columns, where)
    rows = rows_in_words(count)
    fact = f"column {name!r}: {message}"
    shown = "; ".join(_shown(columns, each) for each in examples)
    sentence = f"{fact}{'; ' if remedy else ''}{remedy}: {rows}{f' ({shown})' if shown else ''}."
    return [Problem(kind, f"{fact}: {rows}", sentence, name, count, examples, stops)]


def _examples(columns: Columns, where: nw.Expr) -> tuple[Example, ...]:
    """Up to five rows, by number where the table has an order."""
    engine, frame = columns.table.engine, columns.frame
    if engine.ordered:
        frame = engine.numbered(frame, ROW)
    wanted = ([ROW] if engine.ordered else []) + list(dict.fromkeys(columns.names.values()))
    rows = columns.rows(frame.filter(where).select(*wanted).head(EXAMPLES), "fetching examples")
    named = [dict(zip(wanted, row, strict=True)) for row in rows]
    if not engine.ordered:
        return tuple(Example(None, values) for values in named)
    numbers: Sequence[int] = [int(values.pop(ROW)) for values in named]
    if columns.table.file:  # of a DataFrame it is the position, from 0
        numbers = columns.table.sheet_rows(numbers)
    return tuple(Example(number, values) for number, values in zip(numbers, named, strict=True))


def _shown(columns: Columns, example: Example) -> str:
    cells = ((name, "empty" if value is None else repr(value)) for name, value in example.values.items())
    values = ", ".join(f"{name}={cell}" for name, cell in cells)
    if example.row is None:
        return values
    return f"{columns.table.row_name} {example.row}: {values}"
