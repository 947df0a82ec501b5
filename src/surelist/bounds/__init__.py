"""Theorems: numbers in, numbers out. Nothing in this package sees data, files or front ends.

Examples
--------
>>> import surelist as sl
>>> sl.bounds.critical_count(n=10_000, rate=0.05, alpha=0.1, rule="exact")
529
"""

from surelist.bounds.counts import (
    RULES,
    bernstein_k,
    bernstein_worst,
    binomial_tail,
    bins_critical_count,
    certifies,
    critical_count,
    dkw_epsilon,
    exact_interval,
    excess_count,
    excess_paper,
    largest_rate,
    pac_rate,
    pool_beside_count,
    pool_certifies,
    pool_critical_count,
    pool_tail,
    simultaneous_family,
)

__all__ = [
    "RULES",
    "bernstein_k",
    "bernstein_worst",
    "binomial_tail",
    "bins_critical_count",
    "certifies",
    "critical_count",
    "dkw_epsilon",
    "exact_interval",
    "excess_count",
    "excess_paper",
    "largest_rate",
    "pac_rate",
    "pool_beside_count",
    "pool_certifies",
    "pool_critical_count",
    "pool_tail",
    "simultaneous_family",
]
