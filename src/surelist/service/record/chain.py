"""The hash chain: every entry holds the hash of the one before, so that an edit shows.

An entry's hash is the SHA-256 of its fields and its predecessor's hash. Whoever changes,
removes or inserts an entry must change every later hash; a head noted elsewhere (each receipt
and each report carries one) then no longer matches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import msgspec

from surelist.service.errors import Conflict
from surelist.service.record.event import Event, read

GENESIS = "0" * 64
E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)


@dataclass(frozen=True)
class Entry(Generic[E_co]):
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

    def row(self) -> tuple[int, str, str, str, str, str, str, str]:
        return (
            self.seq, self.at, self.actor, self.action, self.subject, self.details, self.previous, self.hash
        )  # fmt: skip


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
