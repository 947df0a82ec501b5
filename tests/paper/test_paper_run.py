"""``python -m paper run`` as a user meets it: outputs, resuming, claims that may fail, the real data."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import surelist as sl
from paper import page
from paper.__main__ import cli
from paper.claims import claims, expected_level, summarise
from paper.experiments import Measurement
from paper.reproduce import JOURNAL, people, reproduce
from paper.screening import Setup

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "shared" / "data"
SMALL = ["--rows", "60000", "--runs", "3"]


def census(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"census file {path} is not here; see docs/paper.md for how to fetch one")
    return str(path)


def invoke(*arguments):
    result = CliRunner().invoke(cli, ["run", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """All four experiments on few synthetic people, three runs each."""
    folder = tmp_path_factory.mktemp("paper")
    return folder, invoke("all", *SMALL, "--out", str(folder))


def table(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_everything_is_written(small):
    folder, result = small
    assert "SYNTHETIC" in result.stdout
    rows = table(folder)
    assert {"experiment", "setting", "run", "method", "group", "eq", "ss", "qualified"} <= set(rows[0])
    assert {row["experiment"] for row in rows} == {
        "noise",
        "calibration-size",
        "diversity-noise",
        "diversity-size",
    }
    assert {row["run"] for row in rows} == {"0", "1", "2"}
    stored = duckdb.sql(f"SELECT method, certified, eq FROM '{folder}/results.parquet'").fetchall()
    assert stored == [(row["method"], row["certified"] == "1", int(row["eq"])) for row in rows]
    for name in ("noise", "calibration-size", "diversity-noise", "diversity-size"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "synthetic" in (folder / f"{name}.svg").read_text().lower()
    html = (folder / "summary.html").read_text()
    assert "Synthetic." in html
    assert html.count("data:image/png") == 4
    assert "too small for" in html  # the settings left out are told
    assert "not 1" in html  # exact uses its budget
    assert not [path for path in folder.iterdir() if ".part" in path.name]


def test_the_same_command_again_repeats_nothing_and_changes_nothing(small):
    folder, _ = small
    before = (folder / "results.csv").read_bytes(), (folder / "noise.svg").read_bytes()
    result = invoke("all", *SMALL, "--out", str(folder))
    assert "Going on: 12 of 12 runs were there already." in result.stderr
    assert ((folder / "results.csv").read_bytes(), (folder / "noise.svg").read_bytes()) == before


def test_more_runs_go_on_from_fewer(small, tmp_path):
    folder, _ = small
    (tmp_path / JOURNAL).write_bytes((folder / JOURNAL).read_bytes())
    result = invoke("noise", "--rows", "60000", "--runs", "4", "--jobs", "1", "--out", str(tmp_path))
    assert "Going on: 3 of 4" in result.stderr
    assert len(table(tmp_path)) == 4 * 66


def test_an_interruption_loses_nothing(small, tmp_path):
    """SIGINT in the middle, a torn last line, another number of processes: the same table."""
    folder, _ = small
    command = [sys.executable, "-m", "paper", "run", "all", *SMALL, "--out", str(tmp_path)]
    journal = tmp_path / JOURNAL
    for _ in range(10):
        process = subprocess.Popen([*command, "--jobs", "2"], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") > 2):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        if process.returncode:
            break
        for each in tmp_path.iterdir():  # it was done before the signal came
            each.unlink()
    assert process.returncode == 1
    assert "The same command goes on from here." in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "results.csv").exists()
    with open(journal, "a") as file:
        file.write('[["noise", 0.0, 2, "CSS')  # as a power cut leaves it
    invoke("all", *SMALL, "--jobs", "1", "--out", str(tmp_path))
    assert (tmp_path / "results.csv").read_bytes() == (folder / "results.csv").read_bytes()


def test_another_question_needs_another_folder(small):
    folder, _ = small
    with pytest.raises(sl.InvalidInput, match="runs with another people, seed"):
        reproduce(["noise"], people(["synthetic"], 60_000, 1), folder, runs=1, seed=1)
    with pytest.raises(sl.InvalidInput, match="runs with another group_level"):
        reproduce(["noise"], people(["synthetic"], 60_000, 0), folder, runs=1, group_level="each")


def test_bad_questions(tmp_path):
    with pytest.raises(sl.InvalidInput, match="at least 50,000 people, got 1,000"):
        reproduce(["noise"], people(["synthetic"], 1000, 0), tmp_path)
    with pytest.raises(sl.InvalidInput, match="experiment: expected one of"):
        reproduce(["nose"], people(["synthetic"], 1000, 0), tmp_path)
    with pytest.raises(sl.InvalidInput, match="no such file"):
        people(["nowhere.parquet"], None, 0)
    with pytest.raises(sl.InvalidInput, match=r"no \.zip, \.csv or \.parquet"):
        people([str(tmp_path)], None, 0)


def test_claims_as_json(small):
    folder, _ = small
    result = invoke("noise", *SMALL, "--out", str(folder), "--json")
    found = json.loads(result.stdout)
    assert {"experiment", "says", "measured", "holds", "own"} == set(found[0])


def test_with_two_runs_there_are_no_verdicts(small):
    folder, _ = small
    said = invoke("noise", *SMALL, "--out", str(folder)).stdout
    assert "runs: no verdicts." in said
    assert "holds  " not in said
    assert "DOES NOT HOLD" not in said
    found = json.loads(invoke("noise", *SMALL, "--out", str(folder), "--json").stdout)
    assert {each["holds"] for each in found} == {None}
    page = (folder / "summary.html").read_text(encoding="utf-8")
    assert "no verdicts below 50" in page
    assert "does not hold" not in page


def read_rows(folder):
    lines = (folder / JOURNAL).read_text().splitlines()[1:]
    return [Measurement(*values) for line in lines for values in json.loads(line)]


def verdicts(rows):
    return {claim.says: claim.holds for claim in claims(summarise(rows), 0.1, 0.05, 10**6, 10_000)}


def test_a_claim_that_fails_is_shown_as_failing(small):
    """Turn each result round: the summary must not hide it."""
    rows = read_rows(small[0])

    def changed(method, **values):
        return [replace(row, **values) if row.method == method else row for row in rows]

    said = verdicts(rows)
    assert said["CSS lists hold enough qualified candidates whatever the noise."]
    turned = verdicts(changed("CSS", eq=0))
    assert not turned["CSS lists hold enough qualified candidates whatever the noise."]
    assert not turned["CSS lists hold enough, however few calibration rows."]
    assert not turned["Both hold enough more often than the promised 1 − α."]
    assert not verdicts(changed("UMB 3", eq=0))["So do those of UMB with 1 to 5 bins."]
    assert not verdicts(changed("Platt", eq=1))["Platt fails."]
    assert not verdicts(changed("Platt", eq=1))["Platt fails in both groups."]
    assert not verdicts(changed("Isotonic", eq=1))["Isotonic fails."]
    assert not verdicts(changed("Uncalibrated", eq=1))["Uncalibrated scores fail as soon as there is noise."]
    long = verdicts(changed("CSS", ss=99.0))
    assert not long["CSS lists are shorter than those of every UMB variant at every size."]
    assert not long["CSS lists are shorter than those of every UMB variant, short of pure noise."]
    assert not long["CSS pays for noise with longer lists."]
    assert not verdicts(changed("CSS (Diversity)", eq=0))[
        "CSS (Diversity) holds enough in both groups whatever the noise."
    ]
    assert not verdicts(changed("CSS (No Diversity)", eq=1))[
        "CSS (No Diversity) ends up without enough minority candidates."
    ]
    assert not verdicts(changed("Exact", eq=0))["exact uses its whole budget: EQ is about 0.9, not 1."]
    found = claims(summarise(changed("CSS", eq=0)), 0.1, 0.05, 10**6, 10_000)
    about = page.AboutRun("x<y>.csv", False, 1, 1, 3, 0, 0.1, 0.05, 1000, (), {})
    html = page.render(about, found, [])
    assert "does not hold" in html
    assert "x&lt;y&gt;.csv" in html
    assert "Synthetic" not in html


def test_expected_level_counts_the_error_of_the_test_half():
    assert expected_level(0.1, 1, 10**12) == pytest.approx(0.9, abs=1e-6)
    assert expected_level(0.1, 100, 100) == pytest.approx(0.8176, abs=1e-3)  # Phi(1.2816/sqrt 2)


def test_summary_numbers(small):
    rows = [
        row
        for row in read_rows(small[0])
        if (row.experiment, row.setting, row.method) == ("noise", 0.2, "CSS")
    ]
    changed = [replace(row, eq=place > 0, ss=10.0 + place) for place, row in enumerate(rows)]
    (cell,) = summarise(changed)
    assert (cell.runs, cell.ss, cell.ss_sd) == (3, 11.0, 1.0)
    assert cell.eq == pytest.approx(2 / 3)
    assert cell.eq_se == pytest.approx((2 / 9 / 3) ** 0.5)
    assert not cell.fails(0.9)  # two of three is no proof against 90 %
    assert replace(cell, runs=100, eq=0.80).fails(0.9)
    assert not replace(cell, runs=100, eq=0.86).fails(0.9)


def test_impossibility_on_the_command_line():
    result = CliRunner().invoke(cli, ["impossibility", "--k", "5", "--pool-size", "100"])
    assert result.exit_code == 0
    assert "at least 47.5 candidates (Proposition 1: 47.5)" in result.output
    assert "at least 4.524 candidates (Proposition 1: 2.375; sharp: 4.524)" in result.output


def test_the_real_2024_file_bears_the_paper_out(tmp_path):
    """A tenth of the committed run: the claims about EQ need no more."""
    path = census("acs2024_24states.parquet")
    report = reproduce(["noise", "diversity-noise"], people([path], None, 0), tmp_path, runs=10, seed=1)
    assert report.about.test_rows > 400_000
    assert {claim.holds for claim in report.claims} == {None}  # too few runs for a verdict that is shown
    checked = claims(summarise(read_rows(tmp_path)), 0.1, 0.05, report.about.test_rows, 10_000)
    assert [claim for claim in checked if not claim.holds] == []


def test_the_real_2018_file_has_all_features(tmp_path):
    population = people([census("acsemployment_2018_14states.parquet")], None, 0)
    assert len(population) == 173_916
    assert population.absent == ()
    assert population.qualified.mean() == pytest.approx(0.454, abs=0.001)
    assert (~population.minority).mean() == pytest.approx(0.825, abs=0.001)


def test_setup_is_the_papers():
    setup = Setup()
    assert (setup.pool_size, setup.k, setup.alpha, setup.qualified_share) == (100, 5, 0.1, 0.2)
    assert (setup.train_rows, setup.calibration_rows, setup.pools) == (10_000, 10_000, 1_000)
