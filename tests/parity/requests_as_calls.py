"""Requests in a neutral form to calls of the public Python functions, and what came of them as plain values.

``requests.json`` names no function and no parameter of surelist: when those change, this module follows and
the files stay as they are. ``python -m tests.parity.requests_as_calls`` writes ``answers.json`` anew.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import surelist as sl
from surelist.examples import population
from surelist.promises.kinds import promise_class

HERE = Path(__file__).parent
REQUESTS: dict[str, dict[str, Any]] = {
    each["name"]: each for each in json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
}
ANSWERS = HERE / "answers.json"


class Chance:
    """Recorded randomness in place of the system's: the same numbers in the same order for one request."""

    def __init__(self, name: str) -> None:
        self.seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        self.calls, self.latest = 0, -1
        self.default_rng = np.random.default_rng

    def _next(self) -> np.random.Generator:
        self.calls += 1
        return self.default_rng([self.seed, self.calls])

    def system(self, size: int) -> bytes:
        drawn = self._next().bytes(size)
        self.latest = int.from_bytes(drawn, "big")
        return drawn

    def generator(self, seed: Any = None) -> np.random.Generator:
        """One from fresh bits is the one of the latest call; other seeds stay what they are."""
        fresh = isinstance(seed, int) and seed == self.latest
        return self.default_rng([self.seed, self.calls] if fresh else seed)


@contextmanager
def recorded(request: dict[str, Any]) -> Iterator[Chance]:
    """The request's own randomness, and no warnings."""
    chance = Chance(request["name"])
    with (
        warnings.catch_warnings(),
        patch("surelist._randomness._system", chance.system),
        patch("numpy.random.default_rng", chance.generator),
    ):
        warnings.simplefilter("ignore")
        yield chance


def policy_of(request: dict[str, Any]) -> sl.Policy | sl.NotCertifiable:
    """The policy itself, or the refusal."""
    with recorded(request) as chance:
        try:
            return _policy(request, chance.default_rng)
        except sl.NotCertifiable as refusal:
            return refusal


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What surelist says to a request: thresholds, counts, levels and list, or the refusal's numbers."""
    with recorded(request) as chance:
        try:
            return _said(_policy(request, chance.default_rng), request, chance.default_rng)
        except sl.NotCertifiable as refusal:
            short = refusal.shortfall
            return {
                "refused": True, "rows": short.rows, "qualified": short.qualified_available,
                "count": short.critical_count, "largest_k": short.largest_k,
                "largest_share": short.largest_share, "rows_needed": short.rows_needed,
            }  # fmt: skip


def _rows(request: dict[str, Any], rng: Any) -> tuple[np.ndarray, np.ndarray]:
    scores, labels = population(rng([20, 1]), request.get("rows", 2_000))
    labels = labels.astype(bool)
    if "keep_qualified" in request:
        labels &= rng([20, 2]).random(len(labels)) < request["keep_qualified"]
    return _rounded(scores, request), labels


def _rounded(scores: np.ndarray, request: dict[str, Any]) -> np.ndarray:
    if "decimals" not in request:
        return scores
    return np.asarray(np.round(scores * request.get("scale", 1), request["decimals"]))


def _several(scores: np.ndarray, request: dict[str, Any], rng: Any, stream: int) -> Any:
    if "scores" not in request:
        return scores
    noise = rng([20, stream]).normal(0, 0.1, (request["scores"], len(scores)))
    return {f"score {at}": scores + at * noise[at] for at in range(request["scores"])}


def _target(described: Any) -> Any:
    if isinstance(described, list):
        return [_target(each) for each in described]
    if "kind" not in described:
        return {name: _target(each) for name, each in described.items()}
    numbers = {name: value for name, value in described.items() if name != "kind"}
    if isinstance(numbers.get("pool_size"), list):
        numbers["pool_size"] = tuple(numbers["pool_size"])
    return _kind(described["kind"], numbers)


def _kind(kind: str, numbers: dict[str, Any]) -> Any:
    if kind == "false-share":
        return sl.FalseShare(round(1 - numbers["share"], 12))
    if kind == "value" and "pool_size" not in numbers:
        return sl.PoolAverage(**numbers, of="value")
    named = promise_class(kind)
    assert named is not None, f"no kind of promise is called {kind!r} in files"
    return named(**numbers)


def _names(rows: int) -> np.ndarray:
    return np.where(np.arange(rows) % 3 == 0, "north", "south")


def _groups(described: dict[str, Any], rows: int) -> Any:
    names = _names(rows)
    if described.get("overlapping"):
        return {"north": names == "north", "big": np.arange(rows) % 2 == 0}
    return names


def _policy(request: dict[str, Any], rng: Any) -> sl.Policy:
    scores, labels = _rows(request, rng)
    target = _target(request["target"])
    groups = request.get("groups")
    if "labelling" in request:
        names = {} if groups is None else {"groups": _groups(groups, len(scores)), "purpose": "parity"}
        work = sl.Labelling(scores, target, labels=request["labelling"], **names)
        while len(rows := work.ask()):
            work.tell(rows, labels[rows])
        return work.policy
    if "campaign" in request:
        return sl.Campaign(scores, labels, target, schedule=tuple(request["campaign"])).policy
    options: dict[str, Any] = {
        name: request[name] for name in ("alpha", "calibration_share") if name in request
    }
    options["rule"] = request.get("rule", "exact")
    if groups is not None:
        split = groups.get("split", "bonferroni")
        options["groups"] = sl.Groups(
            _groups(groups, len(scores)), purpose="parity", rows=groups["rows"], split=split
        )
    if "ties" in request:
        options["ties"] = sl.Hash([f"c{at}" for at in range(len(scores))])
    if "shift" in request:
        options["shift"] = sl.DensityRatio(1.5 - scores / 2, **request["shift"])
    if "pools" in request:
        options["pools"] = np.arange(len(scores)) % request["pools"]
    if "unlabelled" in request:
        others = _rounded(population(rng([20, 3]), request["unlabelled"])[0], request)
        options["unlabelled"] = _several(others, request, rng, 4)
    given = _labels(request, scores, labels, rng)
    if "missing_labels" in request:
        options["missing_labels"] = request["missing_labels"]
    return sl.calibrate(_several(scores, request, rng, 5), given, target, **options)


def _labels(request: dict[str, Any], scores: np.ndarray, labels: np.ndarray, rng: Any) -> Any:
    coins = rng([20, 6]).random(len(scores))
    if "missing" in request:
        return np.where(coins < request["missing"], np.nan, labels)
    if request.get("amounts"):
        return 100.0 * labels
    if "labels" not in request:
        return labels
    drawn = request["labels"]
    if "above" in drawn:
        kept = (scores >= drawn["above"]) | (coins < drawn["rate"])
        return sl.SampledLabels(
            np.where(kept, labels, np.nan), probability=drawn["rate"], above=drawn["above"]
        )
    rates = np.maximum(drawn["lowest_rate"], scores)
    return sl.SampledLabels(np.where(coins < rates, labels, np.nan), probability=rates, **drawn)


def _said(policy: sl.Policy, request: dict[str, Any], rng: Any) -> dict[str, Any]:
    pool = _rounded(population(rng([20, 7]), 400)[0], request)
    if policy.of_one_pool:
        pool = _rounded(population(rng([20, 3]), request["unlabelled"])[0], request)
    scores: Any = pool
    if policy.choice is not None:
        scores = {policy.choice.chosen: _several(pool, request, rng, 8)[policy.choice.chosen]}
    groups = _groups(request["groups"], len(pool)) if "groups" in request else None
    ids = [f"n{at}" for at in range(len(pool))] if "ties" in request else None
    mask = policy.select(scores, groups, ids)
    return {
        "chosen": policy.choice.chosen if policy.choice else None,
        "salt": policy.salt.key if policy.salt else None,
        "seed": policy.shift.seed if policy.shift else None,
        "listed": int(mask.sum()), "list": hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16],
        "cutoffs": [
            {
                "group": cutoff.group, "alpha": cutoff.level.alpha, "rows": cutoff.rows,
                "qualified": cutoff.qualified,
                "steps": [
                    [step.pool_size, step.critical_count, step.threshold.hex(), step.tie_break]
                    for step in cutoff.steps
                ],
            }
            for cutoff in policy.cutoffs
        ],
    }  # fmt: skip


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(answer(each))}" for name, each in REQUESTS.items()]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} answers written to {ANSWERS}")
