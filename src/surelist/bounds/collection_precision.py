"""Precision of a collection from a label budget: which prefixes of its ranking pass [theory:
collection-precision].

Of a prefix with F *free* rows, those nobody had labelled when the sample was drawn, n were drawn and y of
them are not qualified (or have no label); k rows of the collection were known to be qualified before. The
claim is that at most w = floor((1-q)(F+k)) free rows of the prefix are not qualified, and its p-value

    P(Hyp(F, w+1, n) <= y),   0 where w >= F.

Prefixes are tested from the shortest on, in the order fixed before the labels (the fallback procedure):
every step has a weight, a share of alpha; a step may use the weights since the last one that failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from surelist._dataclasses import dataclass
from surelist.bounds.collection import block_tail, log_hypergeometric

NEAR = 1e-7  # a p-value this close to its level, relatively, is decided in whole numbers


@dataclass(frozen=True)
class Prefix:
    """A prefix of the ranking: free rows, how many of them were drawn, how many of those did not turn out
    qualified."""

    free: int
    drawn: int
    failed: int


def may_fail(share: Fraction, free: int, known: int) -> int:
    """w: so many free rows of a prefix may be not qualified for the list to hold its share."""
    return math.floor((1 - share) * (free + known))


def passes(prefix: Prefix, share: Fraction, known: int, level: Fraction) -> bool:
    """Whether the p-value of a prefix is at most its level, exactly."""
    marked = may_fail(share, prefix.free, known) + 1
    if marked > prefix.free:
        return True
    last = min(prefix.failed, marked, prefix.drawn)
    x = np.arange(max(0, prefix.drawn + marked - prefix.free), last + 1, dtype=np.float64)
    p = float(np.exp(log_hypergeometric(x, prefix.free, float(marked), prefix.drawn)).sum())
    if abs(p - float(level)) > NEAR * float(level):
        return p <= float(level)
    return 1 - block_tail(prefix.free, marked, prefix.drawn, prefix.failed + 1) <= level


def last_passing(
    prefixes: Sequence[Prefix], weights: Sequence[Fraction], share: Fraction, known: int
) -> tuple[int, Fraction]:
    """The last prefix that passes (-1: none) and the level it passed at; the weights add up to alpha at
    most."""
    level, best = Fraction(0), (-1, Fraction(0))
    for number, (prefix, weight) in enumerate(zip(prefixes, weights, strict=True)):
        level += weight
        if level > 0 and passes(prefix, share, known, level):
            best = number, level
        else:
            level = Fraction(0)
    return best


def most_pads(share: Fraction, dropped: int, found: int) -> int:
    """How many unseen rows, whatever they are, may join a list that ``dropped`` rows which its test counted
    as its own and not qualified have left, and ``found`` qualified ones that no test counted have
    joined."""
    return math.floor((share * dropped + (1 - share) * found) / share)
