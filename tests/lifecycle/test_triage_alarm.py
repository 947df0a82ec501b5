"""Both promises of a triage watched by an audit of everyone [theory: triage-alarm]."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from scipy import stats

import surelist as sl
from surelist.cli import run
from surelist.workflows import watching
from surelist.workflows.source import Source
from surelist.workflows.tables import impact, select_table


def judged(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.random(n) < 0.5
    return np.where(labels, rng.beta(3, 1, n), rng.beta(1, 3, n)), labels


def made(**asked: float) -> sl.Policy:
    rng = np.random.default_rng(11)
    return sl.calibrate(*judged(rng, 2_000), sl.Triage(**asked), unlabelled=judged(rng, 5_000)[0])


NPV, RECALL = made(accept=0.8, reject=0.7), made(accept=0.8, reject_recall=0.7)

# chance of one candidate a pool: accepted and qualified, accepted, looked at and qualified, rejected and qualified, rejected;
# both promises hold exactly
AT_THE_BOUNDARY = {
    "npv": (NPV, (0.4, 0.1, 0.0, 0.15, 0.35)),
    "recall": (RECALL, (0.28, 0.07, 0.14, 0.18, 0.33)),
}
CELLS = [("accept", 1), ("accept", 0), ("look", 1), ("reject", 1), ("reject", 0)]


def fed(monitor: sl.Monitor, kinds: tuple[int, ...]) -> None:
    counts = {name: [0, 0] for name in ("accept", "look", "reject")}
    for kind in kinds:
        name, good = CELLS[kind]
        counts[name][0] += 1
        counts[name][1] += good
    monitor.observe(
        drawn={name: each[0] for name, each in counts.items()},
        qualified={name: each[1] for name, each in counts.items()},
    )


@pytest.mark.parametrize("world", AT_THE_BOUNDARY)
def test_over_every_course_of_five_audits_a_false_alarm_is_at_most_alpha(world):
    policy, chances = AT_THE_BOUNDARY[world]
    alpha, false = 0.9, 0.0
    for course in product(range(5), repeat=5):
        if chance := prod(chances[kind] for kind in course):
            monitor = sl.Monitor(policy, alpha, audit_rate=0.2)
            for kind in course:
                fed(monitor, (kind,))
                if monitor.alarm:
                    break
            false += chance * monitor.alarm
    assert 0.05 < false <= alpha


@pytest.mark.slow
@pytest.mark.parametrize("world", AT_THE_BOUNDARY)
def test_over_long_audits_a_false_alarm_is_at_most_alpha(world):
    policy, chances = AT_THE_BOUNDARY[world]
    rng, runs, alpha, alarms = np.random.default_rng(5), 300, 0.3, 0
    for _ in range(runs):
        monitor = sl.Monitor(policy, alpha, audit_rate=0.05)
        for _ in range(60):
            fed(monitor, tuple(rng.choice(5, 20, p=chances)))
            if monitor.alarm:
                break
        alarms += monitor.alarm
    assert stats.binom.sf(alarms - 1, runs, alpha) > 1e-6
    assert alarms > 0


@pytest.mark.parametrize("policy", [NPV, RECALL], ids=["npv", "recall"])
@pytest.mark.parametrize("wrong", ["accept", "reject"])
def test_an_alarm_comes_where_either_end_is_wrong(policy, wrong):
    monitor = sl.Monitor(policy, audit_rate=0.1)
    qualified = {
        "accept": 10 if wrong == "accept" else 19,
        "look": 2,
        "reject": 15 if wrong == "reject" else 1,
    }
    for pool in range(40):
        monitor.observe(drawn={"accept": 20, "look": 5, "reject": 20}, qualified=qualified, review_id=pool)
    assert monitor.alarm
    assert list(monitor.intervals) == ["accepted", "rejected"]
    low, high = monitor.intervals["accepted" if wrong == "accept" else "rejected"]
    assert low < high < float(monitor.claims[0 if wrong == "accept" else 1].rate)
    assert monitor.policy.withdrawn
    with pytest.raises(sl.InvalidInput, match="read intervals"):
        _ = monitor.interval


@pytest.mark.parametrize("policy", [NPV, RECALL], ids=["npv", "recall"])
def test_missing_reviews_speak_for_the_promises_in_the_alarm_and_both_ways_in_the_interval(policy):
    drawn = {"accept": 10, "look": 4, "reject": 10}
    known = sl.Monitor(policy, audit_rate=0.1)
    known.observe(drawn=drawn, qualified={"accept": 7, "look": 2, "reject": 3},
                  unreviewed={"accept": 2, "look": 1, "reject": 2})  # fmt: skip
    for accept, look, reject in product(range(3), range(2), range(3)):
        told = sl.Monitor(policy, audit_rate=0.1)
        told.observe(drawn=drawn, qualified={"accept": 7 + accept, "look": 2 + look, "reject": 3 + reject})
        assert known.e_value <= told.e_value * (1 + 1e-12)
        for part, (low, high) in told.intervals.items():
            assert known.intervals[part][0] <= low
            assert high <= known.intervals[part][1]


def test_everyone_may_be_drawn_and_a_file_goes_on(tmp_path):
    policy = made(accept=0.9, reject_recall=0.95)
    monitor = sl.Monitor(policy, audit_rate=0.25)
    low, high = policy.cutoffs[0].proof.looked_from, policy.threshold
    lists = policy.triage(np.repeat([low - 0.1, (low + high) / 2, high], 1_000))
    drawn = monitor.draw_audit(lists)
    for name in ("accept", "look", "reject"):
        count, of = int(drawn[lists == name].sum()), int((lists == name).sum())
        assert 1e-9 < stats.binom.cdf(count, of, 0.25) < 1 - 1e-9
    fed(monitor, (0, 1, 2, 3, 4, 4))
    monitor.save(tmp_path / "monitor.json")
    again = sl.Monitor.load(tmp_path / "monitor.json")
    fed(monitor, (0, 3, 3))
    fed(again, (0, 3, 3))
    assert again.e_value == monitor.e_value
    assert "of those drawn 3 of 6 qualified are not rejected" in again.describe()
    assert "at least 90% of the accepted are qualified" in again.in_a_sentence()


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"qualified": {"accept": 1, "look": 0, "reject": 0}}, "drawn"),
        ({"drawn": {"accept": 1, "reject": 1}, "qualified": {"accept": 1, "reject": 0}}, "drawn"),
        ({"drawn": {"accept": 1, "look": 0, "reject": 1}, "qualified": 3}, "qualified"),
        ({"drawn": {"accept": 1, "look": 0, "reject": 1}, "qualified": {"accept": 2, "look": 0, "reject": 0}}, "drawn"),
        ({"drawn": {"accepted": 1}, "qualified": {}}, "drawn"),
        *(({"drawn": {"accept": 9, "look": 0, "reject": 9}, "qualified": {"accept": 1, "look": 0, "reject": 0}, field: 8},
           f"{field}.*goes with no triage") for field in ("unaudited", "missed", "pool_size")),
    ],
)  # fmt: skip
def test_what_is_told_has_to_fit(told, field):
    monitor = sl.Monitor(RECALL, audit_rate=0.1)
    with pytest.raises(sl.InvalidInput, match=field):
        monitor.observe(**told)
    assert monitor.pools == 0


def test_a_triage_without_an_audit_is_refused_and_others_take_no_audited():
    with pytest.raises(sl.InvalidInput, match="without an audit"):
        sl.Monitor(NPV)
    rng = np.random.default_rng(3)
    monitor = sl.Monitor(sl.calibrate(*judged(rng, 500), sl.Expected(5, 100)))
    with pytest.raises(sl.InvalidInput, match="goes with a triage"):
        monitor.observe(qualified=3, pool_size=100, drawn={"accept": 1})


def test_the_command_line_reads_one_row_for_each_pool_and_list(tmp_path, capsys):
    NPV.save(tmp_path / "policy.json")
    rows = ["pool,list,drawn,qualified"]
    rows += [f"p{pool},{name}" for pool in range(30) for name in ("accept,20,19", "reject,20,15")]
    (tmp_path / "audits.csv").write_text("\n".join(rows) + "\n")
    told = ["watch", str(tmp_path / "state.json"), str(tmp_path / "audits.csv"), "--group", "list"]
    assert run([*told, "--policy", str(tmp_path / "policy.json"), "--audit-rate", "0.1"]) == 4
    assert "of those drawn 150 of 600 rejected are not qualified" in capsys.readouterr().out


def test_from_a_file_everyone_may_be_drawn_and_the_others_of_the_band_stand_apart(tmp_path):
    policy = made(accept=0.9, reject_recall=0.95)
    scores = judged(np.random.default_rng(8), 400)[0]
    (tmp_path / "pool.csv").write_text(
        "id,score\n" + "".join(f"c{at},{s!r}\n" for at, s in enumerate(scores.tolist()))
    )
    source, columns = Source(tmp_path / "pool.csv"), {"score": "score"}
    drawn, by_list = watching.write_audit(
        source, policy, columns, 0.3, tmp_path / "drawn.csv", tmp_path / "band.csv"
    )
    lists = policy.triage(scores)
    assert by_list == {name: int((lists[drawn] == name).sum()) for name in ("accept", "look", "reject")}
    assert min(by_list.values()) > 0
    audit, band = (
        [line.split(",") for line in (tmp_path / name).read_text().splitlines()]
        for name in ("drawn.csv", "band.csv")
    )
    assert audit[0] == band[0] == ["id", "score", watching.LIST]
    expected = [[f"c{row}", "", lists[row]] for row in drawn]  # whoever reviews them sees no score
    assert audit[1:] != expected == sorted(audit[1:], key=lambda row: int(row[0][1:]))
    others = [f"c{row}" for row in np.flatnonzero(lists == "look") if row not in set(drawn)]
    assert [row[0] for row in band[1:]] == others


def test_reviews_of_the_band_who_were_not_drawn_count_neither_way():
    told = sl.Monitor(RECALL, watching.ALPHA, audit_rate=0.1)
    told.observe(drawn={"accept": 9, "look": 4, "reject": 9}, qualified={"accept": 8, "look": 2, "reject": 1})
    numbers = watching.PoolNumbers(
        100, 30, 2, {"accept": 8, "look": 2, "reject": 1}, 0, {"accept": 9, "look": 4, "reject": 9}
    )
    watched = watching.watch(RECALL, [watching.WatchedPool("p", numbers, 0.1)])
    assert watched.evidence == (told.e_value,)


def test_selection_rates_of_a_triage_are_of_those_accepted(tmp_path):
    scores = judged(np.random.default_rng(8), 90)[0]
    sex = np.where(np.arange(90) % 3, "f", "m")
    rows = "".join(f"{s!r},{each}\n" for s, each in zip(scores.tolist(), sex, strict=True))
    (tmp_path / "pool.csv").write_text("score,sex\n" + rows)
    select_table(tmp_path / "pool.csv", RECALL, output=tmp_path / "lists.csv", score="score")
    (table,) = impact(tmp_path / "pool.csv", tmp_path / "lists.csv", ["sex"], three_ways=True)
    accepted = RECALL.triage(scores) == "accept"
    assert {each.name: each.shortlisted for each in table.categories} == {
        name: int(accepted[sex == name].sum()) for name in ("f", "m")
    }
