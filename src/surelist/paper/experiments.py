"""The four experiments: their settings, and one run of one of them.

A run redraws everything: who is left out so that 20 % are qualified, the two halves, the
training and calibration rows, the noise and the pools. Everything follows from (seed,
experiment, run, setting), so runs may be done in any order and resumed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import surelist as sl
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.paper import methods
from surelist.paper.data import People
from surelist.paper.evaluate import Candidates, Outcome, average
from surelist.paper.screening import GROUPS, Scored, Setup, split, train


@dataclass(frozen=True)
class Experiment:
    """One experiment: its settings and what they mean."""

    name: str
    number: int
    settings: tuple[float, ...]
    axis: str
    grouped: bool = False

    @property
    def varies_size(self) -> bool:
        return self.name.endswith("size")

    def noise(self, setting: float) -> float:
        return 0.0 if self.varies_size else setting


NOISE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIZES = (1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5)
MINORITY_SIZES = (300.0, 500.0, 1e3, 2e3, 5e3, 1e4)

EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment("noise", 1, NOISE, "classifier noise ratio"),
        Experiment("calibration-size", 2, SIZES, "calibration rows"),
        Experiment("diversity-noise", 3, NOISE, "classifier noise ratio, minority only", grouped=True),
        Experiment("diversity-size", 4, MINORITY_SIZES, "minority calibration rows", grouped=True),
    )
}


@dataclass(frozen=True)
class Measurement:
    """One line of the results: one method, one group, one run of one setting.

    ``eq``, ``ss`` and ``qualified`` are expectations on the whole test half; the same with
    ``_pools`` are averages over the drawn pools. ``eq`` is 1 where qualified >= k.
    """

    experiment: str
    setting: float
    run: int
    method: str
    group: str
    certified: bool
    k: float
    eq: int
    ss: float
    qualified: float
    eq_pools: int
    ss_pools: float
    qualified_pools: float


def fitting_settings(experiment: Experiment, population: People, setup: Setup) -> tuple[float, ...]:
    """The settings this population is large enough for; an error if there is none."""
    rng = np.random.default_rng(0)
    halves = split(population, experiment.grouped, setup, rng)
    available = len(halves.calibration)
    if experiment.name == "diversity-size":
        available = int(0.97 * np.count_nonzero(population.minority[halves.calibration]))
    needed = experiment.settings if experiment.varies_size else (float(setup.calibration_rows),)
    if available < min(needed):
        raise InvalidInput(
            "data",
            f"{experiment.name} needs {min(needed):,.0f} calibration rows beside {setup.train_rows:,} for "
            f"training; this population leaves {max(0, available):,}. Use more people.",
        )
    return tuple(s for s in experiment.settings if not experiment.varies_size or s <= available)


def one_run(
    population: People,
    experiment: Experiment,
    run: int,
    seed: int,
    settings: tuple[float, ...],
    setup: Setup,
) -> list[Measurement]:
    """All settings of one run."""
    rng = np.random.default_rng([seed, experiment.number, run])
    halves = split(population, experiment.grouped, setup, rng)
    classifier = train(population, halves.train)
    calibration = classifier.score(population, halves.calibration)
    test = classifier.score(population, halves.test)
    targets = _targets(test, experiment.grouped, setup)
    rows = []
    for setting in settings:
        index = experiment.settings.index(setting)
        draws = np.random.default_rng([seed, experiment.number, run, index])
        rows += _one_setting(experiment, setting, run, calibration, test, targets, setup, draws)
    return rows


def _targets(test: Scored, grouped: bool, setup: Setup) -> dict[str, sl.Expected]:
    """k and pool size per group. Known inputs: they come from the test half, not from calibration."""
    if not grouped:
        return {"all": sl.Expected(setup.k, setup.pool_size)}
    names = test.minority.astype(np.int8)
    sizes = {code: setup.pool_size * float(np.mean(names == code)) for code in range(len(GROUPS))}
    targets = sl.equal_opportunity(test.qualified, names, setup.k, sizes)
    return {group: targets[code] for code, group in enumerate(GROUPS)}


def _one_setting(
    experiment: Experiment, setting: float, run: int, calibration: Scored, test: Scored,
    targets: dict[str, sl.Expected], setup: Setup, rng: np.random.Generator,
) -> list[Measurement]:  # fmt: skip
    chosen = calibration.take(_calibration_rows(experiment, setting, calibration, setup))
    noise = experiment.noise(setting)
    chosen = chosen.noisy(noise, rng, experiment.grouped)
    test = test.noisy(noise, rng, experiment.grouped)
    drawn = test.take(rng.integers(len(test.scores), size=(setup.pools, setup.pool_size)))
    table = _as_pools(test, setup.pool_size)
    rows = []
    for group, target in targets.items():
        fitted = _fit(chosen, test, group, target, setup)
        expected = average(fitted, _group(table, group), target.k)
        pools = average(fitted, _group(drawn, group), target.k)
        rows += [
            _row(experiment, setting, run, name, group, fitted, target.k, expected[name], pools[name])
            for name in expected
        ]
    return rows + (_totals(rows, setup.k) if experiment.grouped else [])


def _fit(chosen: Scored, test: Scored, group: str, target: sl.Expected, setup: Setup) -> methods.Fitted:
    """Every method on one group's rows; the oracle knows the test half; CSS blind to groups beside."""
    if group == "all":
        fitted = methods.fit(chosen.scores, chosen.qualified, target, setup.alpha)
        return fitted.beside(methods.oracle(test.scores, test.qualified, target))
    rows, truth = (people.take(people.minority == (group == "minority")) for people in (chosen, test))
    fitted = methods.fit(rows.scores, rows.qualified, target, setup.group_alpha)
    everyone = sl.Expected(setup.k, setup.pool_size)
    blind = methods.fit_css(chosen.scores, chosen.qualified, everyone, setup.alpha)
    known = methods.oracle(truth.scores, truth.qualified, target)
    return fitted.renamed("CSS", methods.DIVERSITY).beside(known).beside(blind)


def _calibration_rows(experiment: Experiment, setting: float, available: Scored, setup: Setup) -> Any:
    if experiment.name == "calibration-size":
        return slice(0, int(setting))
    if not experiment.varies_size:
        return slice(0, setup.calibration_rows)
    majority = np.flatnonzero(~available.minority[: setup.calibration_rows])
    minority = np.flatnonzero(available.minority)[: int(setting)]
    return np.sort(np.concatenate([majority, minority]))


def _as_pools(people: Scored, pool_size: int) -> Scored:
    shape = (-1, pool_size)
    return Scored(
        people.scores.reshape(shape), people.qualified.reshape(shape), people.minority.reshape(shape)
    )


def _group(pools: Scored, group: str) -> Candidates:
    member = None if group == "all" else pools.minority == (group == "minority")
    return Candidates(pools.scores, pools.qualified, member)


def _row(
    experiment: Experiment, setting: float, run: int, method: str, group: str,
    fitted: methods.Fitted, k: float, expected: Outcome, pools: Outcome,
) -> Measurement:  # fmt: skip
    return Measurement(
        experiment.name, setting, run, method, group, method not in fitted.refused, k,
        _enough(expected.qualified, k), expected.size, expected.qualified,
        _enough(pools.qualified, k), pools.size, pools.qualified,
    )  # fmt: skip


def _enough(qualified: float, k: float) -> int:
    return int(qualified >= k - 1e-9)  # the oracle reaches k exactly, up to rounding


def _totals(rows: list[Measurement], k: float) -> list[Measurement]:
    """Both groups together, per method."""
    combined = []
    for method in dict.fromkeys(row.method for row in rows):
        both = [row for row in rows if row.method == method]
        hits = sum(row.qualified for row in both)
        drawn = sum(row.qualified_pools for row in both)
        first = both[0]
        totals = Measurement(
            first.experiment, first.setting, first.run, method, "all",
            all(row.certified for row in both), k,
            _enough(hits, k), sum(row.ss for row in both), hits,
            _enough(drawn, k), sum(row.ss_pools for row in both), drawn,
        )  # fmt: skip
        combined.append(totals)
    return combined
