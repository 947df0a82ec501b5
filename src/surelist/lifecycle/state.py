"""What is kept between two calls, as a file: strict, versioned JSON, no code in it, never half-written.

``State`` is what every such file begins with, ``Saved`` what monitors, campaigns, labellings, stop tests and
validations have in common: each says which state it keeps, how it goes on from one, and no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from surelist._files import Versions, hold, parse
from surelist._version import __version__
from surelist.drawing.display import Displayed, as_page
from surelist.errors import InvalidInput, PolicyFileError, SurelistError

FORMAT: Literal[1] = 1
Share = Annotated[float, Meta(gt=0, lt=1)]
Mark = Annotated[str, Meta(pattern=r"^[01-]\Z")]
Rate = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
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
        with _in_file(name):
            state.verify()
            kept._resume(state)  # type: ignore[arg-type]
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


@contextmanager
def _in_file(path: str | Path) -> Iterator[None]:
    """Say in errors which state file contradicts itself."""
    try:
        yield
    except SurelistError as error:
        if isinstance(error, InvalidInput) and error.field == "state":
            raise
        raise PolicyFileError("state", f"{path}: {error}") from error
