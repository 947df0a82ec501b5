"""The log of one service: entries appended by the one writer, read back, known by idempotency keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic

from surelist.service.errors import Conflict, NotFound
from surelist.service.record.chain import E, E_co, Entry
from surelist.service.record.connections import Connection, Rows, batched, slots
from surelist.service.record.database import Database
from surelist.service.record.event import Event
from surelist.service.record.writer import Batch, Writer

COLUMNS = "seq, at, actor, action, subject, details, previous, hash"


@dataclass(frozen=True)
class Written(Generic[E_co]):
    """An entry on record, and whether it was there already under the same idempotency key."""

    entry: Entry[E_co]
    replayed: bool = False


@dataclass(frozen=True)
class Key:
    """An idempotency key and the hash of the request it was sent with."""

    name: str
    request: str


class Log:
    """What every part of the record needs of its log. Reads are direct; writes go through the one writer."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writer = Writer(database)

    def close(self) -> None:
        self.writer.close()
        self.database.close()

    def append(
        self,
        actor: str,
        subject: str,
        event: E,
        *,
        key: Key | None = None,
        earlier: Callable[[Batch], Entry[E] | None] | None = None,
        before: Callable[[Batch], None] | None = None,
        after: Callable[[Connection, Entry[E]], None] | None = None,
        also: tuple[str, Event] | None = None,
    ) -> Future[Written[E]]:
        """One entry; with a key seen before, the entry written then, as with one ``earlier`` finds.

        ``before`` may refuse; ``after`` writes what belongs to the entry; ``also`` is a second entry (subject
        and event) that follows from the first and stands or falls with it.
        """

        def job(batch: Batch) -> Written[E]:
            known = _replay(batch.connection.execute, actor, key, batch.flush) if key is not None else None
            if known is None and earlier is not None:
                known = earlier(batch)
            if known is not None:
                return Written(known, replayed=True)
            if before is not None:
                before(batch)
            entry = batch.append(actor, subject, event)
            if key is not None:
                batch.connection.execute(
                    "INSERT INTO replays (actor, name, request, seq, at) VALUES (?, ?, ?, ?, ?)",
                    [actor, key.name, key.request, entry.seq, entry.at],
                )
            if after is not None:
                after(batch.connection, entry)
            if also is not None:
                batch.append(actor, *also)
            return Written(entry)

        return self.writer.submit(job)

    def select(
        self, where: str, values: Sequence[object] = (), query: Callable[..., Rows] | None = None
    ) -> list[Entry[Any]]:
        """Entries of the log that a condition in SQL names, with its order."""
        rows = (query or self.database.read)(f"SELECT {COLUMNS} FROM log {where}", values)
        return [Entry(*row) for row in rows]

    def entries(
        self,
        kind: type[E] | None = None,
        subject: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> list[Entry[E]]:
        """Entries of the log, newest first; all of them without a limit."""
        action = None if kind is None else kind.action
        asked = {"action = ?": action, "subject = ?": subject, "seq < ?": before}
        given = {sql: value for sql, value in asked.items() if value is not None}
        where = f"WHERE {' AND '.join(given)} " if given else ""
        most, values = ("", []) if limit is None else (" LIMIT ?", [limit])
        return self.select(f"{where}ORDER BY seq DESC{most}", [*given.values(), *values])

    def newest(self, kind: type[E], subject: str) -> Entry[E] | None:
        """The latest entry of a kind about a subject, if there is one."""
        return next(iter(self.entries(kind, subject, limit=1)), None)

    def latest(self, kind: type[E], subjects: Sequence[str]) -> dict[str, Entry[E]]:
        """The latest entry of a kind about each of these subjects, of those that have one."""
        found: dict[str, Entry[E]] = {}
        for each in batched(subjects):
            newest = (
                f"SELECT max(seq) FROM log WHERE action = ? AND subject IN ({slots(each)}) GROUP BY subject"
            )
            entries = self.select(f"WHERE seq IN ({newest})", [kind.action, *each])
            found.update({entry.subject: entry for entry in entries})
        return found

    def one(self, kind: type[E], subject: str, what: str) -> Entry[E]:
        entry = self.newest(kind, subject)
        if entry is None:
            raise NotFound(f"{what}: there is none named {subject[:80]!r} on record.")
        return entry

    def replayed(self, actor: str, key: Key) -> Entry[Any] | None:
        """The entry written under this idempotency key."""
        return _replay(self.database.read, actor, key)

    def forget_replays(self, until: str) -> None:
        """Idempotency keys are remembered for a while, not for ever."""
        self.writer.submit(
            lambda batch: batch.connection.execute("DELETE FROM replays WHERE at < ?", [until])
        )

    def ready(self) -> None:
        """Raise unless the record can be read."""
        self.database.read("SELECT 1 FROM meta WHERE name = 'format'")
        self.database.require_in_place()


def _replay(
    query: Callable[..., Rows], actor: str, key: Key, before_reading: Callable[[], None] = lambda: None
) -> Entry[Any] | None:
    rows = query("SELECT request, seq FROM replays WHERE actor = ? AND name = ?", [actor, key.name])
    if not rows:
        return None
    request, seq = rows[0]
    if request != key.request:
        raise Conflict("Idempotency-Key: it was used before with another request. Use a new key.")
    before_reading()
    return Entry(*query(f"SELECT {COLUMNS} FROM log WHERE seq = ?", [seq])[0])
