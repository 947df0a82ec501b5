"""From rows to a table of means, and from that to the paper's claims: holds or does not hold.

Nothing here decides what ought to come out. A claim is a sentence (in our words), the number
measured for it, and whether the number bears it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from surelist._dataclasses import dataclass
from surelist._scipy import special
from surelist.paper.experiments import EXPERIMENTS, Measurement

FAILS = 0.01  # a method fails a setting if so few successes have a chance below this


@dataclass(frozen=True)
class Cell:
    """One method, group and setting over all runs: means, standard error of EQ, deviation of SS."""

    experiment: str
    setting: float
    method: str
    group: str
    runs: int
    eq: float
    eq_se: float
    ss: float
    ss_sd: float
    qualified: float
    k: float
    refused: int
    eq_pools: float
    ss_pools: float

    def fails(self, level: float) -> bool:
        """Too few successes for a method that reaches k with probability ``level``."""
        wins = round(self.eq * self.runs)
        return float(special.bdtr(wins, self.runs, level)) < FAILS


def summarise(rows: Sequence[Measurement]) -> list[Cell]:
    """Means over the runs, in the order of experiments, settings and methods."""

    order = {name: number for number, name in enumerate(EXPERIMENTS)}

    def key(row: Measurement) -> tuple[int, float, str, str]:
        return order[row.experiment], row.setting, row.group, row.method

    return [_cell(list(same)) for _, same in groupby(sorted(rows, key=key), key)]


def _cell(rows: list[Measurement]) -> Cell:
    first, runs = rows[0], len(rows)
    eq = sum(row.eq for row in rows) / runs
    sizes = np.array([row.ss for row in rows])
    return Cell(
        experiment=first.experiment,
        setting=first.setting,
        method=first.method,
        group=first.group,
        runs=runs,
        eq=eq,
        eq_se=math.sqrt(eq * (1 - eq) / runs),
        ss=float(sizes.mean()),
        ss_sd=float(sizes.std(ddof=1)) if runs > 1 else 0.0,
        qualified=sum(row.qualified for row in rows) / runs,
        k=sum(row.k for row in rows) / runs,
        refused=sum(not row.certified for row in rows),
        eq_pools=sum(row.eq_pools for row in rows) / runs,
        ss_pools=sum(row.ss_pools for row in rows) / runs,
    )


def expected_level(alpha: float, calibration_rows: float, test_rows: float) -> float:
    """How often a rule at exactly 1-alpha is *seen* to hold, judged on this many test rows.

    The test half has an error of its own; on top of the calibration rows' it adds their ratio
    to the variance. Normal approximation.
    """
    z = special.ndtri(1 - alpha)
    return float(special.ndtr(z / math.sqrt(1 + calibration_rows / test_rows)))
