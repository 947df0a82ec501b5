"""The record as one actor may use it: whatever a handler reads or writes goes through here.

A token can be for some policies only. Its view holds those, their selections and their reviews;
of everything else it can neither read nor write anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from itertools import chain
from typing import Any

from surelist.errors import SurelistError
from surelist.promises.policy import Policy
from surelist.service.errors import NotFound
from surelist.service.record.access import Actor
from surelist.service.record.campaigns import Campaigns
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key, Written
from surelist.service.record.marks import Marks
from surelist.service.record.record import Registry, SavedPolicy
from surelist.service.record.reviews import Closing


class View:
    """A registry bound to an actor."""

    def __init__(self, registry: Registry, actor: Actor) -> None:
        self._registry, self.actor = registry, actor

    # -- reading

    def policy(self, digest: str) -> SavedPolicy:
        self.actor.require_policy(digest)
        return self._registry.policy(digest)

    def policies(self, limit: int = 100, before: int | None = None) -> list[SavedPolicy]:
        """Newest first."""
        if self.actor.policies is None:
            return self._registry.policies(limit, before)
        saved = [self._registry.policy(each) for each in self.actor.policies]
        earlier = [each for each in saved if before is None or each.entry.seq < before]
        return sorted(earlier, key=lambda each: -each.entry.seq)[:limit]

    def selection(self, ident: str) -> Entry:
        entry = self._registry.selection(ident)
        self.actor.require_policy(entry.facts["policy"])
        return entry

    def selections(
        self, policy: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[Entry]:
        """Newest first, of one policy or of all that may be seen."""
        if policy is not None:
            self.actor.require_policy(policy)
        if policy is not None or self.actor.policies is None:
            return self._registry.selections(policy, limit, before)
        made = [self._registry.selections(each, limit, before) for each in self.actor.policies]
        return sorted(chain(*made), key=lambda entry: -entry.seq)[:limit]

    def marks(self, selection: str) -> Marks:
        """Who marked which candidate as what."""
        return self._registry.book.marks(self.subject(selection).subject)

    def seen(self, ident: str) -> Entry | None:
        """A selection on record that this actor may see, or None."""
        try:
            entry = self._registry.book.subject(ident)
        except NotFound:
            return None
        return entry if self.actor.may_use(entry.facts.get("policy")) else None

    def subject(self, ident: str) -> Entry:
        """What is reviewed; a labelling and a pool of a campaign need a token for all policies."""
        entry = self._registry.book.subject(ident)
        if "policy" in entry.facts:
            self.actor.require_policy(entry.facts["policy"])
        else:
            self.actor.require_all_policies()
        return entry

    @property
    def campaigns(self) -> Campaigns:
        return Campaigns(self._registry, self.actor)

    def labelling(self, ident: str) -> Entry:
        self.actor.require_all_policies()
        return self._registry.one("labelling.started", ident, "labelling")

    def labellings(self, limit: int = 20) -> list[Entry]:
        """Newest first; none for a token of some policies."""
        if self.actor.limited:
            return []
        return self._registry.entries(action="labelling.started", limit=limit)

    def told(self, ident: str) -> list[dict[str, Any]]:
        """The answers of a labelling that count, oldest first."""
        entries = self._registry.entries(action="labelling.told", subject=ident, limit=1000)
        return [entry.facts for entry in reversed(entries)]

    def listed(self) -> set[str]:
        """The labellings whose certified list was made."""
        return set(self._registry.latest("labelling.listed"))

    def policy_of(self, labelling: str) -> str | None:
        """The policy that a labelling led to, if it was saved."""
        made = self._registry.entries(action="policy.saved", limit=500)
        return next((e.subject for e in made if e.facts.get("labelling") == labelling), None)

    def notes(self, selection: str, candidate: str) -> list[dict[str, Any]]:
        return self._registry.book.notes(self.subject(selection).subject, candidate)

    def all_notes(self, selection: str) -> dict[str, str]:
        return self._registry.book.all_notes(self.subject(selection).subject)

    def reviews_closed(self, selection: str) -> Entry | None:
        """The entry that ended the reviews of a selection, if one did."""
        return self._registry.book.closed(self.subject(selection).subject)

    def finished(self) -> set[str]:
        """The selections whose reviews have ended."""
        return set(self._registry.latest("reviews.closed"))

    @cached_property
    def _described(self) -> dict[str, Entry]:
        return self._registry.latest("selection.described")

    def title(self, entry: Entry) -> str:
        """What a selection is called: its latest name, else the day it was made."""
        facts = self._described.get(entry.subject, entry).facts
        return str(facts.get("name") or f"Shortlist of {entry.at[:10]}")

    def note(self, entry: Entry) -> str:
        """What people noted about a selection last."""
        return str(self._described.get(entry.subject, entry).facts.get("note", ""))

    def watched(self, policy: str) -> list[Entry]:
        """The selections that count for or against a policy's promise, in the order of screening."""
        self.actor.require_policy(policy)
        return self._registry.watched(policy)

    def closings(self, policy: str) -> dict[str, dict[str, Any]]:
        """What the finished reviews of a policy's selections show, by selection."""
        self.actor.require_policy(policy)
        return self._registry.book.closings(policy)

    def selection_with_all(self, ident: str) -> tuple[SavedPolicy, Entry, dict[str, bool]]:
        """A selection with its policy and its reviews."""
        entry = self.selection(ident)
        outcomes = self._registry.book.marks(ident).outcomes()
        return self._registry.policy(entry.facts["policy"]), entry, outcomes

    def entries(self, limit: int = 100, before: int | None = None) -> list[Entry]:
        """The whole record, newest first."""
        self.actor.require_all_policies()
        return self._registry.entries(limit=limit, before=before)

    def looks(self, rows: str, file: str) -> list[dict[str, Any]]:
        """What was asked before of these rows (by their fingerprint) or of this file, oldest first."""
        self.actor.require_all_policies()
        entries = self._registry.looks(rows, file)
        return [{"seq": entry.seq, "at": entry.at, **entry.facts} for entry in entries]

    def replayed(self, key: Key | None) -> Entry | None:
        """What is on record under an idempotency key already, if the request was the same."""
        return None if key is None else self._registry.replayed(self.actor.name, key)

    def once(self, key: Key | None, job: Callable[[], Written]) -> Written:
        """What a request leads to; sent again under one key, also at the same moment, what it led to first.

        The slower of two may be refused because of what the faster one has just done.
        """
        if (known := self.replayed(key)) is not None:
            return Written(known, replayed=True)
        try:
            return job()
        except SurelistError:
            if (known := self.replayed(key)) is not None:
                return Written(known, replayed=True)
            raise

    # -- writing

    def record_look(
        self,
        rows: Sequence[str],
        file: str,
        how: str,
        question: dict[str, Any],
        key: Key | None = None,
    ) -> list[dict[str, Any]]:
        """Put on record that these rows were looked at; returns earlier looks with another question.

        Rows with several scores have a fingerprint, and a look, for each. The same request again under the
        same idempotency key is the same look.
        """
        known = {look["seq"]: look for each in rows for look in self.looks(each, file)}
        earlier = [known[seq] for seq in sorted(known)]
        facts = {"how": how, "file": file, **question}
        for number, each in enumerate(rows):
            nth = f" {number}" if number else ""
            again = Key(f"{key.name} (look{nth})", key.request) if key is not None else None
            self._registry.append(self.actor.name, "rows.looked", each, facts, key=again).result()
        return [look for look in earlier if {name: look.get(name) for name in question} != question]

    def save_policy(
        self, policy: Policy, name: str, evidence: dict[str, Any], key: Key | None = None
    ) -> Future[Written]:
        self.actor.require("operator")
        self.actor.require_all_policies()
        return self._registry.save_policy(policy, name, self.actor.name, evidence, key)

    def describe_policy(self, policy: str, name: str, note: str, key: Key | None = None) -> Future[Written]:
        self.actor.require("operator")
        digest = self.policy(policy).hash
        return self._registry.describe("policy", digest, self.actor.name, name, note, key)

    def describe_selection(self, ident: str, name: str, note: str, key: Key | None = None) -> Future[Written]:
        self.actor.require("operator")
        selection = self.selection(ident).subject
        return self._registry.describe("selection", selection, self.actor.name, name, note, key)

    def retire_policy(self, policy: str, reason: str, key: Key | None = None) -> Future[Written]:
        self.actor.require("admin")
        self.actor.require_policy(policy)
        return self._registry.retire_policy(policy, self.actor.name, reason, key)

    def record_selection(
        self, selection: str, policy: str, facts: dict[str, Any], key: Key | None = None
    ) -> Future[Written]:
        self.actor.require("operator")
        self.actor.require_policy(policy)
        return self._registry.record_selection(selection, policy, self.actor.name, facts, key)

    def record_reviews(
        self, selection: str, reviews: Mapping[str, int], key: Key | None = None
    ) -> Future[Written]:
        self.actor.require("operator")
        self.subject(selection)
        return self._registry.book.record(selection, self.actor.name, reviews, key)

    def write_note(
        self, selection: str, candidate: str, text: str, key: Key | None = None
    ) -> Future[Written]:
        self.actor.require("operator")
        self.subject(selection)
        return self._registry.book.write_note(selection, self.actor.name, candidate, text, key)

    def forget_list(self, selection: str, reason: str, key: Key | None = None) -> Future[Written]:
        self.actor.require("operator")
        self.subject(selection)
        return self._registry.book.forget_list(selection, self.actor.name, reason, key)

    def close_reviews(
        self, closing: Closing, alarm: dict[str, Any] | None, key: Key | None = None
    ) -> Future[Written]:
        self.actor.require("operator")
        self.actor.require_policy(closing.policy)
        return self._registry.book.close(closing, self.actor.name, alarm, key)

    def start_labelling(self, ident: str, facts: dict[str, Any], key: Key | None = None) -> Future[Written]:
        self.actor.require("operator")
        self.actor.require_all_policies()
        return self._registry.append(self.actor.name, "labelling.started", ident, facts, key=key)

    def tell_labels(
        self, ident: str, told: dict[str, Any], stages: int, key: Key | None = None
    ) -> Future[Written]:
        """Answers that count from now on; refused if another stage was told meanwhile."""
        self.actor.require("operator")
        self.labelling(ident)
        return self._registry.book.tell(ident, self.actor.name, told, stages, key)

    def list_labelled(self, ident: str, facts: dict[str, Any], key: Key | None = None) -> Future[Written]:
        """The certified list of a collection was made."""
        self.actor.require("operator")
        labelling = self.labelling(ident).subject
        return self._registry.append(self.actor.name, "labelling.listed", labelling, facts, key=key)
