"""Precision: the share of a list that is qualified [theory: precision]. Numbers only.

``passed_steps`` walks down a sequence of lists fixed beforehand and says how many of them in a row
are certified to be good enough. ``false_share_rank`` is another promise under another name: the
average false share of one pool's list by conformal selection (Jin and Candès 2023).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._scipy import special
from surelist.bounds._tails import safe
from surelist.bounds.counts import Rate

Ints = NDArray[np.int64]


def passed_steps(listed: Ints, qualified: Ints, share: Rate, alpha: float) -> int:
    """How many lists, from the first on, pass P(Binomial(listed, share) >= qualified) <= alpha.

    The first list of the sequence whose true share is below ``share`` does not depend on the labelled
    rows, and a false answer has to pass its test: probability at most alpha. No union bound, and no
    score that is monotone; but the order of the lists and the first one are fixed beforehand.
    """
    q = math.nextafter(float(check.as_rate(share, "share")), 1.0)
    allowed = safe(check.as_alpha(alpha))
    some = np.maximum(qualified, 1)
    tails = special.betainc(some, listed - some + 1, q)
    passed = (qualified > 0) & (tails <= allowed)
    return len(passed) if passed.all() else int(np.argmin(passed))


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
