"""Campaigns in ``verify-log``: every step is taken again, and has to lead to what the record says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surelist.service.record.chain import Entry
from surelist.workflows import campaign_record
from surelist.workflows.campaign_record import FOLLOWS, REVIEWED, SCREENED

Report = Callable[[Entry, str], None]


class CampaignStory:
    """The campaigns that the entries tell of; ``report`` takes what contradicts them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._campaigns: dict[str, Any] = {}
        self._withdrawn: set[str] = set()
        self._pools: set[str] = set()  # hashes of files, with their campaign
        self.removed: set[str] = set()  # pools whose lists are no longer kept

    def start(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        if entry.subject in self._campaigns:
            self._report(entry, "the same campaign was started before")
        self._campaigns[entry.subject] = campaign_record.resumed(facts["state"], [])
        self._compare(entry, self._campaigns[entry.subject], facts)

    def step(
        self, entry: Entry, facts: Mapping[str, Any], outcomes: Mapping[str, bool] | None = None
    ) -> None:
        """One more step; ``outcomes`` are what the reviews on record say of a pool that is finished."""
        campaign = self._campaigns[facts["campaign"]]
        if entry.action != REVIEWED and facts["campaign"] in self._withdrawn:
            self._report(entry, "its campaign was withdrawn before")
        if entry.action == SCREENED:
            self._check_pool(entry, facts)
        if entry.action == REVIEWED:
            said = {mark: facts["labels"].count(mark) for mark in "10"}
            known = list((outcomes or {}).values())
            shown = {"1": known.count(True), "0": known.count(False)}
            gone = entry.subject in self.removed and not any(said.values())
            if said != shown and not gone:  # ranks are known as long as the list is kept
                self._report(entry, "what the reviews are said to show is not what they show")
        campaign_record.take(campaign, entry.action, facts)
        self._compare(entry, campaign, facts)

    def _check_pool(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        pool = f"{facts['campaign']} {facts['pool_sha256']}"
        if not campaign_record.adds_up(facts):
            self._report(entry, "its list is not the one it counts")
        if facts.get("audit_rate") != self._campaigns[facts["campaign"]].audit_rate:
            self._report(entry, "its audit was drawn at another rate than that of its campaign")
        if pool in self._pools:
            self._report(entry, "the same pool was screened before")
        self._pools.add(pool)

    def _compare(self, entry: Entry, campaign: Any, facts: Mapping[str, Any]) -> None:
        now = campaign_record.after(campaign)
        wrong = [name for name in FOLLOWS if facts["after"][name] != now[name]]
        if wrong:
            self._report(entry, f"the steps on record do not lead there: {', '.join(wrong)}")

    def withdraw(self, entry: Entry) -> None:
        if entry.subject in self._withdrawn:
            self._report(entry, "its campaign was withdrawn before")
        self._withdrawn.add(entry.subject)
        if not self._campaigns[entry.subject].alarm:
            self._report(entry, "the reviews on record do not speak against the promise that was withdrawn")

    def unheard(self) -> list[str]:
        """Campaigns whose reviews raise the alarm, and that were not withdrawn."""
        return [name for name, each in self._campaigns.items() if each.alarm and name not in self._withdrawn]
