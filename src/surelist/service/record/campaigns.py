"""Campaigns on record: how each began and every step since, in order, as one actor may read and write them.

A step is worked out from all steps before it, so one that somebody else wrote meanwhile is a conflict. Listed
candidates appear as scores without names; who they are is known only as long as their list is kept.
"""

from __future__ import annotations

from surelist.service.errors import Conflict, NotFound
from surelist.service.record import events
from surelist.service.record.bound import Bound, Outdated, Writing
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key
from surelist.service.record.reviews import require_open
from surelist.service.record.writer import Batch

ENDED = (
    "campaign: its promise was withdrawn, because the reviews of its pools speak against it; it goes no "
    "further. Start a new one on fresh rows."
)
_STEPS = ", ".join(
    f"'{each.action}'" for each in (events.CampaignScreened, events.CampaignReviewed, events.CampaignUpdated)
)


class Campaigns(Bound):
    """The campaigns of a record; they concern no one policy, so a token for one policy sees none."""

    def campaign(self, ident: str) -> Entry[events.CampaignStarted]:
        """The entry that started a campaign."""
        self.actor.require_all_policies()
        return self.registry.one(events.CampaignStarted, ident, "campaign")

    def all_campaigns(self, limit: int | None = None) -> list[Entry[events.CampaignStarted]]:
        """Newest first."""
        return [] if self.actor.limited else self.registry.entries(events.CampaignStarted, limit=limit)

    def pool(self, ident: str, pool: str) -> Entry[events.CampaignScreened]:
        """A pool that this campaign screened."""
        self.actor.require_all_policies()
        entry = self.registry.one(events.CampaignScreened, pool, "pool")
        if entry.event.campaign != ident:
            raise NotFound(f"pool: the campaign has none named {pool[:80]!r}.")
        return entry

    def steps(self, ident: str) -> list[Entry[events.CampaignStep]]:
        """All steps so far, oldest first."""
        self.actor.require_all_policies()
        return self.registry.select(f"{self._of_campaign} ORDER BY seq", [ident])

    @property
    def _of_campaign(self) -> str:
        return f"WHERE action IN ({_STEPS}) AND {self.registry.database.json_text('campaign')} = ?"

    def withdrawn(self, ident: str) -> Entry[events.CampaignWithdrawn] | None:
        """The entry that withdrew a campaign's promise, if one did."""
        self.actor.require_all_policies()
        return self.registry.newest(events.CampaignWithdrawn, ident)

    def start_campaign(self, ident: str, event: events.CampaignStarted, key: Key | None) -> Writing:
        return self.registry.append(self.may("operator"), ident, event, key=key)

    def add_step(
        self,
        subject: str,
        step: events.CampaignStep,
        before: int,
        alarm: events.CampaignWithdrawn | None,
        key: Key | None,
    ) -> Writing:
        """One more step, worked out after ``before`` others; ``alarm`` withdraws the promise with it.

        ``subject`` is the pool that the step is about, or the campaign itself.
        """

        def check(batch: Batch) -> None:
            batch.flush()
            ended = "SELECT 1 FROM log WHERE subject = ? AND action = 'campaign.withdrawn'"
            if isinstance(step, events.CampaignReviewed):
                require_open(batch, subject)
            elif batch.connection.execute(ended, [step.campaign]):
                raise Conflict(ENDED)
            known = batch.connection.execute(f"SELECT count(*) FROM log {self._of_campaign}", [step.campaign])
            if known[0][0] != before:
                raise Outdated("campaign: another step was made at the same moment. Load the page again.")

        return self.registry.append(
            self.may("operator"), subject, step, key=key, before=check,
            also=(step.campaign, alarm) if alarm is not None else None,
        )  # fmt: skip
