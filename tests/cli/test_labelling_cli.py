"""label and stop at the command line: sheets out, sheets back, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import surelist as sl
from surelist import cli, examples


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header, rows = examples.trial_rows(np.random.default_rng(3), 1500, labelled=True)
    with open("candidates.csv", "w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(header[:-1])
        sheet.writerows(row[:-1] for row in rows)
    return [row[-1] for row in rows]


def run(*words: str) -> int:
    return cli.run(list(words))


def fill(name: str, truth: list[str], keep: slice = slice(None)) -> None:
    with open(name, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[keep]:
        row["label"] = truth[int(row["surelist_row"])]
    with open(name, "w", newline="") as file:
        sheet = csv.DictWriter(file, rows[0].keys())
        sheet.writeheader()
        sheet.writerows(rows)


@pytest.mark.slow
def test_from_a_table_without_labels_to_a_policy_and_a_list(place, capsys):
    start = ("label", "start", "candidates.csv", "--expect", "5", "--pool-size", "100", "--labels", "160")
    assert run(*start, "--id", "candidate", "-o", "work.json") == 0
    assert run("label", "status", "work.json", "--policy", "policy.json") == 2  # labels are to come
    assert run("label", "next", "work.json", "-o", "sheet.csv") == 0
    first = Path("sheet.csv").read_text()
    assert run("label", "next", "work.json", "-o", "again.csv") == 0
    assert Path("again.csv").read_text() == first  # the same rows
    assert first.splitlines()[0] == "surelist_row,candidate,age,site,score,label"
    fill("sheet.csv", place, slice(0, 10))
    assert run("label", "record", "work.json", "sheet.csv") == 0  # in parts
    fill("sheet.csv", place)
    assert run("label", "record", "work.json", "sheet.csv") == 0
    assert run("label", "next", "work.json", "-o", "sheet.csv") == 0
    fill("sheet.csv", place)
    assert run("label", "record", "work.json", "sheet.csv", "--final") == 0
    capsys.readouterr()
    assert (
        run("label", "status", "work.json", "--policy", "policy.json", "--shortlist", "list.csv", "--json")
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert "on average over pools of 100 candidates" in said["promise"]
    assert run("select", "candidates.csv", "--policy", "policy.json", "-o", "selected.csv") == 0
    assert Path("list.csv").read_text() == Path("selected.csv").read_text()


def fill_all(state: str, labels) -> dict[str, str]:
    """Label stage by stage in spreadsheets; who was labelled how."""
    labelled = {}
    while len(sl.Labelling.load(state).ask()):
        run("label", "next", state, "-o", "sheet.csv")
        fill("sheet.csv", labels)
        assert run("label", "record", state, "sheet.csv") == 0
        with open("sheet.csv", newline="") as file:
            labelled.update({row["candidate"]: row["label"] for row in csv.DictReader(file)})
    return labelled


@pytest.mark.slow
def test_recall_lists_those_labelled_by_their_labels_and_refuses_with_exit_code_3(place, capsys):
    assert (
        run("label", "start", "candidates.csv", "--recall", "0.8", "--labels", "400", "-o", "work.json") == 0
    )
    run("label", "next", "work.json", "-o", "sheet.csv")
    assert run("label", "record", "work.json", "sheet.csv", "--final") == 2  # blank labels: recall needs them
    labelled = fill_all("work.json", place)
    assert len(labelled) == 400
    assert run("label", "status", "work.json", "--shortlist", "list.csv") == 0
    with open("list.csv", newline="") as file:
        listed = {row["candidate"] for row in csv.DictReader(file)}
    assert all((name in listed) == (label == "1") for name, label in labelled.items())


def test_precision_from_a_file_to_a_list(place, capsys):
    start = ("label", "start", "candidates.csv", "--precision", "0.6", "--labels", "200", "-o", "work.json")
    assert run(*start) == 0
    assert "at least 60% of the shortlist qualified" in capsys.readouterr().out
    labelled = fill_all("work.json", place)
    assert len(labelled) == 200
    capsys.readouterr()
    assert run("label", "status", "work.json", "--shortlist", "list.csv", "--json") == 0
    promise = json.loads(capsys.readouterr().out)["promise"]
    with open("list.csv", newline="") as file:
        listed = {row["candidate"] for row in csv.DictReader(file)}
    assert promise.startswith(f"At least 60% of the {len(listed):,} candidates listed of these 1,500")
    assert all((name in listed) == (label == "1") for name, label in labelled.items())


def test_a_labelling_has_a_report_as_tests_have(place, capsys):
    run("label", "start", "candidates.csv", "--precision", "0.6", "--labels", "200", "-o", "work.json")
    assert run("label", "report", "work.json") == 0  # labels are to come
    labelled = fill_all("work.json", place)
    run("label", "status", "work.json", "--shortlist", "list.csv", "--policy", "policy.json")
    listed = len(Path("list.csv").read_text().splitlines()) - 1
    capsys.readouterr()
    assert run("label", "report", "work.json", "-o", "report.html", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"waiting": 0, "certified": True, "listed": listed}
    page = Path("report.html").read_text()
    assert f"At least 60% of the {listed:,} candidates listed of these 1,500 candidates are qualified" in page
    for said in (
        "The promise rests on:",
        "Pilot: ",
        f'">{listed:,}</td>',
        '">1,500</td>',
        '">at most 10%</td>',
    ):
        assert said in page
    assert len(labelled) == 200
    assert run("report", "policy.json", "-o", "audit.html") == 0
    audit = Path("audit.html").read_text()
    assert "Their own list comes from the labelling." in audit
    assert "is shortlisted when the score" not in audit  # others are on the list by name, and some are not


def test_the_report_of_a_labelling_that_certifies_nothing_ends_with_exit_code_3(place, capsys):
    run("label", "start", "candidates.csv", "--recall", "0.95", "--labels", "60", "-o", "few.json")
    run("label", "next", "few.json", "-o", "few.csv")
    fill("few.csv", place)
    run("label", "record", "few.json", "few.csv")
    assert run("label", "report", "few.json", "-o", "few.html") == 3
    assert "Not certifiable" in Path("few.html").read_text()


def test_a_recall_that_cannot_be_certified_ends_with_exit_code_3(place, capsys):
    run("label", "start", "candidates.csv", "--recall", "0.95", "--labels", "60", "-o", "few.json")
    run("label", "next", "few.json", "-o", "few.csv")
    fill("few.csv", place)
    run("label", "record", "few.json", "few.csv")
    capsys.readouterr()
    assert run("label", "status", "few.json") == 3
    assert "Not certifiable" in capsys.readouterr().err
    start = ("label", "start", "candidates.csv", "--recall", "0.95", "--labels", "30", "-o", "never.json")
    assert run(*start) == 2
    assert "--labels: 30 labels cannot certify at least 95%" in capsys.readouterr().err
    assert not Path("never.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("label", "start", "gap.csv", "--precision", "0.6", "--labels", "100", "-o", "gap.json"),
        ("list", "gap.csv", "--rows", "past.csv", "--label", "label"),
        ("calibrate", "gap.csv", "--label", "label", "--recall", "0.6", "-o", "gap.json"),
    ],
)
def test_only_a_command_that_can_drop_rows_says_so(place, capsys, words):
    rows = [f"{score / 100},{score % 2}\n" for score in range(100)]
    Path("past.csv").write_text("score,label\n" + "".join(rows))
    Path("gap.csv").write_text("score,label\n,1\n" + "".join(rows))
    assert run(*words) == 2
    said = capsys.readouterr().err
    assert "give every candidate a score" in said
    assert ("--on-bad-rows" in said) == (words[0] == "calibrate")


def test_how_a_collection_was_read_is_said_when_a_labelling_starts(place, capsys):
    Path("semi.csv").write_text("Export\nid;score\n" + "".join(f"{i};0,{i:03}\n" for i in range(1, 500)))
    assert run("label", "start", "semi.csv", "--precision", "0.6", "--labels", "100", "-o", "semi.json") == 0
    said = capsys.readouterr().err
    assert "column names in row 2 below 'Export'" in said
    assert "'0,001' read as 0.001 (decimal comma)" in said
    assert (
        run("label", "start", "semi.csv", "--precision", "0.6", "--labels", "100", "-o", "j.json", "--json")
        == 0
    )
    assert not capsys.readouterr().err


def test_blank_rows_of_an_export_are_no_items_that_nobody_reviewed(place, capsys):
    Path("export.csv").write_text("id,included\na,1\nb,0\nc,\n,\n,\n")
    assert (
        run("stop", "start", "export.csv", "--decided", "included", "--recall", "0.4", "-o", "stop.json") == 0
    )
    assert "1 relevant found, 1 item not reviewed" in " ".join(capsys.readouterr().out.split())
    assert Path("stop.rest.csv").read_text().splitlines() == ["id,included", "c,"]


def test_what_does_not_fit_is_said_and_changes_nothing(place, capsys):
    start = ("label", "start", "candidates.csv", "--at-least", "20", "--labels", "100", "-o", "work.json")
    assert run(*start) == 0
    assert run(*start) == 2
    assert "work.json exists. A draw is made once" in capsys.readouterr().err
    assert run("label", "start", "candidates.csv", "--labels", "9", "-o", "x.json") == 2
    assert (
        run(
            "label",
            "start",
            "candidates.csv",
            "--at-least",
            "2",
            "--recall",
            ".5",
            "--labels",
            "9",
            "-o",
            "x",
        )
        == 2
    )
    assert (
        run(
            "label",
            "start",
            "candidates.csv",
            "--at-least",
            "2",
            "--labels",
            "9",
            "--id",
            "no",
            "-o",
            "x.json",
        )
        == 2
    )
    run("label", "next", "work.json", "-o", "sheet.csv")
    before = Path("work.json").read_bytes()
    text = Path("sheet.csv").read_text().splitlines()
    Path("bad.csv").write_text("\n".join([text[0], text[1] + "maybe"]))
    assert run("label", "record", "work.json", "bad.csv") == 2
    Path("twice.csv").write_text("\n".join([text[0], text[1] + "1", text[1] + "1"]))
    assert run("label", "record", "work.json", "twice.csv") == 2
    assert Path("work.json").read_bytes() == before
    lines = Path("candidates.csv").read_text().splitlines()
    Path("candidates.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    assert run("label", "next", "work.json", "-o", "sheet.csv") == 2
    assert "The collection has changed since" in " ".join(capsys.readouterr().err.split())


def test_stop_goes_on_until_it_is_certified(place, capsys):
    none = ["0"] * 1500
    assert run("stop", "start", "candidates.csv", "--found", "150", "--recall", "0.9", "-o", "stop.json") == 0
    assert run("stop", "status", "stop.json") == 0
    assert run("stop", "next", "stop.json", "-o", "sheet.csv", "--count", "20") == 0
    fill("sheet.csv", none, slice(5, 20))
    assert run("stop", "record", "stop.json", "sheet.csv") == 2  # a gap
    fill("sheet.csv", none)
    assert run("stop", "record", "stop.json", "sheet.csv") == 0
    capsys.readouterr()
    while True:
        run("stop", "status", "stop.json", "--json")
        said = json.loads(capsys.readouterr().out.splitlines()[-1])
        if said["over"]:
            break
        run("stop", "next", "stop.json", "-o", "sheet.csv")
        fill("sheet.csv", none)
        run("stop", "record", "stop.json", "sheet.csv")
        capsys.readouterr()
    assert said["certified"]
    assert said["hits"] == 0


def test_an_export_with_decisions_is_split_into_what_was_found_and_the_rest(place, capsys):
    decisions = ["1"] * 40 + ["0"] * 260 + [""] * 1200
    with open("candidates.csv", newline="") as file:
        header, *rows = csv.reader(file)
    with open("export.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [[*header, "included"], *([*row, mark] for row, mark in zip(rows, decisions, strict=True))]
        )
    words = ("stop", "start", "export.csv", "--recall", "0.9", "-o", "stop.json")
    assert run(*words) == 2
    assert "--found: give --found, how many" in capsys.readouterr().err
    assert run(*words, "--found", "40", "--decided", "included") == 2
    assert run(*words, "--decided", "includd") == 2
    assert "--decided: " in (said := capsys.readouterr().err)
    assert "Did you mean 'included'?" in said
    assert run(*words, "--decided", "age") == 2
    assert "column 'age': expected 1 or yes, 0 or no, or blank" in capsys.readouterr().err
    assert not list(Path().glob("stop*"))
    assert run(*words, "--decided", "included") == 0
    assert "40 relevant found, 1,200 items not" in capsys.readouterr().out
    with open("stop.rest.csv", newline="") as file:
        assert [row[:-1] for row in csv.reader(file)] == [header, *rows[300:]]
    assert run("stop", "next", "stop.json", "-o", "sheet.csv", "--count", "5") == 0
    with open("sheet.csv", newline="") as file:
        for row in csv.DictReader(file):
            assert row["candidate"] == rows[300 + int(row["surelist_row"])][header.index("candidate")]
    assert run(*words, "--decided", "included") == 2  # a draw is made once


def test_stop_without_a_certificate_ends_with_exit_code_3(place, capsys):
    every = ["1"] * 1500
    run(
        "stop",
        "start",
        "candidates.csv",
        "--found",
        "60",
        "--recall",
        "0.9",
        "--looks",
        "2",
        "-o",
        "stop.json",
    )
    capsys.readouterr()
    while (
        run("stop", "next", "stop.json", "-o", "sheet.csv") == 0 and "Nothing" not in capsys.readouterr().out
    ):
        fill("sheet.csv", every)
        run("stop", "record", "stop.json", "sheet.csv")
        capsys.readouterr()
    code = run("stop", "status", "stop.json")
    said = capsys.readouterr().out
    assert code == 3
    assert "Lost: " in said


def test_stop_record_refuses_a_label_that_differs_or_takes_it_as_a_correction(place, capsys):
    run("stop", "start", "candidates.csv", "--found", "150", "--recall", "0.9", "-o", "stop.json")
    run("stop", "next", "stop.json", "-o", "sheet.csv", "--count", "4")
    fill("sheet.csv", ["0"] * 1500)
    assert run("stop", "record", "stop.json", "sheet.csv") == 0
    before = Path("stop.json").read_text()
    fill("sheet.csv", ["1"] * 1500, slice(1, 2))
    with open("sheet.csv", newline="") as file:
        row = list(csv.DictReader(file))[1]["surelist_row"]
    capsys.readouterr()
    assert run("stop", "record", "stop.json", "sheet.csv") == 2
    assert f"row {row} is 0 on record and 1 here. Nothing was recorded." in capsys.readouterr().err
    assert Path("stop.json").read_text() == before
    assert run("stop", "record", "stop.json", "sheet.csv", "--correct") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "4 of them drawn with 1 hit" in said
    assert f"1 label corrected, on record: item {row} from not relevant to relevant" in said
    assert run("stop", "record", "stop.json", "sheet.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["hits"] == 1
    sheet = Path("sheet.csv").read_text()
    stranger = next(i for i in map(str, range(1500)) if int(i) not in json.loads(before)["order"])
    Path("sheet.csv").write_text(sheet.replace(f"\n{row},", f"\n{stranger},"))
    assert run("stop", "record", "stop.json", "sheet.csv") == 2
    assert f"row {stranger} was not drawn" in capsys.readouterr().err


@pytest.mark.slow
def test_label_record_gives_a_way_back_from_a_mistyped_label_until_something_rests_on_it(place, capsys):
    start = ("label", "start", "candidates.csv", "--at-least", "20", "--labels", "100", "-o", "work.json")
    assert run(*start) == 0
    run("label", "next", "work.json", "-o", "pilot.csv")
    right = [str(int(float(label))) for label in place]
    wrong = ["1" if label == "0" else "0" for label in right]
    fill("pilot.csv", wrong)
    assert run("label", "record", "work.json", "pilot.csv") == 0  # the pilot is complete, the block chosen
    fill("pilot.csv", right)
    capsys.readouterr()
    assert run("label", "record", "work.json", "pilot.csv") == 2
    assert "on record and" in (said := capsys.readouterr().err)
    assert "--correct" in said
    assert run("label", "record", "work.json", "pilot.csv", "--correct") == 0
    assert "25 corrected; 75 to come." in capsys.readouterr().out
    run("label", "next", "work.json", "-o", "sheet.csv")
    fill("sheet.csv", right)
    assert run("label", "record", "work.json", "sheet.csv") == 0
    fill("pilot.csv", wrong)
    capsys.readouterr()
    assert run("label", "record", "work.json", "pilot.csv", "--correct") == 2
    assert "labels of the block that the pilot chose are here" in capsys.readouterr().err
    fill("sheet.csv", wrong, slice(0, 1))
    assert run("label", "record", "work.json", "sheet.csv", "--correct") == 0  # nobody has seen the result
    fill("sheet.csv", right)
    assert run("label", "record", "work.json", "sheet.csv", "--correct") == 0
    assert run("label", "status", "work.json") == 0
    fill("sheet.csv", wrong, slice(0, 1))
    capsys.readouterr()
    assert run("label", "record", "work.json", "sheet.csv", "--correct") == 2
    assert "the result was shown with it" in capsys.readouterr().err


def test_groups_share_alpha_and_may_have_targets_of_their_own(place, capsys):
    start = ("label", "start", "candidates.csv", "--labels", "200", "--group", "site", "-o", "work.json")
    with open("candidates.csv", newline="") as file:
        sites = sorted({row["site"] for row in csv.DictReader(file)})
    assert run(*start, "--at-least", "5") == 2  # no purpose
    assert "--group needs --purpose" in capsys.readouterr().err
    purpose = ("--purpose", "a test")
    assert run(*start, *purpose, "--at-least", "5", "--target", f"{sites[0]}=at-least:5") == 2
    assert run(*start, *purpose, "--target", f"{sites[0]}=at-least:x") == 2
    assert run(*start, *purpose, "--target", f"{sites[0]}=at-least:5") == 2  # the others have none
    targets = [word for site in sites for word in ("--target", f"{site}=at-least:4")]
    assert run(*start, *purpose, *targets) == 0
    said = capsys.readouterr().out
    for site in sites:
        assert f"Group {site!r}: at least 4 qualified candidates" in said
    work = json.loads(Path("work.json").read_text())
    assert [each["alpha"] for each in work["designs"]] == [0.1 / len(sites)] * len(sites)
    for _ in range(2):
        if run("label", "next", "work.json", "-o", "sheet.csv") == 0 and Path("sheet.csv").exists():
            fill("sheet.csv", place)
            assert run("label", "record", "work.json", "sheet.csv") == 0
            Path("sheet.csv").unlink()
    assert run("label", "status", "work.json", "--shortlist", "list.csv", "--policy", "policy.json") == 0
    with open("list.csv", newline="") as file:
        listed = [row["site"] for row in csv.DictReader(file)]
    assert all(listed.count(site) >= 4 for site in sites)


def test_one_promise_for_every_group(place):
    start = ("label", "start", "candidates.csv", "--labels", "300", "--group", "site", "--purpose", "a test")
    assert run(*start, "--expect", "5", "--pool-size", "100", "-o", "work.json") == 0
    designs = json.loads(Path("work.json").read_text())["designs"]
    assert {each["target"]["k"] for each in designs} == {5.0}


def test_sheets_go_out_and_come_back_as_workbooks(place, capsys):
    import python_calamine
    import xlsxwriter

    start = ("label", "start", "candidates.csv", "--expect", "5", "--pool-size", "100", "--labels", "160")
    assert run(*start, "-o", "work.json") == 0
    assert run("label", "next", "work.json", "-o", "sheet.xlsx") == 0
    cells = python_calamine.CalamineWorkbook.from_path("sheet.xlsx").get_sheet_by_index(0).to_python()
    assert [cells[0][0], cells[0][-1]] == ["surelist_row", "label"]
    book = xlsxwriter.Workbook("filled.xlsx")
    page = book.add_worksheet()
    for at, row in enumerate(cells):
        for column, cell in enumerate(row[:-1]):
            page.write(at, column, cell)
        page.write(at, len(row) - 1, "label" if at == 0 else int(place[int(row[0])]))
    book.close()
    capsys.readouterr()
    assert run("label", "record", "work.json", "filled.xlsx", "--json") == 0
    assert json.loads(capsys.readouterr().out)["new"] == len(cells) - 1


def labelled(truth: list[str], *words: str) -> None:
    """work.json: a precision of the candidates with every label in."""
    start = ("label", "start", "candidates.csv", "--precision", "0.5", "--labels", "60", "-o", "work.json")
    assert run(*start, *words) == 0
    while len(sl.Labelling.load("work.json").ask()):
        assert run("label", "next", "work.json", "-o", "sheet.csv") == 0
        fill("sheet.csv", truth)
        assert run("label", "record", "work.json", "sheet.csv") == 0


def test_no_list_is_written_of_a_table_that_is_not_the_one_that_was_drawn_from(place, capsys):
    labelled(place, "--id", "candidate")
    assert run("label", "status", "work.json", "--shortlist", "list.csv") == 0
    Path("list.csv").unlink()
    names, *rows = Path("candidates.csv").read_text().splitlines()
    by_score = [names, *sorted(rows, key=lambda row: row.rsplit(",", 1)[1])]  # as people sort their tables
    told = sl.Labelling.load("work.json")
    scores = np.array([float(row.rsplit(",", 1)[1]) for row in rows])
    unseen = next(row for row in np.argsort(scores).tolist() if row not in told.drawn)
    better = [names, *rows]
    better[unseen + 1] = ",".join([*rows[unseen].split(",")[:-1], "99"])  # nobody drew it: the count tells
    other = [names, *rows]
    other[told.drawn[0] + 1] = "somebody" + rows[told.drawn[0]]
    for changed, why in ((by_score, "row"), (better, "are certified"), (other, "somebody")):
        Path("candidates.csv").write_text("\n".join(changed) + "\n")
        capsys.readouterr()
        assert run("label", "status", "work.json", "--shortlist", "list.csv") == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "The collection has changed since" in said
        assert why in said
        assert not Path("list.csv").exists()
    assert told.select(scores).sum() == told.listed
    scores[unseen] = 99
    with pytest.raises(sl.InvalidInput, match="expected those of the collection"):
        told.select(scores)


def test_a_sheet_whose_rows_were_mixed_up_is_refused_and_one_without_leading_zeros_is_not(place, capsys):
    lines = Path("candidates.csv").read_text().splitlines()
    Path("candidates.csv").write_text(
        "\n".join([lines[0], *(f"{at:04},{line.partition(',')[2]}" for at, line in enumerate(lines[1:]))])
    )
    start = ("label", "start", "candidates.csv", "--precision", "0.5", "--labels", "60")
    assert run(*start, "--id", "candidate", "-o", "work.json") == 0
    assert run("label", "next", "work.json", "-o", "sheet.csv") == 0
    fill("sheet.csv", place)
    names, *rows = Path("sheet.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    mixed = [[cells[at - 1][0], *each[1:]] for at, each in enumerate(cells)]  # one column moved alone
    Path("sheet.csv").write_text("\n".join([names, *(",".join(each) for each in mixed)]))
    assert run("label", "record", "work.json", "sheet.csv") == 2
    assert "column 'candidate': spreadsheet row 2 has" in " ".join(capsys.readouterr().err.split())
    plain = [[each[0], str(int(each[1])), *each[2:]] for each in cells]  # as Excel saves 0012
    Path("sheet.csv").write_text("\n".join([names, *(",".join(each) for each in plain)]))
    assert run("label", "record", "work.json", "sheet.csv") == 0


def test_a_sheet_is_written_in_no_form_that_does_not_come_back(place, capsys):
    assert (
        run("label", "start", "candidates.csv", "--precision", "0.5", "--labels", "60", "-o", "work.json")
        == 0
    )
    for name in ("sheet.jsonl", "sheet.parquet", "sheet.csv.gz"):
        assert run("label", "next", "work.json", "-o", name) == 2
        assert f"expected a name ending in .csv, .tsv or .xlsx, got '{name}'" in capsys.readouterr().err
        assert not Path(name).exists()


def test_a_state_given_for_another_kind_of_file_is_called_what_it_is(place, capsys):
    assert (
        run("label", "start", "candidates.csv", "--precision", "0.5", "--labels", "60", "-o", "work.json")
        == 0
    )
    assert run("select", "candidates.csv", "--policy", "work.json", "-o", "list.csv") == 2
    assert "policy: work.json is a surelist labelling file" in capsys.readouterr().err
    assert run("stop", "status", "work.json") == 2
    assert "is not a surelist stop test file, it is a surelist labelling file" in capsys.readouterr().err


def test_a_stop_test_goes_on_with_the_table_that_it_began_with_alone(place, capsys):
    assert run("stop", "start", "candidates.csv", "--found", "150", "--recall", "0.9", "-o", "stop.json") == 0
    whole = Path("candidates.csv").read_text()
    Path("candidates.csv").write_text(whole + "late,50,north,0.5\n")
    assert run("stop", "next", "stop.json", "-o", "sheet.csv") == 2
    assert "has 1,501 rows, and had 1,500 when the test began" in " ".join(capsys.readouterr().err.split())
    assert not Path("sheet.csv").exists()
    Path("candidates.csv").write_text(whole)
    assert run("stop", "next", "stop.json", "-o", "sheet.csv") == 0
