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


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'job':<34}{'rows':>12}{'bare ms':>10}{'ours ms':>10}{'time x':>8}{'memory x':>10}")
    for n in (10**6, 10**7):
        scores = rng.random(n)
        labels = rng.random(n) < 0.19
        count = bounds.critical_count(n, 0.05, 0.1)
        policy = sl.calibrate(scores, labels, sl.Expected(5, 100))

        def bare(scores=scores, labels=labels, count=count):
            chosen = scores[labels]
            return np.partition(chosen, len(chosen) - count)[len(chosen) - count]

        def ours(scores=scores, labels=labels):
            return sl.calibrate(scores, labels, sl.Expected(5, 100)).threshold

        assert bare() == ours()
        report("calibrate", n, bare, ours)
        threshold = policy.threshold
        report("select", n, lambda s=scores, t=threshold: s >= t, lambda s=scores, p=policy: p.select(s))
    for n in (10**3, 10**6, 10**9):
        (seconds,) = best(lambda n=n: bounds.critical_count(n, 0.05, 0.1), rounds=50)
        print(f"{'critical_count(exact)':<34}{n:>12,}{'':>10}{1000 * seconds:>10.4f}")


def report(job: str, n: int, bare: Callable[[], object], ours: Callable[[], object]) -> None:
    slow, fast = best(bare, ours)
    memory = peak(ours) / peak(bare)
    print(f"{job:<34}{n:>12,}{1000 * slow:>10.2f}{1000 * fast:>10.2f}{fast / slow:>8.2f}{memory:>10.2f}")


if __name__ == "__main__":
    main()
