"""At least k qualified candidates on the list of a collection in hand; for ``Labelling``."""

from __future__ import annotations

from typing import Annotated

from msgspec.structs import replace

from surelist.bounds.collection import block_count
from surelist.promises import phrases
from surelist.promises.conditions import LABELLED
from surelist.promises.options import K
from surelist.promises.promise import About, BlockNeed, PageChoice, Promise


class AtLeast(Promise, tag="at-least", frozen=True):
    """At least ``k`` qualified candidates on the list of one collection in hand [theory: few-labels].

    For ``Labelling``: it is about these very candidates and needs no assumption about where they come from.

    Parameters
    ----------
    k : int
        Qualified candidates.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.AtLeast(50).describe()
    'at least 50 qualified candidates of this collection on the list'
    """

    labelled = PageChoice(
        "at-least",
        "Enough among these candidates",
        "A list of these very candidates that holds at least {many=k:100|Qualified candidates needed among "
        "these} qualified ones.",
    )
    help = "K qualified on the list of this collection."
    flags = (("at_least", "k"),)
    alias = "at-least"
    about = About.COLLECTION
    sample = "block"
    proved_with = (LABELLED,)

    k: Annotated[int, replace(K, kind=int)]

    def describe(self) -> str:
        return f"at least {phrases.qualified(self.k)} of this collection on the list"

    def block_need(self, size: int) -> BlockNeed:
        return min(1.0, self.k / size), 0.0, None

    def block_count(self, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
        return block_count(block, self.k - known, drawn, alpha)
