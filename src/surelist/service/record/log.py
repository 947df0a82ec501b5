"""The log of one service: entries appended by the one writer, read back, known by idempotency keys.

Appends from many requests share a transaction, hence one flush to disk: a thread takes whatever jobs are
waiting, runs them in one locked transaction and answers each only after the commit. Other processes on the
same database are kept in order by the lock of ``connections``. Jobs check first and write last, so that a
refused job leaves no trace.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, Generic

from msgspec import Struct, field

from surelist.errors import SurelistError
from surelist.service.errors import Conflict, NotFound, StorageError
from surelist.service.record.connections import Connection, Rows, batched
from surelist.service.record.database import Database
from surelist.service.record.event import GENESIS, E, E_co, Entry, Event, next_entry

BATCH = 64
WAITING = 10_000
COLUMNS = "seq, at, actor, action, subject, details, previous, hash"

Job = Callable[["Batch"], Any]


class Batch(Struct):
    """One write transaction under way. Entries are collected and inserted together."""

    connection: Connection
    entries: list[Entry[Event]] = field(default_factory=list)
    appended: int = 0
    _head: tuple[int, str] | None = None
    _active: set[str] = field(default_factory=set)  # policies that are known to be in use

    def append(self, actor: str, subject: str, event: E) -> Entry[E]:
        """Add one entry to the chain."""
        if self._head is None:
            rows = self.connection.execute("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")
            self._head = (int(rows[0][0]), str(rows[0][1])) if rows else (0, GENESIS)
        entry = next_entry(self._head, event, at=now(), actor=actor, subject=subject)
        self.entries.append(entry)
        self.appended += 1
        self._head = (entry.seq, entry.hash)
        self._active.discard(subject)  # it may be retired by this
        return entry

    def query(self, sql: str, values: Sequence[object]) -> Rows:
        """Ask the record as it is in this very transaction."""
        self.flush()
        return self.connection.execute(sql, values)

    def require_active(self, policy: str) -> None:
        """The policy is on record and neither retired nor withdrawn, in this very transaction."""
        if policy in self._active:
            return
        actions = self.query(
            "SELECT action FROM log WHERE subject = ? "
            "AND action IN ('policy.saved', 'policy.retired', 'policy.withdrawn')",
            [policy],
        )
        if ("policy.saved",) not in actions:
            raise NotFound(f"policy: there is none with the hash {policy!r} on record.")
        if ("policy.withdrawn",) in actions:
            raise Conflict(
                "policy: its promise was withdrawn, because the reviews of its pools speak against it; "
                "it makes no new shortlists. Calibrate a new policy on fresh rows."
            )
        if ("policy.retired",) in actions:
            raise Conflict("policy: it is retired and makes no new shortlists. Choose another policy.")
        self._active.add(policy)

    def flush(self) -> None:
        if self.entries:
            # one statement: row by row, the interpreter would change threads after each
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(self.entries))
            values = [value for entry in self.entries for value in entry.row()]
            self.connection.execute(f"INSERT INTO log ({COLUMNS}) VALUES {places}", values)
            self.entries.clear()


class Writer:
    """Runs jobs in batches on a thread of its own; ``submit`` returns at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[tuple[Job, Future[Any]]] = deque()
        self._lock, self._calls = threading.Lock(), SimpleQueue[None]()  # quicker than an event
        self._closed = False
        self._called: asyncio.AbstractEventLoop | None = None
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._work, name="surelist-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Any]:
        """The result arrives when the job's transaction is on disk."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(StorageError("record: it is closed; the service is stopping."))
            elif len(self._waiting) >= WAITING:
                future.set_exception(StorageError("record: too many writes are waiting. Try again shortly."))
            else:
                self._waiting.append((job, future))
        self._call()
        return future

    def _call(self) -> None:
        """Wake the thread; from an event loop only once it has run what is ready.

        Requests that came together then share a transaction, and the two threads do not fight for the
        interpreter. Whoever waits on the loop for the answer lets it run.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._calls.put(None)
            return
        if self._called is not loop:
            self._called = loop
            loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._called = None
        self._calls.put(None)

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        with self._lock:
            self._closed = True
        self._calls.put(None)
        self._thread.join(timeout=30)

    def _work(self) -> None:
        while not self._closed or self._waiting:
            self._calls.get()
            while self._waiting:
                self._run([self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))])
        self._drop()

    def _run(self, waiting: list[tuple[Job, Future[object]]], again: bool = True) -> None:
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            self._connection.begin()
            batch = Batch(self._connection)
            done = [_attempt(job, batch) for job, _ in waiting]
            batch.flush()
        except Exception as error:
            self._drop()
            if not again:
                _fail(waiting, error)
                return
            for one in waiting:  # nothing was committed: each may try once more, by itself
                self._run([one], again=False)
            return
        try:
            self._connection.commit()
        except Exception as error:
            self._drop()
            unknown = StorageError(
                f"{error} The entry may or may not be on record: send the request again with the "
                "same Idempotency-Key to find out.",
                getattr(error, "detail", ""),
            )
            _fail(waiting, error if self._database.kind == "sqlite" else unknown)
            return
        for (_, future), (result, problem) in zip(waiting, done, strict=True):
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(result)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.rollback()
            self._database.discard(self._connection)
            self._connection = None


def _attempt(job: Job, batch: Batch) -> tuple[Any, Exception | None]:
    """A refusal concerns one job; trouble with the database, or a refusal halfway, the batch."""
    before = batch.appended
    try:
        return job(batch), None
    except StorageError:
        raise
    except SurelistError as refusal:
        if batch.appended != before:
            raise
        return None, refusal


def _fail(waiting: list[tuple[Job, Future[object]]], error: Exception) -> None:
    for _, future in waiting:
        future.set_exception(error)


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Written(Struct, Generic[E_co], frozen=True):
    """An entry on record, and whether it was there already under the same idempotency key."""

    entry: Entry[E_co]
    replayed: bool = False


class Key(Struct):
    """An idempotency key and the hash of the request it was sent with."""

    name: str
    request: str = ""

    def bind(self, *parts: str | bytes) -> None:
        """To more of what the request asks."""
        digest = hashlib.sha256(self.request.encode())
        for part in parts:
            digest.update(b"\n" + (part.encode() if isinstance(part, str) else part))
        self.request = digest.hexdigest()


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
        after: Callable[[Connection, Entry[E]], object] | None = None,
        also: tuple[str, Event | None] | None = None,
    ) -> Future[Written[E]]:
        """One entry; with a key seen before, the entry written then, as with one ``earlier`` finds.

        ``before`` may refuse; ``after`` writes what belongs to the entry; ``also`` is a second entry (subject
        and event, if there is one) that follows from the first and stands or falls with it.
        """

        def job(batch: Batch) -> Written[E]:
            known = _replay(batch.connection.execute, actor, key, batch.query) if key is not None else None
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
            if also is not None and also[1] is not None:
                batch.append(actor, also[0], also[1])
            return Written(entry)

        return self.writer.submit(job)

    def select(
        self, where: str, values: Sequence[object] = (), query: Callable[..., Rows] | None = None
    ) -> list[Entry[Any]]:
        """Entries of the log that a condition in SQL names, with its order."""
        rows = (query or self.database.read)(f"SELECT {COLUMNS} FROM log {where}", values)
        return [Entry(*row) for row in rows]

    def entries(
        self, *kinds: type[E], subject: str | None = None, limit: int | None = 100,
        before: int | None = None, oldest: bool = False, query: Callable[..., Rows] | None = None,
        without: type[Event] | None = None, **texts: str | bool,
    ) -> list[Entry[E]]:  # fmt: skip
        """Entries of these kinds, or of all, newest first or ``oldest``; all of them without a limit.

        ``texts`` are what their details say; True stands for anything. Of subjects that have an entry of the
        kind ``without`` there are none.
        """
        where, values = self._where(kinds, {"subject = ?": subject, "seq < ?": before}, texts)
        if without is not None:
            where += f" AND subject NOT IN (SELECT subject FROM log WHERE action = '{without.action}')"
        most = "" if limit is None else " LIMIT ?"
        order = f"ORDER BY seq{'' if oldest else ' DESC'}{most}"
        return self.select(f"{where} {order}", [*values, *([] if limit is None else [limit])], query)

    def count(self, *kinds: type[Event], query: Callable[..., Rows], **texts: str | bool) -> int:
        """How many entries of these kinds there are."""
        where, values = self._where(kinds, {}, texts)
        return int(query(f"SELECT count(*) FROM log {where}", values)[0][0])

    def _where(
        self, kinds: Sequence[type[Event]], asked: Mapping[str, object], texts: Mapping[str, str | bool]
    ) -> tuple[str, list[object]]:
        """The kinds stand in it as text, so that the database knows which index serves."""
        named = [f"'{kind.action}'" for kind in kinds]
        parts = [f"action = {named[0]}" if len(named) == 1 else f"action IN ({', '.join(named)})"]
        given = {sql: value for sql, value in asked.items() if value is not None}
        for name, text in texts.items():
            part = self.database.json_text(name)
            if text is True:
                parts.append(f"{part} IS NOT NULL")
            else:
                given[f"{part} = ?"] = text
        every = [*(parts if named else parts[1:]), *given]
        return f"WHERE {' AND '.join(every)}" if every else "", list(given.values())

    def newest(
        self, *kinds: type[E], subject: str, query: Callable[..., Rows] | None = None
    ) -> Entry[E] | None:
        """The latest entry of these kinds about a subject, if there is one."""
        return next(iter(self.entries(*kinds, subject=subject, limit=1, query=query)), None)

    def latest(self, kind: type[E], subjects: Sequence[str]) -> dict[str, Entry[E]]:
        """The latest entry of a kind about each of these subjects, of those that have one."""
        found: dict[str, Entry[E]] = {}
        for each, slots in batched(subjects):
            newest = f"SELECT max(seq) FROM log WHERE action = ? AND subject IN ({slots}) GROUP BY subject"
            entries = self.select(f"WHERE seq IN ({newest})", [kind.action, *each])
            found.update({entry.subject: entry for entry in entries})
        return found

    def one(self, kind: type[E], subject: str, what: str) -> Entry[E]:
        entry = self.newest(kind, subject=subject)
        if entry is None:
            raise NotFound(f"{what}: there is none named {subject[:80]!r} on record.")
        return entry

    def replayed(self, actor: str, key: Key) -> Entry[Any] | None:
        """The entry written under this idempotency key."""
        return _replay(self.database.read, actor, key, self.database.read)

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
    keys: Callable[..., Rows], actor: str, key: Key, entries: Callable[..., Rows]
) -> Entry[Any] | None:
    rows = keys("SELECT request, seq FROM replays WHERE actor = ? AND name = ?", [actor, key.name])
    if not rows:
        return None
    request, seq = rows[0]
    if request != key.request:
        raise Conflict("Idempotency-Key: it was used before with another request. Use a new key.")
    return Entry(*entries(f"SELECT {COLUMNS} FROM log WHERE seq = ?", [seq])[0])
