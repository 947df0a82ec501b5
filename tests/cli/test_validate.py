"""``surelist validate`` and ``surelist stop plan|report``: from a file of decisions to a page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from surelist.cli import run

ROWS = 400


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """Every fourth row is kept, and those and every 50th other row are relevant."""
    monkeypatch.chdir(tmp_path)
    with open("decided.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["document", "produced"])
        rows.writerows([f"d{row}", 1 if row % 4 == 0 else "" if row % 3 else 0] for row in range(ROWS))
    return tmp_path


def relevant(row: int) -> int:
    return int(row % 4 == 0 or row % 50 == 1)


def filled(sheet: str, skip: int = 0) -> list[dict[str, str]]:
    with open(sheet, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[skip:]:
        row["label"] = str(relevant(int(row["surelist_row"])))
    with open(sheet, "w", newline="") as file:
        written = csv.DictWriter(file, list(rows[0]))
        written.writeheader()
        written.writerows(rows)
    return rows


START = [
    "validate",
    "start",
    "decided.csv",
    "--decided",
    "produced",
    "--recall",
    "0.7",
    "--sample",
    "200",
    "-o",
    "v.json",
]


def test_from_decisions_to_a_report_without_showing_what_was_decided(capsys):
    assert (
        run(
            ["validate", "plan", "decided.csv", "--decided", "produced", "--recall", "0.7", "--sample", "200"]
        )
        == 0
    )
    assert "100 rows were kept and 300 left out" in capsys.readouterr().out
    assert run(START) == 0
    assert run(["validate", "next", "v.json", "-o", "sheet.csv"]) == 0
    rows = filled("sheet.csv", skip=1)
    assert len(rows) == 200
    assert list(rows[0]) == ["surelist_row", "document", "label"]  # reviewers are blind
    capsys.readouterr()
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 0
    assert "1 label to come" in capsys.readouterr().out
    assert run(["validate", "report", "v.json"]) == 0
    filled("sheet.csv")
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 0
    assert run(["validate", "report", "v.json", "-o", "report.html"]) == 0
    page, said = Path("report.html").read_text(), " ".join(capsys.readouterr().out.split())
    assert "The 70% asked for is certified." in page
    assert "The 70% asked for is certified." in said
    assert "<script" not in page


def test_a_sheet_that_differs_from_the_record_is_refused_and_a_blank_may_be_final(capsys):
    run(START)
    run(["validate", "next", "v.json", "-o", "sheet.csv", "--count", "20"])
    rows = filled("sheet.csv")
    run(["validate", "record", "v.json", "sheet.csv"])
    text = Path("sheet.csv").read_text()
    first = rows[0]
    other = f"{first['surelist_row']},{first['document']},{1 - int(first['label'])}"
    Path("sheet.csv").write_text(
        text.replace(f"{first['surelist_row']},{first['document']},{first['label']}", other)
    )
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 2
    assert "on record and" in capsys.readouterr().err
    assert run(["validate", "record", "v.json", "sheet.csv", "--correct"]) == 0
    run(["validate", "next", "v.json", "-o", "rest.csv"])
    capsys.readouterr()
    assert run(["validate", "record", "v.json", "rest.csv", "--final", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"] == 0
    assert run(["validate", "report", "v.json"]) == 3  # what is missing counts against the decisions
    assert run(["validate", "report", "v.json", "-o", "report.txt"]) == 2
    assert run(START) == 2  # a draw is made once


def test_a_stop_test_is_planned_and_reported(capsys):
    assert run(["stop", "plan", "--found", "195", "--rest", "8000", "--recall", "0.95"]) == 0
    said = capsys.readouterr().out
    assert "2,133" in said.splitlines()[4]
    assert "if 5 left" in said
    run(["stop", "start", "decided.csv", "--found", "50", "--recall", "0.5", "-o", "st.json"])
    assert run(["stop", "report", "st.json", "-o", "stop.html"]) == 0
    assert "Go on: label" in Path("stop.html").read_text()


@pytest.mark.parametrize(
    ("given", "said"), [(["--recall", "95"], "recall"), (["--recall", "0.7", "--alpha", "5"], "alpha")]
)
def test_a_plan_with_an_impossible_share_is_refused(given, said, capsys):
    assert run(["validate", "plan", "decided.csv", "--decided", "produced", *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("found", "rest", "name"), [("-1", "100", "--found"), ("5", "0", "rest")])
def test_a_plan_of_impossible_numbers_is_refused(found, rest, name, capsys):
    assert run(["stop", "plan", "--found", found, "--rest", rest, "--recall", "0.9"]) == 2
    assert name in capsys.readouterr().err


def test_more_looks_than_can_be_planned_are_refused(capsys):
    plan = ["stop", "plan", "--found", "195", "--rest", "8000", "--recall", "0.95", "--looks", "101"]
    assert run(plan) == 2
    assert "at most 100 looks" in capsys.readouterr().err


def test_a_table_whose_decisions_have_changed_is_noticed(capsys):
    run(START)
    text = Path("decided.csv").read_text().splitlines()
    Path("decided.csv").write_text("\n".join([text[0], *reversed(text[1:])]))
    assert run(["validate", "next", "v.json", "-o", "sheet.csv"]) == 2
    assert "no longer those that were drawn from" in " ".join(capsys.readouterr().err.split())


def test_a_sheet_of_a_table_with_a_column_of_labels_in_capitals_is_recorded():
    Path("decided.csv").write_text(Path("decided.csv").read_text().replace("document", "Label"))
    run(START)
    run(["validate", "next", "v.json", "-o", "sheet.csv"])
    assert list(filled("sheet.csv")[0]) == ["surelist_row", "label"]
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 0


def test_a_plan_of_a_stop_test_has_each_case_once(capsys):
    run(["stop", "plan", "--found", "5", "--rest", "100", "--recall", "0.95"])
    assert capsys.readouterr().out.count("if 0 left") == 1


def test_a_blank_row_of_a_sheet_is_skipped_and_rows_count_as_a_spreadsheet_does(capsys):
    run(START)
    run(["validate", "next", "v.json", "-o", "sheet.csv"])
    filled("sheet.csv")
    text = Path("sheet.csv").read_text()
    Path("sheet.csv").write_text(text + ",,\n")
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 0
    Path("sheet.csv").write_text(text + ",,1\n")
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 2
    assert "in spreadsheet row 202" in capsys.readouterr().err


def test_what_does_not_fit_is_named_as_the_command_line_knows_it(capsys):
    assert run(START) == 0
    assert run(["validate", "next", "v.json", "-o", "sheet.csv"]) == 0
    filled("sheet.csv")
    Path("stranger.csv").write_text(f"surelist_row,label\n{ROWS + 5},1\n")
    capsys.readouterr()
    for sheet, said in (
        ("stranger.csv", f"column 'surelist_row': row {ROWS + 5} was not drawn; use the sheet of next"),
        ("decided.csv", "rows: decided.csv has no column 'surelist_row'"),
    ):
        assert run(["validate", "record", "v.json", sheet]) == 2
        assert f"error: {said}" in capsys.readouterr().err
    assert run(["stop", "record", "v.json", "sheet.csv"]) == 2
    assert (
        capsys.readouterr().err
        == "error: state: v.json is not a surelist stop test file, it is a surelist validation file.\n"
    )
    assert run(["validate", "record", "v.json", "sheet.csv"]) == 0
    assert run(["validate", "next", "v.json", "-o", "more.csv"]) == 0
    assert "Nothing is to be labelled: see report." in capsys.readouterr().out
