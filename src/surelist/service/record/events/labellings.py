"""Labellings: the draw, the answers that count, and the list that was certified from them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from surelist._numerals import count
from surelist.service.record.event import Event, Names, Words, counted
from surelist.workflows.labelling_record import Answered, Told

if TYPE_CHECKING:
    from surelist.service.record.chain import Entry
    from surelist.service.record.story import Story


class LabellingStarted(Event, frozen=True, kw_only=True):
    """Candidates to label were drawn; ``state`` is the draw."""

    action = "labelling.started"
    looked_at = ("labelling", "labellings", "all answers put through the procedure again")
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
        """How many may be answered."""
        return self.labels

    def said(self, subject: str, names: Names, seq: int) -> Words:
        most = f", with at most {counted(self.labels, 'label')}: {self.target}."
        return ["began the labelling ", names.reviewed(subject), most]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.reviewable[entry.subject] = self
        story.labellings[entry.subject] = Answered(self.state)


class LabellingTold(Event, frozen=True, kw_only=True):
    """Answers that count from now on; ``sha256`` is that of all answers so far."""

    action = "labelling.told"
    rows: list[int]
    labels: list[int | None]
    sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        yes, asked = count(self.labels.count(1)), counted(len(self.labels), "candidate")
        return [f"answered for {asked} of ", names.reviewed(subject), f": {yes} qualified."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        work = story.labellings[entry.subject]
        self.take(work)
        story.told[entry.subject] = entry.seq
        if self.sha256 != marks_hash(work.marks):
            story.problem(entry, "the answers so far are not those it says")

    def take(self, work: Answered) -> None:
        work.tell(Told(self.rows, self.labels))


class LabellingCorrected(LabellingTold, frozen=True, kw_only=True):
    """Labels in the place of others that nothing rested on; both stay on record."""

    action = "labelling.corrected"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        yes, asked = count(self.labels.count(1)), counted(len(self.labels), "answer")
        return [f"corrected {asked} of ", names.reviewed(subject), f": {yes} now qualified."]

    def take(self, work: Answered) -> None:
        work.correct(Told(self.rows, self.labels))


class LabellingListed(Event, frozen=True, kw_only=True):
    """The certified list of the collection itself was made."""

    action = "labelling.listed"
    shortlisted: int
    result_sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        listed = counted(self.shortlisted, "candidate")
        return ["made the certified list of ", names.reviewed(subject), f": {listed}."]


def marks_hash(marks: str | None) -> str:
    """SHA-256 of the answers so far."""
    return hashlib.sha256((marks or "").encode()).hexdigest()
