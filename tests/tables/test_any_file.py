"""Files as people have them: Excel sheets, encodings, decimal commas, labels in words. Real files, real readers."""

from __future__ import annotations

import datetime
import gzip
import io
import itertools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python_calamine as calamine
import xlsxwriter

import surelist as sl
from surelist._check import MissingLabels
from surelist.tables import excel
from surelist.tables.arrays import read_columns
from surelist.tables.hints import Hints
from surelist.tables.numbers import Ambiguous, NumberStyle, decide, shapes_of
from surelist.tables.sources import open_table

RNG = np.random.default_rng(3)
SCORES = [round(float(each), 3) for each in RNG.random(300)]
LABELS = [int(RNG.random() < score) for score in SCORES]
TARGET = sl.Expected(3, 100)


def book(path: Path, sheets: dict[str, list[Any]], hidden: tuple[str, ...] = ()) -> Path:
    made = xlsxwriter.Workbook(str(path))
    date = made.add_format({"num_format": "dd.mm.yyyy"})
    for name, rows in sheets.items():
        sheet = made.add_worksheet(name)
        if name in hidden:
            sheet.hide()
        for at, row in enumerate(rows):
            for column, cell in enumerate(row):
                if isinstance(cell, datetime.date):
                    sheet.write_datetime(at, column, cell, date)
                elif isinstance(cell, str):
                    sheet.write_string(at, column, cell)
                elif cell is not None:
                    sheet.write(at, column, cell)
    made.close()
    return path


def cells_of(path: Path) -> list[list[Any]]:
    return calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()


def rows(score: Any = str, label: Any = int) -> list[Any]:
    return [["id", "score", "label"]] + [
        [f"c{i}", score(s), label(y)] for i, (s, y) in enumerate(zip(SCORES, LABELS, strict=True))
    ]


def comma(score: float) -> str:
    return str(score).replace(".", ",")


def ja(label: int) -> str:
    return "Ja" if label else "Nein"


def csv_bytes(encoding: str, delimiter: str = ";", score: Any = comma, label: Any = int) -> bytes:
    lines = [delimiter.join(map(str, row)) for row in rows(score, label)]
    return (
        "\r\n".join([f"{lines[0]}{delimiter}größe", *(f"{x}{delimiter}Ä€" for x in lines[1:])]) + "\r\n"
    ).encode(encoding)


def expected() -> sl.Policy:
    return sl.calibrate(SCORES, LABELS, TARGET)


def calibrate(path: Path, missing_labels: MissingLabels = "error", **how: Any) -> sl.Policy:
    return sl.calibrate_table(
        path, score="score", label="label", target=TARGET, missing_labels=missing_labels, read=sl.Read(**how)
    )


# -- how numbers are written


STYLES = [
    (["0.84", "12"], NumberStyle(), [0.84, 12.0]),
    (["0,84", "12"], NumberStyle(","), [0.84, 12.0]),
    (["1.234,5", "7"], NumberStyle(",", "."), [1234.5, 7.0]),
    (["1,234.5", "7"], NumberStyle(".", ","), [1234.5, 7.0]),
    (["1 234,5", "7"], NumberStyle(",", " "), [1234.5, 7.0]),
    (["1\u202f234,5", "1\u00a0000,25"], NumberStyle(",", " "), [1234.5, 1000.25]),
    (["1'234.5", "1’234.25"], NumberStyle(".", "'"), [1234.5, 1234.25]),
    (["80.2 %", "7 %"], NumberStyle(".", "", True), [0.802, 0.07]),
    (["80,2%", "7%"], NumberStyle(",", "", True), [0.802, 0.07]),
    (["1,234", "0,5"], NumberStyle(","), [1.234, 0.5]),
    (["1,234", "0.5"], NumberStyle(".", ","), [1234.0, 0.5]),
    (["1.234", "0,5"], NumberStyle(",", "."), [1234.0, 0.5]),
    (["1.234.567", "1.234"], NumberStyle(",", "."), [1234567.0, 1234.0]),
    (["-0,5", "−1,25", "+2"], NumberStyle(","), [-0.5, -1.25, 2.0]),
    (["1e-3", "2.5E4"], NumberStyle(), [0.001, 25000.0]),
    (["0.841", "0.123"], NumberStyle(), [0.841, 0.123]),
    (["0,841", "0,123"], NumberStyle(","), [0.841, 0.123]),
]


@pytest.mark.parametrize(("texts", "style", "values"), STYLES, ids=lambda each: str(each)[:30])
def test_a_column_says_how_its_numbers_are_written(texts, style, values):
    decision = decide(shapes_of(texts))
    assert decision.style == style
    assert [style.value(text) for text in texts] == values
    assert decision.others == 0


@pytest.mark.parametrize(
    "texts", [["1,234"], ["1.234", "2.345", "7"], ["12,345 %"], ["0,84", "0.5", "1,234"], ["80 %", "0.8"]]
)
def test_what_can_be_read_in_two_ways_is_asked_for(texts):
    with pytest.raises(Ambiguous):
        decide(shapes_of(texts))


def test_the_order_in_which_an_engine_answers_changes_no_word():
    shapes = list(shapes_of(["0.5", "0.25%", "0.125%", "0.1%", "7%"]).items())
    messages = set()
    for order in itertools.permutations(shapes):
        with pytest.raises(Ambiguous) as caught:
            decide(dict(order))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_the_mark_that_was_said_decides():
    assert decide(shapes_of(["1,234"]), ",").value == 1.234
    assert decide(shapes_of(["1,234"]), ".").value == 1234.0


def test_cells_of_the_other_kind_are_no_numbers_rather_than_wrong_ones():
    decision = decide(shapes_of(["0.5", "0.25", "0,84"]))
    assert decision.style == NumberStyle()
    assert decision.others == 1
    assert NumberStyle(".", ",").value("1,23") is None
    assert NumberStyle(".", ",").value("12,34,567") is None


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(("texts", "style", "values"), STYLES, ids=lambda each: str(each)[:30])
def test_engines_read_numbers_as_python_does(tmp_path, texts, style, values, engine):
    path = tmp_path / "a.tsv"
    path.write_text("score\tx\n" + "".join(f"{text}\tx\n" for text in texts), encoding="utf-8")
    table = open_table(path, engine, hints=Hints(decimal=style.decimal))
    assert read_columns(table, {"score": "score"})["score"].tolist() == values


def test_an_ambiguous_column_is_refused_at_the_door_and_read_when_it_was_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("score;label\n" + "1,234;1\n2,345;0\n" * 30)
    with pytest.raises(
        sl.InvalidInput, match=r"'[12],[0-9]{3}' can be .* Say which mark is the decimal one: decimal=\",\""
    ):
        sl.calibrate_table(path, score="score", label="label", target=TARGET)
    assert (
        sl.calibrate_table(
            path, score="score", label="label", target=sl.Recall(0.5), read=sl.Read(decimal=",")
        ).threshold
        == 1.234
    )
    assert (
        sl.calibrate_table(
            path, score="score", label="label", target=sl.Recall(0.5), read=sl.Read(decimal=".")
        ).threshold
        == 1234
    )


def test_whole_numbers_first_and_a_thousand_later_is_not_read_as_one(tmp_path):
    """A sample of whole numbers decides nothing: 1.234 after a thousand of them is asked about."""
    path = tmp_path / "a.csv"
    path.write_text("score;label\n" + "850;1\n920;0\n" * 600 + "1.234;1\n")
    with pytest.raises(sl.InvalidInput, match=r"'1\.234' can be 1\.234 or 1234"):
        sl.calibrate_table(path, score="score", label="label", target=TARGET)


# -- encodings and separators


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("packed", [False, True])
def test_csv_as_excel_writes_it(tmp_path, encoding, delimiter, packed):
    path = tmp_path / ("past.csv.gz" if packed else "past.csv")
    content = csv_bytes(encoding, delimiter)
    path.write_bytes(gzip.compress(content) if packed else content)
    policy = calibrate(path)
    assert policy.threshold == expected().threshold
    assert "größe" in open_table(path).columns
    sentences = " ".join(policy.reading or ())
    assert "read as 0." in sentences
    assert ("UTF-16" in sentences) == encoding.startswith("utf-16")
    assert ("Windows-1252" in sentences) == (encoding == "cp1252")


def test_the_line_that_excel_puts_first_is_not_the_header(tmp_path):
    path = tmp_path / "past.csv"
    path.write_bytes(b"sep=;\r\n" + csv_bytes("utf-8"))
    assert calibrate(path).threshold == expected().threshold


def test_text_that_is_no_text_is_still_refused(tmp_path):
    path = tmp_path / "past.csv"
    path.write_bytes(b"score,label\n0.5,1\n\x00\x01\xff\n")
    with pytest.raises(sl.InvalidInput, match="UTF-8"):
        calibrate(path)


@pytest.mark.parametrize("engine", ["polars", "spark"])
def test_other_engines_are_not_asked_to_read_what_they_cannot(tmp_path, engine):
    path = tmp_path / "past.csv"
    path.write_bytes(csv_bytes("cp1252"))
    with pytest.raises(sl.InvalidInput, match="Leave it out"):
        calibrate(path, engine=engine)


def test_plain_files_get_no_sentences(tmp_path):
    path = tmp_path / "past.csv"
    path.write_bytes(csv_bytes("utf-8", ",", str))
    assert calibrate(path).reading is None


# -- workbooks


def test_a_workbook_with_numbers_dates_and_words(tmp_path):
    path = book(tmp_path / "past.xlsx", {"Past": rows(float)})
    policy = calibrate(path)
    assert policy.threshold == expected().threshold
    assert policy.reading == ("Read: sheet 'Past'.",)


def test_numbers_as_text_beside_real_ones(tmp_path):
    made = rows(comma, ja)
    made[1][1], made[5][1] = SCORES[0], SCORES[4]  # somebody corrected two of them
    path = book(tmp_path / "past.xlsx", {"Past": made})
    policy = calibrate(path, pos_label="ja")
    assert policy.threshold == expected().threshold
    assert any("(decimal comma)" in each for each in policy.reading)
    assert policy.columns["pos_label"] == "ja"


def test_ambiguous_text_beside_real_numbers_stays_ambiguous(tmp_path):
    made = [["score", "label"], ["1,234", 1], [0.5, 0], [7, 1]]
    path = book(tmp_path / "past.xlsx", {"Past": made})
    with pytest.raises(sl.InvalidInput, match=r"can be 1\.234 or 1234"):
        calibrate(path)
    assert read_columns(open_table(path, hints=Hints(decimal=",")), {"score": "score"})["score"].tolist() == [
        1.234,
        0.5,
        7,
    ]


def test_several_sheets_are_named_and_one_is_chosen(tmp_path):
    sheets = {"Deckblatt": [["Hallo"]], "Daten": rows(float), "Leer": [], "Geheim": rows(float)}
    path = book(tmp_path / "past.xlsx", sheets, hidden=("Geheim",))
    with pytest.raises(
        sl.InvalidInput, match=r"2 sheets with content: 'Deckblatt', 'Daten'\. Say which one with sheet="
    ):
        calibrate(path)
    assert calibrate(path, sheet="daten").threshold == expected().threshold
    assert calibrate(path, sheet="Geheim").threshold == expected().threshold
    with pytest.raises(sl.InvalidInput, match="no sheet 'Dat'; its sheets are 'Deckblatt'"):
        calibrate(path, sheet="Dat")


def test_a_hidden_sheet_is_not_taken_silently(tmp_path):
    path = book(tmp_path / "past.xlsx", {"Leer": [], "Geheim": rows(float)}, hidden=("Geheim",))
    with pytest.raises(sl.InvalidInput, match=r"is empty.*Hidden: 'Geheim'"):
        calibrate(path)


def test_sheet_goes_with_workbooks_only(tmp_path):
    path = tmp_path / "past.csv"
    path.write_bytes(csv_bytes("utf-8"))
    with pytest.raises(sl.InvalidInput, match="sheet: goes with Excel files"):
        calibrate(path, sheet="x")


def test_types_are_those_of_the_cells(tmp_path):
    day = datetime.date(2024, 1, 31)
    made = [["n", "x", "d", "b", "t", "mixed"], [1, 0.5, day, True, "007", 7], [2, 1, day, False, "", "007"]]
    table = open_table(book(tmp_path / "a.xlsx", {"A": made}))
    kinds = {name: str(kind) for name, kind in table.frame.collect_schema().items()}
    assert kinds == {
        "n": "Int64",
        "x": "Float64",
        "d": "Date",
        "b": "Boolean",
        "t": "String",
        "mixed": "String",
    }
    assert table.engine.rows(table.frame)[0] == (1, 0.5, day, True, "007", "7")


def test_cells_with_line_breaks_quotes_and_separators(tmp_path):
    texts = ['a"b\nc', "x;y,z", "one\r\ntwo", "'quoted'", "#1", "\\n", "null", " spaced "]
    table = open_table(book(tmp_path / "a.xlsx", {"A": [["text", "n"], *([each, 1] for each in texts)]}))
    read = [row[0].replace("\r", "") for row in table.engine.rows(table.frame)]
    assert read == [each.replace("\r", "") for each in texts]


def test_formulas_count_by_what_they_show(tmp_path):
    path = tmp_path / "a.xlsx"
    made = xlsxwriter.Workbook(str(path))
    sheet = made.add_worksheet()
    sheet.write_row(0, 0, ["score", "label"])
    sheet.write_formula(1, 0, "=1/4", None, 0.25)
    sheet.write_formula(1, 1, '=IF(A2>0,"Ja","Nein")', None, "Ja")
    made.close()
    table = open_table(path)
    assert table.engine.rows(table.frame) == [(0.25, "Ja")]


def test_rows_are_numbered_as_the_spreadsheet_shows_them(tmp_path):
    made = [[], ["score", "label"], [0.5, 1], [], [None, 0], ["n/a", 1], [], []]
    path = book(tmp_path / "past.xlsx", {"Past": made})
    with pytest.raises(
        sl.InvalidInput, match=r"2 rows \(spreadsheet row 5: .*; spreadsheet row 6: score='n/a'"
    ):
        calibrate(path)
    reading = sl.read_table(path, score="score")
    assert reading.sentences == (
        "Read: sheet 'Past', column names in row 2, 1 empty row skipped.",
        "score: 1 cell is not a number: row 6.",
    )


def test_rows_of_a_csv_are_numbered_with_its_blank_lines(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text('score,label,note\n0.5,1,"two\nlines"\n\n0.4,0,x\nhigh,1,x\n')
    with pytest.raises(sl.InvalidInput, match="spreadsheet row 5: score='high'"):
        calibrate(path)


def test_the_sentence_of_the_issue(tmp_path):
    made = rows(comma)
    for row in (17, 80, 93):
        made[row - 1][1] = "fehlt"
    reading = sl.read_table(book(tmp_path / "past.xlsx", {"Past": made}), score="score")
    assert reading.sentences[1].endswith("(decimal comma); 3 cells are not numbers: rows 17, 80, 93.")


def test_old_and_open_formats_where_the_reader_gives_them(tmp_path):
    assert excel.ENDINGS == (".xlsx", ".xlsm", ".xls", ".ods")
    path = book(tmp_path / "past.xlsx", {"Past": rows(float)})
    path.rename(tmp_path / "past.xlsm")
    assert calibrate(tmp_path / "past.xlsm").threshold == expected().threshold


# -- labels as they are


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("Ja", "Nein"), ("Eligible", "Screen failure"), ("2", "1")]
)
def test_labels_in_words(tmp_path, yes, no):
    path = tmp_path / "past.csv"
    path.write_bytes(csv_bytes("utf-8", ",", str, lambda label: yes if label else no))
    with pytest.raises(sl.InvalidInput) as caught:
        calibrate(path)
    assert f"{yes!r} ({sum(LABELS)} rows)" in str(caught.value)
    assert f"{no!r} ({300 - sum(LABELS)} rows)" in str(caught.value)
    assert "pos_label=" in str(caught.value)
    policy = calibrate(path, pos_label=yes.upper())
    assert policy.threshold == expected().threshold
    assert policy.cutoffs[0].qualified == sum(LABELS)


def test_an_empty_label_is_missing_and_never_not_qualified_silently(tmp_path):
    path = tmp_path / "past.csv"
    path.write_bytes(csv_bytes("utf-8", ",", str, lambda label: ja(label) if label else " "))
    with pytest.raises(sl.InvalidInput, match="missing labels"):
        calibrate(path, pos_label="Ja")
    assert calibrate(path, pos_label="Ja", missing_labels="unqualified").threshold == expected().threshold


def test_a_label_that_is_not_there_is_an_error_with_those_that_are(tmp_path):
    path = book(tmp_path / "past.xlsx", {"Past": rows(float, ja)})
    with pytest.raises(
        sl.InvalidInput, match=r"pos_label: no row of column 'label' has 'yes'; the values are 'Nein'|'Ja'"
    ):
        calibrate(path, pos_label="yes")


def test_labels_of_dataframes(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"score": SCORES, "label": [ja(each) for each in LABELS]}
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns), polars.LazyFrame(columns)):
        with pytest.raises(sl.InvalidInput, match="got text; the values are"):
            calibrate(frame)
        assert calibrate(frame, pos_label="Ja").threshold == expected().threshold
    numbers = pandas.DataFrame({"score": SCORES, "label": [each + 1.0 for each in LABELS]})
    assert calibrate(numbers, pos_label=2).threshold == expected().threshold


def test_the_policy_remembers_and_evaluates_with_the_same_label(tmp_path):
    path = book(tmp_path / "past.xlsx", {"Past": rows(comma, ja), "Other": [["x"]]})
    policy = calibrate(path, pos_label="Ja", sheet="Past")
    policy.save(tmp_path / "policy.json")
    again = sl.Policy.load(tmp_path / "policy.json")
    assert again.reading == policy.reading
    assert "means qualified" in again.describe()
    later = book(tmp_path / "later.xlsx", {"Past": rows(comma, ja)[:-7], "Other": [["x"]]})
    assert sl.evaluate_table(later, again, read=sl.Read(sheet="Past")).describe()
    from surelist.workflows.summaries import evidence_for

    assert evidence_for(again, path).recomputed


# -- nasty files


def refused(path: Path) -> str:
    with pytest.raises(sl.InvalidInput) as caught:
        calibrate(path)
    return str(caught.value)


def test_merged_cells_and_two_header_rows(tmp_path):
    path = tmp_path / "a.xlsx"
    made = xlsxwriter.Workbook(str(path))
    sheet = made.add_worksheet("S")
    sheet.merge_range(0, 0, 0, 1, "Results 2024")
    sheet.write(0, 2, "Past")
    sheet.write_row(1, 0, ["score", "age", "label"])
    sheet.write_row(2, 0, [0.5, 40, 1])
    made.close()
    assert "B1 has no column name" in refused(path)
    assert "unmerge" in refused(path)


def test_a_name_twice(tmp_path):
    path = book(tmp_path / "a.xlsx", {"S": [["score", "label", "Score"], [1, 1, 2]]})
    assert "the column name 'Score' appears twice, in A1 and C1" in refused(path)


def test_files_under_a_wrong_name(tmp_path):
    text = tmp_path / "a.xlsx"
    text.write_bytes(csv_bytes("utf-8"))
    assert "is no workbook, whatever its ending says" in refused(text)
    empty = tmp_path / "b.xlsx"
    empty.write_bytes(b"")
    assert "is empty" in refused(empty)
    real = book(tmp_path / "c.xlsx", {"S": rows(float)})
    named = tmp_path / "c.csv"
    named.write_bytes(real.read_bytes())
    assert "is an Excel workbook or a zip file, expected CSV" in refused(named)
    with zipfile.ZipFile(tmp_path / "d.xlsx", "w") as zipped:
        zipped.writestr("hello.txt", "hello")
    assert "a zip file without a workbook" in refused(tmp_path / "d.xlsx")
    (tmp_path / "e.xlsx").write_bytes(real.read_bytes()[:2000])
    assert "is damaged" in refused(tmp_path / "e.xlsx")


def test_a_workbook_with_a_password(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_bytes(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(600)
        + "EncryptedPackage".encode("utf-16-le")
        + bytes(4000)
    )
    assert "is protected by a password" in refused(path)


def _with_sheet(path: Path, xml: bytes) -> Path:
    """A real workbook whose sheet is replaced."""
    real = book(path.with_name("real.xlsx"), {"S": [["score", "label"]]})
    with zipfile.ZipFile(real) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            new.writestr(part.filename, xml if "worksheets/sheet1" in part.filename else old.read(part))
    return path


@pytest.mark.slow
def test_a_small_file_that_unfolds_to_a_large_one(tmp_path):
    path = _with_sheet(
        tmp_path / "bomb.xlsx", b"<worksheet><sheetData>" + b" " * (100 << 20) + b"</sheetData></worksheet>"
    )
    assert path.stat().st_size < 1 << 20
    assert "times its size" in refused(path)


def test_two_cells_in_far_corners(tmp_path):
    xml = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
        b"</sheetData></worksheet>"
    )
    path = _with_sheet(tmp_path / "far.xlsx", xml)
    assert "reaches to row 1,048,576 and column 16,384" in refused(path)
    assert "reaches to row" in refused(
        _with_sheet(
            tmp_path / "far2.xlsx",
            xml.replace(b'r="', b"r = '")
            .replace(b'"><v', b"'><v")
            .replace(b'6">', b"6'>")
            .replace(b'1">', b"1'>"),
        )
    )


# -- lists for people


def pool(path: Path) -> Path:
    made = [["id", "score", "note", "day"]] + [
        [f"00{i}", comma(score), "=1+1" if i % 2 else "-x", datetime.date(2024, 1, 1)]
        for i, score in enumerate(SCORES)
    ]
    return book(path, {"Pool": made})


def test_a_workbook_out_has_types_ranks_and_reasons_and_no_formulas(tmp_path):
    policy = expected().with_columns(score="score")
    done = sl.select_table(pool(tmp_path / "pool.xlsx"), policy, output=tmp_path / "list.xlsx")
    cells = cells_of(tmp_path / "list.xlsx")
    assert cells[0] == ["id", "score", "note", "day", "shortlist_rank", "shortlist_reason"]
    assert len(cells) == done.shortlisted + 1
    kept = [score for score in SCORES if score >= policy.threshold]
    assert [row[1] for row in cells[1:]] == kept  # numbers, in the pool's order
    ranks = [1 + sum(other > score for other in kept) for score in kept]
    assert [row[4] for row in cells[1:]] == ranks
    assert cells[1][3] == datetime.date(2024, 1, 1)
    assert {row[2] for row in cells[1:]} <= {"=1+1", "-x"}
    assert all(row[0].startswith("00") for row in cells[1:])
    with zipfile.ZipFile(tmp_path / "list.xlsx") as zipped:
        assert b"<f>" not in zipped.read("xl/worksheets/sheet1.xml")


def test_text_of_a_csv_becomes_numbers_only_where_nothing_is_lost(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text("score;plz;n;long\n0,9;01069;1.234,5;12345678901234567890\n0,8;80331;7;2\n")
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100)).with_columns(
        score="score"
    )
    sl.select_table(path, policy, output=tmp_path / "list.xlsx")
    cells = cells_of(tmp_path / "list.xlsx")
    assert cells[1][:4] == [0.9, "01069", 1234.5, "12345678901234567890"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_csv_out_is_written_as_the_pool_was(tmp_path, encoding):
    path = tmp_path / "pool.csv"
    path.write_bytes(csv_bytes(encoding))
    policy = expected().with_columns(score="score")
    done = sl.select_table(path, policy, output=tmp_path / "list.csv", reason=True, rank=True)
    lines = (tmp_path / "list.csv").read_bytes().decode(encoding).splitlines()
    assert lines[0] == "id;score;label;größe;shortlist_rank;shortlist_reason"
    assert len(lines) == done.shortlisted + 1
    assert "Ä€" in lines[1]
    assert "0," in lines[1]


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "lazy", "arrow"])
def test_ranks_are_the_same_everywhere(tmp_path, kind):
    import pandas
    import polars
    import pyarrow

    scores = [0.9, 0.5, 0.95, 0.9, 0.8, 0.1]
    columns = {"score": scores, "pool": ["a", "a", "b", "b", "b", "a"]}
    source: Any = {
        "pandas": lambda: pandas.DataFrame(columns),
        "polars": lambda: polars.DataFrame(columns),
        "lazy": lambda: polars.LazyFrame(columns),
        "arrow": lambda: pyarrow.table(columns),
        "csv": lambda: tmp_path / "p.csv",
        "parquet": lambda: tmp_path / "p.parquet",
    }[kind]()
    polars.DataFrame(columns).write_csv(tmp_path / "p.csv")
    polars.DataFrame(columns).write_parquet(tmp_path / "p.parquet")
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100))
    out = tmp_path / "out.csv"
    sl.select_table(source, policy, score="score", output=out, rank=True)
    listed = polars.read_csv(out)
    assert listed["score"].to_list() == [0.9, 0.95, 0.9]
    assert listed["shortlist_rank"].to_list() == [2, 1, 2]
    sl.select_table(source, policy, score="score", pool="pool", output=out, rank=True)
    assert polars.read_csv(out)["shortlist_rank"].to_list() == [1, 1, 2]


def test_what_excel_cannot_hold_is_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text(f"score,note\n0.9,{'x' * 32_768}\n0.95,y\n")
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100))
    with pytest.raises(sl.InvalidInput, match="a cell of Excel holds 32,767 characters; column 'note'"):
        sl.select_table(path, policy, score="score", output=tmp_path / "list.xlsx")
    with pytest.raises(sl.InvalidInput, match=r"output: expected a name ending in .*\.xlsx"):
        sl.select_table(path, policy, score="score", output=tmp_path / "list.ods")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pool.csv"]


def test_a_workbook_is_never_replaced_by_its_own_list(tmp_path):
    path = pool(tmp_path / "pool.xlsx")
    with pytest.raises(sl.InvalidInput, match="is the input"):
        sl.select_table(path, expected(), score="score", output=path)
    assert io.BytesIO(path.read_bytes()).read(2) == b"PK"
