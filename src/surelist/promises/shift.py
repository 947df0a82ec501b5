"""A known shift between calibration rows and pools: density ratios, and rows kept by them [theory: shift]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surelist.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """How much more likely each row is in the pools than among the calibration rows, and its bound.

    ``bound`` is fixed beforehand, never the largest ratio of these rows. ``exact=False`` says that the
    ratios are estimates; the promise is then conditional on them.
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
