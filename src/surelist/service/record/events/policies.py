"""Looks at past rows, and policies: saved, named, retired, withdrawn."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from surelist.promises.policy import Policy
from surelist.reports.evidence import Look, Question, RowsEvidence
from surelist.service.record.event import Described, Event, Names, Withdrawn, Words

if TYPE_CHECKING:
    from surelist.service.record.chain import Entry
    from surelist.service.record.story import Story


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
    looked_at = ("policy", "policies", "hash, salt, and whether the evidence carries the threshold")
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
        return ["saved the policy ", names.policy(subject), f", from {self.file}." if self.file else "."]

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
        if work is not None and work.work.policy.cutoffs != policy.cutoffs:
            story.problem(entry, "the labels on record do not certify this policy")
        if policy.salt_hash is not None:
            story.salted.add(entry.subject)
            if not secret:
                story.problem(entry, "the salt of its policy is gone")


class PolicyDescribed(Described, frozen=True, kw_only=True):
    """What a policy is called from now on."""

    action = "policy.described"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return self.named("policy", names.policy(subject))

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject not in story.policies:
            story.problem(entry, "it names a policy that was never saved")


class PolicyRetired(Event, frozen=True, kw_only=True):
    """It makes no new shortlists."""

    action = "policy.retired"
    reason: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return ["retired the policy ", names.policy(subject), f": {self.reason}"]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_in_use(entry, entry.subject)
        story.policies[entry.subject] = False


class PolicyWithdrawn(Withdrawn, frozen=True, kw_only=True):
    """A policy's promise no longer stands."""

    action = "policy.withdrawn"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        promise = "finished reviews that raise the alarm: the promise of "
        return [promise, names.policy(subject), " is withdrawn."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject in story.withdrawn or entry.subject not in story.policies:
            story.problem(entry, "its policy was withdrawn before, or never saved")
        story.policies[entry.subject] = False  # it may have been retired already
        story.withdrawn.add(entry.subject)
        if story.watch(entry.subject).alarm is None:
            story.problem(entry, "the reviews on record do not speak against the promise that was withdrawn")
