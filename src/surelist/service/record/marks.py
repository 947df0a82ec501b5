"""Who marked which candidate as what, folded from the reviews on record, and kept for the next question.

A mark is yes or no; it may be taken back, and one that settles a disagreement stands above all others.
Nothing is stored twice: reviews are read from the record once, and then only those that were added.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from surelist.service.record.database import Database

NO, YES, TAKEN_BACK, SETTLED_NO, SETTLED_YES = 0, 1, 2, 4, 5
QUALIFIED = (YES, SETTLED_YES)
CODES = (NO, YES, TAKEN_BACK, SETTLED_NO, SETTLED_YES)
# what ``Marks.take`` takes
MARKS = "SELECT r.candidate, r.qualified, r.seq, l.actor, l.at FROM reviews r JOIN log l ON l.seq = r.seq"
SELECTIONS = 32  # kept in memory
Status = Literal["open", "yes", "no", "split", "seen"]


class Mark(NamedTuple):
    """One reviewer's mark of one candidate that counts now."""

    qualified: bool
    reviewer: str
    at: str
    settles: bool = False


class Marks:
    """The marks of one selection, up to the entry ``seq``."""

    def __init__(self) -> None:
        self.seq = 0
        self._marks: dict[str, dict[str, Mark]] = {}
        self._settled: dict[str, Mark] = {}
        self._status: dict[str, Status] = {}

    def take(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Reviews in the order of the record: candidate, code, entry, who and when."""
        for candidate, code, seq, reviewer, at in rows:
            marks = self._marks.setdefault(candidate, {})
            mark = Mark(code in QUALIFIED, reviewer, at, code >= SETTLED_NO)
            if code == TAKEN_BACK:
                marks.pop(reviewer, None)
            elif mark.settles:
                self._settled[candidate] = mark
            else:
                marks[reviewer] = mark
            self.seq = seq
            status = self._worked_out(candidate)
            if status == "open":
                self._status.pop(candidate, None)
            else:
                self._status[candidate] = status

    def _worked_out(self, candidate: str) -> Status:
        settled = self._settled.get(candidate)
        opinions = {mark.qualified for mark in self._marks[candidate].values()}
        if settled is not None:
            opinions = {settled.qualified}
        if len(opinions) == 2:
            return "split"
        return "open" if not opinions else "yes" if opinions == {True} else "no"

    @property
    def ever(self) -> set[str]:
        """Whoever was marked at any time, also where it was taken back."""
        return set(self._marks)

    def status(self, candidate: str) -> Status:
        """What is known: nobody has marked, all say yes, all say no, or they disagree."""
        return self._status.get(candidate, "open")

    def seen_by(self, candidate: str, reviewer: str | None) -> Status:
        """The same as far as a reviewer may know it: "seen" where others have marked and they have not yet.

        Disagreements and what was settled are for everyone; None is somebody who marks nobody.
        """
        status = self.status(candidate)
        if reviewer is None or status in ("open", "split") or candidate in self._settled:
            return status
        return status if self.by(candidate, reviewer) is not None else "seen"

    def of(self, candidate: str) -> list[Mark]:
        """The marks of a candidate that count, oldest first; what settles comes last."""
        settled = self._settled.get(candidate)
        marks = sorted(self._marks.get(candidate, {}).values(), key=lambda mark: mark.at)
        return marks if settled is None else [*marks, settled]

    def by(self, candidate: str, reviewer: str) -> Mark | None:
        return self._marks.get(candidate, {}).get(reviewer)

    def counts(self, reviewer: str | None = None) -> dict[str, int]:
        """How many candidates are yes, no, split, or seen by others than this reviewer."""
        counted = Counter(self.seen_by(each, reviewer) for each in list(self._status))
        return {status: counted[status] for status in ("yes", "no", "split", "seen")}

    def reviewers(self) -> dict[str, int]:
        """How many candidates each reviewer has marked."""
        return dict(Counter(name for marks in list(self._marks.values()) for name in list(marks)))

    def outcomes(self) -> dict[str, bool]:
        """Qualified or not, of candidates about whom nobody disagrees."""
        return {name: each == "yes" for name, each in list(self._status.items()) if each != "split"}


class MarksOnRecord:
    """The marks of selections; the latest used are kept, and only new rows are read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[str, Marks] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, selection: str) -> Marks:
        with self._lock:
            marks = self._known.pop(selection, None) or Marks()
            marks.take(self._rows(selection, marks.seq))
            self._known[selection] = marks
            while len(self._known) > SELECTIONS:
                self._known.popitem(last=False)
            return marks

    def _rows(self, selection: str, after: int) -> list[tuple[Any, ...]]:
        where = "WHERE r.selection = ? AND r.seq > ? ORDER BY r.seq, r.candidate"
        return self._database.read(f"{MARKS} {where}", [selection, after])
