"""Which sets are run, and one bound over all of them.

Of correct code every sum below is one of independent numbers from 0 to 1 whose means are at most their levels, so that
it exceeds s with probability at most exp(-n·KL(s/n, level)) (Hoeffding, 1963). All sums of all kinds together share
``BY_CHANCE``: cells, every condition and every pair of conditions, and kinds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

from surelist.promises import kinds
from surelist.promises.conditions import Conditions
from surelist.promises.promise import Promise
from surelist.promises.proved import accepted
from tests.promises.levels.runs import cells_of

BY_CHANCE = 1e-9
RUNS, FEWEST, MOST = 6_000, 40, 400


def sets_of(kind: type[Promise], *, every: bool) -> list[Conditions]:
    """All declared sets; or of each declaration, condition and pair of conditions the smallest one that has it."""
    sets = sorted(accepted(kind), key=lambda each: (len(each.beside()), str(each)))
    if every:
        return sets
    smallest: dict[object, Conditions] = {}
    for asked in sets:
        for proved in kind.proved_with:
            if proved.covers(asked):
                smallest.setdefault(proved, asked)
        for some in _parts(asked):
            smallest.setdefault(some, asked)
    return [asked for asked in sets if asked in set(smallest.values())]


def _parts(asked: Conditions) -> list[tuple[tuple[str, str], ...]]:
    """Its conditions, alone and in pairs."""
    beside = sorted(asked.beside().items())
    return [some for size in (0, 1, 2) for some in combinations(beside, size)]


@dataclass
class Sum:
    """Runs, how many of them made a false promise, and how many may."""

    runs: int = 0
    false: float = 0.0
    allowed: float = 0.0

    def add(self, chances: list[float], level: float) -> None:
        self.runs += len(chances)
        self.false += sum(chances)
        self.allowed += level * len(chances)

    @property
    def log_chance(self) -> float:
        """The logarithm of a bound on the chance of so many, of correct code."""
        seen, level = self.false / self.runs, self.allowed / self.runs
        if seen <= level:
            return 0.0
        rest = (1 - seen) * math.log((1 - seen) / (1 - level)) if seen < 1 else 0.0
        return -self.runs * (seen * math.log(seen / level) + rest)


@dataclass
class Verdict:
    """The sums of one kind, by what they are of."""

    cells: dict[str, Sum]
    sums: dict[str, Sum]

    @property
    def limit(self) -> float:
        """The bound that each sum has to stay above, all kinds having an equal share."""
        return math.log(BY_CHANCE / len(kinds.KINDS) / (len(self.cells) + len(self.sums)))

    @property
    def too_many(self) -> list[str]:
        every = {**self.cells, **self.sums}
        return [
            f"{name}: {each.false:.1f} of {each.runs} false, {each.allowed:.1f} allowed"
            for name, each in every.items()
            if each.log_chance < self.limit
        ]

    def describe(self) -> str:
        whole = self.sums["all sets"]
        name, worst = min(
            self.cells.items(), key=lambda each: (each[1].log_chance, -each[1].false / each[1].allowed)
        )
        return (
            f"{len(self.cells)} cells, {whole.runs} runs, {whole.false:.1f} false of {whole.allowed:.1f} allowed; worst "
            f"{name}: {worst.false:.1f} of {worst.runs}, {worst.allowed:.1f} allowed (chance {math.exp(worst.log_chance):.2g})"
        )


def judged(kind: type[Promise], *, every: bool) -> Verdict:
    """Every cell of a kind, run and counted: about as often for each kind, and each cell so often at least."""
    cells: dict[str, Sum] = {}
    sums: dict[str, Sum] = defaultdict(Sum)
    chosen = cells_of(kind, sets_of(kind, every=every))
    runs = min(max(RUNS // len(chosen), FEWEST), MOST)
    for cell in chosen:
        chances = cell.chances(runs)
        cells[cell.name] = Sum()
        for each in (cells[cell.name], *(sums[_said(some)] for some in _parts(cell.asked))):
            each.add(chances, cell.level)
    return Verdict(cells, dict(sums))


def _said(some: tuple[tuple[str, str], ...]) -> str:
    return " and ".join(f"{name}={value}" for name, value in some) or "all sets"
