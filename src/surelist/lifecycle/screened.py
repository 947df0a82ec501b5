"""Which shortlisted candidates of a campaign have been reviewed, in bounded space."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist.errors import InvalidInput

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]

CHARACTERS = 300_000  # of ids and scores that are kept; older pools are closed and forgotten
LONGEST = 100
UNKNOWN = -1


@dataclass
class Screened:
    """A pool's shortlist and its reviews: 1 qualified, 0 not, -1 not known (yet)."""

    name: str
    size: int
    look: int | None  # the look that gave the threshold; None while everyone is shortlisted
    ids: list[str]
    scores: Floats
    labels: Labels = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    closed: bool = False

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.ids):
            self.labels = np.full(len(self.ids), UNKNOWN, dtype=np.int8)

    @property
    def unknown(self) -> int:
        return int(np.count_nonzero(self.labels == UNKNOWN))

    @property
    def done(self) -> bool:
        return self.closed or self.unknown == 0

    @property
    def at_most_qualified(self) -> int:
        """Missing reviews of a closed pool count as qualified: fewer alarms, never more."""
        return int(np.count_nonzero(self.labels != 0))

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


class Reviews:
    """The latest pools of a campaign; ``waiting`` are those the monitor has not seen yet.

    The oldest pools are dropped when all together take too much space. One that still waits for
    reviews is closed first; it stays in the evidence with them as not qualified.
    """

    def __init__(self, missing: int = 0) -> None:
        self.kept: dict[str, Screened] = {}
        self.waiting: deque[str] = deque()
        self.missing = missing  # labels and reviews that have not come, of all rows so far
        self.watched: int | None = None  # the look under which the monitor's last pool was screened
        self._cost = 0

    def open(self, screened: Screened) -> None:
        self.kept[screened.name] = screened
        self.waiting.append(screened.name)
        self.missing += screened.unknown
        self._cost += screened.cost

    def find(self, name: str, known: bool) -> Screened | None:
        """The pool, or None if it was screened, is done and no longer kept."""
        if name not in self.kept and not known:
            raise InvalidInput(f"pool: no pool {name!r} was screened in this campaign.")
        return self.kept.get(name)

    def add(self, screened: Screened, labels: Any, ids: Any) -> tuple[int, Floats]:
        """How many reviews are new, and the scores of those that are qualified."""
        places, given = self._match(screened, labels, ids)
        known = screened.labels[places]
        wrong = (known != UNKNOWN) & (known != given)
        if wrong.any():
            which = int(places[int(wrong.argmax())])
            raise InvalidInput(
                f"labels: candidate {screened.ids[which]!r} of pool {screened.name!r} was reviewed as "
                f"{screened.labels[which]} before. Evidence that was used cannot be taken back; start a new "
                "campaign on fresh rows if earlier reviews were wrong."
            )
        new = known == UNKNOWN
        if new.any() and screened.closed:
            raise InvalidInput(
                f"pool: {screened.name!r} was closed; its late reviews are not counted any more."
            )
        screened.labels[places] = given
        self.missing -= int(np.count_nonzero(new))
        return int(np.count_nonzero(new)), screened.scores[places[new & (given == 1)]]

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
            screened.closed = True
            cost -= screened.cost

    def _drop(self) -> None:
        while self._cost > CHARACTERS and len(self.kept) > 1:
            oldest = next(iter(self.kept.values()))
            if self.waiting and oldest.name == self.waiting[0]:  # both are in the order of screening
                break
            self._cost -= oldest.cost
            del self.kept[oldest.name]

    def _match(self, screened: Screened, labels: Any, ids: Any) -> tuple[NDArray[np.intp], Labels]:
        column = check._column(labels, "labels")
        qualified, missing = check.as_labels(column, missing="unqualified")
        absent = (
            np.isnan(check._numbers(column, "labels")) if missing else np.zeros(len(qualified), dtype=bool)
        )
        if ids is None:
            if len(qualified) != len(screened.ids):
                raise InvalidInput(
                    f"labels: expected {len(screened.ids)} values, one per shortlisted candidate of pool "
                    f"{screened.name!r}, got {len(qualified)}. Pass ids= for a part of them."
                )
            places = np.arange(len(qualified))
        else:
            place = {text: row for row, text in enumerate(screened.ids)}
            texts = check.as_ids(ids, len(qualified))
            unknown = [text for text in texts if text not in place]
            if unknown:
                raise InvalidInput(
                    f"ids: {unknown[0]!r} is not on the shortlist of pool {screened.name!r} "
                    f"({len(unknown)} such). Only shortlisted candidates are reviewed."
                )
            places = np.asarray([place[text] for text in texts], dtype=np.intp)
        keep = ~absent
        return places[keep], qualified[keep].astype(np.int8)
