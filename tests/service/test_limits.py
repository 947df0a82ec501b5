"""What a client may take: time, memory, disk and connections, before and after it is known."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
from contextlib import suppress

import pytest
from msgspec.structs import replace

from surelist.errors import InvalidInput
from surelist.service import middleware
from surelist.service.app import create_app
from surelist.service.errors import TooLarge, TooSlow
from surelist.service.record import access
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.settings import Settings
from tests.helpers.record import by, selection
from tests.helpers.service import BUSY, Server, close, operations, web_client
from tests.service.test_api import make_policy

MIB = 1 << 20


@pytest.fixture
def app(tmp_path):
    app = create_app(Settings(database=str(tmp_path / "r.db"), folder=tmp_path / "data", login=True))
    yield app
    close(app)


@pytest.fixture
def guarded_server(tmp_path, request):
    database = Database(str(tmp_path / "home" / "surelist.db"))
    database.prepare()
    registry = Registry(database)
    access.create_token(by(registry, "test"), "admin", "admin")
    registry.close()
    server = Server(tmp_path / "home", "--login", first=getattr(request, "param", ""))
    yield server
    if server.process.poll() is None:
        server.stop()


def connected(server: Server) -> socket.socket:
    host, port = server.url.split("//")[1].split(":")
    return socket.create_connection((host, int(port)), timeout=BUSY)


async def send_endlessly(app, path: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    """Status, and how much of an endless body was taken before it came."""
    taken, answers = 0, []

    async def receive():
        nonlocal taken
        taken += 1 << 14
        return {"type": "http.request", "body": b"[" * (1 << 14), "more_body": True}

    async def send(message):
        answers.append(message)

    filled = path.replace("{policy}", "0" * 64).replace("{selection}", "0" * 16)
    scope = {
        "type": "http", "method": "POST", "path": filled, "raw_path": filled.encode(), "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        "scheme": "http", "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    await app(scope, receive, send)
    return answers[0]["status"], taken


KINDS = [
    b"application/json",
    b"text/csv",
    b"multipart/form-data; boundary=x",
    b"application/x-www-form-urlencoded",
]


def test_a_body_is_small_until_a_handler_allows_more():
    async def receive():
        return {"type": "http.request", "body": b"x" * (middleware.SMALL + 1), "more_body": False}

    def read(**allowed: int) -> dict:
        scope: dict = {"headers": []}
        scope[middleware.BODY] = middleware.Body(scope, receive)
        for limit in allowed.values():
            middleware.allow_body(scope, limit)
        return asyncio.run(scope[middleware.BODY].receive())

    with pytest.raises(TooLarge):
        read()
    assert read(limit=middleware.SMALL + 1)["body"]


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_unknown_can_make_it_read_a_large_body(app, kind):
    routes = [path for method, path in operations(app) if method == "POST"]
    assert len(routes) > 10
    for path in routes:
        status, taken = asyncio.run(send_endlessly(app, path, [(b"content-type", kind)]))
        assert status in (401, 403, 413, 400), (path, status)
        assert taken <= middleware.SMALL + (1 << 14), path


@pytest.mark.slow
def test_nested_json_without_a_token_is_refused_before_reading(guarded_server):
    url = f"/api/v1/selections/{'0' * 16}/reviews"
    head = f"POST {url} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {100 * MIB}"
    with connected(guarded_server) as client:
        client.sendall(head.encode() + b"\r\n\r\n" + b"[" * 1000)
        answer = client.recv(65536)
    assert b" 401 " in answer.splitlines()[0]
    with web_client(base_url=guarded_server.url) as web:
        assert web.get("/healthz").status_code == 200


def test_a_declared_body_beyond_the_limit_is_refused_unread(app):
    headers = [
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-length", str(MIB).encode()),
    ]
    status, taken = asyncio.run(send_endlessly(app, "/login", headers))
    assert (status, taken) == (413, 0)


@pytest.mark.slow
def test_an_unfinished_login_holds_nothing(guarded_server):
    head = (
        "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        f"Content-Length: {50 * MIB}\r\n\r\n--x\r\n"
        'Content-Disposition: form-data; name="token"; filename="a"\r\n\r\n'
    )
    with connected(guarded_server) as client:
        client.sendall(head.encode() + b"a" * 2000)
        assert b" 413 " in client.recv(65536).splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "guarded_server",
    ["from surelist.service import middleware; middleware.HEADER_SECONDS = 1"],
    indirect=True,
)
def test_slow_headers_are_cut_off(guarded_server):
    with connected(guarded_server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        client.settimeout(middleware.HEADER_SECONDS + 110)  # a busy machine is no failure
        with suppress(ConnectionResetError):
            assert client.recv(10) == b""


@pytest.mark.slow
def test_endless_headers_are_cut_off(guarded_server):
    headers = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (b"X-More: " + b"a" * 1000 + b"\r\n") * 20_000
    with connected(guarded_server) as client, pytest.raises((ConnectionResetError, BrokenPipeError)):
        client.sendall(headers)


def test_a_slow_body_is_cut_off(monkeypatch):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.05)

    async def never():
        await asyncio.sleep(60)

    with pytest.raises(TooSlow):
        asyncio.run(middleware.Body({"headers": []}, never).receive())


def test_a_body_slower_than_the_slowest_allowed_is_cut_off(monkeypatch):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.2)

    async def trickle():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def read():
        body = middleware.Body({"headers": []}, trickle)
        while True:
            await body.receive()

    with pytest.raises(TooSlow):
        asyncio.run(read())


def test_more_requests_than_the_limit_are_refused_in_the_one_shape(local_client, monkeypatch):
    monkeypatch.setattr(middleware, "REQUESTS", 0)
    answer = local_client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "Busy"
    assert answer.headers["retry-after"]


def test_reviews_of_nested_json_are_refused_quickly(local_client):
    runtime = local_client.app.state.runtime
    nested = b'{"reviews": ' + b"[" * 500_000
    runtime.registry.append("a", "a" * 16, selection("0" * 64)).result()
    began = time.process_time()  # work, not waiting: the machine may be busy
    answer = local_client.post(
        f"/api/v1/selections/{'a' * 16}/reviews", content=nested, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert time.process_time() - began < 5


def test_a_refused_body_is_let_go_of_at_once(local_client, past):
    """An error from a thread holds itself and the rows it is about; the collector comes by seldom."""
    digest = make_policy(local_client, past)["hash"]
    body = json.dumps({"rows": [{"other": 1}] * 123_457}).encode()
    gc.collect()
    gc.disable()
    try:
        answer = local_client.post(
            f"/api/v1/policies/{digest}/select", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert not [each for each in gc.get_objects() if type(each) is list and len(each) == 123_457]
    finally:
        gc.enable()


def test_small_answers_do_not_wait_for_the_network():
    """Without TCP_NODELAY each answer on a kept connection waits 40 ms for the client's delayed ACK."""
    listener = middleware.listen("127.0.0.1", 0)
    options = []

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport):
            peer = transport.get_extra_info("socket")
            options.append(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def once():
        serving = await asyncio.get_running_loop().create_server(Protocol, sock=listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await reader.read()
        writer.close()
        serving.close()

    asyncio.run(once())
    assert options == [1]


def test_whoever_reads_the_address_may_connect_at_once_and_nobody_else_gets_it():
    """The address is printed before the app runs; a port that is only bound refuses clients, and can be bound twice."""
    with middleware.listen("127.0.0.1", 0) as listener:
        socket.create_connection(listener.getsockname()).close()
        with pytest.raises(InvalidInput, match="port: cannot listen on"):
            middleware.listen(*listener.getsockname())


@pytest.mark.slow
def test_one_connection_serves_many_health_checks(guarded_server):
    with connected(guarded_server) as client:
        for _ in range(30):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
@pytest.mark.parametrize(
    "guarded_server",
    ["from surelist.service import middleware; middleware.SHUTDOWN_SECONDS = 1"],
    indirect=True,
)
def test_stopping_waits_for_no_client(guarded_server):
    """A client that never finishes its request cannot keep the service from stopping."""
    form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000"
    with connected(guarded_server) as client:
        client.sendall(f"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n{form}\r\n\r\ntoken=".encode())
        time.sleep(0.3)
        guarded_server.stop()
        with suppress(ConnectionResetError):
            assert b" 408 " not in client.recv(65536)  # which would be the end of its patience with this body


def test_the_limit_on_uploads_is_said_in_words(local_client, tmp_path):
    small = replace(local_client.app.state.runtime.settings, max_upload=2 * MIB)
    local_client.app.state.runtime.settings = small
    answer = local_client.post("/api/v1/curve", content=b"a" * 3 * MIB, headers={"content-type": "text/csv"})
    assert answer.status_code == 413
    assert "2 MiB" in json.loads(answer.text)["error"]["message"]
