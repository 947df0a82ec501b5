"""What a recall of a collection plans: when its sample is looked at, which blocks two draws take.

Nothing here decides a level: how often a sample is looked at depends on no label, and any block may be chosen
from labels that are known [theory: collection-recall-block]. It decides how short the list comes out.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from surelist._arrays import special
from surelist.bounds import collection_lists as lists
from surelist.bounds._tails import quick_log_hypergeometric, smallest
from surelist.bounds.collection_lists import Look
from surelist.bounds.control_sample import MOST_WORK, window
from surelist.lifecycle.block_design import binomial_needed
from surelist.lifecycle.labelling_design import Floats
from surelist.lifecycle.labelling_ranked import Curve

PARTS = (0.2, 0.5)  # of a sample: when it is looked at
CHANCE = 0.1  # to certify anything, below which it does not go on
RATES = 300  # numbers of qualified ones tried for how many a sample needs
HITS = np.arange(30)  # that may be allowed below the cut
QUANTILES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHARES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # of the labels left, for the first draw


class Tail(Struct, frozen=True):
    """Qualified rows below each rank, about; with a little for what a tail without a hit may hide."""

    ranks: Floats
    below: Floats

    @classmethod
    def of(cls, curve: Curve) -> Tail:
        steps, everyone = np.diff(curve.held), float(curve.held[-1])
        empty = np.flatnonzero(steps < 1e-9)
        start = int(curve.edges[empty[0]]) if len(empty) else curve.size
        seen = max(1, int((curve.ranks >= start).sum()))
        hidden = min(0.3 * (curve.size - start) / seen, 0.02 * max(everyone, 1.0)) if len(empty) else 0.0
        ranks = np.linspace(0, curve.size, 2001)
        share = (curve.size - np.maximum(ranks, start)) / max(1, curve.size - start)
        return cls(ranks, everyone - curve.down_to(ranks) + hidden * share)

    def cut(self, wanted: Floats) -> Floats:
        """The rank below which so many qualified ones lie."""
        return np.asarray(np.interp(-wanted, -self.below, self.ranks))


def looks_at(size: int, drawn: int, share: Fraction, alpha: float) -> tuple[Look, ...]:
    """When a sample of everyone is looked at, and how many qualified ones it goes on with.

    Fewer than this, and its chance to certify anything is small, given what a rate may be after so many.
    """
    needed, looks = about_needed(size, drawn, share, alpha), []
    for part in PARTS:
        rows = int(part * drawn)
        hits = np.arange(min(rows, needed))
        chance = special.betainc(needed - hits, hits + 0.5, 1 - rows / drawn)
        if least := int(np.count_nonzero(chance < CHANCE)):
            looks.append((rows, least))
    return tuple(looks)


def about_needed(size: int, drawn: int, share: Fraction, alpha: float) -> int:
    """About how many qualified ones a sample needs to certify anything; more than drawn: it never does.

    Where the list ends at the lowest of k or more, it fails if none of the u + 1 lowest was drawn.
    """
    if share < 1 and drawn * window(size, drawn) > MOST_WORK:
        return binomial_needed(share, alpha)
    relevant = np.unique(np.geomspace(1, size, RATES).astype(np.int64))
    beyond = np.minimum(np.floor(float(1 - share) * relevant + 1e-9).astype(np.int64) + 1, relevant)
    unseen = np.exp(quick_log_hypergeometric(0, size, beyond, drawn))
    others, rows = relevant - beyond, size - beyond
    few = others <= drawn  # of two laws that are near, that of fewer draws
    draws, chance = np.where(few, others, drawn), np.where(few, drawn, others) / np.maximum(rows, drawn)

    def holds(count: int) -> bool:
        reached = special.betainc(count, np.maximum(draws - count + 1, 1), np.minimum(chance, 1.0))
        return bool((unseen * np.where(draws < count, 0.0, reached)).max() <= alpha)

    return smallest(holds, 1, drawn)


def best_allowed(
    curve: Curve, tail: Tail, missable: int, drawn: int, level: Fraction, top: int, found: float,
    listed: Floats,
) -> tuple[float, int]:  # fmt: skip
    """The expected list, and the hits to allow below the cut: the block of each is the largest that
    certifies.

    ``listed``: rows above each rank of the tail that are labelled and will not be listed.
    """
    share = special.betaincinv(HITS + 1, missable + 1, 1 - float(level))
    begins = np.maximum(curve.size - drawn / share, top)
    rate = np.minimum(1.0, drawn / np.maximum(curve.size - begins, 1))
    cuts = np.maximum(begins, tail.cut(_quantiles() / rate))
    cost = np.where(cuts <= 0, found, cuts - np.interp(cuts, tail.ranks, listed)).mean(axis=0)
    best = int(np.argmin(cost))
    return float(cost[best]), int(HITS[best])


@cache
def _quantiles() -> Floats:
    """When the hit after so many comes, if they come at rate one: a row for each chance."""
    return np.asarray(special.gammaincinv(HITS[None, :] + 1, QUANTILES[:, None]))


class FirstDraw(NamedTuple):
    """Two draws: where the first one ends, its labels, and the list to expect."""

    end: int
    labels: int
    expected: float


def plan_first(curve: Curve, ends: list[int], left: int, share: Fraction, alpha: Fraction) -> FirstDraw:
    """The first draw with the shortest list to expect."""
    tail, best = Tail.of(curve), FirstDraw(ends[0], 0, float("inf"))
    for end in ends:
        free = end - int(curve.labelled_above(end))
        known = int(np.count_nonzero(curve.good & (curve.ranks < end)))
        for labels in sorted({min(free, int(part * left)) for part in SHARES}):
            if not labels:
                continue
            census = labels == free
            counting, level = lists.levels(alpha, census=census)
            hits = labels * max(0.0, float(curve.down_to(end)) - known) / free
            low = hits
            if not census:
                spread = np.sqrt(max(hits, 0.5) * (1 - labels / free))
                low = max(0.0, hits + float(special.ndtri(float(counting))) * spread) * free / labels
            missable = lists.may_miss(share, int(curve.found + low))
            labelled = curve.labelled_above(tail.ranks) + np.minimum(tail.ranks / end, 1) * labels
            listed = labelled - (curve.found + hits)
            cost, _ = best_allowed(
                curve, tail, missable, left - labels, level, end, curve.found + hits, listed
            )
            if cost < 0.999 * best.expected:
                best = FirstDraw(end, labels, cost)
    return best
