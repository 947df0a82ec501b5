"""Files as people have them: titles above the names, odd names, line ends, folders, addresses."""

from __future__ import annotations

import http.server
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

import surelist as sl
from surelist.cli import run
from surelist.tables.engines.duckdb import _LIMITS
from surelist.tables.hints import Hints
from surelist.tables.profile import shape
from surelist.tables.sources import open_table
from tests.helpers.engines import Engine, arrow

ROWS = [(n / 200, n % 2) for n in range(200)]
TARGET = sl.Expected(5, 100)
POLICY = sl.calibrate([score for score, _ in ROWS], [label for _, label in ROWS], TARGET)


def calibrate(table: object, score: str = "score", **options: object) -> sl.Policy:
    return sl.calibrate_table(table, score=score, label="label", target=TARGET, **options)


def lines(mark: str = ",", end: str = "\n") -> str:
    return "".join(f"{score}{mark}{label}{end}" for score, label in ROWS)


def book(path: Path, cells: Sequence[Sequence[object]]) -> Path:
    made = xlsxwriter.Workbook(str(path))
    sheet = made.add_worksheet("Past")
    for number, row in enumerate(cells):
        sheet.write_row(number, 0, row)
    made.close()
    return path


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    "name", ["score\n(0 to 1)", "score\n(0; 1; 2, 3)", "a;b;c\nd", "three\nlines; of\nit"]
)
def test_a_heading_may_hold_a_line_break(tmp_path: Path, name: str, engine: str) -> None:
    path = tmp_path / "past.csv"
    path.write_text(f'"{name}","label"\n{lines()}')
    assert calibrate(path, name, read=sl.Read(engine=engine)).threshold == POLICY.threshold
    assert shape(path)[1] == [name, "label"]


@pytest.mark.parametrize("inside", ["\n", "\r\n"])
def test_a_heading_may_hold_a_line_break_of_another_kind_than_its_lines_end_in(tmp_path, inside) -> None:
    """Excel writes LF inside a cell and CR LF after a row."""
    end = "\r\n"
    path, output = tmp_path / "past.csv", tmp_path / "list.csv"
    rows = lines().replace("\n", end)
    path.write_bytes(f'"score{inside}(0; 1)","label"{end}{rows}"0.999","0"{end}'.encode())
    assert shape(path)[1] == [f"score{inside}(0; 1)", "label"]
    policy = calibrate(path, f"score{inside}(0; 1)")
    assert policy.cutoffs[0].rows == rows.count(end) + 1
    sl.select_table(path, policy, output=output)
    assert output.read_bytes().endswith(end.encode())


@pytest.mark.parametrize(
    "titles",
    [
        "Candidates of 2024\n",
        "Candidates of 2024,\n,\n",
        '"Candidates, all"\n\nas of May\n',
        "Report\r\n\r\n",
    ],
)
def test_a_title_above_the_names_of_a_csv_is_found_as_in_excel(tmp_path: Path, titles: str) -> None:
    path = tmp_path / "past.csv"
    path.write_bytes(f"{titles}score,label\n{lines()}".encode())
    policy = calibrate(path)
    assert policy.threshold == POLICY.threshold
    row = titles.count("\n") + 1
    said = titles.splitlines()[0].strip('",')
    assert policy.reading == (f"Read: column names in row {row} below {said!r}.",)


def test_rows_below_a_title_are_counted_from_the_first_line_people_see(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text(f"Candidates\n\nscore,label\n{lines()}oops,1\n")
    with pytest.raises(sl.InvalidInput, match="spreadsheet row 204: score='oops'"):
        calibrate(path)


def test_the_row_of_names_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    above = "exported,by;me\n2024,x;1;2\n"
    path.write_text(f"{above}score;label\n{lines(';')}")
    with pytest.raises(sl.InvalidInput):
        calibrate(path)
    policy = calibrate(path, read=sl.Read(header_row=3))
    assert policy.threshold == POLICY.threshold
    said = "column names in row 3 below 'exported,by;me'"
    assert policy.reading == (f"Read: values between semicolons, {said}.",)
    cells = [["exported", "by", "me"], [2024, 1, 2], [], ["score", "label"], *map(list, ROWS)]
    workbook = book(tmp_path / "past.xlsx", cells)
    policy = calibrate(workbook, read=sl.Read(header_row=4))
    assert policy.threshold == POLICY.threshold
    assert "column names in row 4 below 'exported'" in policy.reading[0]
    output = tmp_path / "list.csv"
    asked = ["--score", "score", "--expect", "5", "--pool-size", "100", "-o", str(tmp_path / "p.json")]
    assert run(["calibrate", str(path), "--label", "label", "--header-row", "3", *asked]) == 0
    select = ["select", str(path), "--policy", str(tmp_path / "p.json"), "-o", str(output)]
    assert run([*select, "--header-row", "3"]) == 0
    assert output.read_text().splitlines()[0] == "score;label"


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("past.csv", 0, "header_row: expected a row from 1 on, got 0"),
        ("past.csv", 900, "header_row: .*past.csv has no column names in row 900"),
        ("past.csv", 10**30, "header_row: .*past.csv has no column names in row 1000000"),
        ("past.xlsx", 900, "header_row: sheet 'Past' of .*past.xlsx has no column names in row 900"),
        ("past.parquet", 1, "header_row: goes with CSV and Excel files"),
        ("*.csv", 900, "header_row: .*other.csv has no column names in row 900"),
    ],
)
def test_a_row_of_names_that_cannot_be_is_refused(tmp_path: Path, name: str, row: int, said: str) -> None:
    for file in ("past.csv", "other.csv"):
        (tmp_path / file).write_text("score,label\n" + lines())
    book(tmp_path / "past.xlsx", [["score", "label"], *map(list, ROWS)])
    pl.DataFrame({"score": [0.5], "label": [1]}).write_parquet(tmp_path / "past.parquet")
    with pytest.raises(sl.InvalidInput, match=said):
        calibrate(f"{tmp_path}/{name}", read=sl.Read(header_row=row))


@pytest.mark.parametrize(
    ("encoding", "title"),
    [("utf-8", "Past candidates\n\n"), ("utf-16", ""), ("cp1252", "Ergebnisse für März\n")],
)
def test_several_files_are_each_read_as_they_are(tmp_path: Path, encoding: str, title: str) -> None:
    halves = lines().splitlines(keepends=True)[:120], lines().splitlines(keepends=True)[120:]
    for year, half, above in zip((2023, 2024), halves, (title, ""), strict=True):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        text = f"{above}score,label\n{''.join(half)}"
        (folder / "past.csv").write_bytes(text.encode(encoding if year == 2023 else "utf-8"))
    assert calibrate(tmp_path).threshold == POLICY.threshold
    table = open_table(tmp_path)
    assert table.columns == ["score", "label", "year"]
    assert table.paths == tuple(str(tmp_path / f"year={year}" / "past.csv") for year in (2023, 2024))
    pattern = f"{tmp_path}/year=2023/*.csv"
    assert len(table.engine.rows(open_table(pattern).frame)) == 120
    (tmp_path / "year=2024" / "past.csv").write_text("score,label\n0.5,1\n0.7,1,2\n")
    with pytest.raises(sl.InvalidInput, match=r"year=2024/past.csv: expected 2 values in every row.*line 3"):
        calibrate(tmp_path)


def test_a_row_of_names_is_said_for_several_files(tmp_path: Path) -> None:
    halves = lines().splitlines(keepends=True)[:120], lines().splitlines(keepends=True)[120:]
    for name, half in zip("ab", halves, strict=True):
        (tmp_path / f"{name}.csv").write_text(f"one,two\nscore,label\n{''.join(half)}")
    assert calibrate(tmp_path, read=sl.Read(header_row=2)).threshold == POLICY.threshold


@pytest.mark.parametrize("text", ["score\n0.5\n0.25\n", "score\n0,84\n0,31\n", "score,\n0.5,x\n0.25,y\n"])
def test_a_column_of_its_own_is_no_title(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pool.csv"
    path.write_text(text)
    if "0,84" in text:
        with pytest.raises(sl.InvalidInput, match="expected 1 values in every row"):
            sl.select_table(path, POLICY, score="score")
        return
    assert sl.select_table(path, POLICY, score="score").candidates == 2


def test_a_txt_file_with_tabs_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "past.txt"
    path.write_text("score\tlabel\n" + lines("\t"))
    assert calibrate(path).threshold == POLICY.threshold
    sl.select_table(path, POLICY, score="score", output=tmp_path / "list.txt")
    assert (tmp_path / "list.txt").read_text().splitlines()[0] == "score\tlabel"


def test_a_txt_file_in_a_folder_of_tables_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("score,label\n" + lines())
    (tmp_path / "README.txt").write_text("what this is\n")
    assert calibrate(tmp_path).threshold == POLICY.threshold


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_byte_order_mark_and_line_ends_survive_select(tmp_path: Path, engine: str) -> None:
    path, output = tmp_path / "pool.csv", tmp_path / "list.csv"
    path.write_bytes(b'\xef\xbb\xbfscore,note\r\n0.99,"two\nlines, ""quoted"""\r\n0.98,plain\r\n0.1,x\r\n')
    done = sl.select_table(path, POLICY, score="score", output=output, read=sl.Read(engine=engine))
    assert output.read_bytes() == b'\xef\xbb\xbfscore,note\r\n0.99,"two\nlines, ""quoted"""\r\n0.98,plain\r\n'
    assert (done.candidates, done.shortlisted) == (3, 2)
    path.write_bytes(b"score,note\n0.99,x\n")
    sl.select_table(path, POLICY, score="score", output=output, read=sl.Read(engine=engine))
    assert output.read_bytes() == b"score,note\n0.99,x\n"


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_line_ends_survive_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    path, output = tmp_path / "pool.csv", tmp_path / "list.csv"
    path.write_bytes("score;größe\r\n0,99;ä\r\n0,1;ö\r\n".encode(encoding))
    sl.select_table(path, POLICY, score="score", output=output)
    assert output.read_bytes().decode(encoding) == "score;größe\r\n0,99;ä\r\n"


@pytest.mark.parametrize("engine", ["auto", "duckdb", "polars"])
def test_a_pattern_over_folders_keeps_the_column_that_the_folder_keeps(tmp_path: Path, engine: str) -> None:
    for site in ("a", "b"):
        (tmp_path / "past" / f"site={site}").mkdir(parents=True)
        scores, labels = zip(*ROWS, strict=True)
        table = pa.table({"score": scores, "label": labels})
        pq.write_table(table, tmp_path / "past" / f"site={site}" / "x.parquet")
    folder = tmp_path / "past"
    for source in (folder, f"{folder}/*/*.parquet", f"{folder}/site=*/x.parquet", f"{folder}/**/*.parquet"):
        assert open_table(str(source), engine).columns == ["score", "label", "site"], source
    assert open_table(f"{folder}/site=a/*.parquet", engine).columns == ["score", "label"]


def test_an_output_that_cannot_be_written_does_not_blame_the_input(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("score\n0.99\n0.1\n")
    frame = pd.DataFrame({"score": [0.99, 0.1]})
    for table in (path, frame, pl.from_pandas(frame)):
        with pytest.raises(sl.InvalidInput, match=r"^output: cannot write gopher://nowhere/list\.parquet"):
            sl.select_table(table, POLICY, score="score", output="gopher://nowhere/list.parquet")


def test_an_empty_column_without_a_name_is_left_out_of_a_workbook(tmp_path: Path) -> None:
    cells: list[list[object]] = [["score", None, "label", None]]
    cells += [[score, None, label, None] for score, label in ROWS]
    path = book(tmp_path / "past.xlsx", cells)
    assert calibrate(path).threshold == POLICY.threshold
    assert open_table(str(path)).columns == ["score", "label"]
    cells[5][1] = "stray"
    with pytest.raises(sl.InvalidInput, match="B1 has no column name, and cells below it are filled"):
        calibrate(book(tmp_path / "stray.xlsx", cells))


def test_percent_and_currency_of_a_workbook_survive_select(tmp_path: Path) -> None:
    path, output = tmp_path / "pool.xlsx", tmp_path / "list.xlsx"
    made = xlsxwriter.Workbook(str(path))
    sheet = made.add_worksheet("Pool")
    codes: list[object] = ["0.0%", 9, "#,##0.00 [$€-407]", 44, "0.000", None]
    formats = [None if code is None else made.add_format({"num_format": code}) for code in codes]
    sheet.write_row(2, 1, ["score", "share", "euro", "money", "plain", "none"])
    for row in range(3, 8):
        for at, each in enumerate(formats):
            sheet.write_number(row, at + 1, 1 - row / 1000, each)
    made.close()
    done = sl.select_table(path, POLICY, score="score", output=output, read=sl.Read(header_row=3))
    assert done.shortlisted == 5
    kept = {"score": "0.0%", "share": "9", "euro": "#,##0.00 [$€-407]", "money": "44"}
    assert (
        open_table(str(path), hints=Hints(header_row=3)).origin.formats
        == open_table(str(output)).origin.formats
        == kept
    )
    with zipfile.ZipFile(output) as file:
        first = re.findall(r'<c r="([A-H])2"(?: s="(\d+)")?>', file.read("xl/worksheets/sheet1.xml").decode())
        styles = re.findall(
            r'<xf numFmtId="(\d+)"', file.read("xl/styles.xml").decode().partition("<cellXfs")[2]
        )
        assert 'formatCode="0.0%"' in file.read("xl/styles.xml").decode()
    assert [int(styles[int(style or 0)]) for _, style in first][1::2] == [9, 44, 0]
    assert open_table(str(output)).engine.rows(open_table(str(output)).frame)[0][0] == 0.997


class _Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        data, asked = Path(self.translate_path(self.path)).read_bytes(), self.headers.get("Range")
        first, _, last = (asked or "bytes=0-").removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        part = data[start : int(last) + 1] if first and last else data[start:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_an_address_is_read_by_an_engine_that_can(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_LIMITS, "autoinstall_known_extensions", "false")
    scores, labels = zip(*ROWS, strict=True)
    pl.DataFrame({"score": scores, "label": labels}).write_parquet(tmp_path / "past.parquet")
    assert calibrate(f"{address}/past.parquet").threshold == POLICY.threshold
    for name in ("past.csv", "past.jsonl", "past.csv.gz"):
        said = f"^file: {address}/{name}: DuckDB reads addresses with its extension httpfs"
        with pytest.raises(sl.InvalidInput, match=said):
            calibrate(f"{address}/{name}")
    with pytest.raises(sl.InvalidInput, match=r"file: .*past.xlsx: workbooks are read from a disk only"):
        calibrate(f"{address}/past.xlsx")
    with pytest.raises(sl.InvalidInput, match=r"gopher://nowhere/past.parquet: cannot be read: "):
        calibrate("gopher://nowhere/past.parquet")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(sl.InvalidInput, match=r"gs://bucket/past.parquet: cannot be read: "):
        calibrate("gs://bucket/past.parquet")


@pytest.mark.parametrize("name", ["*", "^s.*$", "a'b", "a.b", "`x`", "a b", 'say "x"'])
def test_a_name_that_is_a_pattern_is_a_name_or_refused(engine: Engine, name: str) -> None:
    scores, labels = zip(*ROWS, strict=True)
    table = engine.table(arrow({name: list(scores), "label": list(labels)}))
    asked = {"score": name, "label": "label", "target": TARGET, **engine.options}
    patterns: dict[str, list[str]] = {
        "pandas": [],
        "pandas-nullable": [],
        "pyarrow": [],
        "polars": ["*", "^s.*$"],
    }
    patterns |= {each: ["*", "^s.*$"] for each in ("polars-lazy", "parquet-polars", "csv-polars")}
    if name in patterns.get(engine.name, ["*"]):
        with pytest.raises(sl.InvalidInput, match=r"takes this for a pattern of names. Rename it\."):
            sl.calibrate_table(table, **asked)
        return
    policy = sl.calibrate_table(table, **asked)
    assert policy.threshold == POLICY.threshold
    assert policy.columns is not None
    assert policy.columns["score"] == name
    listed = sl.select_table(table, policy, **engine.options).table
    assert engine.rows(listed)[0].keys() == {name, "label"}
    with pytest.raises(sl.InvalidInput, match=re.escape(f"the columns are {name!r}, 'label'")):
        sl.select_table(table, policy, score="other", **engine.options)
