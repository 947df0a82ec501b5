"""Exit codes for scripts: --strict, --quiet; policies from standard input and by path."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import surelist as sl
from surelist.cli import run
from surelist.examples import population

COUNT = ["--expect", "5", "--pool-size", "100"]


def write(path: Path, scores, labels=None) -> None:
    rows = [repr(float(score)) for score in scores]
    if labels is not None:
        rows = [f"{score},{int(label)}" for score, label in zip(rows, labels, strict=True)]
    path.write_text("\n".join(["score,qualified" if labels is not None else "score", *rows]) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    scores, labels = population(np.random.default_rng(6), 1_000)
    write(tmp_path / "past.csv", scores, labels)
    write(tmp_path / "backwards.csv", -scores, labels)
    later, outcome = population(np.random.default_rng(7), 2_000)
    write(tmp_path / "later.csv", later, outcome)
    write(tmp_path / "none.csv", later, np.zeros(2_000))
    write(tmp_path / "new.csv", population(np.random.default_rng(8), 200)[0])
    write(tmp_path / "low.csv", np.linspace(0.01, 0.3, 200))
    assert run(["calibrate", "past.csv", *COUNT, "-o", "policy.json"]) == 0
    capsys.readouterr()
    return tmp_path


SELECT = ["--policy", "policy.json", "-o", "list.csv"]


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (["evaluate", "none.csv", "--policy", "policy.json"], "These rows speak against the promise"),
        (["drift", "past.csv", "low.csv"], "score at least"),
        (["select", "low.csv", *SELECT], "Nobody is on the shortlist."),
        (["calibrate", "backwards.csv", *COUNT, "-o", "other.json"], "score lower than the others"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_strict_makes_findings_and_warnings_exit_with_code_5(words, finding, folder, capsys):
    assert run(words) == 0
    assert run([*words, "--strict"]) == 5
    capsys.readouterr()
    assert run([*words, "--strict", "--quiet"]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert finding in err
    assert all(line.startswith("warning:") for line in err.splitlines())
    assert run([*words, "--quiet"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "later.csv", "--policy", "policy.json"],
        ["drift", "past.csv", "new.csv"],
        ["select", "new.csv", *SELECT],
        ["calibrate", "past.csv", *COUNT, "-o", "other.json"],
    ],
    ids=lambda words: words[0],
)
def test_where_nothing_is_found_strict_is_0_and_quiet_is_silent(words, folder, capsys):
    assert run([*words, "--strict"]) == 0
    capsys.readouterr()
    assert run([*words, "--quiet", "--strict"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run([*words, "--quiet", "--json"]) == 2
    assert "--quiet and --json do not go together" in capsys.readouterr().err


def test_what_was_asked_for_is_written_all_the_same(folder):
    assert run(["select", "low.csv", *SELECT, "--strict", "--quiet"]) == 5
    assert (folder / "list.csv").read_text() == "score\n"
    words = ["calibrate", "backwards.csv", *COUNT, "-o", "other.json"]
    assert run([*words, "--strict", "--quiet"]) == 5
    assert sl.Policy.load("other.json").warnings


def test_a_warning_that_is_printed_on_the_way_counts_as_well(folder, capsys):
    rng = np.random.default_rng(1)
    clinic = np.repeat(np.arange(50), 20)
    ill = rng.random(1_000) < np.repeat(rng.random(50), 20)  # clinics differ
    rows = [
        f"{score!r},{int(label)},{at}"
        for score, label, at in zip(rng.random(1_000).tolist(), ill, clinic, strict=True)
    ]
    (folder / "clinics.csv").write_text("\n".join(["score,qualified,clinic", *rows]) + "\n")
    words = [
        "calibrate",
        "clinics.csv",
        "--expect",
        "5",
        "--pool-size",
        "20",
        "--pool",
        "clinic",
        "-o",
        "other.json",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run([*words, "--strict", "--quiet"]) == 5
        assert "resemble one another" in capsys.readouterr().err
        assert run(words) == 0


@pytest.mark.parametrize("command", ["show", "sql"])
def test_a_policy_is_read_from_standard_input(command, folder, capsys, monkeypatch):
    assert run([command, "policy.json"]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO((folder / "policy.json").read_text()))
    assert run([command, "-"]) == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    assert run([command, "-"]) == 2
    assert "stdin" in capsys.readouterr().err


def test_a_path_is_taken_for_the_policy(folder):
    policy = sl.Policy.load("policy.json")
    later, outcome = population(np.random.default_rng(7), 2_000)
    for path in ("policy.json", Path("policy.json")):
        assert sl.select_table("new.csv", path).shortlisted == sl.select_table("new.csv", policy).shortlisted
        assert sl.evaluate_table("later.csv", path) == sl.evaluate_table("later.csv", policy)
        assert sl.evaluate(path, later, outcome) == sl.evaluate(policy, later, outcome)
        assert sl.Monitor(path).policy == policy
    for call in (
        lambda: sl.select_table("new.csv", {}),
        lambda: sl.evaluate_table("later.csv", None),
        lambda: sl.evaluate(3, later, outcome),
        lambda: sl.Monitor([]),
    ):
        with pytest.raises(sl.InvalidInput, match="policy: expected a Policy or the path of its file, got"):
            call()
    with pytest.raises(sl.SurelistError, match=r"nothing\.json"):
        sl.select_table("new.csv", "nothing.json")


def test_a_blank_label_under_recall_is_not_answered_with_what_recall_refuses(folder, capsys):
    text = (folder / "past.csv").read_text().splitlines()
    text[3] = text[3].split(",")[0] + ","
    (folder / "gap.csv").write_text("\n".join(text) + "\n")
    for promise in (["--recall", "0.9"], ["--pool-recall", "0.9", "--pool", "qualified"]):
        assert run(["calibrate", "gap.csv", *promise, "-o", "other.json"]) == 2
        said = capsys.readouterr().err
        assert "--missing-labels" not in said
        assert "dropping such rows would break the promise, so get them: 1 row" in said
    assert run(["calibrate", "gap.csv", *COUNT, "-o", "other.json"]) == 2
    assert "--missing-labels unqualified keeps them as not qualified" in capsys.readouterr().err
    with pytest.raises(
        sl.InvalidInput, match=r"Dropping such rows would break the promise; get them\.$"
    ) as caught:
        sl.calibrate([0.5, 0.6], [1, None], sl.Recall(0.9))
    assert "unqualified" not in str(caught.value)


def test_evaluate_is_not_answered_with_an_option_it_has_not(folder):
    with pytest.raises(sl.InvalidInput, match=r"missing label at position 1. Every row needs one") as caught:
        sl.evaluate("policy.json", [0.5, 0.6], [1, None])
    assert "missing_labels" not in str(caught.value)


def test_recall_on_rows_with_none_qualified_says_so(folder, capsys):
    assert run(["calibrate", "past.csv", "--recall", "0.8", "-o", "recall.json"]) == 0
    capsys.readouterr()
    assert run(["evaluate", "none.csv", "--policy", "recall.json", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert "none of the rows is qualified" in verdict
    assert "average" not in verdict
    assert run(["calibrate", "past.csv", "--per-pool", "2", "--pool-size", "100", "-o", "pool.json"]) == 0
    capsys.readouterr()
    assert run(["evaluate", "later.csv", "--policy", "pool.json", "--json"]) == 0
    assert "single pools" in json.loads(capsys.readouterr().out)["verdict"]
