"""One simulated screening process: who takes part, the two halves, the classifier and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import surelist as sl
from paper.data import People

GROUPS = ("majority", "minority")
GROUP_LEVELS = ("split", "each")

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Setup:
    """The paper's numbers. ``group_level``: alpha/2 per group (Algorithm 3), or alpha in each."""

    pool_size: int = 100
    k: float = 5
    alpha: float = 0.1
    qualified_share: float = 0.2
    train_rows: int = 10_000
    calibration_rows: int = 10_000
    pools: int = 1_000
    group_level: str = "split"

    @property
    def group_alpha(self) -> float:
        return self.alpha / len(GROUPS) if self.group_level == "split" else self.alpha


class Halves(NamedTuple):
    """Row numbers of one run: for training, for calibration (in random order), for the pools."""

    train: Index
    calibration: Index
    test: Index


@dataclass(frozen=True)
class Scored:
    """People with their scores."""

    scores: Floats
    qualified: Mask
    minority: Mask

    def noisy(self, ratio: float, rng: np.random.Generator, minority_only: bool) -> Scored:
        """Each score replaced, with probability ``ratio``, by a draw from Beta(1, 4)."""
        if ratio == 0:
            return self
        replaced = rng.random(len(self.scores)) < ratio
        if minority_only:
            replaced &= self.minority
        scores = self.scores.copy()
        uniform = rng.random(int(np.count_nonzero(replaced)))
        scores[replaced] = 1 - np.sqrt(np.sqrt(1 - uniform))  # the inverse of Beta(1,4)'s CDF
        return Scored(scores, self.qualified, self.minority)

    def take(self, rows: Any) -> Scored:
        return Scored(self.scores[rows], self.qualified[rows], self.minority[rows])


def split(population: People, grouped: bool, setup: Setup, rng: np.random.Generator) -> Halves:
    """Leave people out until the wanted share is qualified (per group), then cut in two halves."""
    kept = np.zeros(len(population), dtype=np.bool_)
    odds = setup.qualified_share / (1 - setup.qualified_share)
    for part in (population.minority, ~population.minority) if grouped else (True,):
        wins, rest = (np.flatnonzero(each & part) for each in (population.qualified, ~population.qualified))
        keep = min(len(wins), round(len(rest) * odds))
        other = min(len(rest), round(keep / odds)) if keep == len(wins) else len(rest)
        for there, count in ((wins, keep), (rest, other)):  # everyone of the kind there is too little of
            kept[rng.choice(there, count, replace=False)] = True
    order = rng.permutation(np.flatnonzero(kept))
    half = len(order) // 2
    first, second = order[:half], order[half:]
    if half <= setup.train_rows:
        raise sl.InvalidInput(
            "data", f"half of {len(order):,} people is too few for {setup.train_rows:,} training rows."
        )
    whole = len(second) // setup.pool_size * setup.pool_size  # pools without remainder
    return Halves(first[: setup.train_rows], first[setup.train_rows :], second[:whole])


@dataclass(frozen=True)
class Classifier:
    """A logistic model on the raw features."""

    weights: Floats
    intercept: float

    def score(self, population: People, rows: Index) -> Scored:
        """Its probabilities for these people."""
        linear = population.features[rows].astype(np.float64) @ self.weights + self.intercept
        return Scored(1 / (1 + np.exp(-linear)), population.qualified[rows], population.minority[rows])


def train(population: People, rows: Index) -> Classifier:
    """Logistic regression on standardised features, L2 strength C = 1/(1e-6 n)."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise sl.MissingDependency(
            "paper: scikit-learn trains the classifier; pip install 'surelist[sklearn,plots]'."
        ) from error
    features = population.features[rows].astype(np.float64)
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale == 0] = 1.0
    fitted = LogisticRegression(C=1 / (1e-6 * len(rows)), max_iter=1000)
    fitted.fit((features - centre) / scale, population.qualified[rows])
    weights = fitted.coef_[0] / scale
    return Classifier(weights, float(fitted.intercept_[0] - weights @ centre))
