"""How many labels are needed, before there are any (STATISTICS section 17).

A plan turns a guess of the population into what calibration would give: the chance that the
target can be certified at all, and the expected list length, for a range of calibration sizes.
The guess is either a pilot sample, resampled to show how far it can be trusted, or a base rate
and an AUC under the binormal model (normal scores of equal variance for qualified and others),
which is an assumption and flagged as one. Nothing here is a promise.

For a count rule with untied scores the share of candidates that are qualified and shortlisted
is Beta(c, n-c+1), cut off at the base rate; so expectations are sums over its quantiles, and
nothing but the pilot is simulated. Pilot rows that chose n may not be calibration rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from surelist import _validation as check
from surelist import bounds
from surelist.errors import InvalidInput
from surelist.targets import Expected, Level, PerPool, Recall, Target

Floats = NDArray[np.float64]

SIZES = (100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 100_000, 300_000)
POINTS = 64  # quantiles per expectation
REPLICATES = 200
HOPELESS = 0.005  # below this assurance no list length is given
COVERAGE = 0.95
MOST = 10**9
PAPER = {Expected: "dkw", PerPool: "bernstein"}
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
        place = np.searchsorted(self.qualified, rates * (1 - 1e-12))
        listed: Floats = self.everyone[np.minimum(place, len(self.everyone) - 1)]
        return listed


@dataclass(frozen=True)
class PlanRow:
    """What n calibration rows would give under one rule.

    ``assurance`` is the chance that the target is certifiable; ``list_size`` the expected list
    length if it is, and ``excess`` how far that lies above the oracle's, as a share. Intervals
    are those of a pilot, None without one or where nothing is certifiable.
    """

    rows: int
    rule: str
    critical_count: int
    assurance: float
    list_size: float | None
    excess: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Needed:
    """Smallest n that certifies with this assurance; ``interval`` from a pilot's base rate."""

    assurance: float
    rule: str
    rows: int | None
    interval: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class Plan:
    """A table of calibration sizes; ``describe`` prints it, ``plot`` draws it."""

    target: Target
    alpha: float
    basis: str
    base_rate: float
    oracle: float
    table: tuple[PlanRow, ...]
    needed: tuple[Needed, ...]
    pools: int
    enough: int | None

    def needs(self, assurance: float, rule: str = "exact") -> int | None:
        """Smallest n for one of the assurances planned."""
        for each in self.needed:
            if each.assurance == assurance and each.rule == rule:
                return each.rows
        raise InvalidInput(f"assurance: this plan has 0.5 and 0.9, got {assurance!r} for {rule!r}.")

    def describe(self) -> str:
        """The plan as text."""
        from surelist.plan_text import describe

        return describe(self)

    def plot(self, ax: Any = None) -> Any:
        """Expected list length against n (needs the ``plots`` extra); returns the axes."""
        from surelist import living_plots

        return living_plots.draw_plan(self, ax)


def plan(
    target: Target,
    *,
    alpha: float = 0.1,
    base_rate: float | None = None,
    auc: float | None = None,
    pilot: tuple[Any, Any] | None = None,
    sizes: Sequence[int] = SIZES,
    pools: int = 100,
    seed: int = 0,
) -> Plan:
    """How many calibration rows ``target`` needs, and what more rows would save.

    base_rate, auc
        A guess: the share of qualified candidates and the score's area under the ROC curve,
        under the binormal model.
    pilot
        Instead of a guess: (scores, labels) of a pilot sample.
    sizes
        Calibration sizes to tabulate.
    pools
        How many pools will be screened: beyond ``Plan.enough`` rows one more label saves less
        than one review over all of them.
    """
    if not isinstance(target, (Expected, PerPool, Recall)):
        raise InvalidInput(f"target: expected Expected, PerPool or Recall, got {target!r}.")
    alpha = check.as_alpha(alpha)
    pools = check.as_count(pools, "pools")
    wanted = [check.as_count(size, "sizes") for size in sizes]
    rules = ["exact", *([PAPER[type(target)]] if type(target) in PAPER else [])]
    best, others, rates, basis = _populations(base_rate, auc, pilot, seed)
    table = [_row(target, Level(alpha, rule), n, best, others) for rule in rules for n in wanted]
    oracle = _pool_size(target) * float(best.listed(np.asarray([_oracle_rate(target, alpha, best)]))[0])
    if _oracle_rate(target, alpha, best) > best.base_rate:
        oracle = math.nan
    needed = [_needed(target, Level(alpha, rule), a, best, rates) for rule in rules for a in (0.5, 0.9)]
    table = [_with_excess(row, oracle) for row in table]
    enough = _enough(target, Level(alpha, "exact"), best, pools, needed[1].rows)
    return Plan(target, alpha, basis, best.base_rate, oracle, tuple(table), tuple(needed), pools, enough)


def _populations(
    base_rate: float | None, auc: float | None, pilot: tuple[Any, Any] | None, seed: int
) -> tuple[Population, list[Empirical], tuple[float, float] | None, str]:
    """The best guess, its resamples, an interval for the base rate, and what they rest on."""
    if pilot is None:
        if base_rate is None or auc is None:
            raise InvalidInput("plan: give base_rate= and auc=, or pilot=(scores, labels).")
        rate = check.as_alpha(base_rate, "base_rate")
        if not 0.5 <= check.as_alpha(auc, "auc") < 1:
            raise InvalidInput(f"auc: expected a number from 0.5 to below 1, got {auc!r}.")
        return Binormal(rate, float(auc)), [], None, ASSUMED.format(base_rate=rate, auc=auc)
    if base_rate is not None or auc is not None:
        raise InvalidInput("plan: a pilot replaces base_rate= and auc=; give one or the other.")
    if not isinstance(pilot, (tuple, list)) or len(pilot) != 2:
        raise InvalidInput("pilot: expected (scores, labels).")
    scores = check.as_scores(pilot[0], "pilot scores")
    labels, _ = check.as_labels(pilot[1], "pilot labels")
    check.require_length(labels, len(scores), "pilot labels")
    rows, won = len(scores), int(np.count_nonzero(labels))
    if won < 10 or won == rows:
        raise InvalidInput(
            f"pilot: expected at least 10 qualified rows and some others, got {won:,} of {rows:,}. "
            "Label more rows, or guess with base_rate= and auc=."
        )
    tail = (1 - COVERAGE) / 2
    interval = (
        float(special.betaincinv(won, rows - won + 1, tail)),
        float(special.betaincinv(won + 1, rows - won, 1 - tail)),
    )
    best, resamples = _resample(scores, labels, seed)
    said = RESAMPLED.format(rows=rows, qualified=won, coverage=COVERAGE, replicates=len(resamples))
    return best, resamples, interval, said


def _resample(scores: Floats, labels: NDArray[np.bool_], seed: int) -> tuple[Empirical, list[Empirical]]:
    """The pilot, and bootstrap resamples of it; tied scores stand or fall together."""
    values, place = np.unique(-scores, return_inverse=True)
    rng = np.random.default_rng(seed)
    replicates = max(40, min(REPLICATES, 4_000_000 // len(scores)))

    def shares(weights: Any) -> Empirical:
        everyone = np.cumsum(np.bincount(place, weights=weights, minlength=len(values)))
        qualified = np.cumsum(np.bincount(place, weights=labels * weights, minlength=len(values)))
        return Empirical(everyone / everyone[-1], qualified / everyone[-1])

    resamples = [shares(rng.poisson(1.0, len(scores)).astype(float)) for _ in range(replicates)]
    return shares(np.ones(len(scores))), resamples


def _row(target: Target, level: Level, n: int, best: Population, others: list[Empirical]) -> PlanRow:
    assurance, size, count = _expected(target, level, n, best)
    interval = None
    if others and size is not None:
        sizes = [found for each in others if (found := _expected(target, level, n, each)[1]) is not None]
        tail = 100 * (1 - COVERAGE) / 2
        if sizes:
            low, high = np.percentile(sizes, [tail, 100 - tail])
            interval = float(low), float(high)
    return PlanRow(n, level.rule, count, assurance, size, None, interval)


def _with_excess(row: PlanRow, oracle: float) -> PlanRow:
    excess = None if row.list_size is None or math.isnan(oracle) else row.list_size / oracle - 1
    return PlanRow(**{**vars(row), "excess": excess})


def _expected(
    target: Target, level: Level, n: int, population: Population
) -> tuple[float, float | None, int]:
    """Chance to certify, expected list length if certified (None if hopeless), critical count."""
    rate, scale, cut = population.base_rate, 1.0, 1.0
    if isinstance(target, Recall):  # given the qualified rows, of which about n * rate come
        fewest = smallest_rows(target, level, 1.0, 0.5) or n + 1
        assurance = bounds.binomial_tail(n, rate, fewest)
        scale, n = rate, max(fewest, round(n * rate))
        count = target.requirements(n, n, level)[0].count
    else:
        count = target.requirements(n, n, level)[0].count
        cut = assurance = bounds.binomial_tail(n, rate, count)
    if assurance < HOPELESS:
        return assurance, None, count
    places = (np.arange(POINTS) + 0.5) / POINTS * cut
    rates = scale * special.betaincinv(count, n - count + 1, places)
    return assurance, _pool_size(target) * float(population.listed(rates).mean()), count


def _needed(
    target: Target, level: Level, assurance: float, best: Population, rates: tuple[float, float] | None
) -> Needed:
    rows = smallest_rows(target, level, best.base_rate, assurance)
    interval = None
    if rates is not None:
        low, high = (smallest_rows(target, level, rate, assurance) for rate in reversed(rates))
        interval = (low, high)
    return Needed(assurance, level.rule, rows, interval)


def smallest_rows(target: Target, level: Level, base_rate: float, assurance: float) -> int | None:
    """Smallest n with P(Binomial(n, base_rate) >= c(n)) >= assurance; None if beyond a billion.

    c(n) never falls with n. So if n is the answer and c = c(n), then the smallest m with
    P(Binomial(m, base_rate) >= c) >= assurance has c(m) <= c, hence m = n: it is enough to try
    counts, and a count c that fails with c(m) = c' > c rules out all counts below c'.
    """
    count = 1
    while True:
        n = _rows_with(count, base_rate, assurance)
        if n is None or n > MOST:
            return None
        available = count if isinstance(target, Recall) else n
        required = target.requirements(n, available, level)[0].count
        if required <= count:
            return n
        if required > n and not _ever(target, level, base_rate):
            return None
        count = max(count + 1, min(required, n + 1))


def _ever(target: Target, level: Level, base_rate: float) -> bool:
    """Whether a very large sample would do."""
    n = MOST // 1000
    available = int(n * base_rate)
    return target.requirements(n, available, level)[0].count <= available


def _rows_with(count: int, base_rate: float, assurance: float) -> int | None:
    """Smallest n such that ``count`` qualified rows come with probability ``assurance``."""
    low, high = count - 1, count
    while bounds.binomial_tail(high, base_rate, count) < assurance:
        low, high = high, 2 * high
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if bounds.binomial_tail(middle, base_rate, count) >= assurance:
            high = middle
        else:
            low = middle
    return high


def _enough(target: Target, level: Level, best: Population, pools: int, start: int | None) -> int | None:
    """From which n on (to a tenth) one more label saves less than one review over the pools.

    Counts are whole numbers, so the slope is taken over half as many rows again, and n is the
    last one where it is steep. Beyond 2 * pools * list rows it cannot be.
    """
    if start is None:
        return None
    n, last = max(start, 10), max(start, 10)
    while n < MOST:
        more = round(1.5 * n)
        here, there = (_expected(target, level, size, best)[1] for size in (n, more))
        if here is None or there is None:
            return None
        if pools * (here - there) >= more - n:
            last = round(1.1 * n)
        if n > 2 * pools * here:
            return last
        n = round(1.1 * n)
    return None


def _oracle_rate(target: Target, alpha: float, population: Population) -> float:
    if isinstance(target, Expected):
        return float(target.rate)
    if isinstance(target, Recall):
        return target.share * population.base_rate
    return bounds.pac_rate(target.k, target.sizes[0], alpha)


def _pool_size(target: Target) -> float:
    """Lists are counted per pool; for a recall target per 100 candidates."""
    if isinstance(target, Recall):
        return 100.0
    return float(target.pool_size) if isinstance(target, Expected) else float(target.sizes[0])
