"""``surelist verify-log``: recompute the whole chain and check what hangs on it. Changes nothing.

Beside the log a record has tables that the log vouches for: reviews (their hash and their selection), notes,
the answers of labellings, salts, sessions and idempotency keys. A row
that the log does not explain is a problem, as is an entry that contradicts an earlier one: each event says
what contradicts it (``Event.verify``) and leaves in the ``Story`` what later ones are compared with.

A copy of the whole record in one SQLite file, and a record made from such a copy, go table by table inside
one transaction on each side, and are verified before they count: a copy that is not what was copied is
removed again. Sessions are left out: whoever was logged in logs in again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from surelist._files import writing
from surelist.errors import InvalidInput, SurelistError
from surelist.promises.policy import Policy
from surelist.service.errors import StorageError
from surelist.service.record import live_settings  # noqa: F401 (its event is read here)
from surelist.service.record.access import Token, fingerprint
from surelist.service.record.connections import Connection, hidden, transaction
from surelist.service.record.database import TABLE_NAMES, Database, check_guards
from surelist.service.record.event import GENESIS, Entry, Event, read
from surelist.service.record.events import hash_of
from surelist.service.record.log import COLUMNS
from surelist.service.record.marks import MARKS, Marks
from surelist.service.record.reviews import Reviewable
from surelist.workflows import watching
from surelist.workflows.watching import PoolNumbers, WatchedPool, WatchedPromise

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign
    from surelist.lifecycle.labelling import Labelling


PAGE = 2_000
EMPTY = "the log is empty: nothing was ever recorded, or everything was removed"


class Verdict(Struct):
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
        number, _, digest = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 19) or len(digest) != 64:
            raise InvalidInput("receipt", expected="SEQ:HASH as printed with an entry", got=repr(text))
        seq = int(number)
        if receipts.setdefault(seq, digest) != digest:
            verdict.problems.append(f"two receipts of entry {seq} contradict each other")
    if receipts.get(0) == GENESIS:
        del receipts[0]  # the head of a record before its first entry
    return receipts


class Story:
    """What is known after some entries."""

    def __init__(self, connection: Connection, problems: list[str]) -> None:
        self.connection, self._problems = connection, problems
        self.policies: dict[str, bool] = {}  # saved, and whether in use
        self.loaded: dict[str, Policy] = {}
        self.salted: set[str] = set()
        self.withdrawn: set[str] = set()  # policies
        self.watched: dict[str, dict[str, float | None]] = {}  # policy: selections that count, audit rates
        self.reviewable: dict[str, Reviewable] = {}  # selections, pools of campaigns, labellings
        self.reviews = 0
        self.closed: dict[str, PoolNumbers | None] = {}  # whose reviews have ended: what they show
        self.removed: set[str] = set()  # lists that are no longer kept
        self.notes: dict[int, tuple[str, str]] = {}  # entry: selection and hash
        self.labellings: dict[str, Labelling] = {}
        self.told: dict[str, int] = {}  # labelling: the last entry with answers
        self.campaigns: dict[str, Campaign] = {}
        self.ended: set[str] = set()  # campaigns that were withdrawn
        self.pools: set[tuple[str, str]] = set()  # that count, by campaign or policy and the hash of the file
        self.tokens: dict[str, Token] = {}  # as they are now
        self.sessions: dict[str, dict[str, str]] = {}  # fingerprint and end, by token

    def verify(self, entry: Entry[Event]) -> None:
        """One more entry."""
        try:
            read(entry.action, entry.details).verify(entry, self)
        except (SurelistError, msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
            self.problem(entry, f"what it says cannot be read ({type(error).__name__})")

    def problem(self, entry: Entry[Event], text: str) -> None:
        self._problems.append(f"entry {entry.seq}: {text}")

    def require_in_use(self, entry: Entry[Event], policy: str) -> None:
        if not self.policies.get(policy, False):
            ended = "was withdrawn before" if policy in self.withdrawn else "was retired before"
            state = ended if policy in self.policies else "was never saved"
            self.problem(entry, f"its policy {policy[:12]} {state}")

    def require_reviewable(self, entry: Entry[Event]) -> None:
        if entry.subject not in self.reviewable:
            self.problem(entry, "its selection was never made")

    def close(self, entry: Entry[Event]) -> dict[str, bool]:
        """The reviews of a list end with this entry; what the marks on record say."""
        if entry.subject in self.closed:
            self.problem(entry, "the reviews of its selection had ended before")
        marks = Marks()
        marks.take(self.connection.execute(f"{MARKS} WHERE r.selection = ? ORDER BY r.seq", [entry.subject]))
        return marks.outcomes()

    def watch(self, policy: str) -> WatchedPromise:
        """What the reviews so far say of a policy's promise."""
        pools = self.watched.get(policy, {})
        return watching.watch(
            self.loaded[policy],
            [WatchedPool(each, self.closed.get(each), rate) for each, rate in pools.items()],
        )

    # -- the tables beside the log

    def compare_tables(self) -> None:
        total = int(self.connection.execute("SELECT count(*) FROM reviews")[0][0])
        if total != self.reviews:
            self._add(f"the log tells of {self.reviews:,} reviews, but {total:,} are kept")
        for policy in self.watched.keys() & self.loaded.keys() - self.withdrawn:
            try:
                alarm = self.watch(policy).alarm
            except SurelistError as error:
                self._add(f"what the reviews of policy {policy[:12]} are said to show is impossible: {error}")
                continue
            if alarm is not None:
                self._add(f"the reviews of policy {policy[:12]} raise the alarm, but it was not withdrawn")
        for name, campaign in self.campaigns.items():
            if campaign.alarm and name not in self.ended:
                self._add(f"the reviews of campaign {name} raise the alarm, but it was not withdrawn")
        self._compare_notes()
        self._compare_progress()
        for (policy,) in self.connection.execute("SELECT policy FROM salts"):
            if policy not in self.salted:
                self._add(f"a salt is kept for policy {str(policy)[:12]}, which has none in the log")
        self._compare_sessions()
        for actor, name, entry_actor in self.connection.execute(
            "SELECT r.actor, r.name, l.actor FROM replays r LEFT JOIN log l ON l.seq = r.seq AND l.at = r.at"
        ):
            if actor != entry_actor:
                self._add(f"the idempotency key {name!r} of {actor} leads to an entry that is not theirs")

    def _compare_notes(self) -> None:
        notes = self.connection.execute("SELECT seq, selection, candidate, text FROM notes")
        for seq, selection, candidate, text in notes:
            if self.notes.pop(seq, None) != (selection, hash_of([candidate, text])):
                self._add(f"the note of entry {seq} is not what the log says, or was to be removed")
        for seq in self.notes:
            self._add(f"the note of entry {seq} is gone, and the log does not say that it was removed")

    def _compare_progress(self) -> None:
        known = {name: (seq, self.labellings[name].marks) for name, seq in self.told.items()}
        for labelling, *row in self.connection.execute("SELECT labelling, seq, marks FROM progress"):
            if known.pop(labelling, None) != tuple(row):
                self._add(f"the answers kept for labelling {labelling} are not those in the log")
        for labelling in known:
            self._add(f"the answers of labelling {labelling} are in the log, but no longer kept beside it")

    def _compare_sessions(self) -> None:
        rows = self.connection.execute("SELECT digest, token, expires FROM sessions")
        for digest, token, expires in rows:
            begun, known = self.sessions.get(token, {}), fingerprint(digest)
            if known not in begun:
                self._add(f"a session of token {token} was never begun in the log")
            elif begun[known] != expires:
                self._add(f"a session of token {token} is not as the log says: expires was changed")

    def _add(self, problem: str) -> None:
        self._problems.append(problem)


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
