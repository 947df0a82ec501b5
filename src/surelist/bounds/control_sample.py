"""Control sample: which relevant items of a random sample may be dropped for a recall in a collection.

N items, R of them relevant (unknown), n drawn at random, n+ of those relevant. The threshold is the
(d+1)-th smallest score among the sampled relevant items, d = d(n+), and the list is everyone at or above it
*and* the sample. With u = floor((1-r) R) the recall fails iff the B = u+1+d lowest relevant items hold
at most d sampled ones [theory: collection-recall]:

    P(fail | n+, R) = P(Hyp(R, B, n+) <= d),  0 where B > R.

d(n+) is at first the largest drop whose failure probability at the plug-in R = round(n+ N / n) is at most a,
and a is the largest value such that the chance of a failure, summed over n+, is at most alpha for *every* R
in 0..N. Where everyone at the plug-in R could be missed without harm the plug-in says nothing (a hole):
there, and for collections too large to go through every R, the drop is that of the binomial rule.

One a for all leaves most R far below alpha, since drops are whole numbers. So each drop is then allowed from
the smallest n+ on for which the level still holds at every R. Drops never fall as n+ grows, and never exceed
it; so the chance of a failure rises with R while u stays the same, and only the last R of each u is looked
at. It falls as u grows: of large collections many u are looked at together, the first with the last R.

A sample with ``looks`` goes on only where all of them are passed, the chance of which depends on n+ alone:
P(n+ | R) is multiplied by it, and the sum is at most alpha times the chance that the sample goes on at all,
for every R [theory: collection-recall-block]. That chance rises with R while u stays the same, so what is
allowed is that of the first R of those looked at together; of few R, as long as it is not certain.

``known`` qualified rows are on the list for sure beside the N, which are those that were not labelled before,
or those of a block above which everyone is listed: u = floor((1-r) (R + known)). A drop of all n+ ends the
list above the N items.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats, Ints, Mask
from surelist.bounds._tails import quick_log_hypergeometric
from surelist.bounds.collection_lists import Look, allowed_hits, chance_of, chances_to_go_on, may_miss
from surelist.bounds.counts import critical_count

MOST_WORK = 3e8  # pairs (n+, R) gone through; beyond, the binomial rule
TABLE = 10  # work that one number of a table of n+ and drops counts for: it takes room
MARGIN = 1e-7  # of alpha: more than the recursion can lose
NEAR = 7.0  # standard deviations of n+ gone through: what lies beyond is far below the margin
NOMINAL, STEPS = 400, 600  # a is solved in steps of alpha / 400, up to 1.5 alpha
SURE = 1 - 1e-9  # no nominal level reaches 1, which what cannot be dropped has
FIRST = 420  # the step tried first: a little more than is usually the answer
CHUNK = 4096  # numbers of relevant items gone through side by side
STRIDE = 32  # numbers of relevant items in the sample gone through side by side
FINE, COARSER = 4000, 1500  # so many u one by one; those beyond in cells that grow by 1/1500
UNSURE = 16  # times as many cells as qualified ones drawn, where a sample may not go on
NO_DROP = -1  # not even the lowest sampled relevant item certifies


class ControlRule(Struct, frozen=True):
    """``drops[n+]`` items may be dropped of n+ relevant ones in the sample; -1: not certifiable.

    ``level`` is the largest chance of a failure over every R (of a sample that went on), None where it was
    not gone through (the binomial rule: whatever n+ and R are, it fails with probability alpha at most).
    """

    drops: tuple[int, ...]
    level: float | None

    @property
    def needed(self) -> int | None:
        """The fewest relevant sample items that certify anything."""
        return next((count for count, drop in enumerate(self.drops) if drop >= 0), None)


@lru_cache(maxsize=64)
def control_rule(
    size: int, drawn: int, recall: Fraction, alpha: float, known: int = 0, hits: int | None = None,
    looks: tuple[Look, ...] = (),
) -> ControlRule:  # fmt: skip
    """The rule for ``drawn`` items out of ``size``; see the module for the proof.

    ``hits``: only the drop of so many is asked for, which none above it changes.
    """
    if drawn == size:  # nobody is missed, wherever the list ends
        return ControlRule(tuple(range(drawn + 1)), 0.0)
    binomial = binomial_drops(drawn, recall, alpha)
    if drawn * max(window(size, drawn), TABLE * _width(drawn, binomial)) > MOST_WORK:
        return ControlRule(tuple(binomial.tolist()), None)
    plug_in = _plug_in(size, drawn, recall, binomial)
    going = chances_to_go_on(drawn, looks) if looks else None

    def drops_at(step: int) -> Ints:
        drops = _drops_at(*plug_in, binomial, min(alpha * step / NOMINAL, SURE)) if step else binomial
        return np.maximum.accumulate(drops)

    def levels(step: int, cells: Ints) -> Floats:
        return _levels(size, drawn, drops_at(step), cells[0], cells[1], going)

    sample = _Sample(size, drawn, recall, alpha * (1 - MARGIN), going)
    drops = drops_at(_solve(levels, *sample.cells(0)))
    return sample.used_up(drops, known, drawn if hits is None else hits)


def block_drop(size: int, drawn: int, recall: Fraction, level: Fraction, kept: int, hits: int) -> int:
    """How many of ``hits`` qualified ones among ``drawn`` of a block of ``size`` may be dropped, where
    ``kept`` others are listed for sure [theory: collection-recall-block]; -1: not certifiable.

    Where it is too large to go through every R: the drops that hold whatever R is.
    """
    if drawn and (rule := control_rule(size, drawn, recall, float(level), kept, hits)).level is not None:
        return rule.drops[hits]
    return min(hits, allowed_hits(size, may_miss(recall, kept + hits), drawn, level))


def _last_of_each(size: int, recall: Fraction, known: int) -> Ints:
    """The largest R with each u(R), up to N."""
    missable = _missable(np.arange(known, known + size + 2), recall)
    missable[-1] += 1
    return np.flatnonzero(np.diff(missable))


def _cells(size: int, recall: Fraction, known: int) -> Ints:
    """Rows R and u that bound the chance of a failure at every R: of many u next to each other, the first,
    with the last R of them all."""
    last = _last_of_each(size, recall, known)
    steps = np.arange(1, 1 + max(0.0, COARSER * math.log(max(1, len(last)) / FINE)))
    wide = (FINE * np.exp(steps / COARSER)).astype(np.int64)
    begins = np.concatenate([np.arange(min(FINE, len(last))), wide[wide < len(last)]])
    ends = np.append(begins[1:], len(last)) - 1
    return np.stack([last[ends], _missable(last[begins] + known, recall)])


def _solve(levels: Callable[[int, Ints], Floats], cells: Ints, allowed: Floats) -> int:
    """The largest step of a that keeps the level allowed for each of these R and u.

    A smaller a drops no more, so no R fails more often: what kept the level once keeps it below, and only
    the R that did not are gone through again.
    """
    low, high, middle = 0, STEPS + 1, FIRST
    while high - low > 1:
        used = levels(middle, cells) / allowed
        worst = float(used.max(initial=0.0))
        if worst <= 1:
            low = middle
        else:
            cells, allowed, high = cells[:, used > 1], allowed[used > 1], middle
        guess = math.floor(middle / worst) if worst > 0 else high  # nearly linear in a
        middle = min(max(guess, low + 1), high - 1)
    return low


class _Sample(Struct, frozen=True):
    """A sample that may fail with probability ``level``, whose drops may leave some of it unused."""

    size: int
    drawn: int
    recall: Fraction
    level: float
    going: Floats | None  # the chance to go on at each n+; None: it always does

    def cells(self, known: int) -> tuple[Ints, Floats]:
        """R and u to look at, and what is allowed there: less where the sample may not go on."""
        cells = _cells(self.size, self.recall, known)
        if self.going is None:
            return cells, np.full(cells.shape[1], self.level)
        unsure = int(np.count_nonzero(self.going < 1))
        reach = min(self.size, (unsure + NEAR * math.sqrt(unsure) + 20) * self.size / self.drawn)
        step = max(1, int(self.size / (UNSURE * self.drawn)))
        relevant = np.union1d(cells[0], np.arange(step - 1, reach, step, dtype=np.int64))
        chance = chance_of(self.size, self.drawn, self.going, np.append(0, relevant[:-1] + 1))
        return np.stack([relevant, cells[1][np.searchsorted(cells[0], relevant)]]), self.level * chance

    def used_up(self, drops: Ints, known: int, largest: int) -> ControlRule:
        """Each drop up to the largest allowed from the smallest n+ on that keeps the level at every R."""
        (relevant, missable), allowed = self.cells(known)
        level = _levels(self.size, self.drawn, drops, relevant, missable, self.going)
        for drop in range(largest + 1):
            least = max(drop, int(np.argmax(drops >= drop - 1)))
            most = int(np.argmax(drops >= drop)) if drops[-1] >= drop else self.drawn + 1
            while most > least:
                counts = np.arange(most - 1, max(least, most - STRIDE) - 1, -1)
                near = self._near(relevant, counts)
                gains = self._gains(counts[:, None], relevant[near], missable[near] + drop, drop)
                more = level[near] + np.cumsum(gains, axis=0)
                holds = (more <= allowed[near]).all(axis=1)
                fits = len(counts) if holds.all() else int(np.argmin(holds))
                if fits:
                    level[near], drops[counts[:fits]] = more[fits - 1], drop
                    most -= fits
                if fits < len(counts):
                    break
            if most > self.drawn:
                break
        return ControlRule(tuple(drops.tolist()), float(level.max()))

    def _near(self, relevant: Ints, counts: Ints) -> slice:
        """The R at which these n+ are not too unlikely to matter."""
        share = relevant / self.size
        reach = NEAR * np.sqrt(self.drawn * share * (1 - share) * (1 - self.drawn / self.size)) + 20
        inside = (self.drawn * share - reach <= counts[0]) & (self.drawn * share + reach >= counts[-1])
        at = np.flatnonzero(inside)
        return slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(0, 0)

    def _gains(self, count: Ints, relevant: Ints, marked: Ints, drop: int) -> Floats:
        """P(n+ | R) times what the failure probability gains from one drop more, and the chance to go on.

        Among the u+d lowest, which are ``marked``, exactly d were drawn, and the next one was not.
        """
        others, inside = relevant - marked, (np.minimum(marked, relevant), np.minimum(count, relevant))
        log = quick_log_hypergeometric(count, self.size, relevant, self.drawn)
        log = log + quick_log_hypergeometric(drop, relevant, *inside)
        left = 1 - (count - drop) / np.maximum(others, 1)
        gains = np.where(others > 0, np.exp(log) * np.clip(left, 0, 1), 0.0)
        return gains if self.going is None else gains * self.going[count]


def binomial_drops(drawn: int, recall: Fraction, alpha: float) -> Ints:
    """Section 12's drops: max{d : P(Bin(n+, 1-r) <= d) <= alpha}, -1 where there is none."""
    kept = [critical_count(count, recall, alpha) for count in range(1, drawn + 1)]
    drops = [NO_DROP] + [count - keep for count, keep in enumerate(kept, start=1)]
    return np.maximum(np.asarray(drops, dtype=np.int64), NO_DROP)


def _missable(relevant: Ints, recall: Fraction) -> Ints:
    """u(R) = floor((1-r) R), in integers."""
    r = 1 - recall
    return relevant * r.numerator // r.denominator


def _plug_in(size: int, drawn: int, recall: Fraction, around: Ints) -> tuple[Floats, Mask]:
    """P(fail) at the plug-in R for drops 0, 1, ... past the binomial ones; and where the hole is.

    pvalues[n+, i] belongs to the drop i; entries beyond what can be dropped are 1.
    """
    count = np.arange(drawn + 1)
    relevant = np.clip((2 * count * size + drawn) // (2 * drawn), count, size - drawn + count)
    missable = _missable(relevant, recall)
    hole = relevant - count <= missable
    pvalues = np.ones((drawn + 1, min(_width(drawn, around), drawn) + 1))
    marked = np.minimum(missable + 1, relevant)
    term = np.exp(quick_log_hypergeometric(0, relevant, marked, count))
    tail = term.copy()
    for drop in range(pvalues.shape[1]):
        usable = (count > drop) & (missable + 1 + drop <= relevant) & ~hole
        pvalues[usable, drop] = tail[usable]
        tail, term = _raised(tail, term, relevant, np.minimum(missable + 1 + drop, relevant), count, drop)
    return pvalues, hole


def _width(drawn: int, around: Ints) -> int:
    """How many drops to try: all that could be better than the binomial ones."""
    return int(around.max()) + int(4 * math.sqrt(drawn)) + 8


def _drops_at(pvalues: Floats, hole: Mask, binomial: Ints, nominal: float) -> Ints:
    """The last of the first drops that all stay at or below the nominal level."""
    fails = pvalues > nominal
    first = np.where(fails.any(axis=1), fails.argmax(axis=1), fails.shape[1])
    drops: Ints = np.where(hole, binomial, first - 1)
    drops[0] = NO_DROP
    return drops


def window(size: int, drawn: int) -> float:
    """How many values of R matter beside one n+."""
    return min(size, 2 * NEAR * size * math.sqrt(0.25 / drawn) + 60)


def _levels(
    size: int, drawn: int, drops: Ints, relevant: Ints, missable: Ints, going: Floats | None = None
) -> Floats:
    """Sum over n+ of P(n+ | R) P(fail | n+, R), and the chance to go on, for each R, of which so many may be
    missed."""
    parts = [slice(at, at + CHUNK) for at in range(0, len(relevant), CHUNK)]
    levels = (_level_part(size, drawn, drops, relevant[part], missable[part], going) for part in parts)
    return np.concatenate([np.zeros(0), *levels])


def _level_part(
    size: int, drawn: int, drops: Ints, relevant: Ints, missable: Ints, going: Floats | None
) -> Floats:
    """Every R walks its own window of n+, side by side."""
    share = relevant / size
    reach = NEAR * np.sqrt(drawn * share * (1 - share) * (1 - drawn / size)) + 20
    first = np.maximum(np.ceil(drawn * share - reach), np.maximum(0, drawn + relevant - size))
    last = np.minimum(drawn * share + reach, np.minimum(drawn, relevant))
    walk = _Walk(size, drawn, relevant, missable, drops, first.astype(np.int64))
    total = np.zeros(len(relevant))
    for _ in range(int((last - first).max()) + 1):
        part = np.where(walk.count <= last, walk.law * walk.failing(), 0.0)
        total += part if going is None else part * going[walk.at]
        walk.step()
    return total


class _Walk:
    """P(n+ | R) and P(fail | n+, R) at one n+ for each R, carried to the next n+ by one term a step.

    With one relevant item more in the sample, the failure probability loses the chance that this one is among
    the B lowest while d of them were drawn before; with d and B one larger, it gains the chance that the item
    new to the lowest ones was not drawn. ``term`` is P(Hyp(R, B, n+) = d), B = u+1+d; ``tail``, of <= d.
    """

    def __init__(
        self, size: int, drawn: int, relevant: Ints, missable: Ints, drops: Ints, count: Ints
    ) -> None:
        self.size, self.drawn, self.drops = size, drawn, drops
        self.relevant, self.beyond = relevant.astype(np.float64), missable + 1.0
        self.law = np.exp(quick_log_hypergeometric(count, size, relevant, drawn))
        self.count, self.at, self.drop = count.astype(np.float64), count, drops[count].astype(np.float64)
        self.tail, self.term = np.zeros(len(relevant)), np.zeros(len(relevant))
        self._restart(np.flatnonzero(self.drop >= 0))

    def failing(self) -> Floats:
        """P(fail) now; 0 where nothing is certified, or fewer are relevant than would have to be missed."""
        fails = (self.drop >= 0) & (self.beyond + self.drop <= self.relevant)
        return np.where(fails, np.clip(self.tail, 0.0, 1.0), 0.0)

    def step(self) -> None:
        """To the next n+."""
        count, drop, left = self.count, self.drop, self.relevant - self.count
        marked = np.minimum(self.beyond + drop, self.relevant)
        outside = np.maximum(self.size - self.drawn - left + 1, 1)
        self.law *= left * (self.drawn - count) / ((count + 1) * outside)
        left = np.maximum(left, 1)
        self.tail -= self.term * (marked - drop) / left
        inside = np.maximum(left - marked + drop, 0) * (count + 1)
        self.term *= inside / (np.maximum(count + 1 - drop, 1) * left)
        self.at = np.minimum(self.at + 1, self.drawn)
        self.count, self.drop = count + 1, self.drops[self.at].astype(np.float64)
        rise = self.drop - drop
        if rise.any():
            near = (drop >= 0) & (self.term > 1e-200) & (rise == 1)
            self._raise_drop(np.flatnonzero(near))
            self._restart(np.flatnonzero((self.drop >= 0) & (rise != 0) & ~near))

    def _raise_drop(self, at: Ints) -> None:
        """From d - 1 to d for the R numbered ``at``."""
        before, relevant = self.drop[at] - 1, self.relevant[at]
        marked = np.minimum(self.beyond[at] + before, relevant)
        raised = _raised(self.tail[at], self.term[at], relevant, marked, self.count[at], before)
        self.tail[at], self.term[at] = raised

    def _restart(self, at: Ints) -> None:
        """Summed afresh for the R numbered ``at``: from d down, until nothing is added."""
        if not len(at):
            return
        relevant, count, x = self.relevant[at], self.count[at], self.drop[at]
        marked = np.minimum(self.beyond[at] + x, relevant)
        term = np.exp(quick_log_hypergeometric(x, relevant, marked, count))
        self.term[at], tail = term, term.copy()
        while ((term > 1e-18) | (term > 1e-15 * tail)).any():
            below = np.maximum(relevant - marked - count + x, 0)
            term = term * np.maximum(x, 0) * below
            term /= np.maximum(marked - x + 1, 1) * np.maximum(count - x + 1, 1)
            tail, x = tail + term, x - 1
        self.tail[at] = tail


def _raised(
    tail: Floats, term: Floats, relevant: Floats | Ints, marked: Floats | Ints, count: Floats | Ints,
    drop: Floats | int,
) -> tuple[Floats, Floats]:  # fmt: skip
    """P(Hyp(R, B+1, n+) <= d+1) and P(= d+1) from those of B and d: the new marked item is not drawn."""
    others = relevant - marked
    # what ties both together: C(R-B-1, n-d-1) / C(R-B, n-d) / (d+1)
    gain = np.where(others > 0, (count - drop) / ((drop + 1.0) * np.maximum(others, 1)), 0.0)
    return tail + term * (marked - drop) * gain, term * (marked + 1) * gain
