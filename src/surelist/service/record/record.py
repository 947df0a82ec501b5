"""The record of one service, and the actor it is bound to: what every part of a view is made of.

A policy *is* its log entry, so there can be no half policy; a selection likewise. Candidates'
data is not here: pools and shortlists appear as sizes and hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

from surelist.errors import SurelistError
from surelist.promises.policy import Policy
from surelist.service.errors import Conflict, Forbidden
from surelist.service.record.database import Database
from surelist.service.record.event import E, Entry
from surelist.service.record.events import PolicyDescribed, PolicyRetired, PolicySaved, PolicyWithdrawn
from surelist.service.record.log import Batch, Key, Log, Written
from surelist.service.record.marks import MarksOnRecord

P = ParamSpec("P")
T = TypeVar("T")
ATTEMPTS = 5
ROLES = ("viewer", "operator", "admin")  # each may do what those before it may
LOCAL = "local"
ENDS = "'reviews.closed', 'campaign.reviewed'"  # of the reviews of a list


class Actor(Struct, frozen=True):
    """Whoever makes a request: a name for the record, a role, perhaps some policies only."""

    name: str
    role: str
    policies: tuple[str, ...] | None = None  # None: all of them

    @property
    def limited(self) -> bool:
        """Whether they may use some policies only, and nothing that belongs to none."""
        return self.policies is not None

    @property
    def leads(self) -> bool:
        """Whether they may manage who else may do what."""
        return self.role == "admin" and not self.limited

    def require(self, role: str) -> None:
        if ROLES.index(self.role) < ROLES.index(role):
            raise Forbidden(f"This needs the role {role!r}; yours is {self.role!r}.")

    def may_use(self, policy: str | None) -> bool:
        """Whether a policy, or what belongs to it, is theirs to use."""
        return self.policies is None or policy in self.policies

    def require_policy(self, policy: str) -> None:
        if not self.may_use(policy):
            other = "another policy" if len(self.policies or ()) == 1 else "other policies"
            raise Forbidden(f"This token is for {other}.")

    def require_all_policies(self) -> None:
        if self.policies is not None:
            count = len(self.policies)
            some = "one policy" if count == 1 else f"{count:,} policies"
            raise Forbidden(f"This token is for {some} only; this needs one for all of them.")


LOCAL_ACTOR = Actor(LOCAL, "admin")


class SavedPolicy(Struct, frozen=True):
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
    def state(self) -> str:
        return "withdrawn" if self.withdrawn else "retired" if self.retired else "in use"

    @property
    def in_use(self) -> bool:
        return self.state == "in use"


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


class Outdated(Conflict):
    """What was to be written was worked out from something that has changed meanwhile."""


class Bound:
    """A registry bound to an actor, and to the idempotency key of what they ask, if it has one."""

    def __init__(self, registry: Registry, actor: Actor, key: Key | None = None) -> None:
        self.registry, self.actor, self.key = registry, actor, key

    def may(self, role: str, policy: str | None = None) -> str:
        """The actor's name for the log, if they have this role for this policy, or for all without one."""
        self.actor.require(role)
        if policy is None:
            self.actor.require_all_policies()
        else:
            self.actor.require_policy(policy)
        return self.actor.name

    def append(
        self, subject: str, event: E, *, role: str = "operator", policy: str | None = None, **how: Any
    ) -> Future[Written[E]]:
        """One entry by this actor, if they may: see ``may``, and ``Log.append`` for ``how``."""
        return self.registry.append(self.may(role, policy), subject, event, key=self.key, **how)

    def replayed(self) -> Entry[Any] | None:
        """What is on record under the idempotency key already, if the request was the same."""
        return None if self.key is None else self.registry.replayed(self.actor.name, self.key)

    def once(self, job: Callable[[], Written[Any]]) -> Written[Any]:
        """What a request leads to; sent again under one key, also at the same moment, what it led to first.

        The slower of two may be refused because of what the faster one has just done.
        """
        if (known := self.replayed()) is not None:
            return Written(known, replayed=True)
        try:
            return job()
        except SurelistError:
            if (known := self.replayed()) is not None:
                return Written(known, replayed=True)
            raise


Writing = Future[Written[Any]]


def retried(work: Callable[P, T]) -> Callable[P, T]:
    """Worked out anew where something it rests on has changed meanwhile, a few times."""

    @wraps(work)
    def done(*args: P.args, **named: P.kwargs) -> T:
        for _ in range(ATTEMPTS - 1):
            with suppress(Outdated):
                return work(*args, **named)
        return work(*args, **named)

    return done


def require_open(batch: Batch, selection: str, until: int | None = None) -> None:
    """Raise where the reviews of a list have ended, or any is later than the entry ``until``."""
    sql = f"SELECT at, actor FROM log WHERE subject = ? AND action IN ({ENDS})"
    for at, actor in batch.query(sql, [selection]):
        raise Conflict(
            f"reviews: {actor} finished them on {at[:10]}; they count as evidence as they were then and "
            "cannot change any more."
        )
    later = "SELECT 1 FROM reviews WHERE selection = ? AND seq > ? LIMIT 1"
    if until is not None and batch.query(later, [selection, until]):
        raise Outdated("reviews: another one arrived at the same moment. Try again.")
