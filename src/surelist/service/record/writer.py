"""The one writer: appends from many requests share a transaction, hence one flush to disk.

A thread takes whatever jobs are waiting, runs them in one locked transaction and answers each
only after the commit. Other processes on the same database are kept in order by the lock
of ``database``. Jobs check first and write last, so that a refused job leaves no trace.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from surelist.errors import SurelistError
from surelist.service.errors import Conflict, NotFound, StorageError
from surelist.service.record.chain import GENESIS, E, Entry, next_entry
from surelist.service.record.connections import Connection
from surelist.service.record.database import Database
from surelist.service.record.event import Event

BATCH = 64
WAITING = 10_000
INSERT_ENTRY = "INSERT INTO log (seq, at, actor, action, subject, details, previous, hash) VALUES "
ENTRY_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?)"

Job = Callable[["Batch"], Any]


@dataclass
class Batch:
    """One write transaction under way. Entries are collected and inserted together."""

    connection: Connection
    entries: list[Entry[Event]] = field(default_factory=list)
    appended: int = 0
    _head: tuple[int, str] | None = None
    _active: dict[str, bool] = field(default_factory=dict)

    def append(self, actor: str, subject: str, event: E) -> Entry[E]:
        """Add one entry to the chain."""
        entry = next_entry(self.head(), event, at=now(), actor=actor, subject=subject)
        self.entries.append(entry)
        self.appended += 1
        self._head = (entry.seq, entry.hash)
        return entry

    def head(self) -> tuple[int, str]:
        if self._head is None:
            rows = self.connection.execute("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")
            self._head = (int(rows[0][0]), str(rows[0][1])) if rows else (0, GENESIS)
        return self._head

    def require_active(self, policy: str) -> None:
        """The policy is on record and not retired, in this very transaction."""
        if policy not in self._active:
            self.flush()
            actions = self.connection.execute(
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
            self._active[policy] = ("policy.retired",) not in actions
        if not self._active[policy]:
            raise Conflict("policy: it is retired and makes no new shortlists. Choose another policy.")

    def retired(self, policy: str) -> None:
        self._active[policy] = False

    def withdrawn(self, policy: str) -> None:
        """Ask the log again: it says why."""
        self._active.pop(policy, None)

    def flush(self) -> None:
        if self.entries:
            # one statement: row by row, the interpreter would change threads after each
            values = ", ".join([ENTRY_VALUES] * len(self.entries))
            self.connection.execute(
                INSERT_ENTRY + values, [value for entry in self.entries for value in entry.row()]
            )
            self.entries.clear()


class Writer:
    """Runs jobs in batches on a thread of its own; ``submit`` returns at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[tuple[Job, Future[Any]]] = deque()
        self._lock, self._awake = threading.Lock(), threading.Event()
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
            self._awake.set()
            return
        if self._called is not loop:
            self._called = loop
            loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._called = None
        self._awake.set()

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        with self._lock:
            self._closed = True
        self._awake.set()
        self._thread.join(timeout=30)

    def _work(self) -> None:
        while not self._closed or self._waiting:
            self._awake.wait()
            self._awake.clear()
            while self._waiting:
                self._run([self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))])
        self._drop()

    def _run(self, waiting: list[tuple[Job, Future[Any]]], again: bool = True) -> None:
        done: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            connection = self._connected()
            connection.begin()
            batch = Batch(connection)
            for job, future in waiting:
                done.append((future, *_attempt(job, batch)))
            batch.flush()
        except Exception as error:
            self._drop()
            if not again:
                _fail(waiting, error)
                return
            for one in waiting:  # nothing was committed: each may try once more, by itself
                self._run([one], again=False)
            return
        self._commit(connection, waiting, done)

    def _commit(
        self,
        connection: Connection,
        waiting: list[tuple[Job, Future[Any]]],
        done: list[tuple[Future[Any], Any, Exception | None]],
    ) -> None:
        try:
            connection.commit()
        except Exception as error:
            self._drop()
            unknown = StorageError(
                f"{error} The entry may or may not be on record: send the request again with the "
                "same Idempotency-Key to find out.",
                getattr(error, "detail", ""),
            )
            _fail(waiting, error if self._database.kind == "sqlite" else unknown)
            return
        for future, result, problem in done:
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(result)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection

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


def _fail(waiting: list[tuple[Job, Future[Any]]], error: Exception) -> None:
    for _, future in waiting:
        future.set_exception(error)


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
