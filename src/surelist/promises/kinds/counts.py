"""Promises that a count of qualified calibration rows decides: what ``Expected``, ``PerPool`` and
``Recall`` share.

The threshold is the count-th best qualified row; a kind says how many its rule asks for [theory: one-idea].
Where lists differ by pool size there is a count, and a threshold, for each size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from surelist._files import Chance, hold
from surelist.bounds.counts import first_crossing_counts
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.promises.phrases import ALL_ROWS, ONE_LOOK, SCORE_FIXED, alpha_bounds, at_most, percent
from surelist.promises.promise import Level, Needs, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Requirement, Step

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence
    from surelist.promises.terms import Terms

MOST_ROWS = 10**9


class CountPromise(Promise, frozen=True):
    """A promise that a count decides."""

    monotone = True
    planned = True
    needs = Needs.COUNTS
    of_qualified: ClassVar[bool] = False  # the count is among the qualified rows, not among all

    def requirements(self, rows: int, qualified: int, level: Level) -> tuple[Requirement, ...]:
        """The counts that its rule asks for, by pool size."""
        return (Requirement(self.smallest_pool, self.count_at(self.smallest_pool, rows, qualified, level)),)

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        """The smallest valid count for pools of this size."""
        raise NotImplementedError

    def count_about(self, rows: int, qualified: int, level: Level) -> int:
        """The count of the smallest pool, roughly where the exact one takes seconds."""
        return self.count_at(self.smallest_pool, rows, qualified, level)

    def is_enough(self, step: Step, rows: int, qualified: int, level: Level) -> bool:
        """Whether one tail of the exact rule shows that a count is enough, without a search."""
        return False

    def oracle_rate(self, alpha: float, base_rate: float) -> float:
        """The share of candidates that are listed and qualified on the shortest list that keeps it."""
        raise NotImplementedError

    def limit_rate(self, level: Level) -> float:
        """The share of qualified rows below which no number of rows would do."""
        raise NotImplementedError

    def largest(self, rows: int, qualified: int, level: Level) -> tuple[float | None, float | None]:
        """The most that these rows certify: a number per pool, or a share."""
        raise NotImplementedError

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        group = policy.group_of(cutoff)
        whose = "the shortlist" if group is None else f"for group {group!r} the shortlist"
        return self.claimed(whose, group is not None and policy.group_rows == "own")

    def claimed(self, whose: str, by_group: bool) -> str:
        """What is promised of ``whose`` list, as the first half of a sentence."""
        raise NotImplementedError

    def count_conditions(self, policy: Certificate) -> list[str]:
        """What the promise rests on beside the conditions of every count."""
        raise NotImplementedError

    def count_wrong(self, policy: Certificate) -> str | None:
        """How often that may be wrong, where it is not so often over the draw of the rows."""
        return None

    def one_look(self) -> str:
        """That it was fixed before looking, and what is covered otherwise."""
        return ONE_LOOK

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """A threshold for each count that the rule asks for."""
        steps = evidence.steps(required_of(self, evidence, level))
        return Certified(steps, evidence.rows, evidence.qualified, Counts())


def required_of(promise: CountPromise, evidence: Evidence, level: Level) -> tuple[Requirement, ...]:
    """The counts that these rows have to meet, or ``NotCertifiable``."""
    rows, qualified = evidence.rows, evidence.qualified
    if rows == 0:
        raise InvalidInput("groups", f"group {evidence.group!r} has a target but no calibration rows.")
    required = promise.requirements(rows, qualified, level)
    needed = max(each.count for each in required)
    if needed > qualified:
        at, later = f"alpha={level.alpha:g}, rule={level.rule!r}", "simultaneous" in promise.rules
        more = {"group": evidence.group, "simultaneous_rule": later}
        raise too_few(promise, level, rows, qualified, needed, at, **more)
    return required


def too_few(
    promise: CountPromise, level: Level, rows: int, qualified: int, needed: int, at: str, **more: Any
) -> NotCertifiable:
    """The refusal of a count; ``at`` which level, in words."""
    k, share = promise.largest(rows, qualified, level)
    return NotCertifiable(
        Shortfall(
            target=f"{promise.describe()} ({at})", rows=rows, qualified_available=qualified,
            critical_count=needed, rows_needed=estimate_rows(promise, rows, qualified, level),
            largest_k=k, largest_share=share, **more,
        )
    )  # fmt: skip


def counts_of(evidence: Mapping[str | None, Evidence], terms: Terms) -> dict[str | None, list[int]]:
    """The order statistics that each group's threshold comes from; none where a group has too few rows."""
    counts: dict[str | None, list[int]] = {}
    for name, promise in terms.targets.items():
        assert isinstance(promise, CountPromise)
        for level in dict.fromkeys((terms.level, terms.own_level)):
            with suppress(NotCertifiable):
                required = required_of(promise, evidence[name], level)
                counts.setdefault(name, []).extend(each.count for each in required)
    return counts


def estimate_rows(promise: CountPromise, rows: int, qualified: int, level: Level) -> int | None:
    """About how many rows certify the target at the share of qualified rows seen; None if never."""
    if qualified <= rows * promise.limit_rate(level):
        return None

    def enough(n: int) -> bool:
        available = math.floor(n * qualified / rows)
        return promise.count_about(n, available, level) <= available

    high = max(rows, 2)
    while not enough(high):
        high *= 2
        if high > MOST_ROWS:
            return None
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class RatePromise(CountPromise, frozen=True):
    """A promise of qualified candidates on the list, as a share of all candidates."""

    @property
    def rate(self) -> Fraction:
        raise NotImplementedError


class Counts(Proof, tag="counts", frozen=True):
    """The critical counts beside the thresholds are all that is needed."""

    counted = True
    rests_on: ClassVar[str | None] = None
    many_steps = True

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        return cutoff.promised(CountPromise).count_wrong(policy) or super().wrong(cutoff, policy)

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return f"the draw of {policy.drawn_rows}"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        promise = cutoff.promised(CountPromise)
        rows = SCORE_FIXED, *ALL_ROWS, alpha_bounds(policy.alpha)
        return *rows, self.when_fixed(promise, policy), *promise.count_conditions(policy)

    def when_fixed(self, promise: CountPromise, policy: Certificate) -> str:
        """What had to be fixed before looking at the rows."""
        if policy.rule not in ("dkw", "simultaneous"):
            return promise.one_look()
        drawn = policy.salt_hash is not None or policy.shift is not None or policy.thinning is not None
        return AFTER_LOOKING + OF_ONE_DRAW * drawn

    def evidence(self, cutoff: Cutoff) -> str:
        first = cutoff.steps[0]
        of = f"of {cutoff.qualified:,} qualified calibration rows (of {cutoff.rows:,})"
        if first.reached in (None, first.critical_count):
            least = "at least " if first.reached is None else ""
            return f"{least}{first.critical_count:,} {of} score at or above it, as many as needed"
        if first.tie_break is not None:
            counted = f"ties at it were broken so that at least {first.critical_count:,} count"
            return f"{first.reached:,} {of} score at or above it; {counted}, as many as needed"
        return f"{first.reached:,} {of} score at or above it, and {first.critical_count:,} were needed"

    def check(self, cutoff: Cutoff) -> None:
        promise = cutoff.promised(CountPromise)
        hold(cutoff.steps[0].pool_size == promise.smallest_pool, "it has no threshold for the smallest pool")
        rows = (cutoff.rows, cutoff.qualified, cutoff.level)
        for step in cutoff.steps:
            if not promise.is_enough(step, *rows):
                needed = promise.count_at(step.pool_size, *rows)
                claimed = f"critical count {step.critical_count}"
                few = f"{claimed} is less than the {needed} that {cutoff.rows} rows need"
                hold(needed <= step.critical_count, few)
        sizes = [(step.pool_size, -step.critical_count) for step in cutoff.steps]
        hold(sizes == sorted(set(sizes)), "its steps are out of order")


AFTER_LOOKING = (
    "Every k and every threshold is covered at once: the target may have been chosen "
    "after looking at these rows, alpha and the rule not."
)
OF_ONE_DRAW = (
    " That is so of one calibration: each draws random numbers of its own, and to choose among several is "
    "not covered."
)


class Looks(Counts, tag="looks", frozen=True):
    """The looks of a campaign so far [theory: reviews]: rows, cumulative alpha and count at each.

    ``chosen`` is the look whose count gave the threshold in force. With an ``audit_rate`` the rows are
    candidates drawn at it from every pool, listed or not.
    """

    counted = False
    in_campaign = True
    rests_on = "the pools of a campaign"
    estimated_from = "the rows that were known at the last update"
    together = "this statement and those of the campaign's other thresholds, earlier and later, together are"

    rows: tuple[int, ...]
    budgets: tuple[float, ...]
    counts: tuple[int, ...]
    chosen: int
    audit_rate: Chance | None = None

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return "the draw of its rows and pools"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        fixed = (
            "The campaign's schedule, target and alpha were fixed beforehand; the sizes of its pools do "
            "not depend on scores or labels; "
        )
        if self.audit_rate is None:
            fixed += "every pool screened is in the evidence, and a review that has not come counts as not "
            fixed += "qualified."
        else:
            fixed += "beside the calibration rows the evidence is candidates of every pool screened, each "
            fixed += f"drawn with probability {percent(self.audit_rate)}, shortlisted or not, by a draw that "
            fixed += "depends on nothing else; one whose review has not come counts as not qualified."
        *common, _ = super().conditions(cutoff, policy)[:5]
        return (*common, fixed, *cutoff.promised(CountPromise).count_conditions(policy))

    def sure(self, policy: Certificate) -> str:
        return f"{at_most(policy.alpha, 'campaign', 'ever makes', 'ever make')} a false promise"

    def check(self, cutoff: Cutoff) -> None:
        rate, budgets = cutoff.promised(RatePromise).rate, list(self.budgets)
        hold(bool(budgets), "a campaign has at least one look")
        hold(cutoff.group is None, "campaigns promise one average")
        hold(len(self.rows) == len(budgets) == len(self.counts), "a look lacks its rows or count")
        hold(budgets[0] > 0 and budgets == sorted(budgets), "the budgets fall")
        hold(budgets[-1] <= cutoff.level.alpha, "the looks spend more than alpha")
        hold(0 <= self.chosen < len(self.rows), "no look gave the threshold")
        hold(self.rows[0] > 0 and self.rows[self.chosen] == cutoff.rows, "the row counts differ")
        counts = first_crossing_counts(self.rows, rate, budgets)
        hold(counts == list(self.counts), f"the looks' counts should be {counts}")
        claimed = [(step.pool_size, step.critical_count) for step in cutoff.steps]
        hold(claimed == [(0, counts[self.chosen])], f"critical counts {claimed} contradict its looks")
