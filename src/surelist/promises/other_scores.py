"""Unlabelled scores have to be those of other candidates; the calibration rows' own are noticed here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist.errors import InvalidInput

PICKED = 12


def require_others(scores: NDArray[np.float64], unlabelled: NDArray[np.float64]) -> None:
    """Refuse unlabelled scores that hold the calibration rows again.

    A few rows and a few unlabelled scores are picked. Where the two are draws from one population, each is
    as likely to be met (again) among the unlabelled scores as the other, whatever the ties: that all rows are
    met and no unlabelled score is met twice happens by chance in 1 of 2.7 million calibrations.
    """
    if min(len(scores), len(unlabelled)) < PICKED:
        return
    rng = np.random.default_rng(len(unlabelled))  # no promise rests on these picks
    rows, others = (rng.choice(each, PICKED, replace=False) for each in (scores, unlabelled))
    met = all(bool((unlabelled == each).any()) for each in rows)
    if met and not any(int(np.count_nonzero(unlabelled == each)) > 1 for each in others):
        raise InvalidInput(
            "unlabelled",
            "these scores hold the calibration rows' own. They have to be scores of other candidates: "
            "leave the labelled rows out.",
        )
