"""People made up from margins of a census file, for whoever has no census file at hand.

Not census records: every person is drawn from the tables below, which are margins of the 2018
American Community Survey (14 states), rounded. Sizes of age bands, races, schooling, marriage,
disability, service and employment by age and sex agree with them; of the joint distribution
only what is written here. Good enough for the paper's conclusions, not for demography.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.data import FEATURES, People

ROWS = 1_200_000

Ints = NDArray[np.int64]

# One row per age band.
AGE_FROM = np.array([0, 16, 20, 25, 35, 45, 55, 60, 65, 70, 75])
AGE_TO = np.array([15, 19, 24, 34, 44, 54, 59, 64, 69, 74, 94])
AGE_SHARE = np.array([0.1745, 0.0533, 0.0535, 0.1109, 0.1084, 0.1206, 0.0767, 0.0795, 0.0747, 0.0563, 0.0917])
EMPLOYED_MEN = np.array([0, 0.307, 0.613, 0.778, 0.810, 0.802, 0.741, 0.602, 0.355, 0.219, 0.102])
EMPLOYED_WOMEN = np.array([0, 0.378, 0.684, 0.719, 0.747, 0.746, 0.673, 0.523, 0.293, 0.167, 0.049])
WHITE = np.array([0.769, 0.783, 0.776, 0.795, 0.806, 0.826, 0.860, 0.872, 0.882, 0.888, 0.886])
DISABLED = np.array([0.041, 0.078, 0.081, 0.076, 0.088, 0.127, 0.175, 0.201, 0.232, 0.280, 0.509])
HEARING = np.array([0.005, 0.008, 0.010, 0.012, 0.015, 0.027, 0.045, 0.061, 0.093, 0.130, 0.250]) / DISABLED
SEEING = np.array([0.007, 0.014, 0.014, 0.012, 0.016, 0.026, 0.032, 0.036, 0.037, 0.042, 0.097]) / DISABLED
THINKING = np.array([0.031, 0.058, 0.052, 0.048, 0.048, 0.053, 0.062, 0.056, 0.051, 0.059, 0.157]) / DISABLED
STAYED = np.array([0.826, 0.747, 0.672, 0.769, 0.872, 0.915, 0.931, 0.938, 0.947, 0.952, 0.931])
SERVED_MEN = np.array([0, 0.017, 0.092, 0.106, 0.112, 0.157, 0.181, 0.183, 0.331, 0.546, 0.589])
HOUSEHOLDER = np.array([0, 0.022, 0.216, 0.431, 0.497, 0.531, 0.566, 0.578, 0.598, 0.610, 0.614])
SPOUSE = np.array([0, 0.002, 0.048, 0.204, 0.303, 0.319, 0.321, 0.326, 0.321, 0.309, 0.214])
CHILD = np.array([0.804, 0.547, 0.305, 0.138, 0.071, 0.040, 0.026, 0.015, 0.005, 0.002, 0.0])
INSTITUTION = np.array([0.004, 0.021, 0.021, 0.029, 0.023, 0.015, 0.009, 0.011, 0.014, 0.018, 0.081])
# Below high school, high school, some college, bachelor's, more; ages 16 and over.
SCHOOLING = np.array([
    [1, 0, 0, 0, 0], [0.537, 0.217, 0.245, 0.001, 0], [0.071, 0.313, 0.473, 0.133, 0.01],
    [0.070, 0.259, 0.337, 0.239, 0.095], [0.078, 0.242, 0.327, 0.224, 0.129],
    [0.080, 0.287, 0.321, 0.196, 0.116], [0.082, 0.322, 0.326, 0.171, 0.099],
    [0.071, 0.319, 0.327, 0.170, 0.113], [0.074, 0.286, 0.319, 0.179, 0.142],
    [0.097, 0.304, 0.286, 0.166, 0.147], [0.170, 0.379, 0.222, 0.129, 0.100],
])  # fmt: skip
# Married, widowed, divorced, separated, never married.
MARRIAGE = np.array([
    [0, 0, 0, 0, 1], [0.011, 0, 0, 0.001, 0.988], [0.120, 0, 0.007, 0.003, 0.870],
    [0.451, 0.002, 0.052, 0.013, 0.482], [0.644, 0.006, 0.118, 0.019, 0.213],
    [0.660, 0.017, 0.173, 0.018, 0.132], [0.662, 0.033, 0.182, 0.016, 0.107],
    [0.668, 0.054, 0.176, 0.011, 0.091], [0.676, 0.090, 0.157, 0.009, 0.068],
    [0.656, 0.135, 0.146, 0.007, 0.056], [0.497, 0.360, 0.097, 0.004, 0.042],
])  # fmt: skip
RACES = np.array([2, 3, 4, 5, 6, 7, 8, 9])
RACE_SHARE = np.array([0.0251, 0.0358, 0.0001, 0.0024, 0.0441, 0.0102, 0.0167, 0.0408])
BORN_ABROAD = np.array([0, 0.029, 0.137, 0.005, 0.0, 0.039, 0.462, 0.121, 0.279, 0.033])  # by RAC1P
# Log odds of employment against the age band's mean, in the order of SCHOOLING.
SCHOOLING_ODDS = np.array([-0.85, -0.25, 0.05, 0.30, 0.50])
DISABLED_ODDS, MINORITY_ODDS, MARRIED_MAN_ODDS = -1.75, -0.25, 0.60


def make(rows: int = ROWS, seed: int = 0) -> People:
    """Draw ``rows`` people; the same rows and seed give the same people."""
    rng = np.random.default_rng([2018, seed])
    band = rng.choice(len(AGE_SHARE), rows, p=AGE_SHARE / AGE_SHARE.sum())
    age = rng.integers(AGE_FROM[band], AGE_TO[band] + 1)
    adult = band > 0
    race = np.where(
        rng.random(rows) < WHITE[band], 1, rng.choice(RACES, rows, p=RACE_SHARE / RACE_SHARE.sum())
    )
    abroad = rng.random(rows) < BORN_ABROAD[race]
    level = _row_choice(rng, SCHOOLING, band)
    marriage = 1 + _row_choice(rng, MARRIAGE, band)
    disabled = rng.random(rows) < DISABLED[band]
    man = rng.random(rows) < 0.5
    relation = _relation(rng, band, marriage == 1)
    columns: dict[str, Any] = {
        "AGEP": age,
        "SCHL": _schooling_code(rng, level, age),
        "MAR": marriage,
        "RELP": relation,
        "DIS": np.where(disabled, 1, 2),
        "ESP": np.where(age < 18, rng.choice([1, 2, 5, 7, 8], rows, p=[0.52, 0.2, 0.06, 0.18, 0.04]), 0),
        "CIT": np.where(abroad, rng.choice([4, 5], rows, p=[0.55, 0.45]), 1),
        "MIG": np.where(age < 1, 0, np.where(rng.random(rows) < STAYED[band], 1, 3)),
        "MIL": np.where(age < 17, 0, np.where(man & (rng.random(rows) < SERVED_MEN[band]), 2, 4)),
        "ANC": rng.choice([1, 2, 3, 4, 8], rows, p=[0.465, 0.301, 0.025, 0.181, 0.028]),
        "NATIVITY": np.where(abroad, 2, 1),
        "DEAR": _difficulty(rng, disabled, HEARING[band]),
        "DEYE": _difficulty(rng, disabled, SEEING[band]),
        "DREM": np.where(age < 5, 0, _difficulty(rng, disabled, THINKING[band])),
        "SEX": np.where(man, 1, 2),
        "RAC1P": race,
    }
    chance = _employment(band, man, level, disabled, race != 1, marriage == 1) * (relation != 16)
    qualified = adult & (rng.random(rows) < chance)
    features = np.stack([columns[name].astype(np.int16) for name in FEATURES], axis=1)
    return People(features, qualified, race != 1, FEATURES, f"synthetic, {rows:,} people", True)


def _employment(
    band: Ints, man: Any, level: Ints, disabled: Any, minority: Any, married: Any
) -> NDArray[np.float64]:
    """Chance of employment: the margin by age and sex, moved by log odds that average out."""
    base = np.where(man, EMPLOYED_MEN[band], EMPLOYED_WOMEN[band]).clip(1e-4, 1 - 1e-4)
    moved = (
        SCHOOLING_ODDS[level] - (SCHOOLING @ SCHOOLING_ODDS)[band]
        + DISABLED_ODDS * (disabled - DISABLED[band])
        + MINORITY_ODDS * (minority - (1 - WHITE[band]))
        + MARRIED_MAN_ODDS * man * (married - MARRIAGE[band, 0])
    )  # fmt: skip
    odds = np.log(base / (1 - base)) * 1.05 + moved
    chance: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
    return chance


def _row_choice(rng: np.random.Generator, table: NDArray[np.float64], row: Ints) -> Ints:
    """A column drawn from each row's distribution."""
    bounds = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.asarray((rng.random(len(row))[:, None] >= bounds[row]).sum(axis=1))


def _schooling_code(rng: np.random.Generator, level: Ints, age: Ints) -> Ints:
    """SCHL codes: a child's grade follows its age, an adult's level has a few codes each."""
    grade = np.clip(age - 3, 0, 13)
    first, width = np.array([8, 16, 18, 21, 22]), np.array([8, 2, 3, 1, 3])
    adult = first[level] + (rng.random(len(level)) * width[level]).astype(np.int64)
    return np.where(age < 16, grade, adult)


def _relation(rng: np.random.Generator, band: Ints, married: Any) -> Ints:
    """RELP: householder 0, spouse 1, child 2, others, institution 16, other group quarters 17."""
    rows = len(band)
    institution = rng.random(rows) < INSTITUTION[band]
    child = rng.random(rows) < CHILD[band] * np.where(married, 0.3, 1.1).clip(0, 1)
    spouse = married & (rng.random(rows) < SPOUSE[band] / np.maximum(MARRIAGE[band, 0], 1e-9))
    rest = HOUSEHOLDER[band] / np.maximum(1 - SPOUSE[band] - CHILD[band] - INSTITUTION[band], 1e-9)
    householder = rng.random(rows) < rest
    other = rng.choice([3, 4, 5, 6, 7, 10, 12, 13, 15, 17], rows)
    return np.select([institution, child, spouse, householder], [16, 2, 1, 0], default=other)


def _difficulty(rng: np.random.Generator, disabled: Any, share: NDArray[np.float64]) -> Ints:
    return np.where(disabled & (rng.random(len(share)) < share), 1, 2)
