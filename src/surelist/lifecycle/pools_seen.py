"""Which pools were seen, in bounded space. What is forgotten is refused, never counted twice.

The latest names are kept one by one. When there are too many, the oldest are forgotten and a
name is then accepted as new only if it comes after all forgotten ones in natural order ("pool
9" before "pool 10", dates in order). So numbers and dates work for ever, any names work for a
few thousand pools, and a replay is never mistaken for a new pool.
"""

from __future__ import annotations

import numbers
import re
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from surelist.errors import InvalidInput

CHARACTERS = 60_000
LONGEST = 100


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


def as_name(value: Any, what: str) -> str:
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
