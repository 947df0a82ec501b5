"""Reviews on record: marks of candidates, notes about them, and the end of a pool's reviews.

Reviews and notes name candidates, so they have tables of their own and the log holds their number and hash.
Reviews stay; notes go with the list of candidates they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from surelist.errors import InvalidInput
from surelist.service.errors import NotFound
from surelist.service.record import events
from surelist.service.record.campaigns import CampaignReviewed, CampaignScreened
from surelist.service.record.connections import Rows, batched
from surelist.service.record.event import Entry, Event
from surelist.service.record.labellings import LabellingStarted
from surelist.service.record.log import Batch
from surelist.service.record.marks import CODES, QUALIFIED, Marks
from surelist.service.record.record import Bound, Outdated, Writing, require_open
from surelist.workflows.watching import PoolNumbers

LONGEST_NOTE = 4000
Reviewable = events.SelectionMade | CampaignScreened | LabellingStarted


class Note(NamedTuple):
    """A note about a candidate."""

    text: str
    by: str
    at: str


class Reviewing(Bound):
    """What people say about shortlisted candidates."""

    # -- reading

    def subject(self, ident: str) -> Entry[Reviewable]:
        """What is reviewed; a labelling and a pool of a campaign need a token for all policies."""
        entry = self._reviewable(ident)
        if entry is None:
            raise NotFound(f"selection: there is none named {ident[:80]!r} on record.")
        if isinstance(entry.event, events.SelectionMade):
            self.actor.require_policy(entry.event.policy)
        else:
            self.actor.require_all_policies()
        return entry

    def _reviewable(self, ident: str) -> Entry[Reviewable] | None:
        return self.registry.newest(events.SelectionMade, CampaignScreened, LabellingStarted, subject=ident)

    def seen(self, ident: str) -> Entry[Reviewable] | None:
        """What is reviewed, if it is on record and this actor may see it."""
        entry = self._reviewable(ident)
        policy = entry.event.policy if entry and isinstance(entry.event, events.SelectionMade) else None
        return entry if self.actor.may_use(policy) else None

    def marks(self, selection: str) -> Marks:
        """Who marked which candidate as what, as of now."""
        return self.registry.marks.of(self.subject(selection).subject)

    def reviewer(self, selection: str) -> str | None:
        """From whom the marks of others are hidden until they have marked themselves; None: from nobody.

        Hidden they are from whoever may mark, as long as reviews can change.
        """
        return None if self.actor.role == "viewer" or self.reviews_closed(selection) else self.actor.name

    def hidden(self, entries: Sequence[Entry[Event]]) -> set[int]:
        """The entries with marks of others that this actor may still mark: how they marked is not told."""
        others = [e for e in entries if e.action == "reviews.received" and e.actor != self.actor.name]
        if self.actor.role == "viewer" or not others:
            return set()
        subjects = [entry.subject for entry in others]
        latest = self.registry.latest
        closed = {*latest(events.ReviewsClosed, subjects), *latest(CampaignReviewed, subjects)}
        return {entry.seq for entry in others if entry.subject not in closed}

    def reviews_closed(self, selection: str) -> Entry[events.ReviewsClosed | CampaignReviewed] | None:
        """The entry that ended the reviews of a selection, if one did."""
        subject = self.subject(selection).subject
        return self.registry.newest(events.ReviewsClosed, CampaignReviewed, subject=subject)

    def closings(self, policy: str, query: Callable[..., Rows] | None = None) -> dict[str, PoolNumbers]:
        """What the finished reviews of a policy's selections show, by selection."""
        self.actor.require_policy(policy)
        ended = self.registry.entries(events.ReviewsClosed, policy=policy, limit=None, query=query)
        return {entry.subject: entry.event.counts for entry in ended}

    def notes(self, selection: str, candidate: str) -> list[Note]:
        """The notes about a candidate, oldest first."""
        rows = self.registry.database.read(
            "SELECT n.text, l.actor, l.at FROM notes n JOIN log l ON l.seq = n.seq "
            "WHERE n.selection = ? AND n.candidate = ? ORDER BY n.seq",
            [self.subject(selection).subject, candidate],
        )
        return [Note(*row) for row in rows]

    def all_notes(self, selection: str) -> dict[str, str]:
        """Every candidate's notes as one text."""
        rows = self.registry.database.read(
            "SELECT candidate, text FROM notes WHERE selection = ? ORDER BY seq",
            [self.subject(selection).subject],
        )
        notes: dict[str, str] = {}
        for candidate, text in rows:
            notes[candidate] = f"{notes[candidate]} / {text}" if candidate in notes else text
        return notes

    # -- writing

    def record_reviews(self, selection: str, reviews: Mapping[str, int]) -> Writing:
        """Marks of shortlisted candidates: True, False or a code of ``marks``.

        A later mark of the same candidate by the same person replaces the earlier one.
        """
        made = self.subject(selection).event
        for candidate, mark in reviews.items():
            if "\0" in candidate:
                raise InvalidInput(
                    "reviews", expected="candidate ids without NUL characters", got=repr(candidate)
                )
            if mark not in CODES:
                raise InvalidInput("reviews", expected="yes or no", got=f"the mark {mark!r}")
        rows = sorted((candidate, int(mark)) for candidate, mark in reviews.items())
        qualified = sum(mark in QUALIFIED for _, mark in rows)
        sha256 = events.hash_of(rows)

        def before(batch: Batch) -> None:
            require_open(batch, selection)
            _require_room(batch, selection, set(reviews), made.most_reviewed)

        return self.append(
            selection, events.ReviewsReceived(reviews=len(rows), qualified=qualified, sha256=sha256),
            policy=getattr(made, "policy", None), before=before,
            after=lambda connection, entry: connection.many(
                "INSERT INTO reviews (selection, candidate, qualified, seq) VALUES (?, ?, ?, ?)",
                [(selection, candidate, mark, entry.seq) for candidate, mark in rows],
            ),
        )  # fmt: skip

    def write_note(self, selection: str, candidate: str, text: str) -> Writing:
        """A note about a candidate: the log holds its hash, so that a changed one shows."""
        made = self.subject(selection).event
        if not text.strip() or len(text) > LONGEST_NOTE:
            raise InvalidInput("note", expected=f"1 to {LONGEST_NOTE:,} characters", got=f"{len(text):,}")
        event = events.NoteWritten(sha256=events.hash_of([candidate, text]))
        return self.append(
            selection, event, policy=getattr(made, "policy", None),
            after=lambda connection, entry: connection.execute(
                "INSERT INTO notes (selection, candidate, text, seq) VALUES (?, ?, ?, ?)",
                [selection, candidate, text, entry.seq],
            ),
        )  # fmt: skip

    def close_reviews(
        self, selection: str, event: events.ReviewsClosed, alarm: events.PolicyWithdrawn | None, *,
        until: int, others: int,
    ) -> Writing:  # fmt: skip
        """End the reviews of a selection: what they show counts from now on and cannot change.

        ``alarm`` is the policy's withdrawal where these reviews raise it. Refused if the last review is no
        longer the entry ``until``, or more selections of the policy are finished than ``others``.
        """

        def before(batch: Batch) -> None:
            require_open(batch, selection, until)
            if len(self.closings(event.policy, batch.query)) != others:
                raise Outdated("reviews: another pool was finished at the same moment. Try again.")

        return self.append(selection, event, policy=event.policy, before=before, also=(event.policy, alarm))

    def forget_list(self, selection: str, reason: str) -> Writing:
        """The candidates of a selection are no longer kept: their notes go, and the record says when."""
        self.actor.require("operator")
        self.subject(selection)
        sql, event = "DELETE FROM notes WHERE selection = ?", events.ListRemoved(reason=reason)
        return self.registry.append(
            self.actor.name, selection, event,
            after=lambda connection, _: connection.execute(sql, [selection]),
        )  # fmt: skip


def _require_room(batch: Batch, selection: str, candidates: set[str], listed: int) -> None:
    """No more different candidates than there are to review."""
    counted = "SELECT count(DISTINCT candidate) FROM reviews WHERE selection = ?"
    reviewed = batch.query(counted, [selection])[0][0]
    if reviewed + len(candidates) <= listed:
        return
    known: set[str] = set()
    for names, slots in batched(candidates):
        sql = f"SELECT DISTINCT candidate FROM reviews WHERE selection = ? AND candidate IN ({slots})"
        known |= {each for (each,) in batch.query(sql, [selection, *names])}
    together = reviewed + len(candidates - known)
    if together > listed:
        raise InvalidInput(
            "reviews",
            f"to be reviewed here are {listed:,} candidates, but {together:,} different ones would be. "
            "Send reviews of those candidates only.",
        )
