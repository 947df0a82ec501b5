"""Lists of a collection from a label budget: which prefixes are precise enough, how far up from the bottom
qualified ones may be missed.

*Precision* [theory: collection-precision]. Of a prefix with F *free* rows, those nobody had labelled when the
sample was drawn, n were drawn and y of them are not qualified (or have no label); k rows of the collection
were known to be qualified before. The claim is that at most w = floor((1-q)(F+k)) free rows of the prefix are
not qualified, and its p-value

    P(Hyp(F, w+1, n) <= y),   0 where w >= F.

Prefixes are tested from the shortest on, in the order fixed before the labels (the fallback procedure):
every step has a weight, a share of alpha; a step may use the weights since the last one that failed.

*Recall in two draws*, where qualified ones are rare [theory: collection-recall-block]. The first draw counts
qualified rows at the top, the second is of a block at the bottom. With R_low qualified rows on the list for
sure, a list that misses more than a share 1-r of all misses more than u = floor((1-r)/r R_low). Of ``free``
rows of the bottom block n were drawn; met from the bottom, before the (u+1)-th qualified row that was *not*
drawn, there are at most d drawn qualified ones with probability at most

    P(Hyp(free, u+1+d, n) <= d),   0 where free - n <= u.

*A sample in parts* [theory: collection-recall-block]. A look (rows, least): after so many rows the sample
goes on if at least so many of them are qualified. Given n+, the qualified rows of the whole sample are a
uniform subset in the order of drawing as well as in the collection: the chance to go on depends on n+ alone,
and where they lie does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats, Ints
from surelist.bounds import _tails as tails
from surelist.bounds._tails import MARGIN, hypergeometric_cdf, safe, smallest
from surelist.bounds.collection import block_tail

NEAR = 1e-7  # a p-value this close to its level, relatively, is decided in whole numbers
COUNTING = Fraction(1, 5)  # of alpha, for the count of the first draw


class Prefix(Struct, frozen=True):
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
    p = hypergeometric_cdf(prefix.failed, prefix.free, marked, prefix.drawn)
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


def levels(alpha: Fraction, *, census: bool) -> tuple[Fraction, Fraction]:
    """Of the count at the top and of the block at the bottom: independent draws that add up to alpha."""
    counting = Fraction(0) if census else alpha * COUNTING
    return counting, (alpha - counting) / (1 - counting)


def chance_missed(allowed: int, free: int, missable: int, drawn: int) -> float:
    """The chance that a cut above ``allowed`` drawn qualified rows misses more than ``missable`` others."""
    if free - drawn <= missable:
        return 0.0
    marked = min(free, missable + 1 + allowed)
    return hypergeometric_cdf(marked - missable - 1, free, marked, drawn)


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
    limit, others = safe(float(level)), drawn - hits
    # so many hits or more, by so few others or fewer: no difference from 1 where both are tiny
    return smallest(lambda k: hypergeometric_cdf(others, free, free - k, drawn) > limit, hits, free - others)


class Sampled(NamedTuple):
    """A simple random sample of a set: how many there are, how many were drawn, how many of those are
    marked."""

    size: int
    drawn: int
    hits: int


def kept_share(kept: Sampled, left: Sampled, alpha: Fraction) -> Fraction:
    """Of all marked rows, the share that is among those kept, except with probability alpha
    [theory: validation]."""
    counting, level = levels(alpha, census=kept.drawn == kept.size)
    sure = at_least(kept.hits, kept.size, kept.drawn, counting)
    missed = left.size - at_least(left.drawn - left.hits, left.size, left.drawn, level)
    return Fraction(sure, max(1, sure + missed))


def may_miss(share: Fraction, kept: int) -> int:
    """u: a list that keeps ``kept`` and misses more than its share of all misses more than this."""
    return math.floor((1 - share) / share * kept)


def shortest_list(size: int, qualified: int, drawn: int, share: Fraction, alpha: Fraction) -> int:
    """The floor: a rule that ends its list at a score, and is wrong with probability at most alpha, is sure
    of no shorter one with ``drawn`` labels where ``qualified`` of ``size`` candidates are.

    It leaves out F rows at the bottom, having seen none qualified there. If u + 1 more of them were, with
    u = floor((1-r)/r R), it would keep less than its share, and still see none of them with probability
    C(F-n, u+1) / C(F, u+1).
    """
    level = alpha * (1 + 2 * Fraction(MARGIN))  # what is equal to alpha counts as possible here
    block = largest_block(size, may_miss(share, qualified), min(drawn, size), 0, level)
    return max(size - block, math.ceil(share * qualified))


def fewest_qualified(size: int, drawn: int, share: Fraction, alpha: Fraction, longest: int) -> int | None:
    """How many have to be qualified for a list of at most ``longest`` by that floor; None: no number does."""
    most = min(size, math.floor(longest / share))  # more of them make the list longer
    least = smallest(lambda count: shortest_list(size, count, drawn, share, alpha) <= longest, 0, most)
    return None if least > most else least


Look = tuple[int, int]
SURELY = 1e-15  # a chance not to go on that is below this is none
TINY = 1e-12  # a chance to go on that counts for this is smaller: far below every margin


def chances_to_go_on(drawn: int, looks: tuple[Look, ...]) -> Floats:
    """The chance that every look is passed, for n+ = 0 ... drawn."""
    count, stopped = np.arange(drawn + 1.0), np.zeros(drawn + 1)
    most = max((least for _, least in looks), default=0)
    few, before = np.arange(float(most)), 0  # numbers of qualified ones with which a look may fail
    ways = np.where(few == 0, 0.0, -np.inf)  # logarithms: of drawing them so far, every look passed
    for rows, least in looks:
        more = tails.log_choose(float(rows - before), few[:, None] - few)
        ways = np.logaddexp.reduce(ways + more, axis=1) if most else ways
        for hits in range(least):
            log = ways[hits] + tails.log_choose(float(drawn - rows), count - hits)
            log -= tails.log_choose(float(drawn), count)
            stopped += np.exp(log)
        ways[:least], before = -np.inf, rows
    return np.where(count < most, 0.0, np.where(stopped < SURELY, 1.0, np.clip(1 - stopped, 0.0, 1.0)))


def chance_of(size: int, drawn: int, going: Floats, relevant: Ints) -> Floats:
    """The chance to go on for each number of relevant items in the collection, ``going`` being that of n+."""
    unsure = np.arange(int(np.count_nonzero(going < 1)))
    stopped = np.zeros(len(relevant))
    for at in range(0, len(relevant), 4096):
        log = tails.quick_log_hypergeometric(unsure, size, relevant[at : at + 4096, None], drawn)
        stopped[at : at + 4096] = np.exp(log) @ (1 - going[unsure])
    return np.maximum(1 - stopped, TINY)
