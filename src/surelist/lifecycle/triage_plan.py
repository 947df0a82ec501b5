"""How many candidates a triage leaves to people, before anything is labelled [theory: planning]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelist.errors import NotCertifiable
from surelist.lifecycle.plan import Plan, PlanRow
from surelist.lifecycle.populations import PER, Population, RateByShare
from surelist.promises.evidence import ArrayCounts, Evidence, RowColumns
from surelist.promises.promise import Level

SIZES = (100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000)
RUNS = 60
CELLS = 200  # of the population, by score: within one, candidates are as likely to be qualified
OTHERS = 4_000


def plan_triage(
    target: Any,
    alpha: float,
    sizes: Sequence[int] | None,
    best: Population,
    basis: str,
    pools: int,
    seed: int,
) -> Plan:
    """The triage itself on simulated rows: how often it is certified, and the band that is left."""
    rng, edges = np.random.default_rng(seed), np.linspace(0.0, 1.0, CELLS + 1)
    chance = np.clip(
        np.diff(RateByShare(best).rate(edges)) * CELLS, 0.0, 1.0
    )  # of being qualified, best scores first
    oracle = PER * _ideal(target, chance)
    others = 1 - (np.arange(OTHERS) + 0.5) / OTHERS
    rows = []
    for n in sizes or SIZES:
        bands = []
        for _ in range(RUNS):
            scores = rng.random(n)
            good = rng.random(n) < chance[((1 - scores) * CELLS).astype(int).clip(0, CELLS - 1)]
            evidence = Evidence(ArrayCounts.of(scores, good), None, RowColumns(scores, good), others=others)
            try:
                found = target.certify(evidence, Level(alpha))
            except NotCertifiable:
                continue
            bands.append(found.steps[0].threshold - found.proof.looked_from)
        mean = PER * float(np.mean(bands)) if bands else None
        rows.append(PlanRow(n, "exact", 0, len(bands) / RUNS, mean, None))
    return Plan(target, alpha, basis, best.base_rate, oracle, tuple(rows), (), pools, None, measure="band")


def _ideal(target: Any, chance: np.ndarray[Any, Any]) -> float:
    """The share of candidates between the longest lists that keep both promises, the population known."""
    many = np.arange(1, CELLS + 1)
    accepted = np.cumsum(chance) >= target.accept * many
    first = float(many[accepted].max(initial=0)) / CELLS
    if target.reject is not None:
        rejected = np.cumsum(1 - chance[::-1]) >= target.reject * many
    else:
        rejected = np.cumsum(chance[::-1]) <= (1 - target.reject_recall) * chance.sum()
    last = float(many[rejected].max(initial=0)) / CELLS
    return math.nan if first == 0 or last == 0 else max(0.0, 1 - first - last)
