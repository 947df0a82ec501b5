"""What is on record: policies and selections. Everything is an entry of the chained log.

A policy *is* its log entry, so there can be no half policy; a selection likewise. Candidates'
data is not here: pools and shortlists appear as sizes and hashes. What people say of candidates is
in ``reviews``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from surelist.promises import policy_file
from surelist.promises.policy import Policy
from surelist.service.errors import Conflict
from surelist.service.record.chain import Entry
from surelist.service.record.connections import Connection, batched, slots
from surelist.service.record.database import Database
from surelist.service.record.labellings import LabellingBook
from surelist.service.record.log import COLUMNS, Key, Log, Written
from surelist.service.record.reviews import ReviewBook
from surelist.service.record.writer import Batch

LAST = 2**62  # above every sequence number
LATER = ("policy.retired", "policy.withdrawn", "policy.described")  # what may become of a policy


@dataclass(frozen=True)
class SavedPolicy:
    """A policy on record."""

    hash: str
    policy: Policy
    entry: Entry
    retired: Entry | None
    withdrawn: Entry | None = None
    described: Entry | None = None  # a later name and note

    @property
    def name(self) -> str:
        return str((self.described or self.entry).facts["name"])

    @property
    def note(self) -> str:
        return str((self.described or self.entry).facts.get("note", ""))

    @property
    def current(self) -> Policy:
        """The policy as it stands: after an alarm the same thresholds, promising nothing."""
        return self.policy.withdraw(self.withdrawn.facts["reason"]) if self.withdrawn else self.policy

    @property
    def in_use(self) -> bool:
        return self.retired is None and self.withdrawn is None


class Registry(Log):
    """The record of one service."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.book = ReviewBook(self)
        self.labellings = LabellingBook(self)
        self._loaded = lru_cache(maxsize=256)(self._load)

    # -- writing

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

    def describe(
        self, kind: str, subject: str, actor: str, name: str, note: str, key: Key | None = None
    ) -> Future[Written]:
        """Another name and note for a policy or a selection; what it was called before stays on record."""
        return self.append(actor, f"{kind}.described", subject, {"name": name, "note": note}, key=key)

    # -- reading

    def policy(self, digest: str) -> SavedPolicy:
        """A policy by its hash (or a beginning of it that fits only one), checked against it."""
        entry = self.one("policy.saved", digest, "policy")
        policy = self._loaded(entry.subject, entry.details)
        later = [self.latest(action, [entry.subject]).get(entry.subject) for action in LATER]
        return SavedPolicy(entry.subject, policy, entry, *later)

    def policies(self, limit: int = 100, before: int | None = None) -> list[SavedPolicy]:
        """Newest first."""
        return self._with_later(self.entries(action="policy.saved", limit=limit, before=before))

    def alarmed(self) -> list[SavedPolicy]:
        """All whose promise was withdrawn and that nobody has retired since, newest first."""
        rows = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE action = 'policy.saved' "
            "AND subject IN (SELECT subject FROM log WHERE action = 'policy.withdrawn') "
            "AND subject NOT IN (SELECT subject FROM log WHERE action = 'policy.retired') ORDER BY seq DESC"
        )
        return self._with_later([Entry(*row) for row in rows])

    def _with_later(self, entries: Sequence[Entry]) -> list[SavedPolicy]:
        """Policies with what became of them."""
        subjects = [entry.subject for entry in entries]
        later = [self.latest(action, subjects) for action in LATER]
        return [
            SavedPolicy(
                e.subject, self._loaded(e.subject, e.details), e, *(each.get(e.subject) for each in later)
            )
            for e in entries
        ]

    def names(self, policies: Sequence[str] | None = None) -> dict[str, str]:
        """What policies are called, these or all, newest first."""
        name = self.database.json_text("name")
        sql = f"SELECT seq, subject, {name} FROM log WHERE action = 'policy.saved'"
        parts = [(sql, [])] if policies is None else [
            (f"{sql} AND subject IN ({slots(each)})", each) for each in batched(dict.fromkeys(policies))
        ]  # fmt: skip
        saved = sorted((row for each in parts for row in self.database.read(*each)), reverse=True)
        called = {str(subject): str(text) for _, subject, text in saved}
        return called | {
            subject: str(entry.facts["name"])
            for subject, entry in self.latest("policy.described", list(called)).items()
        }

    def latest(self, action: str, subjects: Sequence[str]) -> dict[str, Entry]:
        """The latest entry of a kind about each of these subjects, of those that have one."""
        found = {}
        for each in batched(subjects):
            rows = self.database.read(
                f"SELECT {COLUMNS} FROM log WHERE seq IN (SELECT max(seq) FROM log "
                f"WHERE action = ? AND subject IN ({slots(each)}) GROUP BY subject)",
                [action, *each],
            )
            found.update({entry.subject: entry for entry in (Entry(*row) for row in rows)})
        return found

    def selection(self, name: str) -> Entry:
        return self.one("selection.made", name, "selection")

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

    def watched(self, policy: str) -> list[Entry]:
        """The selections whose reviews are to show whether the promise holds, in the order of screening."""
        rows = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE action = 'selection.made' "
            f"AND {self.database.json_text('watched')} IS NOT NULL "
            f"AND {self.database.policy_of_selection} = ? ORDER BY seq",
            [policy],
        )
        return [Entry(*row) for row in rows]

    def unfinished(self, kept: Sequence[str]) -> list[Entry]:
        """Selections whose reviews have not ended: those that count, and these; newest first."""
        made = "action = 'selection.made'"
        found = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE {made} AND {self.database.json_text('watched')} IS NOT NULL "
            "AND subject NOT IN (SELECT subject FROM log WHERE action = 'reviews.closed')"
        )
        for each in batched(kept):
            found += self.database.read(
                f"SELECT {COLUMNS} FROM log WHERE {made} AND subject IN ({slots(each)}) "
                "AND subject NOT IN (SELECT subject FROM log WHERE action = 'reviews.closed')",
                each,
            )
        entries = {row[0]: Entry(*row) for row in found}
        return [entries[seq] for seq in sorted(entries, reverse=True)]

    def looks(self, rows: str, file: str) -> list[Entry]:
        """Looks at these rows or this file; looks before there were fingerprints are known by the file."""
        part = self.database.json_text("file")
        entries = self.database.read(
            f"SELECT {COLUMNS} FROM log WHERE seq IN ("
            "SELECT seq FROM log WHERE action = 'rows.looked' AND subject IN (?, ?) "
            f"UNION SELECT seq FROM log WHERE action = 'rows.looked' AND {part} = ?) ORDER BY seq",
            [rows, file, file],
        )
        return [Entry(*row) for row in entries]

    def _load(self, digest: str, details: str) -> Policy:
        text = json.loads(details)["policy"]
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise Conflict(f"policy: what is on record under {digest} has another hash. It was edited.")
        secret = self.database.read("SELECT secret FROM salts WHERE policy = ?", [digest])
        return Policy.loads(text, name=digest[:12], salt_text=secret[0][0] if secret else None)
