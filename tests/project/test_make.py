"""What `make test` says at its end, and what it leaves to `make exhaustive`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.closing import line
from tests.helpers.service import missing

ROOT = Path(__file__).parents[2]

SOME = """
import pytest
def test_a(): pass
def test_b(): assert False
@pytest.mark.skip
def test_c(): pass
@pytest.fixture
def broken(): raise OSError
def test_d(broken): pass
"""


@pytest.mark.slow
def test_the_last_line_says_how_many_tests_ran_and_how_long_it_took(tmp_path):
    (tmp_path / "test_some.py").write_text(SOME)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junit-xml=report.xml",
        "test_some.py",
    ]
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    said = line(str(tmp_path / "report.xml"), 9 * 60 + 41)
    assert said == "3 tests ran, 2 failed, 1 skipped; everything took 9 min 41 s."


def test_every_test_belongs_to_one_of_the_two_commands_and_ci_runs_the_readmes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = dict(re.findall(r"^(\w+):.*\n((?:\t.*\n)+)", makefile, re.M))
    assert '-m "not exhaustive"' in commands["test"]
    assert "-m exhaustive" in commands["exhaustive"]
    assert commands["test"].rstrip().splitlines()[-1].endswith("exit $${failed:-0}")
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_under_ci_a_missing_tool_fails_and_elsewhere_it_skips(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Chromium is missing"):
        missing("Chromium")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="Chromium is missing"):
        missing("Chromium")


def test_make_flaky_goes_on_where_it_was_interrupted_and_repeats_in_one_process(tmp_path, monkeypatch):
    from tests import flaky

    monkeypatch.setattr(flaky, "FIGURES", tmp_path / "figures.jsonl")
    answers = iter([(60, []), KeyboardInterrupt, (58, ["FAILED one", "FAILED two"])])

    def run(arguments, times):
        answer = next(answers)
        if answer is KeyboardInterrupt:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(flaky, "run_once", run)
    with pytest.raises(KeyboardInterrupt):
        flaky.repeat("some", 40, 20, [], {"state": "a"})
    runs = flaky.repeat("some", 40, 20, [], {"state": "a"})
    assert [(each["times"], each["passed"], len(each["failed"])) for each in runs] == [
        (20, 60, 0),
        (20, 58, 2),
    ]
    assert flaky.earlier({"state": "another"}) == []


@pytest.mark.slow
def test_a_test_that_fails_by_chance_is_found_by_make_flaky(tmp_path, monkeypatch):
    from tests import flaky

    (tmp_path / "test_chance.py").write_text("import random\ndef test_it(): assert random.random() < 0.7\n")
    passed, failed = flaky.run_once([str(tmp_path / "test_chance.py"), "-p", "no:tests.helpers.slow"], 100)
    assert passed + len(failed) == 100
    assert (0.7**100 + 0.3**100) < 1e-9  # that none fails, or all
    assert 0 < len(failed) < 100
