"""A pool counted against a few scores of the calibration rows, and what checks of it came to.

Counting is all that is done here, on arrays; tables count in their own package. What the counts mean is
worked out in ``promises.pool_checks``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from surelist._arrays import Floats
from surelist._dataclasses import dataclass

BLOCK = 1 << 14  # scores at a time: they stay in the processor's cache


class PoolCounts(Struct, frozen=True):
    """Candidates with a score, counted against rising ``marks``: the calibration rows' lowest score first,
    their highest last.

    ``at_least`` counts scores at or above each mark, ``above`` those beyond the last; ``equal`` those
    that are exactly a mark, and ``met`` the marks that are somebody's score.
    """

    candidates: int
    at_least: tuple[int, ...]
    above: int
    equal: int
    met: int

    @classmethod
    def of(cls, candidates: int, at_least: Sequence[int], above: Sequence[int]) -> PoolCounts:
        """From how many scores are at least, and above, each mark."""
        equal = [reached - over for reached, over in zip(at_least, above, strict=True)]
        return cls(candidates, tuple(at_least), above[-1], sum(equal), sum(map(bool, equal)))

    @property
    def outside(self) -> int:
        """Candidates below the first mark or above the last."""
        return self.candidates - self.at_least[0] + self.above


@dataclass(frozen=True)
class PoolCheck:
    """One comparison of a pool with what was calibrated: a sentence, and whether it is a warning.

    ``kind``: pool size, share, range, drift, calibration rows. ``gap`` is what a drift is measured by: how
    far apart the shares of pool and calibration rows are that reach some score.
    """

    kind: str
    warns: bool
    message: str
    group: str | None = None
    gap: float | None = None


def count_scores(scores: Floats, marks: Sequence[float]) -> PoolCounts:
    """Count an array of finite scores, block by block."""
    reached = np.zeros((2, len(marks)), dtype=np.int64)
    for at in range(0, len(scores), BLOCK):
        block = scores[at : at + BLOCK]
        for number, mark in enumerate(marks):
            reached[0, number] += np.count_nonzero(block >= mark)
            reached[1, number] += np.count_nonzero(block > mark)
    at_least, above = reached.tolist()
    return PoolCounts.of(len(scores), at_least, above)
