"""What commands read and print alike: files or stdin in; a picture, JSON or words out.

What takes longer than two seconds says so, on a terminal, to stderr: what is done, and since when.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelist._files import temporary_folder

if TYPE_CHECKING:
    from surelist.promises.policy import Policy


def answer(
    made: Any, plot: Path | None, json_: bool, body: Callable[[], Mapping[str, Any]], said: str | None = None,
    *, quiet: bool = False,
) -> None:  # fmt: skip
    """The picture where one was asked for, and the result as JSON or in words, or not at all."""
    draw(made, plot)
    if not quiet:
        click.echo(json.dumps(body()) if json_ else said or made.describe())


def say(json_: bool, text: str, **facts: Any) -> None:
    """The text for people, or the facts for machines."""
    click.echo(json.dumps(facts) if json_ else text)


def draw(shown: Any, plot: Path | None) -> None:
    """Draw it where a file for it was named."""
    if plot is not None:
        shown.plot(path=plot)


def points(made: object, *names: str) -> list[dict[str, float]]:
    """The columns of a curve, point by point."""
    columns = (getattr(made, name).tolist() for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@contextmanager
def input_file(name: str) -> Iterator[str]:
    """The input as a file; stdin is spooled to one first."""
    if name != "-":
        yield name
        return
    from surelist.workflows.source import begins_as_json

    with temporary_folder() as folder:
        path = folder / "stdin.csv"
        with path.open("wb") as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        with path.open("rb") as spool:
            lines = begins_as_json(spool.read(1 << 12))
        yield str(path.rename(path.with_suffix(".jsonl")) if lines else path)


@contextmanager
def output_file(name: str) -> Iterator[str]:
    """The output as a file; stdout gets it whole, once it is complete."""
    if name != "-":
        yield name
        return
    with temporary_folder() as folder:
        path = folder / "stdout.csv"
        yield str(path)
        with path.open("rb") as done:
            shutil.copyfileobj(done, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


def summary_of(policy: Policy) -> dict[str, object]:
    """What --json prints of a policy."""
    from msgspec import structs

    from surelist.promises import policy_file

    excess = {str(name or ""): structs.asdict(bound) for name, bound in policy.excess_bound.items()}
    noted = {"conditions": list(policy.conditions), "warnings": list(policy.warnings)}
    return {**policy_file.to_dict(policy), **noted, "excess_bound": excess}


def print_reading(sentences: Sequence[str], quiet: bool) -> None:
    """What was understood of a file, before anything is done with it; JSON has it in the policy."""
    for each in () if quiet else sentences:
        click.echo(each, err=True)


def print_policy(policy: Policy) -> None:
    """The promise in bold, then why and on what conditions."""
    promise, _, rest = policy.describe().partition("\n")
    click.secho(promise, bold=True)
    click.echo(rest)


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
