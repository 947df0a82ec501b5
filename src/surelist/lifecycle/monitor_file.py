"""A monitor's state as plain values, and its file: strict, versioned JSON, no code in it.

What is read is complete, finite and does not contradict itself; ``monitor`` builds from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import astuple

from surelist import _numerals as numerals
from surelist._files import hold, parse
from surelist._version import __version__
from surelist.bounds.betting import DROPS
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.lifecycle.pools_seen import Memory
from surelist.promises import policy_file
from surelist.promises.phrases import counted, percent
from surelist.promises.policy import Policy

FORMAT: Literal[1] = 1
Shape = TypeVar("Shape")


class Outcomes(Struct, frozen=True, forbid_unknown_fields=True):
    """What reviews have shown. Missing reviews are counted apart, never taken for an outcome.

    ``successes`` are known, ``unreviewed`` might be. Of an audit: ``missed`` candidates turned out
    qualified though unlisted, ``unaudited`` ones were drawn and not reviewed.
    """

    trials: int = 0
    successes: int = 0
    unreviewed: int = 0
    missed: int = 0
    unaudited: int = 0

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            self.trials + other.trials,
            self.successes + other.successes,
            self.unreviewed + other.unreviewed,
            self.missed + other.missed,
            self.unaudited + other.unaudited,
        )

    def __sub__(self, other: Outcomes) -> Outcomes:
        return Outcomes(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Tally(Struct, forbid_unknown_fields=True):
    """The counts of one group: in all, and before the threshold last changed."""

    group: str | None
    total: Outcomes = field(default_factory=Outcomes)
    before: Outcomes = field(default_factory=Outcomes)
    log_wealth: list[float] = field(default_factory=list)  # of the bets, where this is in a file

    @property
    def since(self) -> Outcomes:
        """The counts since the threshold last changed."""
        return self.total - self.before


class Alarm(Struct, frozen=True, forbid_unknown_fields=True):
    """When the alarm was raised; it stays raised."""

    pools: int
    review_id: str | None
    e_value: float

    def describe(self, alpha: float) -> str:
        last = f", the last one {self.review_id!r}," if self.review_id is not None else ""
        return (
            f"the reviews of {counted(self.pools, 'pool')}{last} speak against it (evidence "
            f"{numerals.number(self.e_value, 3)}, alarm at {numerals.number(1 / alpha, 3)}; a false alarm "
            f"has probability at most {percent(alpha)}). Something has changed, or the calibration was among "
            "the rare ones that fail. Recalibrate on fresh rows."
        )


class Watch(Struct, forbid_unknown_fields=True):
    """All that a monitor knows, the policy aside."""

    alpha: float
    audit_rate: float | None
    pools: int
    tallies: list[Tally]
    alarm: Alarm | None
    memory: Memory


class _MonitorFile(Struct, forbid_unknown_fields=True):
    format: Literal[1]
    kind: Literal["surelist monitor"]
    version: str
    policy: dict[str, Any]
    watch: Watch


def dumps(policy: Policy, watch: Watch) -> str:
    """A monitor's state and the policy it watches, as text."""
    return state_text(
        _MonitorFile(FORMAT, "surelist monitor", __version__, policy_file.to_dict(policy), watch)
    )


def loads(text: str, path: Path) -> tuple[Policy, Watch]:
    """The policy watched, and the state; ``path`` is for errors."""
    file = parse_state(text, _MonitorFile, path)
    policy = Policy.loads(json.dumps(file.policy), name=str(path))
    verify(file.watch)
    return policy, file.watch


def verify(watch: Watch) -> None:
    """What can be checked without the policy."""
    hold(0 < watch.alpha < 1 and watch.pools >= 0, "the monitor's level or count of pools is impossible")
    hold(watch.audit_rate is None or 0 < watch.audit_rate <= 1, "the audit rate is impossible")
    for tally in watch.tallies:
        whole = min(astuple(tally.before) + astuple(tally.since)) >= 0
        fitting = tally.total.successes + tally.total.unreviewed <= tally.total.trials
        hold(whole and fitting and len(tally.log_wealth) == len(DROPS), "the monitor's counts are impossible")
    if watch.alarm is not None:
        hold(watch.alarm.e_value * watch.alpha >= 1 - 1e-9, "the alarm's e-value is below its level")


@contextmanager
def in_file(path: str | Path) -> Iterator[None]:
    """Say in errors which state file contradicts itself."""
    try:
        yield
    except SurelistError as error:
        if isinstance(error, InvalidInput) and error.field == "state":
            raise
        raise PolicyFileError("state", f"{path}: {error}") from error


def state_text(file: Struct) -> str:
    """One line of JSON."""
    return msgspec.json.encode(file).decode() + "\n"


def parse_state(text: str, shape: type[Shape], path: Path) -> Shape:
    """A state file of the kind that ``shape`` describes."""
    return parse(text, shape, FORMAT, f"state: {path}")
