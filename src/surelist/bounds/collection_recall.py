"""Recall of a collection in two draws, where qualified ones are rare [theory: collection-recall-block].

The first draw counts qualified rows at the top, the second is of a block at the bottom. With R_low
qualified rows on the list for sure, a list that misses more than a share 1-r of all misses more than u =
floor((1-r)/r R_low). Of ``free`` rows of the bottom block n were drawn; met from the bottom, before the
(u+1)-th qualified row that was *not* drawn, there are at most d drawn qualified ones with probability at
most

    P(Hyp(free, u+1+d, n) <= d),   0 where free - n <= u.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from surelist.bounds._tails import safe, smallest
from surelist.bounds.collection import log_hypergeometric

COUNTING = Fraction(1, 5)  # of alpha, for the count of the first draw


def levels(alpha: Fraction, *, census: bool) -> tuple[Fraction, Fraction]:
    """Of the count at the top and of the block at the bottom: independent draws that add up to alpha."""
    counting = Fraction(0) if census else alpha * COUNTING
    return counting, (alpha - counting) / (1 - counting)


def _cdf(count: int, total: int, marked: int, drawn: int) -> float:
    """P(Hyp(total, marked, drawn) <= count)."""
    low, high = max(0, drawn + marked - total), min(count, marked, drawn)
    if high < low:
        return 0.0
    x = np.arange(low, high + 1, dtype=np.float64)
    return min(1.0, float(np.exp(log_hypergeometric(x, total, float(marked), drawn)).sum()))


def chance_missed(allowed: int, free: int, missable: int, drawn: int) -> float:
    """The chance that a cut above ``allowed`` drawn qualified rows misses more than ``missable`` others."""
    if free - drawn <= missable:
        return 0.0
    marked = min(free, missable + 1 + allowed)
    return _cdf(marked - missable - 1, free, marked, drawn)


def allowed_hits(free: int, missable: int, drawn: int, level: Fraction) -> int:
    """How many drawn qualified rows may lie below the cut; -1: nothing is certified, ``drawn``: all of
    them."""
    limit = safe(float(level))
    return smallest(lambda d: chance_missed(d, free, missable, drawn) > limit, 0, drawn) - 1


def largest_block(free: int, missable: int, drawn: int, allowed: int, level: Fraction) -> int:
    """The most free rows, up to ``free``, of which ``drawn`` certify that ``allowed`` may lie below the
    cut."""
    limit = safe(float(level))
    return smallest(lambda f: chance_missed(allowed, f, missable, drawn) > limit, drawn + 1, free) - 1


def at_least(hits: int, free: int, drawn: int, level: Fraction) -> int:
    """Qualified rows among ``free``, given ``hits`` of ``drawn``, except with probability ``level``."""
    if not hits or drawn >= free:
        return hits
    limit = safe(float(level))
    return smallest(lambda k: 1 - _cdf(hits - 1, free, k, drawn) > limit, hits, free - (drawn - hits))


def may_miss(share: Fraction, kept: int) -> int:
    """u: a list that keeps ``kept`` and misses more than its share of all misses more than this."""
    return math.floor((1 - share) / share * kept)


def most_left_out(size: int, qualified: int, drawn: int, share: Fraction, alpha: float) -> int:
    """The floor: how many of ``size`` candidates any exact rule can leave unlisted and unlabelled at best,
    with ``drawn`` labels and ``qualified`` qualified ones: C(F-n, u+1) / C(F, u+1) <= alpha."""
    missable = math.floor((1 - share) * qualified)
    most = largest_block(size, missable, min(drawn, size), 0, Fraction(alpha))
    return max(0, most - min(drawn, size))
