"""Shortlists: made, named, reviewed, and removed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from surelist._numerals import count
from surelist.reports.evidence import SelectionFacts
from surelist.service.record.event import Described, Event, Names, Piece, Words, counted
from surelist.service.record.marks import CODES, NO, SETTLED_NO, SETTLED_YES, TAKEN_BACK, YES
from surelist.workflows.watching import PoolNumbers, total_of

if TYPE_CHECKING:
    from surelist.service.record.chain import Entry
    from surelist.service.record.story import Story


class Listed(
    SelectionFacts, Event, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A pool was shortlisted: sizes and hashes, what a person called it, and who was drawn for an audit.

    ``audit_here``: those drawn are reviewed with the list.
    """

    name: str = ""
    note: str = ""
    file: str = ""
    kept_until: str | None = None
    reading: tuple[str, ...] = ()
    audit_rate: float | None = None
    audit: list[int] | None = None
    audit_here: bool = False

    @property
    def to_review(self) -> int:
        """How many are to be reviewed: the list, and those drawn for an audit that is reviewed here."""
        return self.shortlisted + (self.drawn if self.audit_here else 0)

    @property
    def drawn(self) -> int:
        return len(self.audit or ())


class SelectionMade(Listed, frozen=True, kw_only=True):
    """A shortlist by a policy. ``watched``: its reviews count for or against the promise."""

    action = "selection.made"
    looked_at = ("shortlist", "shortlists", "whether the policy was in use then")
    policy: str
    audit_groups: dict[str, int] = msgspec.field(default_factory=dict)
    watched: bool = False
    not_watched: str | None = None

    def said(self, subject: str, names: Names, seq: int) -> Words:
        made = f"shortlisted {count(self.shortlisted)} of {counted(self.candidates, 'candidate')} of "
        return [made, names.reviewed(subject), ", by the policy ", names.policy(self.policy), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_in_use(entry, self.policy)
        if entry.subject in story.reviewable:
            story.problem(entry, "the same selection was made before")
        story.reviewable[entry.subject] = self
        if self.watched:
            story.watched.setdefault(self.policy, {})[entry.subject] = self.audit_rate


class SelectionDescribed(Described, frozen=True, kw_only=True):
    """What a shortlist is called from now on."""

    action = "selection.described"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return self.named("shortlist", names.reviewed(subject))

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject not in story.reviewable:
            story.problem(entry, "it names a selection that was never made")


class ReviewsReceived(Event, frozen=True, kw_only=True):
    """Marks of candidates; who they are stands in a table of its own."""

    action = "reviews.received"
    looked_at = ("entry of reviews", "entries of reviews", "whether every mark is as it was written")
    reviews: int
    qualified: int
    sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        marks, said = names.marks(seq), list[str]()
        for code, words in ((YES, "as qualified"), (NO, "as not qualified")):
            if marks.get(code):
                said.append(
                    f"{counted(marks[code], 'candidate') if not said else count(marks[code])} {words}"
                )
        marked = [f"marked {' and '.join(said)}"] if said else []
        if settled := marks.get(SETTLED_YES, 0) + marks.get(SETTLED_NO, 0):
            yes = count(marks.get(SETTLED_YES, 0))
            marked.append(f"settled {counted(settled, 'disagreement')} ({yes} as qualified)")
        if marks.get(TAKEN_BACK):
            marked.append(f"took back {counted(marks[TAKEN_BACK], 'mark')}")
        done = ", ".join(marked) or f"sent {counted(self.reviews, 'mark')}"
        return [f"{done}, in ", names.reviewed(subject), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        rows = story.connection.execute(
            "SELECT selection, candidate, qualified FROM reviews WHERE seq = ?", [entry.seq]
        )
        story.reviews += len(rows)
        story.require_reviewable(entry)
        if entry.subject in story.closed:
            story.problem(entry, "the reviews of its selection had ended before")
        if any(selection != entry.subject for selection, _, _ in rows):
            story.problem(entry, "its reviews were moved to another selection")
        if any(q not in CODES for _, _, q in rows) or (
            reviews_hash(sorted((str(c), int(q)) for _, c, q in rows)) != self.sha256
        ):
            story.problem(entry, "its reviews were edited")


class ReviewsClosed(Event, frozen=True, kw_only=True):
    """The reviews of a selection have ended: what they show counts from now on."""

    action = "reviews.closed"
    looked_at = ("finished review", "finished reviews", "what they show, and any alarm, worked out again")
    policy: str
    counts: PoolNumbers

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return finished(
            names.reviewed(subject), total_of(self.counts.qualified), total_of(self.counts.unreviewed)
        )

    def verify(self, entry: Entry[Event], story: Story) -> None:
        outcomes, counts = story.close(entry), self.counts
        story.closed[entry.subject] = counts
        made = story.reviewable[entry.subject]
        if not isinstance(made, SelectionMade):
            story.problem(entry, "it is not about a selection")
            return
        qualified, missing = total_of(counts.qualified), total_of(counts.unreviewed)
        if total_of(counts.missed) + total_of(counts.unaudited) > made.drawn:
            story.problem(entry, "more are counted in its audit than were drawn")
        if made.audit_here:  # the audit was reviewed with the list
            qualified += total_of(counts.missed)
            missing += total_of(counts.unaudited)
        known = (sum(outcomes.values()), made.to_review - len(outcomes))
        unknown = isinstance(counts.qualified, dict) or entry.subject in story.removed
        nothing = unknown and (qualified, missing) == (0, made.to_review)
        if (qualified, missing) != known and not nothing:  # groups are known as long as the list is kept
            story.problem(entry, "what the reviews are said to show is not what they show")


def finished(reviewed: Piece, qualified: int, unreviewed: int) -> Words:
    """The reviews of a list have ended."""
    missing = f", {count(unreviewed)} without a review" if unreviewed else ""
    return ["finished the reviews of ", reviewed, f": {count(qualified)} qualified{missing}."]


class NoteWritten(Event, frozen=True, kw_only=True):
    """A note about a candidate; its text stands in a table of its own."""

    action = "note.written"
    looked_at = ("note", "notes", "whether what is still kept of them is as it was")
    sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return ["wrote a note about a candidate of ", names.reviewed(subject), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_reviewable(entry)
        story.notes[entry.seq] = (entry.subject, self.sha256)


class ListRemoved(Event, frozen=True, kw_only=True):
    """The candidates of a list are no longer kept."""

    action = "list.removed"
    reason: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return ["deleted the candidates of ", names.reviewed(subject), f": {self.reason}."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.removed.add(entry.subject)
        story.notes = {seq: note for seq, note in story.notes.items() if note[0] != entry.subject}


def reviews_hash(rows: list[tuple[str, int]]) -> str:
    """SHA-256 of reviews as sorted [candidate, mark] pairs."""
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def note_hash(candidate: str, text: str) -> str:
    """SHA-256 of a note and whom it is about."""
    return hashlib.sha256(msgspec.json.encode([candidate, text])).hexdigest()
