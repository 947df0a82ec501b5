"""At least k qualified candidates on an average list; rows are the units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, _numerals as numerals, bounds
from surelist._arrays import Floats, Ints
from surelist.bounds.collection import block_rate_count
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.conditions import BESIDE, EVERY, GIVEN, LABELLED, ONE_LIST, Proved, from_rows
from surelist.promises.curve import PromiseCurve, certified_rates, drawn
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.counts import RatePromise
from surelist.promises.options import POOL_SIZE, K
from surelist.promises.phrases import counted, qualified
from surelist.promises.promise import BlockNeed, Level, PageChoice, Watched
from surelist.promises.state import Certificate, Certified, Cutoff, ExcessBound, Step

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence, RowColumns


ON_AVERAGE = (
    "At least {k:5|Qualified candidates needed} qualified candidates on the shortlist of an average pool of "
    "{pool_size:100|Candidates in a pool}."
)


class Expected(RatePromise, tag="expected", frozen=True):
    """At least ``k`` qualified candidates on the shortlist of an average pool [theory: exact].

    Parameters
    ----------
    k : float
        Qualified candidates, fractions allowed.
    pool_size : float
        Candidates in a pool, or their expectation where pools vary [theory: random-pool-size].

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Expected(5, pool_size=100).describe()
    'at least 5 qualified candidates on average in pools of 100'
    """

    page = (
        PageChoice(
            "expected",
            "On average",
            ON_AVERAGE,
            "average",
            by_group=(
                "On average, for each group",
                "At least this many qualified candidates of each group, in an average pool of "
                "{pool_size:100|Candidates in a pool} candidates of all groups:",
            ),
            beside=" If a precision is needed too: of those listed at least "
            "{also=share|Percent of the list that is qualified, also} % qualified (may stay empty).",
        ),
    )
    labelled = PageChoice("expected", "For future pools like these", ON_AVERAGE)
    help = "At least K qualified in an average pool."
    flags = (("expect", "k"),)
    alias = "expect"
    sample = "block"
    paper_rule = "dkw"
    fixed_boundary = True
    rules = bounds.RULES
    top_only = True
    in_whole_pools = "PoolAverage(k)"
    single_list = phrases.ANY_LIST
    others = "shorter"

    proved_with = (
        *from_rows("exact", ("missing", "thinned"), EVERY, ("known", "within"), bounds.RULES),
        Proved("rank-chain", labels=("missing", "thinned"), others=GIVEN, **ONE_LIST),
        Proved("rank-chain", labels=("missing",), shift=("known",), others=GIVEN, pools=BESIDE, **ONE_LIST),
        Proved("no-split", labels=("missing", "thinned"), **ONE_LIST),
        Proved("shift", labels=("missing",), shift=("known",), pools=BESIDE, **ONE_LIST),
        Proved("shift", shift=("within",), pools=BESIDE, **ONE_LIST),
        Proved("shift", labels=("missing",), shift=("within",), others=GIVEN, pools=BESIDE,
               only=("promises", "others"), **ONE_LIST),  # by the exact rule
        Proved("sampled-labels", labels=("two rates",)),
        LABELLED,
        Proved("reviews", evidence=("campaign", "audited campaign"), labels=("missing",), only=("evidence",)),
        Proved("noise", labels=("noisy",), others=("given",), only=("labels", "others")),
    )  # fmt: skip

    k: Annotated[float, K]
    pool_size: Annotated[float, POOL_SIZE]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.pool_size:
            raise InvalidInput("k", expected=f"at most the pool size, {self.pool_size:g}", got=f"{self.k:g}")

    @property
    def rate(self) -> Fraction:
        """Qualified candidates on the list, as a share of the pool."""
        return check.as_fraction(self.k, "k") / check.as_fraction(self.pool_size, "pool_size")

    def describe(self) -> str:
        size = numerals.number(self.pool_size, 10)
        return f"at least {phrases.qualified(self.k)} on average in pools of {size}"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        if evidence.sampled is None and evidence.noise is None and evidence.others is None:
            return super().certify(evidence, level, most)
        from surelist.promises.kinds.rate_proofs import certify_audited, certify_chain, certify_rate

        if evidence.sampled is not None:
            return certify_audited(evidence, self, level)
        if evidence.noise is not None:
            return certify_rate(evidence, self, level)
        chain = certify_chain(evidence, self, level) if evidence.alike else None
        return chain or super().certify(evidence, level, most)

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        return bounds.critical_count(rows, self.rate, level.alpha, level.rule)

    def count_about(self, rows: int, qualified: int, level: Level) -> int:
        # the paper's band where the simultaneous rule would take seconds
        quick = replace(level, rule="dkw") if level.rule == "simultaneous" else level
        return self.count_at(0, rows, qualified, quick)

    def is_enough(self, step: Step, rows: int, qualified: int, level: Level) -> bool:
        exact = level.rule == "exact"
        return exact and bounds.certifies(rows, self.rate, level.alpha, step.critical_count)

    def limit_rate(self, level: Level) -> float:
        return float(self.rate)

    def largest(self, rows: int, qualified: int, level: Level) -> tuple[float, None]:
        return self.pool_size * bounds.largest_rate(rows, qualified, level.alpha, level.rule), None

    def block_count(self, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
        return block_rate_count(size, block, drawn, self.rate, alpha)

    def block_need(self, size: int) -> BlockNeed:
        rate = float(self.rate)
        return rate, rate * (1 - rate) / size, (np.array([rate]), np.ones(1))

    def oracle_rate(self, alpha: float, base_rate: float) -> float:
        return float(self.rate)

    def watched(self, policy: Certificate) -> tuple[Watched, ...]:
        return (Watched(self.rate),)

    def widened(self, within: float) -> Expected:
        return replace(self, k=self.pool_size * phrases.more_odds(self.k / self.pool_size, within))

    def held_in(self, size: int) -> float:
        return self.k * size / self.pool_size

    def claimed(self, whose: str, by_group: bool) -> str:
        size = counted(self.pool_size, "candidate")
        pools = f"pools with {size} of the group" if by_group else f"pools of {size}"
        return f"{whose} holds at least {qualified(self.k)} on average over {pools}"

    @classmethod
    def estimated(cls, targets: Sequence[Expected], qualified: Sequence[int]) -> bool:
        asked = [each.k for each in targets]
        typed = len(set(asked)) == 1 or all(float(f"{k:.3g}") == k for k in asked)  # as people choose them
        each = [k / count for k, count in zip(asked, qualified, strict=True) if count]
        return not typed and len(each) == len(asked) and max(each) - min(each) <= 1e-9 * max(each)

    def one_look(self) -> str:
        again = ", and the simultaneous rule or a campaign where it was chosen before looking."
        return phrases.ONE_LOOK.removesuffix(".") + again

    def count_conditions(self, policy: Certificate) -> list[str]:
        sentences = [phrases.POOL_SIZE_KNOWN]
        if policy.grouped and policy.group_rows == "own":
            sentences.append("The pool sizes per group were known, not estimated from the calibration rows.")
        return sentences

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        k, per = numerals.number(self.k, 10), numerals.number(self.pool_size, 10)
        listed = policy.listed_per(cutoff)
        if listed is not None and listed[0] >= self.k:
            per += "" if policy.group_of(cutoff) is None else " of the group"
            return phrases.of_listed(k, listed[0], per)
        who = "qualified ones" if policy.group_of(cutoff) is None else "qualified ones of this group"
        return f"on average the list of a pool of {per} candidates will hold at least {k} {who}"

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        return found_share(float(self.rate), cutoff, policy, seen)

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve | None:
        if cutoff.group is None:
            return None  # the guarantee curve says it, for every target at once

        def certified(_: Ints, held: Ints) -> Floats:
            return self.pool_size * certified_rates(rows.rows, held, cutoff.level.alpha, cutoff.level.rule)

        return drawn(cutoff, rows, float(self.k), certified)

    def excess(self, cutoff: Cutoff) -> ExcessBound:
        """How far above k a list may lie: by Proposition 3 of the paper, and by the count alone."""
        n, step, alpha = cutoff.rows, cutoff.steps[0], cutoff.level.alpha
        untied = step.tie_break is not None
        reached = step.critical_count if untied else step.reached
        if reached is None:
            return ExcessBound(None, None)
        dkw = bounds.critical_count(n, self.rate, alpha, "dkw")
        paper = bounds.excess_paper(n, self.pool_size, alpha) if reached <= dkw else None
        # the law of one count: after looking, the count at hand is one of many
        if cutoff.level.rule == "exact":
            count = bounds.excess_count(n, reached, self.k, self.pool_size, alpha, untied=untied)
            return ExcessBound(paper, count)
        return ExcessBound(paper, None)


def found_share(rate: float, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen]:
    """Qualified and listed, of all candidates."""
    group = policy.group_of(cutoff)
    whose = "" if group is None else f" in group {group!r}"
    words, rows = f"of all candidates{whose} are qualified and listed", seen.rows
    if policy.group_rows == "all" and seen.among is not None and group is not None:
        words, rows = f"of all candidates are{whose}, qualified and listed", seen.among
    return (ShareSeen(seen.listed & seen.good, rows, rate, words, f"none of the rows is{whose}"),)


def equal_opportunity(
    labels: Any, groups: Any, k: float, pool_sizes: Mapping[Any, float]
) -> dict[Any, Expected]:
    """Targets per group in proportion to each group's qualified candidates, summing to k.

    k_g = k P(Y=1, g) / P(Y=1) is estimated from ``labels`` and ``groups``; the size of a pool per
    group is known and given in ``pool_sizes`` (for ``Groups(..., rows="all")``, the whole pool's size for
    every group). These rows must not be the calibration rows: targets estimated on the rows that
    certify them were false in 10-33 % at 10 %. ``calibrate`` refuses targets exactly in proportion to its
    own qualified rows, wherever they come from; these are a hair above the estimate, so that round ones are
    known too [theory: groups].

    Parameters
    ----------
    labels : array_like
        0 or 1 of rows that are not the calibration rows.
    groups : array_like
        The group of each row.
    k : float
        Qualified candidates that all groups together are promised.
    pool_sizes : mapping of group to float
        Candidates of each group in a pool.

    Returns
    -------
    dict
        A target per group, for ``calibrate``.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import surelist as sl
    >>> labels, groups = [1, 1, 1, 0, 1, 0, 0, 0], ["a", "a", "a", "a", "b", "b", "b", "b"]
    >>> targets = sl.equal_opportunity(labels, groups, k=5, pool_sizes={"a": 50, "b": 50})
    >>> round(targets["a"].k, 6), round(targets["b"].k, 6)
    (3.75, 1.25)
    """
    k = check.as_positive(k, "k")
    check.require_one_index(labels=labels, groups=groups)
    qualified, _ = check.as_labels(labels)
    check.require_rows(qualified, "labels")
    names = check.as_groups(groups)
    check.require_length(names, len(qualified), "groups")
    if not qualified.any():
        raise InvalidInput("labels", expected="at least one qualified row", got="none")
    if not isinstance(pool_sizes, Mapping):
        mapping = "a mapping of group to the size of its pools"
        remedy = "They have to be known, not estimated from rows."
        raise InvalidInput("pool_sizes", expected=mapping, got=repr(pool_sizes), remedy=remedy)
    keys = {check.group_name(key, "pool_sizes"): key for key in pool_sizes}
    sizes = {name: pool_sizes[key] for name, key in keys.items()}
    known, codes = np.unique(names, return_inverse=True)
    unseen = sorted(set(sizes) - set(known.tolist()))
    if unseen:
        no_rows = f"group {unseen[0]!r} has no rows, so its share of the qualified is not known."
        way_out = "Gather rows of it, or let it be part of a larger group: merge_groups."
        raise InvalidInput("pool_sizes", f"{no_rows} {way_out}")
    if sorted(sizes) != known.tolist():
        raise InvalidInput("pool_sizes", expected=f"the groups {known.tolist()}", got=f"{sorted(sizes)}")
    counts = np.bincount(codes, weights=qualified).astype(int)
    targets = dict[Any, Expected]()
    for name, count in zip(known.tolist(), counts.tolist(), strict=True):
        if count == 0:
            raise InvalidInput("groups", f"group {name!r} has no qualified rows. Merge it: merge_groups.")
        try:
            share = k * count / int(counts.sum())
            if share != sizes[name]:
                share = math.nextafter(share, math.inf)  # so that 3.5 is no choice of 3.5
            targets[keys[name]] = Expected(share, sizes[name])
        except InvalidInput as error:
            raise InvalidInput("k", f"group {name!r}: {error} Ask for less.") from error
    return targets
