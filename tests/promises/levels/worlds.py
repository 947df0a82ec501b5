"""Small worlds whose law is written down, made as hard as can be for a set of conditions.

A world of rows is a table of *types* of candidates with their chances. The list of those who score ``TOP`` or
more falls short of what is promised by a hair, so that a promise is false exactly if nobody else is listed. No
one is qualified just below it, one score's best are the other's last, shares of qualified ones are the same at
every score of the top (no ranking helps), labels are missing by outcome, and pools hold fewer qualified ones
than rows where the population changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist.promises.conditions import Conditions

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOP = 6.0
EDGE = 7.5  # labels of two rates: all are known from here on
LOWEST = 0.5  # rate of drawn labels
WITHIN = 1.5
WRONG, LONGEST = 0.05, 0.35  # how often labels are wrong at most, and the longest list then
GROUPS = ("x", "y")


@dataclass(frozen=True)
class World:
    """Types of candidates: two scores, label, worth, groups; their chances among rows and in pools."""

    a: Floats
    b: Floats
    good: Mask
    worth: Floats
    member: dict[str, Mask]
    rows: Floats
    ratio: Floats  # as it is given to calibrate
    pool: Floats
    rate: Floats  # chance that a label is drawn
    answered: Floats  # chance that a label is not missing

    @property
    def bound(self) -> float:
        return float(self.ratio.max())

    def scores(self, name: str) -> Floats:
        return self.a if name == "a" else self.b


def _types(fine: bool, hashed: bool) -> list[tuple[float, float, float, bool, float]]:
    """Chance, both scores, label and worth."""
    top = [TOP] if hashed else np.linspace(TOP, 9, 24 if fine else 4).tolist()
    low = np.linspace(0, 5, 25 if fine else 6).tolist()
    below = low if fine else low[:1]  # where qualified ones are, outside the top
    types: list[tuple[float, float, float, bool, float]] = []
    for first in (True, False):  # the top of a, the top of b
        for good in (True, False):
            others = below if good else low[1:]
            pairs = [
                (top[i % len(top)], others[i % len(others)]) for i in range(np.lcm(len(top), len(others)))
            ]
            types += [
                (0.15 / len(pairs), *((t, o) if first else (o, t)), good, (1.0, 4.0)[i % 2] * good)
                for i, (t, o) in enumerate(pairs)
            ]
    types += [(0.1 / len(below), each, each, True, 2.0) for each in below]
    return types + [(0.3 / len(low), each, each, False, 0.0) for each in low]


def _of_both(fine: bool, hashed: bool) -> list[tuple[float, float, float, bool, float]]:
    """Of those in both groups only the best by either score are qualified: one group's list adds none to the other's."""
    top = [TOP] if hashed else np.linspace(TOP, 9, 24 if fine else 4).tolist()
    good = [(0.3 / len(top), each, each, True, 1.0) for each in top]
    return good + [(0.3 / len(top), each, each, False, 0.0) for each in top] + [(0.4, 1.0, 1.0, False, 0.0)]


def world(asked: Conditions, *, fine: bool = False) -> World:
    """A hard world for a set of conditions; with ``fine`` scores nearly nobody is tied."""
    hashed, overlapping = asked.ties == "hash", "overlapping" in asked.groups
    single = 0.3 if overlapping else 0.5
    every = list(product(_types(fine, hashed), [(single, 1, 0), (single, 0, 1)]))
    every += product(_of_both(fine, hashed), [(0.4, 1, 1)] if overlapping else [])
    chance = np.array([p * share for (p, *_), (share, *_) in every])
    a, b, good, worth = (np.array([row[at] for row, _ in every]) for at in (1, 2, 3, 4))
    best = (a >= TOP) | (b >= TOP)
    ratio = np.where(good, 0.6, 1.2) if asked.shift != "none" else np.ones(len(every))
    ratio /= (chance * ratio).sum()
    pool = chance * ratio
    if asked.shift == "within":  # the worst of all ratios within the factor
        pool = pool * np.where(good & best, 1.0, WITHIN**2)
    return World(
        a, b, good.astype(bool), worth,
        {name: np.array([kind[at] for _, kind in every], dtype=bool) for at, name in enumerate(GROUPS, start=1)},
        chance, ratio, pool / pool.sum(), np.where(a >= TOP, 0.9, 0.6),
        np.where(good, np.where(best, 1.0, 0.8), 0.5),
    )  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """Calibration rows of a world, and what comes with them."""

    index: NDArray[np.int64]
    labels: Floats  # NaN where missing or not drawn
    others: NDArray[np.int64]  # types of unlabelled candidates


def draw(rng: np.random.Generator, found: World, asked: Conditions, rows: int, others: int) -> Drawn:
    index, more = (_indices(rng, chance, n) for chance, n in ((found.rows, rows), (found.pool, others)))
    labels = found.good[index].astype(float)
    coins = rng.random(rows)
    if asked.labels == "missing":
        labels[coins >= found.answered[index]] = np.nan
    elif asked.labels == "thinned":
        labels[coins >= found.rate[index]] = np.nan
    elif asked.labels == "noisy":  # everywhere on the side that makes lists of the top look better
        wrong = (coins < WRONG) & (found.good[index] != (found.a[index] >= TOP))
        labels[wrong] = 1 - labels[wrong]
    elif asked.labels == "two rates":
        labels[(coins >= LOWEST) & (found.a[index] < EDGE)] = np.nan
    return Drawn(index, labels, more)


def _indices(rng: np.random.Generator, chance: Floats, count: int) -> NDArray[np.int64]:
    at = np.searchsorted(np.cumsum(chance), rng.random(count), side="right")
    return np.minimum(at, len(chance) - 1).astype(np.int64)


POOL_SIZE = 5


@dataclass(frozen=True)
class PoolWorld:
    """Types of whole pools, each as likely as the others: scores and labels of their candidates.

    Candidates of one pool resemble one another. Where scores are missing, whole pools have none.
    """

    a: Floats  # types x candidates
    b: Floats
    good: Mask
    worth: Floats
    scored: Mask
    member: dict[str, Mask]

    @property
    def types(self) -> int:
        return len(self.a)


def pool_world(asked: Conditions, types: int = 150) -> PoolWorld:
    rng = np.random.default_rng(23)
    shared = rng.random((types, 1))
    a = np.argsort(np.argsort((shared + 0.3 * rng.random((types, POOL_SIZE))).ravel())).reshape(types, -1)
    good = rng.random((types, POOL_SIZE)) < 0.2 + 0.5 * shared
    good[:, 0] |= rng.random(types) < 0.9
    scored = np.ones((types, POOL_SIZE), dtype=bool)
    if asked.bad_rows == "dropped":
        scored[rng.random(types) < 0.06] = False
        scored &= ~(good & (rng.random((types, POOL_SIZE)) < 0.1))
    worth = good * np.where(rng.random((types, POOL_SIZE)) < 0.1, 8.0, 1.0)
    last = 3 if asked.groups == "overlapping" else 2
    member = {"x": np.arange(POOL_SIZE) < last, "y": np.arange(POOL_SIZE) >= 2}
    every = {name: np.broadcast_to(each, a.shape) for name, each in member.items()}
    return PoolWorld(a.astype(float), a.max() - a.astype(float), good, worth, scored, every)


def ranks(scores: Any) -> Floats:
    """Minus the rank in its own pool, ties sharing the best; for whole pools as rows of an array."""
    return -(scores[:, None, :] > scores[:, :, None]).sum(axis=2).astype(float) - 1
