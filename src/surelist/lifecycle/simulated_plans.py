"""Plans for promises that need more than a count of qualified rows [theory: planning].

Precision, a budget and what a triage leaves to people, from the same guess of the population as other
plans; whole pools, from a pilot that has pools: only such rows show how much the candidates of one pool
resemble one another. Chances and lengths are averages over simulated calibrations. Nothing here is a
promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelist import _check as check, bounds
from surelist._arrays import Floats, Ints, special
from surelist._names import option
from surelist.bounds.pools import stake_for
from surelist.bounds.precision import chances, passing
from surelist.errors import InvalidInput, NotCertifiable
from surelist.lifecycle.plan import PER, Needed, Plan, PlanRequest, PlanRow, Population, RateByShare
from surelist.promises import kinds
from surelist.promises.evidence import Evidence, PoolRows, RowColumns
from surelist.promises.kinds.next_pool import allowed_rank
from surelist.promises.kinds.precision import STARTS, grid
from surelist.promises.promise import About, Level, Promise

SIZES = (100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 100_000, 300_000)
RUNS = 400
TRIAGES = 60
CELLS = 200  # of the population, by score: within one, candidates are as likely to be qualified
OTHERS = 4_000
POOL_SIZES = (10, 20, 30, 50, 100, 200, 300, 500, 1_000)
MOST_POOLS = 100_000
THRESHOLDS = 64
POOLED = (
    "From a pilot of {pools:,} pools with {rows:,} rows, resampled pool by pool. Do not use the pilot's "
    "pools for calibration: they chose how many."
)


def plan_special(asked: PlanRequest, *, labelling: bool) -> Plan:
    """The plan that the design of a promise asks for."""
    target = asked.target
    if isinstance(target, (list, tuple)):
        raise InvalidInput("target", "plan several promises one by one, each with its share of alpha.")
    if not isinstance(target, Promise):
        raise InvalidInput(
            "target",
            f"expected a promise that can be planned: {kinds.offered(lambda kind: kind.planned)}; got "
            f"{target!r}.",
        )
    if target.amounts:
        raise InvalidInput("target", "no plan for amounts: nothing is guessed of how large they are.")
    if not target.planned:
        raise InvalidInput("target", f"there is no plan for {target.describe()}.")
    if labelling:
        raise InvalidInput(
            "labelling",
            "goes with promises of rows that labels can be chosen for; leave it out, or for a recall or a "
            f"precision of one collection give {option('collection')}, how many candidates it has.",
        )
    if target.whole_pools:
        return plan_pools(asked)
    best, _, _, basis = asked.populations()
    more: dict[str, Any] = {}
    if target.three_ways:
        oracle, rows, more["measure"] = *_bands(asked, best), "band"
    elif target.listed is not None:
        oracle, rows, more["measure"] = *_certified(asked, best), "certified"
    else:
        oracle, rows, more["start"] = _precise(asked, best)
    return Plan(
        target, asked.alpha, basis, best.base_rate, oracle, tuple(rows), (), asked.pools, None, **more
    )


def _certified(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow]]:
    """How many a list of fixed length is certified to hold, on average over calibrations."""
    target = asked.target
    rate = float(RateByShare(best).rate(np.array([target.size / target.pool_size]))[0])
    rows = []
    for n in asked.sizes or SIZES:
        some = 1 - (1 - rate) ** n
        places = np.clip((np.arange(64) + 0.5) / 64, 1 - some + 1e-12, None)
        counts = np.unique(np.maximum(1, _binomial_quantile(n, rate, places)), return_counts=True)
        certified = [bounds.largest_rate(n, int(count), asked.alpha) for count in counts[0]]
        k = float(target.pool_size * np.average(certified, weights=counts[1]))
        rows.append(PlanRow(n, "exact", 0, some, k, k / (target.pool_size * rate) - 1))
    return target.pool_size * rate, rows


def _binomial_quantile(n: int, rate: float, levels: Floats) -> Ints:
    """By the normal curve; a plan needs no more."""
    spread = math.sqrt(n * rate * (1 - rate))
    near = np.rint(n * rate + spread * special.ndtri(levels))
    return np.asarray(np.clip(near, 0, n), dtype=np.int64)


def _precise(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow], float | None]:
    """The walk on simulated rows, with lists from very many unlabelled scores; and where it should start."""
    target, curve, rng = asked.target, RateByShare(best), np.random.default_rng(asked.seed)
    longest = curve.longest(target.share)
    start = None if math.isnan(longest) else round(longest / 2, 4)
    starts = (target.start,) if target.start is not None else (start,) if start is not None else STARTS
    rows = []
    for n in asked.sizes or SIZES:
        lists = _walks(target.share, asked.alpha, starts, n, curve, rng)
        certain = lists > 0
        mean = PER * float(lists[certain].mean()) if certain.mean() >= 0.005 else None
        rows.append(PlanRow(n, "exact", 0, float(certain.mean()), mean, mean and mean / (PER * longest) - 1))
    return PER * longest, rows, start


def _walks(
    share: float, alpha: float, starts: Sequence[float], n: int, curve: RateByShare, rng: np.random.Generator
) -> Floats:
    """Shares on the longest lists that pass in simulations; 0 where none does."""
    others = 1 - (np.arange(OTHERS) + 0.5) / OTHERS
    thresholds, levels, _ = grid(others, starts, (1,) * len(starts), alpha)
    shares = 1 - thresholds + 0.5 / OTHERS
    rates = curve.rate(shares)
    qualified, others = np.diff(rates, prepend=0.0), np.diff(shares - rates, prepend=0.0)
    cells = np.clip(np.concatenate([qualified, others]), 0, None)
    drawn = rng.multinomial(n, np.append(cells, max(0.0, 1 - cells.sum())), RUNS)
    steps = len(shares)
    hits = np.cumsum(drawn[:, :steps], axis=1)
    listed = hits + np.cumsum(drawn[:, steps : 2 * steps], axis=1)
    passed = (passing(each, levels) for each in chances(listed, hits, share))
    return np.asarray([shares[each].max(initial=0.0) for each in passed])


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


def _bands(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow]]:
    """The triage itself on simulated rows: how often it is certified, and the band that is left."""
    rng, edges = np.random.default_rng(asked.seed), np.linspace(0.0, 1.0, CELLS + 1)
    chance = np.clip(np.diff(RateByShare(best).cells(edges)) * CELLS, 0.0, 1.0)  # best scores first
    others = 1 - (np.arange(OTHERS) + 0.5) / OTHERS
    rows = []
    for n in asked.sizes or SIZES[:9]:
        bands = []
        for _ in range(TRIAGES):
            scores = rng.random(n)
            good = rng.random(n) < chance[((1 - scores) * CELLS).astype(int).clip(0, CELLS - 1)]
            drawn = RowColumns(scores, good)
            evidence = Evidence(drawn, None, drawn, others=others)
            try:
                found = asked.target.certify(evidence, Level(asked.alpha))
            except NotCertifiable:
                continue
            bands.append(found.steps[0].threshold - found.proof.looked_from)
        mean = PER * float(np.mean(bands)) if bands else None
        rows.append(PlanRow(n, "exact", 0, len(bands) / TRIAGES, mean, None))
    return PER * _ideal_band(asked.target, chance), rows


def _ideal_band(target: Any, chance: Floats) -> float:
    """The share of candidates between the longest lists that keep both promises, the population known."""
    many = np.arange(1, CELLS + 1)
    accepted = np.cumsum(chance) >= target.accept * many
    first = float(many[accepted].max(initial=0)) / CELLS
    if target.reject is not None:
        rejected = np.cumsum(1 - chance[::-1]) >= target.reject * many
    else:
        rejected = np.cumsum(chance[::-1]) <= (1 - target.reject_recall) * chance.sum()
    last = float(many[rejected].max(initial=0)) / CELLS
    return math.nan if first == 0 or last == 0 else max(0.0, 1 - first - last)
