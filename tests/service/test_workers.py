"""Work without bounds is stopped: for its time, its memory, its output, or because nobody waits any more."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.service.app import create_app
from surelist.service.errors import TooLarge, TooMuchWork
from surelist.service.settings import MIB, Settings
from surelist.service.workers import Limits, Workers
from tests.helpers.service import Server, web_client
from tests.helpers.work import fail_with, hold, write

CSV = {"content-type": "text/csv"}
ENDLESS = "/api/v1/calibrate?promise=per-pool&k=1000000&pool_size=1000000&largest_pool=1000000000"


def small_file(rows: int = 30_000) -> str:
    """Of which ENDLESS takes minutes."""
    return "score,qualified\n" + "".join(f"{i / rows},{int(i % 3 == 0)}\n" for i in range(rows))


@pytest.fixture
def workers(tmp_path):
    made = Workers(Limits(60, 8 * MIB, 400 * MIB, tmp_path))
    yield made
    made.close()


def never() -> threading.Event:
    return threading.Event()


def test_results_and_errors_come_back_as_they_are(workers):
    assert workers.run(never(), max, [3, 5, 1]) == 5
    with pytest.raises(InvalidInput, match="score: no such"):
        workers.run(never(), fail_with, InvalidInput("score", "no such column."))
    short = Shortfall("t", 10, 1, 5, 0.5, None, 50)
    with pytest.raises(NotCertifiable) as refused:
        workers.run(never(), fail_with, NotCertifiable(short))
    assert refused.value.shortfall == short
    assert workers.run(never(), os.getpid) == workers.run(never(), os.getpid) != os.getpid()


def test_a_worker_that_the_system_ended_while_it_waited_is_replaced(workers):
    first = workers.run(never(), os.getpid)
    os.kill(first, signal.SIGKILL)
    worker = workers._idle.get()
    while worker.alive:  # however busy the machine is
        time.sleep(0.001)
    workers._idle.put(worker)
    assert workers.run(never(), os.getpid) not in (first, os.getpid())
    with pytest.raises(TooMuchWork, match="ended by itself"):
        workers.run(never(), os._exit, 3)
    assert workers.run(never(), max, [1, 2]) == 2


@pytest.mark.slow
def test_work_is_stopped_after_its_time_and_the_next_piece_is_done(tmp_path):
    workers = Workers(Limits(60, 8 * MIB, 400 * MIB, tmp_path))
    first = workers.run(never(), os.getpid)
    ready = workers._idle.get()  # its start may take longer than the time for this piece of work
    ready._limits = replace(workers.limits, seconds=1)
    workers._idle.put(ready)
    with pytest.raises(TooMuchWork, match="after 1 seconds"):
        workers.run(never(), time.sleep, 60)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert workers.run(never(), max, 1, 2) == 2
    workers.close()


def test_work_for_a_client_who_left_is_stopped(workers):
    gone = threading.Event()
    threading.Timer(0.2, gone.set).start()
    with pytest.raises(ClientDisconnect):
        workers.run(gone, time.sleep, 3600)


def test_no_file_grows_beyond_the_limit_and_no_process_beyond_its_memory(workers, tmp_path):
    assert workers.run(never(), write, tmp_path / "small", 1 * MIB) == MIB
    with pytest.raises(TooLarge, match="larger than the 8 MiB"):
        workers.run(never(), write, tmp_path / "large", 9 * MIB)
    with pytest.raises(TooMuchWork, match="400 MiB of memory"):
        workers.run(never(), hold, 600 * MIB)


def test_a_worker_that_dies_is_a_clear_error(workers):
    process = workers.run(never(), os.getpid)
    with pytest.raises(TooMuchWork, match="ended by itself"):
        workers.run(never(), os.kill, process, signal.SIGKILL)


@pytest.mark.slow
def test_a_small_dictionary_file_does_not_fill_the_disk(tmp_path, past):
    text = "x" * (1 << 20)
    table = pa.table({
        "score": pa.array([1.0] * 60), "text": pa.DictionaryArray.from_arrays(pa.array([0] * 60), pa.array([text])),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 10_000
    settings = Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "data", max_upload=8 * MIB)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        policy = client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers=CSV).json()["hash"]
        head = {"content-type": "application/vnd.apache.parquet"}
        body = (tmp_path / "bomb.parquet").read_bytes()
        answer = client.post(f"/api/v1/policies/{policy}/select?format=csv", content=body, headers=head)
        assert answer.status_code == 413, answer.text
        assert list(settings.spool.iterdir()) == []


@pytest.mark.slow
def test_endless_work_holds_no_slot_beyond_its_time_or_its_client(tmp_path, past):
    server = Server(tmp_path / "home", "--work-seconds", "1")
    try:
        with web_client(base_url=server.url) as client:
            stopped = client.post(ENDLESS, content=small_file(), headers=CSV)
            assert stopped.status_code == 413, stopped.text
            assert "stopped after 1 seconds" in stopped.json()["error"]["message"]
    finally:
        server.stop()
    server = Server(tmp_path / "home", "--work-seconds", "600")
    try:
        host, port = server.url.removeprefix("http://").split(":")
        body = small_file().encode()
        for _ in range(3):  # more clients than slots, who all leave
            with socket.create_connection((host, int(port))) as leaving:
                head = f"POST {ENDLESS} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/csv\r\n"
                leaving.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                time.sleep(1)
        with web_client(base_url=server.url) as client:
            answer = client.post("/api/v1/calibrate?k=5&pool_size=100", content=past, headers=CSV)
            assert answer.status_code == 201
    finally:
        server.stop()


@pytest.mark.slow
def test_a_large_body_is_read_by_a_worker_and_answered_as_a_small_one(local_client, monkeypatch):
    """A thread would hold the interpreter that answers everybody else."""
    made = local_client.post("/api/v1/calibrate?k=5&pool_size=100", content=small_file(), headers=CSV).json()
    rows = [{"score": number / 500, "note": "x" * 50} for number in range(500)]
    asked: list[str] = []
    run = Workers.run

    def noting(self, gone, function, *args, **named):
        asked.append(function.__name__)
        return run(self, gone, function, *args, **named)

    monkeypatch.setattr(Workers, "run", noting)

    def answer(path: str, **sent):
        done = local_client.post(path, json=sent)
        body = done.json()
        for name in ("id", "receipt", "at"):
            body.get("selection", {}).pop(name, None)
        return done.status_code, body

    select = f"/api/v1/policies/{made['hash']}/select"
    past = [{"score": number / 3000, "qualified": number % 3 == 0} for number in range(3000)]

    def answers():
        wrong = [*rows, {"score": "high"}]
        done = [answer(select, rows=rows), answer(select, rows=wrong)]
        audited = answer(select + "?watch=true&audit_rate=0.1", rows=rows)
        certified = answer("/api/v1/calibrate?k=5&pool_size=100", rows=past)
        return done, audited[1], certified[1]["promise"]

    small, first, sentence = answers()
    assert not {"select_rows", "rows_as_sent", "lines_of"} & set(asked)
    assert [status for status, _ in small] == [200, 400]
    monkeypatch.setattr("surelist.service.bodies.INLINE", 1000)
    large, second, again = answers()
    assert {name: asked.count(name) for name in ("select_rows", "rows_as_sent", "lines_of")} == {
        "select_rows": 3, "rows_as_sent": 1, "lines_of": 1,
    }  # fmt: skip
    assert (large, again) == (small, sentence)
    assert second["shortlist"] == first["shortlist"]
    assert all(each in rows for each in second["audit"])
