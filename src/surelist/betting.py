"""Anytime-valid evidence about a rate, from counts alone (STATISTICS section 16).

``log_e_value``: betting against "the rate is at least p0". Each bet d stakes on the rate having
dropped by the share d; after N trials with S successes its wealth is

    prod (1 + lambda (p0 - Z_i)) = (1 - d)^S (1 + d p0/(1-p0))^(N-S),  lambda = d/(1-p0),

and the e-value is the average over fixed drops d in (0, 1), so lambda in (0, 1/(1-p0)).

*Why it is valid.* If every trial, given all before it, succeeds with probability at least p0,
each factor has conditional mean 1 + lambda (p0 - E[Z_i | past]) <= 1, so the wealth of each bet
is a non-negative supermartingale that starts at 1, and so is the average. Ville's inequality:
the chance that it *ever* reaches 1/alpha is at most alpha, however long it runs and however
often it is looked at. Z_i may depend on the past through a threshold that was fixed before.

``interval``: all rates p for which the beta mixture of likelihood ratios against p is below
1/alpha. For the true rate the mixture is a martingale, so by the same inequality the interval
covers it at all times at once with probability at least 1-alpha, as long as the rate does not
change.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

DROPS = np.geomspace(0.01, 0.95, 24)  # fixed beforehand; part of the state file's format
PRIOR_ROWS = 20.0  # weight of the mixture of ``interval``, centred at the promised rate


def log_e_value(rate: float | Fraction, trials: int, successes: int) -> float:
    """ln of the e-value against "the rate is at least ``rate``"."""
    lost, won = _stakes(rate)
    logs = successes * lost + (trials - successes) * won
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) / len(DROPS))


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


def _edge(end: float, centre: float, outside: object) -> float:
    """Bisect between an end of [0, 1] and the likeliest rate; errs to the wider side."""
    assert callable(outside)
    if not outside(end):
        return end
    low, high = end, centre
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) else (low, middle)
    return low
