"""Every method of the comparison, fitted to one group's calibration rows, and what its lists hold.

A method that refuses (its target is not certifiable from these rows) shortlists everyone, as a
screening without a rule would, and the refusal is recorded. Methods that decide by score need two
counts per threshold: how many candidates score at least as high, and how many qualified ones.
Random choices (a last bin, a tie) enter with their probabilities and are never drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import surelist as sl
from paper import baselines
from paper.baselines import Bands, NotEnoughRows, PoolShortlists
from paper.screening import Floats, Mask, Scored

PoolRule = Callable[[Any, float, Any], PoolShortlists]

BINS = (1, 2, 3, 4, 5)
UMB = tuple(f"UMB {bins}" for bins in BINS)
METHODS = ("CSS", "Exact", *UMB, "Uncalibrated", "Platt", "Isotonic", "Oracle")
DIVERSITY = "CSS (Diversity)"
NO_DIVERSITY = "CSS (No Diversity)"

EVERYONE = Bands("everyone", (-np.inf,), (1.0,), "not certifiable; everyone is shortlisted")
BLOCK = 512  # pools; their arrays then stay in the processor's cache


class Outcome(NamedTuple):
    """Per pool on average: candidates on the list, and qualified ones among them."""

    size: float
    qualified: float


@dataclass(frozen=True)
class Fitted:
    """Methods that decide by score, methods that look at whole pools, and those that refused."""

    bands: dict[str, Bands] = field(default_factory=dict)
    pool_rules: dict[str, PoolRule] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def add(self, name: str, make: Callable[[], Bands]) -> None:
        """A method that decides by score."""
        try:
            self.bands[name] = make()
        except (sl.NotCertifiable, NotEnoughRows):
            self.bands[name] = EVERYONE
            self.refused.add(name)

    def add_css(self, name: str, rows: Scored, target: sl.Expected, alpha: float, rule: Any = "dkw") -> None:
        """The paper's method, or surelist's with the exact rule."""

        def make() -> Bands:
            policy = sl.calibrate(rows.scores, rows.qualified, target, alpha=alpha, rule=rule)
            return Bands(name, (policy.threshold,), (1.0,), policy.promise)

        self.add(name, make)

    def average(self, pools: Scored, k: float, member: Mask | None = None) -> dict[str, Outcome]:
        """Every method, averaged over pools of equal size, one per row; ``member``: who is in the group.

        With all candidates once: the plug-in expectation.
        """
        inside = slice(None) if member is None else member.ravel()
        scores, qualified = pools.scores.ravel()[inside], pools.qualified.ravel()[inside]
        return self._by_score(scores, qualified, float(len(pools.scores))) | self._by_pool(pools, k, member)

    def _by_score(self, scores: Floats, qualified: Mask, per: float) -> dict[str, Outcome]:
        positives = scores[qualified]
        reached = {
            t: (np.count_nonzero(scores >= t), np.count_nonzero(positives >= t))
            for t in {t for each in self.bands.values() for t in each.thresholds}
        }
        outcomes = {}
        for name, each in self.bands.items():
            counts = np.array([reached[t] for t in each.thresholds], dtype=np.float64).T
            size, hits = (float(np.diff(count, prepend=0.0) @ each.chances) for count in counts)
            outcomes[name] = Outcome(size / per, hits / per)
        return outcomes

    def _by_pool(self, pools: Scored, k: float, member: Mask | None) -> dict[str, Outcome]:
        """Methods that look at whole pools, a few hundred pools at a time."""
        sums = {name: np.zeros(2) for name in self.pool_rules}
        for start in range(0, len(pools.scores), BLOCK):
            part = slice(start, start + BLOCK)
            hits = pools.qualified[part].astype(np.float64).ravel()
            for name, rule in self.pool_rules.items():
                chance = rule(pools.scores[part], k, None if member is None else member[part]).chance
                sums[name] += chance.sum(), chance.ravel() @ hits
        return {name: Outcome(*(total / len(pools.scores)).tolist()) for name, total in sums.items()}


def fit(rows: Scored, target: sl.Expected, alpha: float, css: str = "CSS") -> Fitted:
    """All methods but the oracle, from the same calibration rows; the paper's under the name ``css``."""
    labelled = (rows.scores, rows.qualified)
    fitted = Fitted()
    fitted.add_css(css, rows, target, alpha)
    fitted.add_css("Exact", rows, target, alpha, "exact")
    fitted.add("Isotonic", partial(baselines.isotonic, *labelled, target))
    for name, bins in zip(UMB, BINS, strict=True):
        fitted.add(name, partial(baselines.umb, *labelled, target, bins=bins, alpha=alpha))
    fitted.pool_rules["Uncalibrated"] = baselines.uncalibrated
    fitted.pool_rules["Platt"] = baselines.platt(*labelled).shortlist
    return fitted
