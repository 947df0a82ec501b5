"""The record as one actor may use it: whatever a handler reads or writes goes through here.

A token can be for some policies only. Its view holds those, their selections and their reviews;
of everything else it can neither read nor write anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any

from surelist.errors import SurelistError
from surelist.promises.policy import Policy
from surelist.service.errors import NotFound
from surelist.service.record.access import Actor
from surelist.service.record.campaigns import Campaigns
from surelist.service.record.chain import Entry
from surelist.service.record.labellings import AnswersSoFar
from surelist.service.record.log import Key, Written
from surelist.service.record.marks import Marks
from surelist.service.record.record import Registry, SavedPolicy
from surelist.service.record.reviews import Closing


class View:
    """A registry bound to an actor."""

    def __init__(self, registry: Registry, actor: Actor) -> None:
        self._registry, self.actor = registry, actor
        self._described: dict[str, Entry | None] = {}  # by selection: its latest name and note

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

    def reviewer(self, selection: str) -> str | None:
        """From whom the marks of others are hidden until they have marked themselves; None: from nobody.

        Hidden they are from whoever may mark, as long as reviews can change.
        """
        return None if self.actor.role == "viewer" or self.reviews_closed(selection) else self.actor.name

    def hidden(self, entries: Sequence[Entry]) -> set[int]:
        """The entries with marks of others that this actor may still mark: how they marked is not told."""
        others = [e for e in entries if e.action == "reviews.received" and e.actor != self.actor.name]
        if self.actor.role == "viewer" or not others:
            return set()
        closed = self._registry.latest("reviews.closed", [entry.subject for entry in others])
        return {entry.seq for entry in others if entry.subject not in closed}

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

    def running_labellings(self) -> list[Entry]:
        """Those that led neither to a list nor to a policy yet; none for a token of some policies."""
        return [] if self.actor.limited else self._registry.labellings.running()

    def progress(self, ident: str) -> AnswersSoFar:
        """The answers of a labelling that count."""
        self.actor.require_all_policies()
        return self._registry.labellings.progress(ident)

    def policy_of(self, labelling: str) -> str | None:
        """The policy that a labelling led to, if it was saved."""
        return self._registry.labellings.policy_of(labelling)

    def notes(self, selection: str, candidate: str) -> list[dict[str, Any]]:
        return self._registry.book.notes(self.subject(selection).subject, candidate)

    def all_notes(self, selection: str) -> dict[str, str]:
        return self._registry.book.all_notes(self.subject(selection).subject)

    def reviews_closed(self, selection: str) -> Entry | None:
        """The entry that ended the reviews of a selection, if one did."""
        return self._registry.book.closed(self.subject(selection).subject)

    def unfinished(self, kept: Sequence[str]) -> list[Entry]:
        """Selections whose reviews have not ended: those that count, and these; newest first."""
        return [
            entry for entry in self._registry.unfinished(kept) if self.actor.may_use(entry.facts["policy"])
        ]  # fmt: skip

    def alarmed(self) -> list[SavedPolicy]:
        """Policies whose promise was withdrawn and that nobody has retired since."""
        return [each for each in self._registry.alarmed() if self.actor.may_use(each.hash)]

    def policy_names(self, policies: Sequence[str] | None = None) -> dict[str, str]:
        """What policies are called, these or all that may be seen."""
        named = self._registry.names(self.actor.policies if policies is None else policies)
        return {digest: name for digest, name in named.items() if self.actor.may_use(digest)}

    def read_titles(self, entries: Sequence[Entry]) -> None:
        """Read at once what these selections are called, for ``title`` and ``note``."""
        new = [entry.subject for entry in entries if entry.subject not in self._described]
        found = self._registry.latest("selection.described", new)
        self._described |= {each: found.get(each) for each in new}

    def _description(self, entry: Entry) -> Entry:
        self.read_titles([entry])
        return self._described[entry.subject] or entry

    def title(self, entry: Entry) -> str:
        """What a selection is called: its latest name, else the day it was made."""
        facts = self._description(entry).facts
        return str(facts.get("name") or f"Shortlist of {entry.at[:10]}")

    def note(self, entry: Entry) -> str:
        """What people noted about a selection last."""
        return str(self._description(entry).facts.get("note", ""))

    def watched(self, policy: str) -> list[Entry]:
        """The selections that count for or against a policy's promise, in the order of screening."""
        self.actor.require_policy(policy)
        return self._registry.watched(policy)

    def closings(self, policy: str) -> dict[str, dict[str, Any]]:
        """What the finished reviews of a policy's selections show, by selection."""
        self.actor.require_policy(policy)
        return self._registry.book.closings(policy)

    def selection_with_all(self, ident: str) -> tuple[SavedPolicy, Entry, dict[str, bool]]:
        """A selection with its policy and its reviews; none while some are hidden."""
        entry = self.selection(ident)
        marks = self._registry.book.marks(ident)
        outcomes = {} if marks.counts(self.reviewer(ident))["seen"] else marks.outcomes()
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
        self, ident: str, told: dict[str, Any], now: str, before: AnswersSoFar, key: Key | None = None
    ) -> Future[Written]:
        """Answers that count from now on and lead to the marks ``now``; refused if others came meanwhile."""
        self.actor.require("operator")
        self.actor.require_all_policies()
        return self._registry.labellings.tell(ident, self.actor.name, told, now, before.seq, key)

    def list_labelled(self, ident: str, facts: dict[str, Any], key: Key | None = None) -> Future[Written]:
        """The certified list of a collection was made."""
        self.actor.require("operator")
        labelling = self.labelling(ident).subject
        return self._registry.append(self.actor.name, "labelling.listed", labelling, facts, key=key)
