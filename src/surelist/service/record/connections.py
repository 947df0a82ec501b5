"""One open connection to SQLite or PostgreSQL behind one small interface. SQL is written once, with ``?``.

A write transaction takes the one lock there is before it reads: ``BEGIN IMMEDIATE`` on SQLite,
an advisory lock on PostgreSQL. Without it two appends read the same head and the chain forks.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from surelist.errors import InvalidInput, MissingDependency
from surelist.service.errors import DiskFull, StorageError

if TYPE_CHECKING:
    import psycopg

APPEND_LOCK = 7_395_112_264
PATIENCE_SECONDS = 15
VALUES_AT_ONCE = 500
PENDING_PAGES = 4000

Rows = list[tuple[Any, ...]]


class Connection:
    """One open connection, used by one thread at a time."""

    unusable = "record: it cannot be used now."
    _inner: sqlite3.Connection | psycopg.Connection
    _trouble: tuple[type[Exception], ...]  # what the driver raises

    def execute(self, sql: str, values: Sequence[object] = ()) -> Rows:
        _refuse_nul(values)
        with self._errors():
            cursor = self._inner.execute(self._in_dialect(sql), *([values] if values else []))
            return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        for row in rows:
            _refuse_nul(row)
        with self._errors():
            self._inner.cursor().executemany(self._in_dialect(sql), rows)

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in order."""
        with self._errors():
            described = self._inner.execute(f"SELECT * FROM {table} LIMIT 0").description
        return [str(each[0]) for each in described or ()]

    def begin(self) -> None:
        """Start a write transaction and take the append lock."""
        raise NotImplementedError

    def begin_snapshot(self) -> None:
        """Start a transaction that sees the record as it is now, whatever others write meanwhile."""
        raise NotImplementedError

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        with suppress(*self._trouble):
            self._inner.execute("ROLLBACK")

    def close(self) -> None:
        with suppress(*self._trouble):
            self._inner.close()

    def _in_dialect(self, sql: str) -> str:
        return sql

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._trouble as error:
            if self._full(error):
                message = "record: the disk that holds it is full. Make room and try again."
                raise DiskFull(message, self._detail(error)) from None
            raise StorageError(self.unusable, self._detail(error)) from None

    def _full(self, error: Exception) -> bool:
        """Whether there is no room left."""
        raise NotImplementedError

    def _detail(self, error: Exception) -> str:
        """Where and what, for whoever runs the service."""
        raise NotImplementedError


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


def batched(values: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """All of them, in parts that fit into one statement each, with a place in it for each value."""
    every = list(values)
    for start in range(0, len(every), VALUES_AT_ONCE):
        part = every[start : start + VALUES_AT_ONCE]
        yield part, ", ".join("?" * len(part))


def is_postgres(address: str) -> bool:
    return address.startswith(("postgresql://", "postgres://"))


def hidden(address: str) -> str:
    """Where the record is, rebuilt from the parts that hold no secret, for the log."""
    if not is_postgres(address):
        return address
    parts = _postgres_parts(address)
    return f"postgresql://{parts.get('host', '')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def _postgres_parts(address: str) -> Mapping[str, object]:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(address)
    except ProgrammingError:  # its message repeats the address
        raise InvalidInput(
            "database",
            "this postgresql:// address cannot be read. Expected postgresql://USER:PASSWORD@HOST/NAME, "
            "with @ / : in the password written as %40 %2F %3A.",
        ) from None


class Sqlite(Connection):
    """WAL, so that readers never wait; ``synchronous=FULL``, so that a commit is on the disk.

    With ``inode``, that of a file opened before, nothing is created: an empty file in the place of one that
    was moved away would take over its log of pending writes, and what is in there would be lost.
    """

    unusable = "record: it cannot be used now. Nothing was written."
    _trouble = (sqlite3.Error, OSError)

    def __init__(self, path: Path, *, read_only: bool = False, inode: int | None = None) -> None:
        self._path = str(path)
        self._copy: TemporaryDirectory[str] | None = None
        with self._errors():
            if read_only:
                self._open_unchanged(path)
                return
            if inode is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self.inode = path.stat().st_ino if inode is None else inode
            self.require_in_place()
            self._inner = _sqlite(f"{_uri(path)}?mode=rw")
            self._inner.execute("PRAGMA journal_mode=WAL")
            self._inner.execute("PRAGMA synchronous=FULL")
            self._inner.execute(f"PRAGMA wal_autocheckpoint={PENDING_PAGES}")

    def _open_unchanged(self, path: Path) -> None:
        """Read a record without creating or changing a file beside it, on a read-only medium too.

        With no log of pending writes the file is whole by itself, and nobody changes it. Where somebody has
        it open the index of that log is there, even if nothing is pending yet, and is shared. A log without
        an index is read in a copy.
        """
        pending, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
        address = f"{_uri(path)}?mode=ro"
        waiting = pending.exists() and pending.stat().st_size > 0
        if not waiting and not index.exists():
            self._inner = _sqlite(f"{address}&immutable=1")
            return
        if index.exists():
            with suppress(sqlite3.OperationalError):
                self._inner = _sqlite(address)
                self._inner.execute("SELECT 1 FROM sqlite_master")
                return
        self._copy = TemporaryDirectory(prefix="surelist-")
        copied = Path(self._copy.name) / "record.db"
        shutil.copyfile(path, copied)
        if waiting:
            shutil.copyfile(pending, f"{copied}-wal")
        self._inner = _sqlite(_uri(copied))

    def begin(self) -> None:
        self.require_in_place()
        self.execute("BEGIN IMMEDIATE")

    def require_in_place(self) -> None:
        """An open file that was moved or deleted can still be written, and nobody would find it again."""
        try:
            same = os.stat(self._path).st_ino == self.inode
        except OSError:
            same = False
        if not same:
            message = "record: its file was moved, replaced or deleted. Nothing was written."
            raise StorageError(message, f"({self._path})")

    def begin_snapshot(self) -> None:
        self.execute("BEGIN")
        self.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # the snapshot starts with the first read

    def close(self) -> None:
        super().close()
        if self._copy is not None:
            self._copy.cleanup()

    def _full(self, error: Exception) -> bool:
        return "full" in str(error) or "No space" in str(error)

    def _detail(self, error: Exception) -> str:
        return f"({self._path}: {error})"


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"


def _sqlite(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )


def _refuse_nul(values: Sequence[object]) -> None:
    """PostgreSQL has no NUL in text; both refuse it, so that a record can move from one to the other."""
    if any(isinstance(value, str) and "\0" in value for value in values):
        raise InvalidInput("text", "a NUL character cannot be kept on record. Leave it out.")


class Postgres(Connection):
    """``synchronous_commit=on`` whatever the server's default: an acknowledged entry is durable."""

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingDependency(
                "A PostgreSQL record needs psycopg: pip install 'surelist[service,postgres]'."
            ) from error
        self._trouble, self._disk_full = (psycopg.Error,), psycopg.errors.DiskFull
        self._where = hidden(address)
        self._secret = str(_postgres_parts(address).get("password") or "")
        with self._errors():
            self._inner = psycopg.connect(
                address,
                autocommit=True,
                connect_timeout=5,
                options="-c synchronous_commit=on -c statement_timeout=60000 "
                f"-c lock_timeout={PATIENCE_SECONDS * 1000} -c client_encoding=UTF8 "
                f"-c default_transaction_read_only={'on' if read_only else 'off'}",
            )

    def begin(self) -> None:
        self.execute("BEGIN")
        self.execute("SELECT pg_advisory_xact_lock(?)", [APPEND_LOCK])

    def begin_snapshot(self) -> None:
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _in_dialect(self, sql: str) -> str:
        return sql.replace("?", "%s")

    def _full(self, error: Exception) -> bool:
        return isinstance(error, self._disk_full)

    def _detail(self, error: Exception) -> str:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"({self._where}: {text.replace(self._secret, '***') if self._secret else text})"
