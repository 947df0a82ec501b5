"""The false share of one pool's list, on average over calibrations: conformal selection
[theory: precision]."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats
from surelist._files import hold
from surelist._numerals import of_every
from surelist.bounds.precision import false_share_rank
from surelist.promises.conditions import BESIDE, Proved
from surelist.promises.curve import count_at_least
from surelist.promises.evidence import Evidence, scores_fingerprint
from surelist.promises.options import SHARE
from surelist.promises.phrases import ALL_ROWS, ONE_LOOK, ROWS_APART, SCORE_FIXED, counted, number, percent
from surelist.promises.promise import About, Level, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse


class FalseShare(Promise, tag="false-share", frozen=True):
    """At most a ``share`` of this pool's list is not qualified, on average over calibrations and pools.

    The pool is given as ``unlabelled=``, and its policy selects from no other. Nothing is said about the
    list at hand alone; for that see ``Precision``.

    Parameters
    ----------
    share : float
        Between 0 and 1: of those listed, how many may be not qualified on average.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.FalseShare(0.2).describe()
    'at most 20% of the shortlist not qualified, on average'
    """

    help = "At most this share of one pool's list is not qualified, on average; needs the pool, unlabelled."
    flags = (("false_share", "share"),)
    about = About.THIS_POOL
    others = "needed"

    proved_with = (
        Proved("precision", labels=("missing", "thinned"), others=("given",)),
        Proved("shift", labels=("missing",), shift=("known",), others=("given",), pools=BESIDE),
    )

    share: Annotated[float, SHARE]

    def describe(self) -> str:
        return f"at most {100 * self.share:g}% of the shortlist not qualified, on average"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        pool = evidence.require_others()
        ordered = np.sort(pool)[::-1]
        above = count_at_least(evidence.scores[~evidence.good], ordered)
        listed = false_share_rank(above, evidence.rows, check.as_fraction(self.share, "share"))
        if listed == 0:
            few = "No candidate of this pool scores high enough above the calibration rows that are not"
            more = "Allow a larger share, or bring more rows."
            raise refuse(self, level, evidence, f"{few} qualified: the list would be empty. {more}")
        proof = ConformalList(len(pool), scores_fingerprint(pool), listed, int(above[listed - 1]))
        steps = (Step(0, listed, float(ordered[listed - 1])),)
        return Certified(steps, evidence.rows, evidence.qualified, proof)


NO_OTHER = "It is about the pool that was given and selects from no other."


class OfThisPool(Proof, frozen=True):
    """About the ``pool`` candidates of one pool, which has this ``fingerprint``, and of no other."""

    pool: int
    fingerprint: str

    def is_of(self, scores: Floats) -> bool:
        return self.fingerprint == scores_fingerprint(scores)


class ConformalList(OfThisPool, tag="false-share", frozen=True):
    """The ``listed`` best of the pool, by Benjamini-Hochberg.

    ``above`` calibration rows that are not qualified score at least as high as the last one listed.
    """

    uses_alpha = False

    listed: int
    above: int

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        listed = f"of this pool's {number(self.pool)} candidates {number(self.listed)} are shortlisted"
        most = f"at most {percent(cutoff.promised(FalseShare).share)} on average"
        return f"{listed} by a procedure whose false share, of those listed, is {most}"

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        over = f"draws of the {counted(cutoff.rows, 'calibration row')} and the pool together"
        return f"true over {over}, and says nothing about this list alone"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        average = "An average over many calibrations and pools: the list at hand may hold a smaller share of"
        own = "For this policy's own share, in the long run and with confidence, ask for Precision."
        average = f"{average} qualified candidates, about half the time. {own}"
        alike = SCORE_FIXED, *ALL_ROWS, ROWS_APART
        return *alike, average, NO_OTHER, ONE_LOOK

    def evidence(self, cutoff: Cutoff) -> str:
        above = counted(self.above, "calibration row")
        return f"{above} of those not qualified score as high as the last one listed"

    def check(self, cutoff: Cutoff) -> None:
        possible = 0 < self.listed <= self.pool and 0 <= self.above <= cutoff.rows - cutoff.qualified
        hold(possible, "the counts are impossible")
        false = check.as_fraction(cutoff.promised(FalseShare).share, "share")
        within = (1 + self.above) * self.pool <= false * self.listed * (cutoff.rows + 1)
        hold(within, "the false share allowed is exceeded")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        false = of_every(cutoff.promised(FalseShare).share)
        return f"on lists made in this way at most {false} candidates are not qualified, on average"

    def sure(self, policy: Certificate) -> str:
        return "it is true on average over calibrations and pools, and says nothing about this one list"

    def whom(self, policy: Certificate) -> str:
        return "It is about lists of this one pool, on average over all that was left to chance."
