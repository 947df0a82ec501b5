"""Which ranks are drawn for labelling: random numbers only, no scores and no labels.

A collection is ordered by score; rank 0 is the best. Everything that will ever be asked is drawn at the
start and recorded, for every block that the pilot might choose, so that nothing can be redrawn and
nothing but the drawn rows has to be kept. The sample of the next larger block keeps a random part of the
one before: as many rows as a uniform sample of the larger block has in the smaller one (hypergeometric).
So every block's sample is uniform, and a row is in the samples of neighbouring blocks only, from the
block where it ``enters`` to the one where it ``leaves``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass

Ints = NDArray[np.int64]

RATIO = 1.06  # between neighbouring blocks


@dataclass(frozen=True)
class RankDraw:
    """Ranks in the whole collection, rising; ``enters`` and ``leaves`` are numbers of blocks."""

    ranks: Ints
    enters: Ints
    leaves: Ints


def set_aside(size: int, rows: int, rng: np.random.Generator) -> Ints:
    """Ranks of ``rows`` random rows of the collection, rising."""
    return np.sort(rng.choice(size, rows, replace=False, shuffle=False)).astype(np.int64)


def draw_part(apart: Ints | None, block: int, drawn: int, rng: np.random.Generator) -> RankDraw:
    """A uniform sample of the best ``block`` of the rows set aside (None: of all)."""
    inside = set_aside(block, drawn, rng)
    ranks = inside if apart is None else apart[inside]
    return RankDraw(ranks, np.zeros(drawn, dtype=np.int64), np.zeros(drawn, dtype=np.int64))


def draw_blocks(apart: Ints, blocks: list[int], drawn: int, rng: np.random.Generator) -> RankDraw:
    """Uniform samples of ``drawn`` rows of every block of the rows that were *not* set aside."""
    sample = rng.choice(blocks[0], drawn, replace=False, shuffle=False)
    inside = {int(rank): 0 for rank in sample}  # rank to the block where it entered
    done: list[tuple[int, int, int]] = []
    for number, (before, block) in enumerate(pairwise(blocks), start=1):
        fresh = int(rng.hypergeometric(block - before, before, drawn))
        names = np.fromiter(inside, dtype=np.int64)
        for rank in rng.choice(names, fresh, replace=False, shuffle=False).tolist():
            done.append((rank, inside.pop(rank), number - 1))
        shell = rng.choice(block - before, fresh, replace=False, shuffle=False) + before
        inside.update((int(rank), number) for rank in shell)
    done.extend((rank, entered, len(blocks) - 1) for rank, entered in inside.items())
    table = np.array(sorted(done), dtype=np.int64).reshape(-1, 3)
    return RankDraw(_around(apart, table[:, 0]), table[:, 1], table[:, 2])


def _around(apart: Ints, ranks: Ints) -> Ints:
    """Ranks among the rows that were not set aside to ranks in the whole collection."""
    before = np.searchsorted(apart - np.arange(len(apart)), ranks, side="right")
    return ranks + before


def block_sizes(smallest: int, largest: int, ratio: float = RATIO) -> list[int]:
    """The blocks that may be chosen: each a little larger than the one before."""
    sizes = [min(smallest, largest)]
    while sizes[-1] < largest:
        sizes.append(min(largest, max(sizes[-1] + 1, round(sizes[-1] * ratio))))
    return sizes
