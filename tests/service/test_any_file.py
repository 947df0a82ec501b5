"""Files as people have them, at the API and on the page: workbooks, encodings, labels in words."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
import python_calamine as calamine

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


@pytest.fixture
def german(tmp_path: Path) -> bytes:
    return book(tmp_path / "past.xlsx", {"Notizen": [["Hallo"]], "Daten": rows(comma, ja)}).read_bytes()


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


def upload(client, name: str, body: bytes, action: str = "/drafts") -> Any:
    start = client.get("/new" if client.get("/new").status_code == 200 else "/").text
    return client.post(action, data={"csrf": token(start)}, files={"file": (name, body)})
