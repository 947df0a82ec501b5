"""Selection: a policy read and verified, a table or some rows in, the shortlist out.

Apart from ``tables``, because a selection should start at once: what calibrates is not imported for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from warnings import warn

import numpy as np
from msgspec.structs import replace

from surelist import _check as check
from surelist._check import Dialect, OnBadRows
from surelist.errors import InvalidInput, PoolWarning
from surelist.filters import LISTS
from surelist.promises import pool_checks
from surelist.promises.conditions import refuse_earlier
from surelist.promises.policy import Policy, as_policy
from surelist.tables import shortlist
from surelist.tables.arrays import read_columns
from surelist.tables.reading import Reading
from surelist.tables.shortlist import Selection
from surelist.tables.sources import open_table
from surelist.tables.thresholds import filter_sql
from surelist.workflows.source import PLAIN, Read, Source, words_of_tables


def select_table(
    table: object,
    policy: Policy | str | os.PathLike[str],
    *,
    score: str | None = None,
    group: str | None = None,
    id: str | None = None,
    pool: str | None = None,
    output: str | os.PathLike[str] | None = None,
    on_bad_rows: OnBadRows = "error",
    reason: bool = False,
    rank: bool = False,
    read: Read | None = None,
    progress: Callable[[str], None] | None = None,
    **earlier: object,
) -> Selection:
    """Shortlist the candidates of a table, where the table is.

    Returns a ``Selection``: its ``table`` is the shortlist, the same kind of table as came in
    (lazy where that was lazy), with the same columns, types and order of rows; beside it are
    the counts. With ``output`` the shortlist is written there instead, and appears only
    when complete.

    Parameters
    ----------
    policy
        A ``Policy``, or the path of its file.
    score, group, id
        Names of columns; by default those the policy was calibrated on.
    pool
        Column that says which pool a candidate is in, for tables of many pools: counts are
        given per pool, and ``PerPool`` thresholds go by each pool's size. A list by rank takes the column
        it was calibrated on where the table has it; a table without is one pool.
    on_bad_rows
        ``"drop"`` leaves out candidates without a finite score.
    reason
        Add a column ``shortlist_reason`` with the threshold that let the candidate in.
    rank
        Add a column ``shortlist_rank``: 1 for the best score, candidates with one score share a rank.
    output
        ``.csv``, ``.parquet`` or, with the ``excel`` extra, ``.xlsx``: that has rank and reason always. A
        CSV file is written as the pool's is: the same separator, encoding and way of writing numbers.
    read
        How the file is to be read, as for ``calibrate_table``.

    Returns
    -------
    Selection
        The shortlist and its counts.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.
    MissingDependency
        An optional package is needed, such as openpyxl for ``.xlsx``.

    Examples
    --------
    >>> import polars as pl
    >>> import surelist as sl
    >>> past = pl.DataFrame({"risk": [i / 500 for i in range(500)], "ill": [i > 300 for i in range(500)]})
    >>> policy = sl.calibrate_table(past, score="risk", label="ill", target=sl.Expected(5, 100))
    >>> new = pl.DataFrame({"name": ["Ann", "Ben", "Cem"], "risk": [0.99, 0.3, 0.95]})
    >>> sl.select_table(new, policy).table["name"].to_list()
    ['Ann', 'Cem']
    """
    refuse_earlier({name: value for name, value in earlier.items() if value is not None}, "select_table")
    policy = as_policy(policy)
    remembered = policy.columns or {}
    names = {"score": score_column(policy, score)}
    if policy.filter.grouped:
        names["group"] = group or remembered.get("group")
    elif group is not None:
        raise InvalidInput("group", "this policy has one cutoff for everybody; leave it out.")
    names["id"] = (id or remembered.get("id")) if policy.salt_hash is not None else id
    how = read or PLAIN
    opened = open_table(table, how.engine, how.spark_master, progress, how.hints)
    names["pool"] = _pool_column(policy, pool, opened.titles.__contains__)
    if policy.of_one_pool:
        here = read_columns(opened, {"score": names["score"]}, on_bad_rows, any_order=True)
        policy.require_pool(here["score"])
    done = shortlist.select_rows(
        opened, policy.filter, names=names, output=output, on_bad_rows=on_bad_rows, reason=reason, rank=rank,
        marks=pool_checks.marks_of(policy),
    )  # fmt: skip
    if policy.of_collection:
        warn(policy.promise_of(done.candidates), PoolWarning, stacklevel=2)
    sizes: dict[str | None, tuple[int, int]] = {None: (done.candidates, done.shortlisted)}
    sizes.update(done.groups)
    counted = done.scores.groups if done.scores is not None else {}
    by_pool = done.scores.pools if done.scores is not None else {}
    return replace(
        done,
        checks=pool_checks.check_pool(policy, done.candidates, sizes, counted, _pool_sizes(policy, done)),
        pools=tuple(
            replace(each, drift=pool_checks.drift_checks(policy, by_pool.get(each.pool, {})))
            for each in done.pools
        ),
    )


def _pool_sizes(policy: Policy, done: Selection) -> dict[str | None, list[int]]:
    """How many candidates each pool has, and how many of each group."""
    sizes: dict[str | None, list[int]] = {None: [each.candidates for each in done.pools]}
    if done.pools and done.scores is not None and policy.filter.grouped:
        counted = {(str(pool), str(group)): good for (pool, group), (good, _) in done.scores.sizes.items()}
        for group in done.groups:
            sizes[group] = [counted.get((str(each.pool), group), 0) for each in done.pools]
    return sizes


def select_source(source: Source, policy: Policy, **options: Any) -> tuple[Selection, Reading]:
    """The same, from a ``Source``, and what was understood of it: for the front ends."""
    opened = replace(source, table=source.open())
    score = options.get("score") or (policy.columns or {}).get("score")
    read = opened.reading(score=score)
    return select_table(opened.table, policy, **options), read


def names_in_rows(
    policy: Policy, has: Callable[[str], bool], given: Mapping[str, str | None]
) -> dict[str, str]:
    """Which columns of a pool's rows the policy needs, by role; ``has`` says which the first has."""
    remembered = policy.columns or {}
    named = {"score": score_column(policy, given.get("score")) or "score"}
    for role, needed in (("group", policy.filter.grouped), ("id", policy.salt_hash is not None)):
        if needed:
            named[role] = given.get(role) or remembered.get(role, role)
    pool = _pool_column(policy, given.get("pool"), has)
    return named if pool is None else {**named, "pool": pool}


def select_columns(columns: Mapping[str, Any], policy: Policy) -> tuple[list[int], Selection]:
    """Which rows of a pool, given as columns by role, are on the shortlist; nothing is written."""
    array = check.as_scores(columns["score"])
    check.require_rows(array, "rows")
    scores = array if policy.choice is None else {policy.choice.chosen: array}
    beside = columns.get("group"), columns.get("id")
    with words_of_tables():
        if "pool" not in columns:
            mask = policy.select(scores, *beside)
        else:
            mask = policy.select_pools(scores, columns["pool"], *beside)
    chosen = np.flatnonzero(mask).tolist()
    sizes = Counter(map(str, columns.get("group", ())))
    listed = Counter(str(columns["group"][row]) for row in chosen) if policy.filter.grouped else Counter()
    counts = {name: (size, listed[name]) for name, size in sorted(sizes.items())}
    checks = policy.checks_of(array, columns.get("group"), mask, columns.get("pool"))
    lists = Counter(policy.triage(scores).tolist()) if policy.three_ways else None
    three = None if lists is None else {name: lists[name] for name in LISTS}
    return chosen, Selection(len(array), len(chosen), counts, checks=checks, triage=three)


def three_lists(columns: Mapping[str, object], policy: Policy) -> list[str]:
    """Of a triage, the list that each row of a pool, given as columns by role, is on."""
    lists: list[str] = policy.triage(check.as_scores(columns["score"])).tolist()
    return lists


def score_column(policy: Policy, score: str | None) -> str | None:
    """The column asked for, or the one remembered; of several scores only the one that was chosen."""
    if policy.choice is not None and score not in (None, policy.choice.chosen):
        raise InvalidInput("score", f"this policy was made for {policy.choice.chosen!r}, got {score!r}.")
    return score or (policy.columns or {}).get("score")


def _pool_column(policy: Policy, pool: str | None, has: Callable[[str], bool]) -> str | None:
    """The column asked for; by rank, pools taken for one would give a list far too short."""
    remembered = (policy.columns or {}).get("pool")
    taken = pool is None and policy.by_rank and remembered is not None and has(remembered)
    return remembered if taken else pool


def selection_sql(
    policy: Policy,
    dialect: Dialect = "duckdb",
    *,
    score: str | None = None,
    group: str | None = None,
    pool_size: int | None = None,
    whole_numbers: bool = False,
) -> str:
    """One boolean expression that is true for exactly the candidates that ``select`` shortlists.

    Columns are by default those the policy was calibrated on. Refused, with the reason, is what SQL cannot
    say: secret ties, ranks, thresholds that go by a pool's own size, a campaign, a promise withdrawn, or one
    about the very candidates it was made from.
    """
    if policy.withdrawn is not None:
        raise InvalidInput("policy", "it promises nothing any more; calibrate on fresh rows.")
    if policy.cutoffs[0].proof.in_campaign:
        raise InvalidInput(
            "policy",
            "it is one threshold of a campaign, which changes at the next update and needs every pool on "
            "record. Screen with the campaign.",
        )
    if policy.of_one_pool:
        raise InvalidInput("policy", "it selects from the pool it was made with, and from no other.")
    if policy.of_collection:
        raise InvalidInput(
            "policy",
            f"{policy.not_of_these}; as SQL it would go to other tables. Write the list of those "
            "candidates instead.",
        )
    remembered = policy.columns or {}
    names = {"score": score_column(policy, score), "group": group or remembered.get("group")}
    if group is not None and not policy.filter.grouped:
        raise InvalidInput("group", "this policy has one cutoff for everybody; leave it out.")
    return filter_sql(policy.filter, names, dialect, pool_size=pool_size, whole_numbers=whole_numbers)
