"""Campaigns: level of all thresholds together, late and missing reviews, refusals, restart."""

import json

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist.bounds.counts import first_crossing_counts
from surelist.errors import UnreviewedWarning
from surelist.lifecycle import reviewed as reviews, state as _score_counts
from surelist.lifecycle.campaign_state import fourfold, spending
from surelist.lifecycle.state import ScoreCounts
from tests.helpers.simulated_pools import binormal, pools

TARGET = sl.Expected(5, 100)
FINE, COARSE = binormal(), binormal(atoms=24)
EPOCHS = [900, 3600, 14400, 57600, 230400]  # one large pool per epoch: rows grow fourfold


def campaign_on(population, rng, sizes, came=None, start=300):
    """Run a campaign with one pool per epoch; ``came(labels)`` marks reviews that come in time.

    What came too late is fed after the update. Candidates below the threshold are not drawn.
    """
    scores, labels = population.draw(rng, start)
    campaign = sl.Campaign(
        scores, labels, TARGET, alpha=0.1, schedule=range(1, len(sizes) + 1), uncertified="everyone"
    )
    late = None
    for number, size in enumerate(sizes, start=1):
        threshold = -np.inf if campaign.threshold is None else campaign.threshold
        scores, labels = population.draw(rng, size, threshold)
        campaign._record(str(number), size, [str(i) for i in range(len(scores))], scores)
        if late is not None and not campaign.reviews.kept[late[0]].closed:
            campaign.review(*late)
        if came is None:
            campaign.review(number, labels)
        else:
            campaign.review(number, np.where(came(labels), labels, np.nan))
            late = str(number), labels
        if campaign.alarm:  # the calibration was among its failures: the campaign has found out
            break
        campaign.update()
    return campaign


def failures_and_lists(population, rng, runs, **options):
    sizes = options.pop("sizes", lambda: EPOCHS)
    boundary = population.boundary(0.05)
    failures, alarms, lists = 0, 0, []
    for _ in range(runs):
        campaign = campaign_on(population, rng, sizes(), **options)
        thresholds = [update.threshold for update in campaign.updates if update.threshold is not None]
        assert thresholds == sorted(thresholds)
        failures += any(t > boundary for t in thresholds)
        alarms += campaign.alarm
        sizes_now = [
            100 * population.listed(-9 if u.threshold is None else u.threshold) for u in campaign.updates
        ]
        lists.append(sizes_now + sizes_now[-1:] * (1 + len(sizes()) - len(sizes_now)))
    assert binom.sf(alarms - failures - 1, runs, 0.05) > 1e-6
    return failures, np.mean(lists, axis=0)


@pytest.mark.slow
def test_lists_fall_from_11_to_the_oracle_and_the_level_is_kept():
    """The issue's campaign: 300 rows, k = 5, m = 100, alpha = 0.1, 19 % qualified."""
    failures, lists = failures_and_lists(FINE, np.random.default_rng(0), 300)
    assert binom.sf(failures - 1, 300, 0.1) > 1e-6
    assert 10.5 < lists[0] < 11.6
    assert np.all(np.diff(lists) < 0)
    assert lists[5] <= 6.9
    assert 100 * FINE.listed(FINE.boundary(0.05)) == pytest.approx(6.5, abs=0.05)


@pytest.mark.slow
def test_level_under_ties():
    """Two dozen different scores: whole atoms are taken, and the level only gains."""
    failures, _ = failures_and_lists(COARSE, np.random.default_rng(1), 200, sizes=lambda: EPOCHS[:4])
    assert binom.sf(failures - 1, 200, 0.1) > 1e-6


@pytest.mark.slow
def test_level_when_reviews_come_late_or_never_depending_on_the_outcome():
    rng = np.random.default_rng(2)

    def came(labels):  # good news travels fast
        return rng.random(len(labels)) < np.where(labels == 1, 0.95, 0.3)

    failures, lists = failures_and_lists(FINE, rng, 200, sizes=lambda: EPOCHS[:4], came=came)
    assert binom.sf(failures - 1, 200, 0.1) > 1e-6
    assert lists[-1] < lists[0]


@pytest.mark.slow
def test_level_with_pools_of_random_size():
    rng = np.random.default_rng(3)

    def sizes():
        return [int(rng.poisson(size) * rng.uniform(0.2, 1.8)) for size in EPOCHS[:4]]

    failures, _ = failures_and_lists(FINE, rng, 200, sizes=sizes)
    assert binom.sf(failures - 1, 200, 0.1) > 1e-6


def simulate_rule(rng, runs, leave_out=False):
    """The rule on the scale of P(Y=1, F >= t): a threshold fails iff it lies below p0 there.

    ``leave_out`` drops the worse half of the pools, as if their reviews were missing.
    """
    p0, rows = 0.05, [300, 1200, 4800]
    counts = first_crossing_counts(rows, p0, spending(0.1, 2))
    failures = 0
    for _ in range(runs):
        known, threshold, failed, n = np.empty(0), 1.0, False, 0
        for look, more in enumerate(np.diff([0, *rows])):
            fresh = rng.random(more)  # P(Y=1, F >= score) of a row, if it is below the base rate
            if leave_out and look:
                blocks = fresh.reshape(-1, 100)
                wins = (blocks < 0.05).sum(axis=1)
                fresh = blocks[wins >= np.median(wins)].ravel()
            known, n = np.concatenate([known, fresh[fresh < 0.19]]), n + len(fresh)
            count = counts[look]
            if leave_out:
                count = first_crossing_counts([n], p0, [spending(0.1, 2)[look]])[0]
            if len(known) >= count:
                threshold = min(threshold, float(np.partition(known, count - 1)[count - 1]))
            failed |= threshold < p0
        failures += failed
    return failures


def test_the_rule_uses_its_level_and_not_more():
    failures = simulate_rule(np.random.default_rng(4), 4000)
    assert binom.sf(failures - 1, 4000, 0.1) > 1e-6
    assert binom.cdf(failures, 4000, 0.08) > 1e-6  # sharp: about all of alpha is used


def test_leaving_out_pools_whose_reviews_are_missing_would_break_the_promise():
    """Why every pool stays in: pools left out for their outcome, here the worse half."""
    failures = simulate_rule(np.random.default_rng(5), 300, leave_out=True)
    assert binom.sf(failures - 1, 300, 0.1) < 1e-6


def test_thresholds_are_those_of_the_definition():
    rng = np.random.default_rng(6)
    data = list(pools(rng, 45))
    scores, labels = next(pools(rng, 1, size=300))
    campaign = sl.Campaign(scores, labels, TARGET, schedule=(9, 45))
    known = scores[labels == 1].tolist()
    counts = first_crossing_counts([300, 1200, 4800], TARGET.rate, spending(0.1, 2))
    expected = sorted(known)[-counts[0]]
    assert campaign.threshold == expected
    for number, (scores, labels) in enumerate(data, start=1):
        mask = campaign.screen(scores, pool=f"p{number}")
        assert np.array_equal(mask, scores >= campaign.threshold)
        campaign.review(f"p{number}", labels[mask])
        known += scores[mask & (labels == 1)].tolist()
        if number in (9, 45):
            assert campaign.due
            campaign.update()
            expected = max(expected, sorted(known)[-counts[1 if number == 9 else 2]])
        assert campaign.threshold == expected
    assert [update.count for update in campaign.updates] == counts
    assert [update.rows for update in campaign.updates] == [300, 1200, 4800]


def started(schedule=(2, 5), seed=7, **options):
    rng = np.random.default_rng(seed)
    scores, labels = next(pools(rng, 1, size=600))
    return rng, sl.Campaign(scores, labels, TARGET, schedule=schedule, **options)


def run(campaign, rng, count, drop=0.0, review=True):
    for scores, labels in pools(rng, count, drop=drop):
        mask = campaign.screen(scores)
        if review:
            campaign.review(campaign.pools, labels[mask])


def test_a_missing_review_counts_as_not_qualified_and_only_slows_learning():
    """The same pools with and without reviews: n is the same, the threshold no higher."""
    thresholds = []
    for review in (True, False):
        rng, campaign = started()
        run(campaign, rng, 2, review=review)
        campaign.update()
        assert campaign.updates[-1].rows == 800
        thresholds.append(campaign.threshold)
    assert thresholds[1] <= thresholds[0]


def test_late_reviews_count_at_the_next_update():
    rng, campaign = started()
    scores, labels = next(pools(rng, 1, size=5000))
    mask = campaign.screen(scores, pool="big")
    run(campaign, rng, 1)
    campaign.update()
    before = campaign.threshold
    assert campaign.review("big", labels[mask]) == mask.sum()
    run(campaign, rng, 3)
    campaign.update()
    assert campaign.threshold > before


def test_updates_come_by_themselves_before_the_next_pool():
    rng, campaign = started()
    run(campaign, rng, 2)
    assert campaign.due
    assert len(campaign.updates) == 1
    run(campaign, rng, 1)
    assert not campaign.due
    assert [update.pools for update in campaign.updates] == [0, 2]


def test_refuses_what_would_break_the_proof():
    rng, campaign = started()
    with pytest.raises(sl.InvalidInput, match="off schedule after 0 pools; the next one is due after pool 2"):
        campaign.update()
    scores, _labels = next(pools(rng, 1))
    mask = campaign.screen(scores, pool="a")
    with pytest.raises(sl.InvalidInput, match="screened before"):
        campaign.screen(scores, pool="a")
    assert campaign.pools == 1
    t = campaign.threshold
    listed = {"pool_size": 100, "scores": [t + 1.0], "ids": ["x"]}
    with pytest.raises(sl.InvalidInput, match="below it"):
        campaign.record(**listed, threshold=t - 0.1)
    with pytest.raises(sl.InvalidInput, match="above it"):
        campaign.record(**listed, threshold=t + 0.1)
    with pytest.raises(sl.InvalidInput, match="at position 0"):
        campaign.record(pool_size=100, scores=[t - 1e-9], ids=["x"], threshold=t)
    with pytest.raises(sl.InvalidInput, match="at most 1 values, the pool size"):
        campaign.record(pool_size=1, scores=[t, t], ids=["x", "y"], threshold=t)
    campaign.record(**listed, threshold=t, pool="b")
    assert campaign.review("b", [1], ids=["x"]) == 1
    with pytest.raises(sl.InvalidInput, match="an update is due"):
        campaign.record(**listed, threshold=t, pool="c")
    with pytest.raises(sl.InvalidInput, match="no pool 'z'"):
        campaign.review("z", [1])
    off = str(int(np.flatnonzero(~mask)[0]))
    with pytest.raises(sl.InvalidInput, match="not on the shortlist of pool 'a'"):
        campaign.review("a", [1], ids=[off])
    with pytest.raises(sl.InvalidInput, match="one per shortlisted candidate"):
        campaign.review("a", [1] * (int(mask.sum()) + 1))


def test_reviews_in_parts_again_and_contradicting():
    rng, campaign = started()
    scores, labels = next(pools(rng, 1, size=300))
    ids = [f"c{i}" for i in range(300)]
    mask = campaign.screen(scores, ids=ids, pool="a")
    listed = [ids[i] for i in np.flatnonzero(mask)]
    truth = labels[mask]
    assert campaign.review("a", truth[:3], ids=listed[:3]) == 3
    assert campaign.review("a", truth[:3], ids=listed[:3]) == 0
    with pytest.raises(sl.InvalidInput, match=f"'{listed[1]}' of pool 'a' was reviewed as {truth[1]} before"):
        campaign.review("a", [1 - truth[1]], ids=[listed[1]])
    blanks = [None] * 3 + truth[3:].tolist()
    assert campaign.reviews.missing == len(listed) - 3
    assert campaign.review("a", blanks) == len(listed) - 3
    assert campaign.review("a", truth) == 0
    assert campaign.reviews.missing == 0
    assert campaign.monitor.pools == 1
    assert campaign.monitor.tallies[None].total.successes == truth.sum()


def test_the_monitor_takes_pools_in_order_and_waits():
    rng, campaign = started(schedule=(50,))
    masks, truth = [], []
    for scores, labels in pools(rng, 3):
        masks.append(campaign.screen(scores))
        truth.append(labels[masks[-1]])
    campaign.review(3, truth[2])
    campaign.review(2, truth[1])
    assert not campaign.monitor
    campaign.review(1, truth[0])
    assert campaign.monitor.pools == 3
    run(campaign, rng, 1, review=False)
    run(campaign, rng, 2)
    assert campaign.monitor.pools == 3
    missing = campaign.reviews.kept["4"].unknown
    assert campaign.close(4) == missing
    assert campaign.monitor.pools == 6
    known = sum(int(t.sum()) for t in truth) + sum(
        campaign.reviews.kept[n].qualified for n in ("4", "5", "6")
    )
    total = campaign.monitor.tallies[None].total
    assert (total.successes, total.unreviewed) == (known, missing)
    with pytest.raises(sl.InvalidInput, match="was closed"):
        campaign.review(4, [1] * missing)


def test_an_alarm_withdraws_the_promise_and_stops_learning():
    rng, campaign = started(schedule=(10, 200))
    run(campaign, rng, 10)
    assert "at most 10%" in campaign.policy.promise
    run(campaign, rng, 150, drop=0.7)
    assert campaign.alarm
    assert campaign.promise.startswith("Nothing is promised any more: the reviews of ")
    assert campaign.policy.promise == campaign.promise
    assert campaign.monitor.raised.review_id is not None
    run(campaign, rng, 60)
    assert len(campaign.updates) == 2
    assert not campaign.due
    with pytest.raises(sl.InvalidInput, match="raised an alarm"):
        campaign.update()


def test_nothing_certified_yet():
    rng = np.random.default_rng(8)
    scores, labels = next(pools(rng, 1, size=20))
    with pytest.raises(sl.NotCertifiable) as refusal:
        sl.Campaign(scores, labels, sl.Expected(9, 100), schedule=(3, 6))
    assert refusal.value.rows == 20
    assert refusal.value.rows_needed > 20
    campaign = sl.Campaign(scores, labels, sl.Expected(9, 100), schedule=(3, 6), uncertified="everyone")
    assert not campaign.certified
    assert campaign.threshold is None
    assert campaign.promise.startswith("Nothing is promised yet")
    with pytest.raises(sl.InvalidInput, match="Nothing is promised yet"):
        campaign.policy  # noqa: B018
    for scores, labels in pools(rng, 3):
        mask = campaign.screen(scores)
        assert mask.all()
        campaign.review(campaign.pools, labels)
    assert campaign.monitor is None
    campaign.update()
    assert campaign.certified
    run(campaign, rng, 1)
    assert campaign.monitor.pools == 1


def test_policy_of_a_campaign_is_a_policy(tmp_path):
    rng, campaign = started()
    run(campaign, rng, 6)
    policy = campaign.policy
    assert policy.threshold == campaign.threshold
    assert policy.excess_bound == {}
    assert "the campaign's other thresholds" in policy.promise
    assert any("schedule" in condition for condition in policy.conditions)
    path = tmp_path / "policy.json"
    policy.save(path)
    assert sl.Policy.load(path) == policy
    state = json.loads(path.read_text())
    for change, message in [
        (lambda s: s["cutoffs"][0]["proof"]["counts"].__setitem__(0, 1), "counts should be"),
        (lambda s: s["cutoffs"][0]["proof"].update(budgets=[0.05, 0.08, 0.2]), "more than alpha"),
        (lambda s: s["cutoffs"][0]["proof"].update(chosen=7), "no look gave"),
        (lambda s: s["cutoffs"][0]["proof"]["rows"].pop(), "lacks"),
        (lambda s: s["cutoffs"][0]["proof"]["rows"].__setitem__(1, 10), "at least|row counts"),
        (lambda s: s["cutoffs"][0].pop("proof"), "missing required field `proof`"),
    ]:
        broken = json.loads(json.dumps(state))
        change(broken)
        path.write_text(json.dumps(broken))
        with pytest.raises(sl.PolicyFileError, match=message):
            sl.Policy.load(path)


def test_a_campaign_s_own_rows_are_not_taken_for_rows_that_its_policy_never_saw():
    import polars as pl

    rng = np.random.default_rng(3)
    scores = rng.random(400)
    labels = rng.random(400) < scores
    policy = sl.Campaign(scores, labels, sl.Expected(5, 50)).policy
    shuffled = pl.DataFrame({"score": scores[::-1], "qualified": labels[::-1]})
    with pytest.raises(sl.InvalidInput, match="these are the rows the policy was calibrated on"):
        sl.evaluate_table(shuffled, policy, score="score", label="qualified")


def test_a_restart_after_every_step_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_score_counts, "LIMIT", 60)
    monkeypatch.setattr(_score_counts, "GRID", 30)
    path = tmp_path / "campaign.json"
    rng, straight = started(schedule=(4, 12, 30))
    _, saved = started(schedule=(4, 12, 30))
    saved._state.created = straight.state.created
    saved.save(path)
    for number, (scores, labels) in enumerate(pools(rng, 40), start=1):
        mask = straight.screen(scores)
        campaign = sl.Campaign.load(path)
        assert np.array_equal(campaign.screen(scores), mask)
        campaign.save(path)
        if number % 5:
            straight.review(number, labels[mask])
            campaign = sl.Campaign.load(path)
            campaign.review(number, labels[mask])
            campaign.save(path)
    campaign = sl.Campaign.load(path)
    assert campaign.updates == straight.updates
    assert len(straight.updates) == 4
    straight.save(tmp_path / "straight.json")
    assert (tmp_path / "straight.json").read_text() == path.read_text()


def test_the_sentence_in_a_state_is_for_people_and_nothing_reads_it(tmp_path):
    rows = FINE.draw(np.random.default_rng(3), 1000)
    campaign, path = sl.Campaign(*rows, TARGET), tmp_path / "campaign.json"
    said = campaign.promise
    campaign.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "promise": "All is well."}))
    again = sl.Campaign.load(path)
    assert again.promise == said
    assert json.loads(again.dumps())["promise"] == said


def last_pool(state):
    return list(state["reviews"]["kept"].values())[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(format=9), "format version"),
        (lambda s: s.update(kind="x"), "not a surelist campaign"),
        (lambda s: s.update(more=1), "does not fit"),
        (lambda s: s["reviews"].pop("missing"), "does not fit"),
        (lambda s: s["updates"][1].update(threshold=-3.0), "falls"),
        (lambda s: s["updates"][1].update(count=3), "count of update 1"),
        (lambda s: s["updates"][1].update(pools=3), "off schedule"),
        (lambda s: s.update(rows=s["rows"] - 100), "rows do not add up"),
        (lambda s: s.update(pools=2), "pools do not add up"),
        (lambda s: s.update(alpha=0.3), "count of update 0"),
        (lambda s: s.update(chosen=None), "another update"),
        (lambda s: s["qualified"].update(scores=[], counts=[], fresh=[]), "too few rows"),
        (lambda s: s["qualified"]["counts"].__setitem__(0, -1), "do not go together"),
        (lambda s: s["qualified"]["scores"].reverse(), "not in order"),
        (lambda s: last_pool(s)["scores"].__setitem__(0, -5.0), "too low"),
        (lambda s: last_pool(s)["ids"].pop(), "uneven"),
        (lambda s: last_pool(s).update(pool="other"), "two names"),
        (lambda s: s["reviews"].update(waiting=["nobody"]), "unknown pool"),
        (lambda s: s["watch"]["tallies"][0].update(log_wealth=[5.0] * 24), "taken out"),
    ],
)
def test_damaged_state_is_refused(tmp_path, change, message):
    rng, campaign = started(schedule=(4, 12))
    run(campaign, rng, 8)
    assert len({update.threshold for update in campaign.updates}) == 2
    path = tmp_path / "campaign.json"
    campaign.save(path)
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(sl.PolicyFileError, match=message):
        sl.Campaign.load(path)


def test_state_stays_small_even_if_reviews_never_come(tmp_path, monkeypatch):
    monkeypatch.setattr(reviews, "CHARACTERS", 3000)
    rng, campaign = started(schedule=(400,))
    with pytest.warns(
        UnreviewedWarning, match=r"pool '\d+' is closed to make room .* of its reviews have not"
    ):
        run(campaign, rng, 60, review=False)
    kept = campaign.reviews.kept
    assert sum(each.cost for each in kept.values()) < 3500
    assert campaign.rows == 600 + 6000  # every pool stays in the evidence
    assert campaign.monitor.pools > 30  # given up: counted as qualified, so no alarm
    assert not campaign.alarm
    assert campaign.review(1, [1, 0, 1]) == 0  # long gone: changes nothing
    path = tmp_path / "campaign.json"
    campaign.save(path)
    sl.Campaign.load(path)


def test_bad_arguments():
    rng = np.random.default_rng(0)
    scores, labels = next(pools(rng, 1, size=300))
    for options, message in [
        (
            {"target": sl.Recall(0.9)},
            r"Recall has no proof from a campaign, .* ask for Expected\(k, pool_size\)",
        ),
        ({"target": sl.PoolAverage(5)}, "PoolAverage has no proof from a campaign"),
        ({"target": sl.Value(5, 100)}, "Value has no proof from a campaign"),
        ({"schedule": (3, 3)}, "increasing"),
        ({"schedule": 5}, "increasing"),
        ({"schedule": (0, 3)}, "at least 1"),
        ({"alpha": 0}, "alpha"),
        ({"monitor_alpha": 2}, "monitor_alpha"),
        ({"uncertified": "all"}, "uncertified"),
        ({"missing_labels": "drop"}, "missing_labels"),
    ]:
        with pytest.raises(sl.InvalidInput, match=message):
            sl.Campaign(scores, labels, **{"target": TARGET, **options})  # type: ignore[dict-item]
    campaign = sl.Campaign(scores, labels, TARGET)
    assert campaign.schedule[:5] == (9, 45, 189, 765, 3069)
    with pytest.raises(sl.InvalidInput, match="finite"):
        campaign.screen([1.0, np.nan])
    with pytest.raises(sl.InvalidInput, match="at most 100 characters"):
        campaign.screen([9.0], pool="x" * 101)
    with pytest.raises(sl.InvalidInput, match="at most 100 characters"):
        campaign.screen([9.0], ids=["x" * 101])
    assert campaign.pools == 0
    campaign.screen([])
    assert (campaign.pools, campaign.rows) == (1, 300)


def test_default_schedule_grows_fourfold():
    assert fourfold(300, 100, 3) == (9, 45, 189)
    assert fourfold(10, 1000, 3) == (1, 2, 3)


def test_score_counts_round_down_only(monkeypatch):
    monkeypatch.setattr(_score_counts, "LIMIT", 500)
    monkeypatch.setattr(_score_counts, "GRID", 250)
    rng = np.random.default_rng(9)
    kept, everything, floor = ScoreCounts(), np.empty(0), -np.inf
    for step in range(40):
        fresh = rng.normal(size=300)
        fresh = fresh[fresh >= floor]
        kept.add(fresh)
        everything = np.concatenate([everything, fresh])
        if step % 10 == 9:
            for count in (1, 10, len(everything) // 2, len(everything)):
                found, exact = kept.nth_largest(count), np.sort(everything)[-count]
                assert found <= exact
                assert np.count_nonzero(everything >= found) - count <= 4 * len(everything) / 250 + 1
            floor = kept.nth_largest(len(everything) * 3 // 4)
            kept.drop_below(floor)
            everything = everything[everything >= floor]
            assert kept.at_least(0.5) <= np.count_nonzero(everything >= 0.5)
            assert len(kept.scores) <= 500
    assert kept.nth_largest(10**6) is None
