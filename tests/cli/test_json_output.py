"""``--json`` prints what docs/reference/output.md says, for every command that has it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from surelist.cli import cli, run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "output.md"
KINDS = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
POOLS = "pool,pool_size,qualified\na,100,9\n"
CHAIN = """
demo --folder demo --seed 5
demo --folder later --seed 9
calibrate demo/past.csv --expect 5 --pool-size 100 -o p.json
show p.json
select demo/new.csv --policy p.json -o list.csv
evaluate later/past.csv --policy p.json
curve demo/past.csv --pool-size 100
list demo/new.csv --rows demo/past.csv
list demo/new.csv --rows demo/past.csv --size 50
plan --expect 5 --pool-size 100 --base-rate 0.19 --auc 0.85 --sizes 300
watch m.json pools.csv --policy p.json
drift demo/past.csv demo/new.csv
sql p.json
campaign start demo/past.csv --expect 5 --pool-size 100 -o c.json
campaign screen c.json demo/new.csv --id candidate --pool a -o s.csv
campaign review c.json s.csv --id candidate --label qualified --pool a
campaign status c.json
label start demo/new.csv --at-least 3 --labels 60 -o w.json
label next w.json -o sheet.csv
label record w.json sheet.csv
label status w.json
label report w.json
stop start demo/new.csv --found 100 --recall 0.8 -o st.json
stop next st.json -o left.csv
stop record st.json left.csv
stop status st.json
stop report st.json
validate start demo/past.csv --decided qualified --recall 0.8 --sample 60 -o v.json
validate next v.json -o drawn.csv
validate record v.json drawn.csv
validate report v.json
token create --role admin --name a --database r.db
token list --database r.db
verify-log --database r.db
"""


def documented() -> dict[str, dict[str, tuple[set[str], bool]]]:
    """By command and key: its types, and whether it may be missing."""
    sections: dict[str, dict[str, tuple[set[str], bool]]] = {}
    for line in PAGE.read_text().splitlines():
        if heading := re.fullmatch(r"## `(.*)`", line):
            keys = sections.setdefault(heading[1], {})
        elif key := re.match(r"- `(\w+)` ([a-z ]+?)(, optional)?:", line):
            keys[key[1]] = (set(key[2].split(" or ")), key[3] is not None)
    return sections


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None and any(each.name == "json_" for each in command.params):
            yield " ".join((*path, name))


def check(command: str, printed: dict[str, Any]) -> None:
    keys = documented()[command]
    assert set(printed) <= set(keys), command
    assert {key for key, (_, optional) in keys.items() if not optional} <= set(printed), command
    for key, value in printed.items():
        kind = "null" if value is None else KINDS[type(value)]
        assert kind in keys[key][0], f"{command}: {key} is {kind}"


def test_every_command_that_prints_json_is_documented():
    assert {*commands(cli), "error"} == set(documented())
    assert {*commands(cli)} == {
        name for name in documented() for line in CHAIN.splitlines() if line.startswith(name)
    }


def fill(sheet: str, label: str) -> None:
    with open(sheet, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(sheet, "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys([*rows[0], label])))
        writer.writeheader()
        writer.writerows({**row, label: str(at % 2)} for at, row in enumerate(rows))


@pytest.mark.slow
def test_what_json_prints_is_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("pools.csv").write_text(POOLS)
    for line in CHAIN.split("\n"):
        if not line:
            continue
        words = line.split()
        code = run([*words, "--json"])
        said = capsys.readouterr()
        assert code == 0, (line, said.err)
        printed = json.loads(said.out or said.err)
        name = next(each for each in documented() if f"{line} ".startswith(f"{each} "))
        for each in printed if isinstance(printed, list) else [printed]:
            check(name, each)
        for sheet, label in {"label next": ("sheet.csv", "label"), "stop next": ("left.csv", "label"),
                             "campaign screen": ("s.csv", "qualified")}.items():  # fmt: skip
            if line.startswith(sheet):
                fill(*label)


@pytest.mark.parametrize(
    ("words", "code"),
    [("--expect 90 --pool-size 100", 3), ("--expect 5", 2), ("--score nothing --expect 5 --pool-size 9", 2)],
)
def test_errors_have_the_fields_that_the_page_says(tmp_path, monkeypatch, capsys, words, code):
    monkeypatch.chdir(tmp_path)
    Path("past.csv").write_text("score,qualified\n" + "0.5,1\n0.25,0\n" * 200)
    assert run(["calibrate", "past.csv", *words.split(), "-o", "p.json", "--json"]) == code
    error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    check("error", error)
    assert error["type"] == ("NotCertifiable" if code == 3 else "InvalidInput")
    assert not Path("p.json").exists()


def test_many_options_stand_under_headings(capsys):
    assert run(["calibrate", "--help"]) == 0
    said = capsys.readouterr().out
    headings = re.findall(r"^([A-Z][\w ]+):$", said, re.M)
    assert headings == [
        "What is promised", "Columns", "Groups", "Labels", "Reading files", "Engine", "Output",
    ]  # fmt: skip
    options = [said.index(f"\n  {each} ") for each in ("--expect", "--pool-size", "--rule", "--score")]
    assert options == sorted(options)
