"""An amount on an average list, where labels are amounts; rows are the units [theory: value]."""

from __future__ import annotations

import math
from typing import Annotated

from surelist import _numerals as numerals
from surelist.promises.conditions import BESIDE, SEVERAL, Proved
from surelist.promises.kinds.betting import DEFAULT_SPREAD, GUESSED_SPREAD, SPREAD, OnAverage
from surelist.promises.options import POOL_SIZE
from surelist.promises.promise import PageChoice


class Value(OnAverage, tag="value", frozen=True):
    """At least ``k`` of value on the shortlist of an average pool; labels are amounts of at least 0.

    Parameters
    ----------
    k : float
        The amount: money, grades, points.
    pool_size : float
        Candidates in a pool, or their expectation where pools vary.
    spread : float, optional
        A guess, made beforehand, of the standard deviation of what a pool's list is worth. A bad guess costs
        length, never validity.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Value(400, pool_size=100).describe()
    'at least 400 of value on average in pools of 100'
    """

    page = (
        PageChoice(
            "value",
            "A value on average",
            "At least {k:5|Value needed} of value on the shortlist of an average pool of "
            "{pool_size:100|Candidates in a pool} candidates." + SPREAD,
            "average",
            amounts=True,
        ),
    )
    help = "Worth at least K on average; labels are amounts of at least 0."
    flags = (("value", "k"),)
    unit = "row"
    top_only = True
    certified = ("Value on average, at least", "Value, at least", False)

    proved_with = (
        Proved("value", labels=("missing", "thinned"), scores=SEVERAL),
        Proved("shift", labels=("missing",), shift=("known",), scores=SEVERAL, pools=BESIDE),
    )

    pool_size: Annotated[float, POOL_SIZE]
    spread: Annotated[float | None, GUESSED_SPREAD] = None

    @property
    def amounts(self) -> bool:
        return True

    @property
    def pool(self) -> float:
        return float(self.pool_size)

    @property
    def mean(self) -> float:
        return float(self.k) / float(self.pool_size)

    @property
    def guessed_spread(self) -> float:
        return float(self.spread or DEFAULT_SPREAD * self.k) / math.sqrt(self.pool_size)

    def describe(self) -> str:
        size = numerals.number(self.pool_size, 10)
        return f"at least {numerals.number(self.k, 10)} of value on average in pools of {size}"
