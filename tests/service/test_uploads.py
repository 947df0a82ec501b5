"""Nasty uploads against a real server: each gives a clear answer, none a 500, none stays behind."""

from __future__ import annotations

import io
import time
from pathlib import Path

import duckdb
import httpx
import numpy as np
import pytest

from tests.helpers.service import BUSY, Server, csv_text, open_to_the_end, web_client

web = open_to_the_end(web_client(verify=False))  # one client: making its TLS context takes longest
CSV = {"content-type": "text/csv"}
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("home"))
    yield server
    assert server.stop() == ""  # nothing of all this is printed or logged


@pytest.fixture(scope="module")
def policy(server) -> str:
    answer = web.post(server.url + CALIBRATE, content=csv_text(2000, labelled=True), headers=CSV)
    return answer.json()["hash"]


@pytest.fixture(autouse=True)
def nothing_stays(server):
    yield
    for _ in range(600):  # a file is removed right after its last byte was sent
        if not list((server.folder / "spool").iterdir()):
            return
        time.sleep(0.1)
    pytest.fail(f"left behind: {list((server.folder / 'spool').iterdir())}")


def post(server, url: str, content, kind: str = "text/csv") -> httpx.Response:
    return web.post(server.url + url, content=content, headers={"content-type": kind}, timeout=BUSY)


def message(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text[:500]
    return answer.json()["error"]["message"]


@pytest.mark.slow
def test_no_bytes_at_all(server):
    assert "empty" in message(post(server, CALIBRATE, b""), 400)


@pytest.mark.slow
def test_a_header_only(server):
    assert message(post(server, CALIBRATE, "score,qualified\n"), 400)


@pytest.mark.slow
def test_a_gigabyte_of_zeros_stops_at_the_limit_without_filling_memory(server):
    def zeros(pieces: int):
        for _ in range(pieces):
            yield bytes(1 << 20)

    before = resident(server)
    declared = {"content-length": str(1 << 30), "content-type": "application/octet-stream"}
    for headers in (declared, {"content-type": "application/octet-stream"}):
        try:
            with httpx.Client(timeout=BUSY, verify=False) as client:
                answer = client.post(server.url + CALIBRATE, content=zeros(1024), headers=headers)
            assert answer.status_code in (400, 413)
        except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
            pass  # refused before everything was sent
    assert resident(server) - before < 100 * (1 << 20)
    assert web.get(server.url + "/healthz").status_code == 200


@pytest.mark.slow
def test_a_gigabyte_of_text_is_413(server):
    line = b"0.5,1\n" * 170_000

    def text():
        yield b"score,qualified\n"
        for _ in range(1050):
            yield line

    before = resident(server)
    try:
        answer = post(server, CALIBRATE, text())
        assert "larger than the 512 MiB" in message(answer, 413)
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        pass
    assert resident(server) - before < 150 * (1 << 20)


def test_json_has_a_limit_of_its_own(server):
    body = b'{"rows":[' + b'{"score":0.5},' * 3_000_000 + b'{"score":0.5}]}'
    assert "32 MiB" in message(post(server, CALIBRATE, body, "application/json"), 413)


def resident(server) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) * 1024


def test_wrong_encoding(server):
    text = "name,score,qualified\n" + "Zoë,0.5,1\n" * 20
    assert "is UTF-32 text" in message(post(server, CALIBRATE, text.encode("utf-32")), 400)
    assert "UTF-8" in message(post(server, CALIBRATE, text.encode() + b"Jos\xe9\x81,0.5,1\n"), 400)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_read(server, separator):
    text = csv_text(2000, labelled=True).replace(",", separator)
    assert post(server, CALIBRATE, text).status_code == 201


def test_a_byte_order_mark_is_read(server):
    text = "\ufeff" + csv_text(2000, labelled=True).replace(
        "candidate,age,site,score", "score0,age,site,score"
    )
    assert post(server, CALIBRATE, text).status_code == 201
    text = "\ufeffscore,qualified\n" + "0.5,1\n0.4,0\n" * 500
    assert post(server, CALIBRATE, text).status_code == 201


def test_windows_line_ends(server):
    text = csv_text(2000, labelled=True).replace("\n", "\r\n")
    assert post(server, CALIBRATE, text).status_code == 201


def parquet(tmp_path: Path, query: str) -> bytes:
    path = tmp_path / "x.parquet"
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return path.read_bytes()


def test_a_parquet_bomb_is_refused(server, policy, tmp_path):
    """A few hundred kilobytes that unfold to 25 million rows."""
    bomb = parquet(tmp_path, "SELECT 0.5 AS score, 1 AS qualified FROM range(25000000)")
    assert len(bomb) < 10 << 20
    before = resident(server)
    assert "25,000,000 rows" in message(post(server, CALIBRATE, bomb, "application/vnd.apache.parquet"), 413)
    assert resident(server) - before < 200 * (1 << 20)


@pytest.mark.slow
def test_a_parquet_bomb_of_long_cells_is_refused(server, policy, tmp_path):
    """One long text, repeated by dictionary: kilobytes that unfold to terabytes."""
    bomb = parquet(tmp_path, "SELECT 0.5 AS score, repeat('x', 2000000) AS note FROM range(2000)")
    answer = post(server, f"/api/v1/policies/{policy}/select", bomb, "application/vnd.apache.parquet")
    assert answer.status_code in (200, 413)


def test_broken_parquet(server, tmp_path):
    good = parquet(tmp_path, "SELECT 0.5 AS score, 1 AS qualified FROM range(1000)")
    for bad in (
        good[:100],
        good[: len(good) // 2] + b"PAR1",
        b"PAR1" * 100,
        good[:50] + np.random.default_rng(1).bytes(200) + good[250:],
    ):
        answer = post(server, CALIBRATE, bad, "application/vnd.apache.parquet")
        assert answer.status_code in (400, 422), answer.text
        assert "spool" not in answer.text


def test_ten_thousand_columns(server, policy):
    header = ",".join(f"c{i}" for i in range(10_000)) + ",score,qualified"
    text = header + "\n" + "\n".join(",".join(["1"] * 10_000) + f",0.{i},1" for i in range(1, 30)) + "\n"
    for url in (CALIBRATE, f"/api/v1/policies/{policy}/select"):
        assert "10,002 columns" in message(post(server, url, text), 413)


def test_duplicate_headers_are_told_apart_or_refused(server):
    text = "score,score,qualified\n" + "0.5,0.6,1\n0.1,0.2,0\n" * 500
    answer = post(server, CALIBRATE, text)
    assert "twice" in message(answer, 400)


def test_rows_of_uneven_length(server):
    text = "score,qualified\n0.5,1\n0.5,1,extra,cells\n0.4\n"
    assert message(post(server, CALIBRATE, text), 400)


def test_cells_stay_exact_in_the_api(server, policy):
    pool = 'name,score\n"=HYPERLINK(""http://x"")",0.99\n"<script>alert(1)</script>",0.98\n'
    answer = post(server, f"/api/v1/policies/{policy}/select", pool)
    assert answer.status_code == 200
    import csv

    assert [row[0] for row in csv.reader(io.StringIO(answer.text))][1:] == [
        '=HYPERLINK("http://x")',
        "<script>alert(1)</script>",
    ]


def test_excel_and_gzip_are_named(server):
    assert "damaged" in message(post(server, CALIBRATE, b"PK\x03\x04" + bytes(100)), 400)
    assert "gzip" in message(post(server, CALIBRATE, b"\x1f\x8b" + bytes(100)), 400)


def test_a_lost_upload_leaves_nothing(server):
    import socket

    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(
            f"POST {CALIBRATE} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/csv\r\nContent-Length: 9999\r\n\r\nscore,qual".encode()
        )
