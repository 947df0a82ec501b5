"""Do candidates of one pool resemble one another? A test, and what it costs a promise made from rows.

A diagnosis, not a promise: rows as units are right only where pools are no more alike inside than draws
at random [theory: pools].
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from msgspec import Struct

from surelist import _numerals as numerals
from surelist._arrays import Floats, Ints, Mask
from surelist._randomness import fresh_generator
from surelist._scipy import special
from surelist.errors import PoolWarning
from surelist.promises.phrases import percent
from surelist.promises.promise import Promise

SURE = 0.01  # p-value below which the warning is given
TURNS = 50  # of each half of the rows: the test compares TURNS * TURNS arrangements
MOST_POOLS, MOST_ROWS = 50_000, 500_000  # looked at; of larger tables a part drawn at random


class PoolEffect(Struct, frozen=True):
    """How much the count of listed qualified rows varies between pools, relative to independent rows.

    ``inflation`` is the factor of its variance, 1 for independent rows; ``p_value`` of an exact permutation
    test that there is none; ``failure_rate``, by normal approximation, what alpha really is for rows as
    units.
    """

    pools: int
    inflation: float
    p_value: float
    failure_rate: float


def pool_effect(sizes: Ints, totals: Ints, alpha: float) -> PoolEffect:
    """Test whether listed qualified rows, ``totals`` of the ``sizes`` of each pool, cluster in pools."""
    pools, rows = len(sizes), int(sizes.sum())
    rate = float(totals.sum()) / rows
    if pools < 2 or not 0 < rate < 1:
        return PoolEffect(pools, 1.0, 1.0, alpha)
    deviation = (totals - sizes * rate) ** 2
    inflation = float(deviation.sum()) / (rows * rate * (1 - rate)) * pools / (pools - 1)
    failure = float(special.ndtr(special.ndtri(min(alpha, 0.5)) / math.sqrt(max(inflation, 1.0))))
    return PoolEffect(pools, inflation, chance_of_spread(sizes, totals), failure)


def chance_of_spread(sizes: Ints, totals: Ints, rng: np.random.Generator | None = None) -> float:
    """An exact p-value for "rows are independent", by permutation; small where totals spread between pools.

    Given its total, every place of the flags among independent rows is equally likely, whatever the sizes
    of pools and however few flags they hold. So the rows are put in a random order, the two halves of the
    flags are turned against the pools, each by every step of a circle, and the p-value is the share of these
    arrangements that spread at least as much as the one at hand. The turns form a group with the identity in
    it: such a share is at most x with probability at most x.
    """
    rng = fresh_generator() if rng is None else rng
    sizes, totals = _part(np.asarray(sizes), np.asarray(totals), rng)
    rows, pools = int(sizes.sum()), len(sizes)
    turns = min(TURNS, rows // 2)
    if turns < 2:
        return 1.0
    order = rng.permutation(rows)
    pool = np.repeat(np.arange(pools), sizes)[order]
    flags = (np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes) < np.repeat(totals, sizes))[order]
    step = rows // (2 * turns)
    size, middle = step * turns, rows // 2
    first = _turned(pool[:size], flags[:size], step, turns, pools)
    second = _turned(pool[middle : middle + size], flags[middle : middle + size], step, turns, pools)
    fixed = np.r_[size:middle, middle + size : rows]  # at most a few rows, which stay where they are
    first += np.bincount(pool[fixed][flags[fixed]], minlength=pools) - sizes * (totals.sum() / rows)
    spread = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] + 2 * first @ second.T
    return float(np.mean(spread >= spread[0, 0] * (1 - 1e-9)))


def _turned(pool: Ints, flags: Mask, step: int, turns: int, pools: int) -> Floats:
    """Flags in each pool after each turn of the flags against the pools, the first turn by nothing."""
    at = np.flatnonzero(flags)
    counts = [np.bincount(pool[(at + step * turn) % len(pool)], minlength=pools) for turn in range(turns)]
    return np.array(counts, dtype=np.float64)


def _part(sizes: Ints, totals: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """No more pools and rows than are looked at, drawn without regard to flags."""
    if len(sizes) > MOST_POOLS:
        drawn = rng.choice(len(sizes), MOST_POOLS, replace=False)
        sizes, totals = sizes[drawn], totals[drawn]
    if sizes.sum() > MOST_ROWS:
        kept = np.minimum(sizes, 1 + sizes * MOST_ROWS // sizes.sum())
        totals, sizes = rng.hypergeometric(totals, sizes - totals, kept), kept
    return sizes, totals


def warn_of_pools(effect: PoolEffect, alpha: float, target: Promise) -> None:
    """Say it where it matters."""
    if effect.p_value >= SURE or effect.inflation <= 1:
        return
    other = target.in_whole_pools
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
