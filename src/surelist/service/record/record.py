"""What is on record: policies, selections, reviews. Everything is an entry of the chained log.

A policy *is* its log entry, so there can be no half policy; a selection likewise. Candidates'
data is not here: pools and shortlists appear as sizes and hashes. Reviews name candidates, so
they have a table of their own and the log holds their number and hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from surelist.errors import InvalidInput
from surelist.promises import policy_file
from surelist.promises.policy import Policy
from surelist.service.errors import Conflict, NotFound
from surelist.service.record.chain import Entry, canonical
from surelist.service.record.connections import Connection
from surelist.service.record.database import Database
from surelist.service.record.writer import Batch, Writer

LAST = 2**62  # above every sequence number
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


@dataclass(frozen=True)
class SavedPolicy:
    """A policy on record."""

    hash: str
    policy: Policy
    entry: Entry
    retired: Entry | None

    @property
    def name(self) -> str:
        return str(self.entry.facts["name"])


class Registry:
    """The record of one service. Reads are direct; writes go through the one writer."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writer = Writer(database)
        self._loaded = lru_cache(maxsize=256)(self._load)

    def close(self) -> None:
        self.writer.close()
        self.database.close()

    # -- writing

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
    ) -> Future[Written]:
        """One entry; with a key seen before, the entry written then, as with one ``earlier`` finds.

        ``before`` may refuse; ``after`` writes what belongs to the entry.
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
            return Written(entry)

        return self.writer.submit(job)

    def save_policy(
        self, policy: Policy, name: str, actor: str, evidence: dict[str, Any], key: Key | None = None
    ) -> Future[Written]:
        """Put a policy on record under the SHA-256 of its file. The salt stays out of the log."""
        text = policy_file.dumps(policy)
        digest = hashlib.sha256(text.encode()).hexdigest()
        secret = policy_file.dump_salt(policy)

        def earlier(batch: Batch) -> Entry | None:
            """The very same file saved again is the same policy."""
            batch.flush()
            rows = batch.connection.execute(
                f"SELECT {COLUMNS} FROM log WHERE subject = ? AND action = 'policy.saved'", [digest]
            )
            return Entry(*rows[0]) if rows else None

        def after(connection: Connection, entry: Entry) -> None:
            if secret is not None:
                connection.execute("INSERT INTO salts (policy, secret) VALUES (?, ?)", [digest, secret])

        facts = {"name": name, "policy": text, **evidence}
        return self.append(actor, "policy.saved", digest, facts, key=key, earlier=earlier, after=after)

    def retire_policy(self, policy: str, actor: str, reason: str, key: Key | None = None) -> Future[Written]:
        def before(batch: Batch) -> None:
            batch.require_active(policy)
            batch.retired(policy)

        return self.append(actor, "policy.retired", policy, {"reason": reason}, key=key, before=before)

    def record_selection(
        self, selection: str, policy: str, actor: str, facts: dict[str, Any], key: Key | None = None
    ) -> Future[Written]:
        """Refused, in the same transaction, if the policy is retired."""
        return self.append(
            actor, "selection.made", selection, {"policy": policy, **facts}, key=key,
            before=lambda batch: batch.require_active(policy),
        )  # fmt: skip

    def record_reviews(
        self, selection: str, actor: str, reviews: dict[str, bool], key: Key | None = None
    ) -> Future[Written]:
        """Outcomes for shortlisted candidates; a later review of the same candidate replaces it."""
        made = self.selection(selection)
        for candidate in reviews:
            if "\0" in candidate:
                raise InvalidInput(
                    f"reviews: expected candidate ids without NUL characters, got {candidate!r}."
                )
        rows = sorted((candidate, int(qualified)) for candidate, qualified in reviews.items())
        facts = {"reviews": len(rows), "qualified": sum(q for _, q in rows), "sha256": reviews_hash(rows)}

        def before(batch: Batch) -> None:
            known = {c for c, _ in _reviewed(batch.connection.execute, selection)}
            together = len(known | set(reviews))
            listed = made.facts["shortlisted"]
            if together > listed:
                raise InvalidInput(
                    f"reviews: the shortlist has {listed:,} candidates, but {together:,} different ones "
                    "would then be reviewed. Send reviews of shortlisted candidates only."
                )

        def after(connection: Connection, entry: Entry) -> None:
            connection.many(
                "INSERT INTO reviews (selection, candidate, qualified, seq) VALUES (?, ?, ?, ?)",
                [(selection, candidate, qualified, entry.seq) for candidate, qualified in rows],
            )

        return self.append(actor, "reviews.received", selection, facts, key=key, before=before, after=after)

    # -- reading

    def policy(self, digest: str) -> SavedPolicy:
        """A policy by its hash (or a beginning of it that fits only one), checked against it."""
        entry = self._one("policy.saved", digest, "policy")
        retired = self.entries(action="policy.retired", subject=entry.subject, limit=1)
        policy = self._loaded(entry.subject, entry.details)
        return SavedPolicy(entry.subject, policy, entry, retired[0] if retired else None)

    def policies(self, limit: int = 100, before: int | None = None) -> list[SavedPolicy]:
        """Newest first."""
        entries = self.entries(action="policy.saved", limit=limit, before=before)
        retired = {entry.subject: entry for entry in self.entries(action="policy.retired", limit=10_000)}
        return [
            SavedPolicy(e.subject, self._loaded(e.subject, e.details), e, retired.get(e.subject))
            for e in entries
        ]

    def selection(self, name: str) -> Entry:
        return self._one("selection.made", name, "selection")

    def selections(
        self, policy: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[Entry]:
        """Newest first, of all policies or of one."""
        if policy is None:
            return self.entries(action="selection.made", limit=limit, before=before)
        rows = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE action = 'selection.made' "
            f"AND {self.database.policy_of_selection} = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
            [policy, before or LAST, limit],
        )
        return [Entry(*row) for row in rows]

    def looks(self, rows: str, file: str, limit: int = 100) -> list[Entry]:
        """Looks at these rows or this file; looks before there were fingerprints are known by the file."""
        part = self.database.json_text("file")
        entries = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE action = 'rows.looked' AND (subject IN (?, ?) OR {part} = ?) "
            "ORDER BY seq DESC LIMIT ?",
            [rows, file, file, limit],
        )
        return [Entry(*row) for row in reversed(entries)]

    def reviews(self, selection: str) -> dict[str, bool]:
        """The latest review of each candidate of a selection."""
        return {c: bool(q) for c, q in _reviewed(self.database.read, selection)}

    def entries(
        self,
        action: str | None = None,
        subject: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Entry]:
        """Entries of the log, newest first."""
        conditions, values = ["1 = 1"], []
        for sql, value in (("action = ?", action), ("subject = ?", subject), ("seq < ?", before)):
            if value is not None:
                conditions.append(sql)
                values.append(value)
        rows = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT ?",
            [*values, limit],
        )
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

    def _one(self, action: str, subject: str, kind: str) -> Entry:
        entries = self.entries(action=action, subject=subject, limit=1)
        if not entries:
            raise NotFound(f"{kind}: there is none named {subject[:80]!r} on record.")
        return entries[0]

    def _load(self, digest: str, details: str) -> Policy:
        text = json.loads(details)["policy"]
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise Conflict(f"policy: what is on record under {digest} has another hash. It was edited.")
        secret = self.database.read("SELECT secret FROM salts WHERE policy = ?", [digest])
        return Policy.loads(text, name=digest[:12], salt_text=secret[0][0] if secret else None)


def reviews_hash(rows: list[tuple[str, int]]) -> str:
    """SHA-256 of reviews as sorted [candidate, 0 or 1] pairs."""
    return hashlib.sha256(canonical([list(row) for row in rows]).encode()).hexdigest()


def _reviewed(query: Callable[..., Any], selection: str) -> list[tuple[str, int]]:
    rows = query("SELECT candidate, qualified FROM reviews WHERE selection = ? ORDER BY seq", [selection])
    return list({candidate: (candidate, qualified) for candidate, qualified in rows}.values())


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
