"""Use cases of labelling, stopping and validating on files: the only code their front ends call.

How a table becomes a collection is in ``label_tables``. A sheet to fill in has the rows' own columns, their
row number and an empty label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelist._files import updating, writing
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.lifecycle import validation
from surelist.lifecycle.labelling import Labelling
from surelist.lifecycle.stopping import StopTest, plan_stop as plan_stop
from surelist.lifecycle.validation import Validation
from surelist.promises.policy import Policy
from surelist.tables.arrays import read_text
from surelist.tables.output import Row, meant_by, rows_at, write_sheet
from surelist.tables.reading import reading_of
from surelist.tables.sources import Table, open_table
from surelist.workflows import label_tables as tables
from surelist.workflows.lifecycle import read_labels

ROW = "surelist_row"
Changed = dict[int, tuple[float | None, float]]  # labels that were told and are another now, by row
Asking = Labelling | StopTest | Validation
STATES: dict[str, type[Asking]] = {"label": Labelling, "stop": StopTest, "validate": Validation}  # by command


def start_labelling(
    collection: Path, state: Path, target: Any, *, labels: int, score: str, judge: str | None = None,
    **options: Any,
) -> Labelling:  # fmt: skip
    """Draw what is to be labelled; an existing state is not overwritten.

    With ``judge`` the score is made from this column of verdicts, in a table beside the state.
    """
    _require_new(state)
    if judge is not None:
        beside = state.with_suffix(".judged.csv")
        _require_new(beside)
        collection = tables.judged_table(collection, judge, options.get("id"), beside)
        score = tables.JUDGED
    work = tables.label_table(Path(collection).absolute(), target, labels=labels, score=score, **options)
    work.save(state)
    return work


def how_read(work: Labelling) -> tuple[str, ...]:
    """What was understood of its table, in sentences."""
    table, columns = tables.open_collection(work)
    return reading_of(table, {"score": columns["score"]}).sentences


def next_sheet(command: str, state: Path, output: Path, *, count: int | None, label: str) -> int:
    """Write a sheet with the rows to label now; returns how many. Asking again gives the same rows.

    That of a validation is without its decisions.
    """
    work, hidden = STATES[command].load(state), None
    rows = work.ask(count).tolist()
    if not rows:
        return 0
    if isinstance(work, Labelling):
        table, _ = tables.open_collection(work)
        fetched = tables.drawn_rows(table, work, rows)
    elif work.table is None:
        raise InvalidInput("state", f"{state} was started without a table; ask() names its rows.")
    else:
        table = open_table(work.table)
        if isinstance(work, Validation):
            _check_decisions(work, rows)
            hidden = work.column
        elif (there := table.count()) != work.state.rest:
            raise InvalidInput(
                "table",
                f"{table.name} has {there:,} rows, and had {work.state.rest:,} when the test began. A test "
                "is about what was left then; to go on, put that back, its rows in their order.",
            )
        fetched = rows_at(table, rows)
    write_rows(output, table, rows, fetched, label, hidden)
    return len(rows)


def record_sheet(
    command: str, state: Path, sheet: Path, *, label: str, final: bool, correct: bool = False
) -> tuple[Any, int, int]:
    """Take a sheet back; what it belongs to, how many labels are new and how many were corrected.

    Blank labels are still to come, or with ``final`` will not come.
    A label that differs from the one on record is refused, or with ``correct`` replaces it, as long as
    nothing rests on it. Those of a stop test count in the order of drawing.
    """
    with updating(state):
        work = STATES[command].load(state)
        given = _read_sheet(open_table(sheet), label, work)
        asked = work.order if isinstance(work, StopTest) else work.ask().tolist()
        if strangers := sorted(given.keys() - work.told.keys() - set(asked)):
            raise InvalidInput(f"column {ROW!r}", f"row {strangers[0]} was not drawn; use the sheet of next.")
        before, changed = len(work.told), _changed(work.told, given)
        if changed and not correct:
            raise InvalidInput("labels", _difference(changed))
        if isinstance(work, StopTest):
            _tell_in_order(work, given, changed, final=final)
        else:
            _tell(work, given, changed, final=final)
        work.save(state)
    return work, len(work.told) - before, len(changed)


def _tell(
    work: Labelling | Validation, given: Mapping[int, float | None], changed: Changed, *, final: bool
) -> None:
    if isinstance(work, Labelling):  # a validation corrects what it is told again
        work.correct([*changed], [now for _, now in changed.values()])
    known = {row: mark for row, mark in given.items() if mark is not None}
    if known:
        work.tell([*known], [*known.values()])
    waiting = set(work.ask().tolist()) if final else set()
    gone = [row for row, mark in given.items() if mark is None and row in waiting]
    if gone:
        work.tell(gone, [None] * len(gone))


def load(command: str, state: Path) -> Any:
    """Read and verify a state; that the result of a finished labelling is seen goes on record."""
    work = STATES[command].load(state)
    if isinstance(work, Labelling) and work.done and not work.seen:
        with updating(state):
            work = Labelling.load(state)
            work.see()
            work.save(state)
    return work


def finish_labelling(work: Labelling, *, policy: Path | None, shortlist: Path | None) -> Policy:
    """The certified policy, written where asked for; and the list of the collection itself."""
    made = work.policy
    if policy is not None:
        made.save(policy)
    if shortlist is not None:
        tables.write_certified(work, made, tables.open_collection(work)[0], shortlist)
    return made


def start_stop(
    rest: Path, state: Path, *, found: int | None = None, decided: str | None = None, **options: Any
) -> StopTest:
    """Plan the looks at the table of what was not reviewed, and draw from it.

    With ``decided`` the table has everything, and this column the decisions of the review: 1, 0, or blank for
    what was not reviewed, which is written to a table of its own beside the state.
    """
    _require_new(state)
    if (found is None) == (decided is None):
        raise InvalidInput(
            "found",
            f"give {option('found')}, how many relevant items the review has found; or "
            f"{option('decided')}, the column with its decisions in a table of everything.",
        )
    if decided is None:
        table, path = open_table(rest), rest
        left: Sequence[Any] = range(table.count())
        where, empty = table.name, "has no rows"
    else:
        _require_new(path := state.with_suffix(".rest.csv"))
        table, marks = _decisions(rest, decided)
        undecided = rows_at(table, [row for row, mark in enumerate(marks) if mark is None])
        # Excel may save some that are blank
        left = [row for row in undecided if any(cell not in (None, "") for cell in row)]
        found = marks.count(1.0)
        where, empty = f"column {decided!r}", "every row has a decision"
    if not left:
        raise InvalidInput(where, f"{empty}; nothing is left to test.")
    test = StopTest(found or 0, len(left), table=str(Path(path).absolute()), **options)
    if decided is not None:
        write_sheet(path, table.titles, left, table.paths)
    test.save(state)
    return test


def _decisions(export: Path, decided: str) -> tuple[Table, list[float | None]]:
    """A table of everything, and the decision of every row; None where there is none."""
    table = open_table(export)
    return table, read_labels(table, decided, "decided")


def plan_validation(
    table: Path, *, decided: str, recall: float, sample: tuple[int, ...], alpha: float
) -> str:
    """What samples can certify of the decisions in a table, in words."""
    _, marks = _decisions(table, decided)
    kept = marks.count(1.0)
    return validation.describe_plan(kept, len(marks) - kept, recall, sample, alpha)


def start_validation(table: Path, state: Path, *, decided: str, **options: Any) -> Validation:
    """Draw from the rows that were kept and from those left out; an existing state is not overwritten."""
    _require_new(state)
    _, marks = _decisions(table, decided)
    test = Validation(marks, table=str(Path(table).absolute()), column=decided, **options)
    test.save(state)
    return test


def write_report(work: Asking, output: Path) -> None:
    """What a labelling or a test says of itself as one HTML page."""
    if output.suffix.lower() != ".html":
        raise InvalidInput("output", expected="a name ending in .html", got=repr(output.name))
    with writing(output) as temporary:
        temporary.write_text(work.page(), encoding="utf-8")


def _tell_in_order(
    test: StopTest, by_row: Mapping[int, float | None], changed: Changed, *, final: bool
) -> None:
    test.correct([*changed], [now for _, now in changed.values()])
    if test.certified:  # the sheet holds what is known
        return
    known: list[float | None] = []
    waiting = test.order[test.drawn :]
    for row in waiting:
        mark = by_row.get(row)
        if mark is None and not (final and row in by_row):
            break
        known.append(mark)
    later = [row for row in waiting[len(known) :] if by_row.get(row) is not None]
    if later:
        raise InvalidInput(
            "labels",
            f"row {later[0]} has a label, and one drawn before it has none. Labels count in the order of "
            "the sheet; fill the gap, or say that it stays blank (--final).",
        )
    if known:
        test.tell(known)


def _changed(told: Mapping[int, float | None], given: Mapping[int, float | None]) -> Changed:
    """Rows whose label on record is another than the one given now: both; a blank says nothing."""
    known = {row: now for row, now in given.items() if now is not None and row in told}
    return {row: (told[row], now) for row, now in known.items() if told[row] != now}


def _difference(changed: Changed) -> str:
    words: dict[float | None, str] = {None: "missing", 0: "0", 1: "1"}
    pairs = ((row, words[was], words[now]) for row, (was, now) in changed.items())
    named = [f"row {row} is {was} on record and {now} here" for row, was, now in pairs]
    more = f", and {len(named) - 5:,} more" if len(named) > 5 else ""
    return (
        f"{'; '.join(named[:5])}{more}. Nothing was recorded. If the sheet is right, record it with "
        f"{option('correct')}, which keeps both on record; if not, mend the sheet."
    )


def _require_new(state: Path) -> None:
    if state.exists():
        raise InvalidInput(
            "output", f"{state} exists. A draw is made once: go on with it, or give a new one another name."
        )


def _check_decisions(test: Validation, rows: list[int]) -> None:
    """The table must still have the decisions that were drawn from, read as they were then."""
    if test.table is None or test.column is None:
        return
    (_, marks), kept = _decisions(Path(test.table), test.column), test.decisions
    for row in rows:
        if row >= len(marks) or (marks[row] == 1) != kept[row]:
            raise InvalidInput(
                "table",
                f"the decisions in the table are no longer those that were drawn from (row {row + 1}, column "
                f"{test.column!r}). A validation is about the decisions it was started with.",
            )


def write_rows(
    output: Path, table: Table, rows: list[int], fetched: list[Row], label: str | None = None,
    hidden: str | None = None,
) -> None:  # fmt: skip
    """Drawn rows with their row number and all columns but a hidden one; with a ``label``, one of that name
    to fill in."""
    if ROW in (name.lower() for name in table.titles):
        raise InvalidInput(f"column {ROW!r}", "the table has one already; rename it.")
    dropped = {name.lower() for name in (label, hidden) if name is not None}  # DuckDB ignores case
    kept = [index for index, name in enumerate(table.titles) if name.lower() not in dropped]
    added = [] if label is None else [label]
    header = [ROW, *(table.titles[index] for index in kept), *added]
    pairs = zip(rows, fetched, strict=True)
    body = [[row, *(cells[index] for index in kept), *(None for _ in added)] for row, cells in pairs]
    write_sheet(output, header, body, table.paths)


def _read_sheet(sheet: Table, label: str, work: Asking) -> dict[int, float | None]:
    """The labels of a sheet by row; None for a blank one. Its rows are those drawn, by number and by id."""
    roles, drawn = {"rows": ROW}, dict[int, str]()
    if isinstance(work, Labelling) and (ident := (work.columns or {}).get("id")) in sheet.columns:
        roles["id"], drawn = str(ident), dict(zip(work.drawn, work.ids(work.drawn), strict=True))
    read, marks, meant = read_text(sheet, roles), read_labels(sheet, label), meant_by(drawn.values())
    labels: dict[int, float | None] = {}
    for line, (text, mark) in enumerate(zip(read["rows"], marks, strict=True)):
        number = (text or "").strip().removesuffix(".0")
        if not number and mark is None:
            continue  # a blank row, as Excel may save it
        if not number.isdecimal():
            got = f"{text!r} in {sheet.place(line)}"
            raise InvalidInput(f"column {ROW!r}", expected="the row number of the sheet", got=got)
        row, name = int(number), drawn.get(int(number))
        if row in labels:
            raise InvalidInput(f"column {ROW!r}", f"row {row} appears twice in {sheet.name}.")
        if name is not None and meant(there := read["id"][line] or "") != name:
            raise InvalidInput(
                f"column {roles['id']!r}",
                f"{sheet.place(line)} has {there!r} beside {ROW} {row}, who is {name!r}. Rows were mixed up "
                "there, perhaps by sorting some columns alone: write the sheet again. Where only the "
                "spelling of the ids changed, delete their column.",
            )
        labels[row] = mark
    return labels
