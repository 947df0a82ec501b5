"""Judged by a model: verdicts for all, labels of people for a few."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import surelist as sl
from surelist import cli


def test_verdicts_become_scores_in_their_order_with_ties_broken_by_id():
    words = ["yes", "No", True, 0, "pass", "I"]
    scores = sl.judge_scores(words, ids=list("abcdef"))
    assert len(set(scores)) == 6
    assert min(scores[[0, 2, 4]]) > max(scores[[1, 3, 5]])
    again = sl.judge_scores(words[::-1], ids=list("fedcba"))
    assert dict(zip("abcdef", scores, strict=True)) == dict(zip("fedcba", again, strict=True))
    numbers = np.array([0.1, 0.9, 0.4, 0.9])
    assert np.array_equal(np.argsort(sl.judge_scores(numbers))[:2], [0, 2])
    for wrong in (["perhaps"], [None], [float("nan")]):
        with pytest.raises(sl.InvalidInput, match=r"expected yes, no or a number, got .* in row 0"):
            sl.judge_scores(wrong)


def answers(size: int = 3000):
    rng = np.random.default_rng(4)
    right = rng.random(size) < 0.6
    verdict = np.where(right, rng.random(size) < 0.95, rng.random(size) < 0.15)
    return right, verdict


def written(kind: str, verdict) -> str:
    """The answers as a tool writes them."""
    every = list(enumerate(verdict.tolist()))
    if kind == "answers.jsonl":
        lines = [json.dumps({"id": i, "verdict": "yes" if v else "no"}) for i, v in every]
        text = "\n".join(lines) + "\n"
    elif kind == "inspect.json":
        samples = [
            {"id": i, "input": "q", "scores": {"judge": {"value": "C" if v else "I"}}} for i, v in every
        ]
        text = json.dumps({"version": 2, "samples": samples})
    elif kind == "promptfoo.json":
        results = [{"vars": {"id": i}, "success": v, "response": {"output": "a"}} for i, v in every]
        text = json.dumps({"results": {"results": results}})
    else:
        text = json.dumps([{"id": i, "verdict": v, "tags": ["a"]} for i, v in every])
    with open(kind, "w") as file:
        file.write(text)
    return kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["answers.jsonl", "inspect.json", "promptfoo.json", "docetl.json"])
def test_from_a_judges_verdicts_to_a_certified_list(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    right, verdict = answers()
    start = ["label", "start", written(kind, verdict), "--judge", "verdict", "--precision", "0.8"]
    assert cli.run([*start, "--labels", "300", "-o", "work.json"]) == 0, capsys.readouterr().err
    while len(sl.Labelling.load("work.json").ask()):
        cli.run(["label", "next", "work.json", "-o", "sheet.csv"])
        with open("sheet.csv", newline="") as file:
            sheet = list(csv.DictReader(file))
        with open("sheet.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, sheet[0])
            writer.writeheader()
            writer.writerows(row | {"label": str(int(right[int(row["id"])]))} for row in sheet)
        assert cli.run(["label", "record", "work.json", "sheet.csv"]) == 0
    assert cli.run(["label", "status", "work.json", "--shortlist", "list.csv"]) == 0
    with open("list.csv", newline="") as file:
        listed = [int(row["id"]) for row in csv.DictReader(file)]
    assert len(listed) > 300
    assert right[listed].mean() >= 0.8  # of this seed


def test_what_is_no_log_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--judge", "verdict", "--precision", "0.8", "--labels", "30", "-o", "work.json"]
    for text, said in (
        ("{}", "expected a list of records"),
        ("{", "is no JSON"),
        ('[{"a": 1}]', "'verdict'"),
    ):
        with open("log.json", "w") as file:
            file.write(text)
        assert cli.run(["label", "start", "log.json", *words]) == 2
        assert said in capsys.readouterr().err
    assert cli.run(["label", "start", "log.json", "--score", "a", *words]) == 2
    assert "--judge" in capsys.readouterr().err


def test_a_verdict_that_is_none_is_named_where_the_file_has_it_with_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["yes", "Yes.", "**no**", "'no'"] * 10
    for last, got in ((None, "nothing"), ("perhaps", "'perhaps'")):
        answers = [{"id": at, "verdict": word} for at, word in enumerate([*words, last])]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
        (tmp_path / "a.json").write_text(json.dumps(answers))
        for name, place in (("a.jsonl", "row 41"), ("a.json", "answer 41")):
            start = ["label", "start", name, "--judge", "verdict", "--precision", "0.8", "--labels", "20"]
            assert cli.run([*start, "-o", "work.json"]) == 2
            said = capsys.readouterr().err
            assert f"column 'verdict': expected yes, no or a number, got {got} in {place}." in said
            assert "no may stand for it" in said
            assert not (tmp_path / "work.judged.csv").exists()
    assert min(sl.judge_scores(words)[[0, 1]]) > max(sl.judge_scores(words)[[2, 3]])
