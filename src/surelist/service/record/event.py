"""What every event of the record answers: its fields, its sentence, and what verifying asks of it.

An event is one class in ``events``; its fields are what the log stores of it. A kind that is not known
here is shown by its code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from surelist._numerals import count

if TYPE_CHECKING:
    from surelist.service.record.chain import Entry
    from surelist.service.record.story import Story


class Piece(NamedTuple):
    """A part of a sentence; with an address it is a link."""

    text: str
    href: str | None = None


Words = list["str | Piece"]


class Names(Protocol):
    """What things are called now."""

    def policy(self, digest: str) -> Piece: ...
    def reviewed(self, ident: str) -> Piece:
        """A shortlist, a labelling or a pool of a campaign."""

    def campaign(self, ident: str) -> Piece: ...
    def token(self, ident: str) -> str: ...
    def marks(self, seq: int) -> Mapping[int, int]:
        """How many candidates an entry marked with which code, as far as a reader may know it."""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One kind of entry. ``looked_at`` are words for one, for many, and for what verifying looks at."""

    action: ClassVar[str]
    looked_at: ClassVar[tuple[str, str, str] | None] = None

    def __init_subclass__(cls) -> None:
        if isinstance(cls.__dict__.get("action"), str):
            KINDS[cls.action] = cls

    def details(self) -> str:
        """What the log stores: text from which the event can be read again, or an error."""
        text = msgspec.json.encode(self)
        msgspec.json.decode(text, type=type(self))  # a number that is none would be lost
        return text.decode()

    def said(self, subject: str, names: Names, seq: int) -> Words:
        """What was done, after the name of whoever did it."""
        raise NotImplementedError

    def verify(self, entry: Entry[Event], story: Story) -> None:
        """Tell ``story`` what contradicts what came before; nothing to compare by default."""


KINDS: dict[str, type[Event]] = {}


class Described(Event, frozen=True, kw_only=True):
    """Another name and note."""

    name: str
    note: str = ""

    def named(self, what: str, thing: Piece) -> Words:
        note = f" and noted: {self.note}" if self.note else ""
        return [f"named the {what} ", thing, f" “{self.name}”{note}."]


class Withdrawn(Event, frozen=True, kw_only=True):
    """Reviews raised the alarm: why, after how many pools, and how strong the evidence is."""

    reason: str
    pools: int
    e_value: float


class Unknown(Event, frozen=True, kw_only=True):
    """An entry of a kind that this version does not know."""

    kind: str
    facts: dict[str, Any]

    @property
    def action(self) -> str:  # type: ignore[override]
        return self.kind

    def details(self) -> str:
        return json.dumps(self.facts, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return [f"entered {self.kind!r}."]


def read(action: str, details: str) -> Event:
    """An event from what the log stores; ``msgspec.ValidationError`` for what it cannot be."""
    kind = KINDS.get(action)
    if kind is None:
        return Unknown(kind=action, facts=msgspec.json.decode(details, type=dict[str, Any]))
    return msgspec.json.decode(details, type=kind)


def counted(number: int, what: str, many: str | None = None) -> str:
    """So many of something, in words."""
    return f"1 {what}" if number == 1 else f"{count(number)} {many or what + 's'}"
