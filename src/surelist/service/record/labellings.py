"""Labellings on record: the draw, the answers that count, and what became of them.

Answers are entries of the log. Beside it one row for each labelling holds all of its answers so far, so that
one more needs none of those before it; the last entry has the hash of that row, and ``verify`` works it out.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from surelist._numerals import count
from surelist.service.errors import Conflict
from surelist.service.record.event import Entry, Event, Names, Words, counted
from surelist.service.record.events import PolicySaved
from surelist.service.record.log import Batch
from surelist.service.record.record import Bound, Outdated, Writing
from surelist.workflows import labelling_record
from surelist.workflows.labelling_record import Told

if TYPE_CHECKING:
    from surelist.lifecycle.labelling import Labelling
    from surelist.service.record.verify import Story


class LabellingStarted(Event, frozen=True, kw_only=True):
    """Candidates to label were drawn; ``state`` is the draw."""

    action = "labelling.started"
    page = "/labellings/{subject}"
    name: str
    file: str
    collection_sha256: str
    candidates: int
    target: str
    alpha: float
    labels: int
    state: str
    kept_until: str

    @property
    def to_review(self) -> int:
        """How many there are labels for."""
        return self.labels

    @property
    def most_reviewed(self) -> int:
        """A triage may ask for more, as far as people go on."""
        return self.candidates

    def said(self, subject: str, names: Names, seq: int) -> Words:
        most = f", with at most {counted(self.labels, 'label')}: {self.target}."
        return ["began the labelling ", names.of(subject), most]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.reviewable[entry.subject] = self
        story.labellings[entry.subject] = labelling_record.resumed(self.state)


class LabellingTold(Event, frozen=True, kw_only=True):
    """Answers that count from now on; ``sha256`` is that of all answers so far."""

    action = "labelling.told"
    rows: list[int]
    labels: list[int | None]
    sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        yes, asked = count(self.labels.count(1)), counted(len(self.labels), "candidate")
        return [f"answered for {asked} of ", names.of(subject), f": {yes} qualified."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        work = story.labellings[entry.subject]
        self.take(work)
        story.told[entry.subject] = entry.seq
        if self.sha256 != marks_hash(work.marks):
            story.problem(entry, "the answers so far are not those it says")

    def take(self, work: Labelling) -> None:
        work.tell(self.rows, self.labels)


class LabellingCorrected(LabellingTold, frozen=True, kw_only=True):
    """Labels in the place of others that nothing rested on; both stay on record."""

    action = "labelling.corrected"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        yes, asked = count(self.labels.count(1)), counted(len(self.labels), "answer")
        return [f"corrected {asked} of ", names.of(subject), f": {yes} now qualified."]

    def take(self, work: Labelling) -> None:
        labelling_record.correct(work, Told(self.rows, self.labels))


class LabellingListed(Event, frozen=True, kw_only=True):
    """The certified list of the collection itself was made."""

    action = "labelling.listed"
    shortlisted: int
    result_sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        listed = counted(self.shortlisted, "candidate")
        return ["made the certified list of ", names.of(subject), f": {listed}."]


def marks_hash(marks: str | None) -> str:
    """SHA-256 of the answers so far."""
    return hashlib.sha256((marks or "").encode()).hexdigest()


_ANSWERS = "'labelling.told', 'labelling.corrected'"


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
            f"WHERE l.subject = ? AND l.action IN ({_ANSWERS}) "
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
        if self.actor.limited:
            return []
        begun = self.registry.entries(LabellingStarted, without=LabellingListed, limit=None)
        return [each for each in begun if self.policy_of(each.subject) is None]

    def policy_of(self, labelling: str) -> str | None:
        """The policy that a labelling led to first, if it was saved."""
        saved = self.registry.entries(PolicySaved, labelling=labelling, limit=1, oldest=True)
        return saved[0].subject if saved else None

    def tell_labels(
        self, ident: str, told: Told, now: str, before: AnswersSoFar, marked: int | None = None
    ) -> Writing:
        """Answers that count from now on and lead to the marks ``now``; refused if others came meanwhile.

        With ``marked`` they replace others; refused if anybody marked after that entry.
        """
        kind = LabellingTold if marked is None else LabellingCorrected
        event = kind(rows=told.rows, labels=told.labels, sha256=marks_hash(now))

        def check(batch: Batch) -> None:
            newest = (
                f"SELECT seq FROM log WHERE subject = ? AND action IN ({_ANSWERS}) ORDER BY seq DESC LIMIT 1"
            )
            later = "SELECT 1 FROM reviews WHERE selection = ? AND seq > ? LIMIT 1"
            if batch.query(newest, [ident]) != ([(before.seq,)] if before.seq else []) or (
                marked is not None and batch.query(later, [ident, marked])
            ):
                raise Outdated("labels: somebody else has just sent others. Load the page again.")

        return self.append(
            ident, event, before=check,
            after=lambda connection, entry: connection.execute(
                "INSERT INTO progress (labelling, seq, marks) VALUES (?, ?, ?) "
                "ON CONFLICT (labelling) DO UPDATE SET seq = excluded.seq, marks = excluded.marks",
                [ident, entry.seq, now],
            ),
        )  # fmt: skip
