"""What the parts of ``promises.py`` share: the true population, and the counting of promises."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import surelist as sl

ALPHA = 0.1
Floats = NDArray[np.float64]
Judge = Callable[[sl.Policy], tuple[float, float]]  # list, and how false


class Truth:
    """Of the population in ``surelist.examples``: share listed and qualified share listed at a threshold."""

    def __init__(self, points: int = 400_000) -> None:
        at = (np.arange(points) + 0.5) / points
        self.scores = special.expit(-2.2 + 1.8 * special.ndtri(at))
        self.qualified = np.append(np.cumsum(self.scores[::-1])[::-1] / points, 0.0)
        self.points = points

    def at(self, threshold: float) -> tuple[float, float]:
        place = int(np.searchsorted(self.scores, threshold))
        return (self.points - place) / self.points, float(self.qualified[place])


TRUTH = Truth()


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

    def row(self) -> str:
        mean = f"{np.mean(self.lists):.2f}" if self.lists else "-"
        return f"| {self.name} | {mean} | {self.false / self.runs:.3f} | {self.refused / self.runs:.3f} | {1000 * self.seconds / self.runs:.1f} |"


def table(title: str, tallies: list[Tally], note: str = "") -> None:
    print(f"\n### {title}\n\n| | list | false | refused | ms |\n|---|---|---|---|---|")
    for each in tallies:
        print(each.row())
    if note:
        print(f"\n{note}")
