"""Plans for whole pools, from a pilot that has pools [theory: planning]; nothing here is a promise.

Only such rows show how much the candidates of one pool resemble one another.
"""

from __future__ import annotations

import math

import numpy as np

from surelist import _check as check
from surelist._arrays import special
from surelist.bounds.pools import stake_for
from surelist.errors import InvalidInput
from surelist.lifecycle.plan import Needed, Plan, PlanRequest, PlanRow
from surelist.promises.evidence import PoolRows
from surelist.promises.kinds.next_pool import allowed_rank
from surelist.promises.promise import About, Level

POOL_SIZES = (10, 20, 30, 50, 100, 200, 300, 500, 1_000)
MOST_POOLS = 100_000
THRESHOLDS = 64
DRAWS = 100  # samples of pools, drawn again from the pilot's
POOLED = (
    "From a pilot of {pools:,} pools with {rows:,} rows, resampled pool by pool. Do not use the pilot's "
    "pools for calibration: they chose how many."
)


def plan_pools(asked: PlanRequest) -> Plan:
    """Whole pools as units: what so many labelled pools would give."""
    target, pilot = asked.target, asked.pilot
    if not isinstance(pilot, (tuple, list)) or len(pilot) != 3:
        raise InvalidInput(
            "pilot",
            "whole pools need a pilot with pools, (scores, labels, pools); without one nothing is known "
            "of how much the candidates of one pool resemble one another.",
        )
    check.require_one_index(**dict(zip(("scores", "labels", "pools"), pilot, strict=True)))
    scores, labels, _ = check.labelled_rows(pilot[0], pilot[1], prefix="pilot ")
    codes, number = check.as_codes(pilot[2], len(scores), "pilot pools")
    if number < 5 or not labels.any():
        raise InvalidInput("pilot", expected="5 pools or more with qualified rows", got=f"{number:,} pools")
    rows = PoolRows.of(scores, labels, codes, number, by_rank=target.by_rank)
    every = PoolRows.of(scores, np.ones(len(scores), dtype=bool), codes, number, by_rank=target.by_rank)
    tabulate = _next_pools if target.about is About.POOL else _averages
    table, needed, oracle = tabulate(asked, rows, every)
    basis, rate = POOLED.format(pools=number, rows=len(scores)), float(labels.mean())
    return Plan(
        target, asked.alpha, basis, rate, oracle, tuple(table), needed, asked.pools, None, unit="pools"
    )


def _next_pools(
    asked: PlanRequest, rows: PoolRows, every: PoolRows
) -> tuple[list[PlanRow], tuple[Needed, ...], float]:
    """The threshold is an order statistic of the V, so its law is a Beta on the pilot's V."""
    reached, alpha = np.sort(rows.reached(asked.target.needed)), asked.alpha
    never = float(np.mean(reached == -math.inf))
    length = np.searchsorted(-every.scores, -reached, side="right") / every.pools
    table = []
    for pools in asked.sizes or POOL_SIZES:
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
    best = min(int(alpha * len(reached)), len(reached) - 1)
    oracle = math.nan if reached[best] == -math.inf else float(length[best])
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
    asked: PlanRequest, rows: PoolRows, every: PoolRows
) -> tuple[list[PlanRow], tuple[Needed, ...], float]:
    """The e-threshold rule on pools drawn again from the pilot's, at a few dozen thresholds."""
    rng, k, alpha = np.random.default_rng(asked.seed), float(asked.target.k), asked.alpha
    places = np.unique(np.linspace(1, rows.qualified, THRESHOLDS).astype(int))  # best qualified rows listed
    held = np.stack([rows.totals(count) for count in places.tolist()], axis=1)
    length = np.searchsorted(-every.scores, -rows.scores[places - 1], side="right") / every.pools
    enough = held.mean(axis=0) >= k
    oracle = float(length[np.argmax(enough)]) if enough.any() else math.nan
    table = []
    for pools in asked.sizes or POOL_SIZES:
        stake = stake_for(pools, k, asked.target.guessed_spread, alpha)
        ended = []
        for _ in range(DRAWS):
            walk = np.cumsum(np.log1p(stake * (held[rng.integers(0, rows.pools, pools)] - k)), axis=0)
            certified = (walk.max(axis=0) >= -math.log(alpha)) | (walk[-1] >= math.log(rng.random() / alpha))
            if certified.any():
                ended.append(float(length[np.argmax(certified)]))
        assured = len(ended) / (DRAWS)
        mean = float(np.mean(ended)) if ended else None
        excess = None if mean is None or math.isnan(oracle) else mean / oracle - 1
        table.append(PlanRow(pools, "exact", 0, assured, mean, excess))
    return table, (), oracle
