"""What each list length would carry where whole pools are the units, or an average is bet on [theory: pools].

Each point holds by itself, for a promise fixed beforehand, by the rule and the draw of the policy at hand.
Rows that are units of their own are in ``promise_curve``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist.filters import ranks_within
from surelist.promises.averages import Average, other_numbers
from surelist.promises.curve import CurveKind, PromiseCurve, count_at_least, list_thresholds
from surelist.promises.pools import NextPool, PoolRows
from surelist.promises.state import Cutoff
from surelist.promises.targets import Expected, PerPool

Floats = NDArray[np.float64]
POINTS = 200.0
NUMBERS = 16  # averages that are tried
MOST_ROWS = 100_000  # for which they are: each takes about twenty passes


def pool_curve(scores: Floats, labels: Any, pools: Any, cutoff: Cutoff) -> PromiseCurve | None:
    """The curve of a promise about whole pools, or of an average of values; None where there is none."""
    target, proof = cutoff.target, cutoff.proof
    values = np.asarray(labels, dtype=np.float64)
    if isinstance(proof, NextPool) and isinstance(target, PerPool) and pools is not None:
        codes, number = check.as_codes(pools, len(scores))
        rows = PoolRows.of(scores, values > 0, codes, number, target.by)
        ordered = ranks_within(scores, codes) if target.by == "rank" else scores
        return _next_pool(ordered, rows, cutoff.steps[0].threshold, target, proof.rank)
    if not isinstance(proof, Average) or not isinstance(target, Expected) or len(scores) > MOST_ROWS:
        return None
    if proof.unit == "pool" and pools is None:
        return None
    codes, number = (
        (np.arange(len(scores)), len(scores)) if proof.unit == "row" else check.as_codes(pools, len(scores))
    )
    worth = values if target.of == "value" else values > 0
    return _average(scores, PoolRows.of(scores, worth, codes, number), cutoff, target, proof)


def _next_pool(scores: Floats, rows: PoolRows, chosen: float, target: PerPool, rank: int) -> PromiseCurve:
    """At each threshold what all labelled pools reach, but for as many as the rule lets fall short."""
    thresholds, per_pool = list_thresholds(scores, POINTS), 1 / rows.pools
    of_pool = np.bincount(rows.codes, minlength=rows.pools)
    held, values, before = np.zeros(rows.pools), [], 0
    for count in count_at_least(rows.scores, thresholds).tolist():
        held += np.bincount(rows.codes[before:count], minlength=rows.pools)
        before = count
        reached = held if target.recall is None else _shares(held, of_pool)
        values.append(float(np.partition(reached, rank - 1)[rank - 1]))
    listed = count_at_least(scores, thresholds) * per_pool
    on_list = float(np.count_nonzero(scores >= chosen)) * per_pool
    kind: CurveKind = "next-pool" if target.recall is None else "pool-recall"
    promised = float(target.k if target.recall is None else target.recall)
    return PromiseCurve(
        kind, len(scores) * per_pool, listed, np.asarray(values), thresholds, (on_list, promised)
    )


def _shares(held: Floats, of_pool: NDArray[Any]) -> Floats:
    """Of the qualified candidates of each pool, those held; all of none."""
    shares: Floats = np.divide(held, of_pool, out=np.ones(len(held)), where=of_pool > 0)
    return shares


def _average(
    scores: Floats, rows: PoolRows, cutoff: Cutoff, target: Expected, proof: Average
) -> PromiseCurve:
    """For some averages the list that the same draw certifies; the promise's own is the policy's."""
    per_row = 1.0 if target.pool_size is None else float(target.pool_size)
    per = len(scores) / rows.pools if target.pool_size is None else per_row
    most = float(rows.totals(rows.qualified).mean()) * per_row
    tried = [float(k) for k in np.linspace(0, most, NUMBERS + 1)[1:] if k != target.k]
    points = [
        *other_numbers(rows, target, cutoff.level, proof, tried),
        (float(target.k), cutoff.steps[0].threshold),
    ]
    certified, thresholds = (np.asarray(each) for each in zip(*points, strict=True))
    lengths = np.asarray([np.count_nonzero(scores >= each) for each in thresholds]) * (per / len(scores))
    order = np.lexsort((certified, lengths))
    reached = np.maximum.accumulate(certified[order])
    last = np.append(np.diff(lengths[order]) > 0, True)
    at = np.flatnonzero(last)
    on_list = float(np.count_nonzero(scores >= cutoff.steps[0].threshold)) * (per / len(scores))
    return PromiseCurve(
        "value" if target.of == "value" else "pool-average", per, lengths[order][at], reached[at],
        thresholds[order][at], (on_list, float(target.k)),
    )  # fmt: skip
