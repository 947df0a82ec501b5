"""At least k qualified candidates, or an amount, on average over whole pools, which are the units."""

from __future__ import annotations

from typing import Annotated

from surelist import _check as check
from surelist import _numerals as numerals
from surelist.promises import phrases
from surelist.promises.conditions import DROPPED, SEVERAL, Proved
from surelist.promises.kinds.betting import DEFAULT_SPREAD, GUESSED_SPREAD, SPREAD, OnAverage
from surelist.promises.options import LabelsOf, Option
from surelist.promises.promise import Needs, PageChoice


class PoolAverage(OnAverage, tag="pool-average", frozen=True):
    """At least ``k`` on the shortlist of an average pool, whatever its size; calibrate with ``pools=``.

    Whole pools are the units, and inside a pool anything may depend on anything [theory: pools].

    Parameters
    ----------
    k : float
        Qualified candidates per pool; with ``of="value"`` an amount.
    spread : float, optional
        A guess, made beforehand, of the standard deviation of what a pool's list holds. A bad guess costs
        length, never validity.
    of : {"count", "value"}
        ``"value"``: labels are amounts of at least 0 instead of 0 and 1 [theory: value].

    Examples
    --------
    >>> import surelist as sl
    >>> sl.PoolAverage(5).describe()
    'at least 5 qualified candidates on average per pool'
    """

    page = (
        PageChoice(
            "pool-average",
            "On average over pools",
            "At least {k} qualified candidates per pool on average; the number is that above." + SPREAD,
            "average",
        ),
        PageChoice(
            "pool-average",
            "A value on average",
            "At least {k:5|Value needed} of value on the shortlist of an average pool." + SPREAD,
            "average",
            amounts=True,
            sets={"of": "value"},
        ),
    )
    help = "At least K qualified on average over whole pools; needs the pool column."
    flags = (("pool_average", "k"),)
    whole_pools = True
    planned = True

    proved_with = (
        Proved("pools", labels=("missing",), scores=SEVERAL),
        Proved("pools", labels=("missing",), bad_rows=DROPPED),
    )  # fmt: skip

    spread: Annotated[float | None, GUESSED_SPREAD] = None
    of: Annotated[
        LabelsOf, Option("count", LabelsOf, "value: labels are amounts of at least 0, and k is an amount.")
    ] = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.as_choice(self.of, ("count", "value"), "of")

    @property
    def needs(self) -> Needs:
        return Needs.COLUMNS if self.amounts else Needs.POOLS

    @property
    def amounts(self) -> bool:
        return self.of == "value"

    @property
    def certified(self) -> tuple[str, str, bool]:  # type: ignore[override]
        if self.amounts:
            return "Value on average, at least", "Value, at least", False
        return "Qualified on average, at least", "Qualified, at least", False

    @property
    def guessed_spread(self) -> float:
        return float(self.spread or DEFAULT_SPREAD * self.k)

    def describe(self) -> str:
        what = f"{numerals.number(self.k, 10)} of value" if self.amounts else phrases.qualified(self.k)
        return f"at least {what} on average per pool"
