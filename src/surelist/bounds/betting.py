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

With an ``audit_rate`` a, Z = (1-r) after a qualified candidate on the list and -(r/a) after one who was
not and was audited: its mean is P(Y=1, listed) - r P(Y=1), at least 0 while recall is at least r.

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

from surelist._arrays import Floats, special
from surelist.bounds._tails import last_outside

DROPS = np.geomspace(0.01, 0.95, 24)  # fixed beforehand; part of the state file's format
RECALL_DROPS = np.geomspace(0.05, 0.8, len(DROPS))  # of bets on recall: audits are few, so no small drops
SHARES = np.geomspace(1e-4, 0.95, 40)  # of the wealth staked by the bets behind ``recall_interval``
PRIOR_ROWS = 20.0  # weight of the mixture of ``interval``, centred at the promised rate


class Bets:
    """The wealth of all bets against "the rate is at least ``rate``", pool by pool.

    ``logs[i]`` is ln of the weighted wealth of all bets on the i-th drop that have started. With an
    ``audit_rate`` the rate is recall: of qualified candidates those listed are successes, and a
    failure is seen with that probability only [theory: recall-alarm].
    """

    def __init__(
        self,
        rate: float | Fraction,
        logs: Floats | None = None,
        pools: int = 0,
        audit_rate: float | None = None,
    ) -> None:
        self.rate, self.audit_rate = rate, audit_rate
        self.logs = np.full(len(DROPS), math.log(0.5)) if logs is None else logs
        self.pools = pools

    def add(self, trials: int, successes: int) -> None:
        """One pool: the bets that start with it join, then all are settled."""
        self.pools += 1
        if self.pools > 1:
            weight = (_waiting(self.pools - 1) - _waiting(self.pools)) / 2
            self.logs = np.logaddexp(self.logs, math.log(weight))
        after_success, after_failure = _stakes(self.rate, self.audit_rate)
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
def _stakes(rate: float | Fraction, audit_rate: float | None) -> tuple[Floats, Floats]:
    """ln of what each bet is multiplied by after a success, and after a failure.

    A failure that is seen with probability a only counts 1/a times; the share d of the wealth that
    grows fastest when recall r has dropped to r' = r (1 - drop) is then drop * a / (r' + (1 - r') a).
    """
    p = math.nextafter(float(rate), 0.0)  # below the promise: never more evidence than there is
    if audit_rate is None:
        return np.log1p(-DROPS), np.log1p(DROPS * (p / (1 - p)))
    lower = p * (1 - RECALL_DROPS)
    shares = RECALL_DROPS * audit_rate / (lower + (1 - lower) * audit_rate)
    return np.log1p(-shares), np.log1p(shares * (p / (1 - p)) / audit_rate)


def interval(rate: float | Fraction, trials: int, successes: int, alpha: float) -> tuple[float, float]:
    """Rates that the counts do not speak against, at every time at once."""
    a = max(0.5, PRIOR_ROWS * float(rate))
    b = max(0.5, PRIOR_ROWS * (1 - float(rate)))
    failures = trials - successes
    mixture = special.betaln(a + successes, b + failures) - special.betaln(a, b) + math.log(alpha)

    def outside(p: float) -> bool:
        return bool(special.xlogy(successes, p) + special.xlog1py(failures, -p) <= mixture)

    centre = successes / trials if trials else 0.5
    return last_outside(0.0, centre, outside), last_outside(1.0, centre, outside)


def recall_interval(
    audit_rate: float, listed: tuple[int, int], missed: tuple[int, int], alpha: float
) -> tuple[float, float]:
    """Recalls that the counts do not speak against, at every time at once.

    Qualified candidates on the lists, and among those audited: each as the fewest and the most that
    there may be. Bets that recall is below r win more the larger r is, those that it is above r the
    smaller, so each end is where the average of its bets reaches 2/alpha.
    """
    limit = math.log(2 / alpha) + math.log(len(SHARES))

    def outweighs(favourable: int, odds: float, others: int) -> bool:
        logs = favourable * np.log1p(SHARES * odds) + others * np.log1p(-SHARES)
        return bool(np.exp(np.minimum(logs - limit, 1.0)).sum() >= 1)

    def odds(r: float) -> float:
        return max(r, 1e-12) / max(1 - r, 1e-12) / audit_rate

    low = last_outside(0.0, 1.0, lambda r: outweighs(listed[0], 1 / odds(r), missed[1]))
    high = last_outside(1.0, 0.0, lambda r: outweighs(missed[0], odds(r), listed[1]))
    return low, max(low, high)
