"""How often a true promise shows so little [theory: looking-back]. Numbers only.

``clustered_chance`` and ``clustered_interval`` judge a share where rows come in pools and those of one pool
may resemble one another in any way; ``short_pools`` judges how many pools fell short of a count that was
certified from independent rows.
"""

from __future__ import annotations

import math

import numpy as np

from surelist._arrays import special
from surelist.bounds._tails import last_outside

STAKES = np.geomspace(1e-3, 0.95, 32)  # of the wealth, fixed beforehand
LEVELS = np.concatenate([[0.0], np.geomspace(1e-12, 1e-3, 200), np.linspace(1e-3, 1, 2000)[1:]])


class Clusters:
    """``successes`` of ``of`` rows in each pool of at most ``largest`` rows; equal pools are counted."""

    def __init__(self, successes: object, of: object, largest: int) -> None:
        pairs = np.stack([np.asarray(of, dtype=np.float64), np.asarray(successes, dtype=np.float64)])
        (self.of, self.successes), self.pools = np.unique(pairs, axis=1, return_counts=True)
        self.largest = largest

    def log_evidence(self, share: float, *, below: bool) -> float:
        """ln of the average wealth of bets that the share lies ``below`` this one, or above it.

        A pool multiplies a bet's wealth by 1 + stake (share of - successes) / ((1 - share) largest): never
        negative, and at most 1 on average while the share is at least ``share``. Bets on "above" are those
        of the failures.
        """
        won = self.successes if below else self.of - self.successes
        p = min(max(share if below else 1 - share, 0.0), 1 - 1e-12)
        factors = (p * self.of - won) / ((1 - p) * self.largest)
        logs = np.log1p(np.maximum(STAKES[:, None] * factors[None, :], -STAKES[:, None])) @ self.pools
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean()))

    def edge(self, alpha: float, *, below: bool) -> float:
        """The last share, from the far end, with evidence of 1/alpha against it; errs to the wider side."""
        far, near = (1.0, 0.0) if below else (0.0, 1.0)
        needed = -math.log(alpha)
        return last_outside(far, near, lambda share: self.log_evidence(share, below=below) >= needed)


def clustered_chance(successes: object, of: object, largest: int, share: float) -> float:
    """At most so often do pools show so little if the share of successes is at least ``share``."""
    return min(1.0, math.exp(-Clusters(successes, of, largest).log_evidence(share, below=True)))


def clustered_interval(successes: object, of: object, largest: int, alpha: float) -> tuple[float, float]:
    """The shares that pools do not speak against: covers the true one with probability at least 1 - alpha."""
    clusters = Clusters(successes, of, largest)
    return clusters.edge(alpha / 2, below=False), clusters.edge(alpha / 2, below=True)


def short_pools(rows: int, count: int, k: int, size: int, pools: int, missed: int) -> float:
    """P(``missed`` or more of ``pools`` pools hold fewer than k at or above the count-th best of the rows).

    Rows and candidates are independent draws. The rate at or above that row is Beta(count, rows - count + 1),
    or more where scores are tied; given it, pools of ``size`` fall short independently. Summed from above
    over cells of the rate.
    """
    if missed <= 0:
        return 1.0
    rates = special.betaincinv(count, rows - count + 1, LEVELS[:-1])  # the lower end of each cell
    short = special.bdtr(k - 1, size, rates * (1 - 1e-9))
    return min(1.0, float(np.diff(LEVELS) @ special.bdtrc(missed - 1, pools, np.minimum(short, 1.0))))
