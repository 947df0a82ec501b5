"""Campaigns with an audit: evidence drawn at one rate, listed or not, and thresholds that may fall."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist.bounds.counts import first_crossing_counts
from surelist.examples import population
from surelist.lifecycle import campaign as campaigns
from surelist.lifecycle.campaign_state import spending
from surelist.workflows.watching import draw_audit
from tests.helpers.simulated_pools import pools

TARGET = sl.Expected(5, 100)


def draw(monkeypatch, coins):
    """The next pools are drawn with these numbers."""
    given = iter(coins)
    monkeypatch.setattr(campaigns, "coins", lambda candidates: np.asarray(next(given))[:candidates])


def review_all(campaign, pool, mask, labels):
    """Reviews of the shortlist and of the audit: nothing else is known."""
    rows = sorted({*np.flatnonzero(mask).tolist(), *map(int, campaign.audit(pool))})
    campaign.review(pool, [labels[row] for row in rows], ids=[str(row) for row in rows])


def thresholds_of(start, pool, coins, monkeypatch, alpha):
    """A campaign with one update; a candidate scores 0 (not qualified), or 1 or 2 (qualified)."""
    draw(monkeypatch, [coins])
    campaign = sl.Campaign(
        np.asarray(start, dtype=float), np.asarray(start) > 0, sl.Expected(1, 2), alpha=alpha, schedule=(1,),
        uncertified="everyone", audit_rate=0.5,
    )  # fmt: skip
    mask = campaign.screen(np.asarray(pool, dtype=float), pool="p")
    review_all(campaign, "p", mask, [int(each > 0) for each in pool])
    if not campaign.alarm:
        campaign.update()
    return [update.threshold for update in campaign.updates]


def ways(rows):
    """In how many orders these rows may come."""
    return math.factorial(len(rows)) / math.prod(math.factorial(rows.count(each)) for each in set(rows))


def test_all_thresholds_hold_together_over_every_outcome_and_every_draw(monkeypatch):
    """The list of those who score 2 holds the rate asked for less a hair: 2 is false as a threshold."""
    alpha, false = 0.4, 0.0
    chance = {0: 0.25, 1: 0.25, 2: 0.5}
    drawn = list(itertools.product(chance, (0.1, 0.9)))
    for start in itertools.combinations_with_replacement(chance, 3):
        for rows in itertools.combinations_with_replacement(drawn, 2):
            p = ways(start) * math.prod(chance[each] for each in start)
            p *= ways(rows) * math.prod(chance[each] / 2 for each, _ in rows)
            pool, coins = zip(*rows, strict=True)
            false += p * (2.0 in thresholds_of(start, pool, coins, monkeypatch, alpha))
    assert 0.2 < false <= alpha


def test_the_level_is_kept_where_everyone_listed_would_be_far_too_many(monkeypatch):
    """Everyone is qualified, so a list of more than 5 % is needed; lists are a biased part of the pool."""
    rng = np.random.default_rng(5)
    monkeypatch.setattr(campaigns, "coins", rng.random)
    false = 0
    for _ in range(40):
        campaign = sl.Campaign(rng.random(300), np.ones(300), TARGET, schedule=(1,), audit_rate=0.1)
        scores = rng.random(3000)
        mask = campaign.screen(scores, pool="p")
        review_all(campaign, "p", mask, np.ones(3000, dtype=int))
        campaign.update()
        false += any(update.threshold > 0.95 for update in campaign.updates)
    assert binom.sf(false - 1, 40, 0.1) > 1e-3


def test_thresholds_are_those_of_the_rows_drawn_and_may_fall(monkeypatch):
    rng = np.random.default_rng(3)
    scores, labels = next(pools(rng, 1, size=300))
    lucky = np.where(labels == 1, scores + 0.6, scores)  # a calibration sample among those that fail
    campaign = sl.Campaign(lucky, labels, TARGET, schedule=(20, 80), audit_rate=0.3)
    coins = rng.random((80, 100))
    draw(monkeypatch, coins)
    first, known, rows = campaign.threshold, lucky[labels == 1].tolist(), [300]
    for number, (scores, labels) in enumerate(pools(rng, 80), start=1):
        mask = campaign.screen(scores, pool=f"p{number}")
        assert np.array_equal(mask, scores >= campaign.threshold)
        drawn = coins[number - 1] < 0.3
        assert campaign.audit(f"p{number}") == [str(row) for row in np.flatnonzero(drawn & ~mask)]
        review_all(campaign, f"p{number}", mask, labels)
        known += scores[drawn & (labels == 1)].tolist()
        if number in (20, 80):
            rows.append(300 + int((coins[:number] < 0.3).sum()))
            if not campaign.alarm:
                campaign.update()
                count = first_crossing_counts(rows, TARGET.rate, spending(0.1, 2)[: len(rows)])[-1]
                assert campaign.threshold == sorted(known)[-count]
    assert [update.rows for update in campaign.updates] == rows[: len(campaign.updates)]
    assert campaign.updates[1].threshold < first
    assert campaign.epochs[0].drawn == rows[1] - 300
    assert campaign.reviews.missing == 0


def started(**options):
    rng = np.random.default_rng(7)
    scores, labels = next(pools(rng, 1, size=600))
    return rng, sl.Campaign(scores, labels, TARGET, schedule=(2, 5), audit_rate=0.2, **options)


def test_the_monitor_counts_the_shortlist_alone():
    rng, campaign = started()
    scores, labels = next(pools(rng, 1, size=400))
    mask = campaign.screen(scores, pool="a")
    review_all(campaign, "a", mask, labels)
    total = campaign.monitor.tallies[None].total
    assert (total.successes, total.unreviewed) == (int(labels[mask].sum()), 0)
    other = campaign.screen(scores, pool="b")
    assert campaign.close("b") == int(other.sum()) + len(campaign.audit("b"))
    assert campaign.monitor.tallies[None].total.unreviewed == int(other.sum())


def test_the_draw_is_kept_and_its_policy_says_so(tmp_path):
    rng, campaign = started()
    scores, labels = next(pools(rng, 1, size=400))
    mask = campaign.screen(scores, pool="a")
    audit = campaign.audit("a")
    assert audit
    assert not set(audit) & {str(row) for row in np.flatnonzero(mask)}
    campaign.save(tmp_path / "campaign.json")
    loaded = sl.Campaign.load(tmp_path / "campaign.json")
    assert loaded.audit("a") == audit
    review_all(loaded, "a", mask, labels)
    for _ in range(2):
        loaded.screen(scores)
    policy = loaded.policy
    policy.save(tmp_path / "policy.json")
    assert sl.Policy.load(tmp_path / "policy.json") == policy
    assert any("each drawn with probability 20%, shortlisted or not" in each for each in policy.conditions)
    assert "20% of the candidates of 3 screened pools" in loaded._repr_html_()


def test_what_an_audit_does_not_go_with_is_refused():
    rng, campaign = started()
    scores, _ = next(pools(rng, 1))
    mask = campaign.screen(scores, pool="a")
    with pytest.raises(sl.InvalidInput, match="drawn while screening"):
        campaign.record(pool_size=100, scores=[9.0], ids=["x"], threshold=campaign.threshold)
    neither = next(row for row in np.flatnonzero(~mask) if str(row) not in campaign.audit("a"))
    with pytest.raises(sl.InvalidInput, match="not on the shortlist or in the audit of pool 'a'"):
        campaign.review("a", [1], ids=[str(neither)])
    with pytest.raises(sl.InvalidInput, match="audit_rate"):
        sl.Campaign(scores, scores > 0, TARGET, audit_rate=1.5)
    plain = sl.Campaign(scores, scores > 0, TARGET)
    with pytest.raises(sl.InvalidInput, match="there is no audit"):
        plain.audit("a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(rows=s["rows"] - 1), "rows do not add up"),
        (lambda s: s["epochs"][0].update(drawn=None), "a part of the pools"),
        (lambda s: s["reviews"]["kept"]["a"].update(draws="l"), "uneven draws"),
        (lambda s: s["reviews"]["kept"]["a"].update(draws=None), "lacks its draws"),
        (lambda s: s["reviews"]["kept"]["a"].pop("draws"), "does not fit"),
        (
            lambda s: s["reviews"]["kept"]["a"].update(draws="a" * len(s["reviews"]["kept"]["a"]["ids"])),
            "is in the audit",
        ),
        (lambda s: s.update(audit_rate=2.0), r"< 1.0 - at `\$.audit_rate`"),
    ],
)
def test_damaged_state_is_refused(tmp_path, change, message):
    rng, campaign = started()
    campaign.screen(next(pools(rng, 1, size=400))[0], pool="a")
    path = tmp_path / "campaign.json"
    campaign.save(path)
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(sl.PolicyFileError, match=message):
        sl.Campaign.load(path)


def test_every_audit_is_drawn_afresh():
    """A constant seed would draw the same rows for everyone, and again in every pool."""
    rng = np.random.default_rng(2)
    scores, labels = population(rng, 400)
    pool = population(rng, 300)[0]
    audits = []
    for _ in range(2):
        campaign = sl.Campaign(scores, labels, TARGET, audit_rate=0.5)
        for name in ("monday", "tuesday"):
            campaign.screen(pool, pool=name)
            audits.append(tuple(campaign.audit(name)))
    monitor = sl.Monitor(sl.calibrate(scores, labels, sl.Recall(0.5)), audit_rate=0.5)
    audits += [tuple(np.flatnonzero(monitor.draw_audit(np.zeros(300, bool)))) for _ in range(2)]
    audits += [tuple(draw_audit(300, [], 0.5)) for _ in range(2)]
    assert len(set(audits)) == len(audits)


def test_a_pool_screened_elsewhere_counts_with_its_draws(monkeypatch):
    """The same pool with the same coins, screened here and recorded: one state, up to the order of ids."""
    (_, mine), (_, other) = started(), started()
    rng = np.random.default_rng(11)
    for number, (scores, labels) in enumerate(pools(rng, 2, size=400), start=1):
        coins = rng.random(400)
        draw(monkeypatch, [coins])
        name = f"p{number}"
        mask, drawn = mine.screen(scores, pool=name), coins < 0.2
        rows = np.flatnonzero(mask | drawn)
        draws = "".join("a" if not mask[row] else "b" if drawn[row] else "l" for row in rows)
        given = {
            "pool_size": 400,
            "ids": [str(row) for row in rows],
            "threshold": other.threshold,
            "pool": name,
        }
        other.record(scores=scores[rows], draws=draws, **given)
        assert other.audit(name) == mine.audit(name)
        for campaign in (mine, other):
            review_all(campaign, name, mask, labels)
            if campaign.due:
                campaign.update()
    assert other.updates == mine.updates
    assert other.state == sl.Campaign.loads(other.dumps()).state


@pytest.mark.parametrize(
    ("scores", "draws", "message"),
    [
        ([9.0], None, "drawn while screening"),
        ([9.0], "lb", "draws: expected one of l, b and a for each of 1 candidates"),
        ([9.0], "x", "draws: expected one of"),
        ([9.0], "a", "of a candidate drawn alone, though it passes"),
        ([-9.0], "l", "of a listed candidate, which does not pass"),
        ([-9.0], "b", "does not pass"),
    ],
)
def test_draws_that_do_not_fit_are_refused(scores, draws, message):
    _, campaign = started()
    given = {"pool_size": 100, "ids": ["x"], "threshold": campaign.threshold, "draws": draws}
    with pytest.raises(sl.InvalidInput, match=message):
        campaign.record(scores=scores, **given)
    plain = sl.Campaign(np.arange(100.0), np.arange(100) > 50, TARGET)
    with pytest.raises(sl.InvalidInput, match="there is no audit; leave it out"):
        plain.record(**{**given, "scores": [99.0], "threshold": plain.threshold, "draws": "l"})


def test_whoever_scores_the_very_threshold_is_listed_elsewhere_too():
    _, campaign = started()
    given = {"pool_size": 100, "ids": ["x"], "scores": [campaign.threshold], "threshold": campaign.threshold}
    with pytest.raises(sl.InvalidInput, match="drawn alone, though it passes"):
        campaign.record(draws="a", **given)
    campaign.record(draws="l", **given)
    assert campaign.pools == 1
