"""The paper's baselines and oracles, for comparison with certified policies.

``umb`` has a guarantee (longer lists for it); ``uncalibrated``, ``platt`` and ``isotonic`` have
none and say so in every result; the oracles need what nobody has, the true probabilities.
None of them is recommended for use: ``surelist.calibrate`` is.

Examples
--------
>>> import numpy as np
>>> import surelist as sl
>>> from surelist.examples import population
>>> scores, labels = population(np.random.default_rng(6), 1_000)
>>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100), rule="dkw")  # the paper's own rule
>>> policy.cutoffs[0].steps[0].critical_count
89
"""

from paper.baselines.methods import (
    AverageCalibration,
    PlattMap,
    average_calibration,
    isotonic,
    platt,
    umb,
    uncalibrated,
)
from paper.baselines.oracles import (
    CalibratedOracle,
    Impossibility,
    calibrated_oracle,
    coarsen,
    dominates,
    impossibility,
    omniscient,
    oracle_threshold,
)
from paper.baselines.results import NO_GUARANTEE, Bands, NotEnoughRows, PoolShortlists

__all__ = [
    "NO_GUARANTEE",
    "AverageCalibration",
    "Bands",
    "CalibratedOracle",
    "Impossibility",
    "NotEnoughRows",
    "PlattMap",
    "PoolShortlists",
    "average_calibration",
    "calibrated_oracle",
    "coarsen",
    "dominates",
    "impossibility",
    "isotonic",
    "omniscient",
    "oracle_threshold",
    "platt",
    "umb",
    "uncalibrated",
]
