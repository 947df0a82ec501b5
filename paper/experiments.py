"""The four experiments: their settings, and one run of one of them.

A run redraws everything: who is left out so that 20 % are qualified, the two halves, the
training and calibration rows, the noise and the pools. Everything follows from (seed,
experiment, run, setting), so runs may be done in any order and resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import surelist as sl
from paper import baselines
from paper.data import People
from paper.methods import DIVERSITY, NO_DIVERSITY, Fitted, Outcome, fit
from paper.screening import GROUPS, Scored, Setup, split, train


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
    calibration = split(population, experiment.grouped, setup, np.random.default_rng(0)).calibration
    available = len(calibration)
    if experiment.name == "diversity-size":
        available = int(0.97 * np.count_nonzero(population.minority[calibration]))
    needed = experiment.settings if experiment.varies_size else (float(setup.calibration_rows),)
    if available < min(needed):
        raise sl.InvalidInput(
            "data",
            f"{experiment.name} needs {min(needed):,.0f} calibration rows beside {setup.train_rows:,} for "
            f"training; this population leaves {max(0, available):,}. Use more people.",
        )
    return tuple(s for s in experiment.settings if not experiment.varies_size or s <= available)


def one_run(
    population: People, experiment: Experiment, run: int, seed: int, settings: tuple[float, ...], setup: Setup
) -> list[Measurement]:
    """All settings of one run."""
    numbers = [seed, experiment.number, run]
    halves = split(population, experiment.grouped, setup, np.random.default_rng(numbers))
    classifier = train(population, halves.train)
    calibration = classifier.score(population, halves.calibration)
    test = classifier.score(population, halves.test)
    targets = _targets(test, experiment.grouped, setup)
    rows = []
    for setting in settings:
        rng = np.random.default_rng([*numbers, experiment.settings.index(setting)])
        chosen = calibration.take(_calibration_rows(experiment, setting, calibration, setup))
        noise = 0.0 if experiment.varies_size else setting
        both = [each.noisy(noise, rng, experiment.grouped) for each in (chosen, test)]
        rows += _measured((experiment.name, setting, run), both[0], both[1], targets, setup, rng)
    return rows


def _targets(test: Scored, grouped: bool, setup: Setup) -> dict[str, sl.Expected]:
    """k and pool size per group. Known inputs: they come from the test half, not from calibration."""
    if not grouped:
        return {"all": sl.Expected(setup.k, setup.pool_size)}
    names = test.minority.astype(np.int8)
    sizes = {code: setup.pool_size * float(np.mean(names == code)) for code in range(len(GROUPS))}
    targets = sl.equal_opportunity(test.qualified, names, setup.k, sizes)
    return {group: targets[code] for code, group in enumerate(GROUPS)}


def _calibration_rows(experiment: Experiment, setting: float, available: Scored, setup: Setup) -> Any:
    if experiment.name == "calibration-size":
        return slice(0, int(setting))
    if not experiment.varies_size:
        return slice(0, setup.calibration_rows)
    majority = np.flatnonzero(~available.minority[: setup.calibration_rows])
    minority = np.flatnonzero(available.minority)[: int(setting)]
    return np.sort(np.concatenate([majority, minority]))


def _measured(
    which: tuple[str, float, int], chosen: Scored, test: Scored, targets: dict[str, sl.Expected],
    setup: Setup, rng: np.random.Generator,
) -> list[Measurement]:  # fmt: skip
    """Every method in every group, and both groups together, on the whole test half and on drawn pools."""
    drawn = test.take(rng.integers(len(test.scores), size=(setup.pools, setup.pool_size)))
    whole = test.take(np.arange(len(test.scores)).reshape(-1, setup.pool_size))
    rows = []
    for group, target in targets.items():
        fitted = _fit(chosen, test, group, target, setup)
        expected, pools = (
            fitted.average(each, target.k, None if group == "all" else each.minority == (group == "minority"))
            for each in (whole, drawn)
        )
        rows += [
            _row(which, name, group, name not in fitted.refused, target.k, expected[name], pools[name])
            for name in expected
        ]
    if "all" in targets:
        return rows
    together = []
    for method in dict.fromkeys(row.method for row in rows):
        both = [row for row in rows if row.method == method]
        expected_sum = Outcome(sum(row.ss for row in both), sum(row.qualified for row in both))
        pools_sum = Outcome(sum(row.ss_pools for row in both), sum(row.qualified_pools for row in both))
        certified = all(row.certified for row in both)
        together.append(_row(which, method, "all", certified, setup.k, expected_sum, pools_sum))
    return rows + together


def _fit(chosen: Scored, test: Scored, group: str, target: sl.Expected, setup: Setup) -> Fitted:
    """Every method on one group's rows; the oracle knows the test half; CSS blind to groups beside."""
    grouped, rows, truth = group != "all", chosen, test
    if grouped:
        rows, truth = (people.take(people.minority == (group == "minority")) for people in (chosen, test))
    fitted = fit(rows, target, setup.group_alpha if grouped else setup.alpha, DIVERSITY if grouped else "CSS")
    fitted.bands["Oracle"] = baselines.oracle_threshold(truth.scores, truth.qualified, target)
    if grouped:
        fitted.add_css(NO_DIVERSITY, chosen, sl.Expected(setup.k, setup.pool_size), setup.alpha)
    return fitted


def _row(
    which: tuple[str, float, int], method: str, group: str, certified: bool, k: float,
    expected: Outcome, pools: Outcome,
) -> Measurement:  # fmt: skip
    eq, eq_pools = (int(each.qualified >= k - 1e-9) for each in (expected, pools))
    # the oracle reaches k exactly, up to rounding
    return Measurement(*which, method, group, certified, k, eq, *expected, eq_pools, *pools)
