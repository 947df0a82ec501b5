"""Labels known above a score, and an audit of the rest: the worst split of the target between both decides.

A row that was not drawn has no label and stays in [theory: sampled-labels].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surelist import _check as check
from surelist._files import hold
from surelist.bounds.sampled import audit_count, edge_count
from surelist.promises import phrases
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.counts import RatePromise, rate_promise_of
from surelist.promises.phrases import number, percent
from surelist.promises.promise import Level, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence


class Audited(Proof, tag="audited", frozen=True):
    """``above`` qualified rows at or above ``edge``, where all labels are known; ``needed`` audited below.

    Below the edge a row was labelled with probability ``audit_rate``; ``available`` of the labelled ones
    there are qualified. With ``enough`` qualified rows above the edge none is needed below.
    """

    drawn_labels = True
    rests_on = "the probabilities with which labels were drawn"

    edge: float
    audit_rate: float
    above: int
    enough: int
    needed: int
    available: int
    unlabelled: int

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        return rate_promise_of(cutoff).claimed("the shortlist", by_group=False)

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        return f"{phrases.wrong_over_rows(policy.alpha, cutoff.rows)} and of those of them that were labelled"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        labelled = (
            f"Every row that scores at least {number(self.edge)} was to be labelled, and each of the others "
            f"with probability {percent(self.audit_rate)}, by a draw of its own that depends on nothing "
            "else; whoever was drawn has a label, but for those counted here as not qualified. Edge and rate "
            "were fixed before."
        )
        every = f"All {number(self.unlabelled)} rows without a label are in: none was left out."
        return phrases.common_conditions(
            policy.alpha, phrases.ROWS_ALIKE, phrases.POOL_SIZE_KNOWN, labelled, every
        )

    def evidence(self, cutoff: Cutoff) -> str:
        if self.needed == 0:
            return (
                f"{number(self.enough)} qualified rows at or above the threshold, all of whose labels are "
                f"known, of {number(self.above)} at or above {number(self.edge)}"
            )
        return (
            f"{number(self.above)} qualified rows at or above {number(self.edge)}, and {number(self.needed)} "
            f"audited ones below it, of {number(self.available)}"
        )

    def check(self, cutoff: Cutoff) -> None:
        rate, rows, qualified, alpha = (
            rate_promise_of(cutoff).rate,
            cutoff.rows,
            cutoff.qualified,
            cutoff.level.alpha,
        )
        hold(self.above + self.available == qualified, "the qualified rows do not add up")
        hold(min(self.above, self.needed) >= 0 and self.needed <= self.available, "too few audited rows")
        hold(0 <= self.unlabelled <= rows - qualified, "the number without a label is impossible")
        needed = audit_count(rows, self.above, rate, self.audit_rate, alpha)
        hold(self.needed >= needed, f"{self.needed} audited rows are less than the {needed} needed")
        if cutoff.steps[0].threshold >= self.edge:
            enough = edge_count(rows, rate, self.audit_rate, alpha)
            hold(self.above >= self.enough >= enough, "too few qualified rows for a threshold above the edge")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        return rate_promise_of(cutoff).plainly(cutoff, policy)

    def share_seen(
        self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen, everyone: RowsSeen
    ) -> ShareSeen:
        return rate_promise_of(cutoff).share_seen(cutoff, policy, seen, everyone)


def certify_audited(evidence: Evidence, target: RatePromise, level: Level) -> Certified:
    """Two rates: the needed-th best audited qualified score below the edge, or enough above it."""
    sampled, scores = evidence.sampled, evidence.scores
    assert sampled is not None
    drawn, good = sampled.read(len(scores))
    edge = float(check.as_scores([sampled.above], "above")[0])
    top = scores >= edge
    above, below = int(np.count_nonzero(good & top)), scores[good & ~top]
    rows, available = len(scores), len(below)
    audit_rate = check.as_rate(sampled.probability, "probability")
    needed = audit_count(rows, above, target.rate, audit_rate, level.alpha)
    if needed > available:
        raise refuse(
            target, level, evidence,
            f"{above:,} qualified rows at or above {edge:g} ask for {_or_none(needed, rows)} audited "
            f"qualified rows below it, and there are {available:,}: audit more rows, or ask for less.",
            count=needed,
        )  # fmt: skip
    enough = edge_count(rows, target.rate, audit_rate, level.alpha)
    if needed == 0:  # every label above the edge is known: no audited row decides
        known = scores[good & top]
        threshold = float(np.partition(known, above - enough)[above - enough])
    else:
        threshold = float(np.partition(below, available - needed)[available - needed])
    proof = Audited(
        edge,
        float(sampled.probability),
        above,
        enough,
        needed,
        available,
        int(np.count_nonzero(~drawn)),
    )
    count = above + needed if needed else enough
    return Certified((Step(0, count, threshold),), rows, above + available, proof)


def _or_none(needed: int, rows: int) -> str:
    return f"{needed:,}" if needed <= rows else f"more than the {rows:,} rows there are, as"
