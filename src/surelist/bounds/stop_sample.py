"""Test of the rest: how many to draw from what was not reviewed, to certify a recall and stop.

R_f relevant items were found by any review whatever; N' items were not reviewed and K of them are
relevant. Items are drawn from the rest at random; h hits among them count as found. The recall
(R_f + h) / (R_f + K) lies below r iff K >= K(h) = floor((h + (1-r) R_f) / r) + 1, in rationals.

Look x = 0, 1, ..., J-1 comes after n_x draws and certifies iff at most x hits were drawn: n_x is the
running maximum of min{j : P(Hyp(N', K(x), j) <= x) <= eta}. Whoever did not stop before has at least
x hits at look x, so a certificate there has exactly x hits and is false iff K >= K(x).

*The level.* For K in [K(x), K(x+1)) the false certificates are those of looks 0..x, an event that
another relevant item only makes rarer (couple the draws: every hit count is at least as large). So
the largest level over all K is attained at one of K(0), ..., K(J-1), where it is computed by
recursion over hits; eta is the largest value that keeps it at alpha [theory: stop-test].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats
from surelist.bounds._tails import quick_log_hypergeometric, smallest

MARGIN = 1e-6  # of alpha: more than log factorials of 1e7 items can lose


class RestLooks(Struct, frozen=True):
    """When to look: ``sizes[x]`` items drawn certify with at most x hits. ``level`` is the worst over K."""

    sizes: tuple[int, ...]
    eta: float
    level: float


def too_many_left(found: int, hits: int, recall: Fraction) -> int:
    """K(h): the smallest number of relevant items in the rest at which recall lies below target."""
    return math.floor((hits + (1 - recall) * found) / recall) + 1


@lru_cache(maxsize=256)
def rest_looks(found: int, rest: int, recall: Fraction, alpha: float, looks: int) -> RestLooks:
    """The sizes of ``looks`` looks with eta solved; fewer where a look would take the whole rest."""
    worst = [too_many_left(found, x, recall) for x in range(looks)]
    low, high = 0.0, 1.0
    best = _sizes(rest, worst, alpha / looks)  # a union bound: always within alpha
    for _ in range(50):
        eta = (low + high) / 2
        sizes = _sizes(rest, worst, eta)
        if rest_level(rest, worst, sizes) <= alpha * (1 - MARGIN):
            low, best = eta, sizes
        else:
            high = eta
        if high - low < 1e-6 * alpha:
            break
    kept = sum(size < rest for size in best) + any(size == rest for size in best)
    sizes = best[:kept]
    return RestLooks(tuple(sizes), low, rest_level(rest, worst[:kept], sizes))


def rest_level(rest: int, worst: list[int], sizes: list[int]) -> float:
    """max over every K of P_K(certified at some look x and K >= worst[x])."""
    relevant = np.array([k for k in worst if k <= rest], dtype=np.float64)
    return float(_levels(rest, relevant, worst, sizes).max()) if len(relevant) else 0.0


def certified_by(rest: int, relevant: int, sizes: Sequence[int]) -> list[float]:
    """P_K(certified by look x) for K ``relevant`` items in the rest and every look x."""
    left = np.array([float(relevant)])
    return [float(_levels(rest, left, [0] * x, sizes[:x])[0]) for x in range(1, len(sizes) + 1)]


def _levels(rest: int, relevant: Floats, worst: list[int], sizes: Sequence[int]) -> Floats:
    """P_K(a false certificate) for each K in ``relevant``: recursion over hits, J states."""
    alive = np.zeros((len(relevant), len(sizes)))  # alive[., h] = P(h hits, not certified yet)
    alive[:, 0] = 1.0
    drawn, total = 0, np.zeros(len(relevant))
    for x, size in enumerate(sizes):
        alive = _draw(alive, rest - drawn, relevant, size - drawn)
        drawn = size
        total += np.where(relevant >= worst[x], alive[:, : x + 1].sum(axis=1), 0.0)
        alive[:, : x + 1] = 0.0
    return total


def _draw(alive: Floats, left: int, relevant: Floats, more: int) -> Floats:
    """The law of hits after ``more`` further draws from the ``left`` items not drawn yet."""
    if more == 0:
        return alive
    after = np.zeros_like(alive)
    states = alive.shape[1]
    for hits in np.flatnonzero(alive.any(axis=0)).tolist():
        steps = np.arange(states - hits, dtype=np.float64)
        law = np.exp(quick_log_hypergeometric(steps, left, (relevant - hits)[:, None], more))
        after[:, hits:] += alive[:, hits, None] * law
    return after


def _sizes(rest: int, worst: list[int], eta: float) -> list[int]:
    """n_x as the running maximum: the minimum alone does not always rise with x."""
    sizes: list[int] = []
    for hits, relevant in enumerate(worst):
        needed = 0 if relevant > rest else _needed(rest, relevant, hits, eta)
        sizes.append(max([needed, *sizes[-1:]]))
    return sizes


def _needed(rest: int, relevant: int, hits: int, eta: float) -> int:
    """min{j : P(Hyp(rest, relevant, j) <= hits) <= eta}."""
    return smallest(lambda j: rest_tail(rest, relevant, j, hits) <= eta, 1, rest - 1)


def rest_tail(rest: int, relevant: int, drawn: int, hits: int) -> float:
    """P(Hyp(rest, relevant, drawn) <= hits): so few hits if ``relevant`` items were left."""
    if relevant > rest:
        return 0.0
    x = np.arange(hits + 1, dtype=np.float64)
    return float(np.exp(quick_log_hypergeometric(x, rest, relevant, drawn)).sum())


def most_left(rest: int, drawn: int, hits: int, level: float) -> int:
    """The largest K that ``hits`` among ``drawn`` do not rule out at ``level``."""
    ruled_out = smallest(lambda k: rest_tail(rest, k, drawn, hits) <= level * (1 - MARGIN), hits, rest)
    return ruled_out - 1
