"""plan, watch and campaign from files, with their exit codes."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import surelist as sl
from surelist.cli import run
from tests.helpers.simulated_pools import pools


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def past(path, rows=800, seed=0):
    scores, labels = next(pools(np.random.default_rng(seed), 1, size=rows))
    return write(path, ["score", "qualified"], zip(scores, labels, strict=True))


def candidates(path, scores):
    rows = [(f"c{i}", repr(float(score)), f"name, {i}") for i, score in enumerate(scores)]
    return write(path, ["id", "score", "who"], rows)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_plan(tmp_path, capsys):
    assert run(["plan", "--expect", "5", "--pool-size", "100", "--base-rate", "0.19", "--auc", "0.85"]) == 0
    out = capsys.readouterr().out
    assert "Assumption" in out
    assert "Oracle list" in out
    pilot = past(tmp_path / "pilot.csv")
    picture = tmp_path / "plan.png"
    code = run(["plan", "--expect", "5", "--pool-size", "100", "--pilot", pilot, "--sizes", "300,1000",
                "--plot", str(picture), "--json"])  # fmt: skip
    assert code == 0
    body = json.loads(capsys.readouterr().out)
    assert [row["rows"] for row in body["table"]] == [300, 1000, 300, 1000]
    assert body["table"][0]["interval"][0] < body["table"][0]["list_size"]
    assert picture.exists()
    assert run(["plan", "--recall", "0.9", "--base-rate", "0.19", "--auc", "0.85"]) == 0
    collection = ["--collection", "400", "--sizes", "100"]
    assert run(["plan", "--recall", "0.9", *collection, "--base-rate", "0.19", "--auc", "0.85"]) == 0
    assert "With 100 labels: certified in " in capsys.readouterr().out
    assert run(["plan", "--expect", "5"]) == 2
    assert run(["plan", "--pool-size", "5"]) == 2
    assert run(["plan", "--expect", "5", "--pool-size", "100"]) == 2
    assert (
        run(
            ["plan", "--expect", "30", "--pool-size", "100", "--base-rate", "0.19", "--auc", "0.85", "--json"]
        )
        == 0
    )


@pytest.fixture
def policy(tmp_path):
    scores, labels = next(pools(np.random.default_rng(0), 1, size=2000))
    path = tmp_path / "policy.json"
    sl.calibrate(scores, labels, sl.Expected(5, 100)).save(path)
    return str(path)


def test_watch_waits_goes_on_and_alarms(tmp_path, capsys, policy):
    state = str(tmp_path / "monitor.json")
    table = tmp_path / "pools.csv"
    header = ["pool", "pool_size", "qualified"]
    write(table, header, [("d1", 100, 6), ("d2", 100, ""), ("d3", 100, 5)])
    assert run(["watch", state, str(table)]) == 2
    assert "give --policy" in capsys.readouterr().err
    assert run(["watch", state, str(table), "--policy", policy]) == 0
    out = capsys.readouterr().out
    assert "1 new pools" in out
    assert "Waiting for the reviews of pool 'd2'" in out
    write(table, header, [("d1", 100, 6), ("d2", 100, 4), ("d3", 100, 5)])
    assert run(["watch", state, str(table), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["new"], body["known"], body["pools"], body["alarm"]) == (2, 1, 3, False)
    write(table, header, [(f"d{i}", 100, [6, 4, 5][i - 1] if i < 4 else 1) for i in range(1, 60)])
    assert run(["watch", state, str(table)]) == 4
    assert "Nothing is promised any more" in capsys.readouterr().out
    assert run(["watch", state, str(table)]) == 4
    assert run(["watch", state, str(table), "--alpha", "0.2"]) == 2
    write(table, header, [("d1", 100, 3)])
    assert run(["watch", state, str(table)]) == 2
    write(table, header, [("e", 100, "many")])
    assert run(["watch", state, str(table)]) == 2
    write(table, header, [("e", 100, 1), ("e", 100, 1)])
    assert run(["watch", state, str(table)]) == 2


def test_watch_takes_a_column_of_missing_reviews_for_what_it_is_without_being_told(tmp_path, capsys, policy):
    table = tmp_path / "pools.csv"
    write(table, ["pool", "pool_size", "qualified", "unreviewed"], [(f"d{i}", 100, 0, 9) for i in range(5)])
    assert run(["watch", str(tmp_path / "monitor.json"), str(table), "--policy", policy]) == 0
    assert "45 more on the shortlists have no review" in capsys.readouterr().out


def test_watch_refuses_another_policy(tmp_path, policy):
    state, table = (
        str(tmp_path / "m.json"),
        write(tmp_path / "p.csv", ["pool", "pool_size", "qualified"], [(1, 100, 9)]),
    )
    assert run(["watch", state, table, "--policy", policy]) == 0
    scores, labels = next(pools(np.random.default_rng(1), 1, size=2000))
    other = tmp_path / "other.json"
    sl.calibrate(scores, labels, sl.Expected(5, 100)).save(other)
    assert run(["watch", state, table, "--policy", str(other)]) == 2
    assert run(["watch", state, table, "--policy", policy]) == 0


def test_watch_groups(tmp_path, capsys):
    rng = np.random.default_rng(0)
    scores, labels = next(pools(rng, 1, size=3000))
    groups = np.where(rng.random(3000) < 0.5, "a", "b")
    policy = tmp_path / "policy.json"
    targets = {"a": sl.Expected(3, 50), "b": sl.Expected(3, 50)}
    sl.calibrate(scores, labels, targets, groups=sl.Groups(groups, "outreach")).save(policy)
    table = write(
        tmp_path / "p.csv", ["pool", "pool_size", "qualified", "group"],
        [("1", 50, 4, "a"), ("1", 50, 3, "b"), ("2", 50, 4, "a"), ("2", 50, "", "b")],
    )  # fmt: skip
    assert (
        run(["watch", str(tmp_path / "m.json"), table, "--policy", str(policy), "--group", "group", "--json"])
        == 0
    )
    body = json.loads(capsys.readouterr().out)
    assert body["pools"] == 1
    assert body["waiting_for"] == "2"
    assert set(body["interval"]) == {"a", "b"}


@pytest.mark.slow
def test_campaign_from_start_to_alarm(tmp_path, capsys):
    state = str(tmp_path / "campaign.json")
    start = [
        "campaign",
        "start",
        past(tmp_path / "past.csv"),
        "--expect",
        "5",
        "--pool-size",
        "100",
        "-o",
        state,
    ]
    assert run([*start, "--schedule", "3,8"]) == 0
    assert "at least 5 qualified" in capsys.readouterr().out
    assert run([*start, "--schedule", "3,8"]) == 2
    assert "Starting again on the same rows" in capsys.readouterr().err
    rng, shortlist = np.random.default_rng(5), tmp_path / "shortlist.csv"
    codes = []
    for number, (scores, labels) in enumerate(pools(rng, 11), start=1):
        if number > 4:
            labels[:] = 0
        name = f"2026-03-{number:02}"
        pool = candidates(tmp_path / "pool.csv", scores)
        screen = ["campaign", "screen", state, pool, "--pool", name, "-o", str(shortlist)]
        codes.append(run(screen))
        rows = read(shortlist)
        campaign = sl.Campaign.load(state)
        assert [row["id"] for row in rows] == [f"c{i}" for i in np.flatnonzero(scores >= campaign.threshold)]
        assert list(rows[0]) == ["id", "score", "who"]
        assert run(screen) == 2  # fed twice
        reviewed = [(row["id"], labels[int(row["id"][1:])]) for row in rows]
        first = write(
            tmp_path / "some.csv", ["id", "qualified"], [*reviewed[:2], *((i, "") for i, _ in reviewed[2:])]
        )
        later = write(tmp_path / "all.csv", ["id", "qualified"], reviewed)
        for table in (first, later, later):
            codes.append(run(["campaign", "review", state, table, "--pool", name]))
    capsys.readouterr()
    assert codes[:16] == [0] * 16
    assert codes[-1] == 4
    assert codes == sorted(codes)
    picture = tmp_path / "c.png"
    assert run(["campaign", "status", state, "--plot", str(picture)]) == 4
    out = capsys.readouterr().out
    assert "Nothing is promised any more" in out
    assert "floor" in out
    assert picture.stat().st_size > 5000
    assert run(["campaign", "status", state, "--json", "--policy", str(tmp_path / "now.json")]) == 4
    body = json.loads(capsys.readouterr().out)
    assert body["alarm"] is True
    assert len(body["updates"]) == 2
    assert sl.Policy.load(tmp_path / "now.json").promise == body["promise"]


def test_a_campaign_with_an_audit(tmp_path, capsys):
    state, pool = tmp_path / "campaign.json", tmp_path / "pool.csv"
    start = ["campaign", "start", past(tmp_path / "past.csv"), "--expect", "5", "--pool-size", "100", "-o"]
    assert run([*start, str(state), "--schedule", "1", "--audit-rate", "0.2"]) == 0
    (scores, labels), *_ = pools(np.random.default_rng(5), 1, size=300)
    candidates(pool, scores)
    screen = ["campaign", "screen", str(state), str(pool), "--pool", "a", "-o", str(tmp_path / "list.csv")]
    capsys.readouterr()
    before = state.read_text()
    assert run(screen) == 2
    assert "--audit: this campaign draws an audit of every pool" in capsys.readouterr().err
    assert run([*screen, "--audit", str(tmp_path / "list.csv")]) == 2
    assert state.read_text() == before
    assert run([*screen, "--audit", str(tmp_path / "audit.csv"), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    audit, listed = read(tmp_path / "audit.csv"), read(tmp_path / "list.csv")
    assert body["audited"] == len(audit) > 0
    assert list(audit[0]) == ["id", "score", "who"]
    assert [row["id"] for row in audit] == sl.Campaign.load(state).audit("a")
    for number, rows in enumerate((listed, audit)):
        reviewed = [(row["id"], labels[int(row["id"][1:])]) for row in rows]
        table = write(tmp_path / f"{number}.csv", ["id", "qualified"], reviewed)
        assert run(["campaign", "review", str(state), table, "--pool", "a"]) == 0
    assert sl.Campaign.load(state).reviews.kept["a"].unknown == 0
    plain = str(tmp_path / "plain.json")
    assert run([*start, plain]) == 0
    capsys.readouterr()
    screen[2] = plain
    assert run([*screen, "--audit", str(tmp_path / "audit2.csv")]) == 2
    assert "--audit: this campaign has none" in capsys.readouterr().err


def test_campaign_bad_input_leaves_the_state_as_it_was(tmp_path, capsys):
    state = tmp_path / "campaign.json"
    assert run(["campaign", "start", past(tmp_path / "past.csv"), "--expect", "5", "--pool-size", "100",
                "-o", str(state)]) == 0  # fmt: skip
    before = state.read_bytes()
    pool = candidates(tmp_path / "pool.csv", [1.0, 5.0])
    screen = ["campaign", "screen", str(state), pool, "--pool", "1"]
    assert run([*screen, "-o", str(tmp_path / "missing" / "s.csv")]) == 2
    assert run([*screen, "-o", str(tmp_path / "s.csv"), "--id", "nobody"]) == 2
    assert run([*screen, "-o", str(tmp_path / "s.doc")]) == 2
    reviews = write(tmp_path / "r.csv", ["id", "qualified"], [("c1", 1)])
    assert run(["campaign", "review", str(state), reviews, "--pool", "1"]) == 2
    assert state.read_bytes() == before
    assert run([*screen, "-o", str(tmp_path / "s.csv")]) == 0
    assert [row["id"] for row in read(tmp_path / "s.csv")] == ["c1"]
    capsys.readouterr()
    blank = write(tmp_path / "r.csv", ["id", "qualified"], [("c1", "")])
    assert run(["campaign", "review", str(state), blank, "--pool", "1", "--final", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["closed"] == 1


def test_campaign_not_certifiable_yet(tmp_path, capsys):
    start = ["campaign", "start", past(tmp_path / "past.csv", rows=30), "--expect", "12", "--pool-size", "100",
             "-o", str(tmp_path / "c.json")]  # fmt: skip
    assert run(start) == 3
    assert not (tmp_path / "c.json").exists()
    assert run([*start, "--uncertified", "everyone"]) == 0
    pool = candidates(tmp_path / "pool.csv", [-3.0, 5.0])
    assert (
        run(
            [
                "campaign",
                "screen",
                str(tmp_path / "c.json"),
                pool,
                "--pool",
                "1",
                "-o",
                str(tmp_path / "s.csv"),
            ]
        )
        == 0
    )
    assert len(read(tmp_path / "s.csv")) == 2
    assert "Nothing is promised yet" in capsys.readouterr().out


@pytest.mark.slow
def test_exit_code_of_the_process(tmp_path, policy):
    table = write(tmp_path / "p.csv", ["pool", "pool_size", "qualified"], [(i, 100, 0) for i in range(40)])
    done = subprocess.run(
        [sys.executable, "-m", "surelist", "watch", str(tmp_path / "m.json"), table, "--policy", policy],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
