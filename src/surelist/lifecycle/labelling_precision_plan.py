"""How labels for a precision are spent: where to look closer, which block to sample, which prefixes to test.

Any choice made from labels that are known before is valid [theory: collection-precision]; these were tuned
for the number of qualified candidates on the list (``benchmarks/budget.py``).
"""

from __future__ import annotations

import math

import numpy as np

from surelist._dataclasses import dataclass
from surelist._scipy import special
from surelist.lifecycle.labelling_pilot import Curve, Ints

SHARES = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 1.0)  # of the labels left, for the block
FAR = 1.5  # times the labels left: lists longer than this cannot be labelled one by one
SHORTEST = 20  # of a prefix that is worth a plan


@dataclass(frozen=True)
class BlockPlan:
    """The block's end and how many labels it gets; the prefixes tested and the share of alpha that each
    brings."""

    end: int
    labels: int
    steps: list[int]
    weights: list[int]


def pilot_size(labels: int, size: int) -> int:
    """How many of the labels the pilot takes; all where they suffice for everyone."""
    return size if labels >= size else max(1, int(0.08 * labels), min(100, labels // 5))


def _longest(curve: Curve, ends: Ints, share: float) -> int:
    """The longest prefix that holds the share, about; 0 for none."""
    fits = np.flatnonzero((curve.down_to(ends) >= share * ends) & (ends >= SHORTEST))
    return int(ends[fits[-1]]) if len(fits) else 0


def _number(ends: Ints, rank: float) -> int:
    """The first end at this rank or beyond."""
    return min(int(np.searchsorted(ends, rank)), len(ends) - 1)


def closer_look(
    curve: Curve, ends: list[int], labels: int, left: int, share: float
) -> tuple[int, int] | None:  # fmt: skip
    """Where far more qualify than can be labelled: the end of a prefix to look at once more, and with how
    many."""
    at = np.array(ends)
    longest = _longest(curve, at, share - 0.07)
    look = int(0.2 * labels)
    return (_number(at, FAR * longest), look) if longest > FAR * left and look else None


def plan_block(curve: Curve, ends: list[int], left: int, share: float, alpha: float) -> BlockPlan | None:
    """The block and its tests; None: label from the top."""
    at = np.array(ends)
    longest = _longest(curve, at, share)
    if longest > FAR * left:
        end = _number(at, longest)
        return _steps(at, end, left, ((0.3 * longest, 40), (0.55 * longest, 60)))
    return _short(curve, at, left, share, alpha)


def _steps(ends: Ints, end: int, labels: int, starts: tuple[tuple[float, int], ...]) -> BlockPlan:
    """Every prefix from the first start to the block's end; each start brings its share of alpha."""
    numbers = [min(_number(ends, rank), end) for rank, _ in starts]
    steps = list(range(min(numbers), end + 1))
    weights = [0] * len(steps)
    for number, (_, weight) in zip(numbers, starts, strict=True):
        weights[number - steps[0]] += weight
    return BlockPlan(end, labels, steps, weights)


def _short(curve: Curve, ends: Ints, left: int, share: float, alpha: float) -> BlockPlan | None:
    """Of all blocks and shares of the labels the one with the most qualified on the list, if it is worth
    it."""
    z = -float(special.ndtri(alpha))
    everyone = min(curve.size, left + int(curve.labelled_above(left)))
    best, made = float(curve.down_to(everyone)), None
    free = ends - curve.labelled_above(ends)
    allowed = (1 - share) * (free + curve.found)
    bad = np.maximum(0, free - curve.down_to(ends) * free / ends)
    for end in range(int(np.searchsorted(ends, SHORTEST)), len(ends)):
        inside = slice(0, end + 1)
        for part in SHARES:
            labels = int(part * left)
            if labels >= free[end] or labels < 1:
                continue
            rate = labels / free[end]
            limit = np.clip(allowed[inside] / np.maximum(free[inside], 1), 1e-9, 1)
            drawn = rate * free[inside]
            spread = np.sqrt(drawn * limit * (1 - limit) * (1 - rate))
            score = (drawn * limit - rate * bad[inside]) / np.maximum(spread, 1e-9)
            # too few rows to pass at all, or nothing to test
            score[((1 - limit) ** drawn > alpha) | (allowed[inside] >= free[inside])] = -9
            sure = np.flatnonzero((score >= z + 0.5) & (ends[inside] >= SHORTEST))
            if not len(sure):
                continue
            start = int(ends[sure[np.argmax(score[sure])]])
            last = int(ends[np.flatnonzero(score >= z)[-1]])
            beyond = min(curve.size, last + left - labels)
            held = curve.down_to(np.array([last, ends[end], beyond]))
            value = float(held[2] + rate * (held[1] - held[0])) - 1e-9 * float(ends[end])
            if value > 1.03 * best:
                best = value
                made = _steps(ends, end, labels, ((start, 70), (math.sqrt(start * last), 30)))
    return made
