"""What new users get wrong on the command line, and what it answers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from surelist.cli import run
from surelist.examples import population

COUNT = ["--expect", "5", "--pool-size", "100"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scores, labels = population(np.random.default_rng(6), 1_000)
    rows = [f"{score!r},{int(label)}" for score, label in zip(scores.tolist(), labels, strict=True)]
    (tmp_path / "past.csv").write_text("\n".join(["score,qualified", *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize("share", ["95", "95%", "95 %"])
@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--recall", ["calibrate", "past.csv", "-o", "policy.json"]),
        ("--precision", ["calibrate", "past.csv", "--start", "0.1", "-o", "policy.json"]),
        ("--alpha", ["calibrate", "past.csv", *COUNT, "-o", "policy.json"]),
        ("--recall", ["plan", "--base-rate", "0.2", "--auc", "0.8"]),
        ("--base-rate", ["plan", *COUNT, "--auc", "0.8"]),
        ("--recall", ["stop", "start", "past.csv", "--found", "50", "-o", "stop.json"]),
        ("--monitor-alpha", ["campaign", "start", "past.csv", *COUNT, "-o", "campaign.json"]),
    ],
)
def test_a_share_in_percent_asks_for_the_share(flag, words, share, folder, capsys):
    assert run([*words, flag, share]) == 2
    said = capsys.readouterr().err
    assert "Did you mean 0.95?" in said
    assert flag in said
    assert sorted(path.name for path in folder.iterdir()) == ["past.csv"]


@pytest.mark.parametrize("share", ["95", "95%"])
def test_a_share_in_percent_inside_a_target_asks_for_the_share(share, folder, capsys):
    for more in (
        [*COUNT, "--also", f"precision:{share}", "--start", "0.1"],
        [*COUNT, "--also", f"recall:{share}"],
        ["--group", "qualified", "--purpose", "test", "--target", f"1=recall:{share}"],
    ):
        assert run(["calibrate", "past.csv", *more, "-o", "policy.json"]) == 2
        assert "Did you mean 0.95?" in capsys.readouterr().err


def test_alpha_above_one_half_asks_whether_the_other_way_was_meant(folder, capsys):
    assert run(["calibrate", "past.csv", *COUNT, "--alpha", "0.95", "-o", "policy.json"]) == 0
    assert "warning: alpha: 0.95 allows the statement to be wrong" in capsys.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(["curve", "past.csv", "--alpha", "0.95"]) == 0
    assert "did you mean 0.05?" in capsys.readouterr().err


def test_a_number_per_pool_without_a_pool_size_names_the_promise_about_whole_pools(tmp_path, capsys):
    (tmp_path / "past.csv").write_text("score,qualified,team\n0.1,0,a\n0.9,1,b\n")
    words = ["calibrate", str(tmp_path / "past.csv"), "--pool", "team", "-o", str(tmp_path / "policy.json")]
    assert run([*words, "--per-pool", "3"]) == 2
    assert "--pool-size: expected a number" in (said := capsys.readouterr().err)
    assert "Of whole pools, whatever their size: --next-pool." in said


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--group-cutoff", "common"), ("--group-rows", "all"), ("--group-split", "sidak"), ("--purpose", "x")],
)
def test_what_goes_with_groups_is_not_passed_over(flag, value, folder, capsys):
    assert run(["calibrate", "past.csv", *COUNT, flag, value, "-o", "policy.json"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {flag}: goes with --group, got {value!r} without.")
    assert sorted(path.name for path in folder.iterdir()) == ["past.csv"]
