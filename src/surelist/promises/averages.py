"""At least k, or a value, on average: the e-threshold rule over whole pools, or over rows [theory: pools].

Bets against "the average is at most k" are settled unit by unit in a fresh random order; the wealth never
grows with the threshold, so the highest threshold with enough wealth is certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surelist import _numerals as numerals
from surelist._dataclasses import dataclass, replace
from surelist._files import hold
from surelist.bounds.pools import EThreshold, stake_for
from surelist.errors import NotCertifiable
from surelist.promises import phrases
from surelist.promises.draws import Draw
from surelist.promises.phrases import counted, number, percent, qualified
from surelist.promises.pools import DRAWN_ALIKE, WHOLE_POOLS, PoolRows
from surelist.promises.proofs import Certified, refuse
from surelist.promises.targets import Expected, Level

DEFAULT_SPREAD = 0.8  # of k: the guess where none was made


@dataclass(frozen=True)
class Average:
    """Wealth of bets against "the average is at most k", unit by unit in a random order.

    ``units`` are pools or rows; ``mean`` is k per unit. ``peak`` and ``last`` are ln of the largest and
    of the last wealth at the threshold. ``draw`` gives order and the uniform number.
    """

    kind: Literal["average"]
    unit: Literal["pool", "row"]
    units: int
    mean: float
    spread: float
    stake: float
    uniform: float
    draw: str
    peak: float
    last: float

    def claim(self, target: Expected) -> str:
        what = qualified(target.k) if target.of == "count" else f"a value of {number(target.k)}"
        over = "pools" if self.unit == "pool" else f"pools of {counted(target.pool_size, 'candidate')}"
        return f"the shortlist holds at least {what} on average over {over}"

    def wrong(self, level: Level, rows: int) -> str:
        return (
            f"wrong with probability at most {percent(level.alpha)} over the draw of the "
            f"{counted(self.units, 'calibration ' + self.unit)} and of the random numbers behind it"
        )

    def conditions(self, target: Expected, level: Level) -> tuple[str, ...]:
        alike = (DRAWN_ALIKE, WHOLE_POOLS) if self.unit == "pool" else phrases.ALL_ROWS
        spread = (
            f"The spread {number(self.spread)} was guessed beforehand, not taken from these rows; a bad "
            "guess makes the list longer, not the promise false."
        )
        return phrases.common_conditions(level.alpha, *alike, spread, phrases.DRAWN_ONCE)

    def evidence(self, level: Level) -> str:
        needed = [numerals.number(each / level.alpha, 3) for each in (1.0, self.uniform)]
        return (
            f"betting against it, unit by unit over {counted(self.units, self.unit)}, made "
            f"{_wealth(self.peak)} of 1 at best and {_wealth(self.last)} at last; {needed[0]} on the way, or "
            f"{needed[1]} at last, was needed"
        )

    def check(self, target: Expected, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold((self.unit == "pool") == (target.pool_size is None), "the units are not those of the target")
        hold(self.units <= rows if self.unit == "pool" else self.units == rows, "the unit counts differ")
        hold(self.mean == mean_per_unit(target), "the mean is not the target's")
        hold(
            self.stake == stake_for(self.units, self.mean, self.spread, level.alpha),
            "the stake is another one",
        )
        hold(self.uniform == Draw(self.draw).uniform, "the uniform number is not the one drawn")
        hold(self.peak >= self.last, "the last wealth exceeds the largest")
        hold(enough(self.peak, self.last, self.uniform, level.alpha), "the wealth is not enough")


def _wealth(log: float) -> str:
    return "more than 1,000,000" if log > math.log(1e6) else numerals.number(math.exp(log), 3)


def enough(peak: float, last: float, uniform: float, alpha: float) -> bool:
    """Whether these wealths certify: 1/alpha on the way, or uniform/alpha at last."""
    return peak >= -math.log(alpha) or (uniform > 0 and last >= math.log(uniform / alpha))


def mean_per_unit(target: Expected) -> float:
    """k per pool, or per row of pools of a known size."""
    return float(target.k) if target.pool_size is None else float(target.k) / float(target.pool_size)


def certify_average(rows: PoolRows, target: Expected, level: Level, unit: str = "pool") -> Certified:
    """k on average, by the e-threshold rule: bets in a fresh random order, one secret number at the end."""
    draw = Draw.fresh()
    order = draw.order(rows.pools)
    test, spread = _bets(rows, target, level, draw, unit)
    count = _fewest(rows, test, order)
    if count is None:
        raise _average_refused(rows, target, level, test.mean, unit)
    peak, last = test.log_wealth(rows.totals(count)[order])
    proof = Average(
        "average", unit, rows.pools, test.mean, spread, test.stake, draw.uniform, draw.key,  # type: ignore[arg-type]
        max(peak, last), last,
    )  # fmt: skip
    return Certified(float(rows.scores[count - 1]), count, rows.rows, rows.qualified, proof)


def _bets(rows: PoolRows, target: Expected, level: Level, draw: Draw, unit: str) -> tuple[EThreshold, float]:
    """The bets against a target, and the spread they are sized by."""
    mean, spread = mean_per_unit(target), float(target.spread or DEFAULT_SPREAD * target.k)
    if unit == "row":
        spread /= math.sqrt(target.pool_size)
    stake = stake_for(rows.pools, mean, spread, level.alpha)
    return EThreshold(mean, stake, draw.uniform, level.alpha), spread


def other_numbers(
    rows: PoolRows, target: Expected, level: Level, proof: Average, numbers: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """The threshold that each other k would have got by the same draw, where it would have got one.

    Each holds by itself, for a k fixed beforehand.
    """
    draw = Draw(proof.draw)
    order = draw.order(rows.pools)
    for k in numbers:
        test, _ = _bets(rows, replace(target, k=k), level, draw, proof.unit)
        if (count := _fewest(rows, test, order)) is not None:
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


def _average_refused(
    rows: PoolRows, target: Expected, level: Level, mean: float, unit: str
) -> NotCertifiable:
    held = float(rows.totals(rows.qualified).mean())
    all_of_them = (
        f"{counted(rows.pools, unit)} hold {numerals.number(held)} each on average with everyone listed"
    )
    if held <= mean:
        reason = f"{all_of_them}: ask for less than that."
    else:
        reason = (
            f"{all_of_them}, which is too few {unit}s to be sure of {numerals.number(mean)}: label "
            f"more {unit}s, or ask for less."
        )
    return refuse(target.describe(), level, rows.rows, rows.qualified, reason)
