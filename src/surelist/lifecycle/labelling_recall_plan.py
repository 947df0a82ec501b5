"""How labels for a recall are spent: one uniform sample, or two draws; where they begin and end.

Any choice made from labels that are known before is valid [theory: collection-recall-block]. One uniform
sample is the better design where it certifies; two draws are where qualified ones are rare.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from surelist._dataclasses import dataclass
from surelist._scipy import special
from surelist.bounds.collection_recall import levels, may_miss
from surelist.bounds.control_sample import binomial_drops
from surelist.lifecycle.labelling_pilot import Curve, Floats, Ints

HITS = np.arange(30)  # that may be allowed below the cut
CHANCES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHARES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # of the labels left, for the first draw
MARGIN = 1.2  # times the hits that certify anything have to be expected of one uniform sample
PREFERRED = 2.0  # one uniform sample is taken up to this multiple of what two draws are expected to list


@dataclass(frozen=True)
class Tail:
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


def expected_uniform(curve: Curve, left: int, share: Fraction, alpha: float) -> float:
    """Of one uniform sample of everyone who is not labelled; infinite where it is not likely to certify."""
    tail, rate = Tail.of(curve), left / max(1, curve.size - len(curve.ranks))
    hits = int(rate * max(0.0, float(tail.below[0]) - curve.found))
    drops = binomial_drops(max(1, hits), share, alpha)
    if drops[int(hits / MARGIN)] < 0:
        return float("inf")
    drop = int(drops[hits])
    cut = tail.cut(special.gammaincinv(drop + 1, CHANCES) / rate)
    return float(np.mean(cut * (1 - rate)) + hits)


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
    quantiles = special.gammaincinv(HITS[None, :] + 1, CHANCES[:, None])
    cuts = np.maximum(begins, tail.cut(quantiles / rate))
    cost = np.where(cuts <= 0, found, cuts - np.interp(cuts, tail.ranks, listed)).mean(axis=0)
    best = int(np.argmin(cost))
    return float(cost[best]), int(HITS[best])


@dataclass(frozen=True)
class FirstDraw:
    """Two draws: the number of the first one's end, its labels, and the list to expect."""

    end: int
    labels: int
    expected: float


def plan_first(curve: Curve, ends: Ints, left: int, share: Fraction, alpha: Fraction) -> FirstDraw:
    """The first draw with the shortest list to expect."""
    tail, best = Tail.of(curve), FirstDraw(0, 0, float("inf"))
    for number, end in enumerate(ends.tolist()):
        free = end - int(curve.labelled_above(end))
        known = int(np.count_nonzero(curve.good & (curve.ranks < end)))
        for labels in sorted({min(free, int(part * left)) for part in SHARES}):
            if not labels:
                continue
            census = labels == free
            counting, level = levels(alpha, census=census)
            hits = labels * max(0.0, float(curve.down_to(end)) - known) / free
            low = hits
            if not census:
                spread = np.sqrt(max(hits, 0.5) * (1 - labels / free))
                low = max(0.0, hits + float(special.ndtri(float(counting))) * spread) * free / labels
            missable = may_miss(share, int(curve.found + low))
            labelled = curve.labelled_above(tail.ranks) + np.minimum(tail.ranks / end, 1) * labels
            listed = labelled - (curve.found + hits)
            cost, _ = best_allowed(
                curve, tail, missable, left - labels, level, end, curve.found + hits, listed
            )
            if cost < 0.999 * best.expected:
                best = FirstDraw(number, labels, cost)
    return best
