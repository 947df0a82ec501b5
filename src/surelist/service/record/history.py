"""The record searched by kind, person, day, policy and words, and told in sentences that a person reads.

For whoever may see all policies. Each event has its own sentence (``events``); an entry of an unknown kind is
shown by its code. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from surelist.service.record import event, events
from surelist.service.record.event import Entry, Event, Piece, read
from surelist.service.record.marks import NO, YES
from surelist.service.record.record import LOCAL, Actor, Registry

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


class History:
    """Reading the whole log."""

    def __init__(self, registry: Registry, actor: Actor) -> None:
        actor.require_all_policies()
        self.registry = registry

    def find(self, asked: Search, before: int | None = None, limit: int = 50) -> list[Entry[Event]]:
        """Entries that fit, newest first."""
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

    def marks(self, entries: Sequence[Entry[Event]]) -> dict[int, dict[int, int]]:
        """How many candidates each entry marked with which code (``marks``)."""
        numbers = [entry.seq for entry in entries if entry.action == events.ReviewsReceived.action]
        if not numbers:
            return {}
        slots = ", ".join("?" * len(numbers))
        rows = self.registry.database.read(
            f"SELECT seq, qualified, count(*) FROM reviews WHERE seq IN ({slots}) GROUP BY seq, qualified",
            numbers,
        )
        found: dict[int, dict[int, int]] = {}
        for seq, code, count in rows:
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

    @property
    def text(self) -> str:
        return f"{self.who} {''.join(piece.text for piece in self.pieces)}"


class NamesNow:
    """What things are called now, each asked of the record once."""

    def __init__(self, history: History, marks: Mapping[int, Mapping[int, int]] | None = None) -> None:
        self._newest, self._marks = cache(history.registry.newest), marks or {}

    def of(self, subject: str) -> Piece:
        named = self._newest(*_naming(), subject=subject)
        if named is None:
            return Piece(subject[:12])
        made: Any = named.event
        return Piece(made.name or "a shortlist", made.address(subject) or None)

    def marks(self, seq: int) -> Mapping[int, int]:
        return self._marks.get(seq, {})


def lines(history: History, entries: Sequence[Entry[Event]], hidden: Collection[int] = ()) -> list[ToldEntry]:
    """The sentences of these entries; how candidates were marked is not told of those ``hidden``."""
    marks = history.marks(entries)
    for seq in marks.keys() & set(hidden):
        marks[seq] = {code: many for code, many in marks[seq].items() if code not in (YES, NO)}
    names = NamesNow(history, marks)
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
