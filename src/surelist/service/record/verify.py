"""``surelist verify-log``: recompute the whole chain and what hangs on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from surelist.errors import InvalidInput
from surelist.service.record.chain import GENESIS, Entry
from surelist.service.record.database import Database
from surelist.service.record.record import COLUMNS, reviews_hash

PAGE = 2_000


@dataclass
class Verdict:
    """What was found. ``problems`` is empty if the record is as it was written."""

    entries: int = 0
    head: str = f"0:{GENESIS}"
    problems: list[str] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        return not self.problems


def verify(database: Database, noted: tuple[str, ...] = ()) -> Verdict:
    """Check every entry's hash and link, every policy's hash and every batch of reviews.

    A chain by itself cannot show that its last entries were cut off: ``noted`` holds receipts
    (``seq:hash``) kept elsewhere, each of which must be in the chain.
    """
    verdict, previous = Verdict(), GENESIS
    receipts = dict(_receipt(text) for text in noted)
    seen_reviews = 0
    for entry in _entries(database):
        verdict.entries += 1
        if entry.seq != verdict.entries:
            verdict.problems.append(f"entry {verdict.entries} is missing: entry {entry.seq} follows instead")
            verdict.entries = entry.seq
        if entry.previous != previous:
            verdict.problems.append(f"entry {entry.seq} does not follow the entry before it")
        if entry.expected_hash() != entry.hash:
            verdict.problems.append(f"entry {entry.seq} was edited: its hash does not fit its content")
        else:
            seen_reviews += _check_content(entry, database, verdict)
        if receipts.pop(entry.seq, entry.hash) != entry.hash:
            verdict.problems.append(f"entry {entry.seq} is not the one noted elsewhere")
        previous, verdict.head = entry.hash, entry.receipt
    for seq in receipts:
        verdict.problems.append(f"entry {seq}, noted elsewhere, is not in the log: its end was cut off")
    held = int(database.read("SELECT count(*) FROM reviews")[0][0])
    if held != seen_reviews:
        verdict.problems.append(f"the log tells of {seen_reviews:,} reviews, but {held:,} are held")
    return verdict


def _entries(database: Database) -> Iterator[Entry]:
    last = -(1 << 62)
    while rows := database.read(
        f"SELECT {COLUMNS} FROM log WHERE seq > ? ORDER BY seq LIMIT ?", [last, PAGE]
    ):
        yield from (Entry(*row) for row in rows)
        last = int(rows[-1][0])


def _check_content(entry: Entry, database: Database, verdict: Verdict) -> int:
    """What an entry says of other tables; returns how many reviews it accounts for."""
    if entry.action == "policy.saved":
        text = entry.facts["policy"]
        if hashlib.sha256(text.encode()).hexdigest() != entry.subject:
            verdict.problems.append(f"entry {entry.seq}: the policy does not have the hash it is known by")
    if entry.action != "reviews.received":
        return 0
    rows = database.read("SELECT candidate, qualified FROM reviews WHERE seq = ?", [entry.seq])
    if reviews_hash(sorted((str(c), int(q)) for c, q in rows)) != entry.facts["sha256"]:
        verdict.problems.append(f"entry {entry.seq}: its reviews were edited")
    return len(rows)


def _receipt(text: str) -> tuple[int, str]:
    seq, _, digest = text.partition(":")
    if not seq.isdigit() or len(digest) != 64:
        raise InvalidInput(f"receipt: expected SEQ:HASH as printed with an entry, got {text!r}.")
    return int(seq), digest
