"""State files of monitors, and what all state files share: strict, versioned JSON, no code in it.

Loading rejects what ``policy_file`` rejects: unknown versions, unknown or missing fields,
non-finite numbers, and whatever contradicts the evidence in the same file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from surelist._files import writing
from surelist._strict import File, Strict, hold, parse
from surelist._version import __version__
from surelist.bounds.betting import DROPS
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.lifecycle.monitor import Alarm, Monitor, Tally
from surelist.lifecycle.seen import Memory
from surelist.promises import policy_file
from surelist.promises.policy import Policy

FORMAT: Literal[1] = 1


class _Tally(Strict):
    group: str | None
    trials: int = Field(ge=0)
    successes: int = Field(ge=0)
    trials_before: int = Field(ge=0)
    successes_before: int = Field(ge=0)
    log_wealth: list[float] = Field(min_length=len(DROPS), max_length=len(DROPS))


class _Alarm(Strict):
    pools: int
    review_id: str | None
    e_value: float


class MemoryFile(Strict):
    kept: dict[str, str]
    forgotten: str | None


class Watch(Strict):
    alpha: float = Field(gt=0, lt=1)
    pools: int = Field(ge=0)
    tallies: list[_Tally]
    alarm: _Alarm | None
    memory: MemoryFile


class _MonitorFile(Strict):
    format: Literal[1]
    kind: Literal["surelist monitor"]
    version: str
    policy: dict[str, Any]
    watch: Watch


def save(monitor: Monitor, path: Path) -> None:
    """Write a monitor's state, complete or not at all."""
    with writing(path) as temporary:
        temporary.write_text(dumps(monitor), encoding="utf-8")


def dumps(monitor: Monitor) -> str:
    """A monitor's state as JSON text, with the policy it watches."""
    policy = policy_file.to_dict(monitor._policy)
    return state_text(
        _MonitorFile(
            format=FORMAT,
            kind="surelist monitor",
            version=__version__,
            policy=policy,
            watch=dump_watch(monitor),
        )
    )


def load(path: Path) -> Monitor:
    """Read and verify a monitor's state."""
    file = read_state(path, _MonitorFile)
    try:
        policy = Policy.loads(json.dumps(file.policy), name=str(path))
        return load_watch(file.watch, Monitor(policy, file.watch.alpha))
    except SurelistError as error:
        raise PolicyFileError(f"state: {path}: {error}") from error


def dump_watch(monitor: Monitor) -> Watch:
    """The counts, bets and memory of a monitor."""
    return Watch(
        alpha=monitor.alpha,
        pools=monitor.pools,
        tallies=[
            _Tally(group=group, **vars(tally), log_wealth=monitor.bets[group].logs.tolist())
            for group, tally in monitor.tallies.items()
        ],
        alarm=_Alarm(**vars(monitor.raised)) if monitor.raised else None,
        memory=MemoryFile(kept=monitor._memory.kept, forgotten=monitor._memory.forgotten),
    )


def load_watch(file: Watch, monitor: Monitor) -> Monitor:
    """Put them back into a monitor of the same policy."""
    groups = [tally.group for tally in file.tallies]
    hold(groups == list(monitor.tallies), "the monitor's groups are not those of the policy")
    for tally in file.tallies:
        hold(
            tally.successes_before <= tally.successes <= tally.trials and tally.trials_before <= tally.trials,
            "the monitor's counts are impossible",
        )
        monitor.tallies[tally.group] = Tally(**tally.model_dump(exclude={"group", "log_wealth"}))
        bets = monitor.bets[tally.group]
        bets.logs, bets.pools = np.asarray(tally.log_wealth), file.pools
    monitor.pools = file.pools
    monitor._memory = Memory(file.memory.kept, file.memory.forgotten)
    if file.alarm is not None:
        hold(file.alarm.e_value * monitor.alpha >= 1 - 1e-9, "the alarm's e-value is below its level")
        monitor.raised = Alarm(**vars(file.alarm))
    hold(monitor.alarm or not monitor.speaks_against, "the alarm was taken out")
    return monitor


def state_text(file: BaseModel) -> str:
    """One line of JSON."""
    return json.dumps(file.model_dump(), ensure_ascii=False, allow_nan=False) + "\n"


def read_state(path: Path, model: type[File]) -> File:
    """A state file of the kind and version that ``model`` describes."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"state: cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise PolicyFileError(f"state: {path} is not a text file.") from error
    return parse(text, model, FORMAT, f"state: {path}")
