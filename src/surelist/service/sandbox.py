"""Sandboxes: a record and a spool of their own for a person who tries the page with made-up candidates.

While a session is in its sandbox, every page works on that record alone; the real one is not touched. What is
in a sandbox is removed when the person leaves or logs out, after an hour, and when the service starts.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from dataclasses import dataclass, replace

from surelist.service.middleware import Metrics
from surelist.service.record.access import Brake
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.runtime import Runtime
from surelist.service.uploads import Spool

LIFE = 3600  # seconds
MOST = 20


@dataclass(frozen=True)
class _Box:
    runtime: Runtime
    until: float


class Sandboxes:
    """Who is in a sandbox, by session."""

    def __init__(self, real: Runtime) -> None:
        self._real, self._boxes = real, dict[str, _Box]()
        self._lock = threading.Lock()
        self._folder = real.settings.folder / "sandboxes"
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, owner: str) -> Runtime:
        """A fresh one; an earlier one of the same session ends, and the oldest where there are too many."""
        self.end(owner)
        while len(self._boxes) >= MOST:
            self.end(next(iter(self._boxes)))
        folder = self._folder / secrets.token_hex(8)
        folder.mkdir(parents=True)
        settings = replace(
            self._real.settings, database=str(folder / "record.db"), folder=folder, host="127.0.0.1",
            login=False, local_token=None, keep_results=LIFE, longest_keep=LIFE,
        )  # fmt: skip
        database = Database(settings.database)
        database.prepare()
        runtime = Runtime(
            settings, Registry(database), Spool(settings.spool), Metrics(), Brake(1), self._real.workers
        )
        with self._lock:
            self._boxes[owner] = _Box(runtime, time.time() + LIFE)
        return runtime

    def of(self, owner: str) -> Runtime | None:
        """The sandbox that a session is in."""
        box = self._boxes.get(owner)
        return box.runtime if box is not None and box.until > time.time() else None

    def end(self, owner: str) -> None:
        """Remove a session's sandbox with everything in it."""
        with self._lock:
            box = self._boxes.pop(owner, None)
        if box is not None:
            box.runtime.registry.close()
            box.runtime.spool.close()
            shutil.rmtree(box.runtime.settings.folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove those whose time is up."""
        for owner, box in list(self._boxes.items()):
            if box.until <= time.time():
                self.end(owner)

    def close(self) -> None:
        for owner in list(self._boxes):
            self.end(owner)
        shutil.rmtree(self._folder, ignore_errors=True)
