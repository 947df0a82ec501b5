"""Sandboxes: a record and a spool of their own for a person who tries the page with made-up candidates.

While a session is in its sandbox, every page works on that record alone; the real one is not touched. What is
in a sandbox is removed when the person leaves or logs out, after an hour, and when the service starts.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time

from msgspec import Struct
from msgspec.structs import replace

from surelist.service.middleware import Metrics
from surelist.service.record.access import Brake
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.runtime import Runtime
from surelist.service.uploads import Spool

LIFE = 3600  # seconds
MOST = 20


class Box(Struct):
    """One sandbox. It is removed once it has ended and nobody is inside."""

    runtime: Runtime
    until: float
    inside: int = 0  # requests at work
    ended: bool = False


class Sandboxes:
    """Who is in a sandbox, by session."""

    def __init__(self, real: Runtime) -> None:
        self._real, self._boxes = real, dict[str, Box]()
        self._lock = threading.Lock()
        self._folder = real.settings.folder / "sandboxes"
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, owner: str) -> Box:
        """A fresh one, entered; an earlier one of the session ends, and the oldest where there are many."""
        box = self._made()
        with self._lock:
            earlier = [self._boxes.pop(owner, None)]
            while len(self._boxes) >= MOST:
                earlier.append(self._boxes.pop(next(iter(self._boxes))))
            self._boxes[owner], box.inside = box, 1
        for each in earlier:
            self._end(each)
        return box

    def _made(self) -> Box:
        folder = self._folder / secrets.token_hex(8)
        folder.mkdir(parents=True)
        settings = replace(
            self._real.settings, database=str(folder / "record.db"), folder=folder, host="127.0.0.1",
            login=False, local_token=None, keep_results=LIFE, longest_keep=LIFE,
        )  # fmt: skip
        database = Database(settings.database)
        database.prepare()
        runtime = Runtime(
            settings, Registry(database), Spool(settings.spool), Metrics(), Brake(1),
            self._real.heavy, self._real.printing,
        )  # fmt: skip
        return Box(runtime, time.time() + LIFE)

    def enter(self, owner: str) -> Box | None:
        """The sandbox that a session is in; it stays until it is left again."""
        with self._lock:
            box = self._boxes.get(owner)
            if box is None or box.until <= time.time():
                return None
            box.inside += 1
            return box

    def leave(self, box: Box) -> None:
        """A request is done with a sandbox."""
        with self._lock:
            box.inside -= 1
            over = box.ended and not box.inside
        if over:
            _remove(box)

    def end(self, owner: str) -> None:
        """Remove a session's sandbox with everything in it, as soon as nobody is inside."""
        with self._lock:
            box = self._boxes.pop(owner, None)
        self._end(box)

    def _end(self, box: Box | None) -> None:
        if box is None:
            return
        with self._lock:
            box.ended = True
            over = not box.inside
        if over:
            _remove(box)

    def sweep(self) -> None:
        """Remove those whose time is up."""
        for owner, box in list(self._boxes.items()):
            if box.until <= time.time():
                self.end(owner)

    def close(self) -> None:
        """The service stops: no request is left inside."""
        with self._lock:
            boxes, self._boxes = list(self._boxes.values()), {}
        for box in boxes:
            _remove(box)
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove(box: Box) -> None:
    box.runtime.registry.close()
    box.runtime.spool.close()
    shutil.rmtree(box.runtime.settings.folder, ignore_errors=True)
