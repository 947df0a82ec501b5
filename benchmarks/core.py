"""Calibration and selection beside the bare NumPy they cannot do without. Prints ratios.

    python benchmarks/core.py

Each pair is timed alternately in one run, in seconds of the processor (a busy machine changes them little),
and the best of several is compared; peak memory is what NumPy allocates beyond the inputs (tracemalloc).
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import surelist as sl
from figures import Figure, show
from surelist import bounds


def best(*calls: Callable[[], object], rounds: int = 9) -> list[float]:
    """Best seconds of each call, taken in turns so that all see the same machine."""
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            start = time.process_time()
            call()
            found[place] = min(found[place], time.process_time() - start)
    return found


def peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def figures() -> list[Figure]:
    rng = np.random.default_rng(0)
    found = []
    for n in (10**6, 10**7):
        scores = rng.random(n)
        labels = rng.random(n) < 0.19
        count = bounds.critical_count(n, 0.05, 0.1)
        policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
        threshold = policy.threshold

        def bare(scores=scores, labels=labels, count=count):
            chosen = scores[labels]
            return np.partition(chosen, len(chosen) - count)[len(chosen) - count]

        def ours(scores=scores, labels=labels):
            return sl.calibrate(scores, labels, sl.Expected(5, 100)).threshold

        assert bare() == ours()
        found += compared("calibrate arrays", n, bare, ours, 2.5)
        select = compared(
            "select arrays", n, lambda s=scores, t=threshold: s >= t, lambda s=scores, p=policy: p.select(s),
            2 if n == 10**6 else 1.7,
        )  # fmt: skip
        found += select
    return [*found, unlabelled(rng)]


def unlabelled(rng: np.random.Generator) -> Figure:
    """20,000 calibration rows and ten million scores of others, beside one order statistic of those."""
    scores, others = rng.random(20_000), rng.random(10**7)
    labels = rng.random(20_000) < 0.4 * scores
    slow, fast = best(
        lambda: np.partition(others, 9 * 10**6),
        lambda: sl.calibrate(scores, labels, sl.Expected(5, 100), unlabelled=others),
    )
    return Figure("calibrate with unlabelled=", "10,000,000 scores", fast / slow, 2)


def compared(
    job: str, n: int, bare: Callable[[], object], ours: Callable[[], object], limit: float
) -> list[Figure]:
    slow, fast = best(bare, ours)
    where = f"{n:,} rows"
    return [
        Figure(job, where, fast / slow, limit),
        Figure(f"{job}, memory", where, peak(ours) / peak(bare), 1.3),
    ]


if __name__ == "__main__":
    show(figures())
