"""What surrounds the package says what is true of it: workflow, container file, extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from surelist.cli import cli

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_workflow_runs_targets_of_the_makefile_on_the_pythons_that_are_declared():
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    runs = re.findall(r"^      - run: (.*)$", text, re.M)
    assert {run.split()[1] for run in runs} == {"check", "test", "docs"} <= targets
    assert all(run.startswith("make ") for run in runs)
    matrix = re.search(r"python: \[(.*)\]", text)[1].replace('"', "").split(", ")
    said = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each]
    assert matrix == said


def test_the_container_file_names_what_exists():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for extra in re.search(r"/src\[([\w,]+)\]", text)[1].split(","):
        assert extra in PROJECT["optional-dependencies"]
    words = re.findall(r'"([^"]+)"', re.search(r"^CMD (.*)$", text, re.M)[1])
    command = cli.get_command(None, words[0])
    flags = {flag for option in command.params for flag in option.opts}
    assert {word for word in words if word.startswith("--")} <= flags
    for name in re.findall(r"^COPY (.*) /src", text, re.M):
        assert all((ROOT / each).exists() for each in name.split())
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"!pyproject.toml", "!constraints.txt", "!README.md", "!LICENSE", "!src"} <= set(allowed)


def test_every_extra_is_documented_with_the_size_that_was_measured():
    text = (ROOT / "docs" / "ecosystem.md").read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks" / "sizes.txt").read_text(encoding="utf-8")  # of benchmarks/sizes.py
    sizes = dict(re.findall(r"^(\w+) +(\d+) MB$", measured, re.M))
    assert sizes.keys() == PROJECT["optional-dependencies"].keys() - {"dev", "docs"}
    for extra, size in sizes.items():
        assert re.search(rf"^\| `{extra}` \|.*\| {size} MB \|$", text, re.M), extra


@pytest.mark.slow
def test_figures_of_the_readme_are_those_of_the_commands_it_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, "benchmarks/list_length.py"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (_, paper), _, (random, exact) = re.findall(
        r"([\d.]+) \(([\d.]+) x\)", re.search(r"^ +1,000 .*$", printed, re.M)[0]
    )
    assert f"{exact} times the best possible" in readme
    assert f"{paper} times\n(`python benchmarks/list_length.py`)" in readme
    kept = (ROOT / "benchmarks" / "labels.txt").read_text(encoding="utf-8")
    chosen = re.search(r"^surelist.examples +100,000 +300 +([\d.]+) ", kept, re.M)[1]
    assert f"a list of {float(chosen):.1f} (`python benchmarks/labels.py`), " in readme
    assert f"1,000 at random one of {float(random):.1f}\n  (`python benchmarks/list_length.py`)" in readme
    peers = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    lengths = {
        name: [float(cell) for cell in re.findall(r"([\d.]+) \(", row)]
        for name, row in re.findall(
            r"^\| (surelist, exact|MAPIE, [\d,]+-point grid) \|(.*%\)) \|$", peers, re.M
        )
    }
    ours = lengths.pop("surelist, exact")
    assert len(lengths) == 2
    for theirs in lengths.values():
        assert all(mine <= other for mine, other in zip(ours, theirs, strict=True))
