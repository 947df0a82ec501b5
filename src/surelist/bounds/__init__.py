"""Theorems: numbers in, numbers out. Nothing in this package sees data, files or front ends.

Examples
--------
>>> import surelist as sl
>>> sl.bounds.critical_count(n=10_000, rate=0.05, alpha=0.1, rule="exact")
529
"""

from surelist.bounds.counts import *  # noqa: F403
from surelist.bounds.counts import __all__ as __all__
