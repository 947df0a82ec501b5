"""The next pool's list holds k qualified candidates, or a share of its own; whole pools are the units.

The threshold is an order statistic of what labelled pools reach; inside a pool anything may depend on
anything [theory: pools].
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._arrays import Floats, Ints
from surelist._files import hold
from surelist._numerals import count, of_every
from surelist.bounds.pools import pac_pool_rank, pool_rank
from surelist.errors import InvalidInput, NotCertifiable
from surelist.filters import ranks_within
from surelist.promises import phrases
from surelist.promises.conditions import BY_GROUP, COMMON, DROPPED, SEVERAL, Proved
from surelist.promises.curve import PromiseCurve, count_at_least, curve_of, list_thresholds
from surelist.promises.evidence import Evidence, PoolRows, RowColumns
from surelist.promises.options import SHARE, K, ListedBy, Option, WholeShare
from surelist.promises.phrases import common_conditions, counted, number, percent, qualified
from surelist.promises.promise import About, Level, Needs, PageChoice, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

POOL_RECALL = Option(
    None, WholeShare, "For the next pool: the share of its own qualified that is kept.", "SHARE", SHARE.words
)
LISTED_BY = Option(
    "score",
    ListedBy,
    "For whole pools; rank: the best of each pool by rank are listed.",
    words="Scores compare within a pool only: list each pool's best by rank (not for the average)",
)
POINTS = 200.0  # list lengths that a curve goes through
LIKE_ONE_ANOTHER = (
    "The pools of the calibration rows and the next one are exchangeable: none of them is special. Inside a "
    "pool anything may depend on anything."
)
ON_AVERAGE_OVER_POOLS = (
    "The failure rate is an average over calibration pools: for the pools at hand the long-run rate may lie "
    'above alpha, up to about half the time if they are many. The rule "pac" bounds it.'
)


class NextPool(Promise, tag="next-pool", kw_only=True, frozen=True):
    """The shortlist of the next pool holds ``k`` qualified candidates, or keeps a share of its own.

    For candidates that come in clusters (clinics, queries, vacancies): calibrate with ``pools=``
    [theory: pools].

    Parameters
    ----------
    k : int, optional
        Qualified candidates; exactly one of ``k`` and ``recall`` is given.
    recall : float, optional
        A share of the pool's own qualified candidates, at most 1.
    by : {"score", "rank"}
        ``"rank"`` lists each pool's best by rank instead of by score.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.NextPool(recall=0.9).describe()
    "at least 90% of every pool's own qualified candidates kept"
    """

    page = (
        PageChoice(
            "next-pool",
            "In every pool",
            "At least {k:5|Qualified candidates needed} qualified candidates on the shortlist of the next "
            "pool, whatever its size.",
            "every pool",
        ),
        PageChoice(
            "pool-recall",
            "Miss few in every pool",
            "Keep at least {share=recall:95|Percent of each pool's qualified candidates kept} % of the next "
            "pool's own qualified candidates.",
            "share kept",
        ),
    )
    help = "K qualified, or a share of its own qualified, in the next pool; needs the pool column."
    flags = (("next_pool", "k"), ("pool_recall", "recall"))
    about = About.POOL
    rules = ("exact", "pac")
    whole_pools = True
    planned = True
    needs = Needs.POOLS

    proved_with = (
        Proved("pools", rule=rules, labels=("missing",), scores=SEVERAL),
        Proved("pools", rule=rules, labels=("missing",), bad_rows=DROPPED),
        Proved("common-cutoff", rule=rules, labels=("missing",), groups=("own", "overlapping"),
               cutoff=COMMON, scores=SEVERAL, only=BY_GROUP),
        Proved("common-cutoff", rule=rules, labels=("missing",), groups=("own",), cutoff=COMMON,
               bad_rows=DROPPED, only=BY_GROUP),
    )  # fmt: skip

    k: Annotated[int | None, replace(K, kind=int)] = None
    recall: Annotated[float | None, POOL_RECALL] = None
    by: Annotated[ListedBy, LISTED_BY] = "score"

    def __post_init__(self) -> None:
        if (self.k is None) == (self.recall is None):
            raise InvalidInput("k", "expected exactly one of k and recall.")
        super().__post_init__()

    @property
    def every_label(self) -> bool:
        return self.recall is not None

    @property
    def certified(self) -> tuple[str, str, bool]:
        if self.recall is None:
            return "Qualified in the next pool, at least", "Qualified, at least", False
        return "Of its qualified kept, at least, %", "Kept, at least, %", True

    @property
    def by_rank(self) -> bool:
        return self.by == "rank"

    def describe(self) -> str:
        if self.recall is not None:
            return f"at least {100 * self.recall:g}% of every pool's own qualified candidates kept"
        return f"at least {phrases.qualified(self.k or 0)} in every pool"

    def needed(self, available: Ints) -> Ints:
        """How many qualified candidates the list of a pool must hold that has so many."""
        if self.recall is None:
            return np.full(len(available), self.k)
        share = check.as_fraction(self.recall, "recall")
        return np.asarray(-((-available * share.numerator) // share.denominator))

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        group = policy.group_of(cutoff)
        of = "" if group is None else f" of group {group!r}"
        listed = "the shortlist of the next pool" + ", by rank," * self.by_rank
        if self.recall is not None:
            kept = f"{percent(self.recall)} of that pool's own qualified candidates"
            return f"{listed} keeps at least {kept}{of}"
        return f"{listed} holds at least {qualified(self.k or 0)}{of}"

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        by = f", its best {count(-cutoff.steps[0].threshold)} candidates," if self.by_rank else ""
        if self.recall is not None:
            kept = f"{of_every(self.recall)} of its qualified candidates"
            return f"the list of the next pool{by} will keep at least {kept}"
        return f"the list of the next pool{by} will hold at least {phrases.many_qualified(self.k or 0)}"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        rows = evidence.pool_rows(by_rank=self.by_rank)
        reached = self._reached(evidence)
        pools, rank = len(reached), allowed_rank(len(reached), level)
        short = int(np.count_nonzero(reached == -math.inf))
        finite = reached[np.isfinite(reached)]
        if rank == 0 or short >= rank or not len(finite):
            raise self._refusal(evidence, level, pools, rank, short)
        threshold = min(float(np.partition(reached, rank - 1)[rank - 1]), float(finite.max()))
        proof = PoolRank(pools, rank, short, int(np.count_nonzero(reached == math.inf)))
        return Certified((Step(0, rank, threshold),), rows.rows, rows.qualified, proof)

    def _reached(self, evidence: Evidence) -> Floats:
        """Where each pool reaches the promise; under one cutoff for all groups, the promises to all of them
        [theory: common-cutoff]."""
        parts = [
            each.pool_rows(by_rank=self.by_rank).reached(promise.needed)
            for promise, each in evidence.beside or ((self, evidence),)
        ]
        return np.asarray(np.minimum.reduce(parts))

    def _refusal(self, evidence: Evidence, level: Level, pools: int, rank: int, short: int) -> NotCertifiable:
        labelled = counted(pools, "labelled pool")
        if rank == 0:
            enough = next(g for g in range(pools + 1, 10**7) if allowed_rank(g, level) > 0)
            needs = f"There are {labelled}, and this alpha needs {number(enough)}"
            reason = f"{needs}: label more, or allow a larger alpha."
        elif short >= rank:
            most = f"{number(short)} of {labelled} do not reach it even with everyone listed, and at most"
            reason = f"{most} {number(rank - 1)} may: ask for less, or allow a larger alpha."
        else:
            none = f"None of {labelled} has a qualified candidate"
            reason = f"{none}, so no score says where the list should end."
        return refuse(self, level, evidence, reason, count=rank)


def allowed_rank(pools: int, level: Level) -> int:
    """Which of the pools' values, from below, the rule allows as threshold; 0 where none."""
    if level.rule == "pac":
        return pac_pool_rank(pools, level.calibration_alpha, level.pool_alpha)
    return pool_rank(pools, level.alpha)


class PoolRank(Proof, tag="next-pool", frozen=True):
    """The threshold is the ``rank``-th smallest of what ``pools`` labelled pools reach.

    ``short`` pools never reach it, whoever is listed; ``empty`` ones reach it with nobody.
    """

    rests_on = None

    pools: int
    rank: int
    short: int
    empty: int

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        pools = counted(self.pools, "calibration pool")
        if policy.rule == "exact":
            often = percent(policy.alpha)
            return f"wrong for at most {often} of draws of the {pools} and the next pool together"
        return phrases.right_for_each_pool(*policy.two_levels, f"the draw of the {pools}")

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        exact = policy.rule == "exact"
        needed = [LIKE_ONE_ANOTHER if exact else phrases.POOLS_ALIKE, phrases.WHOLE_POOLS]
        if cutoff.promised(NextPool).recall is not None:
            needed.append("Every candidate of the calibration pools has a label.")
        conditions = common_conditions(policy.alpha, *needed)
        return (*conditions, ON_AVERAGE_OVER_POOLS) if exact else conditions

    def evidence(self, cutoff: Cutoff) -> str:
        below = f"{number(self.rank - 1)} may lie below the threshold at this alpha"
        short = f"{number(self.short)} never reach the target"
        return f"of {counted(self.pools, 'labelled pool')}, {below}; {short}"

    def check(self, cutoff: Cutoff) -> None:
        limit = cutoff.steps[0].threshold
        ranked = cutoff.promised(NextPool).by != "rank" or (limit <= -1 and limit.is_integer())
        hold(ranked, "its list by rank ends at no rank")
        needed = allowed_rank(self.pools, cutoff.level)
        allowed = 1 <= self.rank <= needed
        hold(allowed, f"rank {self.rank} is not within the {needed} that {self.pools} pools allow")
        hold(0 <= self.short < self.rank, "too many pools never reach the target")
        hold(0 <= self.empty < self.pools <= cutoff.rows, "the pool counts are impossible")

    def chance_short(self, cutoff: Cutoff, sizes: Ints, missed: int) -> float:
        if missed == 0:
            return 1.0
        # as many new pools below the rank-th of the calibration pools, all of them exchangeable
        return 1.0 - bounds.pool_tail(self.pools, missed, len(sizes), self.rank)

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve | None:
        """At each threshold what all labelled pools reach, but for as many as the rule lets fall short."""
        if rows.pools is None:
            return None
        promise = cutoff.promised(NextPool)
        codes, pools = check.as_codes(rows.pools, len(rows.scores))
        pooled = PoolRows.of(rows.scores, rows.good, codes, pools, by_rank=promise.by_rank)
        scores = ranks_within(rows.scores, codes) if promise.by_rank else rows.scores
        thresholds, of_pool = list_thresholds(scores, POINTS), np.bincount(pooled.codes, minlength=pools)
        held, values, before = np.zeros(pools), [], 0
        for reached in count_at_least(pooled.scores, thresholds).tolist():
            held += np.bincount(pooled.codes[before:reached], minlength=pools)
            before = reached
            kept = held
            if promise.recall is not None:  # all of none
                kept = np.divide(held, of_pool, out=np.ones(pools), where=of_pool > 0)
            values.append(float(np.partition(kept, self.rank - 1)[self.rank - 1]))
        listed = count_at_least(scores, thresholds) / pools
        on_list = float(np.count_nonzero(scores >= cutoff.steps[0].threshold)) / pools
        promised = float((promise.recall or promise.k) or 0)
        numbers = (listed, np.asarray(values), thresholds, (on_list, promised))
        return curve_of(cutoff, len(scores) / pools, *numbers)
