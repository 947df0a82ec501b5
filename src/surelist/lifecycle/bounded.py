"""What is remembered in bounded space: which pools were seen, and how many rows have which score.

*Names.* The latest are kept one by one. When there are too many, the oldest are forgotten and a name is then
accepted as new only if it comes after all forgotten ones in natural order ("pool 9" before "pool 10", dates
in order). So numbers and dates work for ever, any names work for a few thousand pools, and a replay is never
mistaken for a new pool: what is forgotten is refused, never counted twice.

*Scores.* Up to ``LIMIT`` different ones are kept as they are. Beyond that they are rounded *down* to one of
``GRID`` of them, each standing for about the same number of rows. Rounding down is safe: a threshold read off
rounded scores has at least as many rows at or above it as it claims. It costs about one part in ``GRID`` of
the list per regrid, and a regrid happens at most once between two updates.
"""

from __future__ import annotations

import numbers
import re
from functools import lru_cache

import numpy as np
from msgspec import Struct, field

from surelist._arrays import Floats, Ints
from surelist.errors import InvalidInput

CHARACTERS = 60_000  # of names and notes
LONGEST = 100
LIMIT = 4000
GRID = 2000


class Memory(Struct, forbid_unknown_fields=True, dict=True):
    """Names with a short note each. ``recall`` looks one up, ``keep`` adds one."""

    kept: dict[str, str] = field(default_factory=dict)
    forgotten: str | None = None  # the last of all forgotten names, in natural order

    def __post_init__(self) -> None:
        self._characters = sum(_cost(name, note) for name, note in self.kept.items())

    def recall(self, name: str, what: str) -> str | None:
        """The note of a known name, or None for a new one."""
        if name in self.kept:
            return self.kept[name]
        if self.forgotten is not None and natural(name) <= natural(self.forgotten):
            raise InvalidInput(
                what,
                f"cannot tell whether {name!r} was counted before; names up to {self.forgotten!r} are no "
                "longer remembered one by one. Use names that go on increasing (numbers or dates).",
            )
        return None

    def keep(self, name: str, note: str = "") -> None:
        self.kept[name] = note
        self._characters += _cost(name, note)
        while self._characters > CHARACTERS:
            oldest = next(iter(self.kept))
            self._characters -= _cost(oldest, self.kept.pop(oldest))
            if self.forgotten is None or natural(oldest) > natural(self.forgotten):
                self.forgotten = oldest


def as_name(value: object, what: str) -> str:
    """A pool or review name as text."""
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Integral)) or str(value) == "":
        raise InvalidInput(what, expected="a name or a whole number", got=repr(value))
    if len(str(value)) > LONGEST:
        raise InvalidInput(what, expected=f"at most {LONGEST} characters", got=f"{len(str(value))}")
    return str(value)


@lru_cache(maxsize=1024)
def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which digits count as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), "") if number % 2 else (1, 0, part) for number, part in enumerate(parts)]


def _cost(name: str, note: str) -> int:
    return len(name) + len(note) + 8


class Scores(Struct, forbid_unknown_fields=True):
    """``ScoreCounts`` as plain values, for a file: ``fresh`` ones were added since the last settling."""

    scores: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    rounded: bool = False
    fresh: list[float] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts) + len(self.fresh)


class ScoreCounts:
    """Scores with how often each occurs; ``add``, ``nth_largest``, ``at_least``, ``drop_below``."""

    def __init__(self, state: Scores | None = None) -> None:
        state = state or Scores()
        self.scores: Floats = np.asarray(state.scores, dtype=np.float64)
        self.counts: Ints = np.asarray(state.counts, dtype=np.int64)
        self.rounded = state.rounded
        self._fresh: list[Floats] = []
        self._waiting = 0
        self.add(np.asarray(state.fresh, dtype=np.float64))

    @property
    def state(self) -> Scores:
        """What a file keeps."""
        return Scores(self.scores.tolist(), self.counts.tolist(), self.rounded, self._arrived().tolist())

    def add(self, scores: Floats) -> None:
        """Settled in batches; when depends on how many were added only, not on saves."""
        if len(scores):
            self._fresh.append(scores)
            self._waiting += len(scores)
            if self._waiting >= LIMIT:
                self._settle()

    def nth_largest(self, count: int) -> float | None:
        """The largest score known to have ``count`` rows at or above it; None if there is none."""
        self._settle()
        above = np.cumsum(self.counts[::-1])
        rank = int(np.searchsorted(above, count))
        return float(self.scores[::-1][rank]) if rank < len(above) else None

    def at_least(self, threshold: float) -> int:
        """How many rows score at least ``threshold`` (after rounding down: no more than that)."""
        self._settle()
        return int(self.counts[np.searchsorted(self.scores, threshold) :].sum())

    def drop_below(self, threshold: float) -> None:
        """Forget lower scores. With few left, new ones are kept exactly again."""
        self._settle()
        start = int(np.searchsorted(self.scores, threshold))
        self.scores, self.counts = self.scores[start:], self.counts[start:]
        if len(self.scores) < GRID // 2:
            self.rounded = False

    def _arrived(self) -> Floats:
        """Scores added since the last settling, in the order of their arrival."""
        return np.concatenate(self._fresh) if self._fresh else np.empty(0)

    def _settle(self) -> None:
        if not self._fresh:
            return
        fresh = self._arrived()
        self._fresh, self._waiting = [], 0
        if self.rounded and len(self.scores):
            below = np.searchsorted(self.scores, fresh, side="right") - 1
            self.counts = self.counts + np.bincount(below[below >= 0], minlength=len(self.scores))
            fresh = fresh[below < 0]
        scores, inverse = np.unique(np.concatenate([self.scores, fresh]), return_inverse=True)
        weights = np.concatenate([self.counts, np.ones(len(fresh), dtype=np.int64)])
        self.scores = scores
        self.counts = np.bincount(inverse, weights=weights, minlength=len(scores)).astype(np.int64)
        if len(scores) > LIMIT:
            self._regrid()

    def _regrid(self) -> None:
        before = np.cumsum(self.counts) - self.counts  # rows strictly below each score
        _, first = np.unique(before * GRID // int(self.counts.sum()), return_index=True)
        self.scores, self.counts = self.scores[first], np.add.reduceat(self.counts, first)
        self.rounded = True
