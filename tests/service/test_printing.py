"""Reports as PDF: without the extra a sentence with the remedy; however many ask, calibrations go on."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from surelist.service import jobs
from surelist.service.errors import TooMuchWork
from surelist.service.runtime import PRINT_SECONDS, PRINTS, PRINTS_WAITING, slots_of
from surelist.service.settings import Settings
from surelist.service.uploads import Spool
from tests.helpers.service import Server, csv_text, web_client

CSV = {"content-type": "text/csv"}
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"
# in the place of WeasyPrint: not there, or as slow as somebody wants it to be
STAND_IN = """
import time
from pathlib import Path

if Path(__file__).with_name("missing").exists():
    raise ImportError("No module named 'weasyprint'")


class HTML:
    def __init__(self, **_):
        pass

    def write_pdf(self, path):
        while not Path(__file__).with_name("release").exists():
            time.sleep(0.05)
        Path(path).write_bytes(b"%PDF")
"""


@pytest.fixture
def stand_in(tmp_path) -> Path:
    folder = tmp_path / "packages" / "weasyprint"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(STAND_IN)
    return folder


@pytest.mark.slow
def test_a_report_without_the_extra_and_many_reports_at_once(tmp_path, stand_in):
    paths = os.pathsep.join([str(stand_in.parent), os.environ.get("PYTHONPATH", "")])
    server = Server(tmp_path / "home", environment={"PYTHONPATH": paths})
    try:
        with web_client(base_url=server.url) as client:
            past = csv_text(2000, labelled=True)
            page = f"/policies/{client.post(CALIBRATE, content=past, headers=CSV).json()['hash']}"
            (stand_in / "missing").touch()
            _refused_with_a_remedy(client, page)
            (stand_in / "missing").unlink()
            _calibrations_go_on(client, page, stand_in / "release")
            assert client.get(f"{page}/report.pdf").content == b"%PDF"
    finally:
        server.stop()
    assert list((tmp_path / "home" / "spool").iterdir()) == []


def _refused_with_a_remedy(client: httpx.Client, page: str) -> None:
    answer = client.get(f"{page}/report.pdf", headers={"accept": "text/html"})
    assert answer.status_code == 501
    assert "PDF reports need WeasyPrint and Pango: pip install &#39;surelist[pdf]&#39;" in answer.text
    assert client.get(f"{page}/report").status_code == 200


def _calibrations_go_on(client: httpx.Client, page: str, release: Path) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(client.get(f"{page}/report.pdf"))

    most, more = PRINTS + PRINTS_WAITING, 3
    asking = [threading.Thread(target=ask) for _ in range(most + more)]
    for each in asking:
        each.start()
    while len(answers) < more and any(each.is_alive() for each in asking):
        time.sleep(0.01)
    assert [each.status_code for each in answers] == [503] * more
    assert all(each.headers["retry-after"] for each in answers)
    past = csv_text(2000, labelled=True, seed=4)
    assert client.post(CALIBRATE, content=past, headers=CSV).status_code == 201
    assert len(answers) == more  # all others wait for a report that is not done
    release.touch()
    for each in asking:
        each.join()
    assert Counter(each.status_code for each in answers) == {503: more, 200: most}


def test_a_report_is_stopped_sooner_than_other_work(tmp_path):
    for given, seconds in ((300, PRINT_SECONDS), (4, 4)):
        settings = Settings(database=str(tmp_path / "r.db"), folder=tmp_path, work_seconds=given)
        heavy, printing = slots_of(settings)
        assert printing.workers.limits.seconds == seconds
        assert heavy.workers.limits.seconds == given
        assert heavy.workers is not printing.workers


def test_a_report_that_takes_too_long_can_be_printed_from_its_page(tmp_path, monkeypatch):
    def stopped(*_: object) -> None:
        raise TooMuchWork("it was stopped after 60 seconds")

    monkeypatch.setattr(jobs, "run", stopped)
    spool = Spool(tmp_path)
    with pytest.raises(TooMuchWork, match=r"60 seconds.*print it from there\.$"):
        jobs.report_pdf(spool, "<p>")
    spool.close()
    assert list(tmp_path.glob("*.pdf")) == []
