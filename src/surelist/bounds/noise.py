"""Labels that may be wrong, with bounds on how often [theory: noise]. Numbers only.

Of those who are not qualified at most a share ``false_positive`` is labelled qualified, of the qualified
at most ``false_negative`` not, at every score.
"""

from __future__ import annotations

import math
from fractions import Fraction

from surelist import _check as check
from surelist._scipy import special
from surelist.bounds._tails import MARGIN, safe, smallest
from surelist.bounds.counts import Rate

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
