"""What promises draw, seeded by the test that runs: here and in every Python process that a test starts.

Python imports a module of this name at its start, wherever this folder is on PYTHONPATH; ``tests.helpers.randomness``
puts it there, and writes the name of the running test to a file that all its processes read at every draw. A process
gets a number of its own when it first draws for a test, so no two draw the same. An empty name: draws are fresh.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any

FOLDER = "SURELIST_TESTS_RANDOMNESS"
MODULE = "surelist._randomness"


class Draws:
    """In place of ``surelist._randomness._system``."""

    def __init__(self, folder: str, first: int | None = None) -> None:
        self.folder, self._first = folder, first  # the process of the tests themselves has number 0
        self._streams: dict[tuple[int, str], tuple[int, Any]] = {}

    def __call__(self, count: int) -> bytes:
        from hashlib import shake_256

        if not (test := self.test):
            return os.urandom(count)
        process, draws = self._stream(test)
        return shake_256(f"{test}\0{process}\0{next(draws)}".encode()).digest(count)

    def _stream(self, test: str) -> tuple[int, Any]:
        me = os.getpid(), test  # a fork is a process of its own
        if me not in self._streams:
            number = 0 if me[0] == self._first else self._number(test)
            self._streams.setdefault(me, (number, itertools.count()))
        return self._streams[me]

    def _number(self, test: str) -> int:
        with open(self._place(test), "ab") as file:
            file.write(b".")
            file.flush()
            return file.tell()

    def _place(self, test: str) -> str:
        from hashlib import sha256

        return os.path.join(self.folder, sha256(test.encode()).hexdigest())

    @property
    def test(self) -> str:
        """The name of the test that runs."""
        with open(os.path.join(self.folder, "test"), encoding="utf-8") as file:
            return file.read()

    @test.setter
    def test(self, name: str) -> None:
        part = os.path.join(self.folder, "test.part")  # whole at every moment: other processes read it
        with open(part, "w", encoding="utf-8") as file:
            file.write(name)
        os.replace(part, os.path.join(self.folder, "test"))

    def forget(self, test: str) -> None:
        """The test starts from the beginning."""
        self._streams.pop((os.getpid(), test), None)
        if os.path.exists(self._place(test)):
            os.unlink(self._place(test))


class Replaced:
    """Finds one module and replaces its source of randomness as soon as it is loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != MODULE:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                module._system = Draws(os.environ[FOLDER])

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if FOLDER in os.environ and MODULE not in sys.modules:
    sys.meta_path.insert(0, Replaced)  # type: ignore[arg-type]
