"""The server around the app: a listener that answers at once, and limits on what a client may take.

A request's headers have to arrive within ``HEADER_SECONDS`` and ``HEADER_BYTES``; whatever a client
still sends after its answer counts as headers of the next request. Bodies are limited by ``middleware``.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from surelist.errors import InvalidInput

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
