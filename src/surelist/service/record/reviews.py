"""Reviews on record: marks of candidates, notes about them, and the end of a pool's reviews.

Reviews and notes name candidates, so they have tables of their own and the log holds their number and hash.
Reviews stay; notes go with the list of candidates they are about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from surelist.errors import InvalidInput
from surelist.service.errors import Conflict
from surelist.service.record.chain import Entry, canonical
from surelist.service.record.connections import Connection, batched, slots
from surelist.service.record.log import COLUMNS, Key, Log, Written
from surelist.service.record.marks import CODES, QUALIFIED, Marks, MarksOnRecord
from surelist.service.record.writer import Batch

LONGEST_NOTE = 4000
REVIEWABLE = "'selection.made', 'campaign.screened', 'labelling.started'"


class Outdated(Conflict):
    """What was to be written was worked out from something that has changed meanwhile."""


@dataclass(frozen=True)
class Closing:
    """The end of a selection's reviews: what they show, and what that was worked out from."""

    selection: str
    policy: str
    counts: Mapping[str, Any]  # pool_size, qualified, unreviewed: numbers, or by group
    reviews_until: int  # the last review that is in
    others: int  # how many selections of the policy were finished before


class ReviewBook:
    """What people say about shortlisted candidates."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._marks = MarksOnRecord(log.database)

    # -- writing

    def record(
        self, selection: str, actor: str, reviews: Mapping[str, int], key: Key | None = None
    ) -> Future[Written]:
        """Marks of shortlisted candidates: True, False or a code of ``marks``.

        A later mark of the same candidate by the same person replaces the earlier one.
        """
        made = self.subject(selection)
        for candidate, mark in reviews.items():
            if "\0" in candidate:
                raise InvalidInput(
                    "reviews", expected="candidate ids without NUL characters", got=repr(candidate)
                )
            if mark not in CODES:
                raise InvalidInput("reviews", expected="yes or no", got=f"the mark {mark!r}")
        rows = sorted((candidate, int(mark)) for candidate, mark in reviews.items())
        facts = {
            "reviews": len(rows),
            "qualified": sum(mark in QUALIFIED for _, mark in rows),
            "sha256": reviews_hash(rows),
        }

        def before(batch: Batch) -> None:
            require_open(batch, selection)
            drawn = len(made.facts["audit"]) if made.facts.get("audit_here") else 0
            _require_room(batch, selection, set(reviews), made.facts["shortlisted"] + drawn)

        def after(connection: Connection, entry: Entry) -> None:
            connection.many(
                "INSERT INTO reviews (selection, candidate, qualified, seq) VALUES (?, ?, ?, ?)",
                [(selection, candidate, mark, entry.seq) for candidate, mark in rows],
            )

        return self._log.append(
            actor, "reviews.received", selection, facts, key=key, before=before, after=after
        )

    def write_note(
        self, selection: str, actor: str, candidate: str, text: str, key: Key | None = None
    ) -> Future[Written]:
        """A note about a candidate: the log holds its hash, so that a changed one shows."""
        if not text.strip() or len(text) > LONGEST_NOTE:
            raise InvalidInput("note", expected=f"1 to {LONGEST_NOTE:,} characters", got=f"{len(text):,}")

        def after(connection: Connection, entry: Entry) -> None:
            connection.execute(
                "INSERT INTO notes (selection, candidate, text, seq) VALUES (?, ?, ?, ?)",
                [selection, candidate, text, entry.seq],
            )

        facts = {"sha256": note_hash(candidate, text)}
        return self._log.append(actor, "note.written", selection, facts, key=key, after=after)

    def close(
        self, closing: Closing, actor: str, alarm: dict[str, Any] | None, key: Key | None = None
    ) -> Future[Written]:
        """End the reviews of a selection: what they show counts from now on and cannot change.

        ``alarm`` are the facts of the policy's withdrawal where these reviews raise it. Refused if anything
        that ``closing`` was worked out from has changed meanwhile.
        """
        selection, policy = closing.selection, closing.policy

        def before(batch: Batch) -> None:
            require_open(batch, selection)
            newer = "SELECT 1 FROM reviews WHERE selection = ? AND seq > ?"
            if batch.connection.execute(newer, [selection, closing.reviews_until]) or (
                len(self.closings(policy, batch.connection.execute)) != closing.others
            ):
                raise Outdated("reviews: another one arrived at the same moment. Try again.")
            if alarm is not None:
                batch.withdrawn(policy)

        also = ("policy.withdrawn", policy, alarm) if alarm is not None else None
        facts = {"policy": policy, "counts": dict(closing.counts)}
        return self._log.append(actor, "reviews.closed", selection, facts, key=key, before=before, also=also)

    def forget_list(self, selection: str, actor: str, reason: str, key: Key | None = None) -> Future[Written]:
        """The candidates of a selection are no longer kept: their notes go, and the record says when."""

        def after(connection: Connection, entry: Entry) -> None:
            connection.execute("DELETE FROM notes WHERE selection = ?", [selection])

        return self._log.append(actor, "list.removed", selection, {"reason": reason}, key=key, after=after)

    # -- reading

    def subject(self, ident: str) -> Entry:
        """What is reviewed: a selection, a pool of a campaign, or a labelling."""
        rows = self._log.database.read(
            f"SELECT {COLUMNS} FROM log WHERE subject = ? AND action IN ({REVIEWABLE}) LIMIT 1", [ident]
        )
        return Entry(*rows[0]) if rows else self._log.one("selection.made", ident, "selection")

    def marks(self, selection: str) -> Marks:
        """Who marked what, as of now."""
        return self._marks.of(selection)

    def notes(self, selection: str, candidate: str) -> list[dict[str, Any]]:
        """The notes about a candidate, oldest first."""
        rows = self._log.database.read(
            "SELECT n.text, l.actor, l.at FROM notes n JOIN log l ON l.seq = n.seq "
            "WHERE n.selection = ? AND n.candidate = ? ORDER BY n.seq",
            [selection, candidate],
        )
        return [dict(zip(("text", "by", "at"), row, strict=True)) for row in rows]

    def all_notes(self, selection: str) -> dict[str, str]:
        """Every candidate's notes as one text."""
        rows = self._log.database.read(
            "SELECT candidate, text FROM notes WHERE selection = ? ORDER BY seq", [selection]
        )
        notes: dict[str, str] = {}
        for candidate, text in rows:
            notes[candidate] = f"{notes[candidate]} / {text}" if candidate in notes else text
        return notes

    def closings(self, policy: str, query: Callable[..., Any] | None = None) -> dict[str, dict[str, Any]]:
        """What the finished reviews of a policy's selections show, by selection."""
        database = self._log.database
        rows = (query or database.read)(
            "SELECT subject, details FROM log WHERE action = 'reviews.closed' "
            f"AND {database.policy_of_selection} = ?",
            [policy],
        )
        return {selection: json.loads(details)["counts"] for selection, details in rows}

    def closed(self, selection: str) -> Entry | None:
        """The entry that ended the reviews, if one did."""
        return next(iter(self._log.entries(action="reviews.closed", subject=selection, limit=1)), None)


def require_open(batch: Batch, selection: str) -> None:
    batch.flush()
    sql = "SELECT at, actor FROM log WHERE subject = ? AND action = 'reviews.closed'"
    for at, actor in batch.connection.execute(sql, [selection]):
        raise Conflict(
            f"reviews: {actor} finished them on {at[:10]}; they count as evidence as they were then and "
            "cannot change any more."
        )


def _require_room(batch: Batch, selection: str, candidates: set[str], listed: int) -> None:
    """No more different candidates than there are to review."""
    counted = "SELECT count(DISTINCT candidate) FROM reviews WHERE selection = ?"
    reviewed = batch.connection.execute(counted, [selection])[0][0]
    if reviewed + len(candidates) <= listed:
        return
    known: set[str] = set()
    for names in batched(candidates):
        sql = f"SELECT DISTINCT candidate FROM reviews WHERE selection = ? AND candidate IN ({slots(names)})"
        known |= {each for (each,) in batch.connection.execute(sql, [selection, *names])}
    together = reviewed + len(candidates - known)
    if together > listed:
        raise InvalidInput(
            "reviews",
            f"to be reviewed here are {listed:,} candidates, but {together:,} different ones would be. "
            "Send reviews of those candidates only.",
        )


def total_of(count: Any) -> int:
    """A number, or one for each group."""
    return int(sum(count.values()) if isinstance(count, dict) else count)


def reviews_hash(rows: list[tuple[str, int]]) -> str:
    """SHA-256 of reviews as sorted [candidate, mark] pairs."""
    return hashlib.sha256(canonical([list(row) for row in rows]).encode()).hexdigest()


def note_hash(candidate: str, text: str) -> str:
    """SHA-256 of a note and whom it is about."""
    return hashlib.sha256(canonical([candidate, text]).encode()).hexdigest()
