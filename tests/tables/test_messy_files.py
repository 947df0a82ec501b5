"""Tables as people keep them: nothing of them is certified that is not what they show."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

import surelist as sl
from surelist.tables.csv_text import TOTALS, require_no_total
from surelist.tables.profile import profile
from surelist.tables.sources import open_table
from tests.helpers.workbooks import ods, xls
from tests.tables.test_any_file import LABELS, SCORES, book, calibrate, expected, refused, rows

ENGINES = ("duckdb", "polars")


def written(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def lines() -> list[str]:
    return [f"c{i},{s},{y}" for i, (s, y) in enumerate(zip(SCORES, LABELS, strict=True))]


def sentence(path: Path) -> str:
    return sl.read_table(path, score="score").sentences[0]


# -- other workbooks


@pytest.mark.parametrize("write", [ods, xls])
def test_old_and_open_workbooks_are_read(tmp_path, write):
    path = write(tmp_path / f"past.{write.__name__}", rows(float, float))
    assert calibrate(path).threshold == expected().threshold
    assert sentence(path).startswith("Read: sheet 'S'")


# -- titles, cells with errors


def with_errors() -> list[list[Any]]:
    made = rows(float, float)
    made[3][1], made[7][2] = "#DIV/0!", "#N/A"
    return made


def excel_errors(path: Path, made: list[list[Any]]) -> Path:
    workbook = xlsxwriter.Workbook(str(path))
    workbook.add_worksheet("Notes & more").write_formula(0, 0, "=1/0", None, "#DIV/0!")
    sheet = workbook.add_worksheet("S")
    for at, row in enumerate(made):
        for column, cell in enumerate(row):
            if str(cell).startswith("#"):
                sheet.write_formula(at, column, "=1/0", None, cell)
            else:
                sheet.write(at, column, cell)
    workbook.close()
    return path


def test_a_title_above_the_names_is_no_name(tmp_path):
    made = [["Klinik Süd"], [], ["Stand 1.11."], *rows(float, float)]
    path = ods(tmp_path / "past.ods", [row or [None] for row in made])
    assert sentence(path) == "Read: sheet 'S', column names in row 4 below 'Klinik Süd'."
    made[5][1] = "#N/A"
    with pytest.raises(sl.InvalidInput, match=r"column 'score'.*1 row \(spreadsheet row 6"):
        calibrate(ods(tmp_path / "bad.ods", [row or [None] for row in made]))


@pytest.mark.parametrize(
    "second", [["a", 0.4, 1], ["a", "0,4", "1"], ["a", "b", None], ["a", "b", "1.234,5 %"]]
)
def test_a_row_of_data_is_not_taken_for_names(tmp_path, second):
    """Where names are missing, the first row of candidates must not become them."""
    made = [["Kennung", None, None], second, ["b", "0,5", "0"], ["c", "0,6", "1"]]
    with pytest.raises(sl.InvalidInput, match="B1 has no column name"):
        sentence(ods(tmp_path / "past.ods", made))


def test_errors_stop_a_calibration_as_empty_cells_do(tmp_path):
    made = with_errors()
    with pytest.raises(sl.InvalidInput, match=r"column 'score'.*1 row \(spreadsheet row 4"):
        calibrate(excel_errors(tmp_path / "past.xlsx", made), sheet="S")
    made[3][1] = 0.5
    with pytest.raises(sl.InvalidInput, match=r"missing labels.*1 row \(spreadsheet row 8"):
        calibrate(excel_errors(tmp_path / "again.xlsx", made), sheet="S")


# -- names and totals


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_twice_in_a_csv_is_refused_and_not_the_first_taken(tmp_path, engine):
    path = written(tmp_path / "a.csv", "score, score ,label", ["0.1,0.9,1", "0.2,0.8,0"])
    with pytest.raises(sl.InvalidInput, match="'score' appears twice, in columns 1 and 2"):
        open_table(path, engine)
    folder = tmp_path / "many"
    folder.mkdir()
    written(folder / "a.csv", "score,label", ["0.1,1"])
    written(folder / "b.csv", "score,score", ["0.1,1"])
    with pytest.raises(sl.InvalidInput, match=r"b\.csv: the column name 'score' appears twice"):
        open_table(folder, engine)


@pytest.mark.parametrize("word", ["Total", " TOTAL: ", "Summe", "Mittelwert", "Grand total", "average"])
def test_a_total_below_the_data_is_no_candidate(tmp_path, word):
    total = [word, sum(SCORES), 1]
    said = f"the last row looks like a total, not like a candidate: it begins with {word.strip()!r}"
    path = book(tmp_path / "a.xlsx", {"S": [*rows(float), [], total]})
    assert f"row {len(SCORES) + 3}: {said}" in refused(path)
    for ending in ("", "\n", "\n\n  \n"):
        path = written(tmp_path / "a.csv", "id,score,label", [*lines(), ",".join(map(str, total)) + ending])
        assert said in refused(path)
    path.write_text("\r\n".join(["id;score;label", "c1;0,5;1", f"{word};0,5;1"]), encoding="utf-16")
    assert said in refused(path)


def test_candidates_who_are_called_so_are_not_refused():
    for row in (["Totalis"], ["c1", "total"], [3.0, "sum"], [], ["", None]):
        require_no_total(row, "x")
    with pytest.raises(sl.InvalidInput):
        require_no_total([None, "", "Total"], "x")
    assert all(word == word.casefold().strip() for word in TOTALS)


def test_a_file_of_names_alone_has_no_last_row(tmp_path):
    path = written(tmp_path / "a.csv", "Total,score,label", [])
    assert open_table(path).columns == ["Total", "score", "label"]


# -- labels


def labelled(path: Path, texts: dict[int, list[str]]) -> Path:
    """Labels in turn from the spellings of 0 and of 1."""
    made = [
        f"c{i},{s},{texts[y][i % len(texts[y])]}" for i, (s, y) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    return written(path, "id,score,label", made)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("yes", "spellings"),
    [
        ("yes", {1: ["yes", "Yes\u00a0", "\u2003YES", "yes"], 0: ["no", "\u00a0no"]}),
        ("ja", {1: ["Ja", "ja"], 0: ["Nein"]}),
        ("1", {1: ["1", "1.0", " 1"], 0: ["0", "0.0"]}),
        ("geprüft", {1: ["GEPRÜFT", "Geprüft"], 0: ["offen"]}),
    ],
)
def test_labels_count_as_they_are_said_to(tmp_path, engine, yes, spellings):
    path = labelled(tmp_path / "a.csv", spellings)
    said = sl.read_table(path, score="score", label="label", read=sl.Read(pos_label=yes)).sentences[-1]
    assert f"means qualified ({sum(LABELS)} rows)" in said
    policy = calibrate(path, pos_label=yes, engine=engine)
    assert policy.cutoffs[0].qualified == sum(LABELS)
    assert policy.threshold == expected().threshold


@pytest.mark.parametrize("word", ["n/a", "N/A", "NA", "#N/A", "#DIV/0!", "null", "nan", " ? "])
def test_words_for_no_label_are_no_labels(tmp_path, word):
    made = rows(float, lambda y: "yes" if y else "no")
    for at in (3, 5, 9):
        made[at][2] = word
    path = book(tmp_path / "a.xlsx", {"S": made})
    with pytest.raises(sl.InvalidInput, match=r"missing labels.*3 rows \(spreadsheet row 4"):
        calibrate(path, pos_label="yes")
    kept = calibrate(path, pos_label="yes", missing_labels="unqualified")
    assert kept.cutoffs[0].qualified == sum(y for at, y in enumerate(LABELS, 1) if at not in (3, 5, 9))
    said = sl.read_table(path, score="score", label="label", read=sl.Read(pos_label="yes")).sentences[-1]
    assert said.endswith(("; empty: 3 rows.", f"; no label: {word.strip()!r} (3 rows)."))


def test_a_word_that_was_said_to_mean_qualified_is_a_label(tmp_path):
    path = labelled(tmp_path / "a.csv", {1: ["NA"], 0: ["-"]})
    assert calibrate(path, pos_label="na").cutoffs[0].qualified == sum(LABELS)


# -- scores


@pytest.mark.parametrize(
    "cell", [datetime.date(2026, 3, 1), True, "1,234.56", "#DIV/0!", "n/a", "80 %", "12.03."]
)
def test_a_cell_that_is_no_score_is_refused_with_its_row(tmp_path, cell):
    made = rows(lambda s: str(s).replace(".", ","))
    made[4][1] = cell
    said = refused(book(tmp_path / "a.xlsx", {"S": made}))
    assert "spreadsheet row 5" in said or "percent sign ('80 %')" in said


def test_dates_are_no_scores(tmp_path):
    made = rows(lambda s: datetime.date(2026, 1, 1) + datetime.timedelta(days=int(1000 * s)))
    assert "expected numbers, got a column of type Date" in refused(book(tmp_path / "a.xlsx", {"S": made}))


@pytest.mark.parametrize(
    ("header", "row", "guess"),
    [
        ("id,age,score,qualified", "c{i},{i},0.{i:03},{y}", "score"),
        ("id,score_old,score,qualified", "c{i},0.{i:03},n/a {i},{y}", None),
        ('id,score_old,score,qualified', 'c{i},0.{i:03},"0,{i:03}",{y}', "score"),
        ("id,age,match_score,score_old,qualified", "c{i},{i},0.{i:03},0.5{i},{y}", None),
        ("id,age,points,qualified", "c{i},{i},0.{i:03},{y}", None),
    ],
    ids=["named", "named one is no number", "decimal comma", "two alike", "no name"],
)  # fmt: skip
def test_a_score_column_is_guessed_where_name_and_shape_decide_and_never_in_place_of_another(
    tmp_path, header, row, guess
):
    made = [row.format(i=i, y=i % 2) for i in range(100, 160)]
    guesses = profile(written(tmp_path / "past.csv", header, made)).guesses
    assert guesses["score"] == guess
    assert guesses["label"] == "qualified"


def test_a_label_is_not_guessed_where_two_columns_are_named_as_well(tmp_path):
    path = written(tmp_path / "past.csv", "score,decision,qualified", [f"0.{i},1,0" for i in range(1, 9)])
    assert profile(path).guesses["label"] is None


# -- folders of files that are not alike


def test_files_of_a_folder_that_are_not_alike_are_named_with_how_they_differ(tmp_path):
    first = written(tmp_path / "a.csv", "id,score,label", lines())
    for header, change, why in (
        ("id,points,label", str, f"has no column 'score', and {first} has one"),
        (
            "id;score;label",
            lambda line: line.replace(",", ";"),
            f"has ';' between values, and {first} has ','",
        ),
    ):
        written(tmp_path / "b.csv", header, [change(line) for line in lines()])
        with pytest.raises(sl.InvalidInput) as caught:
            calibrate(tmp_path)
        assert f"{tmp_path / 'b.csv'}: {why}" in str(caught.value)


def test_names_that_differ_in_case_alone_are_refused_and_not_numbered(tmp_path):
    path = written(tmp_path / "past.csv", "id,Score,score", lines())
    with pytest.raises(
        sl.InvalidInput, match="the column name 'Score' or 'score' appears twice, in columns 2 and 3"
    ):
        calibrate(path)
