"""A labelling whose state is kept as text and answers elsewhere: for the app, whose record holds both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from surelist.errors import InvalidInput, NotCertifiable
from surelist.lifecycle.labelling import Labelling
from surelist.promises.policy import Policy
from surelist.promises.promise import Promise
from surelist.tables.output import rows_at
from surelist.tables.sources import open_table
from surelist.workflows.label_tables import drawn_rows, label_table, write_certified
from surelist.workflows.labelling import ROW as ROW, write_rows


class Told(NamedTuple):
    """Answers: rows and their labels, None for one that will not come."""

    rows: list[int]
    labels: list[int | None]


class LabellingStatus(Struct, frozen=True):
    """Where a labelling stands."""

    description: str
    waiting: tuple[int, ...]  # rows to label now
    needs_all: bool  # whether a label that does not come is an error
    policy: Policy | None
    refusal: str | None
    future: bool  # a promise about future pools, not about the list of this very collection
    # group, name, labels here, asked for, qualified
    stages: tuple[tuple[str | None, str, int, int, int], ...] = ()
    listed: int | None = None  # of the collection
    most_looks: int | None = None  # of a triage whose labels are all here

    @property
    def done(self) -> bool:
        return not self.waiting

    @property
    def stage(self) -> str:
        """Tells the stages apart: each group goes on from its pilot once."""
        return str(len(self.stages))


def resumed(text: str, marks: str = "") -> Labelling:
    """The labelling after all answers that count: ``marks`` has one sign per drawn row, in their order."""
    work = Labelling.loads(text)
    drawn = work.drawn
    if marks and len(marks) != len(drawn):
        raise InvalidInput("marks", expected=f"one for each of {len(drawn):,} rows", got=f"{len(marks):,}")
    given = {row: _LABELS[mark] for row, mark in zip(drawn, marks, strict=False) if mark != "?"}
    while rows := [row for row in work.ask().tolist() if row in given]:  # stage by stage
        work.tell(rows, [given.pop(row) for row in rows])
    if given:
        raise InvalidInput("marks", f"row {next(iter(given))} has one, but was never asked for.")
    return work


def correct(work: Labelling, told: Told) -> None:
    """Labels in the place of others, all or none of them, as long as nothing rests on those."""
    work.describe()  # where all answers are in, the app has shown the result
    if not work.correct(told.rows, told.labels):
        raise InvalidInput("labels", "they are those on record already; there is nothing to correct.")


_LABELS = {"-": None, "0": 0, "1": 1}


def begin(collection: Path, target: Promise, **asked: Any) -> tuple[str, dict[str | None, int]]:
    """Draw what may be asked; the state as text, and how many candidates there are, by group.

    ``asked`` is as for ``label_table``. With groups the same is promised to each of them.
    """
    work = label_table(open_table(collection), target, **asked)
    return work.dumps(), {design.group: design.size for design in work.state.designs}


def status(text: str, marks: str) -> LabellingStatus:
    """What to label now, or what can be promised."""
    return _status(resumed(text, marks))


def told(text: str, marks: str, answers: Told, again: bool = False) -> tuple[str, LabellingStatus]:
    """The marks after these answers, or ``again`` after these corrections, and where it stands then."""
    work = resumed(text, marks)
    if again:
        correct(work, answers)
    else:
        waiting = set(work.ask().tolist())
        if (other := next((row for row in answers.rows if row not in waiting), None)) is not None:
            raise InvalidInput(
                "labels", f"row {other:,} is not asked for now. Ask which are, and label those."
            )
        work.tell(answers.rows, answers.labels)
    return work.marks, _status(work)


def answered_row(text: str, marks: str, collection: Path, column: str, candidate: str) -> int:
    """The row of a candidate whose answer counts; ``column`` has the names, or is the row number itself."""
    told = list(resumed(text, marks).told)
    names = told if column == ROW else [each[0] for each in rows_at(open_table(collection), told, [column])]
    for row, name in zip(told, names, strict=True):
        if str(name) == candidate:
            return row
    raise InvalidInput("candidate", f"no answer of {candidate[:80]!r} counts yet; there is none to correct.")


def _status(work: Labelling) -> LabellingStatus:
    rows, policy, refusal = tuple(work.ask().tolist()), None, None
    try:
        policy = None if rows else work.policy
    except NotCertifiable as error:
        refusal = str(error)
    future = policy is not None and not policy.of_collection
    return LabellingStatus(
        work.describe(), rows, work.needs_all, policy, refusal, future, tuple(work.stages), work.listed,
        work.most_looks,
    )  # fmt: skip


def report(text: str, marks: str, name: str) -> str:
    """What it says of itself as one HTML page."""
    return resumed(text, marks).page(name)


def write_list(text: str, marks: str, collection: Path, output: Path) -> int:
    """The certified list of the collection itself, with all columns; returns its length."""
    work = resumed(text, marks)
    write_certified(work, work.policy, open_table(collection), output)
    return work.listed or 0


def write_stage(text: str, marks: str, collection: Path, output: Path) -> int:
    """The rows to label now with all their columns and their row number, as a file; returns how many."""
    work = resumed(text, marks)
    rows = work.ask().tolist()
    if rows:
        table = open_table(collection)
        write_rows(output, table, rows, drawn_rows(table, work, rows))
    return len(rows)
