"""How many of this very pool's best are qualified; the size of the list is fixed [theory: this-list]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._files import hold
from surelist.bounds.this_list import fixed_list, most_wrong_rows
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.conditions import Proved
from surelist.promises.kinds.false_share import scores_fingerprint
from surelist.promises.options import LIST_SIZE, SHARE
from surelist.promises.phrases import counted, number, percent, qualified
from surelist.promises.promise import About, Level, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence

FIXED = (
    "The size of the list, and the share if one is promised, were fixed before looking at the scores of this "
    "pool and at the labels; of lists of several sizes see list_curve."
)
TOGETHER = (
    "The chance is one over calibration rows and pool together: for the rows at hand, over many pools, it "
    "may lie above alpha."
)


class ThisList(Promise, tag="this-list", frozen=True):
    """So many of this very pool's best ``size`` candidates are qualified [theory: this-list].

    The pool is given as ``unlabelled=``, and its policy selects from no other.

    Parameters
    ----------
    size : int
        Candidates on the list, fixed before looking at the pool's scores.
    share : float, optional
        Yes or no: at least this share of the list is qualified. Without it the number is found that can be
        promised.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.ThisList(50, share=0.6).describe()
    "at least 60% of this pool's best 50 candidates qualified"
    """

    help = "Certify how many of one pool's best K are qualified; needs the pool, unlabelled."
    flags = (("this_list", "size"),)
    about = About.THIS_POOL
    others = "needed"

    proved_with = (Proved("this-list", labels=("missing",), others=("given",)),)

    size: Annotated[int, LIST_SIZE]
    share: Annotated[float | None, SHARE] = None

    def __post_init__(self) -> None:
        check.set_value(self, "size", check.as_count(self.size, "size"))
        if self.share is not None:
            check.set_value(self, "share", check.as_alpha(self.share, "share"))

    def describe(self) -> str:
        what = "as many as can be" if self.share is None else f"at least {100 * self.share:g}%"
        return f"{what} of this pool's best {phrases.number(self.size)} candidates qualified"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        pool = evidence.require_others()
        ordered = np.sort(pool)[::-1]
        if self.size > len(pool):
            raise InvalidInput(
                "size", f"expected at most the {len(pool):,} candidates of the pool, got {self.size}."
            )
        edge = float(ordered[self.size]) if self.size < len(pool) else -math.inf
        if ordered[self.size - 1] == edge:
            raise InvalidInput(
                "size",
                f"candidate {self.size:,} and the next one score alike, {edge:.10g}, so the list is not "
                "defined. Add a random number that breaks ties, smaller than any difference of scores, to "
                "rows and pool alike.",
            )
        above = evidence.scores > edge
        rows, wrong = int(np.count_nonzero(above)), int(np.count_nonzero(above & ~evidence.good))
        held = self._held(rows, wrong, level)
        if held == 0:
            raise refuse(
                self, level, evidence,
                f"{wrong:,} of {counted(rows, 'calibration row')} that score above the first candidate not "
                "listed are not qualified: nothing can be said of this list. Bring more rows.",
            )  # fmt: skip
        proof = ListHeld(len(pool), rows, wrong, held, scores_fingerprint(pool))
        step = Step(0, rows - wrong, float(ordered[self.size - 1]))
        return Certified((step,), evidence.rows, evidence.qualified, proof)

    def _held(self, rows: int, wrong: int, level: Level) -> int:
        """How many are certified to be qualified; 0: none, or not the share that was asked for."""
        if self.share is None:
            return self.size - fixed_list(rows, wrong, self.size, level.alpha)
        if wrong > most_wrong_rows(rows, self.size, self.share, level.alpha):
            return 0
        return math.ceil(check.as_fraction(self.share, "share") * self.size)


class ListHeld(Proof, tag="this-list", frozen=True):
    """Of the ``pool`` candidates the best are listed, and ``held`` of them are qualified.

    ``above`` calibration rows score above the first candidate who is not listed, ``wrong_above`` of them are
    not qualified.
    """

    lists_share = False

    pool: int
    above: int
    wrong_above: int
    held: int
    fingerprint: str

    def is_of(self, scores: NDArray[np.float64]) -> bool:
        """Whether these are the scores of its pool, in any order."""
        return self.fingerprint == scores_fingerprint(scores)

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        listed = f"of this pool's {number(self.pool)} candidates the best {number(_promise(cutoff).size)}"
        return f"{listed} are shortlisted, and at least {qualified(self.held)} are among them"

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        rows = counted(cutoff.rows, "calibration row")
        return f"wrong for at most {percent(policy.alpha)} of draws of the {rows} and the pool together"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        exchangeable = (
            "Calibration rows and the candidates of this pool are exchangeable: none of them is special."
            if _promise(cutoff).share is None
            else phrases.ROWS_ALIKE
        )
        return (
            phrases.SCORE_FIXED, exchangeable, phrases.NO_ROW_LEFT_OUT, FIXED, TOGETHER,
            phrases.alpha_bounds(policy.alpha),
            "It is about the pool that was given and selects from no other.", phrases.ONE_LOOK,
        )  # fmt: skip

    def evidence(self, cutoff: Cutoff) -> str:
        above = counted(self.above, "calibration row")
        return f"{self.wrong_above:,} of {above} that score as high as the list are not qualified"

    def check(self, cutoff: Cutoff) -> None:
        promise = _promise(cutoff)
        possible = 0 <= self.wrong_above <= self.above <= cutoff.rows and promise.size <= self.pool
        hold(possible and 0 < self.held <= promise.size, "the counts are impossible")
        hold(self.wrong_above <= cutoff.rows - cutoff.qualified, "more rows are not qualified than there are")
        held = promise._held(self.above, self.wrong_above, cutoff.level)
        hold(self.held <= held, f"it promises {self.held}, and these rows carry {held}")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        size = number(_promise(cutoff).size)
        return f"of this list of {size} candidates at least {number(self.held)} will be qualified"

    def sure(self, policy: Certificate) -> str:
        return f"over calibrations and pools together, wrong at most {percent(policy.alpha)} of the time"

    def whom(self, policy: Certificate) -> str:
        return "It is about this one list of this one pool."


def _promise(cutoff: Cutoff) -> ThisList:
    hold(isinstance(cutoff.target, ThisList), "its proof does not go with its target")
    assert isinstance(cutoff.target, ThisList)
    return cutoff.target
