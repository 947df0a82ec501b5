"""Do candidates of one pool resemble one another? A test, and what it costs a promise made from rows.

A diagnosis, not a promise: rows as units are right only where pools are no more alike inside than draws
at random [theory: pools].
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from numpy.typing import NDArray

from surelist import _numerals as numerals
from surelist._dataclasses import dataclass
from surelist._scipy import special
from surelist.errors import PoolWarning
from surelist.promises.phrases import percent
from surelist.promises.targets import AnyTarget

SURE = 0.01  # p-value below which the warning is given


@dataclass(frozen=True)
class PoolEffect:
    """How much the count of listed qualified rows varies between pools, relative to independent rows.

    ``inflation`` is the factor of its variance, 1 for independent rows; ``p_value`` of the chi-square test
    that there is none; ``failure_rate``, by normal approximation, what alpha really is for rows as units.
    """

    pools: int
    inflation: float
    p_value: float
    failure_rate: float


def pool_effect(sizes: NDArray[Any], totals: NDArray[Any], alpha: float) -> PoolEffect:
    """Test whether listed qualified rows, ``totals`` of the ``sizes`` of each pool, cluster in pools."""
    pools, rows = len(sizes), int(sizes.sum())
    rate = float(totals.sum()) / rows
    if pools < 2 or not 0 < rate < 1:
        return PoolEffect(pools, 1.0, 1.0, alpha)
    deviation = (totals - sizes * rate) ** 2
    chi_square = float((deviation / (sizes * rate * (1 - rate))).sum())
    p_value = float(special.gammaincc((pools - 1) / 2, chi_square / 2))
    inflation = float(deviation.sum()) / (rows * rate * (1 - rate)) * pools / (pools - 1)
    failure = float(special.ndtr(special.ndtri(min(alpha, 0.5)) / math.sqrt(max(inflation, 1.0))))
    return PoolEffect(pools, inflation, p_value, failure)


INSTEAD = {
    "Expected": "The same promise without a pool size",
    "PerPool": "The same promise without a pool size",
    "Recall": "A promise of each pool's own recall",
}


def warn_of_pools(effect: PoolEffect, alpha: float, target: AnyTarget) -> None:
    """Say it where it matters."""
    if effect.p_value >= SURE or effect.inflation <= 1:
        return
    other = INSTEAD.get(type(target).__name__)
    instead = (
        f"{other} takes whole pools as the units." if other else "No rule for whole pools is known for it."
    )
    warnings.warn(
        f"Candidates of one pool resemble one another (variance {effect.inflation:.1f} times that of "
        f"independent rows over {effect.pools:,} pools, p = {numerals.chance(effect.p_value)}), and this "
        "promise treats rows as independent: it would be false about "
        f"{percent(round(effect.failure_rate, 2))} of the time instead of {percent(alpha)}. {instead}",
        PoolWarning,
        stacklevel=5,
    )
