"""State files of monitors and campaigns: strict, versioned JSON, under 1 MB. No code in them.

Loading rejects what ``policy_file`` rejects: unknown versions, unknown or missing fields,
non-finite numbers, and whatever contradicts the evidence in the same file.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field, ValidationError

from surelist import policy_file
from surelist._files import writing
from surelist._memory import Memory
from surelist._score_counts import ScoreCounts
from surelist._version import __version__
from surelist.adaptive import Campaign
from surelist.betting import DROPS
from surelist.errors import InvalidInput, PolicyFileError, SurelistError
from surelist.first_crossing import FirstCrossing
from surelist.looks import Epoch, Update
from surelist.monitoring import Alarm, Monitor, Tally
from surelist.policy_file import _Expected, _hold, _Model, _no_constant
from surelist.reviews import UNKNOWN, Reviews, Screened
from surelist.targets import Expected

FORMAT: Literal[1] = 1
LABELS = "01?"  # how reviews are written


class _Tally(_Model):
    group: str | None
    trials: int = Field(ge=0)
    successes: int = Field(ge=0)
    trials_before: int = Field(ge=0)
    successes_before: int = Field(ge=0)
    log_wealth: list[float] = Field(min_length=len(DROPS), max_length=len(DROPS))


class _Alarm(_Model):
    pools: int
    review_id: str | None
    e_value: float


class _Memory(_Model):
    kept: dict[str, str]
    forgotten: str | None


class _Watch(_Model):
    alpha: float = Field(gt=0, lt=1)
    pools: int = Field(ge=0)
    tallies: list[_Tally]
    alarm: _Alarm | None
    memory: _Memory


class _MonitorFile(_Model):
    format: Literal[1]
    kind: Literal["surelist monitor"]
    version: str
    policy: dict[str, Any]
    watch: _Watch


class _Scores(_Model):
    scores: list[float]
    counts: list[int]
    rounded: bool
    fresh: list[float]


class _Update(_Model):
    pools: int
    rows: int
    count: int
    threshold: float | None
    list_size: float
    floor: float


class _Epoch(_Model):
    pools: int
    candidates: int
    shortlisted: int


class _Screened(_Model):
    pool: str
    size: int = Field(ge=0)
    look: int | None
    ids: list[str]
    scores: list[float]
    labels: str = Field(pattern="^[01?]*$")
    closed: bool


class _CampaignFile(_Model):
    format: Literal[1]
    kind: Literal["surelist campaign"]
    promise: str
    target: _Expected
    alpha: float = Field(gt=0, lt=1)
    schedule: list[int]
    monitor_alpha: float = Field(gt=0, lt=1)
    uncertified: Literal["refuse", "everyone"]
    created: str
    version: str
    fingerprint: str
    rows: int
    pools: int
    chosen: int | None
    updates: list[_Update] = Field(min_length=1)
    epochs: list[_Epoch]
    qualified: _Scores
    listed: _Scores
    screened: list[_Screened]
    waiting: list[str]
    missing: int = Field(ge=0)
    watched: int | None
    memory: _Memory
    watch: _Watch | None


_Any = TypeVar("_Any", _MonitorFile, _CampaignFile)


def save_monitor(monitor: Monitor, path: Path) -> None:
    """Write a monitor's state, complete or not at all."""
    with writing(path) as temporary:
        temporary.write_text(dumps_monitor(monitor), encoding="utf-8")


def dumps_monitor(monitor: Monitor) -> str:
    """A monitor's state as JSON text, with the policy it watches."""
    policy = policy_file.to_dict(monitor._policy)
    return _text(
        _MonitorFile(
            format=FORMAT,
            kind="surelist monitor",
            version=__version__,
            policy=policy,
            watch=_dump_watch(monitor),
        )
    )


def load_monitor(path: Path) -> Monitor:
    """Read and verify a monitor's state."""
    file = _read(path, _MonitorFile)
    try:
        policy = policy_file.loads(json.dumps(file.policy), name=str(path))
        return _load_watch(file.watch, Monitor(policy, file.watch.alpha))
    except SurelistError as error:
        raise PolicyFileError(f"state: {path}: {error}") from error


def save_campaign(campaign: Campaign, path: Path) -> None:
    """Write a campaign's state, complete or not at all."""
    with writing(path) as temporary:
        temporary.write_text(dumps_campaign(campaign), encoding="utf-8")


def dumps_campaign(campaign: Campaign) -> str:
    """The state as JSON text."""
    return _text(
        _CampaignFile(
            format=FORMAT,
            kind="surelist campaign",
            promise=campaign.promise,
            target=_Expected(
                kind="expected", k=float(campaign.target.k), pool_size=float(campaign.target.pool_size)
            ),
            alpha=campaign.alpha,
            schedule=list(campaign.schedule),
            monitor_alpha=campaign.monitor_alpha,
            uncertified=campaign.uncertified,  # type: ignore[arg-type]
            created=campaign.created,
            version=__version__,
            fingerprint=campaign.fingerprint,
            rows=campaign.rows,
            pools=campaign.pools,
            chosen=campaign.chosen,
            updates=[_Update(**vars(update)) for update in campaign.updates],
            epochs=[_Epoch(**vars(epoch)) for epoch in campaign.epochs],
            qualified=_dump_scores(campaign._qualified),
            listed=_dump_scores(campaign._listed),
            screened=[_dump_screened(each) for each in campaign.reviews.kept.values()],
            waiting=list(campaign.reviews.waiting),
            missing=campaign.reviews.missing,
            watched=campaign.reviews.watched,
            memory=_Memory(kept=campaign._memory.kept, forgotten=campaign._memory.forgotten),
            watch=_dump_watch(campaign.monitor) if campaign.monitor else None,
        )
    )


def load_campaign(path: Path) -> Campaign:
    """Read and verify a campaign's state."""
    file = _read(path, _CampaignFile)
    try:
        campaign = _build(file)
        _verify(campaign, file)
    except SurelistError as error:
        raise PolicyFileError(f"state: {path}: {error}") from error
    return campaign


def _build(file: _CampaignFile) -> Campaign:
    campaign = Campaign.__new__(Campaign)
    campaign.target = Expected(file.target.k, file.target.pool_size)
    campaign.alpha, campaign.monitor_alpha = file.alpha, file.monitor_alpha
    campaign.schedule, campaign.uncertified = tuple(file.schedule), file.uncertified
    campaign.created, campaign.fingerprint = file.created, file.fingerprint
    campaign.rows, campaign.pools, campaign.chosen = file.rows, file.pools, file.chosen
    campaign.updates = [Update(**vars(update)) for update in file.updates]
    campaign.epochs = [Epoch(**vars(epoch)) for epoch in file.epochs]
    campaign._qualified, campaign._listed = _load_scores(file.qualified), _load_scores(file.listed)
    campaign.reviews = _load_reviews(file)
    campaign._memory = Memory(file.memory.kept, file.memory.forgotten)
    campaign._walk = FirstCrossing(campaign.target.rate)
    campaign.monitor = None
    _verify_looks(campaign)
    if file.watch is not None:
        campaign.monitor = _load_watch(file.watch, Monitor(campaign.policy, file.monitor_alpha))
    return campaign


def _verify_looks(campaign: Campaign) -> None:
    """Replay the looks: counts follow from rows, thresholds never fall, looks are on schedule."""
    updates, schedule = campaign.updates, campaign.schedule
    _hold(len(updates) <= len(schedule) + 1, "more updates than the schedule has")
    planned = [0, *schedule][: len(updates)]
    _hold([update.pools for update in updates] == planned, "an update is off schedule")
    previous: float | None = None
    chosen = None
    for look, update in enumerate(updates):
        count = campaign._walk.next(update.rows, campaign.budgets[look])
        _hold(update.count == count, f"the count of update {look} should be {count}")
        fell = previous is not None and (update.threshold is None or update.threshold < previous)
        _hold(not fell, f"the threshold falls at update {look}")
        if update.threshold != previous:
            previous, chosen = update.threshold, look
    _hold(campaign.chosen == chosen, "the threshold in force belongs to another update")


def _verify(campaign: Campaign, file: _CampaignFile) -> None:
    _hold(all(a < b for a, b in zip(file.schedule, file.schedule[1:], strict=False)), "the schedule falls")
    _hold(len(file.epochs) == len(file.updates), "an update lacks its pools")
    _hold(sum(epoch.pools for epoch in file.epochs) == file.pools, "the pools do not add up")
    start = file.updates[0].rows
    _hold(start + sum(epoch.candidates for epoch in file.epochs) == file.rows, "the rows do not add up")
    if campaign.chosen is not None:
        needed = campaign.updates[campaign.chosen].count
        _hold(campaign._qualified.total >= needed, "too few rows are qualified for the threshold")
    for scores in (file.qualified, file.listed):
        _hold(campaign.threshold is None or min(scores.scores, default=np.inf) >= campaign.threshold,
              "rows below the threshold are in the evidence")  # fmt: skip
    _hold(campaign._qualified.total <= campaign._listed.total <= file.rows, "more scores than rows")
    _hold(file.watch is None or file.watch.alpha == file.monitor_alpha, "two levels of the monitor")
    _hold(campaign.promise == file.promise, "the promise does not say what the evidence says")


def _load_reviews(file: _CampaignFile) -> Reviews:
    reviews = Reviews()
    for each in file.screened:
        _hold(len(each.ids) == len(each.scores) == len(each.labels) <= each.size, "a pool's list is uneven")
        _hold(each.look is None or 0 <= each.look < len(file.updates), "a pool of no update")
        limit = None if each.look is None else file.updates[each.look].threshold
        _hold(limit is None or min(each.scores, default=np.inf) >= limit, "a listed score is too low")
        labels = np.asarray([-1 if mark == "?" else int(mark) for mark in each.labels], dtype=np.int8)
        scores = np.asarray(each.scores, dtype=np.float64)
        reviews.open(Screened(each.pool, each.size, each.look, each.ids, scores, labels, each.closed))
    _hold(set(file.waiting) <= set(reviews.kept), "an unknown pool waits for reviews")
    reviews.waiting, reviews.missing, reviews.watched = deque(file.waiting), file.missing, file.watched
    return reviews


def _dump_screened(each: Screened) -> _Screened:
    return _Screened(
        pool=each.name,
        size=each.size,
        look=each.look,
        ids=each.ids,
        scores=each.scores.tolist(),
        labels="".join("?" if label == UNKNOWN else LABELS[label] for label in each.labels.tolist()),
        closed=each.closed,
    )


def _dump_scores(scores: ScoreCounts) -> _Scores:
    return _Scores(
        scores=scores.scores.tolist(),
        counts=scores.counts.tolist(),
        rounded=scores.rounded,
        fresh=scores.fresh.tolist(),
    )


def _load_scores(file: _Scores) -> ScoreCounts:
    scores = np.asarray(file.scores, dtype=np.float64)
    counts = np.asarray(file.counts, dtype=np.int64)
    _hold(len(scores) == len(counts) and bool((counts > 0).all()), "scores and counts do not go together")
    _hold(bool((np.diff(scores) > 0).all()), "the scores are not in order")
    found = ScoreCounts(scores, counts, rounded=file.rounded)
    found.add(np.asarray(file.fresh, dtype=np.float64))
    return found


def _dump_watch(monitor: Monitor) -> _Watch:
    return _Watch(
        alpha=monitor.alpha,
        pools=monitor.pools,
        tallies=[
            _Tally(group=group, **vars(tally), log_wealth=monitor.bets[group].logs.tolist())
            for group, tally in monitor.tallies.items()
        ],
        alarm=_Alarm(**vars(monitor.raised)) if monitor.raised else None,
        memory=_Memory(kept=monitor._memory.kept, forgotten=monitor._memory.forgotten),
    )


def _load_watch(file: _Watch, monitor: Monitor) -> Monitor:
    groups = [tally.group for tally in file.tallies]
    _hold(groups == list(monitor.tallies), "the monitor's groups are not those of the policy")
    for tally in file.tallies:
        _hold(
            tally.successes_before <= tally.successes <= tally.trials and tally.trials_before <= tally.trials,
            "the monitor's counts are impossible",
        )
        monitor.tallies[tally.group] = Tally(**tally.model_dump(exclude={"group", "log_wealth"}))
        bets = monitor.bets[tally.group]
        bets.logs, bets.pools = np.asarray(tally.log_wealth), file.pools
    monitor.pools = file.pools
    monitor._memory = Memory(file.memory.kept, file.memory.forgotten)
    if file.alarm is not None:
        _hold(file.alarm.e_value * monitor.alpha >= 1 - 1e-9, "the alarm's e-value is below its level")
        monitor.raised = Alarm(**vars(file.alarm))
    _hold(monitor.alarm or not monitor.speaks_against, "the alarm was taken out")
    return monitor


def _text(file: _MonitorFile | _CampaignFile) -> str:
    return json.dumps(file.model_dump(), ensure_ascii=False, allow_nan=False) + "\n"


def _read(path: Path, model: type[_Any]) -> _Any:
    try:
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text, parse_constant=_no_constant)
    except OSError as error:
        raise InvalidInput(f"state: cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise PolicyFileError(f"state: {path} is not valid JSON: {error}.") from error
    kind = model.model_fields["kind"].annotation.__args__[0]  # type: ignore[union-attr]
    if not isinstance(raw, dict) or raw.get("kind") != kind:
        raise PolicyFileError(f"state: {path} is not a {kind} file.")
    if raw.get("format") != FORMAT:
        raise PolicyFileError(
            f"state: {path} has format version {raw.get('format')!r}; this surelist reads version {FORMAT}."
        )
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PolicyFileError(f"state: {path} does not fit at {where!r}: {first['msg']}.") from error
