"""Designs that sample blocks of a ranking: a pilot over all ranks, then uniform samples from the top or the
bottom.

What a pilot says is how many qualified there are down to each rank, about (``Curve``), for plans. Nothing
here touches a level: tests condition on the pilot's labels, however they were used [theory:
collection-precision].
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist._files import hold
from surelist.lifecycle.labelling_design import NOBODY, BlockDraws, Design, Floats, Ints, Stage, wrapped
from surelist.promises.phrases import counted


def pilot_bins(size: int, labels: int) -> Ints:
    """Edges of bins of ranks that grow by half: every scale of rank is seen."""
    edges = [0, min(max(10, labels // 10), size)]
    while edges[-1] < size:
        edges.append(min(size, int(edges[-1] * 1.5) + 1))
    return np.array(edges, dtype=np.int64)


def pilot_ranks(low: int, high: int, rows: int, bins: Ints, rng: np.random.Generator) -> Ints:
    """Random ranks from ``low`` on and below ``high``, spread evenly over the bins; rising."""
    edges = np.unique(np.clip(bins, low, high))
    widths = np.diff(edges)
    take = np.zeros(len(widths), dtype=np.int64)
    left = min(rows, high - low)
    while left:
        room = np.flatnonzero(take < widths)
        for at in room.tolist():
            more = min(max(1, left // len(room)), int(widths[at] - take[at]), left)
            take[at] += more
            left -= more
    drawn = [
        begin + rng.choice(int(width), int(count), replace=False, shuffle=False)
        for begin, width, count in zip(edges, widths, take, strict=False)
    ]
    return np.sort(np.concatenate([NOBODY, *drawn])).astype(np.int64)


class Curve(Struct, frozen=True):
    """Qualified candidates down to each rank, about; ``ranks`` and ``good`` are those labelled."""

    size: int
    edges: Ints
    held: Floats  # down to each edge
    ranks: Ints
    good: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int, labels: int, ranks: Ints, good: NDArray[np.bool_]) -> Curve:
        """Rates by bin that never rise with the rank (neighbours that do are pooled)."""
        edges = pilot_bins(size, labels)
        rows = np.histogram(ranks, edges)[0].astype(np.float64)
        hits = np.histogram(ranks[good], edges)[0].astype(np.float64)
        pooled: list[list[float]] = []
        for hit, row in zip(hits, rows, strict=True):
            pooled.append([hit, row, 1])
            while len(pooled) > 1 and pooled[-1][0] * pooled[-2][1] >= pooled[-2][0] * pooled[-1][1]:
                last = pooled.pop()
                pooled[-1] = [a + b for a, b in zip(pooled[-1], last, strict=True)]
        rates = np.concatenate([np.full(int(bins), hit / row if row else 0.0) for hit, row, bins in pooled])
        held = np.append(0.0, np.cumsum(rates * np.diff(edges)))
        return cls(size, edges, held, ranks, good)

    def with_one_more(self) -> Curve:
        """With what one qualified row more among those labelled would add, most likely near the top."""
        rise = np.log1p(self.edges / self.edges[1])
        more = self.size / len(self.ranks) * rise / rise[-1]
        return Curve(self.size, self.edges, self.held + more, self.ranks, self.good)

    def down_to(self, ranks: Floats | Ints | float) -> Floats:
        return np.asarray(np.interp(ranks, self.edges, self.held))

    def labelled_above(self, ranks: Floats | Ints | float) -> Ints:
        """How many rows above each rank are labelled."""
        return np.asarray(np.searchsorted(self.ranks, ranks))

    @property
    def found(self) -> int:
        return int(np.count_nonzero(self.good))


class RankBlock(NamedTuple):
    """Ranks that a stage takes a uniform sample of, and where that was drawn: which draw, which sample."""

    low: int
    high: int
    draw: int
    sample: int


class RankedDesign(Design):
    """A pilot, then stages that take uniform samples of blocks of ranks; a stage's ``chosen`` is its block.

    Samples were drawn without earlier stages in mind: what is left without their rows is uniform too.
    """

    labels: int
    draws: list[BlockDraws]

    orders: ClassVar[tuple[list[str], ...]]  # of stages, when all are through

    def blocks(self, name: str) -> list[RankBlock]:
        """The blocks that a stage of this name may choose from; none where it takes no sample of one."""
        raise NotImplementedError

    def samples(self) -> list[tuple[int, int]]:
        """Of each draw: how many rows a sample has, and how many samples there are."""
        raise NotImplementedError

    def about(self, stage: Stage, asked: str) -> str:
        """What a stage is for, in words; ``asked`` is how many candidates it asks for."""
        raise NotImplementedError

    @property
    def left(self) -> int:
        """Labels that nobody was asked for yet."""
        return self.labels - len(self.asked)

    def curve(self) -> Curve:
        known = self.asked
        ranks = np.array([self.sample.ranks[at] for at in known])
        good = np.array([self.sample.labels[at] == "1" for at in known])
        return Curve.of(self.size, self.labels, ranks, good)

    def drawn(self, name: str, chosen: int, labels: int) -> Stage:
        """A stage that asks for a random sample of ``labels`` rows of its block."""
        fresh = self._fresh(name, chosen, self.asked_before(len(self.stages)))
        return Stage(name, sorted(fresh[:labels]), chosen)

    def _fresh(self, name: str, chosen: int, before: set[int]) -> list[int]:
        """Places that a stage may ask for, in random order, but for those that were asked for before."""
        block, ranks = self.blocks(name)[chosen], self.sample.ranks
        places = self.draws[block.draw].of(block.sample)
        return [at for at in places if at not in before and block.low <= ranks[at] < block.high]

    def inside(self, places: set[int], low: int, high: int) -> int:
        """How many of the places are at these ranks."""
        return sum(low <= self.sample.ranks[at] < high for at in places)

    def verify(self) -> None:
        super().verify()
        names = [stage.name for stage in self.stages]
        hold(any(names == order[: len(names)] for order in self.orders), "its stages are others")
        hold(len(self.draws) == len(self.samples()), "it has other draws than its design")
        for draw, (rows, samples) in zip(self.draws, self.samples(), strict=True):
            draw.verify(self.sample, samples)
            held = {len(draw.of(number)) for number in range(samples)}
            hold(held == {min(rows, self.size)}, "a block's sample has another size")
        for at, stage in enumerate(self.stages):
            if blocks := self.blocks(stage.name):
                own = stage.chosen is not None and 0 <= stage.chosen < len(blocks)
                hold(own, "a block is none of its own")
                fresh = self._fresh(stage.name, stage.chosen or 0, self.asked_before(at))
                same = stage.asked == sorted(fresh[: len(stage.asked)])
                hold(same, "a stage asks for others than were drawn")
        hold(self.left >= 0, "it asks for more labels than it may")

    def describe(self) -> list[str]:
        lines = super().describe()
        for stage in self.stages:
            lines += [*wrapped(self.about(stage, counted(len(stage.asked), "candidate"))), self.came(stage)]
        return lines
