"""Pools as units: candidates of one pool may resemble one another in any way [theory: pools].

Numbers only. ``pool_rank`` and ``pac_pool_rank`` say which of the G values V_g (the score at which a
labelled pool reaches what is promised) is the threshold for the next pool; ``EThreshold`` decides
whether the totals of G pools certify an average. Where V, totals and random numbers come from is
not decided here.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist._arrays import Floats
from surelist.bounds.counts import critical_count
from surelist.errors import InvalidInput

MARGIN = 1e-9  # in ln(wealth): what adding up logarithms of a million pools may lose


def pool_rank(pools: int, alpha: float) -> int:
    """floor(alpha (G + 1)) in rationals: the rank, from below, of the threshold among the V; 0 = none.

    With G + 1 exchangeable pools the next one's V is below the r-th smallest of the others with
    probability at most r / (G + 1). Ties only help.
    """
    return math.floor(check.as_fraction(alpha, "alpha") * (pools + 1))


def pac_pool_rank(pools: int, calibration_alpha: float, pool_alpha: float) -> int:
    """The largest d + 1 with P(Binomial(G, pool_alpha) <= d) <= calibration_alpha; 0 = none.

    With probability at least 1 - calibration_alpha over i.i.d. pools, the (d + 1)-th smallest V is
    reached by each further pool with probability at least 1 - pool_alpha.
    """
    kept = 1 - check.as_fraction(check.as_alpha(pool_alpha, "pool_alpha"), "pool_alpha")
    return pools - critical_count(pools, kept, calibration_alpha) + 1


class EThreshold(Struct, frozen=True):
    """The test behind an average over pools: wealth Π (1 + stake (Z_g - mean)) in a random order.

    Certified when the wealth ever reaches 1/alpha, or ends at ``uniform``/alpha or more. Factors are
    never negative and have mean at most 1 while E Z <= mean, so both together happen with
    probability at most alpha (randomised Ville inequality). The wealth grows with every Z_g, hence
    never grows with the threshold, and the boundary lemma applies [theory: boundary-lemma].
    """

    mean: float
    stake: float
    uniform: float
    alpha: float

    def __post_init__(self) -> None:
        if not 0 <= self.stake * self.mean < 1:
            raise InvalidInput("stake", expected="at least 0 and below 1/mean", got=f"{self.stake:g}")

    def certified(self, totals: Floats) -> bool:
        """Whether these totals, one per pool in the order drawn, certify a mean above ``mean``."""
        peak, final = self.log_wealth(totals)
        reached = peak >= -math.log(self.alpha) + MARGIN
        lucky = self.uniform > 0 and final >= math.log(self.uniform) - math.log(self.alpha) + MARGIN
        return reached or lucky

    def log_wealth(self, totals: Floats) -> tuple[float, float]:
        """ln of the largest wealth on the way, and of the last."""
        walk = np.cumsum(np.log1p(self.stake * (totals - self.mean)))
        return float(walk.max()), float(walk[-1])


def stake_for(pools: int, mean: float, spread: float, alpha: float) -> float:
    """min(sqrt(2 ln(1/alpha) / G) / spread, 0.9 / mean): the bet, from guesses made beforehand.

    A wrong guess of the totals' standard deviation costs length, never validity.
    """
    best = math.sqrt(2 * math.log(1 / check.as_alpha(alpha)) / check.as_count(pools, "pools"))
    spread, mean = check.as_positive(spread, "spread"), check.as_positive(mean, "mean")
    return min(best / spread, 0.9 / mean)
