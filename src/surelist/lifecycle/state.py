"""What is kept between two calls, as a file: strict, versioned JSON, no code in it, never half-written.

A state is a msgspec Struct that says its kind and format; ``Saved`` is what monitors, campaigns, labellings
and stop tests have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, Self, TypeVar

import msgspec

from surelist._files import Versions, parse
from surelist.drawing.display import Displayed, as_page
from surelist.errors import InvalidInput, PolicyFileError, SurelistError

FORMAT: Literal[1] = 1
Shape = TypeVar("Shape")


class Saved(Displayed):
    """Its state as text and as a file."""

    _versions: Versions  # of its file that it has read or written

    def dumps(self) -> str:
        """The state as text; ``loads`` goes on from it."""
        raise NotImplementedError

    @classmethod
    def loads(cls, text: str, name: str | Path = "state") -> Self:
        """Go on where ``dumps`` stopped; anything unknown or contradictory is an error."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the state as JSON; never half-written, and never over what someone else wrote."""
        with self.saving(path):
            pass

    def saving(self, path: str | Path) -> AbstractContextManager[None]:
        """``save`` once the block has ended well, for what has to appear before the state counts it."""
        return self._versions.replacing(Path(path), self.dumps())

    def page(self) -> str:
        """What it says of itself, as an HTML file."""
        return as_page(type(self).__name__, self._display())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Go on where ``save`` stopped; anything unknown or contradictory is an error."""
        versions = Versions()
        kept = cls.loads(versions.read(Path(path)), path)
        kept._versions = versions
        return kept


@contextmanager
def in_file(path: str | Path) -> Iterator[None]:
    """Say in errors which state file contradicts itself."""
    try:
        yield
    except SurelistError as error:
        if isinstance(error, InvalidInput) and error.field == "state":
            raise
        raise PolicyFileError("state", f"{path}: {error}") from error


def state_text(file: msgspec.Struct) -> str:
    """One line of JSON."""
    return msgspec.json.encode(file).decode() + "\n"


def parse_state(text: str, shape: type[Shape], path: str | Path) -> Shape:
    """A state file of the kind that ``shape`` describes."""
    return parse(text, shape, FORMAT, f"state: {path}")
