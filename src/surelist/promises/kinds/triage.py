"""Accept, look, reject: everyone is put on one of three lists [theory: triage].

Two fixed sequences of tests start at the ends. Those accepted and those rejected come with a promise; people
look at the rest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from surelist import _check as check, bounds
from surelist._arrays import Floats, Mask
from surelist._files import hold
from surelist._names import option
from surelist._numerals import about, of_every
from surelist.bounds._tails import safe
from surelist.bounds.precision import chances, passing
from surelist.errors import InvalidInput, NotCertifiable
from surelist.filters import ACCEPT, LOOK, REJECT
from surelist.promises.conditions import OF_LABELLING, Proved
from surelist.promises.evidence import Evidence
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.precision import Tested, grid, in_a_row
from surelist.promises.options import share_option
from surelist.promises.phrases import ALL_ROWS, LONG_RUN, OTHER_SCORES, counted, percent
from surelist.promises.promise import Level, PageChoice, Promise, Proof, Watched
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

ACCEPTED = share_option(
    "For a triage: of the accepted, the share that is qualified.", "the share of the accepted"
)
REJECTED = share_option(
    "For a triage: of the rejected, the share that is not qualified.", "the share of the rejected"
)
KEPT = share_option(
    "For a triage, instead: of all qualified, the share that is not rejected.",
    "the share that is not rejected",
)
LARGEST = share_option("For a triage with reject: the largest share of candidates to accept.")
MIDDLE = 0.5  # of candidates may be accepted at most, and the others rejected
RATIO = 1.02  # a step makes a list this much longer
FIRST = 3.0  # times as many rows on the first list as could pass at all
STARTS = {1: 16, 3: 3, 9: 1}  # of a side's alpha, by how many times longer than the first list
LONGEST_FIRST = 0.9  # of the way to the middle


class Triage(Promise, tag="triage", frozen=True):
    """Everyone is accepted, rejected or looked at by people [theory: triage].

    Of the accepted at least a share is qualified. Of the rejected at least a share is not (``reject``), or
    everyone else keeps a share of all qualified candidates (``reject_recall``). ``policy.triage`` says who is
    on which list; ``policy.select`` lists the accepted. Of a collection in hand, from ``Labelling``, with
    ``reject_recall`` [theory: collection-triage].

    Parameters
    ----------
    accept : float
        Of the accepted, the share that is qualified.
    reject : float, optional
        Of the rejected, the share that is not qualified; exactly one of ``reject`` and ``reject_recall``.
    reject_recall : float, optional
        Of all qualified candidates, the share that is not rejected.
    middle : float, optional
        With ``reject``: the largest share of candidates that may be accepted, fixed beforehand; at most all
        others are rejected. From a plan, or one half.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Triage(0.9, reject=0.9).describe()
    'at least 90% of the accepted qualified, and 90% of the rejected not'
    """

    page = (
        PageChoice(
            "triage",
            "Accept, look, reject",
            "Put everyone on one of three lists: of the accepted at least {accept:90|Percent of the accepted "
            "that is qualified} % are qualified; of the rejected at least {reject?:90|Percent of the "
            "rejected that is not qualified} % are not, or, with that field empty, at least {reject_recall?|"
            "Percent of all qualified that is not rejected} % of all qualified are not rejected. People look "
            "at the rest.",
        ),
    )
    labelled = PageChoice(
        "triage",
        "Accept, look, reject",
        "Put these very candidates on two lists: of the accepted at least {accept:90|Percent of the accepted "
        "that is qualified} % are qualified, and they hold at least {reject_recall:90|Percent of all "
        "qualified that is accepted} % of all qualified ones. People look at those between until the rest "
        "may be accepted unseen.",
    )
    help = "Of the accepted at least this share is qualified; needs unlabelled scores and a way to reject."
    flags = (("triage", "accept"),)
    others = "needed"
    planned = True
    every_label = True
    three_ways = True
    needs_audit = True
    single_list = LONG_RUN

    sample = "triage"

    proved_with = (
        Proved("triage", labels=("thinned",), others=("given",)),
        replace(OF_LABELLING, section="collection-triage"),
    )

    accept: Annotated[float, ACCEPTED]
    reject: Annotated[float | None, REJECTED] = None
    reject_recall: Annotated[float | None, KEPT] = None
    middle: Annotated[float | None, LARGEST] = None

    def __post_init__(self) -> None:
        if (self.reject is None) == (self.reject_recall is None):
            both = f"{option('reject')} and {option('reject_recall')}"
            raise InvalidInput("reject", f"expected exactly one of {both}.")
        if self.middle is not None and self.reject is None:
            raise InvalidInput("middle", f"goes with {option('reject')}; a recall needs none.")
        super().__post_init__()

    def describe(self) -> str:
        accepted = f"at least {100 * self.accept:g}% of the accepted qualified"
        if self.reject is not None:
            return f"{accepted}, and {100 * self.reject:g}% of the rejected not"
        return f"{accepted}, and {100 * (self.reject_recall or 0):g}% of all qualified not rejected"

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        first = f"of those whom this policy accepts at least {percent(self.accept)} are qualified"
        second = f"at least {percent(self.reject_recall or 0)} of all qualified candidates are not rejected"
        if self.reject is not None:
            second = f"of those whom it rejects at least {percent(self.reject)} are not"
        return f"{first}, and {second}, in the long run"

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        listed = policy.listed_per(cutoff)
        tail = "" if listed is None else f", about {about(listed[0])} of 100 candidates"
        first = f"at least {of_every(self.accept)} candidates accepted{tail}, will be qualified"
        if self.reject is not None:
            return f"in the long run {first}, and at least {of_every(self.reject)} rejected will not be"
        kept = of_every(self.reject_recall or 0)
        return f"in the long run {first}, and at least {kept} qualified are not rejected"

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        rejected = seen.rejected
        assert rejected is not None
        words, nobody = "of the accepted are qualified", "none of the rows is accepted"
        accepted = ShareSeen(seen.listed & seen.good, seen.listed, self.accept, words, nobody)
        if self.reject is None:
            kept, words = self.reject_recall or 0.0, "of the qualified are not rejected"
            nobody = "none of the rows is qualified"
            return accepted, ShareSeen(seen.good & ~rejected, seen.good, kept, words, nobody)
        words, nobody = "of the rejected are not qualified", "none of the rows is rejected"
        return accepted, ShareSeen(rejected & ~seen.good, rejected, self.reject, words, nobody)

    def watched(self, policy: Certificate) -> tuple[Watched, ...]:
        words = "the accepted are qualified"
        accepted = Watched(self.right_share, part="accepted", drawn=(ACCEPT,), words=words)
        if self.reject is None:
            lists, words = (ACCEPT, LOOK, REJECT), "the qualified are not rejected"
            kept = Watched(self.kept_share, audited=True, part="rejected", drawn=lists, words=words)
            return accepted, kept
        share, words = check.as_fraction(self.reject, "reject"), "the rejected are not qualified"
        return accepted, Watched(share, part="rejected", drawn=(REJECT,), unqualified=True, words=words)

    @property
    def kept_share(self) -> Fraction:
        return check.as_fraction(self.reject_recall or 0, "reject_recall")

    @property
    def right_share(self) -> Fraction:
        return check.as_fraction(self.accept, "accept")

    def of_collection(self) -> Triage:
        if self.reject is not None:
            way = "a labelling rejects with a recall of everyone else"
            raise InvalidInput("reject", f"{way}; ask for reject_recall instead.")
        return self

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """Half of alpha for each side; one that passes its last list hands it on to the other."""
        scores, good, others = evidence.scores, evidence.good, evidence.require_others()
        half, rows, share = level.alpha / 2, len(scores), self.middle or MIDDLE
        edge = -math.inf if self.reject is None else _largest(others, share)
        # first lists are as long as n, the shares and alpha say: nothing of the labels
        down, levels = _lists(others, edge, self.accept, half, rows, share)
        accepting = Tested.of(scores, good, down, self.accept)
        if self.reject is None:
            accepted = _ended(down, accepting, passing(accepting.chances, levels), half)
            rejected = self._kept(scores[good], half)
        else:
            up, more = _lists(-others, math.nextafter(-edge, math.inf), self.reject, half, rows, 1 - share)
            rejecting = Tested.of(-scores, ~good, up, self.reject)
            # one circle: a side that passes its last list hands its level on to the other's first
            both = np.append(accepting.chances, rejecting.chances), np.append(levels, more)
            passed = passing(*both)
            accepted = _ended(down, accepting, passed[: len(down)], half)
            rejected = _ended(up, rejecting, passed[len(down) :], half)
        if accepted is None or rejected is None:
            raise self._refusal(evidence, level, accepted is None)
        lower = rejected.edge if self.reject is None else math.nextafter(-rejected.edge, math.inf)
        sides = (number for each in (accepted, rejected) for number in astuple(each)[1:])
        proof = TwoLists(len(others), min(lower, accepted.edge), *sides)
        step = Step(0, accepted.right, accepted.edge)
        return Certified((step,), len(scores), int(np.count_nonzero(good)), proof)

    def _kept(self, hits: Floats, alpha: float) -> _Ended | None:
        """The recall of everyone else: one order statistic of the qualified rows."""
        if not len(hits):
            return None
        count = bounds.critical_count(len(hits), self.reject_recall or 0.0, alpha)
        if count > len(hits):
            return None
        return _Ended(float(np.sort(hits)[len(hits) - count]), len(hits), count, 1)

    def _refusal(self, evidence: Evidence, level: Level, accepting: bool) -> NotCertifiable:
        side, share = ("accept", self.accept) if accepting else ("reject", self.reject or self.reject_recall)
        rows = f"Of {counted(evidence.rows, 'calibration row')}, {evidence.qualified:,} are qualified"
        none = f"no list to {side} could be certified for {percent(share or 0)}"
        reason = f"{rows}, and {none}: ask for a smaller share, or bring more rows."
        return refuse(self, level, evidence, reason)


Part = Literal["half", "whole"]


class _Ended(Struct, frozen=True):
    """The longest list that passed: how many of it are as promised, lists in a row, and the part of alpha."""

    edge: float
    listed: int
    right: int
    steps: int
    part: Part = "half"


def _ended(thresholds: Floats, tested: Tested, passed: Mask, half: float) -> _Ended | None:
    """None where no list passed."""
    if not passed.any():
        return None
    at = int(np.flatnonzero(passed)[-1])
    part: Part = "half" if tested.chances[at] <= safe(half) else "whole"
    numbers = int(tested.listed[at]), int(tested.right[at]), in_a_row(passed, at)
    return _Ended(float(thresholds[at]), *numbers, part)


def _lists(
    others: Floats, edge: float, share: float, alpha: float, rows: int, most: float
) -> tuple[Floats, Floats]:
    """Thresholds that fall to the edge, each list a little longer, and the part of alpha of each.

    The first list has some times as many rows as could pass if all were right. By chance it may fail though
    longer ones would pass: some of alpha is kept for two of these, where they are short enough.
    """
    longest = LONGEST_FIRST * most
    first = min(longest, max(1 / rows, FIRST * math.log(alpha) / math.log(share) / rows))
    fits = (times for times in STARTS if times == 1 or first * times <= longest)
    weights = {first * times: STARTS[times] for times in fits}
    thresholds, levels, _ = grid(others, list(weights), list(weights.values()), alpha, RATIO)
    kept = int(np.count_nonzero(thresholds >= edge))
    return thresholds[:kept], levels[:kept]


def _largest(others: Floats, share: float) -> float:
    """The score that this share of candidates reaches."""
    rank = max(1, math.ceil(check.as_fraction(share, "middle") * len(others)))
    return float(np.partition(others, len(others) - rank)[len(others) - rank])


class TwoLists(Proof, tag="two-lists", frozen=True):
    """Who scores below ``reject_below`` is rejected, who reaches the cutoff is accepted.

    Per side: rows on its list, how many of them are as promised, lists passed in a row, and the part of
    alpha. By a recall the rows of the second side are the qualified ones, of whom so many are not rejected.
    """

    unlabelled: int
    reject_below: float
    accepted: int
    accepted_right: int
    accept_steps: int
    accept_part: Part
    rejected: int
    rejected_right: int
    reject_steps: int
    reject_part: Part

    @property
    def looked_from(self) -> float:
        return self.reject_below

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        fixed = "The first lists tested and the middle were fixed before looking at the labels of these rows."
        long_run = (
            "The shares are those of all who are ever accepted or rejected; a single pool may lie below."
        )
        labels = "Every calibration row has a label."
        return *ALL_ROWS, labels, OTHER_SCORES, fixed, long_run

    def evidence(self, cutoff: Cutoff) -> str:
        rows = f"{self.accepted_right:,} of {counted(self.accepted, 'calibration row')} accepted"
        first = f"{rows} are qualified, after {counted(self.accept_steps, 'list')} in a row passed"
        if cutoff.promised(Triage).reject is None:
            kept = f"at least {self.rejected_right:,} of {self.rejected:,} qualified rows"
            return f"{first}; {kept} are not rejected"
        rejected = f"{self.rejected_right:,} of {self.rejected:,} rejected are not"
        return f"{first}; {rejected}, after {counted(self.reject_steps, 'list')}"

    def check(self, cutoff: Cutoff) -> None:
        promise, level = cutoff.promised(Triage), cutoff.level
        hold(self.reject_below <= cutoff.steps[0].threshold, "some are accepted and rejected")
        hold(math.isfinite(self.reject_below), "nobody says who is rejected")
        most = {"half": level.alpha / 2, "whole": level.alpha}
        hold("half" in (self.accept_part, self.reject_part), "two walks have more than alpha")
        possible = 0 <= self.accepted_right <= min(self.accepted, cutoff.qualified)
        possible = possible and self.accepted <= cutoff.rows
        if promise.reject is not None:
            most_right = min(self.rejected, cutoff.rows - cutoff.qualified)
            possible = possible and 0 <= self.rejected_right <= most_right
        possible = possible and self.rejected <= cutoff.rows and self.unlabelled >= 1
        hold(possible, "the row counts are impossible")
        hold(min(self.accept_steps, self.reject_steps) >= 1, "no list passed")
        right = _passes(self.accepted, self.accepted_right, promise.accept, most[self.accept_part])
        hold(right, "it does not pass")
        if promise.reject is None:
            fits = (self.rejected, self.reject_part) == (cutoff.qualified, "half")
            enough = bounds.critical_count(self.rejected, promise.reject_recall or 0.0, level.alpha / 2)
            hold(fits and enough <= self.rejected_right <= self.rejected, "too few qualified are kept")
        else:
            right = _passes(self.rejected, self.rejected_right, promise.reject, most[self.reject_part])
            hold(right, "its rejected do not pass")


def _passes(listed: int, right: int, share: float, alpha: float) -> bool:
    return bool(chances(np.array([listed]), np.array([right]), share)[0] <= safe(alpha))
