"""State files written by earlier versions load and mean the same.

``files/`` was written once, by the version whose format each file names; ``meaning.json`` holds what that
version read from them, and what it made of the pools and reviews that came next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

import surelist as sl

FILES = Path(__file__).parent / "files"
MEANING = json.loads((FILES / "meaning.json").read_text())


@dataclass(eq=False)
class Span:
    """Equal to the first format's interval, but for a lower end that takes missing reviews as not qualified."""

    low: float
    high: float
    unreviewed: int

    def __eq__(self, before: object) -> bool:
        low, high = cast("list[float]", before)
        same = self.low == pytest.approx(low, rel=1e-9)
        return self.high == pytest.approx(high, rel=1e-9) and (self.low < low if self.unreviewed else same)


def seen(tally) -> list[int]:
    """Trials and successes as the first format counted them: missing reviews among the successes."""
    return [n for each in (tally.total, tally.since) for n in (each.trials, each.successes + each.unreviewed)]


def monitor_says(monitor: sl.Monitor) -> dict[str, object]:
    return {
        "promise": monitor.policy.promise, "pools": monitor.pools,
        "e_value": pytest.approx(monitor.e_value, rel=1e-12), "alarm": monitor.alarm,
        "tallies": {k or "": seen(t) for k, t in monitor.tallies.items()},
        "intervals": {k or "": Span(*v, monitor.tallies[k].since.unreviewed) for k, v in monitor.intervals.items()},
    }  # fmt: skip


def campaign_says(campaign: sl.Campaign) -> dict[str, object]:
    return {
        "promise": campaign.promise, "pools": campaign.pools, "rows": campaign.rows,
        "threshold": campaign.threshold, "certified": campaign.certified, "alarm": campaign.alarm,
        "due": campaign.due, "missing": campaign.reviews.missing,
        "updates": [list(vars(update).values()) for update in campaign.updates],
        "epochs": [[epoch.pools, epoch.candidates, epoch.shortlisted] for epoch in campaign.epochs],
        "monitor": None if campaign.monitor is None else monitor_says(campaign.monitor),
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted(FILES.glob("monitor-*.json")), ids=lambda path: path.name)
def test_a_monitor_of_an_earlier_version_means_the_same(path, tmp_path):
    monitor = sl.Monitor.load(path)
    assert monitor_says(monitor) == MEANING[path.name]
    monitor.save(tmp_path / "again.json")
    assert monitor_says(sl.Monitor.load(tmp_path / "again.json")) == MEANING[path.name]


@pytest.mark.parametrize(
    ("name", "qualified", "review"), [("monitor-midway", 3, "next"), ("monitor-alarm", 50, 99)]
)
def test_a_monitor_of_an_earlier_version_goes_on(name, qualified, review):
    monitor = sl.Monitor.load(FILES / f"{name}.json")
    assert monitor.observe(qualified=qualified, pool_size=100, review_id=review)
    assert monitor_says(monitor) == MEANING[f"{name}.json + {qualified} of 100"]


def test_a_monitor_of_an_earlier_version_knows_its_reviews():
    monitor = sl.Monitor.load(FILES / "monitor-midway.json")
    with pytest.raises(sl.InvalidInput, match="counted before with other numbers"):
        monitor.observe(qualified=99, pool_size=100, review_id="week 3")


@pytest.mark.parametrize("path", sorted(FILES.glob("campaign-*.json")), ids=lambda path: path.name)
def test_a_campaign_of_an_earlier_version_means_the_same(path, tmp_path):
    campaign = sl.Campaign.load(path)
    assert campaign_says(campaign) == MEANING[path.name]
    campaign.save(tmp_path / "again.json")
    assert campaign_says(sl.Campaign.load(tmp_path / "again.json")) == MEANING[path.name]


def test_a_campaign_of_an_earlier_version_takes_its_late_reviews():
    campaign = sl.Campaign.load(FILES / "campaign-late-reviews.json")
    assert campaign.review(4, MEANING["reviews of pool 4"]) > 0
    assert campaign.close(5) > 0
    assert campaign_says(campaign) == MEANING["campaign-late-reviews.json + 4 reviewed, 5 closed"]
