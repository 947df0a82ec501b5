"""A labelling whose state is kept as text and answers elsewhere: for the app, whose record holds both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelist._dataclasses import dataclass, replace
from surelist.errors import NotCertifiable
from surelist.lifecycle.labelling import Labelling
from surelist.promises.policy import Policy
from surelist.promises.targets import Expected, PerPool
from surelist.tables.rows import count_rows, rows_at
from surelist.tables.sources import open_table
from surelist.workflows.label_tables import TableCollection, write_certified
from surelist.workflows.labelling import ROW, check_scores, write_rows

Told = Sequence[Mapping[str, Any]]  # answers in order: rows and their labels, None for one that will not come


@dataclass(frozen=True)
class LabellingStatus:
    """Where a labelling stands."""

    description: str
    waiting: tuple[int, ...]  # rows to label now
    needs_all: bool  # whether a label that does not come is an error
    policy: Policy | None
    refusal: str | None
    future: bool  # a promise about future pools, not about the list of this very collection
    stages: tuple[tuple[str | None, int, int, int], ...] = ()  # group, labels here, asked for, qualified
    listed: int | None = None  # of the collection, at or above the threshold

    @property
    def done(self) -> bool:
        return not self.waiting


def begin(
    collection: Path, target: Any, *, labels: int, alpha: float, score: str, group: str | None = None,
    purpose: str | None = None,
) -> tuple[str, dict[str | None, int]]:  # fmt: skip
    """Draw what may be asked; the state as text, and how many candidates there are, by group.

    With groups the same is promised to each of them.
    """
    held = TableCollection(open_table(collection), score, None, group)
    columns = {"score": score} | ({"group": group} if group else {})
    work = Labelling.of(held, target, labels=labels, alpha=alpha, purpose=purpose, columns=columns)
    return work.dumps(), dict(held.sizes)


def resumed(text: str, told: Told) -> Labelling:
    """The labelling after all answers so far; one that contradicts another is an error."""
    work = Labelling.loads(text)
    for answers in told:
        work.tell(answers["rows"], answers["labels"])
    return work


def certifies(work: Labelling, policy: Policy) -> bool:
    """Whether the labels give this policy; earlier versions did not keep how much of the rows it lists."""
    made = work.policy.cutoffs
    before = tuple(
        replace(each, steps=tuple(replace(step, share=None) for step in each.steps)) for each in made
    )
    return policy.cutoffs in (made, before)


def status(text: str, told: Told) -> LabellingStatus:
    """What to label now, or what can be promised."""
    work = resumed(text, told)
    rows = tuple(work.ask().tolist())
    policy, refusal = None, None
    if not rows:
        try:
            policy = work.policy
        except NotCertifiable as error:
            refusal = str(error)
    future = policy is not None and isinstance(policy.cutoffs[0].target, Expected | PerPool)
    return LabellingStatus(
        work.describe(), rows, work.needs_all, policy, refusal, future, tuple(work.stages), work.listed
    )


def write_list(text: str, told: Told, collection: Path, output: Path) -> int:
    """The certified list of the collection itself, with all columns; returns its length."""
    work = resumed(text, told)
    table = open_table(collection)
    score = str((work.columns or {})["score"])
    drawn = work.drawn
    check_scores(work, table, drawn, rows_at(table, drawn), score)
    write_certified(work, work.policy, table, work.columns or {}, output)
    return count_rows(open_table(output))


def write_stage(text: str, told: Told, collection: Path, output: Path) -> int:
    """The rows to label now with all their columns and their row number, as a file; returns how many."""
    work = resumed(text, told)
    rows = work.ask().tolist()
    if rows:
        table = open_table(collection)
        fetched = rows_at(table, rows)
        check_scores(work, table, rows, fetched, str((work.columns or {})["score"]))
        write_rows(output, table, rows, fetched)
    return len(rows)


__all__ = ["ROW", "LabellingStatus", "begin", "resumed", "status", "write_list", "write_stage"]
