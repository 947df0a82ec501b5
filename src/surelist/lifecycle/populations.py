"""Guesses of a population for ``planning``: the binormal model, or a pilot sample resampled."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._names import option
from surelist._scipy import special
from surelist.errors import InvalidInput

Floats = NDArray[np.float64]

REPLICATES = 200
PER = 100.0  # lists of promises without a pool size are counted per 100 candidates
COVERAGE = 0.95
ASSUMED = (
    "Assumption: scores of qualified and other candidates are normal with equal variance (binormal "
    "model), base rate {base_rate:g} and AUC {auc:g}. A pilot sample replaces this guess."
)
RESAMPLED = (
    "From a pilot of {rows:,} rows, {qualified:,} of them qualified; intervals hold {coverage:.0%} of "
    "{replicates} resamples of it. Do not use the pilot rows for calibration: they chose n."
)


class Population(Protocol):
    """What a plan needs to know: who is qualified, and how long the list is."""

    @property
    def base_rate(self) -> float: ...
    def listed(self, rates: Floats) -> Floats:
        """Share of candidates listed when a share ``rates`` is qualified and listed."""


@dataclass(frozen=True)
class Binormal:
    """Scores N(0, 1) for others and N(d, 1) for qualified candidates, d = sqrt(2) z(AUC)."""

    base_rate: float
    auc: float

    def listed(self, rates: Floats) -> Floats:
        distance = math.sqrt(2) * special.ndtri(self.auc)
        share = np.clip(rates / self.base_rate, 0.0, 1.0)
        others = special.ndtr(special.ndtri(share) - distance)
        listed: Floats = np.minimum(rates, self.base_rate) + (1 - self.base_rate) * others
        return listed


@dataclass(frozen=True)
class Empirical:
    """A sample as a population: cumulative shares of everyone and of qualified, best first."""

    everyone: Floats
    qualified: Floats

    @property
    def base_rate(self) -> float:
        return float(self.qualified[-1])

    def listed(self, rates: Floats) -> Floats:
        rank = np.searchsorted(self.qualified, rates * (1 - 1e-12))
        listed: Floats = self.everyone[np.minimum(rank, len(self.everyone) - 1)]
        return listed


def populations(
    base_rate: float | None, auc: float | None, pilot: tuple[Any, Any] | None, seed: int
) -> tuple[Population, list[Empirical], tuple[float, float] | None, str]:
    """The best guess, its resamples, an interval for the base rate, and what they rest on."""
    if pilot is None:
        if base_rate is None or auc is None:
            raise InvalidInput(
                "plan",
                f"give {option('base_rate')} and {option('auc')}, a guess; or {option('pilot')}, labelled "
                "rows instead.",
            )
        rate = check.as_alpha(base_rate, "base_rate")
        if not 0.5 <= check.as_alpha(auc, "auc") < 1:
            raise InvalidInput("auc", expected="a number from 0.5 to below 1", got=repr(auc))
        return Binormal(rate, float(auc)), [], None, ASSUMED.format(base_rate=rate, auc=auc)
    if base_rate is not None or auc is not None:
        raise InvalidInput(
            "plan", f"a pilot replaces {option('base_rate')} and {option('auc')}; give one or the other."
        )
    if not isinstance(pilot, (tuple, list)) or len(pilot) != 2:
        raise InvalidInput("pilot", "expected (scores, labels).")
    check.require_one_index(**dict(zip(("scores", "labels"), pilot, strict=True)))
    scores = check.as_scores(pilot[0], "pilot scores")
    labels, _ = check.as_labels(pilot[1], "pilot labels")
    check.require_length(labels, len(scores), "pilot labels")
    rows, qualified = len(scores), int(np.count_nonzero(labels))
    if qualified < 10 or qualified == rows:
        raise InvalidInput(
            "pilot",
            expected="at least 10 qualified rows and some others",
            got=f"{qualified:,} of {rows:,}",
            remedy=f"Label more rows, or guess with {option('base_rate')} and {option('auc')}.",
        )
    tail = (1 - COVERAGE) / 2
    interval = (
        float(special.betaincinv(qualified, rows - qualified + 1, tail)),
        float(special.betaincinv(qualified + 1, rows - qualified, 1 - tail)),
    )
    best, resamples = _resample(scores, labels, seed)
    note = RESAMPLED.format(rows=rows, qualified=qualified, coverage=COVERAGE, replicates=len(resamples))
    return best, resamples, interval, note


def _resample(scores: Floats, labels: NDArray[np.bool_], seed: int) -> tuple[Empirical, list[Empirical]]:
    """The pilot, and bootstrap resamples of it; tied scores stand or fall together."""
    values, index = np.unique(-scores, return_inverse=True)
    rng = np.random.default_rng(seed)
    replicates = max(40, min(REPLICATES, 4_000_000 // len(scores)))

    def shares(weights: Any) -> Empirical:
        everyone = np.cumsum(np.bincount(index, weights=weights, minlength=len(values)))
        qualified = np.cumsum(np.bincount(index, weights=labels * weights, minlength=len(values)))
        return Empirical(everyone / everyone[-1], qualified / everyone[-1])

    resamples = [shares(rng.poisson(1.0, len(scores)).astype(float)) for _ in range(replicates)]
    return shares(np.ones(len(scores))), resamples


class RateByShare:
    """The population as a curve: the share qualified and listed at any share listed."""

    def __init__(self, population: Population) -> None:
        rates = np.linspace(0.0, population.base_rate, 4001)
        self.listed = np.maximum.accumulate(population.listed(rates))
        self.rates = rates

    def rate(self, share: Floats) -> Floats:
        return np.interp(share, self.listed, self.rates)
