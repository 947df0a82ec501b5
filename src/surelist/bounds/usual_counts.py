"""How many of those on one new list are qualified, by the calibration rows at its threshold [theory: usual].

Numbers in, numbers out; which policies these are true of is decided in ``promises.usual_counts``.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats
from surelist._scipy import special
from surelist.bounds import _tails as tails

POINTS = 400  # at which the chance of having been certified is averaged
NEVER = 1e-60  # a chance to be certified at and below which shares are taken for one another


class Certifiable(Struct, frozen=True):
    """A list was made only because at least ``fewest`` of ``rows`` rows are qualified; ``qualified`` are."""

    rows: int
    fewest: int
    qualified: int


def usual_count(
    listed: int, needed: int, reached: int, unqualified: int, miss: float, given: Certifiable | None = None
) -> tuple[int, int]:
    """From so many to so many of ``listed``, each side left with probability at most ``miss``.

    Of the calibration rows at or above the threshold ``reached`` are qualified, of whom ``needed`` decided
    it (fewer where scores are tied), and ``unqualified`` are not. Fisher's exact test of both lists against
    one another, turned around: a number is usual unless the test rejects it. ``given``: the list is there
    only because the rows sufficed, which they do more often where they show more than is true.
    """
    counts = np.arange(listed + 1, dtype=np.float64)
    at_most = np.cumsum(beta_binomial(counts, listed, needed, unqualified + 1))
    low = int(np.searchsorted(at_most, tails.safe(miss), side="right"))
    if given is not None:
        seen = reached / (reached + unqualified)
        low = _given_certified(low, at_most, needed, unqualified, miss, seen, given)
    if unqualified == 0:
        return low, listed
    at_least = np.cumsum(beta_binomial(counts, listed, reached + 1, unqualified)[::-1])
    return low, listed - int(np.searchsorted(at_least, tails.safe(miss), side="right"))


def _given_certified(
    low: int, at_most: Floats, needed: int, unqualified: int, miss: float, seen: float, given: Certifiable
) -> int:
    """The lower end among calibrations that certify.

    The law of the share p on the list is P(so few rows | p) / P(certified | p) in the place of the first
    alone; the share among all rows is taken to change as p does. Averaged over Beta(h + 1, L - h), which is
    the law of p at which more than h of L are reached.
    """
    listed = len(at_most) - 1
    scale = given.qualified / given.rows / seen
    least = float(special.betaincinv(given.fewest, given.rows - given.fewest + 1, NEVER)) / scale
    ranks = (np.arange(POINTS) + 0.5) / POINTS

    def not_rare(count: int) -> bool:
        share = np.maximum(special.betaincinv(count + 1, listed - count, ranks), least)
        so_few = special.betainc(needed, unqualified + 1, share)
        everyone = np.minimum(share * scale, 1.0)
        certified = special.betainc(given.fewest, given.rows - given.fewest + 1, everyone)
        more = float(np.mean(np.minimum(so_few / certified, 1.0) - so_few))
        return float(at_most[count]) + more > tails.safe(miss)

    return tails.smallest(not_rare, 0, low - 1)


def beta_binomial(counts: Floats, size: int, a: float, b: float) -> Floats:
    """P(count of ``size``), where the share itself is Beta(a, b)."""
    choose = -special.betaln(size - counts + 1, counts + 1) - np.log(size + 1)
    logs: Floats = choose + special.betaln(counts + a, size - counts + b) - special.betaln(a, b)
    return np.exp(logs)
