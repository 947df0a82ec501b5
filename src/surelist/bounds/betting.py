"""Anytime-valid evidence about a rate [theory: watching].

``Bets``: betting against "the rate is at least p0". A bet (d, s) stakes on the rate having
dropped by the share d from pool s on: its wealth is 1 before pool s, and each trial Z since then
(1 = success) multiplies it by

    1 + lambda (p0 - Z),  lambda = d/(1-p0) in (0, 1/(1-p0)):

by 1 - d after a success, by 1 + d p0/(1-p0) after a failure. The e-value is the average wealth of
all bets, with weights fixed beforehand: equal over 24 drops d, and over starts one half at the
first pool, the rest spread thinly over all later ones. Bets that start late make an alarm come
about as soon after years of good pools as after none.

*Why it is valid.* If every trial, given all before it, succeeds with probability at least p0,
each factor has conditional mean 1 + lambda (p0 - E[Z | past]) <= 1, so the wealth of each bet
is a non-negative supermartingale that starts at 1, and so is the average. Ville's inequality:
the chance that it *ever* reaches 1/alpha is at most alpha, however long it runs and however
often it is looked at. Z may depend on the past through a threshold that was fixed before.

``interval``: all rates p for which the beta mixture of likelihood ratios against p is below
1/alpha. For the true rate the mixture is a martingale, so by the same inequality the interval
covers it at all times at once with probability at least 1-alpha, as long as the rate does not
change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

DROPS = np.geomspace(0.01, 0.95, 24)  # fixed beforehand; part of the state file's format
PRIOR_ROWS = 20.0  # weight of the mixture of ``interval``, centred at the promised rate


class Bets:
    """The wealth of all bets against "the rate is at least ``rate``", pool by pool.

    ``logs[i]`` is ln of the weighted wealth of all bets on the i-th drop that have started.
    """

    def __init__(
        self, rate: float | Fraction, logs: NDArray[np.float64] | None = None, pools: int = 0
    ) -> None:
        self.rate = rate
        self.logs = np.full(len(DROPS), math.log(0.5)) if logs is None else logs
        self.pools = pools

    def add(self, trials: int, successes: int) -> None:
        """One pool: the bets that start with it join, then all are settled."""
        self.pools += 1
        if self.pools > 1:
            weight = (_waiting(self.pools - 1) - _waiting(self.pools)) / 2
            self.logs = np.logaddexp(self.logs, math.log(weight))
        after_success, after_failure = _stakes(self.rate)
        self.logs = self.logs + successes * after_success + (trials - successes) * after_failure

    @property
    def log_e_value(self) -> float:
        """ln of the average wealth, those that have not started included."""
        top = float(self.logs.max())
        started = top + math.log(float(np.exp(self.logs - top).sum()) / len(DROPS))
        unstarted = math.log(_waiting(max(1, self.pools)) / 2)
        high, low = max(started, unstarted), min(started, unstarted)
        return high + math.log1p(math.exp(low - high))


def _waiting(pool: int) -> float:
    """Share of the later bets that start after this pool: 1, 1/2, ... down like 1/log."""
    return 1 / (1 + math.log2(pool))


@lru_cache(maxsize=64)
def _stakes(rate: float | Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """ln of what each bet is multiplied by after a success, and after a failure."""
    p = math.nextafter(float(rate), 0.0)  # below the promise: never more evidence than there is
    return np.log1p(-DROPS), np.log1p(DROPS * (p / (1 - p)))


def interval(rate: float | Fraction, trials: int, successes: int, alpha: float) -> tuple[float, float]:
    """Rates that the counts do not speak against, at every time at once."""
    a = max(0.5, PRIOR_ROWS * float(rate))
    b = max(0.5, PRIOR_ROWS * (1 - float(rate)))
    failures = trials - successes
    mixture = special.betaln(a + successes, b + failures) - special.betaln(a, b) + math.log(alpha)

    def outside(p: float) -> bool:
        return bool(special.xlogy(successes, p) + special.xlog1py(failures, -p) <= mixture)

    centre = successes / trials if trials else 0.5
    return _edge(0.0, centre, outside), _edge(1.0, centre, outside)


def _edge(end: float, centre: float, outside: Callable[[float], bool]) -> float:
    """Bisect between an end of [0, 1] and the likeliest rate; errs to the wider side."""
    if not outside(end):
        return end
    low, high = end, centre
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) else (low, middle)
    return low
