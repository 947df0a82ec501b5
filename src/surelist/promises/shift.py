"""A known shift between calibration rows and pools: density ratios, and rows kept by them [theory: shift]."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist.errors import InvalidInput
from surelist.promises.state import SeedFrom, Shift

THINNING = 0x5EED5EED
SEED_BITS = 53  # a whole number that every reader of JSON can hold


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """How much more likely each row is in the pools than among the calibration rows, and its bound.

    ``bound`` is fixed beforehand, never the largest ratio of these rows. ``exact=False`` says that the
    ratios are estimates; the promise is then conditional on them.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> ratios = np.where(np.arange(1_000) % 2, 0.5, 1.5)  # every other row is thrice as likely in the pools
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100), weights=sl.DensityRatio(ratios, bound=1.5))
    >>> 550 < policy.cutoffs[0].rows < 780  # about 1,000 / 1.5 rows are kept
    True
    """

    ratios: Any
    bound: float
    exact: bool = False

    def unpack(self, bound: float | None, exact: bool) -> tuple[Any, float, bool]:
        """Ratios, bound and whether they are exact; not said twice."""
        if bound is not None or exact:
            raise InvalidInput(
                "weight_bound: DensityRatio has its own bound; leave weight_bound and weights_exact out."
            )
        return self.ratios, self.bound, self.exact


def keep_rows(
    weights: Any, bound: float | None, exact: bool, seed: int | None, rows: int
) -> tuple[NDArray[np.bool_] | None, Shift | None]:
    """Rejection sampling [theory: shift]: the kept rows are i.i.d. from the pool's population."""
    if (weights is None) != (bound is None):
        raise InvalidInput("weights: weights= and weight_bound= go together; give both or neither.")
    if weights is None or bound is None:
        return None, None
    bound = check.as_positive(bound, "weight_bound")
    ratio = check.as_weights(weights, rows, bound) / bound
    origin: SeedFrom = "system" if seed is None else "caller"
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput(f"seed: expected a whole number of at least 0, got {seed!r}.")
    # a stream of our own: the same seed elsewhere must not be the same numbers as here
    kept = np.random.default_rng([int(seed), THINNING]).random(rows) < ratio
    if not kept.any():
        raise InvalidInput("weights: no calibration row was kept; weight_bound is far too large.")
    return kept, Shift(bound, rows, int(seed), check.as_flag(exact, "weights_exact"), origin)
