"""Proofs from a few chosen labels of a scored collection [theory: few-labels] [theory: collection-recall].

What is promised about the collection itself needs no assumption about the data, only that the labels are
right: the randomness is that of our own draw. What is promised about future pools needs the collection to
be like them. ``lifecycle.labelling`` draws, asks and finds the thresholds.
"""

from __future__ import annotations

from typing import Literal

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._files import hold
from surelist.bounds.collection import block_count, block_pool_count, block_rate_count
from surelist.bounds.control import control_rule
from surelist.promises.phrases import DRAWN_ONCE, alpha_bounds, counted, number, percent, qualified
from surelist.promises.targets import AtLeast, Expected, Level, PerPool, Recall

LABELS_RIGHT = (
    "The labels are right. Nothing is assumed about the candidates, the score or how either came about: the "
    "only chance is in which rows were drawn."
)
COLLECTION_LIKE_POOLS = (
    "The candidates of the collection and those of future pools are drawn independently from the same "
    "population, and the score was fixed independently of the collection."
)
MISSING_COUNTS = "A label that did not come counts as not qualified."
FIXED_BEFORE = (
    "One look: target, alpha and number of labels were fixed before the first label. Labelling more rows "
    "after a refusal, or asking for less, is not covered by these labels; a fresh draw of other rows is."
)

ONLY_RIGHT = "The labels are right."
AVERAGE_SIZE = "The pool size is the number of candidates in a pool, or its known average."
ANY_SIZE = "The size of a pool does not depend on how good its candidates look."
ON_AVERAGE = (
    "The failure rate is an average over draws of the collection and of its labels: for this one the long-"
    "run rate may lie above alpha."
)

CountTarget = Expected | PerPool | AtLeast


def needed_count(target: CountTarget, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
    """The critical count of a sample of ``drawn`` of the best ``block`` of ``size`` rows.

    ``known``: qualified rows of the collection that are known already and no part of the block.
    """
    if isinstance(target, AtLeast):
        return block_count(block, target.k - known, drawn, alpha)
    if isinstance(target, PerPool):
        return block_pool_count(size, block, drawn, target.k, target.sizes[0], alpha)
    return block_rate_count(size, block, drawn, target.rate, alpha)


def about(target: CountTarget) -> Literal["collection", "pools", "pool"]:
    """What a promise is about: the collection itself, future pools on average, or a single pool."""
    if isinstance(target, AtLeast):
        return "collection"
    return "pool" if isinstance(target, PerPool) else "pools"


@dataclass(frozen=True)
class BlockSample:
    """``count`` qualified among ``drawn`` random rows of the best ``block`` of ``size`` rows.

    ``alpha`` is the share of this test; ``known`` qualified rows of the pilot score at or above the
    threshold as well. ``stage`` says whose block it is; the shares of both stages add up to the level.
    """

    kind: Literal["block-sample"]
    about: Literal["collection", "pools", "pool"]
    group: str | None
    collection: int
    size: int
    block: int
    drawn: int
    alpha: float
    known: int
    count: int
    stage: Literal["block", "pilot"]

    def claim(self, target: CountTarget) -> str:
        whose = "the shortlist" if self.group is None else f"for group {self.group!r} the shortlist"
        if isinstance(target, AtLeast):
            of = f"of these {counted(self.collection, 'candidate')}"
            return f"{of}{_of(self.group)} the shortlist holds at least {number(target.k)} qualified"
        of_group = "" if self.group is None else " of the group"
        if isinstance(target, PerPool):
            pool = f"a pool of {number(target.sizes[0])} or more candidates{of_group}"
            return f"{whose} of {pool} holds at least {qualified(target.k)}"
        pools = f"pools of {number(target.pool_size)} candidates{of_group}"
        return f"{whose} holds at least {qualified(target.k)} on average over {pools}"

    def wrong(self, level: Level, rows: int) -> str:
        collection = f"the {number(self.collection)} candidates of the collection"
        if self.about == "pool":
            drawn = f"{collection}, those labelled and the pool together"
            return f"wrong for at most {percent(level.alpha)} of draws of {drawn}"
        drawn = f"{collection} and those labelled" if self.about == "pools" else "those labelled"
        return f"wrong with probability at most {percent(level.alpha)} over the draw of {drawn}"

    def conditions(self, target: CountTarget, level: Level) -> tuple[str, ...]:
        about: tuple[str, ...] = (LABELS_RIGHT,)
        if self.about == "pools":
            about = (COLLECTION_LIKE_POOLS, ONLY_RIGHT, AVERAGE_SIZE)
        if self.about == "pool":
            about = (COLLECTION_LIKE_POOLS, ONLY_RIGHT, ANY_SIZE, ON_AVERAGE)
        return (*about, MISSING_COUNTS, alpha_bounds(level.alpha), DRAWN_ONCE, FIXED_BEFORE)

    def evidence(self, level: Level) -> str:
        pilot = f", with {counted(self.known, 'qualified row')} of the pilot" if self.known else ""
        part = f" of {self.size:,} set aside" if self.stage == "pilot" and self.size < self.collection else ""
        return (
            f"{self.count:,} qualified are needed among {self.drawn:,} labelled of the best {self.block:,} "
            f"candidates{part}, at {percent(self.alpha)}{pilot}"
        )

    def check(self, target: CountTarget, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(isinstance(target, (Expected, PerPool, AtLeast)), "its proof does not go with its target")
        hold(0 < self.alpha <= level.alpha, "its share of alpha is impossible")
        hold(self.drawn <= rows and 0 <= self.known <= rows - self.drawn, "the row counts differ")
        hold(self.about == about(target), "its proof does not go with its target")
        hold(0 < self.drawn <= self.block <= self.size <= self.collection, "its block does not fit")
        needed = needed_count(target, self.size, self.block, self.drawn, self.alpha, self.known)
        hold(self.count <= min(self.drawn, qualified), "more qualified than there are")
        hold(needed <= self.count, f"{self.count} qualified are less than the {needed} needed")


@dataclass(frozen=True)
class ControlSample:
    """``relevant`` qualified among ``drawn`` random rows; ``dropped`` of them lie below the threshold.

    The list is everyone at or above the threshold *and* the sample itself.
    """

    kind: Literal["control-sample"]
    group: str | None
    collection: int
    drawn: int
    relevant: int
    dropped: int

    def claim(self, target: Recall) -> str:
        of = f"these {counted(self.collection, 'candidate')}{_of(self.group)}"
        return (
            f"the shortlist together with the {number(self.drawn)} candidates that were drawn and labelled "
            f"keeps at least {percent(target.share)} of all qualified of {of}"
        )

    def wrong(self, level: Level, rows: int) -> str:
        return f"wrong with probability at most {percent(level.alpha)} over the draw of those labelled"

    def conditions(self, target: Recall, level: Level) -> tuple[str, ...]:
        together = (
            "The candidates that were drawn stay on the list with those at or above the threshold: the "
            "threshold alone is not covered."
        )
        every = "Every candidate that was drawn has a label, and the score was not trained on these labels."
        return (LABELS_RIGHT, together, every, alpha_bounds(level.alpha), DRAWN_ONCE, FIXED_BEFORE)

    def evidence(self, level: Level) -> str:
        return (
            f"{self.dropped:,} of the {self.relevant:,} qualified among {self.drawn:,} candidates drawn at "
            "random lie below it"
        )

    def check(self, target: Recall, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(isinstance(target, Recall), "its proof does not go with its target")
        hold(rows == self.drawn and qualified == self.relevant <= rows, "the row counts differ")
        hold(0 < self.drawn <= self.collection, "more were drawn than there are")
        rule = control_rule(
            self.collection, self.drawn, check.as_fraction(target.share, "share"), level.alpha
        )
        allowed = rule.drops[self.relevant]
        hold(0 <= self.dropped <= allowed, f"{self.dropped} dropped, where {allowed} are allowed")


def _of(group: str | None) -> str:
    return "" if group is None else f" of group {group!r}"
