"""The command line as a person or a program meets it: real processes, real files."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import surelist as sl
from surelist.cli import COMMANDS, run

rng = np.random.default_rng(0)
SCORES = rng.random(3_000)
LABELS = rng.random(3_000) < SCORES**2
SEX = np.where(rng.random(3_000) < 0.76, "women", "men")


def surelist(*arguments, cwd, text=None, env=None):
    return subprocess.run(
        [sys.executable, "-m", "surelist", *arguments],
        cwd=cwd, input=text, capture_output=True, text=True, env={**os.environ, **(env or {})},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    with open(tmp_path / "past.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "sex", "score", "qualified"])
        for i in range(2_900):
            out.writerow([f"p{i}", SEX[i], repr(float(SCORES[i])), int(LABELS[i])])
    with open(tmp_path / "new.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "sex", "zip", "score", "note"])
        for i in range(2_900, 3_000):
            out.writerow([f"n{i}", SEX[i], "007", repr(float(SCORES[i])), 'a, "b"\nc' if i % 7 == 0 else ""])
    return tmp_path


def read(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


CALIBRATE = [
    "calibrate",
    "past.csv",
    "--score",
    "score",
    "--label",
    "qualified",
    "--alpha",
    "0.1",
    "-o",
    "policy.json",
]
EXPECT = ["--expect", "5", "--pool-size", "100"]


@pytest.mark.slow
def test_the_two_minute_story(folder):
    done = surelist(*CALIBRATE, *EXPECT, cwd=folder)
    assert done.returncode == 0, done.stderr
    policy = sl.Policy.load(folder / "policy.json")
    assert policy.promise in done.stdout
    assert policy.threshold == sl.calibrate(SCORES[:2_900], LABELS[:2_900], sl.Expected(5, 100)).threshold
    done = surelist("select", "new.csv", "--policy", "policy.json", "-o", "shortlist.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    pool = read(folder / "new.csv")
    listed = read(folder / "shortlist.csv")
    assert listed == [pool[0], *[row for row in pool[1:] if float(row[3]) >= policy.threshold]]
    assert f"{len(listed) - 1} of 100 candidates are on the shortlist" in done.stderr
    done = surelist("show", "policy.json", cwd=folder)
    assert done.returncode == 0
    assert policy.promise in done.stdout
    for condition in policy.conditions:
        assert " ".join(condition.split()) in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "target", "rule"),
    [
        (["--expect", "5", "--pool-size", "100", "--rule", "dkw"], sl.Expected(5, 100), "dkw"),
        (
            ["--expect", "4.5", "--pool-size", "99.5", "--rule", "simultaneous"],
            sl.Expected(4.5, 99.5),
            "simultaneous",
        ),
        (["--per-pool", "5", "--pool-size", "100"], sl.PerPool(5, 100), "exact"),
        (["--per-pool", "5", "--pool-size", "50-200", "--rule", "pac"], sl.PerPool(5, (50, 200)), "pac"),
        (["--recall", "0.9"], sl.Recall(0.9), "exact"),
    ],
)
def test_every_promise_equals_the_python_one(folder, monkeypatch, arguments, target, rule):
    monkeypatch.chdir(folder)
    assert run([*CALIBRATE, *arguments]) == 0
    python = sl.calibrate(SCORES[:2_900], LABELS[:2_900], target, rule=rule)
    assert [c.steps for c in sl.Policy.load("policy.json").cutoffs] == [c.steps for c in python.cutoffs]


def test_groups(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    grouped = [
        "--group",
        "sex",
        "--target",
        "women=3.8/76",
        "--target",
        "men=1.2/24",
        "--purpose",
        "outreach",
    ]
    assert run([*CALIBRATE, *grouped]) == 0
    policy = sl.Policy.load("policy.json")
    targets = {"women": sl.Expected(3.8, 76), "men": sl.Expected(1.2, 24)}
    python = sl.calibrate(SCORES[:2_900], LABELS[:2_900], targets, groups=sl.Groups(SEX[:2_900], "outreach"))
    assert policy.thresholds == python.thresholds
    assert policy.purpose == "outreach"
    assert run(["select", "new.csv", "--policy", "policy.json", "-o", "s.csv"]) == 0
    listed = [row[0] for row in read("s.csv")][1:]
    mask = python.select(SCORES[2_900:], groups=SEX[2_900:])
    assert listed == [f"n{2_900 + i}" for i in np.flatnonzero(mask)]


def test_hash_ties_give_the_python_shortlist(folder, monkeypatch):
    monkeypatch.chdir(folder)
    rounded = np.round(SCORES, 1)
    with open("tied.csv", "w") as file:
        file.write("id,score,qualified\n")
        file.writelines(f"p{i},{rounded[i]},{int(LABELS[i])}\n" for i in range(2_900))
    with open("pool.csv", "w") as file:
        file.write("id,score\n")
        file.writelines(f"n{i},{rounded[i]}\n" for i in range(2_900, 3_000))
    assert run(["calibrate", "tied.csv", *EXPECT, "--ties", "hash", "--id", "id", "-o", "policy.json"]) == 0
    assert run(["select", "pool.csv", "--policy", "policy.json", "-o", "s.csv"]) == 0
    ids = [f"n{i}" for i in range(2_900, 3_000)]
    mask = sl.Policy.load("policy.json").select(rounded[2_900:], ids=ids)
    assert read("s.csv")[1:] == [[i, str(s)] for i, s, m in zip(ids, rounded[2_900:], mask, strict=True) if m]


def test_parquet_in_and_out(folder, monkeypatch):
    pl = pytest.importorskip("polars")
    monkeypatch.chdir(folder)
    past = pl.DataFrame({"score": SCORES[:2_900].astype(np.float32), "qualified": LABELS[:2_900]})
    past.write_parquet("past.parquet")
    pool = pl.DataFrame(
        {"zip": ["007"] * 100, "score": SCORES[2_900:].astype(np.float32), "x": [None] * 99 + [1]}
    )
    pool.write_parquet("new.parquet")
    assert run(["calibrate", "past.parquet", *EXPECT, "-o", "policy.json"]) == 0
    assert run(["select", "new.parquet", "--policy", "policy.json", "-o", "s.parquet"]) == 0
    threshold = sl.Policy.load("policy.json").threshold
    assert (
        threshold
        == sl.calibrate(SCORES[:2_900].astype(np.float32), LABELS[:2_900], sl.Expected(5, 100)).threshold
    )
    expected = pool.filter(pl.col("score").cast(pl.Float64) >= threshold)
    assert pl.read_parquet("s.parquet").equals(expected)


@pytest.mark.slow
def test_pipes(folder):
    past, pool = (folder / "past.csv").read_text(), (folder / "new.csv").read_text()
    done = surelist("calibrate", "-", *EXPECT, "-o", "-", cwd=folder, text=past)
    assert done.returncode == 0, done.stderr
    (folder / "piped.json").write_text(done.stdout)
    assert sl.Policy.load(folder / "piped.json").rule == "exact"
    done = surelist("select", "-", "--policy", "piped.json", "-o", "-", cwd=folder, text=pool)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("id,sex,zip,score,note\n")
    assert "007" in done.stdout


def test_json_for_machines(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run([*CALIBRATE, *EXPECT, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["rule"] == "exact"
    assert made["conditions"]
    assert run(["show", "policy.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["excess_bound"][""]["count"] > 0
    assert run(["select", "new.csv", "--policy", "policy.json", "-o", "s.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == 100
    assert run(["curve", "past.csv", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 100


def test_not_certifiable_is_exit_code_3_and_writes_nothing(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    assert run([*CALIBRATE, "--expect", "60", "--pool-size", "100"]) == 3
    assert "Not certifiable" in capsys.readouterr().err
    assert run([*CALIBRATE, "--expect", "60", "--pool-size", "100", "--json"]) == 3
    body = json.loads(capsys.readouterr().err)["error"]
    assert {"critical_count", "qualified_available", "largest_k", "rows_needed", "rows"} <= set(body)
    assert sorted(os.listdir()) == before


@pytest.mark.slow
def test_curve_table_and_picture(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["curve", "past.csv", "--pool-size", "100", "--plot", "curve.png"]) == 0
    assert "qualified (certified)" in capsys.readouterr().out
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert run(["curve", "past.csv", "--plot", "curve.bmp"]) == 2
    assert not (folder / "curve.bmp").exists()


@pytest.mark.slow
def test_demo_needs_nothing_but_the_package(tmp_path):
    done = surelist("demo", cwd=tmp_path, env={"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    policy = sl.Policy.load(tmp_path / "surelist-demo" / "policy.json")
    assert policy.promise in done.stdout
    assert "paper's rule" in done.stdout
    assert {p.name for p in (tmp_path / "surelist-demo").iterdir()} == {
        "past.csv",
        "new.csv",
        "policy.json",
        "shortlist.csv",
    }
    assert surelist("demo", cwd=tmp_path).stdout == done.stdout  # seeded


def test_demo_touches_no_folder_of_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "past.csv").write_text("precious")
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    assert run(["demo", "--folder", "mine"]) == 2
    assert (tmp_path / "mine" / "past.csv").read_text() == "precious"
    assert run(["demo", "--seed", "-1"]) == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name, capsys):
    assert run([name, "--help"]) == 0
    assert "Example:" in capsys.readouterr().out or name in ("campaign", "token")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, capsys):
    assert run(["completion", shell]) == 0
    assert "_SURELIST_COMPLETE" in capsys.readouterr().out


def on_a_terminal(arguments, cwd, **env):
    """What a command prints to a real pseudo-terminal."""
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "surelist", *arguments],
        cwd=cwd, stdout=child, stderr=child, env={**os.environ, **env},
    )  # fmt: skip
    os.close(child)
    printed = b""
    while True:
        try:
            block = os.read(parent, 4096)
        except OSError:
            break
        if not block:
            break
        printed += block
    os.close(parent)
    process.wait()
    return printed.decode()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["show", "policy.json"], ["show", "nothing.json"]])
def test_colour_only_where_wanted(folder, monkeypatch, arguments):
    monkeypatch.delenv("NO_COLOR", raising=False)
    surelist(*CALIBRATE, *EXPECT, cwd=folder)
    plain = surelist(*arguments, cwd=folder)
    assert "\x1b[" not in plain.stdout + plain.stderr
    assert "\x1b[" in on_a_terminal(arguments, folder)
    assert "\x1b[" not in on_a_terminal(arguments, folder, NO_COLOR="1")


@pytest.mark.slow
def test_an_interrupted_command_leaves_nothing(folder):
    """SIGINT while a large selection is being written: exit 1, no output, no temporary file."""
    surelist(*CALIBRATE, *EXPECT, cwd=folder)
    import duckdb

    duckdb.connect().execute(
        f"COPY (SELECT random() AS score, repeat('x', 50) AS t FROM range(6000000)) TO '{folder}/big.parquet'"
    )
    before = sorted(os.listdir(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "surelist", "select", "big.parquet", "--policy", "policy.json", "-o", "s.csv"],
        cwd=folder, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not any(name.startswith(".s.csv") for name in os.listdir(folder)) and process.poll() is None:
        time.sleep(0.001)  # however busy the machine is: the command ends, or begins to write
    process.send_signal(signal.SIGINT)
    process.communicate()
    left = sorted(os.listdir(folder))
    if process.returncode == 0 or "s.csv" in left:  # it was faster than the signal: then the output is whole
        assert left == sorted([*before, "s.csv"])
    else:
        assert left == before


def test_calibrate_and_show_point_out_ties_in_the_words_of_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{(row % 11) / 10},{int((row * 7) % 11 < row % 11)}" for row in range(2_000)]
    (tmp_path / "rounded.csv").write_text("\n".join(["score,qualified", *rows]))
    assert run(["calibrate", "rounded.csv", "--expect", "3", "--pool-size", "100", "-o", "p.json"]) == 0
    said = capsys.readouterr().out
    assert "were needed" in said
    assert "score column 'score': 0 to 1" in said
    assert "than with ties broken by candidate id" in said
    assert run(["show", "p.json", "--json"]) == 0
    assert "ties at the threshold" in json.loads(capsys.readouterr().out)["warnings"][0]
