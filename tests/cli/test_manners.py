"""The command line helps: what was meant, what to do next, which flag, a picture of every table."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surelist as sl
from surelist.cli import run
from surelist.cli.options import in_flags
from surelist.examples import population


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scores, labels = population(np.random.default_rng(9), 1_200)
    lines = [f"{score!r},{int(label)}" for score, label in zip(scores.tolist(), labels.tolist(), strict=True)]
    (tmp_path / "past rows.csv").write_text("\n".join(["score,qualified", *lines]) + "\n")
    pool, _ = population(np.random.default_rng(10), 300)
    moved = [("monday", each) for each in pool[:150].tolist()] + [
        ("tuesday", each**0.2) for each in pool[150:].tolist()
    ]
    (tmp_path / "new.csv").write_text("\n".join(["pool,score", *(f"{p},{s!r}" for p, s in moved)]) + "\n")
    assert (
        run(["calibrate", "past rows.csv", "--expect", "5", "--pool-size", "100", "-o", "policy.json"]) == 0
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["calibrat"], "Did you mean 'calibrate'?"), (["selct", "x.csv"], "Did you mean 'select'?"),
        (["campaign", "strat"], "Did you mean 'start'?"), (["label", "statsu"], "Did you mean 'status'?"),
        (["token", "creat"], "Did you mean 'create'?"), (["qqqq"], "The commands are calibrate, select"),
    ],
)  # fmt: skip
def test_an_unknown_command_is_answered_with_what_may_be_meant(words, meant, capsys):
    assert run(words) == 2
    assert meant in capsys.readouterr().err


@pytest.mark.slow
def test_the_curve_ends_with_a_command_that_runs(folder, capsys):
    for more in ([], ["--expect", "7.5", "--plot", "curve.svg"]):
        assert run(["curve", "past rows.csv", "--pool-size", "100", "--alpha", "0.2", *more]) == 0
        command = capsys.readouterr().out.rstrip().splitlines()[-1]
        words = shlex.split(command)
        assert words[0] == "surelist"
        assert run(words[1:]) == 0
        policy = sl.Policy.load("policy.json")
        assert (policy.rule, policy.alpha) == ("simultaneous", 0.2)
        capsys.readouterr()
    assert policy.cutoffs[0].target == sl.Expected(7.5, 100)
    assert (folder / "curve.svg").exists()
    assert run(["curve", "past rows.csv", "--expect", "99"]) == 2
    assert "--expect: these rows certify at most" in capsys.readouterr().err


def test_calibrate_and_select_say_how_long_the_list_is_and_the_auc(folder, capsys):
    assert run(["show", "policy.json"]) == 0
    shown = capsys.readouterr().out
    policy = sl.Policy.load("policy.json")
    step, scores = policy.cutoffs[0].steps[0], policy.cutoffs[0].scores
    assert f"list to expect: about {100 * step.share:.0f} of 100 candidates" in shown
    assert f"AUC {scores.auc:.2f}" in shown
    assert run(["select", "new.csv", "--policy", "policy.json", "-o", "out.csv", "--plot", "listed.png"]) == 0
    told = capsys.readouterr().err
    assert (
        f"of the calibration rows {100 * round(step.share, 4):.6g}% would be (AUC {scores.auc:.2f} on them)"
        in told
    )
    assert (folder / "listed.png").stat().st_size > 1_000


def test_select_prints_a_line_of_drift_for_every_pool(folder, capsys):
    words = ["select", "new.csv", "--policy", "policy.json", "--pool", "pool", "-o", "out.csv"]
    assert run(words) == 0
    lines = capsys.readouterr().err.splitlines()
    for pool in ("monday", "tuesday"):
        (line,) = [each for each in lines if each.startswith(f"  {pool}: ")]
        assert "of 150 candidates score at least" in line
    assert any(each.startswith("warning: pool tuesday: ") for each in lines)
    assert not any(each.startswith("warning: pool monday: ") for each in lines)
    assert run([*words, "--json"]) == 0
    pools = json.loads(capsys.readouterr().out)["pools"]
    assert [each["drift"][0]["warns"] for each in pools] == [False, True]


def test_lines_of_drift_are_those_of_each_pool_alone(folder):
    import polars as pl

    policy = sl.Policy.load("policy.json")
    table = pl.read_csv("new.csv")
    done = sl.select_table(table, policy, pool="pool")
    for own in done.pools:
        alone = table.filter(pl.col("pool") == own.pool)["score"].to_list()
        (check,) = [each for each in policy.check_pool(alone) if each.kind == "drift"]
        assert own.drift == (check,)


def test_drift_of_two_tables(folder, capsys):
    assert run(["drift", "past rows.csv", "new.csv", "--plot", "drift.svg"]) == 0
    assert "the largest gap" in capsys.readouterr().out
    assert run(["drift", "past rows.csv", "new.csv", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["candidates"]) == (1_200, 300)
    assert (folder / "drift.svg").exists()
    assert run(["drift", "past rows.csv", "new.csv", "--pool-score", "nothing"]) == 2
    assert "no column 'nothing'" in capsys.readouterr().err


def test_a_campaign_says_when_the_next_update_comes(folder, capsys):
    words = [
        "campaign",
        "start",
        "past rows.csv",
        "--expect",
        "5",
        "--pool-size",
        "100",
        "--schedule",
        "9,45",
    ]
    assert run([*words, "-o", "c.json"]) == 0
    assert "Next update after 9 more pools (pool 9 of the schedule 9, 45)." in capsys.readouterr().out


def test_a_plan_begins_with_a_recommendation(capsys):
    words = [
        "plan",
        "--expect",
        "5",
        "--pool-size",
        "100",
        "--base-rate",
        "0.19",
        "--auc",
        "0.85",
        "--sizes",
        "300",
    ]
    assert run(words) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("Gather about ")
    assert "dkw" not in plain
    assert run([*words, "--paper"]) == 0
    assert "dkw" in capsys.readouterr().out
    assert run(["plan", "--expect", "50", "--pool-size", "100", "--base-rate", "0.19", "--auc", "0.85"]) == 0
    assert capsys.readouterr().out.startswith("No number of calibration rows")


@pytest.mark.parametrize(
    ("field", "words", "said"),
    [
        ("k", ["calibrate", "x", "--per-pool", "3"], "--per-pool"),
        ("share", ["calibrate", "x", "--precision=1.5"], "--precision"),
        ("pools", ["calibrate", "x"], "--pool"),
        ("pools", ["plan"], "--pools"),
        ("labels", ["label", "start", "x"], "--labels"),
        ("labels", ["label", "record", "x"], "labels"),
    ],
)
def test_errors_name_the_flag_that_was_given(field: str, words: list[str], said: str):
    assert in_flags(sl.InvalidInput(field, "expected more."), words) == f"{said}: expected more."


def test_a_group_that_was_not_seen_is_named(capsys: Any):
    labels, groups = [1, 0, 1, 0], ["a", "a", "b", "b"]
    with pytest.raises(sl.InvalidInput, match=r"group 'c' has no rows.*merge_groups"):
        sl.equal_opportunity(labels, groups, 1, {"a": 50, "b": 50, "c": 10})


def test_merged_groups_are_one_and_say_what_that_means():
    merge = sl.merge_groups(["a"] * 30 + ["b"] * 30 + ["c"] * 5 + ["d"], fewest=10, name="rest")
    assert (merge.kept, merge.merged) == (("a", "b"), ("c", "d"))
    assert merge(["c", "a", "new", "b"]).tolist() == ["rest", "a", "rest", "b"]
    assert "about any one of these groups it says nothing" in merge.describe()
    assert "other rows than the calibration rows" in merge.describe()
    assert sl.merge_groups(["a"] * 5, fewest=2).describe().startswith("Nothing is merged")
    with pytest.raises(sl.InvalidInput, match="stays"):
        sl.merge_groups(["a"] * 5 + ["b"], fewest=2, name="a")
    with pytest.raises(
        sl.InvalidInput, match=r"target: expected a promise: Expected\(k, pool_size\), .* got 5"
    ):
        sl.calibrate([0.1, 0.2], [0, 1], 5)


def test_a_warning_is_one_line_in_the_words_of_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    clinic = np.repeat(np.arange(60), 20)
    ill = rng.random(1_200) < rng.random(60)[clinic]  # clinics differ
    lines = [f"{s!r},{int(y)},{c}" for s, y, c in zip(rng.random(1_200).tolist(), ill, clinic, strict=True)]
    Path("past.csv").write_text("\n".join(["score,qualified,clinic", *lines]) + "\n")
    words = [
        "calibrate",
        "past.csv",
        "--expect",
        "5",
        "--pool-size",
        "20",
        "--pool",
        "clinic",
        "-o",
        "p.json",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(words) == 0
    told = [each for each in capsys.readouterr().err.splitlines() if "resemble one another" in each]
    assert len(told) == 1
    assert told[0].startswith("warning: Candidates of one pool")
    assert "spread=" not in told[0]
    assert "pools=" not in told[0]


def test_a_decimal_mark_that_no_score_has_is_an_error_with_rows(tmp_path, capsys):
    path = tmp_path / "past.csv"
    path.write_text("score,qualified\n" + "".join(f"0.{100 + i},{i % 2}\n" for i in range(30)))
    words = ["--score", "score", "--label", "qualified", "--expect", "1", "--pool-size", "10"]
    assert run(["calibrate", str(path), *words, "--decimal", ",", "-o", str(tmp_path / "p.json")]) == 2
    said = capsys.readouterr().err
    assert "score: 30 cells are not numbers: rows 2, 3" in said
    assert "expected a finite number in every row" in said


def test_a_wrong_audit_rate_is_named_as_it_was_given(tmp_path, capsys):
    (tmp_path / "past.csv").write_text("score,qualified\n0.5,1\n0.4,0\n")
    words = ["--score", "score", "--label", "qualified", "--expect", "1", "--pool-size", "10"]
    words += ["--audit-rate", "2", "--audited-below", "0.5", "-o", str(tmp_path / "p.json")]
    assert run(["calibrate", str(tmp_path / "past.csv"), *words]) == 2
    assert capsys.readouterr().err.startswith("error: --audit-rate: expected a number above 0 and at most 1")


def test_of_a_pool_without_candidates_nothing_is_promised(folder, capsys):
    (folder / "nobody.csv").write_text("pool,score\n")
    for pool, promised in (("nobody.csv", False), ("new.csv", True)):
        capsys.readouterr()
        assert run(["select", pool, "--policy", "policy.json", "-o", f"list of {pool}"]) == 0
        said = capsys.readouterr().err
        assert ("holds at least 5 qualified" in said) == promised
        assert ("Nothing is promised of a pool without candidates." in said) != promised


def test_no_output_takes_the_place_of_another_or_of_an_input(folder, capsys):
    past = ["calibrate", "past rows.csv", "--expect", "5", "--pool-size", "100"]
    assert run([*past, "-o", "one.svg", "--plot", "./one.svg"]) == 2
    assert "--plot: one.svg is --output too; choose another name for the picture." in capsys.readouterr().err
    assert not (folder / "one.svg").exists()
    (folder / "link.svg").symlink_to("past rows.csv")
    assert run([*past, "-o", "two.json", "--plot", "link.svg"]) == 2
    assert "--plot: link.svg is PAST too" in capsys.readouterr().err
    before = (folder / "new.csv").read_bytes()
    assert run([*past, "--unlabelled", "new.csv", "-o", "new.csv"]) == 2
    assert "--output: new.csv is the input new.csv" in capsys.readouterr().err
    assert (folder / "new.csv").read_bytes() == before
    assert not (folder / "two.json").exists()


def test_without_a_standard_output_a_command_still_works(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["show", "policy.json"]) == 0
