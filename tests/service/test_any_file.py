"""Files as people have them, at the API and on the page: workbooks, encodings, labels in words."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import python_calamine as calamine

import surelist as sl
from tests.helpers.workbooks import ods, xls
from tests.tables.test_any_file import (
    LABELS,
    SCORES,
    _with_sheet,
    book,
    comma,
    csv_bytes,
    expected,
    ja,
    rows,
)

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ASKED = "score=score&label=label&k=3&pool_size=100"


def post(client, query: str, body: bytes, kind: str = EXCEL) -> Any:
    return client.post(f"/api/v1/{query}", content=body, headers={"content-type": kind})


TITLED = b"From,1 May\n\nscore,label\n" + b"".join(b"%.4f,%d\n" % (n / 200, n % 2) for n in range(200))


def test_the_row_of_names_is_said_at_the_api(local_client):
    refused = post(local_client, f"calibrate?{ASKED}", TITLED, "text/csv")
    assert refused.status_code == 400
    made = post(local_client, f"calibrate?{ASKED}&header_row=3", TITLED, "text/csv").json()
    assert made["policy"]["cutoffs"][0]["rows"] == 200
    pool = TITLED.replace(b"From", b"Until")
    listed = post(local_client, f"policies/{made['hash']}/select?header_row=3", pool, "text/csv")
    assert listed.text.splitlines()[0] == "score,label"
    for row, said in ((0, "header_row"), (900, "no column names in row 900")):
        assert said in post(local_client, f"calibrate?{ASKED}&header_row={row}", TITLED, "text/csv").text
    parquet = io.BytesIO()
    pl.DataFrame({"score": [0.5], "label": [1]}).write_parquet(parquet)
    kind = "application/vnd.apache.parquet"
    wrong = post(local_client, f"calibrate?{ASKED}&header_row=3", parquet.getvalue(), kind).json()["error"]
    assert "header_row: goes with CSV and Excel files; the upload is none" in wrong["message"]


def test_the_row_of_names_is_said_on_the_page(local_client, tmp_path):
    start = local_client.get("/new")
    fields = {"csrf": token(start.text), "header_row": "3"}
    columns = local_client.post("/drafts", data=fields, files={"file": ("past.csv", TITLED)})
    assert "column names in row 3 below 'From,1 May'" in text(columns)
    for row, said in (("x", "from 1 on"), ("900", "no column names in row 900")):
        wrong = {**fields, "header_row": row}
        refused = local_client.post("/drafts", data=wrong, files={"file": ("past.csv", TITLED)})
        assert refused.status_code == 400
        assert said in text(refused)
    cells = [["From", "1 May"], ["score", "label"], [0.5, 1], [0.7, 0]]
    two = book(tmp_path / "two.xlsx", {"Notes": [["Hello"]], "Data": cells}).read_bytes()
    sheets = upload(local_client, "two.xlsx", two)
    chosen = {"csrf": token(sheets.text), "sheet": "Data", "header_row": "2"}
    assert "column names in row 2" in text(local_client.post(f"{sheets.url}/sheet", data=chosen))


@pytest.fixture
def german(tmp_path: Path) -> bytes:
    return book(tmp_path / "past.xlsx", {"Notizen": [["Hallo"]], "Daten": rows(comma, ja)}).read_bytes()


@pytest.mark.slow
def test_a_workbook_at_the_api(local_client, german, tmp_path):
    refused = post(local_client, f"calibrate?{ASKED}", german).json()["error"]["message"]
    assert "2 sheets with content: 'Notizen', 'Daten'" in refused
    assert "body-" not in refused
    refused = post(local_client, f"calibrate?{ASKED}&sheet=Daten", german).json()["error"]["message"]
    assert "'Ja' (" in refused
    assert "pos_label=" in refused
    made = post(local_client, f"calibrate?{ASKED}&sheet=Daten&pos_label=Ja", german).json()
    assert made["policy"]["cutoffs"][0]["steps"][0]["threshold"] == expected().threshold
    assert any("(decimal comma)" in each for each in made["policy"]["reading"])
    pool = book(tmp_path / "pool.xlsx", {"Pool": [["score", "name"], *([comma(s), "=1+1"] for s in SCORES)]})
    listed = post(local_client, f"policies/{made['hash']}/select", pool.read_bytes())
    assert listed.headers["content-type"] == EXCEL
    cells = (
        calamine.CalamineWorkbook.from_filelike(io.BytesIO(listed.content)).get_sheet_by_index(0).to_python()
    )
    assert [row[0] for row in cells[1:]] == [s for s in SCORES if s >= expected().threshold]
    entry = local_client.get("/api/v1/log").json()[0]
    assert "(decimal comma)" in " ".join(entry["details"]["reading"])
    left = [each.name for each in (tmp_path / "data" / "spool").iterdir() if each.suffix != ".lock"]
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_csv_as_excel_writes_it_at_the_api(local_client, encoding):
    body = csv_bytes(encoding, label=ja)
    made = post(local_client, f"calibrate?{ASKED}&pos_label=ja", body, "text/csv").json()
    assert made["policy"]["cutoffs"][0]["qualified"] == sum(LABELS)
    listed = post(local_client, f"policies/{made['hash']}/select", body, "text/csv")
    assert listed.status_code == 200
    assert "größe" in listed.content.decode(encoding)
    curve = post(local_client, "curve?score=score&label=label&pos_label=Ja", body, "text/csv")
    assert curve.json()["rows"] == 300


@pytest.mark.parametrize("write", [ods, xls])
def test_old_and_open_workbooks_are_uploaded_and_read(local_client, tmp_path, write):
    body = write(tmp_path / "past", rows(float, float)).read_bytes()
    made = post(local_client, f"calibrate?{ASKED}", body).json()
    assert made["policy"]["cutoffs"][0]["steps"][0]["threshold"] == expected().threshold
    page = upload(local_client, f"past.{write.__name__}", body)
    assert page.url.path.startswith("/drafts/")
    assert "sheet 'S'" in text(
        send(local_client, page, score="score", label="label", decimal="auto", check="1")
    )


@pytest.mark.parametrize("what", ["bomb", "far", "zip", "text", "locked"])
def test_nasty_workbooks_are_refused_in_our_words(local_client, tmp_path, what):
    bodies = {
        "bomb": lambda: _with_sheet(tmp_path / "a.xlsx", b"<worksheet>" + b" " * (70 << 20)).read_bytes(),
        "far": lambda: _with_sheet(
            tmp_path / "b.xlsx", b'<worksheet><c r="A1"/><c r="XFD1048576"/></worksheet>'
        ).read_bytes(),
        "zip": lambda: b"PK\x03\x04" + bytes(100),
        "text": lambda: b"score,label\n\x00\x00",
        "locked": lambda: b"\xd0\xcf\x11\xe0" + bytes(99) + "EncryptedPackage".encode("utf-16-le"),
    }
    answer = post(local_client, f"calibrate?{ASKED}", bodies[what]())
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    words = {
        "bomb": "times its size",
        "far": "reaches to row",
        "zip": "damaged",
        "text": "NUL",
        "locked": "password",
    }
    assert words[what] in message
    assert "the upload" in message or what == "text"
    assert list((tmp_path / "data" / "spool").iterdir()) == []


# -- the page


def token(page: str) -> str:
    return re.search(r'name="csrf" value="([^"]+)"', page)[1]


def upload(client, name: str, body: bytes, action: str = "/drafts", start: str = "/new") -> Any:
    return client.post(action, data={"csrf": token(client.get(start).text)}, files={"file": (name, body)})


def send(client, page: Any, **fields: Any) -> Any:
    return client.post(str(page.url).partition("?")[0], data={"csrf": token(page.text), **fields})


def text(page: Any) -> str:
    plain = re.sub(r"<script.*?</script>", "", page.text, flags=re.S)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain)))


COLUMNS = {"score": "score", "label": "label", "decimal": "auto"}


def hiring() -> bytes:
    rows = [f"{n / 300},{('Hired', 'Offer declined', 'Rejected', 'n/a')[n % 4]}" for n in range(300)]
    return "\n".join(["score,label", *rows, ""]).encode()


def test_several_values_of_the_label_may_count_on_the_page(local_client):
    columns = upload(local_client, "hiring.csv", hiring())
    boxes = re.findall(r'<input type="checkbox" id="v\d" name="pos_label" value="([^"]*)">', columns.text)
    assert sorted(boxes) == ["Hired", "Offer declined", "Rejected", "n/a"]
    shown = re.findall(r'name="label_shown" value="([^"]*)"', columns.text)
    assert sorted(shown) == ["Hired", "Offer declined", "Rejected"]  # n/a is no label
    sent: dict[str, Any] = {**COLUMNS, "labels": "unqualified", "pos_label_of": "label", "label_shown": shown}
    promise = send(local_client, columns, **sent, pos_label=["Hired", "Offer declined"])
    assert str(promise.url).endswith("/promise")
    said = text(promise)
    assert (
        "'Hired' and 'Offer declined' mean qualified (150 rows); not qualified: 'Rejected' (75 rows)" in said
    )
    assert "no label: 'n/a' (75 rows)" in said
    again = local_client.get(str(promise.url).removesuffix("/promise"))
    assert len(re.findall(r'name="pos_label" value="[^"]*" checked', again.text)) == 2


def test_several_labels_by_the_api(local_client):
    asked = "calibrate?score=score&label=label&k=5&pool_size=100&missing_labels=unqualified"
    refused = post(local_client, f"{asked}&pos_label=Hired", hiring(), "text/csv")
    assert refused.status_code == 400
    assert "'Offer declined' (75 rows), 'Rejected' (75 rows)" in refused.json()["error"]["message"]
    both = f"{asked}&pos_label=Hired&pos_label=Offer+declined"
    made = post(local_client, both, hiring(), "text/csv").json()
    named = post(local_client, f"{both}&neg_label=Rejected", hiring(), "text/csv").json()
    assert [each["policy"]["cutoffs"][0]["qualified"] for each in (made, named)] == [150, 150]


@pytest.mark.slow
def test_a_german_workbook_on_the_page(local_client, german):
    sheets = upload(local_client, "bewerber.xlsx", german)
    assert "Which sheet?" in sheets.text
    assert 'value="Daten"' in sheets.text
    columns = local_client.post(f"{sheets.url}/sheet", data={"csrf": token(sheets.text), "sheet": "Daten"})
    said = text(columns)
    assert "Read: sheet 'Daten' (of 2 sheets)." in said
    assert "numbers from 0." in said
    assert "is read as 0." in said
    assert "none empty" in said
    assert "Which values of “label” mean qualified?" in said
    assert f"Ja {sum(LABELS)} rows" in said
    assert "checked" not in re.search(r'<fieldset id="pos_label".*?</fieldset>', columns.text, re.S)[0]
    open_still = send(local_client, columns, **COLUMNS)
    assert open_still.status_code == 400
    assert "Choose below which values mean qualified" in text(open_still)
    elsewhere = send(local_client, columns, **COLUMNS, pos_label="Ja", pos_label_of="id")
    assert elsewhere.status_code == 400  # a value of another column says nothing
    promise = send(local_client, columns, **COLUMNS, pos_label="Ja", pos_label_of="label")
    assert str(promise.url).endswith("/promise")
    assert "'Ja' means qualified" in text(promise)
    assert "(decimal comma)" in text(promise)
    shown = re.search(r'name="shown" value="([^"]+)"', promise.text)[1]
    result = send(
        local_client,
        promise,
        shown=shown,
        promise="expected",
        k="3",
        pool_size="100",
        alpha="10",
        rule="exact",
    )
    assert "at least 3" in text(result)


def test_a_file_is_profiled_once(local_client, german, monkeypatch):
    from surelist.service import calibrating

    asked: list[str] = []

    def run(job, *args):
        asked.append(job.__name__)
        return job(*args)

    monkeypatch.setattr(calibrating, "run", run)
    page = upload(local_client, "past.csv", csv_bytes("utf-8"))
    for _ in range(3):
        assert local_client.get(str(page.url)).status_code == 200
    assert asked == ["profile"]


def test_problems_are_beside_their_field_with_the_rows_of_the_spreadsheet(local_client, tmp_path):
    made = rows(comma)
    for row in (17, 80, 93):
        made[row - 1][1] = "fehlt"
    made[4][2] = None
    page = upload(local_client, "past.xlsx", book(tmp_path / "past.xlsx", {"Past": made}).read_bytes())
    assert "3 cells are not numbers" in page.text
    assert "3 of its 300 values are not numbers" in text(page)
    answer = send(local_client, page, **COLUMNS)
    assert answer.status_code == 400
    beside = re.search(r'<div class="beside">.*?</div>', answer.text, re.S)[0]
    assert re.findall(r'<td class="n">(\d+)</td>', beside) == ["17", "80", "93"]
    assert 'aria-invalid="true"' in re.search(r'<select id="score"[^>]*>', answer.text)[0]
    listed = local_client.get(f"{page.url}/problems.xlsx")
    cells = (
        calamine.CalamineWorkbook.from_filelike(io.BytesIO(listed.content)).get_sheet_by_index(0).to_python()
    )
    assert cells[0] == ["row in the file", "problem", "id", "score", "label"]
    assert [(row[0], row[1]) for row in cells[1:]] == [
        (5, "no label"),
        (17, "no usable score"),
        (80, "no usable score"),
        (93, "no usable score"),
    ]


def test_an_ambiguous_column_is_asked_about_on_the_page(local_client):
    body = ("score;label\n" + "1,234;1\n2,345;0\n" * 30).encode()
    page = upload(local_client, "past.csv", body)
    answer = send(local_client, page, **COLUMNS)
    assert answer.status_code == 400
    assert "can be 2.345 or 2345" in text(answer) or "can be 1.234 or 1234" in text(answer)
    assert "Choose the decimal mark below." in text(answer)
    assert "decimal=" not in text(answer)
    assert str(send(local_client, page, **{**COLUMNS, "decimal": ","}).url).endswith("/promise")


def test_chosen_columns_come_first_in_the_preview(local_client):
    wide = [";".join(["id", *(f"c{i}" for i in range(60)), "score", "label"])]
    wide += [";".join([f"x{r}", *("1" for _ in range(60)), f"0,{r + 10}", str(r % 2)]) for r in range(20)]
    page = upload(local_client, "past.csv", "\n".join(wide).encode())
    heads = re.findall(r'<th class="pin">(\w+)', page.text)
    assert heads == ["score", "label", "id"]
    assert "33 more columns are not shown" in text(page)


def make_policy(client, body: bytes, name: str = "past.csv") -> str:
    page = upload(client, name, body)
    promise = send(client, page, **COLUMNS, pos_label="Ja", pos_label_of="label")
    shown = re.search(r'name="shown" value="([^"]+)"', promise.text)[1]
    asked = {"promise": "expected", "k": "3", "pool_size": "100", "alpha": "10", "rule": "exact"}
    result = send(client, promise, shown=shown, **asked)
    shown = re.search(r'name="shown" value="([^"]+)"', result.text)[1]
    action = str(result.url).replace("/result", "/save")
    return str(
        client.post(action, data={"csrf": token(result.text), "shown": shown, "name": "Herbst/2026"}).url
    )


@pytest.mark.slow
def test_lists_for_people_from_the_page(local_client, tmp_path):
    policy = make_policy(local_client, csv_bytes("cp1252", label=ja))
    pool_page = upload(local_client, "Pool März.csv", csv_bytes("cp1252", label=ja), f"{policy}/pool", policy)
    assert "Read: text in Windows-1252, values between semicolons." in text(pool_page)
    listed = send(local_client, pool_page, score="score", id="id", decimal="auto")
    assert "(decimal comma)" in text(listed)
    report = local_client.get(f"{policy}/report")
    assert "How the calibration file was read" in text(report)
    excel = local_client.get(f"{listed.url}/shortlist.xlsx")
    said = excel.headers["content-disposition"]
    assert re.search(r"Herbst-2026_Pool-M.*rz_20\d\d-\d\d-\d\d\.xlsx", said)
    cells = (
        calamine.CalamineWorkbook.from_filelike(io.BytesIO(excel.content)).get_sheet_by_index(0).to_python()
    )
    assert cells[0] == ["id", "score", "label", "größe", "shortlist_rank", "shortlist_reason"]
    kept = [score for score in SCORES if score >= expected().threshold]
    assert [row[1] for row in cells[1:]] == kept
    assert [row[4] for row in cells[1:]] == [1 + sum(other > score for other in kept) for score in kept]
    assert {row[5] for row in cells[1:]} == {f"score >= {expected().threshold!r}"}
    own = local_client.get(f"{listed.url}/shortlist.csv?safe=true").content.decode("cp1252").splitlines()
    assert own[0] == "id;score;label;größe;shortlist_rank;shortlist_reason"
    assert own[1].split(";")[1] == comma(kept[0])
    assert len(own) == len(kept) + 1
    review = local_client.get(f"{listed.url}/review")
    best = SCORES.index(max(SCORES))
    ranked = [int(each) for each in re.findall(r"\bc(\d+)\b", text(review))]
    assert ranked[0] == best  # the best score first, decimal commas or not


@pytest.mark.slow
def test_the_sandbox_leaves_nothing_on_the_real_record(local_client, tmp_path):
    start = local_client.get("/new").text
    page = local_client.post("/sandbox", data={"csrf": token(start)})
    assert "Nothing here is on the real record" in text(page)
    promise = send(local_client, page, score="score", label="qualified", decimal="auto")
    shown = re.search(r'name="shown" value="([^"]+)"', promise.text)[1]
    asked = {"promise": "expected", "k": "5", "pool_size": "100", "alpha": "10", "rule": "exact"}
    result = send(local_client, promise, shown=shown, **asked)
    shown = re.search(r'name="shown" value="([^"]+)"', result.text)[1]
    saved = local_client.post(
        str(result.url).replace("/result", "/save"), data={"csrf": token(result.text), "shown": shown}
    )
    pool_page = local_client.post(f"{saved.url}/pool", data={"csrf": token(saved.text), "example": "1"})
    listed = send(local_client, pool_page, score="score", id="candidate", decimal="auto")
    assert "candidates" in text(listed)
    boxed = local_client.get("/record").text
    assert "Sandbox." in boxed
    assert local_client.get("/api/v1/log").json() == []  # the API knows the real record only
    assert local_client.get("/api/v1/policies").json() == []
    other = type(local_client)(local_client.app, base_url="http://localhost")
    assert "Sandbox." not in other.get("/").text
    assert other.get(str(listed.url)).status_code == 404
    home = local_client.post("/sandbox/leave", data={"csrf": token(listed.text)})
    assert "Sandbox." not in home.text
    assert local_client.get(str(listed.url)).status_code == 404
    assert not any((tmp_path / "data" / "sandboxes").iterdir())
    assert not any((tmp_path / "data" / "spool").iterdir())
    assert local_client.get("/api/v1/log").json() == []


def test_templates_and_words(local_client):
    excel = local_client.get("/template.xlsx").content
    cells = calamine.CalamineWorkbook.from_filelike(io.BytesIO(excel)).get_sheet_by_index(0).to_python()
    assert cells[0] == ["candidate_id", "score", "qualified"]
    assert local_client.get("/template.csv").content.decode("utf-8-sig").splitlines()[0] == ",".join(cells[0])
    assert local_client.get("/template.pdf").status_code == 400
    assert "This month’s applicants".lower() in text(local_client.get("/glossary")).lower()
    page = upload(local_client, "past-candidates.xlsx", excel)
    assert "Which values of “qualified” mean qualified?" in text(page)


def test_a_number_in_json_is_that_number(local_client):
    rows = [{"score": (1000 + n) / 1000, "label": n % 2} for n in range(1, 300) if n % 10]
    answer = local_client.post(
        "/api/v1/calibrate?score=score&label=label&k=5&pool_size=100", json={"rows": rows}
    )
    assert answer.status_code == 201, answer.text
    plain = sl.calibrate([row["score"] for row in rows], [row["label"] for row in rows], sl.Expected(5, 100))
    assert answer.json()["policy"]["cutoffs"][0]["steps"][0]["threshold"] == plain.threshold


def test_a_heading_with_a_line_break_is_read_and_no_path_of_the_server_is_shown(local_client, tmp_path):
    head = '"score\n(0; to; 1)",label\n'
    body = (head + "".join(f"{n / 300},{n % 2}\n" for n in range(300))).encode()
    page = upload(local_client, "past.csv", body)
    assert page.status_code == 200
    assert "score (0; to; 1)" in text(page)
    assert str(tmp_path) not in page.text
    asked = "calibrate?score=score%0A(0;%20to;%201)&label=label&k=5&pool_size=100"
    assert post(local_client, asked, body, "text/csv").status_code == 201
    refused = post(local_client, f"calibrate?{ASKED}", body, "text/csv")
    assert refused.status_code == 400
    assert str(tmp_path) not in refused.text
    assert "spool" not in refused.text
    bad = upload(local_client, "bad.csv", body + b"1,2,3\n")
    assert str(tmp_path) not in bad.text
    assert "spool" not in text(bad)
