"""Plans for promises that need more than a count of qualified rows [theory: planning].

Precision and a budget, from the same guess of the population as other plans; whole pools, from a pilot
that has pools: only such rows show how much the candidates of one pool resemble one another. Chances and
lengths are averages over simulated calibrations. Nothing here is a promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist import bounds
from surelist._scipy import special
from surelist.bounds.pools import stake_for
from surelist.bounds.precision import passed_steps
from surelist.errors import InvalidInput
from surelist.lifecycle.plan import Needed, Plan, PlanRow
from surelist.lifecycle.populations import Population
from surelist.promises.averages import DEFAULT_SPREAD
from surelist.promises.pools import PoolRows, allowed_rank
from surelist.promises.reference import RATIO, STARTS
from surelist.promises.targets import Budget, Expected, Level, PerPool, Precision

Floats = NDArray[np.float64]

RUNS = 400
POOL_SIZES = (10, 20, 30, 50, 100, 200, 300, 500, 1_000)
MOST_POOLS = 100_000
THRESHOLDS = 64
PER = 100.0  # lists of a precision promise are counted per 100 candidates
POOLED = (
    "From a pilot of {pools:,} pools with {rows:,} rows, resampled pool by pool. Do not use the pilot's "
    "pools for calibration: they chose how many."
)


def target_is_of_pools(target: Any) -> bool:
    """Whether whole pools are its units."""
    return isinstance(target, (Expected, PerPool)) and target.pool_size is None


def is_special(target: Any) -> bool:
    """Whether a count of qualified rows does not plan it."""
    return target_is_of_pools(target) or getattr(target, "of", "count") == "value"


def require_target(target: Any, labelling: bool) -> None:
    """Raise where no plan can be made, and say what to do instead."""
    if isinstance(target, (list, tuple)):
        raise InvalidInput("target: plan several promises one by one, each with its share of alpha.")
    if not isinstance(target, (Expected, PerPool, Precision, Budget)):
        raise InvalidInput(
            f"target: expected Expected, PerPool, Recall, Precision or Budget, got {target!r}."
        )
    if getattr(target, "of", "count") == "value":
        raise InvalidInput("target: no plan for amounts: nothing is guessed of how large they are.")
    if labelling:
        raise InvalidInput("labelling: goes with Expected(k, pool_size) and PerPool(k, pool_size).")


def plan_special(
    target: Any, alpha: float, sizes: Sequence[int], best: Population, basis: str, pools: int, seed: int
) -> Plan:
    """Precision or a budget."""
    if isinstance(target, Budget):
        return plan_budget(target, alpha, sizes, best, basis, pools)
    return plan_precision(target, alpha, sizes, best, basis, pools, seed)


class _Curve:
    """The population as a curve: the share qualified and listed at any share listed."""

    def __init__(self, population: Population) -> None:
        rates = np.linspace(0.0, population.base_rate, 4001)
        self.listed = np.maximum.accumulate(population.listed(rates))
        self.rates = rates

    def rate(self, share: Floats) -> Floats:
        return np.interp(share, self.listed, self.rates)


def plan_budget(
    target: Budget, alpha: float, sizes: Sequence[int], best: Population, basis: str, pools: int
) -> Plan:
    """How many a list of fixed length is certified to hold, on average over calibrations."""
    rate = float(_Curve(best).rate(np.array([target.size / target.pool_size]))[0])
    rows = []
    for n in sizes:
        some = 1 - (1 - rate) ** n
        places = np.clip((np.arange(64) + 0.5) / 64, 1 - some + 1e-12, None)
        counts = np.unique(np.maximum(1, _binomial_quantile(n, rate, places)), return_counts=True)
        certified = [bounds.largest_rate(n, int(count), alpha) for count in counts[0]]
        k = float(target.pool_size * np.average(certified, weights=counts[1]))
        rows.append(PlanRow(n, "exact", 0, some, k, k / (target.pool_size * rate) - 1))
    oracle = target.pool_size * rate
    return Plan(
        target, alpha, basis, best.base_rate, oracle, tuple(rows), (), pools, None, measure="certified"
    )


def _binomial_quantile(n: int, rate: float, levels: Floats) -> NDArray[np.int64]:
    """By the normal curve; a plan needs no more."""
    spread = math.sqrt(n * rate * (1 - rate))
    near = np.rint(n * rate + spread * special.ndtri(levels))
    return np.asarray(np.clip(near, 0, n), dtype=np.int64)


def plan_precision(
    target: Precision, alpha: float, sizes: Sequence[int], best: Population, basis: str, pools: int, seed: int
) -> Plan:
    """The walk on simulated rows, with lists from very many unlabelled scores; and where it should start."""
    curve, rng = _Curve(best), np.random.default_rng(seed)
    shares = np.linspace(0.0, 1.0, 20_001)[1:]
    good = curve.rate(shares) >= target.share * shares
    longest = float(shares[good].max()) if good.any() else math.nan
    start = None if math.isnan(longest) else round(longest / 2, 4)
    starts = (target.start,) if target.start is not None else (start,) if start is not None else STARTS
    rows = []
    for n in sizes:
        lists = np.zeros(RUNS)
        for each in starts:
            lists = np.maximum(lists, _walks(target.share, alpha / len(starts), each, n, curve, rng))
        certain = lists > 0
        mean = PER * float(lists[certain].mean()) if certain.mean() >= 0.005 else None
        rows.append(PlanRow(n, "exact", 0, float(certain.mean()), mean, mean and mean / (PER * longest) - 1))
    return Plan(
        target, alpha, basis, best.base_rate, PER * longest, tuple(rows), (), pools, None, start=start
    )


def _walks(
    share: float, alpha: float, start: float, n: int, curve: _Curve, rng: np.random.Generator
) -> Floats:
    """Shares listed at the end of simulated walks; 0 where the first list did not pass."""
    lists = [start]
    while lists[-1] < 1:
        lists.append(min(1.0, lists[-1] * RATIO))
    shares = np.array(lists)
    rates = curve.rate(shares)
    qualified, others = np.diff(rates, prepend=0.0), np.diff(shares - rates, prepend=0.0)
    cells = np.clip(np.concatenate([qualified, others]), 0, None)
    drawn = rng.multinomial(n, np.append(cells, max(0.0, 1 - cells.sum())), RUNS)
    steps = len(shares)
    hits = np.cumsum(drawn[:, :steps], axis=1)
    listed = hits + np.cumsum(drawn[:, steps : 2 * steps], axis=1)
    ended = [passed_steps(counts, good, share, alpha) for counts, good in zip(listed, hits, strict=True)]
    return np.asarray(np.append(0.0, shares)[np.array(ended)])


def plan_pools(
    target: Expected | PerPool, alpha: float, sizes: Sequence[int] | None, pilot: Any, pools: int, seed: int
) -> Plan:
    """Whole pools as units: what so many labelled pools would give."""
    if not isinstance(pilot, (tuple, list)) or len(pilot) != 3:
        raise InvalidInput(
            "pilot: whole pools need a pilot with pools, (scores, labels, pools); without one nothing is "
            "known of how much the candidates of one pool resemble one another."
        )
    check.require_one_index(**dict(zip(("scores", "labels", "pools"), pilot, strict=True)))
    scores = check.as_scores(pilot[0], "pilot scores")
    labels, _ = check.as_labels(pilot[1], "pilot labels")
    check.require_length(labels, len(scores), "pilot labels")
    codes, number = check.as_codes(pilot[2], len(scores), "pilot pools")
    if number < 5 or not labels.any():
        raise InvalidInput(f"pilot: expected 5 pools or more with qualified rows, got {number:,} pools.")
    by = target.by if isinstance(target, PerPool) else "score"
    rows = PoolRows.of(scores, labels, codes, number, by)
    every = PoolRows.of(scores, np.ones(len(scores), dtype=bool), codes, number, by)
    if isinstance(target, PerPool):
        table, needed, oracle = _next_pools(target, alpha, sizes, rows, every)
    else:
        table, needed, oracle = _averages(target, alpha, sizes, rows, every, seed)
    basis = POOLED.format(pools=number, rows=len(scores))
    return Plan(
        target, alpha, basis, float(labels.mean()), oracle, tuple(table), needed, pools, None, unit="pools"
    )


def _next_pools(
    target: PerPool, alpha: float, sizes: Sequence[int] | None, rows: PoolRows, every: PoolRows
) -> tuple[list[PlanRow], tuple[Needed, ...], float]:
    """The threshold is an order statistic of the V, so its law is a Beta on the pilot's V."""
    reached = np.sort(rows.reached(target))
    never = float(np.mean(reached == -math.inf))
    length = np.searchsorted(-every.scores, -reached, side="right") / every.pools
    table = []
    for pools in sizes or POOL_SIZES:
        rank = allowed_rank(pools, Level(alpha))
        if rank == 0:
            table.append(PlanRow(pools, "exact", 0, 0.0, None, None))
            continue
        levels = special.betaincinv(rank, pools - rank + 1, (np.arange(64) + 0.5) / 64)
        ranks = np.minimum((levels * len(reached)).astype(int), len(reached) - 1)
        assured = float(special.bdtr(rank - 1, pools, never))
        usable = reached[ranks] > -math.inf
        mean = float(length[ranks][usable].mean()) if usable.any() and assured >= 0.005 else None
        table.append(PlanRow(pools, "exact", rank, assured, mean, None))
    best = reached[min(int(alpha * len(reached)), len(reached) - 1)]
    oracle = (
        math.nan if best == -math.inf else float(np.searchsorted(-every.scores, -best, "right") / every.pools)
    )
    return table, _pools_needed(alpha, never), oracle


def _pools_needed(alpha: float, never: float) -> tuple[Needed, ...]:
    """From how many pools on, as often as assured, no more of them never reach the target than may.

    One more pool that may fall short makes it more likely, each pool in between less.
    """
    many = np.arange(1, MOST_POOLS)
    share = check.as_fraction(alpha, "alpha")
    ranks = (many + 1) * share.numerator // share.denominator
    sure = np.where(ranks > 0, special.bdtr(np.maximum(ranks - 1, 0), many, never), 0.0)
    needed = []
    for each in (0.5, 0.9):
        last = int(many[sure < each].max(initial=0))
        needed.append(Needed(each, "exact", last + 1 if last < many[-1] else None))
    return tuple(needed)


def _averages(
    target: Expected, alpha: float, sizes: Sequence[int] | None, rows: PoolRows, every: PoolRows, seed: int
) -> tuple[list[PlanRow], tuple[Needed, ...], float]:
    """The e-threshold rule on pools drawn again from the pilot's, at a few dozen thresholds."""
    rng, k = np.random.default_rng(seed), float(target.k)
    places = np.unique(np.linspace(1, rows.qualified, THRESHOLDS).astype(int))  # best qualified rows listed
    held = np.stack([rows.totals(count) for count in places.tolist()], axis=1)
    length = np.searchsorted(-every.scores, -rows.scores[places - 1], side="right") / every.pools
    enough = held.mean(axis=0) >= k
    oracle = float(length[np.argmax(enough)]) if enough.any() else math.nan
    table = []
    for pools in sizes or POOL_SIZES:
        stake = stake_for(pools, k, float(target.spread or DEFAULT_SPREAD * k), alpha)
        ended = []
        for _ in range(RUNS // 4):
            walk = np.cumsum(np.log1p(stake * (held[rng.integers(0, rows.pools, pools)] - k)), axis=0)
            certified = (walk.max(axis=0) >= -math.log(alpha)) | (walk[-1] >= math.log(rng.random() / alpha))
            if certified.any():
                ended.append(float(length[np.argmax(certified)]))
        assured = len(ended) / (RUNS // 4)
        mean = float(np.mean(ended)) if ended else None
        excess = None if mean is None or math.isnan(oracle) else mean / oracle - 1
        table.append(PlanRow(pools, "exact", 0, assured, mean, excess))
    return table, (), oracle
