"""List size and qualified candidates of every method, on many pools or on all candidates at once.

Methods that decide by score need one pass: every candidate falls between two thresholds of any
method, and counts per interval answer for all methods. Random choices (a last bin, a tie) enter
with their probabilities and are never drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surelist.baselines import Bands
from surelist.paper.methods import Fitted

LOWEST = float(np.finfo(np.float64).min)

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
    edges = np.unique([t for each in bands.values() for t in each.thresholds if t > LOWEST])
    cell = np.searchsorted(edges, scores, side="right")
    people = np.bincount(cell, minlength=len(edges) + 1)
    wins = np.bincount(cell[qualified], minlength=len(edges) + 1)
    lowest = np.append(LOWEST, edges)  # the lowest score of each interval stands for all of it
    found = {}
    for name, each in bands.items():
        chance = each.chance(lowest)
        found[name] = Outcome(float(chance @ people) / per, float(chance @ wins) / per)
    return found


def average(fitted: Fitted, test: Candidates, k: float) -> dict[str, Outcome]:
    """Every method, averaged over these pools. With all candidates once: the plug-in expectation."""
    scores, qualified = test.scores.ravel(), test.qualified.ravel()
    if test.member is not None:
        own = test.member.ravel()
        scores, qualified = scores[own], qualified[own]
    found = by_score(fitted.bands, scores, qualified, float(len(test)))
    return found | by_pool(fitted, test, k)


def by_pool(fitted: Fitted, pools: Candidates, k: float) -> dict[str, Outcome]:
    """Methods that look at whole pools, averaged over the pools."""
    found = {}
    for name, rule in fitted.pool_rules.items():
        chance = rule(pools.scores, k, pools.member).chance
        wins = float(chance[pools.qualified].sum())
        found[name] = Outcome(float(chance.sum()) / len(pools), wins / len(pools))
    return found
