"""List size and qualified candidates of every method, on many pools or on all candidates at once.

Methods that decide by score need two counts per threshold: how many candidates score at least as
high, and how many qualified ones. Random choices (a last bin, a tie) enter with their
probabilities and are never drawn.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist.baselines import Bands
from surelist.paper.methods import Fitted

BLOCK = 512  # pools; their arrays then stay in the processor's cache

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """Pools of equal size, one per row: scores, labels, and who belongs to the group in question."""

    scores: Floats
    qualified: Mask
    member: Mask | None = None

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class Outcome:
    """Per pool on average: candidates on the list, and qualified ones among them."""

    size: float
    qualified: float


def by_score(bands: Mapping[str, Bands], scores: Floats, qualified: Mask, per: float) -> dict[str, Outcome]:
    """What each method lists of these candidates, divided by ``per``."""
    positives = scores[qualified]
    reached = {
        t: (np.count_nonzero(scores >= t), np.count_nonzero(positives >= t))
        for t in {t for each in bands.values() for t in each.thresholds}
    }
    outcomes = {}
    for name, each in bands.items():
        people, wins = np.array([reached[t] for t in each.thresholds], dtype=np.float64).T
        size, hits = (float(np.diff(count, prepend=0.0) @ each.chances) for count in (people, wins))
        outcomes[name] = Outcome(size / per, hits / per)
    return outcomes


def average(fitted: Fitted, test: Candidates, k: float) -> dict[str, Outcome]:
    """Every method, averaged over these pools. With all candidates once: the plug-in expectation."""
    scores, qualified = test.scores.ravel(), test.qualified.ravel()
    if test.member is not None:
        members = test.member.ravel()
        scores, qualified = scores[members], qualified[members]
    by_band = by_score(fitted.bands, scores, qualified, float(len(test)))
    return by_band | by_pool(fitted, test, k)


def by_pool(fitted: Fitted, pools: Candidates, k: float) -> dict[str, Outcome]:
    """Methods that look at whole pools, averaged over the pools, a few hundred at a time."""
    sums = {name: np.zeros(2) for name in fitted.pool_rules}
    for start in range(0, len(pools), BLOCK):
        part = slice(start, start + BLOCK)
        member = None if pools.member is None else pools.member[part]
        hits = pools.qualified[part].astype(np.float64).ravel()
        for name, rule in fitted.pool_rules.items():
            chance = rule(pools.scores[part], k, member).chance
            sums[name] += chance.sum(), chance.ravel() @ hits
    return {name: Outcome(*(total / len(pools)).tolist()) for name, total in sums.items()}
