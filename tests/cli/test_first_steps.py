"""What somebody meets who brings a file of their own: words as labels, decimal commas, gaps, a wrong flag."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import surelist as sl
from surelist.cli import run
from surelist.examples import population

FILE = ["past.csv", "--score", "Punkte", "--label", "geeignet"]
COUNT = ["--expect", "5", "--pool-size", "100"]
SAID = ["--pos-label", "ja", "--missing-labels", "unqualified"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Semicolons, decimal commas, ja and nein, two labels missing, umlauts in Windows-1252."""
    monkeypatch.chdir(tmp_path)
    scores, labels = population(np.random.default_rng(3), 900)
    words = ["ja" if label else "nein" for label in labels]
    words[4] = words[7] = ""
    rows = [
        f"Müller {at};{score:.4f};{word}".replace(".", ",")
        for at, (score, word) in enumerate(zip(scores, words, strict=True))
    ]
    text = "\n".join(["Name;Punkte;geeignet", *rows]) + "\n"
    (tmp_path / "past.csv").write_text(text, encoding="cp1252")
    new = text.replace(";ja", "").replace(";nein", "").replace(";geeignet", "")
    (tmp_path / "new.csv").write_text(new, encoding="cp1252")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", *FILE, *COUNT, "-o", "out.json"],
        ["curve", *FILE, "--pool-size", "100"],
        ["plan", "--pilot", *FILE, *COUNT],
        ["campaign", "start", *FILE, *COUNT, "-o", "out.json"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_reads_labels_takes_words_and_says_how(words, folder, capsys):
    assert run(words) == 2
    assert "say which one means qualified with --pos-label" in capsys.readouterr().err
    assert run([*words, *SAID[:2]]) == 2
    refused = capsys.readouterr().err
    assert "--missing-labels unqualified keeps them" in refused
    assert "2 rows (spreadsheet row 6: Punkte='" in refused
    assert "geeignet=empty" in refused
    assert run([*words, *SAID]) == 0


def test_rows_without_a_label_are_named_for_promises_that_read_whole_columns_too(folder, capsys):
    words = ["--pos-label", "ja", "--precision", "0.5", "--start", "0.1", "--unlabelled", "past.csv"]
    assert run(["calibrate", *FILE, *words, "-o", "out.json"]) == 2
    assert "2 rows (spreadsheet row 6: Punkte='" in capsys.readouterr().err


def test_how_a_file_was_read_is_said_once(folder, capsys):
    assert run(["calibrate", *FILE, *SAID, *COUNT, "-o", "out.json"]) == 0
    shown = capsys.readouterr()
    assert (shown.err + shown.out).count("decimal comma") == 1
    assert "decimal comma" in " ".join(sl.Policy.load("out.json").reading)


def test_a_recall_without_all_labels_says_what_to_do(folder, capsys):
    assert run(["calibrate", *FILE, *SAID, "--recall", "0.9", "-o", "out.json"]) == 2
    assert "get the labels, or promise a count." in capsys.readouterr().err


@pytest.mark.parametrize("absent", [False, True])
def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_written(
    absent, folder, capsys, monkeypatch
):
    assert run(["calibrate", *FILE, *SAID, *COUNT, "-o", "policy.json"]) == 0
    picture = "list.png" if absent else "list.gif"
    if absent:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    capsys.readouterr()
    assert run(["select", "new.csv", "--policy", "policy.json", "-o", "list.csv", "--plot", picture]) == 2
    said = "pip install 'surelist[plots]'" if absent else "--plot: expected a name ending in .png"
    assert said in capsys.readouterr().err
    assert not (folder / "list.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["select", "new.csv", "--policy", "nope.json", "-o", "x.csv"], "--policy: cannot read nope.json"),
        (["show", "nope.json"], "POLICY: cannot read nope.json"),
        (["show", "past.csv"], "POLICY: past.csv is no policy file: expected JSON in UTF-8."),
        (["serve", "--port", "80000"], "80000 is not in the range"),
        (["plan", *COUNT], "give --base-rate and --auc, a guess; or --pilot, labelled rows instead."),
    ],
)  # fmt: skip
def test_what_went_wrong_is_said_in_the_words_of_the_command(words, said, folder, capsys):
    assert run(words) == 2
    assert said in capsys.readouterr().err


def test_a_table_of_reviews_without_pools_names_the_flag(folder, capsys):
    assert run(["calibrate", *FILE, *SAID, *COUNT, "-o", "policy.json"]) == 0
    capsys.readouterr()
    assert run(["watch", "m.json", "past.csv", "--policy", "policy.json"]) == 2
    assert "--pool: past.csv has no column 'pool'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--precision", "0.5"], "Begin the walk at half of that, at a start of 0."),
        (["--budget", "10", "--pool-size", "100"], "what a list of 10 of 100 candidates holds"),
    ],
)
def test_lists_are_planned_at_the_command_line(words, said, capsys):
    assert run(["plan", *words, "--base-rate", "0.2", "--auc", "0.85", "--sizes", "300"]) == 0
    assert said in capsys.readouterr().out


def test_words_and_texts_in_arrays_and_frames_have_a_remedy():
    polars = pytest.importorskip("polars")
    with pytest.raises(
        sl.InvalidInput, match=r"got 'nein' at position 0\. Turn words into 0 and 1, .* pos_label="
    ):
        sl.calibrate([0.1, 0.9], ["nein", "ja"], sl.Expected(1, 2))
    frame = polars.DataFrame({"score": ["0,1", "0,9"], "label": [0, 1]})
    with pytest.raises(sl.InvalidInput, match="or give the file itself"):
        sl.calibrate_table(frame, score="score", label="label", target=sl.Expected(1, 2))
