"""Labels that exist with a known probability, or that may be wrong, with bounds on how often. Numbers only.

*Drawn.* Everyone above a score, an audit of the rest. Of n rows, labelled or not, N1 qualified ones score at
or above the edge, where every label is known; below it a row is labelled with probability ``audit_rate``, and
N2 labelled qualified rows lie between a threshold and the edge. (N1, N2) is multinomial with rates d1 and
audit_rate d2, and the split of the target rate p0 = d1 + d2 is not known: Berger and Boos take the worst
split that N1 does not speak against [theory: sampled-labels].

*Wrong* [theory: noise]. Of those who are not qualified at most a share ``false_positive`` is labelled
qualified, of the qualified at most ``false_negative`` not, at every score.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist._arrays import Floats, special
from surelist.bounds._tails import MARGIN, log_binomial, safe, smallest
from surelist.bounds.counts import Rate

GAMMA = 20  # alpha / GAMMA is the price of not knowing the split
MOST_PIECES = 6000  # beyond, an undecided supremum counts as too large
LOST = 1e-13  # probability beyond the terms that are summed, and rounding


@lru_cache(maxsize=4096)
def audit_count(rows: int, above: int, rate: Rate, audit_rate: Rate, alpha: float) -> int:
    """need(N1): the smallest N2 that certifies ``rate``; rows + 1 where none does.

    Zero means that the rows above the edge alone certify the list that ends at the edge.
    """
    target, audited = check.as_rate(rate, "rate"), check.as_rate(audit_rate, "audit_rate")
    split = Split(rows, target, audited)
    guess = min(max(0, math.ceil((rows * target - above) * audited)), rows)
    return smallest(lambda count: split.certified(above, count, alpha), 0, rows, guess)


@lru_cache(maxsize=4096)
def edge_count(rows: int, rate: Rate, audit_rate: Rate, alpha: float) -> int:
    """The smallest N1 that needs no audited row: as many certify a threshold at or above the edge too.

    There every label is known. If the boundary t* lies at or above the edge, a false threshold needs this
    many qualified rows above t*, rarer than alpha - gamma; if below, it is the event N1 >= this count,
    which is among those that ``audit_count`` already pays for.
    """
    target, audited = check.as_rate(rate, "rate"), check.as_rate(audit_rate, "audit_rate")
    split = Split(rows, target, audited)
    guess = min(max(1, math.ceil(rows * target)), rows)
    return smallest(lambda above: split.certified(above, 0, alpha), 1, rows, guess)


class Split(Struct, frozen=True):
    """n rows, the target rate and the audit rate: all that is fixed beforehand."""

    rows: int
    rate: Fraction
    audit_rate: Fraction

    def certified(self, above: int, below: int, alpha: float) -> bool:
        """Whether gamma + sup over the splits of P(T >= N1 + N2 / audit_rate) is at most alpha."""
        gamma = alpha / GAMMA
        allowed = safe(alpha) - gamma
        low, high = self.lowest_above(above, gamma), math.nextafter(float(self.rate), 1.0)
        if low > high:
            return True
        needed = self._needed(above, below)
        return self._supremum_at_most(allowed, low, high, needed)

    def lowest_above(self, above: int, gamma: float) -> float:
        """Lower confidence bound of d1 at level gamma."""
        if above == 0:
            return 0.0
        return float(special.betaincinv(above, self.rows - above + 1, gamma)) * (1 - MARGIN)

    def tail(self, above: int, below: int, d1: float, d2: float) -> float:
        """P(N1 + N2 / audit_rate >= above + below / audit_rate) for rates d1 and audit_rate d2."""
        return self._tail(self._needed(above, below), d1, d2)

    def _supremum_at_most(self, allowed: float, low: float, high: float, needed: Floats) -> bool:
        """Cut [low, high] until every piece is decided.

        T grows with d1 and with d2, so no split within a piece [a, b] exceeds the value at
        (b, p0 - a): an upper bound for the piece, not a point of a grid.
        """
        pieces, looked = [(low, high)], 0
        while pieces:
            a, b = pieces.pop()
            looked += 1
            if self._tail(needed, b, high - a) <= allowed:
                continue
            middle = (a + b) / 2
            if looked > MOST_PIECES or self._tail(needed, middle, high - middle) > allowed:
                return False
            pieces += [(a, middle), (middle, b)]
        return True

    def _needed(self, above: int, below: int) -> Floats:
        """For j audited qualified rows: how many above the edge reach T. In rationals."""
        most = math.ceil(below + above * self.audit_rate)
        scale, unit = self.audit_rate.denominator, self.audit_rate.numerator
        return np.array([float(above - ((j - below) * scale) // unit) for j in range(most + 1)])

    def _tail(self, needed: Floats, d1: float, d2: float) -> float:
        audited = min(1.0, float(self.audit_rate) * d2)
        known = min(1.0, d1 / (1 - audited)) if audited < 1 else 1.0
        if audited <= 0:
            return float(self._above(needed[:1], np.zeros(1), known)[0]) + LOST
        spread = 9 * math.sqrt(self.rows * audited) + 12
        first = max(0, int(self.rows * audited - spread))
        last = min(self.rows, int(self.rows * audited + spread) + 1)
        j = np.arange(first, last + 1, dtype=np.float64)
        wanted = needed[np.minimum(j, len(needed) - 1).astype(int)]
        chance = np.exp(log_binomial(j, float(self.rows), audited))
        return float(np.dot(chance, self._above(wanted, j, known))) + LOST

    def _above(self, wanted: Floats, audited: Floats, known: float) -> Floats:
        """P(Binomial(n - j, known) >= wanted), term by term."""
        left = self.rows - audited
        some = np.clip(wanted, 1, np.maximum(left, 1))
        tail: Floats = special.betainc(some, left - some + 1, known)
        return np.where(wanted <= 0, 1.0, np.where(wanted > left, 0.0, tail))


SPENT = 20  # one part in so many of alpha goes to what has to be known about the noise


def spent(alpha: float, false_positive: Rate) -> float:
    """The part of alpha that does not go to the count of labelled rows: none without false positives."""
    return alpha / SPENT if false_positive else 0.0


def labelled_rate(rate: Rate, false_positive: Rate, longest: Rate) -> Fraction:
    """The rate of candidates listed *and labelled* qualified that shows ``rate`` of them to be so.

    A list of at most a share ``longest`` that holds less than ``rate`` holds less than this.
    """
    wrong = check.as_fraction(false_positive, "false_positive")
    return (1 - wrong) * check.as_rate(rate, "rate") + wrong * check.as_rate(longest, "longest")


def edge_rank(others: int, longest: Rate, alpha: float) -> int:
    """Which of ``others`` unlabelled scores, from the best, has at most a share ``longest`` above it.

    The largest rank r with P(Binomial(others, longest) < r) <= alpha; 0 where there is none.
    """
    share, allowed = float(check.as_rate(longest, "longest")), safe(alpha)
    return smallest(lambda r: float(special.bdtr(r - 1, others, share)) > allowed, 1, others) - 1


def labelled_share(
    share: Rate, rows: int, labelled: int, false_positive: Rate, false_negative: Rate, alpha: float
) -> Fraction | None:
    """The share of those *labelled* qualified that has to be kept, so that ``share`` of the qualified is.

    ``labelled`` of ``rows`` rows are labelled qualified; ``alpha`` is spent on a lower limit of their share.
    None where all of them might be false positives.
    """
    missed = (1 - check.as_rate(share, "share")) * (1 - check.as_fraction(false_negative, "false_negative"))
    wrong = check.as_fraction(false_positive, "false_positive")
    if wrong:
        if labelled == 0:
            return None
        lowest = float(special.betaincinv(labelled, rows - labelled + 1, alpha)) * (1 - MARGIN)
        if lowest <= wrong:
            return None
        missed *= (1 - wrong / Fraction(lowest)) / (1 - wrong)
    return 1 - Fraction(math.nextafter(float(missed), 0.0))
