"""What chosen labels would give, for a plan: estimates from a guessed population, never a promise.

Pilots are simulated from the guess, each chooses its block as a labelling would; given the block, chance
to certify and list length follow from the guess. The collection is taken as large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surelist._scipy import special
from surelist.lifecycle.block_design import Layout, Need, choose_block, lay_out, need
from surelist.lifecycle.plan import Needed, PlanRow, Population
from surelist.promises.promise import Promise

Floats = NDArray[np.float64]

RULE = "labelling"
COLLECTION = 100_000
PILOTS = 24
MOST_LABELS = 50_000


def labelling_row(
    target: Promise, alpha: float, labels: int, population: Population, pool_size: float, seed: int
) -> PlanRow:
    """Chance to certify and expected list length with ``labels`` chosen labels."""
    wanted = need(target, COLLECTION)
    layout = lay_out(COLLECTION, min(labels, COLLECTION), wanted, alpha=alpha, future=True)
    rates = np.linspace(0.0, population.base_rate, 4001)
    shares = np.maximum.accumulate(population.listed(rates))
    rng = np.random.default_rng(seed)
    chances, lists, counts = [], [], []
    for _ in range(PILOTS if layout.pilot_labels else 1):
        chance, listed, count = _one(layout, wanted, alpha, shares, rates, rng)
        chances.append(chance)
        lists.append(chance * listed)
        counts.append(count)
    assurance = float(np.mean(chances))
    size = pool_size * float(np.sum(lists) / np.sum(chances)) if assurance > 0.005 else None
    return PlanRow(labels, RULE, round(float(np.mean(counts))), assurance, size, None)


def _one(
    layout: Layout, wanted: Need, alpha: float, shares: Floats, rates: Floats, rng: np.random.Generator
) -> tuple[float, float, float]:
    """One simulated pilot: chance to certify, listed share if certified, critical count of its block."""
    chosen, otherwise, share_of_alpha = 0, None, 1 - layout.fallback
    rest = COLLECTION - layout.apart
    if layout.pilot_labels:
        at = np.sort(rng.random(layout.pilot_labels)) * layout.pilot_block / layout.apart
        good = rng.random(len(at)) < _chance(at, shares, rates)
        wide, share = np.array([float(layout.pilot_block)]), alpha * layout.fallback
        needed = float(wanted.count(layout.apart, wide, layout.pilot_labels, share)[0])
        hits = at[good]
        otherwise = float(hits[int(np.ceil(needed)) - 1]) if len(hits) >= needed else None
        chosen = choose_block(
            at, good, rest, layout.blocks, layout.labels, wanted, alpha * share_of_alpha,
            1.0 if otherwise is None else otherwise,
        )  # fmt: skip
    block = float(layout.blocks[chosen])
    end = block / rest
    count = float(wanted.count(rest, np.array([block]), layout.labels, alpha * share_of_alpha)[0])
    if count > layout.labels:
        return (0.0, 1.0, count) if otherwise is None else (1.0, otherwise, count)
    held = np.clip(np.interp(end, shares, rates) / end, 1e-12, 1 - 1e-12)
    certified = float(special.betainc(count, layout.labels - count + 1, held))
    listed = min(end, float(np.interp(count / layout.labels * end, rates, shares)))
    if otherwise is None:
        return certified, listed, count
    return 1.0, certified * listed + (1 - certified) * otherwise, count


def _chance(at: Floats, shares: Floats, rates: Floats) -> Floats:
    """The chance to be qualified at a rank, from the curve of qualified by listed share."""
    step = 0.5 * np.clip(at, 1e-3, 0.02)
    high, low = np.minimum(at + step, 1.0), np.maximum(at - step, 0.0)
    rise = np.interp(high, shares, rates) - np.interp(low, shares, rates)
    return np.asarray(np.clip(rise / (high - low), 0.0, 1.0))


def labelling_needs(target: Promise, alpha: float, population: Population, seed: int) -> list[Needed]:
    """About how many chosen labels certify with probability 50 % and 90 %."""
    needs: list[Needed] = []
    labels = 16
    for assurance in (0.5, 0.9):
        while (
            labels <= MOST_LABELS
            and labelling_row(target, alpha, labels, population, 1.0, seed).assurance < assurance
        ):
            labels = round(labels * 1.2)
        needs.append(Needed(assurance, RULE, labels if labels <= MOST_LABELS else None))
    return needs
