"""Theorems: numbers in, numbers out. Nothing in this room sees data, files or front ends."""

from surelist.bounds.counts import (
    RULES,
    bernstein_k,
    bernstein_worst,
    binomial_tail,
    bins_critical_count,
    critical_count,
    dkw_epsilon,
    exact_interval,
    excess_count,
    excess_paper,
    largest_rate,
    pac_rate,
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
    "critical_count",
    "dkw_epsilon",
    "exact_interval",
    "excess_count",
    "excess_paper",
    "largest_rate",
    "pac_rate",
    "pool_critical_count",
    "pool_tail",
    "simultaneous_family",
]
