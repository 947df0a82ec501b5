"""Recall watched with an audit of the unlisted [theory: recall-alarm]."""

from __future__ import annotations

import csv
import itertools
import json
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, multinomial

import surelist as sl
from surelist.bounds import betting
from surelist.cli import run
from surelist.promises.promise import Promise
from tests.helpers.simulated_pools import DISTANCE, pools

pytestmark = pytest.mark.slow

BASE = 0.19


def calibrated(target: Promise) -> sl.Policy:
    scores, labels = next(pools(np.random.default_rng(0), 1, 3000))
    return sl.calibrate(scores, labels, target)


@pytest.fixture(scope="module")
def policy():
    return calibrated(sl.Recall(0.9))


def e_value(r: float, audit_rate: float, seen: list[tuple[int, int]]) -> float:
    """After pools with these numbers of qualified candidates listed and found in the audit."""
    bets = betting.Bets(r, audit_rate=audit_rate)
    for listed, missed in seen:
        bets.add(listed + missed, listed)
    return math.exp(bets.log_e_value)


@pytest.mark.parametrize(("r", "audit_rate"), [(0.9, 0.05), (0.5, 0.3), (0.75, 0.9)])
@pytest.mark.parametrize("surplus", [0.0, 0.04], ids=["at the boundary", "above it"])
def test_the_average_bet_on_recall_wins_nothing(r, audit_rate, surplus):
    """Exact: all outcomes of two pools of three candidates, each listed, audited or neither, qualified or not."""
    recall, base, size = r + surplus, 0.4, 3
    seen = [base * recall, base * (1 - recall) * audit_rate]
    law = multinomial(size, [*seen, 1 - sum(seen)])
    outcomes = [(a, b) for a in range(size + 1) for b in range(size + 1 - a)]
    mean = 0.0
    for first, second in itertools.product(outcomes, repeat=2):
        weight = law.pmf([*first, size - sum(first)]) * law.pmf([*second, size - sum(second)])
        mean += weight * e_value(r, audit_rate, [first, second])
    assert mean <= 1 + 1e-12
    assert (mean == pytest.approx(1.0, abs=1e-9)) == (surplus == 0)


def test_missing_reviews_never_raise_the_evidence(policy):
    """A listed one counts as qualified, an audited one as not, whatever they were."""
    for listed, missed, lost_listed, lost_audited in itertools.product((0, 3, 9), (0, 1, 3), (0, 2), (0, 1)):
        truth, fed = sl.Monitor(policy, audit_rate=0.05), sl.Monitor(policy, audit_rate=0.05)
        for qualified in range(lost_listed + 1):  # how many of the lost ones were qualified
            for found in range(lost_audited + 1):
                truth.observe(qualified=listed + qualified, pool_size=100, missed=missed + found)
                fed.observe(qualified=listed, pool_size=100, unreviewed=lost_listed, missed=missed,
                            unaudited=lost_audited)  # fmt: skip
                assert fed.log_e_value <= truth.log_e_value + 1e-12


def pool(rng: np.random.Generator, recall: float, audit_rate: float, size: int = 100) -> tuple[int, int, int]:
    """Qualified candidates listed and found in the audit of a pool, and how many were audited."""
    others = (1 - BASE) * ndtr(DISTANCE - ndtri(recall))
    listed, missed, rest, _ = rng.multinomial(
        size, [BASE * recall, BASE * (1 - recall), others, 1 - BASE - others]
    )
    found = int(rng.binomial(missed, audit_rate))
    return int(listed), found, found + int(rng.binomial(rest, audit_rate))


def test_false_alarms_at_recall_exactly_as_promised_are_as_rare_as_promised(policy):
    alpha, runs, rng, alarms = 0.1, 200, np.random.default_rng(1), 0
    for _ in range(runs):
        monitor = sl.Monitor(policy, alpha, audit_rate=0.05)
        for _ in range(100):
            listed, missed, _ = pool(rng, 0.9, 0.05, size=500)
            monitor.observe(qualified=listed, pool_size=500, missed=missed)
        alarms += monitor.alarm
    assert binom.sf(alarms - 1, runs, alpha) > 1e-6


def test_a_recall_of_80_instead_of_90_percent_is_found_within_300_audited(policy):
    rng, audits = np.random.default_rng(2), []
    for _ in range(101):
        monitor, audited = sl.Monitor(policy, audit_rate=0.05), 0
        while not monitor.alarm:
            listed, missed, drawn = pool(rng, 0.8, 0.05)
            audited += drawn
            monitor.observe(qualified=listed, pool_size=100, missed=missed)
        audits.append(audited)
    assert np.median(audits) <= 300


def test_the_interval_covers_recall_at_every_pool_at_once():
    alpha, runs, rng, wrong = 0.2, 100, np.random.default_rng(3), 0
    for _ in range(runs):
        listed, missed, covered = 0, 0, True
        for number in range(1, 41):
            qualified, found, _ = pool(rng, 0.85, 0.2)
            listed, missed = listed + qualified, missed + found
            if number % 4 == 0:
                low, high = betting.recall_interval(0.2, (listed, listed), (missed, missed), alpha)
                covered &= low <= 0.85 <= high
        wrong += not covered
    assert binom.sf(wrong - 1, runs, alpha) > 1e-6
    low, high = betting.recall_interval(0.2, (20_000, 20_000), (500, 500), 0.05)  # about 20,000 of 22,500
    assert 0.86 < low < 20 / 22.5 < high < 0.91


def test_missing_reviews_widen_the_interval_both_ways():
    low, high = betting.recall_interval(0.1, (900, 950), (10, 12), 0.05)
    assert low == betting.recall_interval(0.1, (900, 900), (12, 12), 0.05)[0]
    assert high == betting.recall_interval(0.1, (950, 950), (10, 10), 0.05)[1]
    assert betting.recall_interval(0.1, (0, 0), (0, 0), 0.05) == (0.0, 1.0)


def test_recall_needs_an_audit_and_other_promises_have_none(policy):
    with pytest.raises(sl.InvalidInput, match=r"without an audit.*audit_rate=0\.05"):
        sl.Monitor(policy)
    expected = calibrated(sl.Expected(5, 100))
    with pytest.raises(sl.InvalidInput, match="Recall and Triage promises only"):
        sl.Monitor(expected, audit_rate=0.05)
    for wrong in (0, 1, -0.1, float("nan"), "5%"):
        with pytest.raises(sl.InvalidInput, match="audit_rate"):
            sl.Monitor(policy, audit_rate=wrong)
    monitor = sl.Monitor(policy, audit_rate=0.05)
    with pytest.raises(sl.InvalidInput, match="how many of the audited"):
        monitor.observe(qualified=10, pool_size=100)
    with pytest.raises(sl.InvalidInput, match="no audit to draw"):
        sl.Monitor(expected).draw_audit([True, False])


def test_the_audit_is_drawn_among_the_unlisted_afresh_each_time(policy):
    monitor = sl.Monitor(policy, audit_rate=0.3)
    listed = np.arange(20_000) % 4 == 0
    first, second = monitor.draw_audit(listed), monitor.draw_audit(listed)
    assert not (first & listed).any()
    assert 1e-6 < binom.cdf(first.sum(), 15_000, 0.3) < 1 - 1e-6
    assert (first != second).any()


def test_state_goes_on_and_the_sentences_say_what_was_seen(policy, tmp_path):
    path = tmp_path / "recall.json"
    straight = sl.Monitor(policy, audit_rate=0.05)
    sl.Monitor(policy, audit_rate=0.05).save(path)
    for day in range(30):
        numbers = {
            "qualified": 12,
            "missed": day % 2,
            "unaudited": int(day == 3),
            "unreviewed": int(day == 4),
        }
        straight.observe(pool_size=100, review_id=day, **numbers)
        monitor = sl.Monitor.load(path)
        monitor.observe(pool_size=100, review_id=day, **numbers)
        monitor.save(path)
    again = sl.Monitor.load(path)
    assert again.audit_rate == 0.05
    assert (again.e_value, again.raised, again.interval) == (
        straight.e_value,
        straight.raised,
        straight.interval,
    )
    text = straight.describe()
    assert "360 qualified candidates on the lists, 15 among the 5% of the others who were audited" in text
    assert "1 more on the shortlists have no review, 1 drawn for the audit have no review" in text
    assert "promised at least 90%" in text
    state = json.loads(path.read_text())
    state["watch"]["audit_rate"] = None
    path.write_text(json.dumps(state))
    with pytest.raises(sl.PolicyFileError, match="without an audit"):
        sl.Monitor.load(path)


def test_watch_takes_audits_at_the_command_line(policy, tmp_path, capsys):
    policy.save(tmp_path / "policy.json")
    with open(tmp_path / "pools.csv", "w", newline="") as file:
        rows = [(f"day {n}", 100, 10, 2, "") for n in range(40)]
        csv.writer(file).writerows(
            [("pool", "pool_size", "qualified", "missed", "lost"), *rows, ("late", 100, 9, "", "")]
        )
    arguments = ["watch", str(tmp_path / "monitor.json"), str(tmp_path / "pools.csv"), "--missed", "missed",
                 "--unreviewed", "lost"]  # fmt: skip
    first = [*arguments, "--policy", str(tmp_path / "policy.json")]
    assert run(first) == 2
    assert "--audit-rate" in capsys.readouterr().err
    assert run([*first, "--audit-rate", "0.05", "--json"]) == 4
    body = json.loads(capsys.readouterr().out)
    assert (body["alarm"], body["new"], body["waiting_for"]) == (True, 40, "late")
    assert body["promise"].startswith("Nothing is promised any more")
    assert run(arguments) == 4
    assert "40 counted before" in capsys.readouterr().out
    assert run([*arguments, "--audit-rate", "0.1"]) == 2
    assert "cannot change on the way" in capsys.readouterr().err
