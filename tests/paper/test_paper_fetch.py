"""Downloads against a real HTTP server on this machine that behaves like the Census Bureau's, or badly."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

import surelist as sl
from paper import data, fetch
from paper.__main__ import cli
from tests.helpers.pums_sample import HEADER, PEOPLE


def archive(lines=(HEADER, *PEOPLE), name="psam_p10.csv", padding=200_000):
    """A state's ZIP as the Census publishes it: the person file and a PDF that does not compress."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, "\n".join(lines) + "\n")
        noise = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(padding // 32))
        file.writestr("ACS2018_PUMS_README.pdf", noise)
    return out.getvalue()


class Census:
    """A server for one file; ``script`` holds what goes wrong with the next requests, in order."""

    def __init__(self):
        self.content = archive()
        self.etag = '"v1"'
        self.ranges = True
        self.script = []
        self.requests = []
        census = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                census.answer(self)

            def log_message(self, *ignored):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/pums"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request):
        wanted = request.headers.get("Range")
        self.requests.append((request.path, wanted))
        trouble = self.script.pop(0) if self.script else None
        if isinstance(trouble, int):
            body = b"<html><body>an error</body></html>"
            return self.send(request, trouble, body, {"Content-Type": "text/html"})
        if trouble == "html":
            body = b"<!DOCTYPE html><html><title>Site maintenance</title></html>"
            return self.send(request, 200, body, {"Content-Type": "text/html; charset=UTF-8"})
        start, status, headers = 0, 200, {"ETag": self.etag, "Content-Type": "application/zip"}
        if wanted and self.ranges and request.headers.get("If-Range") == self.etag:
            start, status = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]), 206
            headers["Content-Range"] = f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
        cut = len(self.content) // 2 if trouble == "cut" else None
        return self.send(request, status, self.content[start:], headers, cut)

    @staticmethod
    def send(request, status, body, headers, cut=None):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:cut])
        request.close_connection = True


@pytest.fixture
def census():
    server = Census()
    yield server
    server.server.shutdown()
    server.server.server_close()


def get(census, folder, **options):
    lines: list[str] = []
    found = fetch.fetch(2018, "de", folder, census.url, lines.append, pause=0.001, **options)
    return found, lines


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_is_checked_and_read(census, tmp_path):
    found, _ = get(census, tmp_path)
    assert census.requests == [("/pums/2018/1-Year/csv_pde.zip", None)]
    assert found.path.read_bytes() == census.content
    assert found.sha256 == hashlib.sha256(census.content).hexdigest()
    assert (tmp_path / "SHA256SUMS").read_text() == f"{found.sha256}  2018_csv_pde.zip\n"
    assert left(tmp_path) == ["2018_csv_pde.zip", "SHA256SUMS"]
    people = data.load([found.path])
    assert people.qualified.tolist() == [False, True, False]


def test_a_cut_connection_is_resumed_where_it_broke(census, tmp_path):
    census.script = ["cut", "cut"]
    found, lines = get(census, tmp_path)
    assert found.path.read_bytes() == census.content
    half = len(census.content) // 2
    assert census.requests[1][1] == f"bytes={half}-"
    assert "trying again" in lines[0]
    assert left(tmp_path) == ["2018_csv_pde.zip", "SHA256SUMS"]


def test_a_resume_of_another_version_starts_again(census, tmp_path):
    census.script = ["cut"] * fetch.ATTEMPTS
    census.ranges = False
    with pytest.raises(fetch.FetchError, match="goes on from what has arrived"):
        get(census, tmp_path)
    assert left(tmp_path) == ["2018_csv_pde.zip.part", "2018_csv_pde.zip.tag"]
    census.ranges, census.etag, census.content = True, '"v2"', archive(padding=100_000)
    found, _ = get(census, tmp_path)
    assert found.path.read_bytes() == census.content


def test_server_errors_are_tried_again(census, tmp_path):
    census.script = [503, 500, 429]
    found, lines = get(census, tmp_path)
    assert found.path.read_bytes() == census.content
    assert len(lines) == 3


def test_no_such_file_is_said_at_once(census, tmp_path):
    census.script = [404]
    with pytest.raises(fetch.FetchError, match=r"404 Not Found\. Is there a 1-year file"):
        get(census, tmp_path)
    assert len(census.requests) == 1
    assert left(tmp_path) == []


def test_a_web_page_is_not_an_archive(census, tmp_path):
    census.script = ["html"]
    with pytest.raises(fetch.FetchError, match=r"a web page instead of an archive: .*Site maintenance"):
        get(census, tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>no content type given</html>", "did not send a complete ZIP archive"),
        (archive()[:-30_000], "did not send a complete ZIP archive"),
        (archive(["RT,SERIALNO,NP,TYPE", "H,1,2,1"]), "expected the columns AGEP, RAC1P, ESR"),
        (archive([HEADER.replace("MIL", "MILX"), *PEOPLE]), "expected the columns MIL"),
        (archive(name="psam_h10.csv"), "holds no person file"),
    ],
)
def test_what_is_not_a_person_file_is_refused_and_removed(census, tmp_path, content, message):
    census.content = content
    with pytest.raises(sl.SurelistError, match=message):
        get(census, tmp_path)
    assert left(tmp_path) == []


def test_a_damaged_archive_is_refused(census, tmp_path):
    damaged = bytearray(census.content)
    damaged[150_000] ^= 0xFF
    census.content = bytes(damaged)
    with pytest.raises(fetch.FetchError, match="complete ZIP archive"):
        get(census, tmp_path)


def test_a_file_that_is_there_is_not_fetched_again_unless_it_changed(census, tmp_path):
    found, _ = get(census, tmp_path)
    _, lines = get(census, tmp_path)
    assert lines == ["2018_csv_pde.zip: already there, checksum unchanged."]
    assert len(census.requests) == 1
    found.path.write_bytes(b"scratched")
    again, _ = get(census, tmp_path)
    assert again == found


def test_newer_years_have_another_name_for_relationship(census, tmp_path):
    census.content = archive([HEADER.replace("RELP", "RELSHIPP"), *PEOPLE])
    found, _ = get(census, tmp_path)
    assert "RELP" in data.load([found.path]).names


def test_command_line(census, tmp_path):
    arguments = ["fetch-acs", "--states", "DE", "--out", str(tmp_path), "--base-url", census.url]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert hashlib.sha256(census.content).hexdigest() in result.stdout
    wrong = CliRunner().invoke(cli, ["fetch-acs", "--states", "DE,XX", "--out", str(tmp_path)])
    assert wrong.exit_code == 2
    assert "got 'xx'" in wrong.stderr


def test_exit_codes(census, tmp_path):
    census.script = [404]
    arguments = ["fetch-acs", "--out", str(tmp_path), "--base-url", census.url, "--states"]
    for states, code, said in (("DE", 1, "answered 404"), ("XX", 2, "states: expected two-letter states")):
        result = CliRunner().invoke(cli, [*arguments, states])  # the server's fault, then the user's
        assert result.exit_code == code
        assert said in result.stderr
