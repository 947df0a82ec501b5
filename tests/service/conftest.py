"""Apps come and go with every test; the processes that work for them stay."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from queue import Empty
from typing import ClassVar

import pytest

from surelist.service import runtime
from surelist.service.workers import Workers, _Worker
from surelist.workflows.tables import limit_duckdb


class Lasting(Workers):
    """Whose processes go on to work for the next app with the same limits, as they do for the next request."""

    free: ClassVar[dict[tuple[int, int], list[_Worker]]] = defaultdict(list)

    @property
    def _mine(self) -> list[_Worker]:
        return self.free[self.limits.file_bytes, self.limits.memory_bytes]

    def _ready(self) -> _Worker:
        if self._idle.empty() and self._mine:
            worker = self._mine.pop()
            worker._limits = self.limits
            if worker.alive:
                spilling = self.limits.memory_bytes // 2, self.limits.folder
                worker.run(threading.Event(), (limit_duckdb, spilling, {}))
            self._idle.put(worker)
        return super()._ready()

    def close(self) -> None:
        try:
            while True:
                self._mine.append(self._idle.get_nowait())
        except Empty:
            pass


@pytest.fixture(autouse=True, scope="session")
def _workers_last() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "Workers", Lasting)
        yield
