"""Control sample: which relevant items of a random sample may be dropped for a recall in a collection.

N items, R of them relevant (unknown), n drawn at random, n+ of those relevant. The threshold is the
(d+1)-th smallest score among the sampled relevant items, d = d(n+), and the list is everyone at or above it
*and* the sample. With u = floor((1-r) R) the recall fails iff the B = u+1+d lowest relevant items hold
at most d sampled ones [theory: collection-recall]:

    P(fail | n+, R) = P(Hyp(R, B, n+) <= d),  0 where B > R.

d(n+) is the largest drop whose failure probability at the plug-in R = round(n+ N / n) is at most a, and a is
the largest value such that the chance of a failure, summed over n+, is at most alpha for *every* R in 0..N.
Where everyone at the plug-in R could be missed without harm the plug-in says nothing (a hole): there, and
for collections too large to go through every R, the drop is that of the binomial rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from surelist.bounds.collection import _as_sample
from surelist.bounds.counts import critical_count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_WORK = 3e8  # pairs (n+, R) gone through; beyond, the binomial rule
MARGIN = 1e-7  # of alpha: more than the recursion can lose
NEAR = 7.0  # standard deviations of n+ gone through: what lies beyond is far below the margin
NOMINAL, STEPS = 400, 600  # a is solved in steps of alpha / 400, up to 1.5 alpha
NO_DROP = -1  # not even the lowest sampled relevant item certifies


@dataclass(frozen=True)
class ControlRule:
    """``drops[n+]`` items may be dropped of n+ relevant ones in the sample; -1: not certifiable.

    ``level`` is the largest chance of a failure over every R, None where it was not gone through
    (the binomial rule, whose level is at most alpha); ``nominal`` is the solved a.
    """

    drops: tuple[int, ...]
    level: float | None
    nominal: float | None

    @property
    def needed(self) -> int | None:
        """The fewest relevant sample items that certify anything."""
        return next((count for count, drop in enumerate(self.drops) if drop >= 0), None)


@lru_cache(maxsize=64)
def control_rule(size: int, drawn: int, recall: Fraction, alpha: float) -> ControlRule:
    """The rule for ``drawn`` items out of ``size``; see the module for the proof."""
    size, drawn = _as_sample(size, drawn)
    binomial = binomial_drops(drawn, recall, alpha)
    if drawn * _window(size, drawn) > MOST_WORK:
        return ControlRule(tuple(binomial.tolist()), None, None)
    pvalues, hole = _plug_in(size, drawn, recall, binomial)
    everyone = np.arange(size + 1)
    jumps = np.flatnonzero(np.diff(_missable(everyone, recall)))  # the level falls where u(R) rises
    watched, top = np.unique(np.append(jumps[:60], jumps[:: max(1, len(jumps) // 40)])), STEPS
    while True:  # solve on some R, go through every R, watch the worst of them too
        top = _solve(size, drawn, recall, alpha, (pvalues, hole, binomial), watched, top)
        nominal = alpha * top / NOMINAL if top else None
        drops = binomial if nominal is None else _drops_at(pvalues, hole, binomial, nominal)
        levels = _levels(size, drawn, recall, drops, everyone)
        if levels.max() <= alpha * (1 - MARGIN):
            return ControlRule(tuple(drops.tolist()), float(levels.max()), nominal)
        if nominal is None:  # the binomial rule is within alpha by its proof; never seen
            return ControlRule((NO_DROP,) * (drawn + 1), 0.0, None)
        watched = np.union1d(watched, np.argsort(levels)[-20:])


def _solve(
    size: int,
    drawn: int,
    recall: Fraction,
    alpha: float,
    rule: tuple[Floats, NDArray[np.bool_], Ints],
    watched: Ints,
    top: int,
) -> int:
    """The largest step of a, at most ``top``, that keeps the level for the R that are watched; 0 if none."""
    low, high = 0, top + 1
    middle = min(top, NOMINAL)
    while high - low > 1:
        drops = _drops_at(*rule, alpha * middle / NOMINAL)
        level = float(_levels(size, drawn, recall, drops, watched).max()) if len(watched) else 0.0
        low, high = (middle, high) if level <= alpha * (1 - MARGIN) else (low, middle)
        guess = round(middle * alpha / level) if level > 0 else high  # the level is nearly linear in a
        middle = min(max(guess, low + 1), high - 1) if high - low > 4 else (low + high) // 2
    return low


def binomial_drops(drawn: int, recall: Fraction, alpha: float) -> Ints:
    """Section 12's drops: max{d : P(Bin(n+, 1-r) <= d) <= alpha}, -1 where there is none."""
    kept = [critical_count(count, recall, alpha) for count in range(1, drawn + 1)]
    drops = [NO_DROP] + [count - keep for count, keep in enumerate(kept, start=1)]
    return np.maximum(np.asarray(drops, dtype=np.int64), NO_DROP)


def control_level(size: int, drawn: int, recall: Fraction, drops: tuple[int, ...]) -> float:
    """The largest chance of a failure over every R in 0..N."""
    return float(_levels(size, drawn, recall, np.asarray(drops), np.arange(size + 1)).max())


def _missable(relevant: Ints, recall: Fraction) -> Ints:
    """u(R) = floor((1-r) R), in integers."""
    r = 1 - recall
    return relevant * r.numerator // r.denominator


def _plug_in(size: int, drawn: int, recall: Fraction, around: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """P(fail) at the plug-in R for drops 0, 1, ... past the binomial ones; and where the hole is.

    pvalues[n+, i] belongs to the drop i; entries beyond what can be dropped are 1.
    """
    count = np.arange(drawn + 1)
    relevant = np.clip((2 * count * size + drawn) // (2 * drawn), count, size - drawn + count)
    missable = _missable(relevant, recall)
    hole = relevant - count <= missable
    width = int(around.max()) + int(4 * math.sqrt(drawn)) + 8
    pvalues = np.ones((drawn + 1, min(width, drawn) + 1))
    factorial = _log_factorials(size)
    tail = _tail(factorial, relevant, missable + 1, count, 0)
    for drop in range(pvalues.shape[1]):
        usable = (count > drop) & (missable + 1 + drop <= relevant) & ~hole
        pvalues[usable, drop] = tail[usable]
        tail = _next_drop(factorial, tail, relevant, missable + 1 + drop, count, drop)
    return pvalues, hole


def _drops_at(pvalues: Floats, hole: NDArray[np.bool_], binomial: Ints, nominal: float) -> Ints:
    """The last of the first drops that all stay at or below the nominal level."""
    fails = pvalues > nominal
    first = np.where(fails.any(axis=1), fails.argmax(axis=1), fails.shape[1])
    found: Ints = np.where(hole, binomial, first - 1)
    found[0] = NO_DROP
    return found


def _window(size: int, drawn: int) -> float:
    """How many values of R matter beside one n+."""
    return min(size, 2 * NEAR * size * math.sqrt(0.25 / drawn) + 60)


def _levels(size: int, drawn: int, recall: Fraction, drops: Ints, relevant: Ints) -> Floats:
    """Sum over n+ of P(n+ | R) P(fail | n+, R) for each R: one walk over n+, all R side by side.

    P(fail) follows n+ and d by one term a step: another draw is marked with d marked before it,
    or one more marked item is not drawn. R enters the walk at its own window of n+.
    """
    factorial, missable = _log_factorials(size), _missable(relevant, recall)
    mean, share = drawn * relevant / size, relevant / size
    reach = NEAR * np.sqrt(mean * (1 - share) * (1 - drawn / size)) + 20
    first = np.maximum(mean - reach, np.maximum(0, drawn + relevant - size))
    last = np.minimum(mean + reach, np.minimum(drawn, relevant))
    total, tail = np.zeros(len(relevant)), np.zeros(len(relevant))
    before, entered = NO_DROP, 0
    for count in range(1, drawn + 1):
        drop, low = int(drops[count]), int(np.searchsorted(last, count))
        high = int(np.searchsorted(first, count, side="right"))
        if drop < 0 or low >= high:
            before = NO_DROP
            continue
        start = max(low, entered) if before >= 0 and 0 <= drop - before <= 1 else low
        if low < start:
            old = slice(low, start)
            tail[old] = _step(factorial, tail[old], relevant[old], missable[old] + 1, count, before, drop)
        if start < high:
            new = slice(start, high)
            tail[new] = _tail(factorial, relevant[new], missable[new] + 1 + drop, count, drop)
        here, before, entered = slice(low, high), drop, high
        law = np.exp(_log_pmf(factorial, count, size, relevant[here], drawn))
        fails = missable[here] + 1 + drop <= relevant[here]
        total[here] += law * np.where(fails, np.clip(tail[here], 0, 1), 0.0)
    return total


def _step(
    factorial: Floats, tail: Floats, relevant: Ints, beyond: Ints, count: int, before: int, drop: int
) -> Floats:
    """P(fail) at n+ = count and d = drop from that at count - 1 and d = before."""
    marked = np.minimum(beyond + before, relevant)
    drawn = _log_pmf(factorial, before, relevant, marked, count - 1)
    tail = tail - np.exp(drawn) * (marked - before) / np.maximum(relevant - count + 1, 1)
    return tail if drop == before else _next_drop(factorial, tail, relevant, marked, count, before)


def _next_drop(
    factorial: Floats, tail: Floats, relevant: Ints, marked: Ints, count: Ints | int, drop: int
) -> Floats:
    """P(Hyp(R, B+1, n) <= d+1) from P(Hyp(R, B, n) <= d): the new marked item is not drawn."""
    others = relevant - marked
    ok = others > 0
    extra = np.exp(_log_pmf(factorial, drop + 1, relevant, np.minimum(marked, relevant), count))
    share = (others - (count - drop - 1)) / np.where(ok, others, 1)
    found: Floats = tail + np.where(ok, extra * share, 0.0)
    return found


def _tail(factorial: Floats, relevant: Ints, marked: Ints, count: Ints | int, drop: int) -> Floats:
    """P(Hyp(R, B, n) <= d), summed."""
    inside, counts = np.minimum(marked, relevant), np.broadcast_to(count, len(relevant))
    x = np.arange(drop + 1)
    terms = _log_pmf(factorial, x, relevant[:, None], inside[:, None], counts[:, None])
    found: Floats = np.exp(terms).sum(axis=1)
    return found


def _log_pmf(factorial: Floats, x: Ints | int, total: Ints | int, marked: Ints, drawn: Ints | int) -> Floats:
    """ln P(Hyp(total, marked, drawn) = x) from a table of log factorials; -inf where impossible."""
    rest, others = total - marked, drawn - x
    possible = (x >= 0) & (x <= marked) & (others >= 0) & (others <= rest)
    b = np.where(possible, others, 0)
    log = (
        factorial[marked]
        - factorial[x]
        - factorial[np.where(possible, marked - x, 0)]
        + factorial[rest]
        - factorial[b]
        - factorial[np.where(possible, rest - b, 0)]
        - factorial[total]
        + factorial[drawn]
        + factorial[np.maximum(total - drawn, 0)]
    )
    found: Floats = np.where(possible, log, -np.inf)
    return found


@lru_cache(maxsize=4)
def _log_factorials(size: int) -> Floats:
    found: Floats = special.gammaln(np.arange(size + 2, dtype=np.float64) + 1)
    return found
