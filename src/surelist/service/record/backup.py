"""A copy of the whole record in one SQLite file, and a record made from such a copy.

Both go table by table inside one transaction on each side, and both are verified before they count:
a copy that is not what was copied is removed again. Sessions are left out: whoever was
logged in logs in again.
"""

from __future__ import annotations

import os
from pathlib import Path

from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.service.errors import StorageError
from surelist.service.record.connections import Connection, hidden, transaction
from surelist.service.record.database import TABLE_NAMES, Database
from surelist.service.record.verify import EMPTY, Verdict, verify

LEFT_OUT = ("meta", "sessions")
ROWS_AT_ONCE = 2_000


def back_up(address: str, output: Path) -> Verdict:
    """Copy the record at ``address``, as it is at one moment, to the new file ``output``."""
    if output.exists():
        raise InvalidInput("output", f"{output} exists already; a backup never replaces a file.")
    source = Database(address, read_only=True)
    try:
        with writing(output) as temporary:
            os.chmod(temporary, 0o600)
            verdict = _copied(source, Database(str(temporary)))
            for leftover in ("-wal", "-shm"):
                Path(f"{temporary}{leftover}").unlink(missing_ok=True)
    finally:
        source.close()
    return verdict


def restore(backup: Path, address: str) -> Verdict:
    """Make the record at ``address``, which must not hold one yet, from a backup."""
    if not backup.is_file():
        raise InvalidInput("backup", f"there is no file {backup}.")
    source = Database(str(backup), read_only=True)
    try:
        _require_intact(verify(source), "the backup")
        return _copied(source, Database(address))
    finally:
        source.close()


def _copied(source: Database, target: Database) -> Verdict:
    try:
        target.prepare()
        reader, writer = source.connect(), target.connect()
        reader.begin_snapshot()
        with transaction(writer):
            if writer.execute("SELECT 1 FROM log LIMIT 1"):
                raise InvalidInput("database", f"{hidden(target.address)} holds a record already.")
            for table in [each for each in TABLE_NAMES if each not in LEFT_OUT]:
                _copy_table(reader, writer, table)
            head = reader.execute("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")
        source.discard(reader)
        target.discard(writer)
        receipts = tuple(f"{seq}:{digest}" for seq, digest in head)
        verdict = verify(target, receipts)
    finally:
        target.close()
    _require_intact(verdict, "the copy")
    return verdict


def _require_intact(verdict: Verdict, what: str) -> None:
    problems = [each for each in verdict.problems if each != EMPTY]  # a record not used yet has a copy too
    if problems:
        raise StorageError(f"record: {what} is not intact: {problems[0]}. Do not use it.")


def _copy_table(reader: Connection, writer: Connection, table: str) -> None:
    """Tables that grow without end hang on the log's numbers and come in pieces; the others are small."""
    columns = writer.columns(table)
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    insert, select = f"INSERT INTO {table} ({names}) VALUES ({marks})", f"SELECT {names} FROM {table}"
    if "seq" not in columns:
        writer.many(insert, reader.execute(select))
        return
    last = reader.execute(f"SELECT max(seq) FROM {table}")[0][0] or 0
    for start in range(0, last, ROWS_AT_ONCE):
        part = [start, start + ROWS_AT_ONCE]
        writer.many(insert, reader.execute(f"{select} WHERE seq > ? AND seq <= ? ORDER BY seq", part))
