"""How many labels are needed, before there are any [theory: planning].

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
from typing import Any

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._arrays import special
from surelist._names import option
from surelist.bounds._tails import smallest
from surelist.errors import InvalidInput
from surelist.lifecycle import simulated_plans as simulated
from surelist.lifecycle.plan import COVERAGE, PER, Empirical, Needed, Plan, PlanRequest, PlanRow, Population
from surelist.promises.kinds.counts import CountPromise
from surelist.promises.promise import Level, Promise

POINTS = 64  # quantiles per expectation
HOPELESS = 0.005  # below this assurance no list length is given
MOST = 10**9
TEETH = 32


def plan(
    target: Promise,
    *,
    alpha: float = 0.1,
    base_rate: float | None = None,
    auc: float | None = None,
    pilot: tuple[Any, ...] | None = None,
    sizes: Sequence[int] | None = None,
    pools: int = 100,
    seed: int = 0,
    labelling: bool = False,
    collection: int | None = None,
) -> Plan:
    """How many calibration rows ``target`` needs, and what more rows would save.

    Parameters
    ----------
    base_rate, auc
        A guess: the share of qualified candidates and the score's area under the ROC curve,
        under the binormal model.
    pilot
        Instead of a guess: (scores, labels) of a pilot sample; with whole pools as units (scores, labels,
        pools).
    sizes
        Calibration sizes to tabulate: rows, or labelled pools; with ``collection``, numbers of labels.
    pools
        How many pools will be screened: beyond ``Plan.enough`` rows one more label saves less
        than one review over all of them.
    labelling
        Also tabulate as many labels of chosen rows of a large collection (``Labelling``).
    collection
        How many candidates there are, for a ``Recall`` or ``Precision`` of these alone: what a ``Labelling``
        with so many labels is expected to list, by simulation, and what no rule could do better.

    Returns
    -------
    Plan
        A table of sizes; ``describe`` prints it, ``plot`` draws it.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import surelist as sl
    >>> plan = sl.plan(sl.Expected(5, 100), base_rate=0.19, auc=0.85, sizes=[300, 1_000])
    >>> [round(row.list_size, 1) for row in plan.table if row.rule == "exact"]
    [10.1, 8.1]
    """
    alpha = check.as_level(alpha)
    pools = check.as_count(pools, "pools")
    wanted = [check.as_count(size, "sizes") for size in sizes or simulated.SIZES]
    asked = PlanRequest(target, alpha, wanted if sizes else None, pools, seed, base_rate, auc, pilot)
    if collection is not None and isinstance(target, Promise):
        return simulated.plan_collection(asked, check.as_count(collection, "collection"))
    if not isinstance(target, CountPromise):
        return simulated.plan_special(asked, labelling=labelling)
    rules = ["exact", *([target.paper_rule] if target.paper_rule else [])]
    best, others, rates, basis = asked.populations()
    table = [_row(target, Level(alpha, rule), n, best, others) for rule in rules for n in wanted]
    size, share = target.pool or PER, target.oracle_rate(alpha, best.base_rate)
    oracle = size * float(best.listed(np.asarray([share]))[0]) if share <= best.base_rate else math.nan
    needed = [_needed(target, Level(alpha, rule), a, best, rates) for rule in rules for a in (0.5, 0.9)]
    if check.as_flag(labelling, "labelling"):
        if target.sample != "block":
            raise InvalidInput(
                "labelling",
                f"for {type(target).__name__} labels are random anyway; leave labelling out, or give "
                f"{option('collection')}, how many candidates there are, for a promise about these alone.",
            )
        table += [simulated.labelling_row(target, alpha, n, best, size, seed) for n in wanted]
        needed += simulated.labelling_needs(target, alpha, best, seed)
    if not math.isnan(oracle):
        table = [
            row if row.list_size is None else replace(row, excess=row.list_size / oracle - 1) for row in table
        ]
    first = smallest_rows(target, Level(alpha, "exact"), best.base_rate, 0.9)
    enough = _enough(target, Level(alpha, "exact"), best, pools, first)
    return Plan(target, alpha, basis, best.base_rate, oracle, tuple(table), tuple(needed), pools, enough)


def _row(target: CountPromise, level: Level, n: int, best: Population, others: list[Empirical]) -> PlanRow:
    assurance, size, count = _expected(target, level, n, best)
    interval = None
    if others and size is not None:
        sizes = _resampled(target, level, n, count, others)
        tail = 100 * (1 - COVERAGE) / 2
        if len(sizes):
            low, high = np.percentile(sizes, [tail, 100 - tail])
            interval = float(low), float(high)
    return PlanRow(n, level.rule, count, assurance, size, None, interval)


def _resampled(
    target: CountPromise, level: Level, n: int, count: int, others: list[Empirical]
) -> list[float]:
    """Expected list length in each resample that can certify: one set of quantiles serves all."""
    if target.of_qualified:
        sizes = [_expected(target, level, n, each)[1] for each in others]
        return [size for size in sizes if size is not None]
    points = 4 * POINTS
    rates = special.betaincinv(count, n - count + 1, (np.arange(points) + 0.5) / points)
    kept = [(each, rates[rates <= each.base_rate]) for each in others]
    size = target.pool or PER
    return [size * float(each.listed(reached).mean()) for each, reached in kept if len(reached)]


def _expected(
    target: CountPromise, level: Level, n: int, population: Population
) -> tuple[float, float | None, int]:
    """Chance to certify, expected list length if certified (None if hopeless), critical count."""
    rate, scale, cut = population.base_rate, 1.0, 1.0
    if target.of_qualified:  # given the qualified rows, of which about n * rate come
        fewest = smallest_rows(target, level, 1.0, 0.5) or n + 1
        assurance = bounds.binomial_tail(n, rate, fewest)
        scale, n = rate, max(fewest, round(n * rate))
        count = first_count(target, n, n, level)
    else:
        count = first_count(target, n, n, level)
        cut = assurance = bounds.binomial_tail(n, rate, count)
    if assurance < HOPELESS:
        return assurance, None, count
    levels = (np.arange(POINTS) + 0.5) / POINTS * cut
    rates = scale * special.betaincinv(count, n - count + 1, levels)
    return assurance, (target.pool or PER) * float(population.listed(rates).mean()), count


def _needed(
    target: CountPromise, level: Level, assurance: float, best: Population, rates: tuple[float, float] | None
) -> Needed:
    rows = steady_rows(target, level, best.base_rate, assurance)
    interval = None
    if rates is not None:
        low, high = (steady_rows(target, level, rate, assurance) for rate in reversed(rates))
        interval = (low, high)
    return Needed(assurance, level.rule, rows, interval)


def smallest_rows(target: CountPromise, level: Level, base_rate: float, assurance: float) -> int | None:
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
        available = count if target.of_qualified else n
        required = first_count(target, n, available, level)
        if required <= count:
            return n
        large = MOST // 1000  # a very large sample would not do either
        some = int(large * base_rate)
        if required > n and first_count(target, large, some, level) > some:
            return None
        count = max(count + 1, min(required, n + 1))


def steady_rows(target: CountPromise, level: Level, base_rate: float, assurance: float) -> int | None:
    """The n from which on P(Binomial(n, base_rate) >= c(n)) stays at or above assurance; None if never.

    Counts are whole numbers: the chance falls wherever c(n) rises by one, and grows in between. So only the n
    where a count begins matter, and the last of them that falls short; they rise but for their rounding, so
    it is found by halving, and the next TEETH are looked at one by one.
    """
    first = smallest_rows(target, level, base_rate, assurance)
    if first is None or target.of_qualified:  # whose count does not depend on n
        return first

    def begins(count: int) -> int:
        most = math.ceil(count / target.limit_rate(level)) + 1
        return smallest(lambda n: first_count(target, n, n, level) >= count, count, most, min(most, at[0]))

    def holds(count: int) -> bool:
        at[0] = begins(count)
        return bounds.binomial_tail(at[0], base_rate, first_count(target, at[0], at[0], level)) >= assurance

    at = [first]
    last = first_count(target, first, first, level)
    step = 1
    while not holds(last + step):
        last, step = last + step, 2 * step
        if at[0] > MOST:
            return None
    count = smallest(holds, last + 1, last + step)
    last, checked = count - 1, 0
    while checked < TEETH:
        count, checked = count + 1, checked + 1
        if not holds(count):
            last, checked = count, 0
    reached = _rows_with(last, base_rate, assurance)
    return max(first, min(reached or MOST, begins(last + 1)))


def _rows_with(count: int, base_rate: float, assurance: float) -> int | None:
    """Smallest n such that ``count`` qualified rows come with probability ``assurance``."""
    enough = smallest(lambda n: bounds.binomial_tail(n, base_rate, count) >= assurance, count, MOST, count)
    return enough if enough <= MOST else None


def _enough(
    target: CountPromise, level: Level, best: Population, pools: int, start: int | None
) -> int | None:
    """From which n on (to a tenth) one more label saves less than one review over the pools.

    Counts are whole numbers, so the slope is taken over half as many rows again, and n is the
    last one where it is steep. Beyond 2 * pools * list rows it cannot be.
    """
    if start is None:
        return None
    n, last = max(start, 10), max(start, 10)
    while n < MOST:
        more = round(1.5 * n)
        now, later = (_expected(target, level, size, best)[1] for size in (n, more))
        if now is None or later is None:
            return None
        if pools * (now - later) >= more - n:
            last = round(1.1 * n)
        if n > 2 * pools * now:
            return last
        n = round(1.1 * n)
    return None


def first_count(target: CountPromise, rows: int, qualified: int, level: Level) -> int:
    """The count that the smallest pool needs, which is the largest, without those of all other sizes."""
    return target.count_at(target.smallest_pool, rows, qualified, level)
