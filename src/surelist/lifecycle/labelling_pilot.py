"""What a pilot says about a ranking: how many qualified there are down to each rank, about.

Plans are made from it. Nothing here touches a level: tests condition on the pilot's labels, however they were
used [theory: collection-precision].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def pilot_bins(size: int, labels: int) -> Ints:
    """Edges of bins of ranks that grow by half: every scale of rank is seen."""
    edges = [0, min(max(10, labels // 10), size)]
    while edges[-1] < size:
        edges.append(min(size, int(edges[-1] * 1.5) + 1))
    return np.array(edges, dtype=np.int64)


def pilot_ranks(size: int, rows: int, labels: int, rng: np.random.Generator) -> Ints:
    """Random ranks, spread evenly over the bins; rising."""
    edges = pilot_bins(size, labels)
    widths = np.diff(edges)
    take = np.zeros(len(widths), dtype=np.int64)
    left = min(rows, size)
    while left:
        room = np.flatnonzero(take < widths)
        for at in room.tolist():
            more = min(max(1, left // len(room)), int(widths[at] - take[at]), left)
            take[at] += more
            left -= more
    drawn = [
        low + rng.choice(int(width), int(count), replace=False, shuffle=False)
        for low, width, count in zip(edges, widths, take, strict=False)
        if count
    ]
    return np.sort(np.concatenate(drawn)).astype(np.int64)


@dataclass(frozen=True)
class Curve:
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

    def down_to(self, ranks: Floats | Ints | float) -> Floats:
        return np.asarray(np.interp(ranks, self.edges, self.held))

    def labelled_above(self, ranks: Floats | Ints | float) -> Ints:
        """How many rows above each rank are labelled."""
        return np.asarray(np.searchsorted(self.ranks, ranks))

    @property
    def found(self) -> int:
        return int(np.count_nonzero(self.good))
