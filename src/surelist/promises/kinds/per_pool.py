"""At least k qualified candidates on the list of every single pool; rows are the units."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._arrays import Floats, Ints
from surelist._names import option
from surelist._numerals import about, number
from surelist.bounds.collection import block_pool_count, pool_rates
from surelist.bounds.looking_back import short_pools
from surelist.errors import InvalidInput
from surelist.promises import conditions, phrases
from surelist.promises.conditions import BESIDE, EVERY, GIVEN, LABELLED, ONE_LIST, Proved, from_rows
from surelist.promises.curve import PromiseCurve, drawn
from surelist.promises.kinds.counts import CountPromise
from surelist.promises.options import POOL_SIZE, K
from surelist.promises.phrases import percent, qualified
from surelist.promises.promise import About, BlockNeed, Level, PageChoice, Promise, Watched
from surelist.promises.state import Certificate, Cutoff, Requirement, Step

if TYPE_CHECKING:
    from surelist.promises.evidence import RowColumns

MOST_K = 60  # numbers per pool that a curve tries
BESIDE_SHARES = (0.5, 0.75, 0.25, 0.1, 0.02)  # of alpha, that promises beside it may have
MOST_SIZES = 2000  # pool sizes with a threshold of their own


class PerPool(CountPromise, tag="per-pool", frozen=True):
    """At least ``k`` qualified candidates on the shortlist of every single pool [theory: per-pool].

    Parameters
    ----------
    k : int
        Qualified candidates.
    pool_size : int or (int, int)
        ``100`` covers pools of 100 or more whose candidates are independent draws; ``(50, 200)`` every size
        from 50, each with its own threshold, and larger ones with the threshold of 200.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.PerPool(5, 100).describe()
    'at least 5 qualified candidates in every pool of 100 or more'
    """

    page = (
        PageChoice(
            "per-pool",
            "In every pool",
            "At least {k} qualified candidates in every single pool of {pool_size} or more. A longer list, "
            "for when each pool counts. The numbers are those above.",
            "every pool",
            by_group=("In every pool, for each group", "The same in every single pool of that size or more."),
        ),
    )
    help = "At least K qualified in every single pool."
    flags = (("per_pool", "k"),)
    alias = "pool"
    sample = "block"
    paper_rule = "bernstein"
    certified = ("Qualified in every pool, at least", "Qualified, at least", False)
    in_whole_pools = "NextPool(k=...)"
    about = About.POOL
    joins_fixed = True
    rules = ("exact", "pac", "bernstein")

    proved_with = (
        *from_rows("per-pool", ("missing", "thinned"), EVERY, ("known",), rules, rules),
        Proved("two-promises", labels=("missing", "thinned"), others=GIVEN, only=("promises",), **ONE_LIST),
        Proved("shift", labels=("missing",), shift=("known",), others=GIVEN, pools=BESIDE,
               only=("promises",), **ONE_LIST),
        LABELLED,
    )  # fmt: skip

    k: Annotated[int, replace(K, kind=int)]
    pool_size: Annotated[int | tuple[int, int], POOL_SIZE]

    def __post_init__(self) -> None:
        size = self.pool_size
        if isinstance(size, (tuple, list)):
            if len(size) != 2:
                raise InvalidInput("pool_size", expected="a size or (smallest, largest)", got=repr(size))
            smallest, largest = (check.as_count(s, "pool_size") for s in size)
            if smallest > largest:
                raise InvalidInput("pool_size", expected="(smallest, largest)", got=repr(tuple(size)))
            check.set_value(self, "pool_size", (smallest, largest) if smallest < largest else smallest)
        else:
            check.set_value(self, "pool_size", check.as_count(size, "pool_size"))
        check.set_value(self, "k", check.as_whole_k(self.k, self.sizes[0]))

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest pool size with a threshold of its own."""
        return self.pool_size if isinstance(self.pool_size, tuple) else (self.pool_size, self.pool_size)

    @property
    def one_threshold(self) -> bool:
        return self.sizes[0] == self.sizes[1]

    @property
    def smallest_pool(self) -> int:
        return self.sizes[0]

    @property
    def pool(self) -> float:
        return float(self.sizes[0])

    def describe(self) -> str:
        return f"at least {phrases.qualified(self.k)} in every pool of {self.sizes[0]} or more"

    def requirements(self, rows: int, qualified: int, level: Level) -> tuple[Requirement, ...]:
        """One count per size; a very wide range goes in steps, each valid for the sizes above it."""
        smallest, largest = self.sizes
        sizes: Sequence[int] = range(smallest, largest + 1)
        if len(sizes) > MOST_SIZES:
            ratio = (largest / smallest) ** (1 / (MOST_SIZES - 1))
            grid = {round(smallest * ratio**i) for i in range(MOST_SIZES)} | {largest}
            sizes = sorted(size for size in grid if size <= largest)
        steps: list[Requirement] = []

        def descend(low: int, high: int) -> None:
            """The count never grows with the pool: bisect until both ends of a stretch agree."""
            first, last = (self.count_at(sizes[end], rows, 0, level) for end in (low, high))
            if not steps or steps[-1].count != first:
                steps.append(Requirement(sizes[low], first))
            if first != last and high - low == 1:
                steps.append(Requirement(sizes[high], last))
            elif first != last:
                descend(low, (low + high) // 2)
                descend((low + high) // 2, high)

        descend(0, len(sizes) - 1)
        return tuple(steps)

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        if level.rule == "exact" and level.beside is not None:
            return bounds.pool_beside_count(rows, self.k, pool_size, level.alpha, level.beside)
        if level.rule == "exact":
            return bounds.pool_critical_count(rows, self.k, pool_size, level.alpha)
        if level.rule == "pac":
            rate = bounds.pac_rate(self.k, pool_size, level.pool_alpha)
            # several sizes have several thresholds, which must all hold for this sample at once
            rule = "exact" if self.sizes[0] == self.sizes[1] else "simultaneous"
            return bounds.critical_count(rows, rate, level.calibration_alpha, rule)
        rate = bounds.bernstein_k(self.k, level.pool_alpha) / pool_size
        if rate > 1:
            return rows + 1
        return bounds.critical_count(rows, rate, level.calibration_alpha, "dkw")

    def count_about(self, rows: int, qualified: int, level: Level) -> int:
        if level.rule == "pac" and self.sizes[0] < self.sizes[1]:
            rate = bounds.pac_rate(self.k, self.sizes[0], level.pool_alpha)
            return bounds.critical_count(rows, rate, level.calibration_alpha, "dkw")
        return self.count_at(self.sizes[0], rows, qualified, level)

    def is_enough(self, step: Step, rows: int, qualified: int, level: Level) -> bool:
        exact = level.rule == "exact" and level.beside is None
        return exact and bounds.pool_certifies(rows, self.k, step.pool_size, level.alpha, step.critical_count)

    def beside_fixed(self, fixed: Sequence[Promise], rows: int, level: Level) -> Level | None:
        """Half of alpha for the others; where the same rows are counted for all of them, the part that makes
        the largest of the counts smallest."""
        if level.rule != "exact":
            return None
        by_rows = [each for each in fixed if isinstance(each, CountPromise) and not each.of_qualified]
        if len(by_rows) == len(fixed):

            def largest(part: float) -> int:
                counts = [each.count_at(0, rows, 0, replace(level, alpha=part)) for each in by_rows]
                return max(self.count_at(self.sizes[0], rows, 0, replace(level, beside=part)), *counts)

            return replace(level, beside=min((level.alpha * share for share in BESIDE_SHARES), key=largest))
        return replace(level, beside=level.alpha / 2)

    def limit_rate(self, level: Level) -> float:
        if level.rule == "bernstein":
            return bounds.bernstein_k(self.k, level.pool_alpha) / self.sizes[0]
        alpha = level.alpha if level.rule == "exact" else level.pool_alpha
        return bounds.pac_rate(self.k, self.sizes[0], alpha)

    def often_above(self, pool_size: int, rows: int, count: int, alpha: float) -> float:
        """Of samples of this size, the share whose own long-run failure rate lies above alpha.

        For untied scores: the rate of qualified listed is Beta(count, rows-count+1), and failures
        are too frequent where it is below the rate that ``pac`` asks for [theory: per-pool].
        """
        return bounds.binomial_tail(rows, bounds.pac_rate(self.k, pool_size, alpha), count)

    def block_count(self, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
        return block_pool_count(size, block, drawn, self.k, self.sizes[0], alpha)

    def block_need(self, size: int) -> BlockNeed:
        k, m = self.k, self.sizes[0]
        variance = k * (m - k + 1) / ((m + 1) ** 2 * (m + 2)) + k / m / size
        return k / (m + 1), variance, pool_rates(k, m)

    def of_collection(self) -> PerPool:
        return replace(self, pool_size=self.sizes[0])

    def oracle_rate(self, alpha: float, base_rate: float) -> float:
        return bounds.pac_rate(self.k, self.sizes[0], alpha)

    def watched(self, policy: Certificate) -> tuple[Watched, ...]:
        if policy.rule == "exact":
            cannot = "a promise about every pool cannot be watched where its alpha is an average over"
            often = "calibration samples: for up to half of them a sound policy fails more often than that."
            bounded = ": it bounds the rate of this policy."
            remedy = option("rule", "pac", before="Calibrate with ", after=bounded)
            raise InvalidInput("policy", f"{cannot} {often}", remedy=remedy)
        # what is promised, all groups and scores together
        return (Watched(1 - check.as_fraction(policy.pool_alpha, "alpha"), self.k, self.sizes[0]),)

    def largest(self, rows: int, qualified: int, level: Level) -> tuple[float, None]:
        """For the smallest pool; 0 where none."""
        size = self.sizes[0]

        def count(k: int) -> int:
            return replace(self, k=k).count_at(size, rows, 0, level)

        return float(bisect_right(range(1, size + 1), qualified, key=count)), None

    def needed(self, available: Ints) -> Ints:
        return np.full(len(available), self.k)

    def chance_short(self, cutoff: Cutoff, sizes: Ints, missed: int) -> float:
        # the highest threshold and the smallest pool: the others fall short less often
        fewest = min(step.critical_count for step in cutoff.steps)
        return short_pools(cutoff.rows, fewest, self.k, int(sizes.min()), len(sizes), missed)

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve:
        """The largest of some numbers that each count certifies for the smallest pool."""

        def certified(_: Ints, held: Ints) -> Floats:
            size, most = self.sizes[0], int(held.max(initial=0))
            tried = np.unique(np.geomspace(1, min(size, max(most, 1)), MOST_K).round().astype(int)).tolist()
            tried = sorted({*tried, self.k})
            needed = [replace(self, k=k).count_at(size, rows.rows, 0, cutoff.level) for k in tried]
            numbers: Floats = np.asarray([0, *tried], dtype=np.float64)
            return numbers[np.searchsorted(needed, held, side="right")]

        return drawn(cutoff, rows, float(self.k), certified)

    def claimed(self, whose: str, by_group: bool) -> str:
        of_group = " of the group" if by_group else ""
        pool = f"a pool of {phrases.number(self.sizes[0])} or more candidates{of_group}"
        return f"{whose} of {pool} holds at least {qualified(self.k)}"

    def count_wrong(self, policy: Certificate) -> str:
        alpha, level, rows = percent(policy.alpha), policy.cutoffs[0].level, policy.drawn_rows
        if policy.rule == "exact":
            thinned = ", their thinning" if policy.shift is not None else ""
            return f"wrong for at most {alpha} of draws of calibration rows{thinned} and pool together"
        if policy.group_split == "sidak":
            parts = (level.calibration_alpha, level.pool_alpha)
            joint = [conditions.joint_alpha(each, len(policy.cutoffs)) for each in parts]
            most = f"at most {percent(joint[0] * policy.chosen_of)} over the draw of {rows}"
            over = f"{most}, {percent(joint[1])} over the pool"
            return f"wrong with probability at most {alpha}, and with {over}"
        if policy.grouped:
            share, rest = percent(level.calibration_share), percent(1 - level.calibration_share)
            over = f"{share} of which is over the draw of {rows} and {rest} over the pool"
            return f"wrong with probability at most {alpha}, {over}"
        return phrases.right_for_each_pool(*policy.two_levels, f"the draw of {rows}")

    def count_conditions(self, policy: Certificate) -> list[str]:
        if policy.rule != "exact":
            return [phrases.ANY_SIZE]
        average = f"The failure rate is an average over calibration samples: for {_often_above(policy)}."
        return [phrases.ANY_SIZE, f'{average} The rule "pac" bounds it for this sample.']

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        group = policy.group_of(cutoff)
        of_group = " of the group" if group is not None and policy.group_rows == "own" else ""
        whose = " of this group" if group is not None and not of_group else ""
        listed = policy.listed_per(cutoff)
        shown = listed is not None and listed[0] >= self.k
        tail = f", of about {about(listed[0])} listed per {number(listed[1])}" if listed and shown else ""
        pool = f"a pool of {number(self.sizes[0])} or more candidates{of_group}"
        return f"the list of {pool} will hold at least {phrases.many_qualified(self.k)}{whose}{tail}"


def _often_above(policy: Certificate) -> str:
    """How often the long-run rate lies above alpha; of several scores any may be the one that does."""
    alpha = policy.each_alpha * policy.chosen_of if policy.grouped else policy.alpha
    shares = [
        each.target.often_above(step.pool_size, each.rows, step.critical_count, alpha)
        for each in policy.cutoffs
        for step in (each.steps[0], each.steps[-1])
        if isinstance(each.target, PerPool)
    ]
    ends = [min(1.0, policy.chosen_of * share) for share in (min(shares), max(shares))]
    low, high = (f"{100 * share:.0f}%" for share in ends)
    # a list is longer than its count says where scores are tied, or where it serves other promises too
    tied = any(step.tied for cutoff in policy.cutoffs for step in cutoff.steps)
    longer = policy.common or policy.several or tied
    exactly = policy.chosen_of == 1 and not longer
    often = f"{'about' if exactly else 'at most about'} {low if low == high else f'{low} to {high}'}"
    whose, bound = (" of a group", "its share of alpha") if policy.grouped else ("", "alpha")
    return f"{often} of samples the long-run rate{whose} lies above {bound}"
