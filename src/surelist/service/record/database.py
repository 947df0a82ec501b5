"""The record's tables in SQLite or PostgreSQL: made once, guarded, opened for writing or for reading only.

Triggers keep the log and the reviews append-only; ``verify`` compares them. A trigger or rule of anybody else
on the record's tables is a problem too: it could swallow what is written.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from surelist.errors import InvalidInput
from surelist.service.errors import StorageError
from surelist.service.record import connections
from surelist.service.record.connections import Connection, Rows, hidden

FORMAT = "1"

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (
    seq BIGINT PRIMARY KEY NOT NULL, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
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
CREATE INDEX reviews_by_selection ON reviews (selection, seq);
CREATE TABLE notes (
    selection TEXT NOT NULL, candidate TEXT NOT NULL, text TEXT NOT NULL, seq BIGINT PRIMARY KEY NOT NULL
);
CREATE INDEX notes_by_candidate ON notes (selection, candidate);
CREATE TABLE progress (labelling TEXT PRIMARY KEY, seq BIGINT NOT NULL, marks TEXT NOT NULL);
CREATE TABLE sessions (digest TEXT PRIMARY KEY, token TEXT NOT NULL, expires TEXT NOT NULL);
CREATE TABLE replays (
    actor TEXT NOT NULL, name TEXT NOT NULL, request TEXT NOT NULL, seq BIGINT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (actor, name)
);
"""

TABLE_NAMES = re.findall(r"CREATE TABLE (\w+)", TABLES)

_JSON_TEXT = {"sqlite": "json_extract(details, '$.{}')", "postgresql": "(details::json ->> '{}')"}
# by texts in entries' details: what is about one policy, file, labelling or campaign, without reading the log
INDEXES = """\
log_by_policy ON log ({policy}, seq) WHERE action = 'selection.made'
log_by_file ON log ({file}, seq) WHERE action = 'rows.looked'
log_by_labelling ON log ({labelling}, seq) WHERE action = 'policy.saved'
log_watched ON log ({policy}, seq) WHERE action = 'selection.made' AND {watched} IS NOT NULL
log_by_campaign ON log ({campaign}, seq) \
WHERE action IN ('campaign.screened', 'campaign.reviewed', 'campaign.updated')"""

GUARDED = ("log", "reviews")  # no row of these is ever changed or removed
_BODY = "BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END"
_GUARDS = {  # statements that make them, with the table and the verb to put in
    "sqlite": "CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END",
    "postgresql": "CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION surelist_append_only()",
}
_TRIGGERS = {
    "sqlite": "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT t.tgname, c.relname, CASE WHEN t.tgenabled NOT IN ('O', 'A') THEN 'disabled' ELSE "
    "substring(pg_get_triggerdef(t.oid) FROM ' (BEFORE .*) ON ') || "
    "substring(pg_get_triggerdef(t.oid) FROM ' FOR EACH .*$') || ' ' || p.prosrc END "
    "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE NOT t.tgisinternal AND n.nspname = current_schema()",
}
_RULES = "SELECT rulename, tablename FROM pg_rules WHERE schemaname = current_schema()"
_POSTGRES = (
    f"BEFORE DELETE OR UPDATE OR TRUNCATE FOR EACH STATEMENT EXECUTE FUNCTION surelist_append_only() {_BODY}"
)


def add_guards(kind: str, connection: Connection, tables: tuple[str, ...] = GUARDED) -> None:
    """Forbid changes of these tables from now on."""
    if kind == "postgresql":
        connection.execute(
            "CREATE OR REPLACE FUNCTION surelist_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ {_BODY} $$"
        )
    for table in tables:
        for statement in _guards(kind, table).values():
            connection.execute(statement)


def _guards(kind: str, table: str) -> dict[str, str]:
    """The names of a table's guards, and how each is made."""
    if kind == "postgresql":
        return {f"{table}_append_only": _GUARDS[kind].format(table=table)}
    return {
        f"{table}_no_{verb}": _GUARDS[kind].format(table=table, verb=verb) for verb in ("update", "delete")
    }


def check_guards(kind: str, connection: Connection) -> list[str]:
    """A sentence for each guard that is not as it was made, and for each trigger that nobody made here."""
    present = {
        (name, table): " ".join((text or "").split())
        for name, table, text in connection.execute(_TRIGGERS[kind])
    }
    problems = []
    for table in GUARDED:
        made = _guards(kind, table)
        expected = dict.fromkeys(made, _POSTGRES) if kind == "postgresql" else made
        if any(present.pop((name, table), None) != text for name, text in expected.items()):
            problems.append(f"the guard against changes of the table {table} was removed or changed")
    added = [*present, *(connection.execute(_RULES) if kind == "postgresql" else ())]
    return problems + [f"a trigger {name} was added to the table {table}" for name, table in added]


class Database:
    """Connections to one database: one per thread for reading, one for the writer.

    ``read_only`` neither creates nor changes anything; there has to be a record already.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self.address, self._read_only = address, read_only
        self.kind = "postgresql" if connections.is_postgres(address) else "sqlite"
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._guard = threading.Lock()
        self._inode: int | None = None  # of the record's file, once it was opened for writing

    def connect(self) -> Connection:
        connection: Connection
        if self.kind == "postgresql":
            connection = connections.Postgres(self.address, read_only=self._read_only)
        elif self._read_only and not Path(self.address).is_file():
            raise InvalidInput("database", f"there is no file {self.address}.")
        else:
            connection = opened = connections.Sqlite(
                Path(self.address), read_only=self._read_only, inode=self._inode
            )
            self._inode = None if self._read_only else opened.inode
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
        if isinstance(connection, connections.Sqlite):
            connection.require_in_place()

    def read(self, sql: str, values: Sequence[object] = ()) -> Rows:
        """Run one query; a lost connection is opened anew once, since reading twice is harmless."""
        try:
            return self._read(sql, values)
        except StorageError:
            return self._read(sql, values)

    def _read(self, sql: str, values: Sequence[object]) -> Rows:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect()
        try:
            return connection.execute(sql, values)
        except StorageError:
            self._local.connection = None
            self.discard(connection)
            raise

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """The record as it is at one moment, while others go on writing."""
        connection = self.connect()
        try:
            connection.begin_snapshot()
            self._check_version(connection)
            yield connection
        finally:
            connection.rollback()
            self.discard(connection)

    def prepare(self) -> None:
        """Make the tables where there are none; refuse a database of another version."""
        connection = self.connect()
        try:
            with connections.transaction(connection):
                if not connection.execute(_HAS_META[self.kind]):
                    self._create(connection)
                self._check_version(connection)
        finally:
            self.discard(connection)

    def json_text(self, name: str) -> str:
        """SQL for a text in an entry's details."""
        return _JSON_TEXT[self.kind].format(name)

    def _check_version(self, connection: Connection) -> None:
        if not connection.execute(_HAS_META[self.kind]):
            raise InvalidInput("database", f"{hidden(self.address)} holds no record of surelist.")
        if connection.execute("SELECT value FROM meta WHERE name = 'format'") != [(FORMAT,)]:
            raise InvalidInput(
                "database",
                f"{hidden(self.address)} holds a record of another format than {FORMAT}, the one this "
                "surelist reads. Nothing was changed. Use the surelist that made it.",
            )

    def _create(self, connection: Connection) -> None:
        for statement in TABLES.strip().split(";\n"):
            connection.execute(statement)
        for statement in INDEXES.splitlines():
            columns = re.sub(r"{(\w+)}", lambda name: self.json_text(name[1]), statement)
            connection.execute(f"CREATE INDEX {columns}")
        add_guards(self.kind, connection)
        connection.execute("INSERT INTO meta (name, value) VALUES ('format', ?)", [FORMAT])

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
