"""What takes longer than two seconds says so, on a terminal, to stderr: what is done, and since when."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

AFTER = 2.0  # seconds; then after twice as long, and so on


class Progress:
    """Call it with a few words at the start of every step; ``running`` surrounds a whole command."""

    def __init__(self) -> None:
        self.step = "working"

    def __call__(self, what: str) -> None:
        self.step = what

    @contextmanager
    def running(self, after: float = AFTER) -> Iterator[None]:
        """A line on stderr once the block has taken a while, and again ever more rarely."""
        if not sys.stderr.isatty():
            yield
            return
        done = threading.Event()
        thread = threading.Thread(target=self._say, args=(done, after), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _say(self, done: threading.Event, wait: float) -> None:
        start = time.monotonic()
        while not done.wait(start + wait - time.monotonic()):
            click.echo(f"{time.monotonic() - start:5.0f} s  {self.step} ...", err=True)
            wait *= 2


PROGRESS = Progress()  # of the command that runs
