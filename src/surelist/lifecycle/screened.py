"""Which shortlisted candidates of a campaign have been reviewed, in bounded space."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput, UnreviewedWarning

Floats = NDArray[np.float64]
Marks = NDArray[np.uint8]

CHARACTERS = 300_000  # of ids and scores that are kept; older pools are closed and forgotten
LONGEST = 100
UNKNOWN, QUALIFIED, OTHER = "?", "1", "0"  # the mark of each shortlisted candidate


@dataclass
class Screened:
    """A pool's shortlist and its reviews; ``labels`` has one mark per candidate."""

    pool: str
    size: int
    look: int | None  # the look that gave the threshold; None while everyone is shortlisted
    ids: list[str]
    scores: list[float]
    labels: str
    closed: bool = False

    @property
    def unknown(self) -> int:
        return self.labels.count(UNKNOWN)

    @property
    def done(self) -> bool:
        return self.closed or self.unknown == 0

    @property
    def qualified(self) -> int:
        """How many are known to be qualified."""
        return self.labels.count(QUALIFIED)

    @cached_property
    def cost(self) -> int:
        return 60 + sum(map(len, self.ids)) + 30 * len(self.ids)


def as_candidates(ids: Any, rows: int) -> list[str]:
    """Candidate ids as text, unique and short enough to be kept."""
    texts = check.as_ids(ids, rows)
    for text in texts:
        if len(text) > LONGEST:
            raise InvalidInput(f"ids: expected at most {LONGEST} characters, got {text!r}.")
    return texts


class PoolReviews:
    """The latest pools of a campaign; ``waiting`` are those the monitor has not seen yet.

    The oldest pools are dropped when all together take too much space. One that still waits for
    reviews is closed first; it stays in the evidence with them as not qualified.
    """

    def __init__(
        self,
        screened: Iterable[Screened] = (),
        waiting: Iterable[str] = (),
        missing: int = 0,
        watched: int | None = None,
    ) -> None:
        self.kept = {each.pool: each for each in screened}
        self.waiting = deque(waiting)
        self.missing = missing  # labels and reviews that have not come, of all rows so far
        self.watched = watched  # the look under which the monitor's last pool was screened
        self._cost = sum(each.cost for each in self.kept.values())

    def open(self, screened: Screened) -> None:
        self.kept[screened.pool] = screened
        self.waiting.append(screened.pool)
        self.missing += screened.unknown
        self._cost += screened.cost

    def find(self, name: str, known: bool) -> Screened | None:
        """The pool, or None if it was screened, is done and no longer kept."""
        if name not in self.kept and not known:
            raise InvalidInput(f"pool: no pool {name!r} was screened in this campaign.")
        return self.kept.get(name)

    def add(self, screened: Screened, labels: Any, ids: Any) -> tuple[int, Floats]:
        """How many reviews are new, and the scores of those that are qualified."""
        rows, given = _match(screened, labels, ids)
        marks = np.frombuffer(screened.labels.encode(), dtype=np.uint8).copy()
        before = marks[rows]
        new = before == ord(UNKNOWN)
        _refuse_changes(screened, rows[~new & (before != given)])
        if new.any() and screened.closed:
            raise InvalidInput(
                f"pool: {screened.pool!r} was closed; its late reviews are not counted any more."
            )
        marks[rows] = given
        screened.labels = marks.tobytes().decode()
        count = int(np.count_nonzero(new))
        self.missing -= count
        return count, np.asarray(screened.scores)[rows[new & (given == ord(QUALIFIED))]]

    def close(self, screened: Screened) -> int:
        screened.closed = True
        return screened.unknown

    def ready(self) -> Iterator[Screened]:
        """Complete pools, in the order of screening; stops at the first that is not."""
        self._make_room()
        while self.waiting and self.kept[self.waiting[0]].done:
            yield self.kept[self.waiting.popleft()]
        self._drop()

    def _make_room(self) -> None:
        """Close what is too old to be waited for."""
        cost = self._cost
        for screened in islice(self.kept.values(), len(self.kept) - 1):
            if cost <= CHARACTERS:
                break
            cost -= screened.cost
            if not screened.done:
                screened.closed = True
                warnings.warn(
                    f"pool {screened.pool!r} is closed to make room for newer ones: {screened.unknown} of "
                    "its reviews have not come. They stay not qualified in the evidence, and unknown to the "
                    "monitor.",
                    UnreviewedWarning,
                    stacklevel=5,
                )

    def _drop(self) -> None:
        while self._cost > CHARACTERS and len(self.kept) > 1:
            oldest = next(iter(self.kept.values()))
            if self.waiting and oldest.pool == self.waiting[0]:  # both are in the order of screening
                break
            self._cost -= oldest.cost
            del self.kept[oldest.pool]


def _match(screened: Screened, labels: Any, ids: Any) -> tuple[NDArray[np.intp], Marks]:
    """Which rows of the shortlist were reviewed, and the mark of each."""
    column = check._column(labels, "labels")
    qualified, missing = check.as_labels(column, missing="unqualified")
    present = ~np.isnan(check._numbers(column, "labels")) if missing else np.ones(len(qualified), dtype=bool)
    rows = _rows(screened, ids, len(qualified))
    marks = np.where(qualified, ord(QUALIFIED), ord(OTHER)).astype(np.uint8)
    return rows[present], marks[present]


def _rows(screened: Screened, ids: Any, labels: int) -> NDArray[np.intp]:
    if ids is None:
        if labels != len(screened.ids):
            raise InvalidInput(
                f"labels: expected {len(screened.ids)} values, one per shortlisted candidate of pool "
                f"{screened.pool!r}, got {labels}. Pass ids= for a part of them."
            )
        return np.arange(labels)
    row_of = {text: row for row, text in enumerate(screened.ids)}
    texts = check.as_ids(ids, labels)
    unknown = [text for text in texts if text not in row_of]
    if unknown:
        raise InvalidInput(
            f"ids: {unknown[0]!r} is not on the shortlist of pool {screened.pool!r} "
            f"({len(unknown)} such). Only shortlisted candidates are reviewed."
        )
    return np.asarray([row_of[text] for text in texts], dtype=np.intp)


def _refuse_changes(screened: Screened, rows: NDArray[np.intp]) -> None:
    for row in rows[:1]:
        raise InvalidInput(
            f"labels: candidate {screened.ids[row]!r} of pool {screened.pool!r} was reviewed as "
            f"{screened.labels[row]} before. Evidence that was used cannot be taken back; start a new "
            "campaign on fresh rows if earlier reviews were wrong."
        )
