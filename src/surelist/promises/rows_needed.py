"""How many rows a refused target would take: an estimate, for the way out that a refusal names."""

from __future__ import annotations

import math
from dataclasses import replace

from surelist import bounds
from surelist.promises.targets import MOST_ROWS, Level, PerPool, Target


def first_count(target: Target, rows: int, qualified: int, level: Level) -> int:
    """The count that the smallest pool needs, which is the largest, without those of all other sizes."""
    smallest = target.sizes[0] if isinstance(target, PerPool) else 0
    return target.count_at(smallest, rows, qualified, level)


def estimate_rows(target: Target, rows: int, qualified: int, level: Level) -> int | None:
    """About how many rows certify the target at the share of qualified rows seen; None if never."""
    if qualified <= rows * target.limit_rate(level):
        return None

    def enough(n: int) -> bool:
        available = math.floor(n * qualified / rows)
        return _count_about(target, n, available, level) <= available

    high = max(rows, 2)
    while not enough(high):
        high *= 2
        if high > MOST_ROWS:
            return None
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _count_about(target: Target, rows: int, qualified: int, level: Level) -> int:
    """``first_count``, where the rule is the simultaneous one by the paper's band: a family takes seconds."""
    if isinstance(target, PerPool) and level.rule == "pac" and target.sizes[0] < target.sizes[1]:
        rate = bounds.pac_rate(target.k, target.sizes[0], level.pool_alpha)
        return bounds.critical_count(rows, rate, level.calibration_alpha, "dkw")
    if level.rule == "simultaneous":
        level = replace(level, rule="dkw")
    return first_count(target, rows, qualified, level)
