"""Why no calibrated score can promise the best list for every pool (Proposition 1) [theory: oracles].

Two kinds of candidates: a is qualified for certain, b with probability k/m. A perfectly
calibrated score other than the true probabilities cannot tell them apart, so whatever a policy
does with it, it does to a pool of only a and to a pool of only b alike. The best list has k
candidates in the first pool and all m in the second.
"""

from __future__ import annotations

import numpy as np

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.baselines.oracles import omniscient
from surelist.baselines.results import Floats
from surelist.errors import InvalidInput


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
    size_bound: float
    qualified_bound: float
    qualified_sharp: float


def impossibility(k: float = 5, pool_size: int = 100, points: int = 1001) -> Impossibility:
    """Run the construction of Proposition 1 over all list sizes a blind policy may choose.

    The oracle lists are computed, not assumed: ``omniscient`` on a pool of only a and on a
    pool of only b. A policy that sees equal scores gives everyone the same chance, so it is
    described by its expected list size. 0 < k < m.
    """
    k, m = check.as_positive(k, "k"), check.as_count(pool_size, "pool_size")
    if not k < m:
        raise InvalidInput("k", expected=f"less than the pool size, {m}", got=f"{k:g}")
    truth = np.array([np.ones(m), np.full(m, k / m)])  # P(Y=1|x) in the two pools
    best = omniscient(truth, k).size
    grid = np.linspace(0, m, check.as_count(points, "points"))
    sizes = np.union1d(grid, [(m + k) / 2, 2 * k * m / (m + k)])
    size_miss = np.abs(sizes[:, None] - best).max(axis=1)
    qualified = sizes[:, None] * truth[:, 0]
    qualified_miss = np.abs(qualified - best * truth[:, 0]).max(axis=1)
    return Impossibility(
        k=k,
        pool_size=m,
        oracle_sizes=(float(best[0]), float(best[1])),
        list_size=sizes,
        size_miss=size_miss,
        qualified_miss=qualified_miss,
        size_bound=(m - k) / 2,
        qualified_bound=k / 2 * (1 - k / m),
        qualified_sharp=k * (m - k) / (m + k),
    )
