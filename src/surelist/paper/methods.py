"""Every method of the comparison, fitted to one group's calibration rows.

A method that refuses (its target is not certifiable from these rows) shortlists everyone, as a
screening without a rule would, and the refusal is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surelist as sl
from surelist._dataclasses import dataclass
from surelist.baselines import Bands, PoolShortlists

PoolRule = Callable[[Any, float, Any], PoolShortlists]

BINS = (1, 2, 3, 4, 5)
UMB = tuple(f"UMB {bins}" for bins in BINS)
CERTIFIED = ("CSS", "Exact", *UMB)
UNCERTIFIED = ("Uncalibrated", "Platt", "Isotonic")
METHODS = (*CERTIFIED, *UNCERTIFIED, "Oracle")
DIVERSITY = "CSS (Diversity)"
NO_DIVERSITY = "CSS (No Diversity)"

EVERYONE = Bands("everyone", (-np.inf,), (1.0,), "not certifiable; everyone is shortlisted")


@dataclass(frozen=True)
class Fitted:
    """Methods that decide by score, methods that look at whole pools, and those that refused."""

    bands: dict[str, Bands]
    pool_rules: dict[str, PoolRule]
    refused: frozenset[str]

    def renamed(self, old: str, new: str) -> Fitted:
        """The same with one method that decides by score under another name."""
        bands = {new if name == old else name: each for name, each in self.bands.items()}
        refused = frozenset(new if name == old else name for name in self.refused)
        return Fitted(bands, self.pool_rules, refused)

    def beside(self, other: Fitted) -> Fitted:
        """These methods and those."""
        return Fitted(
            self.bands | other.bands, self.pool_rules | other.pool_rules, self.refused | other.refused
        )


def fit(
    scores: NDArray[np.float64], qualified: NDArray[np.bool_], target: sl.Expected, alpha: float
) -> Fitted:
    """All methods but the oracle, from the same calibration rows."""
    makers: dict[str, Callable[[], Bands]] = {
        "CSS": lambda: _threshold("CSS", sl.calibrate(scores, qualified, target, alpha=alpha, rule="dkw")),
        "Exact": lambda: _threshold("Exact", sl.calibrate(scores, qualified, target, alpha=alpha)),
        "Isotonic": lambda: sl.baselines.isotonic(scores, qualified, target),
    }
    for name, bins in zip(UMB, BINS, strict=True):
        makers[name] = _umb(scores, qualified, target, alpha, bins)
    bands, refused = {}, set()
    for name, make in makers.items():
        try:
            bands[name] = make()
        except sl.NotCertifiable:
            bands[name] = EVERYONE
            refused.add(name)
    mapped = sl.baselines.platt(scores, qualified)
    rules: dict[str, PoolRule] = {"Uncalibrated": sl.baselines.uncalibrated, "Platt": mapped.shortlist}
    return Fitted(bands, rules, frozenset(refused))


def fit_css(
    scores: NDArray[np.float64], qualified: NDArray[np.bool_], target: sl.Expected, alpha: float
) -> Fitted:
    """CSS alone, for everyone alike: what the paper calls CSS (No Diversity)."""
    try:
        policy = sl.calibrate(scores, qualified, target, alpha=alpha, rule="dkw")
    except sl.NotCertifiable:
        return Fitted({NO_DIVERSITY: EVERYONE}, {}, frozenset({NO_DIVERSITY}))
    return Fitted({NO_DIVERSITY: _threshold(NO_DIVERSITY, policy)}, {}, frozenset())


def oracle(scores: NDArray[np.float64], qualified: NDArray[np.bool_], target: sl.Expected) -> Fitted:
    """The best threshold for the very candidates that pools are drawn from."""
    return Fitted({"Oracle": sl.baselines.oracle_threshold(scores, qualified, target)}, {}, frozenset())


def _umb(scores: Any, qualified: Any, target: sl.Expected, alpha: float, bins: int) -> Callable[[], Bands]:
    return lambda: sl.baselines.umb(scores, qualified, target, bins=bins, alpha=alpha)


def _threshold(name: str, policy: sl.Policy) -> Bands:
    return Bands(name, (policy.threshold,), (1.0,), policy.promise)
