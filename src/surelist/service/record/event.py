"""What every event of the record answers (its fields, its sentence, what verifying asks), and the hash chain.

An event is one class, its fields are what the log stores of it. A kind that is not known here is shown by its
code.

Every entry holds the hash of the one before, so that an edit shows: its own is the SHA-256 of its fields and
of that. Whoever changes, removes or inserts an entry must change every later hash; a head noted elsewhere
(each receipt and each report carries one) then no longer matches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct, structs

from surelist._numerals import count
from surelist.service.errors import Conflict

if TYPE_CHECKING:
    from surelist.service.record.verify import Story

GENESIS = "0" * 64


class Piece(NamedTuple):
    """A part of a sentence; with an address it is a link."""

    text: str
    href: str | None = None


Words = list["str | Piece"]


class Names(Protocol):
    """What things are called now."""

    def of(self, subject: str) -> Piece:
        """A policy, a shortlist, a labelling, a campaign or a pool of one, a token."""

    def marks(self, seq: int) -> Mapping[int, int]:
        """How many candidates an entry marked with which code, as far as a reader may know it."""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One kind of entry.

    An event with a ``name`` says where the page is of what it names; "" where there is none. ``sentence`` is
    what was done, after the name of whoever did it: with fields ({0.reason}), and {it} for what it is about.
    """

    action: ClassVar[str]
    page: ClassVar[str | None] = None
    sentence: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if isinstance(cls.__dict__.get("action"), str):
            KINDS[cls.action] = cls

    def address(self, subject: str) -> str:
        """The page of what it names."""
        return (self.page or "").format(subject=subject, event=self)

    def details(self) -> str:
        """What the log stores: text from which the event can be read again, or an error."""
        text = msgspec.json.encode(self)
        msgspec.json.decode(text, type=type(self))  # a number that is none would be lost
        return text.decode()

    def said(self, subject: str, names: Names, seq: int) -> Words:
        """The sentence, with what it is about as a link."""
        before, *after = self.sentence.format(self, it="\0").split("\0")
        return [before, names.of(getattr(self, "campaign", subject)), *after] if after else [before]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        """Tell ``story`` what contradicts what came before; nothing to compare by default."""


KINDS: dict[str, type[Event]] = {}


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


E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)


class Entry(Struct, Generic[E_co], frozen=True, dict=True):
    """One line of the record. ``details`` is the event as JSON text, and part of the hash."""

    seq: int
    at: str
    actor: str
    action: str
    subject: str
    details: str
    previous: str
    hash: str

    @cached_property
    def event(self) -> E_co:
        """What happened; read when somebody asks."""
        try:
            return cast(E_co, read(self.action, self.details))
        except msgspec.MsgspecError:
            raise Conflict(
                f"record: entry {self.seq:,} cannot be read. It was edited: verify the record."
            ) from None

    @property
    def facts(self) -> dict[str, Any]:
        """The details as plain values, for whoever reads the log."""
        return msgspec.json.decode(self.details, type=dict[str, Any])

    @property
    def receipt(self) -> str:
        """What to note down to prove later that this entry was there."""
        return f"{self.seq}:{self.hash}"

    def expected_hash(self) -> str:
        return entry_hash(*self.row()[:-1])

    def row(self) -> tuple[Any, ...]:
        return structs.astuple(self)


def of_kind(entries: Iterable[Entry[Any]], kind: type[E]) -> list[Entry[E]]:
    """Those of these entries that are of one kind."""
    return [entry for entry in entries if isinstance(entry.event, kind)]


def next_entry(head: tuple[int, str], event: E, *, at: str, actor: str, subject: str) -> Entry[E]:
    """The entry that follows ``head`` (sequence number and hash)."""
    seq, previous, details = head[0] + 1, head[1], event.details()
    digest = entry_hash(seq, at, actor, event.action, subject, details, previous)
    entry: Entry[E] = Entry(seq, at, actor, event.action, subject, details, previous, digest)
    entry.__dict__["event"] = event  # known, and not read again
    return entry


def entry_hash(*fields: int | str) -> str:
    """JSON keeps the fields apart, so that no two different entries share their bytes."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()
