"""Keep at least a share of all qualified candidates; rows are the units. Of a collection: ``few_labels``."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._numerals import about, number, of_every
from surelist.promises.conditions import BESIDE, GIVEN, OF_LABELLING, ONE_LIST, Proved, from_rows
from surelist.promises.curve import PromiseCurve, certified_rates, drawn
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.counts import MOST_ROWS, CountPromise
from surelist.promises.options import SHARE
from surelist.promises.phrases import LONG_RUN, more_odds, percent
from surelist.promises.promise import Level, PageChoice, Watched
from surelist.promises.state import Certificate, Certified, Cutoff, Step

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence, RowColumns

KEEP = "Keep at least {share:95|Percent of qualified candidates kept} % of "
WHOLE_POPULATION = (
    "The share is that of the whole population; in a single pool the share kept may lie below it, "
    "about half the time if the promise is only just true."
)


class Recall(CountPromise, tag="recall", frozen=True):
    """The shortlist keeps at least a ``share`` of all qualified candidates [theory: recall].

    The share is the population's, P(F >= t given Y = 1); at the boundary a single pool's own
    recall lies below it about half the time.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Recall(0.95).describe()
    'at least 95% of all qualified candidates kept'
    """

    page = (
        PageChoice(
            "recall",
            "Miss few",
            KEEP + "all qualified candidates.",
            "share kept",
            by_group=("Miss few, in each group", KEEP + "the qualified candidates of each group."),
        ),
    )
    labelled = PageChoice(
        "recall",
        "Miss few of these candidates",
        "A list that holds at least {share:90|Percent of qualified candidates kept} % of the qualified ones "
        "among these. Every label that is asked for has to come.",
    )
    help = "Keep this share of all qualified candidates."
    flags = (("recall", "share"),)
    alias = "recall"
    sample = "control"
    of_qualified = True
    fixed_boundary = True
    needs_audit = True
    in_whole_pools = "NextPool(recall=...)"
    certified = ("Of the qualified kept, at least, %", "Kept, at least, %", True)
    single_list = LONG_RUN
    every_label = True

    proved_with = (
        *from_rows("recall", ("thinned",), ("own", "overlapping"), ("known", "within")),
        Proved("two-promises", labels=("thinned",), others=GIVEN, only=("promises",), **ONE_LIST),
        Proved("shift", shift=("known", "within"), others=GIVEN, pools=BESIDE, only=("promises",),
               **ONE_LIST),
        replace(OF_LABELLING, section="collection-recall", labels=()),
        replace(OF_LABELLING, section="collection-recall-block", labels=()),
        Proved("noise", labels=("noisy",), only=("labels",)),
    )  # fmt: skip

    share: Annotated[float, SHARE]

    def describe(self) -> str:
        return f"at least {100 * self.share:g}% of all qualified candidates kept"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        if evidence.noise is not None:
            from surelist.promises.kinds.rate_proofs import certify_share

            return certify_share(evidence, self, level)
        return super().certify(evidence, level, most)

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        fewest = self.fewest_qualified(level)
        if qualified < fewest:
            return fewest
        return bounds.critical_count(qualified, self.share, level.alpha)

    def fewest_qualified(self, level: Level) -> int:
        """The smallest number of qualified rows that certify anything: share^number <= alpha."""
        number = max(1, math.floor(math.log(level.alpha) / math.log(self.share)) - 1)
        while number < MOST_ROWS and bounds.critical_count(number, self.share, level.alpha) > number:
            number += 1
        return number

    def is_enough(self, step: Step, rows: int, qualified: int, level: Level) -> bool:
        exact = level.rule == "exact"
        return exact and bounds.certifies(qualified, self.share, level.alpha, step.critical_count)

    def limit_rate(self, level: Level) -> float:
        return 0.0

    def largest(self, rows: int, qualified: int, level: Level) -> tuple[None, float]:
        return None, bounds.largest_rate(qualified, qualified, level.alpha) if qualified else 0.0

    @property
    def kept_share(self) -> Fraction:
        return check.as_fraction(self.share, "share")

    def oracle_rate(self, alpha: float, base_rate: float) -> float:
        return self.share * base_rate

    def watched(self, policy: Certificate) -> tuple[Watched, ...]:
        return (Watched(self.kept_share, audited=True),)

    def widened(self, within: float) -> Recall:
        return replace(self, share=more_odds(self.share, within))

    def claimed(self, whose: str, by_group: bool) -> str:
        of_whom = " of the group" if by_group else ""
        return f"{whose} keeps at least {percent(self.share)} of all qualified candidates{of_whom}"

    def count_conditions(self, policy: Certificate) -> list[str]:
        return [WHOLE_POPULATION]

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        keeps = f"at least {of_every(self.share)} qualified candidates"
        listed = policy.listed_per(cutoff)
        part = "" if listed is None else f", about {about(listed[0])} of {number(listed[1])} candidates,"
        return f"in the long run the list{part} will keep {keeps}"

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        group = policy.group_of(cutoff)
        whose = "" if group is None else f" in group {group!r}"
        words, nobody = f"of the qualified{whose} are listed", "none of the rows is qualified"
        return (ShareSeen(seen.listed & seen.good, seen.good, self.share, words, nobody),)

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve:
        qualified = int(np.count_nonzero(rows.good))
        alpha = cutoff.level.alpha
        return drawn(
            cutoff, rows, self.share, lambda _, held: certified_rates(qualified, held, alpha, "exact")
        )
