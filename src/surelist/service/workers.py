"""Heavy work in processes of their own, which can be stopped.

A thread cannot be stopped, so a request that takes for ever would hold its slot for ever. A
process that works too long, or for a client who is gone, is killed and replaced by a fresh one; it may
write no file beyond a limit, and DuckDB in it has a limit of memory and a folder of ours to spill to.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from msgspec import Struct
from starlette.requests import ClientDisconnect

from surelist.errors import NotCertifiable, SurelistError
from surelist.service.errors import TooLarge, TooMuchWork
from surelist.service.uploads import Upload
from surelist.workflows import tables as workflows
from surelist.workflows.source import Source

PRELOADED = ["surelist.service.workers", "surelist.workflows.summaries", "surelist.workflows.tables"]
# imported late by those, once here for all
PRELOADED += ["duckdb", "pydantic", "scipy.fft", "scipy.special", "surelist.bounds.collection"]
PRELOADED += ["narwhals._duckdb.namespace", "narwhals._duckdb.group_by", "narwhals._interchange.dataframe"]
PRELOADED += ["surelist.promises.kinds.expected", "surelist.tables.engines.polars"]
POLL_SECONDS = 0.1
TOO_LARGE_A_FILE = "File too large"  # what the system says of a write beyond the limit, in any engine's words
T = TypeVar("T")


class Limits(Struct, frozen=True):
    """What one piece of work may take."""

    seconds: float
    file_bytes: int
    memory_bytes: int
    folder: Path


class Workers:
    """Processes that wait for work; there are never more than pieces of work under way."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._idle: SimpleQueue[_Worker] = SimpleQueue()

    def run(self, gone: threading.Event, function: Callable[..., T], *args: object, **named: object) -> T:
        """The result of ``function`` in a process; stopped when time is up or ``gone`` is set."""
        worker = self._ready()
        try:
            result, error = worker.run(gone, (function, args, named))
        except BaseException:
            worker.stop()
            raise
        self._idle.put(worker)
        if error is not None:
            raise _explained(error, self.limits)
        return result  # type: ignore[no-any-return]

    def _ready(self) -> _Worker:
        """A worker that waits, else a new one; the system may have ended some while they waited."""
        with suppress(Empty):
            while not (worker := self._idle.get_nowait()).alive:
                worker.stop()
            return worker
        return _Worker(self.limits)

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().stop()


_serving: ContextVar[tuple[Workers, threading.Event] | None] = ContextVar("serving", default=None)


@contextmanager
def serving(workers: Workers, gone: threading.Event) -> Iterator[None]:
    """Inside, ``run`` goes to these workers for a client who may leave."""
    token = _serving.set((workers, gone))
    try:
        yield
    finally:
        _serving.reset(token)


def run(function: Callable[..., T], *args: object, **named: object) -> T:
    """``function`` in a worker process, for the request being served.

    Uploads go there as their paths; in errors they have the names that people gave them.
    """
    serving = _serving.get()
    assert serving is not None, "heavy work belongs to a request: call it through Runtime.work"
    workers, gone = serving
    uploads = {each.path: each.name for each in args if isinstance(each, Upload)}
    uploads |= {each.table: str(each.name) for each in args if isinstance(each, Source)}
    paths = [each.path if isinstance(each, Upload) else each for each in args]

    def with_names(text: str) -> str:
        for path, name in uploads.items():
            text = text.replace(str(path), name)
        return text

    try:
        return workers.run(gone, function, *paths, **named)
    except NotCertifiable:
        raise
    except SurelistError as error:
        raise error.changed(with_names) from error


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        context = _context()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, limits, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return bool(self._process.is_alive())

    def run(self, gone: threading.Event, work: object) -> tuple[Any, Exception | None]:
        deadline = time.monotonic() + self._limits.seconds
        try:
            self._pipe.send(work)
            while not self._pipe.poll(POLL_SECONDS):
                if gone.is_set():
                    raise ClientDisconnect
                if time.monotonic() > deadline:
                    raise TooMuchWork(f"it was stopped after {self._limits.seconds:g} seconds")
                if _resident(self._process.pid) > self._limits.memory_bytes:
                    raise TooMuchWork(f"it took more than {self._limits.memory_bytes >> 20:,} MiB of memory")
            answer: tuple[Any, Exception | None] = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise TooMuchWork("it ended by itself, most likely for want of memory") from None
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._pipe.close()


def _context() -> Any:
    """Forked from a small server that has loaded what every worker needs, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _serve(pipe: Connection, limits: Limits, parent: int) -> None:
    """The life of a worker: one piece of work after the other until the service is gone."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    workflows.limit_duckdb(limits.memory_bytes // 2, limits.folder)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    while True:
        try:
            function, args, named = pipe.recv()
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = (function(*args, **named), None)
        except Exception as error:
            answer = (None, error)
        pipe.send(answer)


def _end_with(parent: int) -> None:
    """A service that was killed takes its workers with it, also in the middle of their work."""
    with suppress(OSError):
        while True:
            os.kill(parent, 0)
            time.sleep(1)
    os._exit(1)


def _resident(process: int | None) -> int:
    """Bytes of memory a process holds; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _explained(error: Exception, limits: Limits) -> Exception:
    if TOO_LARGE_A_FILE in str(error):
        return TooLarge(
            limits.file_bytes,
            f"The result is larger than the {limits.file_bytes >> 20:,} MiB that this service writes. "
            "Leave out columns that are not needed, or use the command line.",
        )
    return error
