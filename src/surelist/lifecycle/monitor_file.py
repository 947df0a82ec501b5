"""A monitor's state as plain values, and its file: strict, versioned JSON, no code in it.

What is read is complete, finite and does not contradict itself; ``monitor`` builds from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from surelist._files import STRICT, hold, parse, plain
from surelist._version import __version__
from surelist.bounds.betting import DROPS
from surelist.errors import PolicyFileError, SurelistError
from surelist.lifecycle.seen import Memory
from surelist.promises import policy_file
from surelist.promises.phrases import percent
from surelist.promises.policy import Policy

FORMAT: Literal[1] = 1
Shape = TypeVar("Shape")


@dataclass
class Tally:
    """Trials and successes of one group: in all, and before the threshold last changed."""

    group: str | None
    trials: int = 0
    successes: int = 0
    trials_before: int = 0
    successes_before: int = 0
    log_wealth: list[float] = field(default_factory=list)  # of the bets, where this is in a file

    def add(self, trials: int, successes: int) -> None:
        self.trials += trials
        self.successes += successes

    @property
    def since(self) -> tuple[int, int]:
        """Trials and successes since the threshold last changed."""
        return self.trials - self.trials_before, self.successes - self.successes_before


@dataclass(frozen=True)
class Alarm:
    """When the alarm was raised; it stays raised."""

    pools: int
    review_id: str | None
    e_value: float

    def describe(self, alpha: float) -> str:
        last = f", the last one {self.review_id!r}," if self.review_id is not None else ""
        return (
            f"the reviews of {self.pools:,} pools{last} speak against it (e-value "
            f"{self.e_value:.3g}, alarm at {1 / alpha:.3g}; a false alarm has probability at most "
            f"{percent(alpha)}). Something has changed, or the calibration was among the rare ones that "
            "fail. Recalibrate on fresh rows."
        )


@dataclass
class Watch:
    """All that a monitor knows, the policy aside."""

    alpha: float
    pools: int
    tallies: list[Tally]
    alarm: Alarm | None
    memory: Memory


@dataclass
class _MonitorFile:
    __pydantic_config__ = STRICT
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
    for tally in watch.tallies:
        hold(
            0 <= tally.successes_before <= tally.successes <= tally.trials
            and 0 <= tally.trials_before <= tally.trials
            and len(tally.log_wealth) == len(DROPS),
            "the monitor's counts are impossible",
        )
    if watch.alarm is not None:
        hold(watch.alarm.e_value * watch.alpha >= 1 - 1e-9, "the alarm's e-value is below its level")


@contextmanager
def in_file(path: str | Path) -> Iterator[None]:
    """Say in errors which state file contradicts itself."""
    try:
        yield
    except SurelistError as error:
        if str(error).startswith("state: "):
            raise
        raise PolicyFileError(f"state: {path}: {error}") from error


def state_text(file: Any) -> str:
    """One line of JSON."""
    return json.dumps(plain(file), ensure_ascii=False, allow_nan=False) + "\n"


def parse_state(text: str, shape: type[Shape], path: Path) -> Shape:
    """A state file of the kind that ``shape`` describes."""
    return parse(text, shape, FORMAT, f"state: {path}")
