"""The hash chain: every entry holds the hash of the one before, so that an edit shows.

An entry's hash is the SHA-256 of its fields and its predecessor's hash. Whoever changes,
removes or inserts an entry must change every later hash; a head noted elsewhere (each receipt
and each report carries one) then no longer matches.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One line of the record. ``details`` is canonical JSON text and part of the hash."""

    seq: int
    at: str
    actor: str
    action: str
    subject: str
    details: str
    previous: str
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """The details as plain values."""
        facts: dict[str, Any] = json.loads(self.details)
        return facts

    @property
    def receipt(self) -> str:
        """What to note down to prove later that this entry was there."""
        return f"{self.seq}:{self.hash}"

    def expected_hash(self) -> str:
        return entry_hash(
            self.seq, self.at, self.actor, self.action, self.subject, self.details, self.previous
        )

    def row(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())


def next_entry(
    head: tuple[int, str], *, at: str, actor: str, action: str, subject: str, facts: dict[str, Any]
) -> Entry:
    """The entry that follows ``head`` (sequence number and hash)."""
    seq, previous = head[0] + 1, head[1]
    details = canonical(facts)
    digest = entry_hash(seq, at, actor, action, subject, details, previous)
    return Entry(seq, at, actor, action, subject, details, previous, digest)


def entry_hash(*fields: Any) -> str:
    """JSON keeps the fields apart, so that no two different entries share their bytes."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def canonical(facts: Any) -> str:
    """One text for one value: sorted keys, no spaces, ASCII."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
