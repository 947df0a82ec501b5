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
    """Count an array of finite scores."""
    edges = np.asarray(marks, dtype=np.float64)
    passed = np.searchsorted(edges, scores, side="right")  # marks at or below each score
    reached = np.bincount(passed, minlength=len(edges) + 1)[::-1].cumsum()[::-1][1:]
    exact = (passed > 0) & (edges[passed - 1] == scores)
    return PoolCounts(
        len(scores),
        tuple(reached.tolist()),
        int(np.count_nonzero(scores > edges[-1])),
        int(np.count_nonzero(exact)),
        int(np.count_nonzero(np.bincount(passed[exact]))),
    )
