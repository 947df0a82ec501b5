"""The log of one service: entries appended by the one writer, read back, known by idempotency keys."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from surelist.service.errors import Conflict, NotFound
from surelist.service.record.chain import Entry
from surelist.service.record.connections import Connection
from surelist.service.record.database import Database
from surelist.service.record.writer import Batch, Writer

COLUMNS = "seq, at, actor, action, subject, details, previous, hash"


@dataclass(frozen=True)
class Written:
    """An entry on record, and whether it was there already under the same idempotency key."""

    entry: Entry
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
        action: str,
        subject: str,
        facts: dict[str, Any],
        *,
        key: Key | None = None,
        earlier: Callable[[Batch], Entry | None] | None = None,
        before: Callable[[Batch], None] | None = None,
        after: Callable[[Connection, Entry], None] | None = None,
        also: tuple[str, str, dict[str, Any]] | None = None,
    ) -> Future[Written]:
        """One entry; with a key seen before, the entry written then, as with one ``earlier`` finds.

        ``before`` may refuse; ``after`` writes what belongs to the entry; ``also`` is a second entry (action,
        subject, facts) that follows from the first and stands or falls with it.
        """

        def job(batch: Batch) -> Written:
            known = _replay(batch.connection.execute, actor, key, batch.flush) if key is not None else None
            if known is None and earlier is not None:
                known = earlier(batch)
            if known is not None:
                return Written(known, replayed=True)
            if before is not None:
                before(batch)
            entry = batch.append(actor, action, subject, facts)
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

    def entries(
        self,
        action: str | None = None,
        subject: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> list[Entry]:
        """Entries of the log, newest first; all of them without a limit."""
        conditions: list[str] = ["1 = 1"]
        values: list[Any] = []
        for sql, value in (("action = ?", action), ("subject = ?", subject), ("seq < ?", before)):
            if value is not None:
                conditions.append(sql)
                values.append(value)
        sql = f"SELECT {COLUMNS} FROM log WHERE {' AND '.join(conditions)} ORDER BY seq DESC"
        if limit is None:
            rows = self.database.read(sql, values)
        else:
            rows = self.database.read(f"{sql} LIMIT ?", [*values, limit])
        return [Entry(*row) for row in rows]

    def replayed(self, actor: str, key: Key) -> Entry | None:
        """The entry written under this idempotency key."""
        return _replay(self.database.read, actor, key)

    def forget_replays(self, until: str) -> None:
        """Idempotency keys are remembered for a while, not for ever."""
        self.writer.submit(
            lambda batch: batch.connection.execute("DELETE FROM replays WHERE at < ?", [until])
        )

    def ready(self) -> None:
        """Raise unless the record can be read."""
        self.database.read("SELECT 1 FROM meta WHERE name = 'schema'")
        self.database.require_in_place()

    def one(self, action: str, subject: str, kind: str) -> Entry:
        entries = self.entries(action=action, subject=subject, limit=1)
        if not entries:
            raise NotFound(f"{kind}: there is none named {subject[:80]!r} on record.")
        return entries[0]


def _replay(
    query: Callable[..., Any], actor: str, key: Key, before_reading: Callable[[], None] = lambda: None
) -> Entry | None:
    rows = query("SELECT request, seq FROM replays WHERE actor = ? AND name = ?", [actor, key.name])
    if not rows:
        return None
    request, seq = rows[0]
    if request != key.request:
        raise Conflict("Idempotency-Key: it was used before with another request. Use a new key.")
    before_reading()
    return Entry(*query(f"SELECT {COLUMNS} FROM log WHERE seq = ?", [seq])[0])
