"""At least k, or an amount, on average over whole pools or over rows: the e-threshold rule [theory: pools]
[theory: value].

Bets against "the average is at most k" are settled unit by unit in a fresh random order; the wealth never
grows with the threshold, so the highest threshold with enough wealth is certified.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from surelist import _numerals as numerals
from surelist._arrays import Ints
from surelist._files import Digest, hold
from surelist.bounds.pools import EThreshold, stake_for
from surelist.errors import NotCertifiable
from surelist.promises import phrases
from surelist.promises.conditions import BESIDE, DROPPED, SEVERAL, Proved
from surelist.promises.curve import PromiseCurve, curve_of
from surelist.promises.evidence import Evidence, PoolRows, RowColumns
from surelist.promises.options import POOL_SIZE, K, LabelsOf, Option
from surelist.promises.phrases import counted, number, qualified
from surelist.promises.promise import About, Level, Needs, PageChoice, Promise, Proof
from surelist.promises.sampled import Draw
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

NUMBERS = 16  # averages that a curve tries
MOST_ROWS = 100_000  # for which it does: each takes about twenty passes
SPREAD = (
    " A guess of how much that varies from pool to pool, its standard deviation: {spread?|Standard deviation "
    "from pool to pool} (may stay empty; a bad guess makes lists longer, never false)."
)
GUESSED_SPREAD = Option(
    None, float, "For averages over whole pools: a guess of their standard deviation.", words="the spread"
)
AMOUNT = ("Value on average, at least", "Value, at least", False)
DEFAULT_SPREAD = 0.8  # of k: the guess where none was made


class OnAverage(Promise, frozen=True):
    """A promise of an average that is bet on: ``k`` per pool, of qualified candidates or of amounts."""

    about = About.AVERAGE
    single_list = phrases.ANY_LIST
    unit: ClassVar[Literal["pool", "row"]] = "pool"  # what is counted one by one
    k: Annotated[float, K]

    @property
    def mean(self) -> float:
        """k per unit."""
        return float(self.k)

    @property
    def guessed_spread(self) -> float:
        """The standard deviation of what a unit's list holds, guessed beforehand."""
        raise NotImplementedError

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        what = f"a value of {number(self.k)}" if self.amounts else qualified(self.k)
        over = "pools" if self.pool is None else f"pools of {counted(self.pool, 'candidate')}"
        return f"the shortlist holds at least {what} on average over {over}"

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        if not self.amounts:
            return f"on average the list of a pool will hold at least {phrases.many_qualified(self.k)}"
        pool, listed = "a pool", policy.listed_per(cutoff)
        if self.pool is not None:
            pool += f" of {numerals.number(self.pool)} candidates"
            pool += "" if listed is None else f", about {numerals.about(listed[0])} of them,"
        return f"on average the list of {pool} will be worth at least {numerals.number(self.k, 10)}"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """Bets in a fresh random order, and one secret number at the end."""
        rows, draw = evidence.pool_rows(amounts=self.amounts, each_row=self.unit == "row"), Draw.fresh()
        order, test = draw.order(rows.pools), _bets(rows, self, level, draw)
        count = _fewest(rows, test, order)
        if count is None:
            raise self._refusal(rows, level, evidence)
        peak, last = test.log_wealth(rows.totals(count)[order])
        bets = PoolBets if self.unit == "pool" else RowBets
        numbers = (test.mean, self.guessed_spread, test.stake, draw.uniform, draw.key)
        proof = bets(rows.pools, *numbers, max(peak, last), last)
        return Certified((Step(0, count, float(rows.scores[count - 1])),), rows.rows, rows.qualified, proof)

    def _refusal(self, rows: PoolRows, level: Level, evidence: Evidence) -> NotCertifiable:
        held = float(rows.totals(rows.qualified).mean())
        units = counted(rows.pools, self.unit)
        reason = ": ask for less than that."
        if held > self.mean:
            few = f"too few {self.unit}s to be sure of {numerals.number(self.mean)}"
            reason = f", which is {few}: label more {self.unit}s, or ask for less."
        everyone = f"{units} hold {numerals.number(held)} each on average with everyone listed"
        return refuse(self, level, evidence, everyone + reason)


class Average(Proof, frozen=True):
    """Wealth of bets against "the average is at most k", unit by unit in a random order.

    ``mean`` is k per unit. ``peak`` and ``last`` are ln of the largest and of the last wealth at the
    threshold. ``draw`` gives order and the uniform number.
    """

    rests_on = "random numbers drawn once, and the order of pools"
    unit: ClassVar[Literal["pool", "row"]] = "pool"

    units: int
    mean: float
    spread: float
    stake: float
    uniform: float
    draw: Digest
    peak: float
    last: float

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        units = counted(self.units, f"calibration {self.unit}")
        return f"the draw of the {units} and of the random numbers behind it"

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        pools = self.unit == "pool"
        alike = (phrases.POOLS_ALIKE, phrases.WHOLE_POOLS) if pools else phrases.ALL_ROWS
        guessed = f"The spread {number(self.spread)} was guessed beforehand, not taken from these rows"
        spread = f"{guessed}; a bad guess makes the list longer, not the promise false."
        return *alike, spread, phrases.DRAWN_ONCE

    def evidence(self, cutoff: Cutoff) -> str:
        alpha = cutoff.level.alpha
        needed = [numerals.number(each / alpha, 3) for each in (1.0, self.uniform)]
        bets = f"betting against it, unit by unit over {counted(self.units, self.unit)}, made"
        made = f"{_wealth(self.peak)} of 1 at best and {_wealth(self.last)} at last"
        return f"{bets} {made}; {needed[0]} on the way, or {needed[1]} at last, was needed"

    def check(self, cutoff: Cutoff) -> None:
        promise, alpha, rows = cutoff.promised(OnAverage), cutoff.level.alpha, cutoff.rows
        hold(self.unit == promise.unit, "its proof does not go with its target")
        hold(self.units <= rows if promise.unit == "pool" else self.units == rows, "the unit counts differ")
        hold(self.mean == promise.mean, "the mean is not the target's")
        stake = stake_for(self.units, self.mean, self.spread, alpha)
        hold(self.stake == stake, "the stake is another one")
        hold(self.uniform == Draw(self.draw).uniform, "the uniform number is not the one drawn")
        hold(self.peak >= self.last, "the last wealth exceeds the largest")
        hold(enough(self.peak, self.last, self.uniform, alpha), "the wealth is not enough")

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve | None:
        """For some averages the list that the same draw certifies; the promise's own is the policy's."""
        promise = cutoff.promised(OnAverage)
        if len(rows.scores) > MOST_ROWS or (promise.unit == "pool" and rows.pools is None):
            return None
        every = promise.unit == "row"
        units = Evidence(rows, columns=rows).pool_rows(amounts=promise.amounts, each_row=every)
        per_unit = promise.k / promise.mean
        per = promise.pool or len(rows.scores) / units.pools
        most = float(units.totals(units.qualified).mean()) * per_unit
        tried = [float(k) for k in np.linspace(0, most, NUMBERS + 1)[1:] if k != promise.k]
        chosen = float(promise.k), cutoff.steps[0].threshold
        points = [*other_numbers(units, promise, cutoff.level, self, tried), chosen]
        certified, thresholds = (np.asarray(each) for each in zip(*points, strict=True))
        listed = [np.count_nonzero(rows.scores >= each) for each in thresholds]
        lengths = np.asarray(listed) * (per / len(rows.scores))
        order = np.lexsort((certified, lengths))
        reached = np.maximum.accumulate(certified[order])
        at = np.flatnonzero(np.append(np.diff(lengths[order]) > 0, True))
        numbers = (lengths[order][at], reached[at], thresholds[order][at], (float(lengths[-1]), chosen[0]))
        return curve_of(cutoff, per, *numbers)


class RowBets(Average, tag="row-bets", frozen=True):
    """Rows were the units."""

    unit = "row"


class PoolBets(Average, tag="pool-bets", frozen=True):
    """Whole pools were the units."""


def _wealth(log: float) -> str:
    return "more than 1,000,000" if log > math.log(1e6) else numerals.number(math.exp(log), 3)


def enough(peak: float, last: float, uniform: float, alpha: float) -> bool:
    """Whether these wealths certify: 1/alpha on the way, or uniform/alpha at last."""
    return peak >= -math.log(alpha) or (uniform > 0 and last >= math.log(uniform / alpha))


def _bets(rows: PoolRows, promise: OnAverage, level: Level, draw: Draw) -> EThreshold:
    stake = stake_for(rows.pools, promise.mean, promise.guessed_spread, level.alpha)
    return EThreshold(promise.mean, stake, draw.uniform, level.alpha)


def other_numbers(
    rows: PoolRows, promise: OnAverage, level: Level, proof: Average, numbers: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """The threshold that each other k would have got by the same draw, where it would have got one.

    Each holds by itself, for a k fixed beforehand.
    """
    draw = Draw(proof.draw)
    order = draw.order(rows.pools)
    for k in numbers:
        count = _fewest(rows, _bets(rows, replace(promise, k=k), level, draw), order)
        if count is not None:
            yield k, float(rows.scores[count - 1])


def _fewest(rows: PoolRows, test: EThreshold, order: Ints) -> int | None:
    """Fewest best qualified rows that certify, whole runs of ties; None where all of them do not."""
    ends = np.append(np.flatnonzero(np.diff(rows.scores)), rows.qualified - 1) + 1
    if not rows.qualified or not test.certified(rows.totals(rows.qualified)[order]):
        return None
    shorter = ends[:-1].tolist()
    at = bisect_left(shorter, True, key=lambda count: test.certified(rows.totals(count)[order]))
    return int(ends[at])


class Value(OnAverage, tag="value", frozen=True):
    """At least ``k`` of value on the shortlist of an average pool; labels are amounts of at least 0.

    Parameters
    ----------
    k : float
        The amount: money, grades, points.
    pool_size : float
        Candidates in a pool, or their expectation where pools vary.
    spread : float, optional
        A guess, made beforehand, of the standard deviation of what a pool's list is worth. A bad guess costs
        length, never validity.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Value(400, pool_size=100).describe()
    'at least 400 of value on average in pools of 100'
    """

    page = (
        PageChoice(
            "value",
            "A value on average",
            "At least {k:5|Value needed} of value on the shortlist of an average pool of "
            "{pool_size:100|Candidates in a pool} candidates." + SPREAD,
            "average",
            amounts=True,
        ),
    )
    help = "Worth at least K on average; labels are amounts of at least 0."
    flags = (("value", "k"),)
    unit = "row"
    top_only = True
    amounts = True
    certified = AMOUNT

    proved_with = (
        Proved("value", labels=("missing", "thinned"), scores=SEVERAL),
        Proved("shift", labels=("missing",), shift=("known",), scores=SEVERAL, pools=BESIDE),
    )

    pool_size: Annotated[float, POOL_SIZE]
    spread: Annotated[float | None, GUESSED_SPREAD] = None

    @property
    def mean(self) -> float:
        return float(self.k) / float(self.pool_size)

    @property
    def guessed_spread(self) -> float:
        return float(self.spread or DEFAULT_SPREAD * self.k) / math.sqrt(self.pool_size)

    def describe(self) -> str:
        size = numerals.number(self.pool_size, 10)
        return f"at least {numerals.number(self.k, 10)} of value on average in pools of {size}"


class PoolAverage(OnAverage, tag="pool-average", frozen=True):
    """At least ``k`` on the shortlist of an average pool, whatever its size; calibrate with ``pools=``.

    Whole pools are the units, and inside a pool anything may depend on anything [theory: pools].

    Parameters
    ----------
    k : float
        Qualified candidates per pool; with ``of="value"`` an amount.
    spread : float, optional
        A guess, made beforehand, of the standard deviation of what a pool's list holds. A bad guess costs
        length, never validity.
    of : {"count", "value"}
        ``"value"``: labels are amounts of at least 0 instead of 0 and 1 [theory: value].

    Examples
    --------
    >>> import surelist as sl
    >>> sl.PoolAverage(5).describe()
    'at least 5 qualified candidates on average per pool'
    """

    page = (
        PageChoice(
            "pool-average",
            "On average over pools",
            "At least {k} qualified candidates per pool on average; the number is that above." + SPREAD,
            "average",
        ),
        PageChoice(
            "pool-average",
            "A value on average",
            "At least {k:5|Value needed} of value on the shortlist of an average pool." + SPREAD,
            "average",
            amounts=True,
            sets={"of": "value"},
        ),
    )
    help = "At least K qualified on average over whole pools; needs the pool column."
    flags = (("pool_average", "k"),)
    whole_pools = True
    planned = True

    proved_with = (
        Proved("pools", labels=("missing",), scores=SEVERAL),
        Proved("pools", labels=("missing",), bad_rows=DROPPED),
    )  # fmt: skip

    spread: Annotated[float | None, GUESSED_SPREAD] = None
    of: Annotated[
        LabelsOf, Option("count", LabelsOf, "value: labels are amounts of at least 0, and k is an amount.")
    ] = "count"

    @property
    def needs(self) -> Needs:
        return Needs.COLUMNS if self.amounts else Needs.POOLS

    @property
    def amounts(self) -> bool:
        return self.of == "value"

    @property
    def certified(self) -> tuple[str, str, bool]:
        return AMOUNT if self.amounts else ("Qualified on average, at least", "Qualified, at least", False)

    @property
    def guessed_spread(self) -> float:
        return float(self.spread or DEFAULT_SPREAD * self.k)

    def describe(self) -> str:
        what = f"{numerals.number(self.k, 10)} of value" if self.amounts else phrases.qualified(self.k)
        return f"at least {what} on average per pool"
