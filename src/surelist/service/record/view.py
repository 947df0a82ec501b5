"""The record as one actor may use it: whatever a handler reads or writes goes through here.

A token can be for some policies only. Its view holds those, their selections and their reviews;
of everything else it can neither read nor write anything. Whoever may see all policies can search the log
by kind, person, day, policy and words, and read it in sentences: each event has its own (``said``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from surelist.reports.evidence import Look, Question
from surelist.service.record import event, events
from surelist.service.record.campaigns import Campaigns
from surelist.service.record.connections import batched
from surelist.service.record.event import Entry, Event, Piece, read
from surelist.service.record.labellings import Labellings
from surelist.service.record.log import Batch, Key
from surelist.service.record.marks import NO, YES
from surelist.service.record.record import LOCAL, Outdated, SavedPolicy, Writing, policy_hash
from surelist.service.record.reviews import Reviewing

# what a person looks for: words for it, and which actions begin so
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("everything", ()),
    "policies": ("policies", ("policy.",)),
    "shortlists": ("shortlists", ("selection.", "campaign.screened")),
    "reviews": ("reviews and notes", ("reviews.", "campaign.reviewed", "note.")),
    "campaigns": ("campaigns", ("campaign.",)),
    "labelling": ("labelling", ("labelling.",)),
    "looks": ("looks at past rows", ("rows.",)),
    "team": ("team, logins and settings", ("token.", "session.", "settings.")),
    "deleted": ("candidates deleted", ("list.",)),
}
_MOST_WORDS = 6
Part = tuple[str, list[object]]  # of a condition in SQL, and its values


class Search(Struct, frozen=True):
    """What to look for; empty fields ask for nothing."""

    words: str = ""
    kind: str = ""
    policy: str = ""
    since: str = ""
    until: str = ""

    @property
    def anything(self) -> bool:
        return self != Search()


class Named(NamedTuple):
    """What a selection is called: its latest name, else the day it was made; and what was noted last."""

    title: str
    note: str


class View(Campaigns, Labellings, Reviewing):
    """A registry bound to an actor: policies and selections here, the rest in what it is made of."""

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

    def named(self, entries: Sequence[Entry[events.SelectionMade]]) -> dict[str, Named]:
        """What these selections are called now."""
        later = self.registry.latest(events.SelectionDescribed, [each.subject for each in entries])
        said = [(each, later.get(each.subject, each).event) for each in entries]
        return {
            each.subject: Named(made.name or f"Shortlist of {each.at[:10]}", made.note) for each, made in said
        }

    def title(self, entry: Entry[events.SelectionMade]) -> str:
        return self.named([entry])[entry.subject].title

    # -- the log, and looks at rows

    def entries(self, limit: int = 100, before: int | None = None) -> list[Entry[Event]]:
        """The whole record, newest first."""
        self.actor.require_all_policies()
        return self.registry.entries(limit=limit, before=before)

    def find(self, asked: Search, before: int | None = None, limit: int = 50) -> list[Entry[Event]]:
        """Entries of the whole record that fit, newest first."""
        self.actor.require_all_policies()
        beginnings = KINDS.get(asked.kind, KINDS[""])[1]
        since, until = _day(asked.since), _day(asked.until)
        made = f"action = 'selection.made' AND {self.registry.database.json_text('policy')} = ?"
        of_policy = f"(subject = ? OR subject IN (SELECT subject FROM log WHERE {made}))"
        parts: list[Part] = [self._with_word(each) for each in asked.words.split()[:_MOST_WORDS]]
        if beginnings:
            parts.append((_any(["action LIKE ?"] * len(beginnings)), [f"{each}%" for each in beginnings]))
        if asked.policy:
            parts.append((of_policy, [asked.policy, asked.policy]))
        if since:
            parts.append(("at >= ?", [since.isoformat()]))
        if until:
            parts.append(("at < ?", [(until + timedelta(days=1)).isoformat()]))
        if before is not None:
            parts.append(("seq < ?", [before]))
        where = " AND ".join(sql for sql, _ in parts) or "1 = 1"
        values = [value for _, each in parts for value in each]
        return self.registry.select(f"WHERE {where} ORDER BY seq DESC LIMIT ?", [*values, limit])

    def _with_word(self, word: str) -> Part:
        """In the person's name, in what the entry is about by its name, or as a beginning of its id.

        Of an entry's details its name, note and file are searched, and nothing else.
        """
        escaped = word.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        like, text = "LIKE ? ESCAPE '\\'", self.registry.database.json_text
        named = ", ".join(f"'{each.action}'" for each in _naming())
        names = " || ' ' || ".join(f"coalesce({text(each)}, '')" for each in ("name", "note", "file"))
        subjects = f"SELECT subject FROM log WHERE action IN ({named}) AND lower({names}) {like}"
        own = _any([f"lower(actor) {like}", f"subject {like}", f"action {like}", f"subject IN ({subjects})"])
        return own, [f"%{escaped}%", f"{escaped}%", f"{escaped}%", f"%{escaped}%"]

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


def _marked(view: View, entries: Sequence[Entry[Event]]) -> dict[int, dict[int, int]]:
    """How many candidates each entry marked with which code (``marks``)."""
    numbers = [entry.seq for entry in entries if entry.action == events.ReviewsReceived.action]
    if not numbers:
        return {}
    slots = ", ".join("?" * len(numbers))
    sql = f"SELECT seq, qualified, count(*) FROM reviews WHERE seq IN ({slots}) GROUP BY seq, qualified"
    found: dict[int, dict[int, int]] = {}
    for seq, code, count in view.registry.database.read(sql, numbers):
        found.setdefault(int(seq), {})[int(code)] = int(count)
    return found


def _naming() -> list[type[Event]]:
    """The events that say what something is called."""
    return [each for each in event.KINDS.values() if each.page is not None]


def _any(conditions: Sequence[str]) -> str:
    return f"({' OR '.join(conditions)})"


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


class ToldEntry(NamedTuple):
    """An entry and its sentence."""

    entry: Entry[Event]
    who: str
    pieces: list[Piece]


class NamesNow:
    """What things are called now, each asked of the record once."""

    def __init__(self, view: View, marks: Mapping[int, Mapping[int, int]] | None = None) -> None:
        self._newest, self._marks = cache(view.registry.newest), marks or {}

    def of(self, subject: str) -> Piece:
        """A policy, a shortlist, a labelling, a campaign or a pool of one, a token."""
        named = self._newest(*_naming(), subject=subject)
        if named is None:
            return Piece(subject[:12])
        made: Any = named.event
        return Piece(made.name or "a shortlist", made.address(subject) or None)

    def marks(self, seq: int) -> Mapping[int, int]:
        """How many candidates an entry marked with which code, as far as a reader may know it."""
        return self._marks.get(seq, {})


def lines(view: View, entries: Sequence[Entry[Event]], hidden: Collection[int] = ()) -> list[ToldEntry]:
    """The sentences of these entries; how candidates were marked is not told of those ``hidden``."""
    marks = _marked(view, entries)
    for seq in marks.keys() & set(hidden):
        marks[seq] = {code: many for code, many in marks[seq].items() if code not in (YES, NO)}
    names = NamesNow(view, marks)
    return [_told(entry, names) for entry in entries]


def _told(entry: Entry[Event], names: NamesNow) -> ToldEntry:
    try:
        pieces = read(entry.action, entry.details).said(entry.subject, names, entry.seq)
    except (msgspec.MsgspecError, ValueError):
        pieces = [f"entered {entry.action!r}, which cannot be read."]
    linked = [each if isinstance(each, Piece) else Piece(each) for each in pieces]
    return ToldEntry(entry, person(entry.actor), linked)


def person(actor: str) -> str:
    """Who it was, without the number of their token."""
    if actor == LOCAL:
        return "Somebody at this machine"
    name, _, rest = actor.rpartition(" (")
    if name == "command line":
        return f"{rest.removesuffix(')')}, at the command line,"
    return name or actor
