"""At least k, or an amount, on average: the e-threshold rule over whole pools, or over rows [theory: pools].

Bets against "the average is at most k" are settled unit by unit in a fresh random order; the wealth never
grows with the threshold, so the highest threshold with enough wealth is certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from surelist import _check as check
from surelist import _numerals as numerals
from surelist._files import hold
from surelist.bounds.pools import EThreshold, stake_for
from surelist.errors import NotCertifiable
from surelist.promises import phrases
from surelist.promises.draws import Draw
from surelist.promises.options import K, Option
from surelist.promises.phrases import counted, number, percent, qualified
from surelist.promises.pools import PoolRows, pool_rows
from surelist.promises.promise import About, Level, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence
    from surelist.promises.promise_curve import CurveRows, PromiseCurve

NUMBERS = 16  # averages that a curve tries
MOST_ROWS = 100_000  # for which it does: each takes about twenty passes
SPREAD = (
    " A guess of how much that varies from pool to pool, its standard deviation: {spread|Standard deviation "
    "from pool to pool} (may stay empty; a bad guess makes lists longer, never false)."
)
GUESSED_SPREAD = Option(
    None, float, "For averages over whole pools: a guess of their standard deviation.", words="the spread"
)
DEFAULT_SPREAD = 0.8  # of k: the guess where none was made


class OnAverage(Promise, frozen=True):
    """A promise of an average that is bet on: ``k`` per pool, of qualified candidates or of amounts."""

    about = About.AVERAGE
    single_list = phrases.ANY_LIST
    unit: ClassVar[Literal["pool", "row"]] = "pool"  # what is counted one by one
    k: Annotated[float, K]

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "of" and not (value is None and name == "spread"):
                check.set_value(self, name, check.plain(check.as_positive(value, name)))

    @property
    def mean(self) -> float:
        """k per unit."""
        return float(self.k)

    @property
    def guessed_spread(self) -> float:
        """The standard deviation of what a unit's list holds, guessed beforehand."""
        raise NotImplementedError

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """Bets in a fresh random order, and one secret number at the end."""
        rows, draw = evidence.pool_rows(amounts=self.amounts, each_row=self.unit == "row"), Draw.fresh()
        order, test = draw.order(rows.pools), _bets(rows, self, level, draw)
        count = _fewest(rows, test, order)
        if count is None:
            raise self._refusal(rows, level, evidence)
        peak, last = test.log_wealth(rows.totals(count)[order])
        bets = PoolBets if self.unit == "pool" else RowBets
        proof = bets(
            rows.pools,
            test.mean,
            self.guessed_spread,
            test.stake,
            draw.uniform,
            draw.key,
            max(peak, last),
            last,
        )
        return Certified((Step(0, count, float(rows.scores[count - 1])),), rows.rows, rows.qualified, proof)

    def _refusal(self, rows: PoolRows, level: Level, evidence: Evidence) -> NotCertifiable:
        held = float(rows.totals(rows.qualified).mean())
        units = counted(rows.pools, self.unit)
        all_of_them = f"{units} hold {numerals.number(held)} each on average with everyone listed"
        reason = f"{all_of_them}: ask for less than that."
        if held > self.mean:
            reason = (
                f"{all_of_them}, which is too few {self.unit}s to be sure of "
                f"{numerals.number(self.mean)}: label "
                f"more {self.unit}s, or ask for less."
            )
        return refuse(self, level, evidence, reason)


class Average(Proof, frozen=True):
    """Wealth of bets against "the average is at most k", unit by unit in a random order.

    ``mean`` is k per unit. ``peak`` and ``last`` are ln of the largest and of the last wealth at the
    threshold. ``draw`` gives order and the uniform number.
    """

    rests_on = "random numbers drawn once, and the order of pools"

    units: int
    mean: float
    spread: float
    stake: float
    uniform: float
    draw: str
    peak: float
    last: float

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        promise = _promise(cutoff)
        what = f"a value of {number(promise.k)}" if promise.amounts else qualified(promise.k)
        size = promise.pool
        over = "pools" if size is None else f"pools of {counted(size, 'candidate')}"
        return f"the shortlist holds at least {what} on average over {over}"

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        return (
            f"wrong with probability at most {percent(policy.alpha)} over the draw of the "
            f"{counted(self.units, f'calibration {_promise(cutoff).unit}')} and of the random numbers "
            "behind it"
        )

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        pools = _promise(cutoff).unit == "pool"
        alike = (phrases.POOLS_ALIKE, phrases.WHOLE_POOLS) if pools else phrases.ALL_ROWS
        spread = (
            f"The spread {number(self.spread)} was guessed beforehand, not taken from these rows; a bad "
            "guess makes the list longer, not the promise false."
        )
        return phrases.common_conditions(policy.alpha, *alike, spread, phrases.DRAWN_ONCE)

    def evidence(self, cutoff: Cutoff) -> str:
        alpha = cutoff.level.alpha
        needed = [numerals.number(each / alpha, 3) for each in (1.0, self.uniform)]
        return (
            f"betting against it, unit by unit over {counted(self.units, _promise(cutoff).unit)}, made "
            f"{_wealth(self.peak)} of 1 at best and {_wealth(self.last)} at last; {needed[0]} on the way, or "
            f"{needed[1]} at last, was needed"
        )

    def check(self, cutoff: Cutoff) -> None:
        promise, alpha, rows = _promise(cutoff), cutoff.level.alpha, cutoff.rows
        hold(self.units <= rows if promise.unit == "pool" else self.units == rows, "the unit counts differ")
        hold(self.mean == promise.mean, "the mean is not the target's")
        stake = stake_for(self.units, self.mean, self.spread, alpha)
        hold(self.stake == stake, "the stake is another one")
        hold(self.uniform == Draw(self.draw).uniform, "the uniform number is not the one drawn")
        hold(self.peak >= self.last, "the last wealth exceeds the largest")
        hold(enough(self.peak, self.last, self.uniform, alpha), "the wealth is not enough")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        promise = _promise(cutoff)
        if not promise.amounts:
            return f"on average the list of a pool will hold at least {phrases.many_qualified(promise.k)}"
        pool, listed = "a pool", policy.listed_per(cutoff)
        if promise.pool is not None:
            pool += f" of {numerals.number(promise.pool)} candidates"
            pool += "" if listed is None else f", about {numerals.about(listed[0])} of them,"
        return f"on average the list of {pool} will be worth at least {numerals.number(promise.k, 10)}"

    def curve(self, cutoff: Cutoff, rows: CurveRows) -> PromiseCurve | None:
        """For some averages the list that the same draw certifies; the promise's own is the policy's."""
        promise = _promise(cutoff)
        if len(rows.scores) > MOST_ROWS or (promise.unit == "pool" and rows.pools is None):
            return None
        labels = rows.labels if promise.amounts else rows.good
        units = pool_rows(rows.scores, labels, None if promise.unit == "row" else rows.pools)
        per_unit = promise.k / promise.mean
        per = promise.pool or len(rows.scores) / units.pools
        most = float(units.totals(units.qualified).mean()) * per_unit
        tried = [float(k) for k in np.linspace(0, most, NUMBERS + 1)[1:] if k != promise.k]
        points = [
            *other_numbers(units, promise, cutoff.level, self, tried),
            (float(promise.k), cutoff.steps[0].threshold),
        ]
        certified, thresholds = (np.asarray(each) for each in zip(*points, strict=True))
        lengths = np.asarray([np.count_nonzero(rows.scores >= each) for each in thresholds]) * (
            per / len(rows.scores)
        )
        order = np.lexsort((certified, lengths))
        reached = np.maximum.accumulate(certified[order])
        at = np.flatnonzero(np.append(np.diff(lengths[order]) > 0, True))
        on_list = float(np.count_nonzero(rows.scores >= cutoff.steps[0].threshold)) * (per / len(rows.scores))
        numbers = (lengths[order][at], reached[at], thresholds[order][at], (on_list, float(promise.k)))
        return rows.curve(cutoff, per, *numbers)


class RowBets(Average, tag="row-bets", frozen=True):
    """Rows were the units."""


class PoolBets(Average, tag="pool-bets", frozen=True):
    """Whole pools were the units."""

    drawn_by = "pools that came by chance"
    lists_share = False


def _promise(cutoff: Cutoff) -> OnAverage:
    hold(isinstance(cutoff.target, OnAverage), "its proof does not go with its target")
    assert isinstance(cutoff.target, OnAverage)
    return cutoff.target


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


def _fewest(rows: PoolRows, test: EThreshold, order: NDArray[np.int64]) -> int | None:
    """Fewest best qualified rows that certify, whole runs of ties; None where all of them do not."""
    ends = np.append(np.flatnonzero(np.diff(rows.scores)), rows.qualified - 1) + 1
    if not rows.qualified or not test.certified(rows.totals(rows.qualified)[order]):
        return None
    low, high = -1, len(ends) - 1  # certified at ends[high]
    while high - low > 1:
        middle = (low + high) // 2
        if test.certified(rows.totals(int(ends[middle]))[order]):
            high = middle
        else:
            low = middle
    return int(ends[high])
