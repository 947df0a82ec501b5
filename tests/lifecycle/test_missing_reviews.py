"""Reviews that never come: the interval covers whatever they would have said, and nothing is silent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist.promises.promise import Promise
from tests.helpers.simulated_pools import pools

pytestmark = pytest.mark.slow

RATE, SIZE = 0.0505, 100


def calibrated(target: Promise) -> sl.Policy:
    scores, labels = next(pools(np.random.default_rng(0), 1, 3000))
    return sl.calibrate(scores, labels, target)


@pytest.fixture(scope="module")
def policy():
    return calibrated(sl.Expected(5, 100))


@pytest.mark.parametrize(
    "share_of_qualified", [0.0, 0.1, 1.0], ids=["others only", "at random", "qualified only"]
)
def test_the_interval_covers_the_rate_with_a_tenth_of_the_reviews_missing(policy, share_of_qualified):
    """At every tenth of 100 pools, whoever the missing ones are; at alpha = 20 %."""
    alpha, runs, rng = 0.2, 150, np.random.default_rng(5)
    wrong = 0
    for _ in range(runs):
        monitor, covered = sl.Monitor(policy, alpha), True
        for number, qualified in enumerate(rng.binomial(SIZE, RATE, 100).tolist(), start=1):
            missing = rng.binomial(8, 0.1) if share_of_qualified < 1 else rng.binomial(qualified, 0.15)
            lost = min(qualified, rng.binomial(missing, share_of_qualified))
            monitor.observe(qualified=qualified - lost, pool_size=SIZE, unreviewed=max(missing, lost))
            if number % 10 == 0:
                low, high = monitor.interval
                covered &= low <= RATE <= high
        wrong += not covered
    assert binom.sf(wrong - 1, runs, alpha) > 1e-6


def test_each_end_takes_missing_reviews_its_own_way(policy):
    def interval(**numbers):
        monitor = sl.Monitor(policy)
        for _ in range(30):
            monitor.observe(pool_size=SIZE, **numbers)
        return monitor.interval

    low, high = interval(qualified=4, unreviewed=3)
    assert low == interval(qualified=4)[0]
    assert high == interval(qualified=7)[1]


def test_with_no_review_at_all_the_interval_reaches_down_to_nothing(policy):
    monitor = sl.Monitor(policy)
    for _ in range(50):
        monitor.observe(qualified=0, pool_size=SIZE, unreviewed=14)
    low, high = monitor.interval
    assert low == 0.0
    assert high > 0.14
    assert not monitor.alarm
    assert "700 more on the shortlists have no review" in monitor.describe()
    assert "whatever the missing reviews would say" in monitor.describe()
    assert "0.00% to " in monitor.in_a_sentence()
    assert ", whatever 700 missing reviews would say, after 50 pools" in monitor.in_a_sentence()


def test_the_alarm_takes_missing_reviews_as_qualified(policy):
    missing, complete = sl.Monitor(policy), sl.Monitor(policy)
    for _ in range(20):
        missing.observe(qualified=1, pool_size=SIZE, unreviewed=2)
        complete.observe(qualified=3, pool_size=SIZE)
    assert missing.e_value == complete.e_value


def test_pools_with_too_few_reviews_to_tell_are_unknown():
    scores, labels = next(pools(np.random.default_rng(0), 1, 3000))
    monitor = sl.Monitor(sl.calibrate(scores, labels, sl.PerPool(5, 100), rule="pac"))
    monitor.observe(qualified=5, pool_size=100, unreviewed=3)
    monitor.observe(qualified=4, pool_size=100, unreviewed=1)
    monitor.observe(qualified=2, pool_size=100, unreviewed=1)
    total = monitor.tallies[None].total
    assert (total.trials, total.successes, total.unreviewed) == (3, 1, 1)
    assert "1 more for lack of reviews unknown" in monitor.describe()
    assert ", whatever the missing reviews of 1 pool would say, after" in monitor.in_a_sentence()


def test_a_campaign_says_how_many_reviews_it_gave_up(policy):
    rng = np.random.default_rng(0)
    scores, labels = next(pools(rng, 1, 1000))
    campaign = sl.Campaign(scores, labels, sl.Expected(5, 100))
    scores, _ = next(pools(rng, 1, 100))
    listed = int(campaign.screen(scores).sum())
    campaign.review(1, [1, *[None] * (listed - 1)])
    assert campaign.close(1) == listed - 1
    assert f"{listed - 1} more on the shortlists have no review" in campaign.describe()


def test_groups_have_their_own_missing_reviews(tmp_path):
    rng = np.random.default_rng(0)
    scores, labels = next(pools(rng, 1, 3000))
    target = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    groups = np.where(np.arange(3000) % 2, "a", "b")
    monitor = sl.Monitor(sl.calibrate(scores, labels, target, groups=sl.Groups(groups, "a test")))
    sizes = {"a": 50, "b": 50}
    monitor.observe(qualified={"a": 2, "b": 3}, pool_size=sizes, unreviewed={"a": 1, "b": 0}, review_id=1)
    monitor.observe(qualified={"a": 2, "b": 3}, pool_size=sizes, review_id=2)
    assert [monitor.tallies[g].total.unreviewed for g in "ab"] == [1, 0]
    monitor.save(tmp_path / "monitor.json")
    again = sl.Monitor.load(tmp_path / "monitor.json")
    assert again.intervals == monitor.intervals
    assert not again.observe(qualified={"a": 2, "b": 3}, pool_size=sizes, review_id=2)
    with pytest.raises(sl.InvalidInput, match="other numbers"):
        again.observe(qualified={"a": 2, "b": 3}, pool_size=sizes, unreviewed={"a": 0, "b": 1}, review_id=2)
    with pytest.raises(sl.InvalidInput, match="expected a mapping"):
        again.observe(qualified={"a": 2, "b": 3}, pool_size=sizes, unreviewed=1)


def test_more_reviews_than_candidates_are_refused(policy):
    with pytest.raises(sl.InvalidInput, match="expected at least all who are counted, 101"):
        sl.Monitor(policy).observe(qualified=50, pool_size=100, unreviewed=51)
    with pytest.raises(sl.InvalidInput, match="no audit"):
        sl.Monitor(policy).observe(qualified=5, pool_size=100, missed=1)
