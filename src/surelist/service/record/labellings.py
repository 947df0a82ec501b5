"""Labellings on record: the draw, the answers that count, and what became of them.

Answers are entries of the log. Beside it one row for each labelling holds all of its answers so far, so that
one more needs none of those before it; the last entry has the hash of that row, and ``verify`` works it out.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from surelist.service.errors import Conflict
from surelist.service.record.bound import Bound, Outdated, Writing
from surelist.service.record.chain import Entry
from surelist.service.record.connections import Connection
from surelist.service.record.event import Event
from surelist.service.record.events import (
    LabellingCorrected,
    LabellingListed,
    LabellingStarted,
    LabellingTold,
)
from surelist.service.record.events.labellings import marks_hash
from surelist.service.record.log import Key
from surelist.service.record.writer import Batch
from surelist.workflows.labelling_record import Told


class AnswersSoFar(NamedTuple):
    """The answers of a labelling that count, one sign for each drawn row, up to the entry ``seq``."""

    seq: int = 0  # before the first answer
    marks: str = ""


class Labellings(Bound):
    """They concern no one policy, so a token for some policies sees none."""

    def labelling(self, ident: str) -> Entry[LabellingStarted]:
        self.actor.require_all_policies()
        return self.registry.one(LabellingStarted, ident, "labelling")

    def progress(self, labelling: str) -> AnswersSoFar:
        """How far a labelling is: one row, however many answers there were."""
        self.actor.require_all_policies()
        rows = self.registry.database.read(
            "SELECT l.seq, l.details, p.seq, p.marks FROM log l "
            "LEFT JOIN progress p ON p.labelling = l.subject "
            "WHERE l.subject = ? AND l.action IN ('labelling.told', 'labelling.corrected') "
            "ORDER BY l.seq DESC LIMIT 1",
            [labelling],
        )
        if not rows:
            return AnswersSoFar()
        last, details, seq, marks = rows[0]
        if seq != last or msgspec.json.decode(details, type=LabellingTold).sha256 != marks_hash(marks):
            raise Conflict(
                f"labelling: the answers kept for {labelling} are not those that its last entry in the log, "
                f"{last:,}, left. They were edited: verify the record."
            )
        return AnswersSoFar(last, marks)

    def running_labellings(self) -> list[Entry[LabellingStarted]]:
        """Those that led neither to a list nor to a policy yet, newest first."""
        saved = self.registry.database.json_text("labelling")
        return [] if self.actor.limited else self.registry.select(
            "WHERE action = 'labelling.started' "
            "AND subject NOT IN (SELECT subject FROM log WHERE action = 'labelling.listed') "
            f"AND subject NOT IN (SELECT {saved} FROM log WHERE action = 'policy.saved' "
            f"AND {saved} IS NOT NULL) ORDER BY seq DESC"
        )  # fmt: skip

    def policy_of(self, labelling: str) -> str | None:
        """The policy that a labelling led to first, if it was saved."""
        saved = f"action = 'policy.saved' AND {self.registry.database.json_text('labelling')} = ?"
        rows = self.registry.database.read(
            f"SELECT subject FROM log WHERE {saved} ORDER BY seq LIMIT 1", [labelling]
        )
        return str(rows[0][0]) if rows else None

    def start_labelling(self, ident: str, event: LabellingStarted, key: Key | None) -> Writing:
        return self.registry.append(self.may("operator"), ident, event, key=key)

    def tell_labels(
        self, ident: str, told: Told, now: str, before: AnswersSoFar, key: Key | None = None
    ) -> Writing:
        """Answers that count from now on and lead to the marks ``now``; refused if others came meanwhile."""
        event = LabellingTold(rows=told.rows, labels=told.labels, sha256=marks_hash(now))
        return self._answer(ident, event, now, before, key)

    def correct_labels(
        self, ident: str, told: Told, now: str, before: AnswersSoFar, marked: int, key: Key | None = None
    ) -> Writing:
        """The same of answers that replace others; refused if anybody marked after the entry ``marked``."""
        event = LabellingCorrected(rows=told.rows, labels=told.labels, sha256=marks_hash(now))
        return self._answer(ident, event, now, before, key, marked)

    def _answer(
        self, ident: str, event: LabellingTold, now: str, before: AnswersSoFar, key: Key | None,
        marked: int | None = None,
    ) -> Writing:  # fmt: skip
        def check(batch: Batch) -> None:
            batch.flush()
            newest = "SELECT seq FROM log WHERE subject = ? "
            newest += "AND action IN ('labelling.told', 'labelling.corrected') ORDER BY seq DESC LIMIT 1"
            later = "SELECT 1 FROM reviews WHERE selection = ? AND seq > ? LIMIT 1"
            if batch.connection.execute(newest, [ident]) != ([(before.seq,)] if before.seq else []) or (
                marked is not None and batch.connection.execute(later, [ident, marked])
            ):
                raise Outdated("labels: somebody else has just sent others. Load the page again.")

        def keep(connection: Connection, entry: Entry[Event]) -> None:
            connection.execute(
                "INSERT INTO progress (labelling, seq, marks) VALUES (?, ?, ?) "
                "ON CONFLICT (labelling) DO UPDATE SET seq = excluded.seq, marks = excluded.marks",
                [ident, entry.seq, now],
            )

        return self.registry.append(self.may("operator"), ident, event, key=key, before=check, after=keep)

    def list_labelled(self, ident: str, event: LabellingListed, key: Key | None) -> Writing:
        """The certified list of a collection was made."""
        return self.registry.append(self.may("operator"), self.labelling(ident).subject, event, key=key)
