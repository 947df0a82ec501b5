"""The record searched: entries by kind, person, day, policy and words; and what subjects are called.

For whoever may see all policies. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from surelist.service.record.event import E, Entry, Event
from surelist.service.record.events import ReviewsReceived
from surelist.service.record.record import Actor, Registry

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
_NAMED = ("policy.saved", "policy.described", "selection.made", "selection.described", "labelling.started",
          "campaign.started", "campaign.screened", "token.created")  # fmt: skip
_MOST_WORDS = 6
Part = tuple[str, list[object]]  # of a condition in SQL, and its values


@dataclass(frozen=True)
class Search:
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
        self._registry = registry

    def find(self, asked: Search, before: int | None = None, limit: int = 50) -> list[Entry[Event]]:
        """Entries that fit, newest first."""
        beginnings = KINDS.get(asked.kind, KINDS[""])[1]
        since, until = _day(asked.since), _day(asked.until)
        made = f"action = 'selection.made' AND {self._registry.database.policy_of_selection} = ?"
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
        return self._registry.select(f"WHERE {where} ORDER BY seq DESC LIMIT ?", [*values, limit])

    def _with_word(self, word: str) -> Part:
        """In the person's name, in what the entry is about by its name, or as a beginning of its id.

        Of an entry's details its name, note and file are searched, and nothing else.
        """
        escaped = word.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        like, text = "LIKE ? ESCAPE '\\'", self._registry.database.json_text
        named = ", ".join(f"'{each}'" for each in _NAMED)
        names = " || ' ' || ".join(f"coalesce({text(each)}, '')" for each in ("name", "note", "file"))
        subjects = f"SELECT subject FROM log WHERE action IN ({named}) AND lower({names}) {like}"
        own = _any([f"lower(actor) {like}", f"subject {like}", f"action {like}", f"subject IN ({subjects})"])
        return own, [f"%{escaped}%", f"{escaped}%", f"{escaped}%", f"%{escaped}%"]

    # -- what subjects are called

    def named(self, kind: type[E], subject: str) -> E | None:
        """The latest event of a kind about a subject, if there is one."""
        entry = self._registry.newest(kind, subject)
        return None if entry is None else entry.event

    def marks(self, entries: Sequence[Entry[Event]]) -> dict[int, dict[int, int]]:
        """How many candidates each entry marked with which code (``marks``)."""
        numbers = [entry.seq for entry in entries if entry.action == ReviewsReceived.action]
        if not numbers:
            return {}
        slots = ", ".join("?" * len(numbers))
        rows = self._registry.database.read(
            f"SELECT seq, qualified, count(*) FROM reviews WHERE seq IN ({slots}) GROUP BY seq, qualified",
            numbers,
        )
        found: dict[int, dict[int, int]] = {}
        for seq, code, count in rows:
            found.setdefault(int(seq), {})[int(code)] = int(count)
        return found


def _any(conditions: Sequence[str]) -> str:
    return f"({' OR '.join(conditions)})"


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
