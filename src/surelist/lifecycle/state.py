"""What is kept between two calls, as a file: strict, versioned JSON, no code in it, never half-written.

``State`` is what every such file begins with, ``Saved`` what monitors, campaigns, labellings, stop tests and
validations have in common: each says which state it keeps, how it goes on from one, and no more. Two parts of
states take bounded space:

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
from collections.abc import Collection
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from surelist._arrays import Floats, Ints
from surelist._files import Versions, hold, parse
from surelist._version import __version__
from surelist.drawing.display import Displayed, as_page
from surelist.errors import InvalidInput, PolicyFileError, SurelistError

FORMAT: Literal[1] = 1
CHARACTERS = 60_000  # of names and notes
LONGEST = 100
LIMIT = 4000
GRID = 2000
Mark = Annotated[str, Meta(pattern=r"^[01-]\Z")]
Rate = Annotated[float, Meta(gt=0, le=1)]
Positive = Annotated[int, Meta(gt=0)]


def now() -> str:
    """The time at which something is made, as files say it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class State(Struct, kw_only=True, forbid_unknown_fields=True):
    """What every state file says first; a kind of it adds its name and its fields."""

    format: Literal[1] = FORMAT
    created: str = field(default_factory=now)
    version: str = __version__

    def verify(self) -> None:
        """Raise where the file contradicts itself."""


class Correction(Struct, frozen=True, forbid_unknown_fields=True):
    """A label that was corrected: what it was, what it is said to be, and how many had come by then."""

    row: int
    was: Mark
    now: Mark
    labels: Positive


def verify_corrections(corrected: list[Correction], rows: Collection[int]) -> None:
    """Every correction is of a label that may have been told."""
    hold(all(each.row in rows for each in corrected), "a correction is of none of its rows")


Kept = TypeVar("Kept", bound=State)


class Saved(Displayed, Generic[Kept]):
    """Its state as text and as a file."""

    _shape: ClassVar[type[State]]
    _state: Kept
    _versions: Versions  # of its file that it has read or written

    @property
    def state(self) -> Kept:
        """All that is needed to go on later, as plain values."""
        return self._state

    def _resume(self, state: Kept) -> None:
        """Go on from a state; what does not add up is an error."""
        self._state, self._versions = state, Versions()

    def dumps(self) -> str:
        """The state as text; ``loads`` goes on from it."""
        return msgspec.json.encode(self.state).decode() + "\n"

    @classmethod
    def loads(cls, text: str, name: str | Path = "state") -> Self:
        """Go on where ``dumps`` stopped; anything unknown or contradictory is an error."""
        kept = cls.__new__(cls)
        state = parse(text, cls._shape, FORMAT, f"state: {name}")
        try:
            state.verify()
            kept._resume(state)  # type: ignore[arg-type]
        except SurelistError as error:  # says which file contradicts itself
            if isinstance(error, InvalidInput) and error.field == "state":
                raise
            raise PolicyFileError("state", f"{name}: {error}") from error
        return kept

    def save(self, path: str | Path) -> None:
        """Write the state as JSON; never half-written, and never over what someone else wrote."""
        with self.saving(path):
            pass

    def saving(self, path: str | Path) -> AbstractContextManager[None]:
        """``save`` once the block has ended well, for what has to appear before the state counts it."""
        return self._versions.replacing(Path(path), self.dumps())

    def page(self, name: str | None = None) -> str:
        """What it says of itself, as an HTML file with this name."""
        return as_page(name or type(self).__name__, self._display())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Go on where ``save`` stopped; anything unknown or contradictory is an error."""
        versions = Versions()
        kept = cls.loads(versions.read(Path(path)), path)
        kept._versions = versions
        return kept


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
