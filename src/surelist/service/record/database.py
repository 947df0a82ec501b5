"""SQLite or PostgreSQL behind one small interface. SQL is written once, with ``?``.

A write transaction takes the one lock there is before it reads: ``BEGIN IMMEDIATE`` on SQLite,
an advisory lock on PostgreSQL. Without it two appends read the same head and the chain forks.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from surelist.errors import InvalidInput, MissingDependency
from surelist.service.errors import DiskFull, StorageError

SCHEMA_VERSION = "1"
APPEND_LOCK = 7_395_112_264
PATIENCE_SECONDS = 15

Rows = list[tuple[Any, ...]]


TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (
    seq BIGINT PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
    subject TEXT NOT NULL, details TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE
);
CREATE INDEX log_by_action ON log (action, seq);
CREATE INDEX log_by_subject ON log (subject, action, seq);
CREATE TABLE salts (policy TEXT PRIMARY KEY, secret TEXT NOT NULL);
CREATE TABLE reviews (
    selection TEXT NOT NULL, candidate TEXT NOT NULL, qualified BIGINT NOT NULL, seq BIGINT NOT NULL,
    PRIMARY KEY (selection, candidate, seq)
);
CREATE INDEX reviews_by_entry ON reviews (seq);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, policy TEXT, digest TEXT NOT NULL,
    created TEXT NOT NULL, expires TEXT, revoked TEXT
);
CREATE TABLE sessions (digest TEXT PRIMARY KEY, token TEXT NOT NULL, expires TEXT NOT NULL);
CREATE TABLE replays (
    actor TEXT NOT NULL, name TEXT NOT NULL, request TEXT NOT NULL, seq BIGINT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (actor, name)
);
"""

GUARDED = ("log", "reviews")  # no row of these is ever changed or removed

# a policy's selections without reading through the log; also for records made before it existed
_BY_POLICY = "CREATE INDEX IF NOT EXISTS log_by_policy ON log ({policy}, seq) WHERE action = 'selection.made'"
_POLICY_OF = {
    "sqlite": "json_extract(details, '$.policy')",
    "postgresql": "((details::jsonb)->>'policy')",
}

_NO_CHANGE_SQLITE = """
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""

_NO_CHANGE_POSTGRES = """
CREATE OR REPLACE FUNCTION surelist_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$
"""


class Connection(Protocol):
    """One open connection, used by one thread at a time."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows: ...
    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...
    def begin(self) -> None:
        """Start a write transaction and take the append lock."""

    def begin_snapshot(self) -> None:
        """Start a transaction that reads everything as it is at one moment."""

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Database:
    """Connections to one database: one per thread for reading, one for the writer.

    ``read_only`` opens what is there and makes nothing: no file, no folder, no table.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self.address, self.read_only = address, read_only
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._guard = threading.Lock()

    @property
    def kind(self) -> str:
        return "postgresql" if is_postgres(self.address) else "sqlite"

    def connect(self) -> Connection:
        make = _Postgres if self.kind == "postgresql" else _Sqlite
        connection = make(self.address, self.read_only)
        with self._guard:
            self._opened.append(connection)
        return connection

    def discard(self, connection: Connection) -> None:
        with self._guard, suppress(ValueError):
            self._opened.remove(connection)
        connection.close()

    def require_in_place(self) -> None:
        """Raise where the record's file is no longer the one that was opened."""
        connection = getattr(self._local, "connection", None)
        if isinstance(connection, _Sqlite):
            connection.require_in_place()

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run one query; a lost connection is opened anew once, since reading twice is harmless."""
        for attempt in (0, 1):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self.connect()
            try:
                return connection.execute(sql, values)
            except StorageError:
                self._local.connection = None
                self.discard(connection)
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def prepare(self) -> None:
        """Make the tables where there are none; refuse a database of another version."""
        connection = self.connect()
        try:
            with transaction(connection):
                if not connection.execute(_HAS_META[self.kind]):
                    self._create(connection)
                version = connection.execute("SELECT value FROM meta WHERE name = 'schema'")
                if version != [(SCHEMA_VERSION,)]:
                    raise InvalidInput(
                        f"database: {hidden(self.address)} holds record version {version}; this surelist "
                        f"reads version {SCHEMA_VERSION}. Use the surelist that made it, or a newer one."
                    )
                connection.execute(_BY_POLICY.format(policy=self.policy_of_selection))
        finally:
            self.discard(connection)

    @property
    def policy_of_selection(self) -> str:
        """SQL for the policy that a ``selection.made`` entry of the log is about."""
        return _POLICY_OF[self.kind]

    def columns(self) -> dict[str, list[str]]:
        """The columns of every table, in the order in which tables are made."""
        names = [line.split()[2] for line in TABLES.splitlines() if line.startswith("CREATE TABLE")]
        return {name: self._columns_of(name) for name in names}

    def _columns_of(self, table: str) -> list[str]:
        sql = {
            "sqlite": "SELECT name FROM pragma_table_info(?)",
            "postgresql": "SELECT column_name FROM information_schema.columns WHERE table_name = ? "
            "AND table_schema = current_schema() ORDER BY ordinal_position",
        }[self.kind]
        return [str(row[0]) for row in self.read(sql, [table])]

    def _create(self, connection: Connection) -> None:
        for statement in TABLES.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        if self.kind == "postgresql":
            connection.execute(_NO_CHANGE_POSTGRES)
        for table in GUARDED:
            self._forbid_changes(connection, table)
        connection.execute("INSERT INTO meta (name, value) VALUES ('schema', ?)", [SCHEMA_VERSION])

    def _forbid_changes(self, connection: Connection, table: str) -> None:
        if self.kind == "postgresql":
            connection.execute(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION surelist_append_only()"
            )
        else:
            for verb in ("update", "delete"):
                connection.execute(_NO_CHANGE_SQLITE.format(table=table, verb=verb))

    def close(self) -> None:
        with self._guard:
            opened, self._opened = self._opened, []
        for connection in opened:
            connection.close()


_HAS_META = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'",
    "postgresql": "SELECT 1 FROM information_schema.tables WHERE table_name = 'meta' "
    "AND table_schema = current_schema()",
}


@contextmanager
def transaction(connection: Connection) -> Iterator[Connection]:
    """Begin, and commit if the block ends well; otherwise nothing has happened."""
    connection.begin()
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def is_postgres(address: str) -> bool:
    return address.startswith(("postgresql://", "postgres://"))


def hidden(address: str) -> str:
    """The address without its password, for messages."""
    if "://" in address and "@" in address:
        scheme, rest = address.split("://", 1)
        return f"{scheme}://***@{rest.rsplit('@', 1)[1]}"
    return address


class _Sqlite:
    """WAL, so that readers never wait; ``synchronous=FULL``, so that a commit is on the disk."""

    def __init__(self, address: str, read_only: bool) -> None:
        self._path = address
        path = Path(address)
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            elif not path.is_file():
                raise InvalidInput(f"record: there is no file {address}.")
            self._inode = path.stat().st_ino
            self._inner = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}", uri=True,
                timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False,
            )  # fmt: skip
            if not read_only:
                self._inner.execute("PRAGMA journal_mode=WAL")
                self._inner.execute("PRAGMA synchronous=FULL")
        except (sqlite3.Error, OSError) as error:
            raise _explained(error, str(path)) from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        with self._errors():
            return self._inner.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors():
            self._inner.executemany(sql, rows)

    def begin(self) -> None:
        self.require_in_place()
        self.execute("BEGIN IMMEDIATE")

    def begin_snapshot(self) -> None:
        self.execute("BEGIN")
        self.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # the snapshot starts with the first read

    def require_in_place(self) -> None:
        """An open file that was moved or deleted can still be written, and nobody would find it again."""
        try:
            there = os.stat(self._path).st_ino == self._inode
        except OSError:
            there = False
        if not there:
            raise StorageError(f"record: {self._path} was moved, replaced or deleted. Nothing was written.")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._inner.in_transaction:
                self._inner.execute("ROLLBACK")

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._inner.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explained(error, self._path) from error


def _explained(error: Exception, path: str) -> StorageError:
    text = str(error)
    if "full" in text or "No space" in text:
        return DiskFull(f"record: the disk that holds {path} is full. Make room and try again.")
    return StorageError(f"record: cannot use {path}: {text}. Nothing was written.")


class _Postgres:
    """``synchronous_commit=on`` whatever the server's default: an acknowledged entry is durable."""

    def __init__(self, address: str, read_only: bool) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingDependency(
                "A PostgreSQL record needs psycopg: pip install 'surelist[service,postgres]'."
            ) from error
        self._error = psycopg.Error
        self._full = (psycopg.errors.DiskFull,)
        self._where = hidden(address)
        with self._errors():
            self._inner = psycopg.connect(
                address,
                autocommit=True,
                connect_timeout=5,
                options="-c synchronous_commit=on -c statement_timeout=60000 "
                f"-c lock_timeout={PATIENCE_SECONDS * 1000} -c client_encoding=UTF8 "
                f"-c default_transaction_read_only={'on' if read_only else 'off'}",
            )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        with self._errors():
            cursor = self._inner.execute(sql.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors(), self._inner.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)

    def begin_snapshot(self) -> None:
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def begin(self) -> None:
        self.execute("BEGIN")
        self.execute("SELECT pg_advisory_xact_lock(?)", [APPEND_LOCK])

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        with suppress(self._error):
            self._inner.execute("ROLLBACK")

    def close(self) -> None:
        with suppress(self._error):
            self._inner.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._full as error:
            raise DiskFull(f"record: the disk of {self._where} is full. Make room and try again.") from error
        except self._error as error:
            message = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise StorageError(f"record: cannot use {self._where}: {message}.") from error
