"""``surelist verify-log``: recompute the whole chain and check what hangs on it. Changes nothing.

Beside the log a record has tables that the log vouches for: reviews (their hash and their selection), notes,
the answers of labellings, tokens (role, scope, expiry, end), salts, sessions and idempotency keys. A row
that the log does not explain is a problem, as is an entry that contradicts an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from surelist.errors import InvalidInput
from surelist.service.record.chain import GENESIS, Entry
from surelist.service.record.connections import Connection
from surelist.service.record.database import Database
from surelist.service.record.event import Event
from surelist.service.record.guards import check_guards
from surelist.service.record.log import COLUMNS
from surelist.service.record.story import Story

PAGE = 2_000
EMPTY = "the log is empty: nothing was ever recorded, or everything was removed"


@dataclass
class Verdict:
    """``problems`` is empty if the record is as it was written."""

    entries: int = 0
    head: str = f"0:{GENESIS}"
    problems: list[str] = field(default_factory=list)
    actions: dict[str, int] = field(default_factory=dict)  # how many entries of each kind were looked at

    @property
    def intact(self) -> bool:
        return not self.problems


def verify(database: Database, noted: tuple[str, ...] = ()) -> Verdict:
    """Check every entry's hash, link and content, and every row of the tables beside the log.

    A chain by itself cannot show that its last entries were cut off: ``noted`` holds receipts
    (``seq:hash``) kept elsewhere, each of which must be in the chain.
    """
    verdict = Verdict()
    receipts = _receipts(noted, verdict)
    with database.snapshot() as connection:
        story = Story(connection, verdict.problems)
        previous = GENESIS
        for entry in _entries(connection, verdict):
            verdict.entries += 1
            verdict.actions[entry.action] = verdict.actions.get(entry.action, 0) + 1
            if entry.seq != verdict.entries:
                verdict.problems.append(
                    f"entry {verdict.entries} is missing: entry {entry.seq} follows instead"
                )
                verdict.entries = entry.seq
            if entry.previous != previous:
                verdict.problems.append(f"entry {entry.seq} does not follow the entry before it")
            if entry.expected_hash() != entry.hash:
                verdict.problems.append(f"entry {entry.seq} was edited: its hash does not fit its content")
            else:
                story.verify(entry)
            if receipts.pop(entry.seq, entry.hash) != entry.hash:
                verdict.problems.append(f"entry {entry.seq} is not the one noted elsewhere")
            previous, verdict.head = entry.hash, entry.receipt
        story.compare_tables()
        verdict.problems += check_guards(database.kind, connection)
    if verdict.entries == 0:
        verdict.problems.append(EMPTY)
    for seq in receipts:
        verdict.problems.append(f"entry {seq}, noted elsewhere, is not in the log: its end was cut off")
    return verdict


def _entries(connection: Connection, verdict: Verdict) -> Iterator[Entry[Event]]:
    """In order. Rows without a proper number or with other than text are problems by themselves."""
    last, passed = -(1 << 62), 0
    while rows := connection.execute(
        f"SELECT {COLUMNS} FROM log WHERE seq > ? ORDER BY seq LIMIT ?", [last, PAGE]
    ):
        for row in rows:
            if isinstance(row[0], int) and all(isinstance(value, str) for value in row[1:]):
                passed += 1
                yield Entry(*row)
            else:
                verdict.problems.append(f"the log holds a row that is no entry, numbered {row[0]!r}")
                passed += 1
        if not isinstance(rows[-1][0], int):
            break
        last = rows[-1][0]
    total = int(connection.execute("SELECT count(*) FROM log")[0][0])
    if total != passed:
        verdict.problems.append(f"the log holds {total - passed:,} rows without a number in the chain")


def _receipts(noted: tuple[str, ...], verdict: Verdict) -> dict[int, str]:
    receipts: dict[int, str] = {}
    for text in noted:
        seq, digest = _receipt(text)
        if receipts.setdefault(seq, digest) != digest:
            verdict.problems.append(f"two receipts of entry {seq} contradict each other")
    if receipts.get(0) == GENESIS:
        del receipts[0]  # the head of a record before its first entry
    return receipts


def _receipt(text: str) -> tuple[int, str]:
    seq, _, digest = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19) or len(digest) != 64:
        raise InvalidInput("receipt", expected="SEQ:HASH as printed with an entry", got=repr(text))
    return int(seq), digest
