"""Precision: the share of a list that is qualified [theory: precision]. Numbers only.

``passing`` tests lists fixed beforehand one after another and says which are certified to be good
enough. ``false_share_rank`` is another promise under another name: the
average false share of one pool's list by conformal selection (Jin and Candès 2023).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats, Ints, Mask, special
from surelist.bounds._tails import safe
from surelist.bounds.counts import Rate


def chances(listed: Ints, qualified: Ints, share: Rate) -> Floats:
    """P(Binomial(listed, share) >= qualified) of each list; 1 where nobody on it is qualified, or more
    than all."""
    q = math.nextafter(float(check.as_rate(share, "share")), 1.0)
    some = np.maximum(qualified, 1)
    possible = (qualified > 0) & (qualified <= listed)
    return np.where(possible, special.betainc(some, listed - some + 1, q), 1.0)


def passing(chances: Floats, levels: Floats) -> Mask:
    """Which lists pass, of a circle fixed beforehand; ``levels`` are parts of alpha, the first above 0.

    A list that passes hands its level on to the next, the last to the first; one that does not pass keeps
    it. With the whole alpha on the first list this is a fixed sequence, a walk that ends where a list fails.
    The first false list to pass has a level made of the parts since the false list before it, and those
    together are at most alpha.
    """
    parts = list(pairwise([*np.flatnonzero(levels).tolist(), len(levels)]))
    passed = np.zeros(len(levels), dtype=np.bool_)
    count = -1
    while count < (count := int(np.count_nonzero(passed))) < len(passed):
        level = float(levels[np.flatnonzero(~passed)[-1] + 1 :].sum())
        for begin, end in parts:
            level += float(levels[begin])
            here = passed[begin:end] | (chances[begin:end] <= safe(level))
            passed[begin : end if here.all() else begin + int(np.argmin(here))] = True
            level *= bool(here.all())
    return passed


def false_share_rank(false_above: Ints, rows: int, allowed: Rate) -> int:
    """How many of a pool's m best are listed so that the average false share is at most ``allowed``.

    ``false_above[r-1]``: calibration rows that are not qualified and score at least the pool's r-th
    best. p = (1 + that) / (rows + 1), Benjamini-Hochberg over the m candidates, in integers:
    the largest r with (1 + false_above) m <= allowed r (rows + 1). Calibration rows and pool are
    exchangeable; the average is over both.
    """
    level, pool = check.as_rate(allowed, "allowed"), len(false_above)
    rank = np.arange(1, pool + 1)
    # in floats first: only candidates near the line need exact arithmetic
    near = 1.0 * false_above * pool <= float(level) * rank * (rows + 1.0) * (1 + 1e-9)
    for r in (np.flatnonzero(near)[::-1] + 1).tolist():
        if Fraction((1 + int(false_above[r - 1])) * pool) <= level * r * (rows + 1):
            return int(r)
    return 0
