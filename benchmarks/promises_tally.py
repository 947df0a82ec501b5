"""What the parts of ``promises.py`` share: the true populations, the counting of promises, and one verdict over all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

import surelist as sl

ALPHA = 0.1
Floats = NDArray[np.float64]
Judge = Callable[[sl.Policy], tuple[float, float]]  # list, and how false


class Truth:
    """Score = chance to be qualified = sigmoid(intercept + slope Z): shares listed and qualified at a threshold.

    The usual population is that of ``surelist.examples``.
    """

    def __init__(self, intercept: float = -2.2, slope: float = 1.8, points: int = 400_000) -> None:
        at = (np.arange(points) + 0.5) / points
        self.law = intercept, slope
        self.scores = special.expit(intercept + slope * special.ndtri(at))
        self.qualified = np.append(np.cumsum(self.scores[::-1])[::-1] / points, 0.0)
        self.points = points

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Floats, NDArray[np.bool_]]:
        scores = special.expit(self.law[0] + self.law[1] * rng.standard_normal(rows))
        return scores, rng.random(rows) < scores

    def at(self, threshold: float) -> tuple[float, float]:
        place = int(np.searchsorted(self.scores, threshold))
        return (self.points - place) / self.points, float(self.qualified[place])


TRUTH = Truth()
POPULATIONS = {  # half, a fifth, a thirtieth are qualified; a weak score
    "usual": TRUTH, "half": Truth(0.0), "rare": Truth(-4.67), "weak": Truth(-2.2, 0.95),
}  # fmt: skip
BY_CHANCE = 1e-3  # that any cell is called broken by mistake


class Cell(NamedTuple):
    """What was promised, how often that was false, and a figure beside the one wanted."""

    name: str
    runs: int
    false: float
    figure: str
    wanted: str = ""


def verdict(cells: list[Cell]) -> bool:
    """One table over all cells, and whether any was false more often than alpha allows."""
    print("\n| promised | runs | false | figure | wanted |\n|---|---|---|---|---|")
    for each in cells:
        print(f"| {each.name} | {each.runs} | {each.false:g} | {each.figure} | {each.wanted} |")
    broken = [
        each.name
        for each in cells
        if stats.binom.sf(each.false - 1, each.runs, ALPHA) < BY_CHANCE / len(cells)
    ]
    said = f"broken by {', '.join(broken)}" if broken else "kept"
    print(
        f"\n{len(cells)} cells at alpha {ALPHA:g}: joint bound {said} (by chance with probability {BY_CHANCE:g} at most)."
    )
    return not broken


class Tally:
    """Promises made, false ones, refusals and list lengths."""

    def __init__(self, name: str) -> None:
        self.name, self.runs, self.false, self.refused, self.seconds = name, 0, 0.0, 0, 0.0
        self.lists: list[float] = []

    def add(self, judge: Judge, *rows: Any, **asked: Any) -> None:
        self.runs += 1
        begun = time.perf_counter()
        try:
            policy = sl.calibrate(*rows, **asked)
        except sl.NotCertifiable:
            self.refused += 1
            return
        finally:
            self.seconds += time.perf_counter() - begun
        length, false = judge(policy)
        self.false += false
        self.lists.append(length)

    def cell(self, name: str, wanted: str = "") -> Cell:
        mean = f"{np.mean(self.lists):.2f}" if self.lists else "-"
        refused = f", {100 * self.refused / self.runs:.1f} % refused" if self.refused else ""
        return Cell(f"{name}: {self.name}", self.runs, self.false, mean + refused, wanted)

    def row(self) -> str:
        mean = f"{np.mean(self.lists):.2f}" if self.lists else "-"
        return f"| {self.name} | {mean} | {self.false / self.runs:.3f} | {self.refused / self.runs:.3f} | {1000 * self.seconds / self.runs:.1f} |"


def table(title: str, tallies: list[Tally], note: str = "") -> None:
    print(f"\n### {title}\n\n| | list | false | refused | ms |\n|---|---|---|---|---|")
    for each in tallies:
        print(each.row())
    if note:
        print(f"\n{note}")
