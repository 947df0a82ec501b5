"""Looks at rows, policies, shortlists and reviews: fields, sentence and verification of each event."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from surelist._numerals import count
from surelist.promises.policy import Policy
from surelist.reports.evidence import Look, Question, RowsEvidence, SelectionFacts
from surelist.service.record import marks as codes
from surelist.service.record.event import Entry, Event, Names, Piece, Words, counted
from surelist.workflows.watching import LISTS, LOOK, PoolNumbers, total_of

if TYPE_CHECKING:
    from surelist.service.record.verify import Story


class Described(Event, frozen=True, kw_only=True):
    """Another name and note."""

    name: str
    note: str = ""

    @property
    def noted(self) -> str:
        return f" and noted: {self.note}" if self.note else ""


class Withdrawn(Event, frozen=True, kw_only=True):
    """Reviews raised the alarm: why, after how many pools, and how strong the evidence is."""

    reason: str
    pools: int
    e_value: float


class RowsLooked(Event, frozen=True, kw_only=True):
    """Somebody saw an answer of these rows (the subject is their fingerprint)."""

    action = "rows.looked"
    how: str
    file: str
    asked: Question

    def said(self, subject: str, names: Names, seq: int) -> Words:
        asked = "; ".join(self.asked.targets.values()) or "how much they carry"
        return [f"looked at past rows and asked: {asked}."]


class PolicySaved(Event, frozen=True, kw_only=True):
    """A policy, known by the SHA-256 of its file, with what a report shows of its rows."""

    action = "policy.saved"
    page = "/policies/{subject}"
    name: str
    policy: str
    note: str = ""
    file: str | None = None
    labelling: str | None = None
    rows_sha256: str | None = None
    rows_fingerprint: str | None = None
    unlabelled_sha256: str | None = None
    evidence: RowsEvidence | None = None
    earlier_looks: tuple[Look, ...] = ()
    warnings: tuple[str, ...] = ()

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return ["saved the policy ", names.of(subject), f", from {self.file}." if self.file else "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if hashlib.sha256(self.policy.encode()).hexdigest() != entry.subject:
            story.problem(entry, "the policy does not have the hash it is known by")
        if entry.subject in story.policies:
            story.problem(entry, "the same policy was saved before")
        story.policies[entry.subject] = True
        secret = story.connection.execute("SELECT secret FROM salts WHERE policy = ?", [entry.subject])
        policy = Policy.loads(self.policy, salt_text=secret[0][0] if secret else None)
        story.loaded[entry.subject] = policy
        work = story.labellings[self.labelling] if self.labelling else None
        if work is not None and work.policy.cutoffs != policy.cutoffs:
            story.problem(entry, "the labels on record do not certify this policy")
        if policy.salt_hash is not None:
            story.salted.add(entry.subject)
            if not secret:
                story.problem(entry, "the salt of its policy is gone")


class PolicyDescribed(Described, frozen=True, kw_only=True):
    """What a policy is called from now on."""

    action = "policy.described"
    page = PolicySaved.page
    sentence = "named the policy {it} “{0.name}”{0.noted}."

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject not in story.policies:
            story.problem(entry, "it names a policy that was never saved")


class PolicyRetired(Event, frozen=True, kw_only=True):
    """It makes no new shortlists."""

    action = "policy.retired"
    sentence = "retired the policy {it}: {0.reason}"
    reason: str

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_in_use(entry, entry.subject)
        story.policies[entry.subject] = False


class PolicyWithdrawn(Withdrawn, frozen=True, kw_only=True):
    """A policy's promise no longer stands."""

    action = "policy.withdrawn"
    sentence = "finished reviews that raise the alarm: the promise of {it} is withdrawn."

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject in story.withdrawn or entry.subject not in story.policies:
            story.problem(entry, "its policy was withdrawn before, or never saved")
        story.policies[entry.subject] = False  # it may have been retired already
        story.withdrawn.add(entry.subject)
        if story.watch(entry.subject).alarm is None:
            story.problem(entry, "the reviews on record do not speak against the promise that was withdrawn")


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
    def reviewed_anyway(self) -> int:
        """Those on the list; of a triage, those whom people look at."""
        return self.lists[LOOK] if self.lists else self.shortlisted

    @property
    def to_review(self) -> int:
        """How many are to be reviewed: the list, and those drawn for an audit that is reviewed here."""
        return self.reviewed_anyway + (self.drawn if self.audit_here else 0)

    @property
    def most_reviewed(self) -> int:
        return self.to_review

    @property
    def drawn(self) -> int:
        return len(self.audit or ())


class SelectionMade(Listed, frozen=True, kw_only=True):
    """A shortlist by a policy. ``watched``: its reviews count for or against the promise.

    ``audit_groups`` has how many were drawn of each group, or of each list of a triage. ``pool_scores`` is a
    fingerprint of the pool's scores in any order, where they tell it from other pools.
    """

    action = "selection.made"
    page = "/selections/{subject}"
    policy: str
    audit_groups: dict[str, int] = msgspec.field(default_factory=dict)
    watched: bool = False
    not_watched: str | None = None
    pool_scores: str | None = None

    @property
    def pool_known_by(self) -> dict[str, str]:
        """What tells the same pool, sent again, in this file or another."""
        marks = {"pool_sha256": self.pool_sha256, "pool_scores": self.pool_scores}
        return {name: mark for name, mark in marks.items() if mark is not None}

    @property
    def reviewed_anyway(self) -> int:
        """Where an audit is reviewed here, without those of the band who are drawn: they are in the audit."""
        drawn = self.audit_groups.get(LOOK, 0) if self.lists and self.audit_here else 0
        return super().reviewed_anyway - drawn

    def said(self, subject: str, names: Names, seq: int) -> Words:
        what = "accepted" if self.lists else "shortlisted"
        made = f"{what} {count(self.shortlisted)} of {counted(self.candidates, 'candidate')} of "
        return [made, names.of(subject), ", by the policy ", names.of(self.policy), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_in_use(entry, self.policy)
        if entry.subject in story.reviewable:
            story.problem(entry, "the same selection was made before")
        story.reviewable[entry.subject] = self
        if self.lists and self.audit is not None:
            by_list = self.audit_groups
            possible = all(0 <= by_list[each] <= self.lists[each] for each in LISTS)
            if not possible or sum(by_list.values()) != self.drawn:
                story.problem(entry, "its audit is not of its three lists")
        if self.watched:
            before = story.watched.setdefault(self.policy, {})
            marks = {(self.policy, mark) for mark in self.pool_known_by.values()}
            if marks & story.pools:
                story.problem(entry, "the same pool counts before")
            story.pools |= marks
            if set(before.values()) - {self.audit_rate}:
                story.problem(entry, "the pools before were audited at another rate")
            before[entry.subject] = self.audit_rate


class SelectionDescribed(Described, frozen=True, kw_only=True):
    """What a shortlist is called from now on."""

    action = "selection.described"
    page = SelectionMade.page
    sentence = "named the shortlist {it} “{0.name}”{0.noted}."

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject not in story.reviewable:
            story.problem(entry, "it names a selection that was never made")


class ReviewsReceived(Event, frozen=True, kw_only=True):
    """Marks of candidates; who they are stands in a table of its own."""

    action = "reviews.received"
    reviews: int
    qualified: int
    sha256: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        marks, said = names.marks(seq), list[str]()
        for code, words in ((codes.YES, "as qualified"), (codes.NO, "as not qualified")):
            if marks.get(code):
                said.append(f"{count(marks[code]) if said else counted(marks[code], 'candidate')} {words}")
        marked = [f"marked {' and '.join(said)}"] if said else []
        if settled := marks.get(codes.SETTLED_YES, 0) + marks.get(codes.SETTLED_NO, 0):
            yes = count(marks.get(codes.SETTLED_YES, 0))
            marked.append(f"settled {counted(settled, 'disagreement')} ({yes} as qualified)")
        if marks.get(codes.TAKEN_BACK):
            marked.append(f"took back {counted(marks[codes.TAKEN_BACK], 'mark')}")
        done = ", ".join(marked) or f"sent {counted(self.reviews, 'mark')}"
        return [f"{done}, in ", names.of(subject), "."]

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
        if any(q not in codes.CODES for _, _, q in rows) or (
            hash_of(sorted((str(c), int(q)) for _, c, q in rows)) != self.sha256
        ):
            story.problem(entry, "its reviews were edited")


class ReviewsClosed(Event, frozen=True, kw_only=True):
    """The reviews of a selection have ended: what they show counts from now on."""

    action = "reviews.closed"
    policy: str
    counts: PoolNumbers

    def said(self, subject: str, names: Names, seq: int) -> Words:
        counts = self.counts
        audit = None if counts.missed is None else (total_of(counts.missed), total_of(counts.unaudited))
        listed = (total_of(counts.qualified), total_of(counts.unreviewed))
        return finished(names.of(subject), listed, audit)

    def verify(self, entry: Entry[Event], story: Story) -> None:
        outcomes, counts = story.close(entry), self.counts
        story.closed[entry.subject] = counts
        made = story.reviewable[entry.subject]
        if not isinstance(made, SelectionMade):
            story.problem(entry, "it is not about a selection")
            return
        qualified, missing = total_of(counts.qualified), total_of(counts.unreviewed)
        if (made.audit_groups if made.lists and made.audit is not None else None) != counts.drawn:
            story.problem(entry, "others are counted in its audit than were drawn")
        told = [counts.missed or 0, counts.unaudited]
        if counts.drawn is None:
            too_many = sum(map(total_of, told)) > made.drawn
        else:  # of a triage: list by list
            by_list = [each if isinstance(each, dict) else {} for each in told]
            too_many = any(sum(each[name] for each in by_list) > of for name, of in counts.drawn.items())
        if too_many:
            story.problem(entry, "more are counted in its audit than were drawn")
        if made.audit_here:  # the audit was reviewed with the list
            qualified += total_of(counts.missed)
            missing += total_of(counts.unaudited)
        known = (sum(outcomes.values()), made.to_review - len(outcomes))
        unknown = isinstance(counts.qualified, dict) or entry.subject in story.removed
        nothing = unknown and (qualified, missing) == (0, made.to_review)
        if (qualified, missing) != known and not nothing:  # groups are known as long as the list is kept
            story.problem(entry, "what the reviews are said to show is not what they show")


def finished(reviewed: Piece, listed: tuple[int, int], audit: tuple[int, int] | None = None) -> Words:
    """The reviews of a list have ended: how many are qualified and how many not reviewed, there and drawn."""
    said = [
        f"{count(qualified)} qualified" + (f", {count(missing)} without a review" if missing else "")
        for qualified, missing in (listed, audit or (0, 0))
    ]
    drawn = "" if audit is None else f"; in the audit {said[1]}"
    return ["finished the reviews of ", reviewed, f": {said[0]}{drawn}."]


class NoteWritten(Event, frozen=True, kw_only=True):
    """A note about a candidate; its text stands in a table of its own."""

    action = "note.written"
    sentence = "wrote a note about a candidate of {it}."
    sha256: str

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_reviewable(entry)
        story.notes[entry.seq] = (entry.subject, self.sha256)


class ListRemoved(Event, frozen=True, kw_only=True):
    """The candidates of a list are no longer kept."""

    action = "list.removed"
    sentence = "deleted the candidates of {it}: {0.reason}."
    reason: str

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.removed.add(entry.subject)
        story.notes = {seq: note for seq, note in story.notes.items() if note[0] != entry.subject}


def hash_of(value: object) -> str:
    """SHA-256 of a note and whom it is about, or of reviews as sorted pairs of candidate and mark."""
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()
