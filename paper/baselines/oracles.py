"""The oracles [theory: oracles]: what could be done if the true probabilities were known.

``impossibility`` shows why no calibrated score can promise the best list for every pool (Proposition 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import surelist as sl
from paper.baselines.results import Bands, PoolShortlists
from paper.inputs import Floats, as_count, as_pools, as_positive, as_scores, labelled_rows, require_length

TOP = 32


def omniscient(pools: Any, k: float, member: Any = None) -> PoolShortlists:
    """Theorem 1: the shortest list of each pool with k qualified candidates in expectation.

    ``pools`` holds the true P(Y=1|x) of one pool, or of one pool per row: assumption and
    limit in one, since no data can give them. Threshold t* = sup{t : sum of F >= t is >= k},
    candidates exactly at t* with probability theta*; everyone where the pool holds less than k.
    """
    promise = "exact, if every score is the true probability of being qualified"
    return take_until(pools, k, member, method="Omniscient oracle", guarantee=promise)


def take_until(pools: Any, k: float, member: Any, *, method: str, guarantee: str) -> PoolShortlists:
    """From the top of every pool until the scores sum to k; ties at the last score share theta."""
    array = as_pools(pools)
    k = as_positive(k, "k")
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        wrong = array[(array < 0) | (array > 1)][0]
        raise sl.InvalidInput("scores", expected="probabilities between 0 and 1", got=f"{wrong:g}")
    counted = array
    if member is not None:
        allowed = np.asarray(member)
        if allowed.dtype.kind != "b" or allowed.shape != array.shape:
            raise sl.InvalidInput("member", f"expected a boolean array of shape {array.shape}.")
        counted = np.where(allowed, array, 0.0)
    threshold, share = _last_score(counted, k)
    chance = (counted > threshold[..., None]).astype(np.float64)
    level = counted == threshold[..., None]
    chance[level] = np.broadcast_to(share[..., None], level.shape)[level]
    if member is not None:
        chance[~allowed] = 0.0
    return PoolShortlists(method, chance, threshold, share, guarantee)


def _last_score(counted: Floats, k: float) -> tuple[Floats, Floats]:
    """Per pool, the score at which the descending cumulative sum reaches k, and the share there.

    -inf and 1 where the sum never does. The score is above 0: a score of 0 adds nothing.
    """
    shape, size = counted.shape[:-1], counted.shape[-1]
    if size == 0:
        return np.full(shape, -np.inf), np.ones(shape)
    ordered = np.sort(counted, axis=-1)
    columns = min(size, TOP)  # a short list is decided by its top scores
    falling = ordered[..., : -columns - 1 : -1]
    total = np.cumsum(falling, axis=-1)
    if columns < size and not (total[..., -1] >= k).all():
        falling = ordered[..., ::-1]
        total = np.cumsum(falling, axis=-1)
    rank = (total < k).sum(axis=-1, keepdims=True)
    reached = rank < falling.shape[-1]
    score = np.take_along_axis(falling, np.minimum(rank, falling.shape[-1] - 1), axis=-1)
    better = (falling > score).sum(axis=-1, keepdims=True)
    tied = (counted == score).sum(axis=-1, keepdims=True)
    above = np.where(better > 0, np.take_along_axis(total, np.maximum(better - 1, 0), axis=-1), 0.0)
    share = np.divide(k - above, tied * score, out=np.ones_like(score), where=reached)
    threshold = np.where(reached, score, -np.inf)
    return threshold[..., 0], np.clip(share, 0.0, 1.0)[..., 0]


@dataclass(frozen=True)
class CalibratedOracle:
    """The best policy for a perfectly calibrated score of finite range: threshold and share."""

    threshold: float
    share: float
    expected_size: float
    guarantee: str = "exact, if the score is perfectly calibrated and its masses are the true ones"

    @property
    def bands(self) -> Bands:
        """The policy, to be applied to scores."""
        over = math.nextafter(self.threshold, math.inf)
        return Bands("Perfectly calibrated oracle", (over, self.threshold), (1.0, self.share), self.guarantee)


def calibrated_oracle(values: Any, masses: Any, target: sl.Expected) -> CalibratedOracle:
    """Theorem 2: the shortest expected list among policies that see only a calibrated score.

    ``values`` mu_b are the scores' range, each equal to P(Y=1 | score = mu_b); ``masses``
    rho_b their probabilities. Assumption: both are true. Limit: the expectation is over
    pools, no promise is made for a single one. Equal values are one value.
    """
    mu, rho = _finite_range(values, masses)
    rate = float(target.rate)
    reached = np.cumsum((mu * rho)[::-1])
    if reached[-1] < rate * (1 - 1e-12):
        raise sl.InvalidInput(
            "k",
            expected=f"at most {target.pool_size * reached[-1]:g}, all there is in a pool of "
            f"{target.pool_size:g}",
            got=f"{target.k:g}",
        )
    last = min(int(np.searchsorted(reached, rate * (1 - 1e-12))), len(mu) - 1)
    falling, weight = mu[::-1], rho[::-1]
    before = float(reached[last - 1]) if last else 0.0
    share = min(1.0, (rate - before) / float(falling[last] * weight[last]))
    size = target.pool_size * (float(weight[:last].sum()) + share * float(weight[last]))
    return CalibratedOracle(float(falling[last]), share, size)


def coarsen(values: Any, masses: Any, cells: Any) -> tuple[Floats, Floats]:
    """The perfectly calibrated score that merges the values of each cell into their mean.

    The result is dominated by the original (Corollary 1), so its oracle list is never shorter.
    """
    mu, rho = as_scores(values, "values"), as_scores(masses, "masses")
    _, cell = np.unique(np.asarray(cells), return_inverse=True)
    require_length(cell, len(mu), "cells")
    merged: Floats = np.bincount(cell, weights=rho).astype(np.float64)
    wins: Floats = np.bincount(cell, weights=mu * rho).astype(np.float64)
    return np.divide(wins, merged, out=np.zeros_like(wins), where=merged > 0), merged


def dominates(score: Any, other: Any) -> bool:
    """Whether ``score`` tells apart all that ``other`` does (the paper's dominance).

    Both hold one value per point x: equal values of ``score`` must mean equal values of ``other``.
    """
    fine, coarse = as_scores(score, "score"), as_scores(other, "other")
    require_length(coarse, len(fine), "other")
    pairs = np.unique(np.stack([fine, coarse], axis=1), axis=0)
    return len(pairs) == len(np.unique(fine))


def oracle_threshold(scores: Any, labels: Any, target: sl.Expected) -> Bands:
    """The largest threshold that reaches k in pools drawn from *these* candidates.

    Needs the labels of the population the pools come from, which is why it is an oracle: the
    ceil(N k/m)-th largest qualified score of all N.
    """
    array, qualified = labelled_rows(scores, labels)
    needed = math.ceil(len(array) * target.rate)
    hits = array[qualified]
    if needed > len(hits):
        raise sl.InvalidInput(
            "k",
            expected=f"at most {target.pool_size * len(hits) / len(array):g}",
            got=f"{target.k:g}",
        )
    threshold = float(np.partition(hits, len(hits) - needed)[len(hits) - needed])
    return Bands("Oracle", (threshold,), (1.0,), "exact, if these candidates are the whole population")


def _finite_range(values: Any, masses: Any) -> tuple[Floats, Floats]:
    """Distinct values ascending, with their masses, checked."""
    mu, rho = as_scores(values, "values"), as_scores(masses, "masses")
    if not len(mu):
        raise sl.InvalidInput("values", "expected at least one.")
    require_length(rho, len(mu), "masses")
    if mu.min() < 0 or mu.max() > 1:
        raise sl.InvalidInput("values", "expected probabilities between 0 and 1.")
    if rho.min() < 0 or abs(rho.sum() - 1) > 1e-9:
        raise sl.InvalidInput("masses", expected="probabilities that sum to 1", got=f"a sum of {rho.sum():g}")
    distinct, index = np.unique(mu, return_inverse=True)
    return distinct, np.bincount(index, weights=rho).astype(np.float64)


@dataclass(frozen=True)
class Impossibility:
    """For every expected list size of the blind policy: how far it misses, at worst of the two pools.

    ``size_miss`` in candidates, ``qualified_miss`` in qualified candidates;
    ``size_bound`` and ``qualified_bound`` are Proposition 1's, ``qualified_sharp`` the best
    possible constant. ``oracle_sizes`` are the best lists of the two pools.
    """

    k: float
    pool_size: int
    oracle_sizes: tuple[float, float]
    list_size: Floats
    size_miss: Floats
    qualified_miss: Floats

    @property
    def size_bound(self) -> float:
        return (self.pool_size - self.k) / 2

    @property
    def qualified_bound(self) -> float:
        return self.k / 2 * (1 - self.k / self.pool_size)

    @property
    def qualified_sharp(self) -> float:
        return self.k * (self.pool_size - self.k) / (self.pool_size + self.k)


def impossibility(k: float = 5, pool_size: int = 100, points: int = 1001) -> Impossibility:
    """Run the construction of Proposition 1 over all list sizes a blind policy may choose.

    Two kinds of candidates: a is qualified for certain, b with probability k/m. A perfectly calibrated
    score other than the true probabilities cannot tell them apart, so whatever a policy does with it, it
    does to a pool of only a and to a pool of only b alike. The best list has k candidates in the first
    pool and all m in the second.

    The oracle lists are computed, not assumed: ``omniscient`` on a pool of only a and on a
    pool of only b. A policy that sees equal scores gives everyone the same chance, so it is
    described by its expected list size. 0 < k < m.
    """
    k, m = as_positive(k, "k"), as_count(pool_size, "pool_size")
    if not k < m:
        raise sl.InvalidInput("k", expected=f"less than the pool size, {m}", got=f"{k:g}")
    truth = np.array([np.ones(m), np.full(m, k / m)])  # P(Y=1|x) in the two pools
    best = omniscient(truth, k).size
    grid = np.linspace(0, m, as_count(points, "points"))
    sizes = np.union1d(grid, [(m + k) / 2, 2 * k * m / (m + k)])
    size_miss = np.abs(sizes[:, None] - best).max(axis=1)
    qualified = sizes[:, None] * truth[:, 0]
    qualified_miss = np.abs(qualified - best * truth[:, 0]).max(axis=1)
    oracle_sizes = (float(best[0]), float(best[1]))
    return Impossibility(k, m, oracle_sizes, sizes, size_miss, qualified_miss)
