"""A table as a collection to be labelled: who is at which rank, the drawn rows, the list at the end.

Up to some ten million scores are fetched and sorted here. Of more the engine counts and filters; counts and
the drawn rows come back, with a few rows beside them in the order.

What tools that ask a language model write becomes a table with the judge's verdict as a score: JSON Lines and
tables with a column of verdicts; the logs of Inspect and promptfoo and the output of DocETL, which are plain
JSON. It is written beside the labelling's state, as CSV.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelist._check import EngineName
from surelist.errors import InvalidInput
from surelist.filters import TRIAGE
from surelist.lifecycle.labelling import Labelling
from surelist.lifecycle.labelling_design import Fetched, Ints
from surelist.lifecycle.labelling_start import ORDER_ALONE, ArrayCollection, judge_scores, verdict_of
from surelist.promises.policy import Policy
from surelist.tables.arrays import read_columns, read_text
from surelist.tables.numbers import NumberStyle
from surelist.tables.order_statistics import require_same_rows
from surelist.tables.output import (
    Row,
    refuse_columns,
    rows_at,
    rows_with_ids,
    write_listed,
    write_sheet,
)
from surelist.tables.ranks import RankedTable
from surelist.tables.reading import is_text, style_of
from surelist.tables.roles import require_column
from surelist.tables.sources import Table, open_table
from surelist.workflows.source import Source

JUDGED = "surelist_score"
MOST_HELD = 1 << 24  # scores that are fetched and sorted here, in half a dozen passes less


class TableCollection:
    """A table as a collection. Where rows have no order their number is their rank, group after group."""

    def __init__(self, table: Table, score: str, ident: str | None, group: str | None) -> None:
        self._table, self._ident = table, ident
        if ident is not None:
            require_column(table, "id", ident)
        held = table.engine.ordered and group is None and 0 < table.count() <= MOST_HELD
        self._ranked: ArrayCollection | RankedTable = (
            ArrayCollection(read_columns(table, {"score": score})["score"])
            if held
            else RankedTable(table, score=score, id=ident, group=group)
        )
        self.sizes = self._ranked.sizes
        starts = np.cumsum([0, *self.sizes.values()]).tolist()
        self._starts = dict(zip(self.sizes, starts, strict=False))
        self._known: dict[str, tuple[str | None, int]] = {}  # at which rank of which group

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        require_same_rows(self._table.count() == sum(self.sizes.values()), self._table)
        fetched = self._ranked.at(group, ranks)
        if fetched.rows is None:
            assert self._ident is not None
            ids = self._named(fetched.ids or [], group, ranks, lambda at: f"score {fetched.scores[at]}")
            rows_with_ids(self._table, self._ident, ids, [self._ident])  # each of them once
            return Fetched(ranks + self._starts[group], fetched.scores, ids, fetched.reaching)
        if self._ident is None:
            return Fetched(fetched.rows, fetched.scores, None, fetched.reaching)
        numbers = fetched.rows.tolist()
        ids = [row[0] for row in rows_at(self._table, numbers, [self._ident])]
        named = self._named(ids, group, ranks, lambda at: f"row {self._table.sheet_rows([numbers[at]])[0]}")
        return Fetched(fetched.rows, fetched.scores, named, fetched.reaching)

    def _named(
        self, ids: Sequence[object], group: str | None, ranks: Ints, place: Callable[[int], str]
    ) -> list[str]:
        """Ids as text: every drawn row must have one of its own; ``place`` says where one is missing."""
        named = []
        for at, (each, rank) in enumerate(zip(ids, ranks.tolist(), strict=True)):
            if each in (None, ""):
                raise InvalidInput(
                    f"column {self._ident!r}", f"the candidate of {place(at)} has no id; everyone needs one."
                )
            if self._known.setdefault(str(each), (group, rank)) != (group, rank):
                raise InvalidInput(
                    f"column {self._ident!r}", expected="unique candidate ids", got=f"{str(each)!r} twice"
                )
            named.append(str(each))
        return named


def label_table(
    table: Any, target: Any, *, labels: int, score: str, alpha: float = 0.1, id: str | None = None,
    group: str | None = None, purpose: str | None = None, engine: EngineName = "auto",
    spark_master: str | None = None, **design: Any,
) -> Labelling:  # fmt: skip
    """A ``Labelling`` of a table of scored candidates, where the table is.

    Parameters
    ----------
    table
        As for ``calibrate_table``: files, a DataFrame of pandas, polars or PySpark, a DuckDB relation.
    target, labels, alpha, purpose
        As for ``Labelling``.
    score, id, group
        Names of columns. ``id`` is needed on Spark, where rows have no order: there ``ask()`` numbers rows by
        rank, and ``ids(rows)`` says who they are.
    engine, spark_master
        Engine that reads files, as for ``calibrate_table``.
    design
        ``pilot``, ``fallback``, ``aside`` and ``block``, as for ``Labelling``.

    Returns
    -------
    Labelling
        It remembers the names of the columns, and of a file where it is.

    Raises
    ------
    InvalidInput
        A column or a value does not fit; says which rows.

    Examples
    --------
    >>> import polars as pl
    >>> import surelist as sl
    >>> table = pl.DataFrame({"risk": [row / 5000 for row in range(5000)]})
    >>> work = sl.label_table(table, sl.AtLeast(50), score="risk", labels=120)
    >>> len(work.ask())
    30
    """
    opened = Source(table, engine, spark_master).open()
    columns = {"score": score} | {
        role: name for role, name in (("id", id), ("group", group), ("spark_master", spark_master)) if name
    }
    if isinstance(table, (str, os.PathLike)):
        columns |= {"table": os.fspath(table), "engine": engine}
    held = TableCollection(opened, score, id, group)
    targets = target.values() if isinstance(target, Mapping) else [target]
    if any(getattr(each, "three_ways", False) for each in targets):
        refuse_columns(opened, TRIAGE)  # before anybody labels for a list that could not be written
    return Labelling.of(held, target, alpha=alpha, labels=labels, purpose=purpose, columns=columns, **design)


def open_collection(work: Labelling) -> tuple[Table, dict[str, str]]:
    """The table that a labelling was started from, and its columns by role."""
    columns = work.columns
    if columns is None or "table" not in columns:
        raise InvalidInput("state", "this labelling was not started from a file; use it from Python.")
    engine: Any = columns.get("engine", "auto")
    return Source(columns["table"], engine, columns.get("spark_master")).open(), columns


def drawn_rows(table: Table, work: Labelling, rows: list[int]) -> list[Row]:
    """Drawn rows with all their columns; refused where they are no longer those that were drawn."""
    columns = work.columns or {}
    names = work.ids(rows) if "id" in columns else None
    if table.engine.ordered:
        fetched = rows_at(table, rows)
    else:
        fetched = rows_with_ids(table, columns["id"], names or [])
    style = style_of(table, columns["score"]) if is_text(table, columns["score"]) else NumberStyle()
    score, ident = (table.titles.index(columns[role]) if role in columns else 0 for role in ("score", "id"))
    for at, (row, cells) in enumerate(zip(rows, fetched, strict=True)):
        now, was = cells[score], work.score(row)
        value = style.value(now) if isinstance(now, str) else now
        if value is None or not np.isclose(float(value), was, rtol=1e-12, atol=0):
            raise _changed(f"row {row} has score {now}, and had {was!r} when it was drawn")
        if names is not None and str(cells[ident]) != names[at]:
            raise _changed(f"row {row} is {str(cells[ident])!r}, and was {names[at]!r} when it was drawn")
    return fetched


def _changed(how: str) -> InvalidInput:
    return InvalidInput(
        "table",
        f"{how}. The collection has changed since; a labelling is about the one it was started with. To go "
        "on, put that back, its rows in their order.",
    )


def write_certified(work: Labelling, policy: Policy, table: Table, output: Path) -> None:
    """The list of the collection itself; none where the table is not the one that was drawn from."""
    columns = work.columns or {}
    drawn_rows(table, work, work.drawn)
    on, off = work.named
    ordered = table.engine.ordered
    thresholds = {each.group: each.steps[-1].threshold for each in policy.cutoffs}
    roles = {role: columns.get(role) for role in ("score", "group")}
    roles["id"] = None if ordered else columns["id"]

    def known(rows: list[int]) -> Sequence[int | str]:
        return rows if ordered else work.ids(rows)

    def same(listed: int) -> None:
        if listed != work.listed:
            raise _changed(f"{listed:,} candidates would be on the list, and {work.listed:,} are certified")

    looks = known(work.looks) if policy.three_ways else None
    write_listed(
        table, output, thresholds, roles, named=known(on), without=known(off), looks=looks, accept=same
    )


def judged_table(source: Path, judge: str, ident: str | None, output: Path) -> Path:
    """Write the rows of ``source`` with a score from the column ``judge``; returns where."""
    if source.suffix == ".json":
        records = _records(source)
        names = list(dict.fromkeys(name for record in records for name in record))
        for name in (judge, ident):
            if name is not None and name not in names:
                raise InvalidInput(f"column {name!r}", f"{source} has {', '.join(names)}.")
        rows: list[Any] = [[record.get(name) for name in names] for record in records]
        verdicts = [record.get(judge) for record in records]
        ids = [record.get(ident) for record in records] if ident else None
    else:
        table = open_table(source)
        names = list(table.columns)
        texts = read_text(table, {"judge": judge} | ({"id": ident} if ident else {}))
        verdicts, ids = texts["judge"], texts.get("id")
        rows = rows_at(table, range(table.count()))
    odd = next((row for row, each in enumerate(verdicts) if np.isnan(verdict_of(each))), None)
    if odd is not None:
        where = f"answer {odd + 1}" if source.suffix == ".json" else table.place(odd)
        got = f"{'nothing' if verdicts[odd] is None else repr(verdicts[odd])} in {where}"
        raise InvalidInput(f"column {judge!r}", expected="yes, no or a number", got=got, remedy=ORDER_ALONE)
    scores = judge_scores(verdicts, ids)
    body = [[*row, repr(float(score))] for row, score in zip(rows, scores, strict=True)]
    write_sheet(output, [*names, JUDGED], body, [str(source)])
    return output


def _records(source: Path) -> list[dict[str, Any]]:
    """One flat record for each answer of a log."""
    try:
        held = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as error:
        said = f"is no JSON ({error}); answers line by line are named .jsonl."
        raise InvalidInput(str(source), said) from None
    if isinstance(held, list):  # DocETL: the output is a list of records
        found = held
    elif isinstance(held, dict) and isinstance(held.get("samples"), list):
        found = [_inspect(each) for each in held["samples"]]
    elif isinstance(held, dict) and "results" in held:
        inner = held["results"]
        found = [_promptfoo(each) for each in (inner["results"] if isinstance(inner, dict) else inner)]
    else:
        found = []
    if not found or not all(isinstance(each, dict) for each in found):
        raise InvalidInput(
            str(source),
            "expected a list of records (DocETL), a log of Inspect (samples) or one of promptfoo (results).",
        )
    return [{name: _flat(value) for name, value in each.items()} for each in found]


def _inspect(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample with the value of each of its scores: C, I, P or a number."""
    choices = (sample.get("output") or {}).get("choices") or [{}]
    answer = (choices[0].get("message") or {}).get("content")
    scores = {name: (each or {}).get("value") for name, each in (sample.get("scores") or {}).items()}
    first = next(iter(scores.values()), None)
    parts = {"id": sample.get("id"), "input": sample.get("input"), "answer": answer, "verdict": first}
    return {**parts, **{f"score {name}": value for name, value in scores.items()}}


def _promptfoo(result: dict[str, Any]) -> dict[str, Any]:
    output = (result.get("response") or {}).get("output")
    parts = {"answer": output, "verdict": result.get("success"), "score": result.get("score")}
    return {**(result.get("vars") or {}), **parts}


def _flat(value: object) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
