"""How many qualified candidates a list of fixed length is certified to hold [theory: budget]."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from surelist import _check as check, _numerals as numerals, bounds
from surelist._files import hold
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.conditions import BESIDE, Proved
from surelist.promises.curve import PromiseCurve, certified_rates, drawn
from surelist.promises.evidence import Evidence, RowColumns
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.expected import found_share
from surelist.promises.options import LIST_SIZE, POOL_SIZE
from surelist.promises.phrases import counted, number, number_down
from surelist.promises.promise import Level, PageChoice, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

TIED = "Whoever ties with the first candidate beyond it is not listed either. "


class Budget(Promise, tag="budget", frozen=True):
    """``size`` of ``pool_size`` candidates can be reviewed: how many qualified are certified on that list?

    The list comes from ``unlabelled=`` scores, the number certified is the answer [theory: budget].

    Parameters
    ----------
    size : float
        Candidates that can be reviewed per pool.
    pool_size : float
        Candidates in a pool.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Budget(10, 100).describe()
    'what a list of 10 of 100 candidates holds'
    """

    page = (
        PageChoice(
            "budget",
            "I can review only",
            "{budget=size:10|Candidates that can be reviewed} of {pool_size} candidates: how many qualified "
            "ones can be promised among them? The pool size is that above.",
        ),
    )
    help = "Certify what a list of K of M candidates holds; needs unlabelled scores."
    flags = (("budget", "size"),)
    others = "needed"
    planned = True
    single_list = phrases.ANY_LIST

    proved_with = (
        Proved("budget", labels=("missing", "thinned"), others=("given",)),
        Proved("shift", labels=("missing",), shift=("known",), others=("given",), pools=BESIDE),
    )

    size: Annotated[float, LIST_SIZE]
    pool_size: Annotated[float, POOL_SIZE]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size >= self.pool_size:
            less = f"less than the pool size, {self.pool_size:g}"
            raise InvalidInput("size", expected=less, got=f"{self.size:g}")

    @property
    def listed(self) -> tuple[float, float]:
        return float(self.size), float(self.pool_size)

    def describe(self) -> str:
        size, of = numerals.number(self.size, 10), numerals.number(self.pool_size, 10)
        return f"what a list of {size} of {of} candidates holds"

    def rank(self, others: int) -> int:
        """floor((b/m)(M + 1)) in rationals: the unlabelled score at which the list ends."""
        share = check.as_fraction(self.size, "size") / check.as_fraction(self.pool_size, "pool_size")
        return math.floor(share * (others + 1))

    def largest(self, rows: int, good: int, level: Level) -> float:
        """The largest number that ``good`` of ``rows`` certify."""
        return self.pool_size * bounds.largest_rate(rows, good, level.alpha)

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        others = evidence.require_others()
        rank = self.rank(len(others))
        if rank == 0:
            few = f"{len(others):,} unlabelled scores are too few to tell where {number(self.size)} of"
            more = f"bring {math.ceil(self.pool_size / self.size):,} or more"
            raise refuse(self, level, evidence, f"{few} {number(self.pool_size)} end: {more}.")
        edge = float(np.partition(others, len(others) - rank)[len(others) - rank])
        threshold = math.nextafter(edge, math.inf)  # the list is everyone strictly above: ties stay within it
        held = int(np.count_nonzero(evidence.good & (evidence.scores >= threshold)))
        if held == 0:
            tied = TIED if np.count_nonzero(others > edge) < rank - 1 else ""
            none = "No qualified calibration row is on it, so nothing can be certified."
            raise refuse(self, level, evidence, f"{none} {tied}Ask for a longer list, or bring more rows.")
        proof = ListedBudget(len(others), rank, held, self.largest(evidence.rows, held, level))
        # as often as a new score lies there, by those that decided it
        share = float((np.count_nonzero(others >= threshold) + 1) / (len(others) + 1))
        return Certified((Step(0, held, threshold, share=share),), evidence.rows, evidence.qualified, proof)


class ListedBudget(Proof, tag="budget", frozen=True):
    """The list is everyone above the ``rank``-th best of ``unlabelled`` scores, certified to hold ``k``."""

    estimated_from = "the unlabelled scores"

    unlabelled: int
    rank: int
    good: int
    k: float

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        size = number(cutoff.promised(Budget).pool_size)
        k = f"{number_down(self.k)} qualified candidates"
        return f"the shortlist holds at least {k} on average over pools of {size} candidates"

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        promise = cutoff.promised(Budget)
        of = f"{number(promise.size)} of {number(promise.pool_size)} candidates"
        most = f"A list has at most {of} on average over draws of the unlabelled scores"
        own = "this policy's own average exceeds that about half the time, by little where they are many"
        size = f"{most}; {own}. The size was fixed before looking at these rows."
        return *phrases.ALL_ROWS, phrases.OTHER_SCORES, phrases.POOL_SIZE_KNOWN, size

    def evidence(self, cutoff: Cutoff) -> str:
        rows, of = counted(self.good, "qualified calibration row"), f"the {number(self.rank)}-th best of"
        return f"{rows} above {of} {counted(self.unlabelled, 'unlabelled score')}"

    def check(self, cutoff: Cutoff) -> None:
        promise = cutoff.promised(Budget)
        hold(self.rank == promise.rank(self.unlabelled) > 0, "the rank is not the budget's")
        hold(0 < self.good <= cutoff.qualified, "the row counts are impossible")
        most = promise.largest(cutoff.rows, self.good, cutoff.level) * (1 + 1e-12)
        hold(self.k <= most, "the number certified is too large")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        promise = cutoff.promised(Budget)
        k, listed = numerals.number(numerals.floored(self.k)), policy.listed_per(cutoff)
        length = promise.size if listed is None else listed[0]
        return phrases.of_listed(k, length, numerals.number(promise.pool_size))

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        return found_share(self.k / cutoff.promised(Budget).pool_size, cutoff, policy, seen)

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve:
        size, alpha = cutoff.promised(Budget).pool_size, cutoff.level.alpha
        return drawn(
            cutoff, rows, self.k, lambda _, held: size * certified_rates(rows.rows, held, alpha, "exact")
        )
