"""A random sample in parts, which goes on while enough of it is qualified [theory: collection-recall-block].

A look (rows, least): after so many rows the sample goes on if at least so many of them are qualified. Given
n+, the qualified rows of the whole sample are a uniform subset in the order of drawing as well as in the
collection: the chance to go on depends on n+ alone, and where they lie does not depend on it.
"""

from __future__ import annotations

import numpy as np

from surelist._arrays import Floats, Ints
from surelist.bounds._tails import log_choose, quick_log_hypergeometric

Look = tuple[int, int]
SURELY = 1e-15  # a chance not to go on that is below this is none
TINY = 1e-12  # a chance to go on that counts for this is smaller: far below every margin


def chances_to_go_on(drawn: int, looks: tuple[Look, ...]) -> Floats:
    """The chance that every look is passed, for n+ = 0 ... drawn."""
    count, stopped = np.arange(drawn + 1.0), np.zeros(drawn + 1)
    most = max((least for _, least in looks), default=0)
    few, before = np.arange(float(most)), 0  # numbers of qualified ones with which a look may fail
    ways = np.where(few == 0, 0.0, -np.inf)  # logarithms: of drawing them so far, every look passed
    for rows, least in looks:
        more = log_choose(float(rows - before), few[:, None] - few)
        ways = np.logaddexp.reduce(ways + more, axis=1) if most else ways
        for hits in range(least):
            log = ways[hits] + log_choose(float(drawn - rows), count - hits) - log_choose(float(drawn), count)
            stopped += np.exp(log)
        ways[:least], before = -np.inf, rows
    return np.where(count < most, 0.0, np.where(stopped < SURELY, 1.0, np.clip(1 - stopped, 0.0, 1.0)))


def chance_of(size: int, drawn: int, going: Floats, relevant: Ints) -> Floats:
    """The chance to go on for each number of relevant items in the collection, ``going`` being that of n+."""
    unsure = np.arange(int(np.count_nonzero(going < 1)))
    stopped = np.zeros(len(relevant))
    for at in range(0, len(relevant), 4096):
        log = quick_log_hypergeometric(unsure, size, relevant[at : at + 4096, None], drawn)
        stopped[at : at + 4096] = np.exp(log) @ (1 - going[unsure])
    return np.maximum(1 - stopped, TINY)
