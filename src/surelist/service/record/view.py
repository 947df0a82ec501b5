"""The record as one actor may use it: whatever a handler reads or writes goes through here.

A token can be for some policies only. Its view holds those, their selections and their reviews;
of everything else it can neither read nor write anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

from surelist.reports.evidence import Look, Question
from surelist.service.record import events
from surelist.service.record.campaigns import Campaigns
from surelist.service.record.connections import batched
from surelist.service.record.event import Entry, Event
from surelist.service.record.labellings import Labellings
from surelist.service.record.log import Batch, Key
from surelist.service.record.record import Actor, Outdated, Registry, SavedPolicy, Writing, policy_hash
from surelist.service.record.reviews import Reviewing


class View(Campaigns, Labellings, Reviewing):
    """A registry bound to an actor: policies and selections here, the rest in what it is made of."""

    def __init__(self, registry: Registry, actor: Actor, key: Key | None = None) -> None:
        super().__init__(registry, actor, key)
        self._described: dict[str, Entry[events.SelectionDescribed] | None] = {}  # by selection

    # -- policies

    def policy(self, digest: str) -> SavedPolicy:
        self.actor.require_policy(digest)
        return self.registry.policy(digest)

    def policies(self, limit: int = 100, before: int | None = None) -> list[SavedPolicy]:
        """Newest first."""
        if self.actor.policies is None:
            return self.registry.with_later(
                self.registry.entries(events.PolicySaved, limit=limit, before=before)
            )
        saved = [self.registry.policy(each) for each in self.actor.policies]
        earlier = [each for each in saved if before is None or each.entry.seq < before]
        return sorted(earlier, key=lambda each: -each.entry.seq)[:limit]

    def alarmed(self) -> list[SavedPolicy]:
        """Policies whose promise was withdrawn and that nobody has retired, the latest alarm first."""
        alarms = self.registry.entries(events.PolicyWithdrawn, without=events.PolicyRetired, limit=None)
        return [self.registry.policy(each.subject) for each in alarms if self.actor.may_use(each.subject)]

    def policy_names(self, policies: Sequence[str] | None = None) -> dict[str, str]:
        """What policies are called, these or all that may be seen, newest first."""
        policies = self.actor.policies if policies is None else policies
        read, name = self.registry.database.read, self.registry.database.json_text("name")
        sql = f"SELECT seq, subject, {name} FROM log WHERE action = 'policy.saved'"
        rows = read(sql) if policies is None else []
        for each, slots in batched(dict.fromkeys(policies or ())):
            rows += read(f"{sql} AND subject IN ({slots})", each)
        called = {str(subject): str(text) for _, subject, text in sorted(rows, reverse=True)}
        later = self.registry.latest(events.PolicyDescribed, list(called))
        called |= {subject: entry.event.name for subject, entry in later.items()}
        return {digest: text for digest, text in called.items() if self.actor.may_use(digest)}

    def save_policy(self, saved: events.PolicySaved, secret: str | None = None) -> Writing:
        """Put a policy on record under the SHA-256 of its file; its salt, ``secret``, beside the log."""
        digest = policy_hash(saved.policy)
        newest = partial(self.registry.newest, events.PolicySaved, subject=digest)
        sql = "INSERT INTO salts (policy, secret) VALUES (?, ?)"
        return self.append(
            digest, saved, earlier=lambda batch: newest(query=batch.query),  # the same file, the same policy
            after=lambda connection, _: connection.execute(sql, [digest, secret]) if secret else None,
        )  # fmt: skip

    def describe_policy(self, policy: str, name: str, note: str) -> Writing:
        """Another name and note; what it was called before stays on record."""
        event = events.PolicyDescribed(name=name, note=note)
        return self.append(self.policy(policy).hash, event, policy=policy)

    def retire_policy(self, policy: str, reason: str) -> Writing:
        return self.append(
            policy, events.PolicyRetired(reason=reason), role="admin", policy=policy,
            before=lambda batch: batch.require_active(policy),
        )  # fmt: skip

    # -- selections

    def selection(self, ident: str) -> Entry[events.SelectionMade]:
        entry = self.registry.one(events.SelectionMade, ident, "selection")
        self.actor.require_policy(entry.event.policy)
        return entry

    def selections(
        self, policy: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[Entry[events.SelectionMade]]:
        """Newest first, of one policy or of all that may be seen."""
        if policy is not None:
            self.actor.require_policy(policy)
        policies = self.actor.policies if policy is None else (policy,)
        find = partial(self.registry.entries, events.SelectionMade, limit=limit, before=before)
        if policies is None:
            return find()
        made = [find(policy=each) for each in policies]
        return sorted(chain(*made), key=lambda entry: -entry.seq)[:limit]

    def watched(self, policy: str) -> list[Entry[events.SelectionMade]]:
        """The selections that count for or against a policy's promise, in the order of screening."""
        self.actor.require_policy(policy)
        find = self.registry.entries
        return find(events.SelectionMade, policy=policy, watched=True, limit=None, oldest=True)

    def pool_reviewed(self, pool: events.SelectionMade) -> bool:
        """Whether this very pool was screened by the policy before, and reviews of it are in or finished."""
        self.actor.require_policy(pool.policy)
        names = list[str]()
        for name, mark in pool.pool_known_by.items():
            known: dict[str, Any] = {"policy": pool.policy, name: mark}
            names += [
                each.subject for each in self.registry.entries(events.SelectionMade, limit=None, **known)
            ]
        return any(
            self.registry.latest(kind, names) for kind in (events.ReviewsReceived, events.ReviewsClosed)
        )

    def unfinished(self, kept: Sequence[str]) -> list[Entry[events.SelectionMade]]:
        """Selections whose reviews have not ended: those that count, and these; newest first."""
        made, closed = events.SelectionMade, events.ReviewsClosed
        found = self.registry.entries(made, without=closed, watched=True, limit=None)
        ended = self.registry.latest(closed, kept)
        found += self.registry.latest(made, [each for each in kept if each not in ended]).values()
        entries = {entry.seq: entry for entry in found if self.actor.may_use(entry.event.policy)}
        return [entries[seq] for seq in sorted(entries, reverse=True)]

    def selection_with_all(
        self, ident: str
    ) -> tuple[SavedPolicy, Entry[events.SelectionMade], dict[str, bool]]:
        """A selection with its policy and its reviews; none while some are hidden."""
        entry, marks = self.selection(ident), self.registry.marks.of(ident)
        outcomes = {} if marks.counts(self.reviewer(ident))["seen"] else marks.outcomes()
        return self.registry.policy(entry.event.policy), entry, outcomes

    def record_selection(self, ident: str, event: events.SelectionMade, after: int | None = None) -> Writing:
        """Refused, in the same transaction, if the policy is retired; or if it counts after other pools than
        those that it was compared with."""

        def check(batch: Batch) -> None:
            batch.require_active(event.policy)
            known = partial(self.registry.count, events.SelectionMade, policy=event.policy, watched=True)
            if after is not None and known(query=batch.query) != after:
                raise Outdated("pool: another one was screened at the same moment. Try again.")

        return self.append(ident, event, policy=event.policy, before=check)

    def describe_selection(self, ident: str, name: str, note: str) -> Writing:
        event = events.SelectionDescribed(name=name, note=note)
        return self.append(ident, event, policy=self.selection(ident).event.policy)

    def read_titles(self, entries: Sequence[Entry[events.SelectionMade]]) -> None:
        """Read at once what these selections are called, for ``title`` and ``note``."""
        new = [entry.subject for entry in entries if entry.subject not in self._described]
        found = self.registry.latest(events.SelectionDescribed, new)
        self._described |= {each: found.get(each) for each in new}

    def _description(
        self, entry: Entry[events.SelectionMade]
    ) -> events.SelectionDescribed | events.SelectionMade:
        self.read_titles([entry])
        return (self._described[entry.subject] or entry).event

    def title(self, entry: Entry[events.SelectionMade]) -> str:
        """What a selection is called: its latest name, else the day it was made."""
        return self._description(entry).name or f"Shortlist of {entry.at[:10]}"

    def note(self, entry: Entry[events.SelectionMade]) -> str:
        """What people noted about a selection last."""
        return self._description(entry).note

    # -- the log, and looks at rows

    def entries(self, limit: int = 100, before: int | None = None) -> list[Entry[Event]]:
        """The whole record, newest first."""
        self.actor.require_all_policies()
        return self.registry.entries(limit=limit, before=before)

    def looks(self, rows: str, file: str) -> list[Look]:
        """What was asked before of these rows (by their fingerprint) or of this file, oldest first."""
        self.actor.require_all_policies()
        part = self.registry.database.json_text("file")
        entries: list[Entry[events.RowsLooked]] = self.registry.select(
            "WHERE seq IN (SELECT seq FROM log WHERE action = 'rows.looked' AND subject IN (?, ?) "
            f"UNION SELECT seq FROM log WHERE action = 'rows.looked' AND {part} = ?) ORDER BY seq",
            [rows, file, file],
        )
        return [Look(each.seq, each.at, each.event.how, each.event.asked) for each in entries]

    def record_look(self, rows: Sequence[str], file: str, how: str, question: Question) -> tuple[Look, ...]:
        """Put on record that these rows were looked at; returns earlier looks with another question.

        Rows with several scores have a fingerprint, and a look, for each. The same request again under the
        same idempotency key is the same look.
        """
        key, known = self.key, {look.seq: look for each in rows for look in self.looks(each, file)}
        event = events.RowsLooked(how=how, file=file, asked=question)
        for number, each in enumerate(rows):
            nth = f" {number}" if number else ""
            again = Key(f"{key.name} (look{nth})", key.request) if key is not None else None
            self.registry.append(self.actor.name, each, event, key=again).result()
        return tuple(known[seq] for seq in sorted(known) if known[seq].asked != question)
