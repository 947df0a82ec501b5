"""Reviews on record: marks of candidates, notes about them, and the end of a pool's reviews.

Reviews and notes name candidates, so they have tables of their own and the log holds their number and hash.
Reviews stay; notes go with the list of candidates they are about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from surelist.errors import InvalidInput
from surelist.service.errors import Conflict
from surelist.service.record.chain import Entry, canonical
from surelist.service.record.connections import Connection
from surelist.service.record.log import Key, Log, Written
from surelist.service.record.marks import CODES, QUALIFIED, Marks, MarksOnRecord
from surelist.service.record.writer import Batch

LONGEST_NOTE = 4000


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
        made = self._log.one("selection.made", selection, "selection")
        for candidate, mark in reviews.items():
            if "\0" in candidate:
                raise InvalidInput(
                    f"reviews: expected candidate ids without NUL characters, got {candidate!r}."
                )
            if mark not in CODES:
                raise InvalidInput(f"reviews: expected yes or no, got the mark {mark!r}.")
        rows = sorted((candidate, int(mark)) for candidate, mark in reviews.items())
        facts = {
            "reviews": len(rows),
            "qualified": sum(mark in QUALIFIED for _, mark in rows),
            "sha256": reviews_hash(rows),
        }

        def before(batch: Batch) -> None:
            _require_open(batch, selection)
            _require_room(batch, selection, set(reviews), made.facts["shortlisted"])

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
            raise InvalidInput(f"note: expected 1 to {LONGEST_NOTE:,} characters, got {len(text):,}.")

        def after(connection: Connection, entry: Entry) -> None:
            connection.execute(
                "INSERT INTO notes (selection, candidate, text, seq) VALUES (?, ?, ?, ?)",
                [selection, candidate, text, entry.seq],
            )

        facts = {"sha256": note_hash(candidate, text)}
        return self._log.append(actor, "note.written", selection, facts, key=key, after=after)

    def forget_list(self, selection: str, actor: str, reason: str, key: Key | None = None) -> Future[Written]:
        """The candidates of a selection are no longer kept: their notes go, and the record says when."""

        def after(connection: Connection, entry: Entry) -> None:
            connection.execute("DELETE FROM notes WHERE selection = ?", [selection])

        return self._log.append(actor, "list.removed", selection, {"reason": reason}, key=key, after=after)

    # -- reading

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

    def closed(self, selection: str) -> Entry | None:
        """The entry that ended the reviews, if one did."""
        return next(iter(self._log.entries(action="reviews.closed", subject=selection, limit=1)), None)


def _require_open(batch: Batch, selection: str) -> None:
    batch.flush()
    sql = "SELECT at, actor FROM log WHERE subject = ? AND action = 'reviews.closed'"
    for at, actor in batch.connection.execute(sql, [selection]):
        raise Conflict(
            f"reviews: {actor} finished them on {at[:10]}; they count as evidence as they were then and "
            "cannot change any more."
        )


def _require_room(batch: Batch, selection: str, candidates: set[str], listed: int) -> None:
    """No more different candidates than the list has."""
    counted = "SELECT count(DISTINCT candidate) FROM reviews WHERE selection = ?"
    if batch.connection.execute(counted, [selection])[0][0] + len(candidates) <= listed:
        return
    known = batch.connection.execute(
        "SELECT DISTINCT candidate FROM reviews WHERE selection = ?", [selection]
    )
    together = len(candidates | {each for (each,) in known})
    if together > listed:
        raise InvalidInput(
            f"reviews: the shortlist has {listed:,} candidates, but {together:,} different ones "
            "would then be reviewed. Send reviews of shortlisted candidates only."
        )


def reviews_hash(rows: list[tuple[str, int]]) -> str:
    """SHA-256 of reviews as sorted [candidate, mark] pairs."""
    return hashlib.sha256(canonical([list(row) for row in rows]).encode()).hexdigest()


def note_hash(candidate: str, text: str) -> str:
    """SHA-256 of a note and whom it is about."""
    return hashlib.sha256(canonical([candidate, text]).encode()).hexdigest()
