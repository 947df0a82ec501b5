"""Labellings on record: the draw, the answers that count, and what became of them.

Answers are entries of the log. Beside it one row for each labelling holds all of its answers so far, so that
one more needs none of those before it; the last entry has the hash of that row, and ``verify`` works it out.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from surelist.service.errors import Conflict
from surelist.service.record.chain import Entry
from surelist.service.record.connections import Connection
from surelist.service.record.log import COLUMNS, Key, Log, Written
from surelist.service.record.reviews import Outdated
from surelist.service.record.writer import Batch


@dataclass(frozen=True)
class AnswersSoFar:
    """The answers of a labelling that count, one sign for each drawn row, up to the entry ``seq``."""

    seq: int = 0  # before the first answer
    marks: str = ""


class LabellingBook:
    """What the log and the table beside it say of labellings."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def progress(self, labelling: str) -> AnswersSoFar:
        """How far a labelling is: one row, however many answers there were."""
        rows = self._log.database.read(
            "SELECT l.seq, l.details, p.seq, p.marks FROM log l "
            "LEFT JOIN progress p ON p.labelling = l.subject "
            "WHERE l.subject = ? AND l.action = 'labelling.told' ORDER BY l.seq DESC LIMIT 1",
            [labelling],
        )
        if not rows:
            return AnswersSoFar()
        last, details, seq, marks = rows[0]
        if seq != last or json.loads(details).get("sha256") != marks_hash(marks):
            raise Conflict(
                f"labelling: the answers kept for {labelling} are not those that its last entry in the log, "
                f"{last:,}, left. They were edited: verify the record."
            )
        return AnswersSoFar(last, marks)

    def tell(
        self, labelling: str, actor: str, told: dict[str, Any], now: str, before: int, key: Key | None = None
    ) -> Future[Written]:
        """Answers that lead to the marks ``now``; refused if there are others since the entry ``before``."""

        def check(batch: Batch) -> None:
            batch.flush()
            newest = "SELECT seq FROM log WHERE subject = ? AND action = 'labelling.told' "
            newest += "ORDER BY seq DESC LIMIT 1"
            if batch.connection.execute(newest, [labelling]) != ([(before,)] if before else []):
                raise Outdated("labels: somebody else has just sent others. Load the page again.")

        def keep(connection: Connection, entry: Entry) -> None:
            connection.execute(
                "INSERT INTO progress (labelling, seq, marks) VALUES (?, ?, ?) "
                "ON CONFLICT (labelling) DO UPDATE SET seq = excluded.seq, marks = excluded.marks",
                [labelling, entry.seq, now],
            )

        facts = {**told, "sha256": marks_hash(now)}
        return self._log.append(
            actor, "labelling.told", labelling, facts, key=key, before=check, after=keep
        )  # fmt: skip

    def running(self) -> list[Entry]:
        """Labellings that led neither to a list nor to a policy yet, newest first."""
        saved = self._log.database.json_text("labelling")
        rows = self._log.database.read(
            f"SELECT {COLUMNS} FROM log WHERE action = 'labelling.started' "
            "AND subject NOT IN (SELECT subject FROM log WHERE action = 'labelling.listed') "
            f"AND subject NOT IN (SELECT {saved} FROM log WHERE action = 'policy.saved' "
            f"AND {saved} IS NOT NULL) ORDER BY seq DESC"
        )
        return [Entry(*row) for row in rows]

    def policy_of(self, labelling: str) -> str | None:
        """The policy that a labelling led to first, if it was saved."""
        rows = self._log.database.read(
            "SELECT subject FROM log WHERE action = 'policy.saved' "
            f"AND {self._log.database.json_text('labelling')} = ? ORDER BY seq LIMIT 1",
            [labelling],
        )
        return str(rows[0][0]) if rows else None


def marks_hash(marks: str | None) -> str:
    """SHA-256 of the answers so far."""
    return hashlib.sha256((marks or "").encode()).hexdigest()
