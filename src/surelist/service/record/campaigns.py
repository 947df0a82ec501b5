"""Campaigns on record: how each began and every step since, in order; verifying takes each step again.

A step is worked out from all steps before it, so one that somebody else wrote meanwhile is a conflict. Listed
candidates appear as scores without names; who they are is known only as long as their list is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surelist._numerals import count
from surelist.reports.evidence import Look
from surelist.service.errors import Conflict, NotFound
from surelist.service.record.event import Entry, Event, Names, Words, counted
from surelist.service.record.events import Listed, Withdrawn, finished
from surelist.service.record.log import Batch
from surelist.service.record.record import Bound, Outdated, Writing, require_open
from surelist.workflows import campaign_record as steps
from surelist.workflows.campaign_record import CampaignStatus

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign
    from surelist.service.record.verify import Story

ENDED = (
    "campaign: its promise was withdrawn, because the reviews of its pools speak against it; it goes no "
    "further. Start a new one on fresh rows."
)
AUDITED = "a"  # the sign of those who were drawn and are not listed


class CampaignStarted(Event, frozen=True, kw_only=True):
    """A campaign from past rows; ``state`` is what its steps go on from."""

    action = "campaign.started"
    page = "/campaigns/{subject}"
    sentence = "began the campaign {it}: {0.target}."
    name: str
    note: str = ""
    file: str
    rows_sha256: str
    rows_fingerprint: str
    columns: dict[str, str | None]
    target: str
    pool_size: float
    alpha: float
    monitor_alpha: float
    schedule: tuple[int, ...]
    uncertified: str
    audit_rate: float | None = None
    earlier_looks: tuple[Look, ...] = ()
    state: str
    after: CampaignStatus

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject in story.campaigns:
            story.problem(entry, "the same campaign was started before")
        story.campaigns[entry.subject] = steps.resumed(self.state)
        _compare(entry, story, entry.subject, self.after)


class CampaignScreened(Listed, frozen=True, kw_only=True):
    """A pool was shortlisted with the threshold in force; listed candidates are scores, the best first."""

    action = "campaign.screened"
    page = "/campaigns/{event.campaign}"
    campaign: str
    pool: str
    threshold: float | None
    scores: list[float]
    draws: str | None = None
    after: CampaignStatus

    def take(self, campaign: Campaign) -> None:
        campaign.record(
            pool_size=self.candidates, scores=np.asarray(self.scores, dtype=np.float64),
            ids=[str(rank) for rank in range(1, len(self.scores) + 1)], threshold=self.threshold,
            pool=self.pool, draws=self.draws,
        )  # fmt: skip

    def said(self, subject: str, names: Names, seq: int) -> Words:
        pool = f"{counted(self.candidates, 'candidate')} of {self.name or 'a pool'}"
        drawn = "" if self.audit is None else f", and drew {count(self.drawn)} of the others for an audit"
        made = f"shortlisted {count(self.shortlisted)} of {pool}{drawn}, in the campaign "
        return [made, names.of(self.campaign), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject in story.reviewable:
            story.problem(entry, "the same pool was screened before")
        story.reviewable[entry.subject] = self
        _require_running(entry, story, self.campaign)
        counted = self.drawn == (self.draws or "").count(AUDITED)
        if not counted or len(self.scores) != self.shortlisted + self.drawn:
            story.problem(entry, "its list is not the one it counts")
        if self.audit_rate != story.campaigns[self.campaign].audit_rate:
            story.problem(entry, "its audit was drawn at another rate than that of its campaign")
        if (self.campaign, self.pool_sha256) in story.pools:
            story.problem(entry, "the same pool was screened before")
        story.pools.add((self.campaign, self.pool_sha256))
        _take(entry, story, self)


class CampaignReviewed(Event, frozen=True, kw_only=True):
    """The reviews of a campaign's pool have ended; ``labels`` has one sign for each candidate, by rank."""

    action = "campaign.reviewed"
    campaign: str
    pool: str
    labels: str
    after: CampaignStatus

    def take(self, campaign: Campaign) -> None:
        labels = [None if each == "?" else int(each) for each in self.labels]
        campaign.review(self.pool, np.asarray(labels, dtype=np.float64))
        if None in labels:
            campaign.close(self.pool)

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return finished(names.of(subject), (self.labels.count("1"), self.labels.count("?")))

    def verify(self, entry: Entry[Event], story: Story) -> None:
        outcomes = list(story.close(entry).values())
        said = (self.labels.count("1"), self.labels.count("0"))
        gone = entry.subject in story.removed and not any(said)
        if said != (outcomes.count(True), outcomes.count(False)) and not gone:
            # ranks are known as long as the list is kept
            story.problem(entry, "what the reviews are said to show is not what they show")
        story.closed[entry.subject] = None
        _take(entry, story, self)


class CampaignUpdated(Event, frozen=True, kw_only=True):
    """The scheduled update of the threshold."""

    action = "campaign.updated"
    sentence = "updated the threshold of the campaign {it}."
    campaign: str
    after: CampaignStatus

    def take(self, campaign: Campaign) -> None:
        campaign.update()

    def verify(self, entry: Entry[Event], story: Story) -> None:
        _require_running(entry, story, self.campaign)
        _take(entry, story, self)


CampaignStep = CampaignScreened | CampaignReviewed | CampaignUpdated


class CampaignWithdrawn(Withdrawn, frozen=True, kw_only=True):
    """The campaign goes no further."""

    action = "campaign.withdrawn"
    sentence = "finished reviews that raise the alarm: the campaign {it} is withdrawn."

    def verify(self, entry: Entry[Event], story: Story) -> None:
        _require_running(entry, story, entry.subject)
        story.ended.add(entry.subject)
        if not story.campaigns[entry.subject].alarm:
            story.problem(entry, "the reviews on record do not speak against the promise that was withdrawn")


def _require_running(entry: Entry[Event], story: Story, campaign: str) -> None:
    if campaign in story.ended:
        story.problem(entry, "its campaign was withdrawn before")


def _take(entry: Entry[Event], story: Story, made: CampaignStep) -> None:
    steps.take(story.campaigns[made.campaign], made)
    _compare(entry, story, made.campaign, made.after)


def _compare(entry: Entry[Event], story: Story, campaign: str, after: CampaignStatus) -> None:
    now = steps.status(story.campaigns[campaign])
    wrong = [name for name in steps.FOLLOWS if getattr(after, name) != getattr(now, name)]
    if wrong:
        story.problem(entry, f"the steps on record do not lead there: {', '.join(wrong)}")


STEPS = (CampaignScreened, CampaignReviewed, CampaignUpdated)


class Campaigns(Bound):
    """The campaigns of a record; they concern no one policy, so a token for one policy sees none."""

    def campaign(self, ident: str) -> Entry[CampaignStarted]:
        """The entry that started a campaign."""
        self.actor.require_all_policies()
        return self.registry.one(CampaignStarted, ident, "campaign")

    def all_campaigns(self, limit: int | None = None) -> list[Entry[CampaignStarted]]:
        """Newest first."""
        return [] if self.actor.limited else self.registry.entries(CampaignStarted, limit=limit)

    def pool(self, ident: str, pool: str) -> Entry[CampaignScreened]:
        """A pool that this campaign screened."""
        self.actor.require_all_policies()
        entry = self.registry.one(CampaignScreened, pool, "pool")
        if entry.event.campaign != ident:
            raise NotFound(f"pool: the campaign has none named {pool[:80]!r}.")
        return entry

    def steps(self, ident: str) -> list[Entry[CampaignStep]]:
        """All steps so far, oldest first."""
        self.actor.require_all_policies()
        return self.registry.entries(*STEPS, campaign=ident, limit=None, oldest=True)

    def withdrawn(self, ident: str) -> Entry[CampaignWithdrawn] | None:
        """The entry that withdrew a campaign's promise, if one did."""
        self.actor.require_all_policies()
        return self.registry.newest(CampaignWithdrawn, subject=ident)

    def add_step(
        self,
        subject: str,
        step: CampaignStep,
        before: int,
        alarm: CampaignWithdrawn | None,
        reviews_until: int | None = None,
    ) -> Writing:
        """One more step, worked out after ``before`` others; ``alarm`` withdraws the promise with it.

        ``subject`` is the pool that the step is about, or the campaign itself. What reviews show was worked
        out from those up to the entry ``reviews_until``.
        """

        def check(batch: Batch) -> None:
            ended = "SELECT 1 FROM log WHERE subject = ? AND action = 'campaign.withdrawn'"
            if isinstance(step, CampaignReviewed):
                require_open(batch, subject, reviews_until)
            elif batch.query(ended, [step.campaign]):
                raise Conflict(ENDED)
            if self.registry.count(*STEPS, campaign=step.campaign, query=batch.query) != before:
                raise Outdated("campaign: another step was made at the same moment. Load the page again.")

        return self.append(subject, step, before=check, also=(step.campaign, alarm))
