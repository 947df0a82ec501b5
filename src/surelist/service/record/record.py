"""The record of one service: its log, the policies on it, and what was read of it before.

A policy *is* its log entry, so there can be no half policy; a selection likewise. Candidates'
data is not here: pools and shortlists appear as sizes and hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from surelist.promises.policy import Policy
from surelist.service.errors import Conflict
from surelist.service.record.chain import Entry
from surelist.service.record.database import Database
from surelist.service.record.events import PolicyDescribed, PolicyRetired, PolicySaved, PolicyWithdrawn
from surelist.service.record.log import Log
from surelist.service.record.marks import MarksOnRecord


@dataclass(frozen=True)
class SavedPolicy:
    """A policy on record, and what became of it."""

    policy: Policy
    entry: Entry[PolicySaved]
    retired: Entry[PolicyRetired] | None
    withdrawn: Entry[PolicyWithdrawn] | None
    described: Entry[PolicyDescribed] | None  # a later name and note

    @property
    def hash(self) -> str:
        return self.entry.subject

    @property
    def saved(self) -> PolicySaved:
        return self.entry.event

    @property
    def name(self) -> str:
        return (self.described or self.entry).event.name

    @property
    def note(self) -> str:
        return (self.described or self.entry).event.note

    @property
    def why_withdrawn(self) -> str | None:
        return self.withdrawn.event.reason if self.withdrawn else None

    @property
    def current(self) -> Policy:
        """The policy as it stands: after an alarm the same thresholds, promising nothing."""
        return self.policy.withdraw(self.withdrawn.event.reason) if self.withdrawn else self.policy

    @property
    def in_use(self) -> bool:
        return self.retired is None and self.withdrawn is None


class Registry(Log):
    """The record of one service. What one actor may read and write of it is in ``view``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.marks = MarksOnRecord(database)
        self._loaded = lru_cache(maxsize=256)(self._load)

    def policy(self, digest: str) -> SavedPolicy:
        """A policy by its hash, checked against it."""
        return self.with_later([self.one(PolicySaved, digest, "policy")])[0]

    def with_later(self, entries: Sequence[Entry[PolicySaved]]) -> list[SavedPolicy]:
        """Policies with what became of them."""
        subjects = [entry.subject for entry in entries]
        retired = self.latest(PolicyRetired, subjects)
        withdrawn = self.latest(PolicyWithdrawn, subjects)
        described = self.latest(PolicyDescribed, subjects)
        return [
            SavedPolicy(
                self._loaded(each.subject, each.event.policy), each, retired.get(each.subject),
                withdrawn.get(each.subject), described.get(each.subject),
            )
            for each in entries
        ]  # fmt: skip

    def loaded(self, text: str) -> Policy:
        """The policy in a file's text: read and verified once, however often somebody asks."""
        return self._loaded(policy_hash(text), text)

    def _load(self, digest: str, text: str) -> Policy:
        if policy_hash(text) != digest:
            raise Conflict(f"policy: what is on record under {digest} has another hash. It was edited.")
        secret = self.database.read("SELECT secret FROM salts WHERE policy = ?", [digest])
        return Policy.loads(text, name=digest[:12], salt_text=secret[0][0] if secret else None)


def policy_hash(text: str) -> str:
    """What a policy is known by: the SHA-256 of its file."""
    return hashlib.sha256(text.encode()).hexdigest()
