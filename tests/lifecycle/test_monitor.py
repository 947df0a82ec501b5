"""The alarm and the confidence sequence: level by enumeration, refusals, state, idempotence."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom

import surelist as sl
from surelist.bounds import betting
from surelist.lifecycle import drift as drift_module
from surelist.lifecycle.claims import Outcomes
from surelist.lifecycle.state import CHARACTERS, Memory, natural
from tests.helpers import simulated_pools


def policy_of(target, rule="exact", rows=2000, **options):
    rng = np.random.default_rng(5)
    labels = rng.random(rows) < 0.4
    return sl.calibrate(rng.normal(size=rows) + 2 * labels, labels, target, rule=rule, **options)


@pytest.fixture(scope="module")
def policy():
    return policy_of(sl.Expected(5, 100))


def wealth_of_bets(rate, pools):
    """The definition: every bet on its own, its wealth a product over the trials since its start."""
    drops = np.geomspace(0.01, 0.95, 24)
    shares = [0.5] + [
        (1 / (1 + math.log2(t - 1)) - 1 / (1 + math.log2(t))) / 2 for t in range(2, len(pools) + 1)
    ]
    wealth = 1 - sum(shares)  # bets that have not started
    for start, share in enumerate(shares):
        for drop in drops:
            stake = drop / (1 - rate)
            product = 1.0
            for trials, won in pools[start:]:
                product *= (1 + stake * (rate - 1)) ** won * (1 + stake * rate) ** (trials - won)
            wealth += share / len(drops) * product
    return wealth


def e_value(rate, pools):
    bets = betting.Bets(rate)
    for trials, won in pools:
        bets.add(trials, won)
    return math.exp(bets.log_e_value)


def test_e_value_is_the_average_wealth_of_all_bets():
    rng = np.random.default_rng(0)
    pools = [(n, int(rng.binomial(n, 0.04))) for n in rng.integers(0, 40, 30).tolist()]
    assert e_value(0.05, []) == pytest.approx(1.0)
    for end in (1, 2, 7, 30):
        assert e_value(0.05, pools[:end]) == pytest.approx(wealth_of_bets(0.05, pools[:end]))
    assert 0 < betting.DROPS.min() < betting.DROPS.max() < 1


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
def test_the_average_bet_wins_nothing_at_the_boundary(rate):
    """Exactly: the mean of the e-value after one more pool is the e-value; above p0 it is less."""
    for pools in ([], [(40, 1)], [(40, 39), (3, 3)], [(10, 0)] * 3):
        now = e_value(rate, pools)
        for size in (1, 6):
            chance = binom.pmf(np.arange(size + 1), size, rate)
            after = np.asarray([e_value(rate, [*pools, (size, won)]) for won in range(size + 1)])
            assert chance @ after == pytest.approx(now, rel=1e-9)
            better = binom.pmf(np.arange(size + 1), size, rate + 0.02)
            assert better @ after < now


@pytest.mark.parametrize(("rate", "alpha"), [(0.3, 0.3), (0.5, 0.2), (0.8, 0.4)])
def test_false_alarms_are_bounded_over_all_sequences(rate, alpha):
    """All 2^13 sequences of single trials, looked at after each: P(alarm ever) at the boundary."""
    crossed = [0.0]

    def walk(bets, chance, left):
        if bets.log_e_value >= -math.log(alpha):
            crossed[0] += chance
        elif left:
            for won, p in ((1, rate), (0, 1 - rate)):
                following = betting.Bets(rate, bets.logs, bets.pools)
                following.add(1, won)
                walk(following, chance * p, left - 1)

    walk(betting.Bets(rate), 1.0, 13)
    assert 0.002 < crossed[0] <= alpha


def test_an_alarm_comes_about_as_soon_after_a_long_good_time():
    waits = []
    for good in (0, 2000):
        bets = betting.Bets(0.05)
        for _ in range(good):
            bets.add(100, 6)
        before = bets.pools
        while bets.log_e_value < math.log(20):
            bets.add(100, 2)
        waits.append(bets.pools - before)
    assert waits[0] < waits[1] < 5 * waits[0]


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.05, 0.3])
def test_confidence_sequence_covers_at_all_times_at_once(truth):
    trials, alpha = 200, 0.1
    alive = np.zeros(trials + 1)
    alive[0], missed = 1.0, 0.0
    for n in range(1, trials + 1):
        alive[1:] = alive[1:] * (1 - truth) + alive[:-1] * truth
        alive[0] *= 1 - truth
        for s in np.flatnonzero(alive > 1e-9).tolist():
            low, high = betting.interval(0.05, n, s, alpha)
            if not low <= truth <= high:
                missed += alive[s]
                alive[s] = 0
    assert 0.002 < missed <= alpha


def test_interval_shrinks_around_the_truth():
    assert betting.interval(0.05, 0, 0, 0.05) == (0.0, 1.0)
    low, high = betting.interval(0.05, 100_000, 6_000, 0.05)
    assert 0.0565 < low < 0.06 < high < 0.0635


def test_detects_a_drop_and_stays_quiet_without(policy):
    rng = np.random.default_rng(1)
    quiet, loud = sl.Monitor(policy, alpha=0.05), sl.Monitor(policy, alpha=0.05)
    for _ in range(400):
        quiet.observe(qualified=int(rng.binomial(100, 0.055)), pool_size=100)
        loud.observe(qualified=int(rng.binomial(100, 0.025)), pool_size=100)
    assert not quiet.alarm
    assert loud.alarm
    assert loud.raised.pools < 60
    assert loud.raised.e_value >= 20
    assert "Nothing is promised any more" in loud.policy.promise
    assert quiet.policy.promise == policy.promise
    assert loud.policy.thresholds == policy.thresholds
    low, high = loud.interval
    assert low < 0.025 < high < 0.05
    assert "ALARM" in loud.describe()
    assert "no alarm" in quiet.describe()


def test_the_alarm_comes_with_the_first_pool_at_one_over_alpha(policy):
    monitor = sl.Monitor(policy, alpha=0.05)
    for n in range(1, 45):
        monitor.observe(qualified=0, pool_size=5)
        wealth = wealth_of_bets(0.05, [(5, 0)] * n)
        assert monitor.e_value == pytest.approx(wealth)
        assert monitor.alarm == (wealth >= 20)
    assert monitor.alarm


def test_the_alarm_stays_raised(policy):
    monitor = sl.Monitor(policy)
    for _ in range(20):
        monitor.observe(qualified=0, pool_size=100)
    at = monitor.raised
    for _ in range(300):
        monitor.observe(qualified=40, pool_size=100)
    assert monitor.e_value < 1
    assert monitor.alarm
    assert monitor.raised == at


def test_replaying_reviews_changes_nothing(policy):
    once, twice = sl.Monitor(policy), sl.Monitor(policy)
    for day in range(30):
        once.observe(qualified=day % 7, pool_size=100, review_id=f"day {day}")
        assert twice.observe(qualified=day % 7, pool_size=100, review_id=f"day {day}")
        assert not twice.observe(qualified=day % 7, pool_size=100, review_id=f"day {day}")
    assert not twice.observe(qualified=0, pool_size=100, review_id="day 0")
    assert once.tallies[None] == twice.tallies[None]
    assert once.pools == twice.pools == 30
    with pytest.raises(sl.InvalidInput, match="counted before with other numbers"):
        twice.observe(qualified=9, pool_size=100, review_id="day 0")


def test_groups_are_watched_together():
    rng = np.random.default_rng(2)
    labels = rng.random(4000) < 0.4
    groups = np.where(rng.random(4000) < 0.5, "a", "b")
    targets = {"a": sl.Expected(5, 50), "b": sl.Expected(4, 50)}
    policy = sl.calibrate(
        rng.normal(size=4000) + labels, labels, targets, groups=sl.Groups(groups, "outreach")
    )
    monitor = sl.Monitor(policy)
    for _ in range(60):
        monitor.observe(qualified={"a": 6, "b": 1}, pool_size={"a": 50, "b": 50})
    assert monitor.alarm
    assert monitor.e_values["a"] < 1 < monitor.e_values["b"]
    assert monitor.e_value == pytest.approx(sum(monitor.e_values.values()) / 2)
    assert set(monitor.intervals) == {"a", "b"}
    with pytest.raises(sl.InvalidInput, match="groups"):
        monitor.interval  # noqa: B018
    for wrong in (3, {"a": 3}, {"a": 3, "b": 1, "c": 0}):
        with pytest.raises(sl.InvalidInput, match="qualified: expected"):
            monitor.observe(qualified=wrong, pool_size={"a": 50, "b": 50})


def test_group_rows_all_takes_the_size_of_the_whole_pool():
    rng = np.random.default_rng(2)
    labels, groups = rng.random(4000) < 0.4, np.where(rng.random(4000) < 0.5, "a", "b")
    targets = {"a": sl.Expected(3, 100), "b": sl.Expected(3, 100)}
    policy = sl.calibrate(
        rng.normal(size=4000) + labels, labels, targets, groups=sl.Groups(groups, "outreach", rows="all")
    )
    monitor = sl.Monitor(policy)
    monitor.observe(qualified={"a": 3, "b": 4}, pool_size=100)
    assert monitor.tallies["b"].total.trials == 100


@pytest.mark.slow
def test_with_twenty_groups_what_holding_says_is_wrong_at_most_alpha_of_the_time():
    """All intervals of one sentence at all times at once, exactly: what each group misses, twenty times over."""
    rng = np.random.default_rng(2)
    labels, names = rng.random(8000) < 0.4, [f"g{n}" for n in range(20)]
    policy = sl.calibrate(
        rng.normal(size=8000) + labels, labels, {name: sl.Expected(3, 50) for name in names},
        groups=sl.Groups(rng.choice(names, 8000), "outreach"),
    )  # fmt: skip
    monitor, truth, alpha = sl.Monitor(policy, alpha=0.05), 0.06, 0.05
    tally, alive, missed = monitor.tallies["g0"], np.array([1.0]), 0.0
    for n in range(1, 121):
        alive = np.append(alive, 0) * (1 - truth) + np.append(0, alive) * truth
        for s in np.flatnonzero(alive > 1e-9).tolist():
            tally.total = Outcomes(n, s)
            low, high = monitor.claims[0].interval(tally.since, monitor.each_alpha)
            if not low <= truth <= high:
                missed += alive[s]
                alive[s] = 0
    assert monitor.intervals["g0"] == monitor.claims[0].interval(tally.since, alpha / 20)
    assert 0.0001 < missed < 1 - (1 - alpha) ** (1 / 20)
    tally.total = Outcomes(0, 0)
    for _ in range(300):
        monitor.observe(qualified=dict.fromkeys(names, 9), pool_size=dict.fromkeys(names, 50))
    assert monitor.standing == "holding"
    assert "If the rates stay what they are, this is wrong with probability at most 5%" in (
        monitor.in_a_sentence()
    )


def test_group_average_keeps_the_level_by_enumeration():
    """Two groups, both at the boundary: the averaged e-value over all outcomes has mean 1."""
    p, n = 0.3, 12
    log = [math.log(e_value(p, [(n, s)])) for s in range(n + 1)]
    weights = binom.pmf(np.arange(n + 1), n, p)
    mean = sum(
        weights[s] * weights[r] * (math.exp(log[s]) + math.exp(log[r])) / 2
        for s in range(n + 1)
        for r in range(n + 1)
    )
    assert mean == pytest.approx(1.0)


def test_pools_of_pac_policies_are_the_trials():
    policy = policy_of(sl.PerPool(5, 100), rule="pac")
    monitor = sl.Monitor(policy)
    assert float(monitor.claims[0].rate) == pytest.approx(0.95)
    monitor.observe(qualified=5, pool_size=100)
    monitor.observe(qualified=4, pool_size=120)
    assert (monitor.tallies[None].total.trials, monitor.tallies[None].total.successes) == (2, 1)
    with pytest.raises(sl.InvalidInput, match="pools of 100 or more"):
        monitor.observe(qualified=4, pool_size=99)


def test_plain_per_pool_and_recall_policies_are_refused_with_the_reason(policy):
    with pytest.raises(sl.InvalidInput, match="average over calibration samples"):
        sl.Monitor(policy_of(sl.PerPool(5, 100)))
    with pytest.raises(sl.InvalidInput, match="not shortlisted are never reviewed"):
        sl.Monitor(policy_of(sl.Recall(0.9)))
    with pytest.raises(sl.InvalidInput, match="nothing to watch"):
        sl.Monitor(policy.withdraw("gone."))
    with pytest.raises(sl.InvalidInput, match="expected a Policy or the path of its file"):
        sl.Monitor(3)
    with pytest.raises(sl.InvalidInput, match="cannot read no such policy"):
        sl.Monitor("no such policy.json")


def test_promises_that_no_alarm_watches_are_refused_with_those_that_are():
    scores, labels = next(simulated_pools.pools(np.random.default_rng(0), 1, size=3000))
    whole = sl.calibrate(scores, labels, sl.NextPool(k=1), pools=np.arange(3000) // 50)
    with pytest.raises(sl.InvalidInput, match=r"cannot be watched\. What can be: averages in pools"):
        sl.Monitor(whole)
    both = sl.calibrate(scores, labels, [sl.Expected(5, 100), sl.Recall(0.5)])
    with pytest.raises(sl.InvalidInput, match="several promises of one list"):
        sl.Monitor(both)


@pytest.mark.parametrize(
    ("qualified", "size"),
    [(-1, 10), (11, 10), (1.5, 10), (True, 10), (None, 10), (1, -1), (1, "10"), (float("nan"), 10)],
)
def test_bad_counts_are_refused(policy, qualified, size):
    monitor = sl.Monitor(policy)
    with pytest.raises(sl.InvalidInput, match="expected"):
        monitor.observe(qualified=qualified, pool_size=size, review_id="x")
    assert monitor.pools == 0
    assert monitor.observe(qualified=1, pool_size=10, review_id="x")


def test_state_file_goes_on_where_it_stopped(tmp_path, policy):
    path = tmp_path / "monitor.json"
    straight = sl.Monitor(policy, alpha=0.02)
    sl.Monitor(policy, alpha=0.02).save(path)
    for day in range(50):
        count = day % 6
        straight.observe(qualified=count, pool_size=100, review_id=day)
        monitor = sl.Monitor.load(path)
        monitor.observe(qualified=count, pool_size=100, review_id=day)
        monitor.save(path)
    again = sl.Monitor.load(path)
    assert again.raised == straight.raised
    assert again.e_value == straight.e_value
    assert again.policy.promise == straight.policy.promise
    assert not again.observe(qualified=3, pool_size=100, review_id=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(format=3), "format version"),
        (lambda s: s.update(format=True), "format version True"),
        (lambda s: s.update(kind="surelist campaign"), "not a surelist monitor"),
        (lambda s: s.update(extra=1), "does not fit"),
        (lambda s: s["watch"].pop("alarm"), "does not fit"),
        (lambda s: s["watch"].update(alpha=1.5), r"< 1.0 - at `\$.watch.alpha`"),
        (lambda s: s["watch"]["tallies"][0]["total"].update(successes=10**6), "impossible"),
        (lambda s: s["watch"]["tallies"][0].update(group="a"), "groups"),
        (lambda s: s["watch"]["tallies"][0]["log_wealth"].pop(), "impossible"),
        (lambda s: s["watch"]["tallies"][0].update(more=1), "`more`.*tallies"),
        (lambda s: s["watch"]["tallies"][0]["total"].update(trials=3000.0), r"tallies\[0\].total.trials"),
        (
            lambda s: s["watch"]["tallies"][0]["before"].pop("successes"),
            r"`successes` - at .*tallies\[0\].before",
        ),
        (lambda s: s["watch"]["memory"].update(kept={"a": 1}), "memory.kept"),
        (lambda s: s["watch"]["memory"].pop("forgotten"), "`forgotten` - at .*memory"),
        (lambda s: s["watch"]["alarm"].update(e_value=float("inf")), "not valid JSON"),
        (lambda s: s["watch"]["alarm"].update(e_value=1e400), "not valid JSON"),
        (lambda s: s["watch"].update(alarm=None), "taken out"),
        (lambda s: s["watch"]["alarm"].update(e_value=3.0), "below its level"),
        (lambda s: s["policy"]["cutoffs"][0]["steps"][0].update(critical_count=1), "contradict"),
    ],
)
def test_damaged_state_is_refused(tmp_path, policy, change, message):
    path = tmp_path / "monitor.json"
    monitor = sl.Monitor(policy)
    for _ in range(30):
        monitor.observe(qualified=1, pool_size=100)
    assert monitor.alarm
    monitor.save(path)
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(sl.PolicyFileError, match=message):
        sl.Monitor.load(path)


def test_unreadable_state(tmp_path):
    with pytest.raises(sl.InvalidInput, match="cannot read"):
        sl.Monitor.load(tmp_path / "none.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(sl.PolicyFileError, match="not valid JSON"):
        sl.Monitor.load(tmp_path / "x.json")


def test_memory_is_bounded_and_never_counts_twice():
    memory = Memory()
    for number in range(20_000):
        assert memory.recall(f"pool {number}", "pool") is None
        memory.keep(f"pool {number}", "x")
    assert sum(map(len, memory.kept)) < CHARACTERS
    assert memory.recall("pool 19999", "pool") == "x"
    with pytest.raises(sl.InvalidInput, match="cannot tell"):
        memory.recall("pool 3", "pool")
    assert memory.recall("pool 20000", "pool") is None


def test_natural_order():
    names = ["a10b", "2026-01-10", "a10", "2026-01-09", "a2"]
    assert sorted(names, key=natural) == ["2026-01-09", "2026-01-10", "a2", "a10", "a10b"]


def test_drift_reports_an_effect_and_what_it_does_not_prove():
    rng = np.random.default_rng(3)
    before = rng.normal(size=3000)
    same = sl.drift(before, rng.normal(size=500))
    assert same.p_value > 0.01
    assert same.higher == pytest.approx(0.5, abs=0.05)
    moved = sl.drift(before, rng.normal(size=500) + 0.5)
    assert moved.p_value < 1e-6
    assert moved.gap == pytest.approx(0.197, abs=0.05)
    assert moved.higher == pytest.approx(0.638, abs=0.04)
    assert moved.share_now - moved.share_before == pytest.approx(moved.gap)
    said = moved.describe()
    assert "cannot prove the promise broken or intact" in said
    assert "500 candidates" in said


def test_drift_agrees_with_scipy_and_is_quiet_often_enough():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(4)
    small = 0
    for _ in range(300):
        a, b = rng.integers(0, 12, 80).astype(float), rng.integers(0, 12, 50).astype(float)
        ours, theirs = sl.drift(a, b), ks_2samp(a, b, method="exact")
        assert ours.gap == pytest.approx(theirs.statistic)
        assert ours.p_value >= 0.9 * theirs.pvalue
        small += ours.p_value <= 0.05
    assert binom.sf(small - 1, 300, 0.05) > 1e-6
    with pytest.raises(sl.InvalidInput, match="pool_scores"):
        sl.drift([1.0], [])


@pytest.mark.parametrize(("rows", "candidates"), [(7, 9), (5, 5), (1, 12)])
def test_the_p_value_of_drift_is_exact_for_few_rows(rows, candidates):
    """Against all orders of rows and candidates, each as likely as any other without drift."""
    total = rows + candidates
    gaps = []
    for places in itertools.combinations(range(total), rows):
        steps = np.full(total, -1 / candidates)
        steps[list(places)] = 1 / rows
        gaps.append(float(np.abs(np.cumsum(steps)).max()))
    for gap in sorted(set(np.round(gaps, 9))):
        example = next(
            p
            for p, g in zip(itertools.combinations(range(total), rows), gaps, strict=True)
            if abs(g - gap) < 1e-8
        )
        others = sorted(set(range(total)) - set(example))
        shift = sl.drift(np.asarray(example, dtype=float), np.asarray(others, dtype=float))
        assert shift.gap == pytest.approx(gap)
        assert shift.p_value == pytest.approx(np.mean(np.asarray(gaps) >= gap - 1e-8), abs=1e-9)


def test_the_p_value_of_drift_is_one_where_nothing_moved():
    for rows, gap in ((60, 2), (135, 3), (281, 4), (7, 1)):
        before = np.arange(rows, dtype=float)
        now = before + 0.5
        now[:gap] -= 10  # the first few candidates below every row: the largest gap is theirs
        shift = sl.drift(before, now)
        assert shift.gap == pytest.approx(gap / rows)
        assert shift.p_value == 1.0


def test_the_p_value_of_drift_beyond_ten_million_pairs_is_within_a_hundredth(monkeypatch):
    rng = np.random.default_rng(0)
    for rows, candidates in [(3163, 3163), (1000, 10_001), (31, 400_000)]:
        before, now = rng.random(rows), rng.random(candidates)
        beyond = sl.drift(before, now).p_value if rows * candidates > 10**7 else None
        monkeypatch.setattr(drift_module, "PAIRS", 10**8)
        exact = sl.drift(before, now).p_value
        monkeypatch.setattr(drift_module, "PAIRS", 10**7)
        assert beyond == pytest.approx(exact, abs=0.01)


@pytest.mark.slow
def test_false_alarms_over_a_long_horizon_simulated_at_the_boundary(policy):
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(150):
        monitor = sl.Monitor(policy, alpha=0.05)
        for size in rng.poisson(100, 1000).tolist():
            monitor.observe(qualified=int(rng.binomial(size, 0.05)), pool_size=size)
            if monitor.alarm:
                alarms += 1
                break
    assert binom.sf(alarms - 1, 150, 0.05) > 1e-6


def test_deeply_nested_state_is_a_plain_error(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("[" * 100_000)
    with pytest.raises(sl.PolicyFileError, match="not valid JSON"):
        sl.Monitor.load(path)
