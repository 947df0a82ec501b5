"""Populations with known answers, for the tests of plan, watch and campaign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

DISTANCE = 1.4512  # binormal, 19 % qualified: the oracle's list for 5 of 100 holds 6.5


@dataclass(frozen=True)
class Atoms:
    """Scores (ascending) with the probability of each, for qualified and other candidates."""

    scores: np.ndarray
    qualified: np.ndarray
    others: np.ndarray

    def delta(self, t: float) -> float:
        return float(self.qualified[self.scores >= t].sum())

    def listed(self, t: float) -> float:
        return float((self.qualified + self.others)[self.scores >= t].sum())

    def boundary(self, rate: float) -> float:
        """t*: the highest threshold that meets the rate."""
        above = np.cumsum(self.qualified[::-1])[::-1]
        return float(self.scores[above >= rate * (1 - 1e-12)].max())

    def draw(self, rng: np.random.Generator, size: int, t: float = -np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Scores and labels of those of ``size`` candidates who score at least t, shuffled."""
        keep = self.scores >= t
        masses = np.concatenate([self.qualified[keep], self.others[keep]])
        counts = rng.multinomial(size, np.append(masses, max(0.0, 1 - masses.sum())))[:-1]
        scores = np.repeat(np.tile(self.scores[keep], 2), counts)
        labels = np.repeat(np.repeat([1, 0], int(keep.sum())), counts)
        order = rng.permutation(len(scores))
        return scores[order], labels[order]


def binormal(atoms: int = 4000, base_rate: float = 0.19, distance: float = DISTANCE) -> Atoms:
    """The binormal population cut into many small atoms (or few large ones, for ties)."""
    edges = np.linspace(-6, 8, atoms + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    return Atoms(
        np.linspace(-6, 8, atoms),
        base_rate * np.diff(ndtr(edges - distance)),
        (1 - base_rate) * np.diff(ndtr(edges)),
    )


def pools(rng: np.random.Generator, count: int, size: int = 100, drop: float = 0.0):
    """Binormal pools one by one; ``drop`` turns that share of the qualified into others."""
    for _ in range(count):
        labels = rng.random(size) < 0.19
        scores = rng.normal(size=size) + DISTANCE * labels
        yield scores, (labels & (rng.random(size) >= drop)).astype(int)
