"""What every request passes first: the listener, host name, origin, size, headers, numbers for Prometheus.

Plain ASGI, so that bodies and answers stream through. A request's headers have to arrive within
``HEADER_SECONDS`` and ``HEADER_BYTES``; whatever a client still sends after its answer counts as headers of
the next request.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import time
from contextvars import ContextVar
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from surelist.errors import InvalidInput, error_body
from surelist.service.errors import Busy, Forbidden, TooLarge, TooSlow, as_answer, headers_of, release_frames
from surelist.service.settings import Settings

SMALL = 1 << 16  # bytes of a body before anyone is known to be entitled to more
BODY_SECONDS = 30
SLOWEST = 1 << 15  # bytes per second
REQUESTS = 512  # worked on at the same time
BODY = "surelist.body"
client: ContextVar[Body | None] = ContextVar("client", default=None)  # who waits for the answer

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = POLICY.replace(
    b"style-src 'self'", b"style-src 'unsafe-inline'"
)  # self-contained, scriptless

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class Metrics:
    """Counts and durations by route, never by candidate or file."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "surelist_requests", "Requests by route", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "surelist_request_seconds", "Duration by route", ["route"], registry=self.registry
        )


class Body:
    """A request's body on its way in. Small until a handler that knows who is asking allows more.

    It has to arrive within ``BODY_SECONDS``, and a second more for every ``SLOWEST`` bytes.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        self._declared = int(declared) if declared.isdigit() else 0
        self._receive, self._started = receive, time.monotonic()
        self._taken, self._whole, self.limit = 0, False, SMALL
        self._held: asyncio.Semaphore | None = None

    async def hold(self, semaphore: asyncio.Semaphore) -> None:
        """Wait for room, and keep it until the request is answered."""
        await semaphore.acquire()
        self._held = semaphore

    def release(self) -> None:
        if self._held is not None:
            self._held.release()

    async def receive(self) -> Message:
        if self._whole:  # what follows is only the client going away
            return await self._receive()
        if self._declared > self.limit:
            raise TooLarge(self.limit)
        patience = self._started + BODY_SECONDS + self._taken / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(patience):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow("The request arrived too slowly. Send it again.") from None
        self._taken += len(message.get("body", b""))
        if self._taken > self.limit:
            raise TooLarge(self.limit)
        self._whole = not message.get("more_body", False)
        return message

    async def gone(self) -> None:
        """Wait until the client goes away; a body that is still on its way is not waited for."""
        if not self._whole:
            await asyncio.Event().wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def allow_body(scope: Scope, limit: int) -> Body:
    """Let a request bring a body of this size: for handlers, once it is known who is asking."""
    body: Body = scope[BODY]
    body.limit = limit
    return body


class Guard:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        answered = False
        self._active += 1
        body = Body(scope, receive)

        async def answer(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                message["headers"] = [*message["headers"], *self._headers(scope, message["headers"])]
            await send(message)

        try:
            self._check(scope)
            if self._active > REQUESTS:
                raise Busy("The service is busy. Try again shortly; nothing was recorded.")
            scope[BODY] = body
            client.set(body)
            await self._app(scope, body.receive, answer)
        except ClientDisconnect as gone:
            status = 499  # nobody is left to answer
            release_frames(gone)
        except Exception as error:
            if answered:
                raise
            await _refuse(error, scope, receive, answer)
        finally:
            self._active -= 1
            body.release()
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(scope["method"], route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _check(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        name = host.rsplit(":", 1)[0].lower() if not host.endswith("]") else host.lower()
        any_name = self._settings.login and not self._settings.names  # none was given: any may be used
        if not any_name and name not in self._settings.allowed_names:
            raise Forbidden("This service is not known by that host name. Start it with --name to add one.")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            origin = headers.get(b"origin")
            site = headers.get(b"sec-fetch-site", "same-origin")
            foreign = origin is not None and origin.split("://", 1)[-1].lower() != host.lower()
            if foreign or site in ("cross-site", "same-site"):
                raise Forbidden("This request came from another site.")

    def _headers(self, scope: Scope, present: Any) -> list[tuple[bytes, bytes]]:
        path: str = scope["path"]
        policy = REPORT_POLICY if path.endswith("/report") else POLICY
        chosen = [*HEADERS, (b"content-security-policy", policy)]
        if self._settings.https:
            chosen.append((b"strict-transport-security", b"max-age=31536000"))
        if not path.startswith("/static/") and b"cache-control" not in dict(present):
            chosen.append((b"cache-control", b"no-store"))
        return chosen


async def _refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """The last resort, in the one JSON shape."""
    answer = as_answer(error)
    closing = {"Connection": "close"} if isinstance(answer, (TooLarge, TooSlow)) else {}
    headers = headers_of(answer) | closing
    await JSONResponse({"error": error_body(answer)}, answer.status, headers)(scope, receive, send)


HEADER_SECONDS = 10
HEADER_BYTES = 1 << 16
IDLE_SECONDS = 5
SHUTDOWN_SECONDS = 20
CONNECTIONS = 2000
SWITCH_SECONDS = 0.0005  # the writer's thread waits this long for its turn instead of 5 ms


class TimedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a limit on the time and size of headers."""

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and self._awaits_headers():
            self._begin()
        self._header_bytes += len(data)
        super().data_received(data)
        if not self._awaits_headers():
            self._end()
        elif self._header_bytes > HEADER_BYTES:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _awaits_headers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _begin(self) -> None:
        self._header_bytes = 0
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._close)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        if self._awaits_headers():
            self.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """A socket that clients may connect to from now on: they wait until the app answers.

    asyncio sets TCP_NODELAY only where the protocol is named, so it is named.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(CONNECTIONS)
    except OSError as error:
        listener.close()
        raise InvalidInput(
            "port", f"cannot listen on {host}:{port}: {error.strerror}. Try --port 0."
        ) from error
    return listener


def run(app: FastAPI, listener: socket.socket) -> None:
    """Answer requests until told to stop."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what is loaded stays: collections need not walk through it on every request
    gc.set_threshold(50_000, 20, 50)
    config = uvicorn.Config(
        app, http=TimedProtocol, ws="none", loop="asyncio", access_log=False, log_level="warning",
        server_header=False, proxy_headers=False, limit_concurrency=CONNECTIONS,
        backlog=CONNECTIONS, timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])
