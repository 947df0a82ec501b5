"""How many of this very pool's best are qualified: of a list whose size is fixed, or of every length at once
[theory: this-list].
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check, _numerals as numerals
from surelist._arrays import Floats, Ints, Mask
from surelist._files import hold
from surelist.bounds.this_list import fixed_list, lower_counts, most_wrong_rows, upper_counts
from surelist.drawing import axes
from surelist.errors import InvalidInput, PoolWarning
from surelist.promises import phrases
from surelist.promises.conditions import Proved
from surelist.promises.curve import count_at_least
from surelist.promises.evidence import Evidence, require_others, scores_fingerprint
from surelist.promises.kinds.false_share import NO_OTHER, OfThisPool
from surelist.promises.options import LIST_SIZE, SHARE
from surelist.promises.phrases import counted, number, percent, qualified
from surelist.promises.pool_checks import GAP, LEVEL
from surelist.promises.promise import About, Level, Promise
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

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
    fixed_size = True
    about = About.THIS_POOL
    others = "needed"

    proved_with = (Proved("this-list", labels=("missing",), others=("given",)),)

    size: Annotated[int, replace(LIST_SIZE, kind=int)]
    share: Annotated[float | None, SHARE] = None

    def describe(self) -> str:
        what = "as many as can be" if self.share is None else f"at least {100 * self.share:g}%"
        return f"{what} of this pool's best {phrases.number(self.size)} candidates qualified"

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        pool = evidence.require_others()
        ordered = np.sort(pool)[::-1]
        if self.size > len(pool):
            there = f"at most the {len(pool):,} candidates of the pool"
            raise InvalidInput("size", f"expected {there}, got {self.size}.")
        edge = float(ordered[self.size]) if self.size < len(pool) else -math.inf
        if ordered[self.size - 1] == edge:
            alike = f"candidate {self.size:,} and the next one score alike, {edge:.10g}"
            ties = "Add a random number that breaks ties, smaller than any difference of scores, to rows"
            raise InvalidInput("size", f"{alike}, so the list is not defined. {ties} and pool alike.")
        above = evidence.scores > edge
        rows, wrong = int(np.count_nonzero(above)), int(np.count_nonzero(above & ~evidence.good))
        held = self._held(rows, wrong, level)
        if held == 0:
            said = "nothing can be said of this list" if self.share is None else "too many to be sure of that"
            these = f"{counted(rows, 'calibration row')} above the first candidate not listed"
            reason = f"Of {these} {wrong:,} are not qualified: {said}"
            if not self._held(rows, 0, level):
                reason = f"There are too few rows to be sure, were all qualified: {these}"
            raise refuse(self, level, evidence, f"{reason}. Bring more rows.")
        proof = ListHeld(len(pool), scores_fingerprint(pool), rows, wrong, held)
        step = Step(0, rows - wrong, float(ordered[self.size - 1]))
        return Certified((step,), evidence.rows, evidence.qualified, proof)

    def _held(self, rows: int, wrong: int, level: Level) -> int:
        """How many are certified to be qualified; 0: none, or not the share that was asked for."""
        if self.share is None:
            return self.size - fixed_list(rows, wrong, self.size, level.alpha)
        if wrong > most_wrong_rows(rows, self.size, self.share, level.alpha):
            return 0
        return math.ceil(check.as_fraction(self.share, "share") * self.size)


class ListHeld(OfThisPool, tag="this-list", frozen=True):
    """Of the pool's candidates the best are listed, and ``held`` of them are qualified.

    ``above`` calibration rows score above the first candidate who is not listed, ``wrong_above`` of them are
    not qualified.
    """

    above: int
    wrong_above: int
    held: int

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        best = f"of this pool's {number(self.pool)} candidates the best"
        listed = f"{best} {number(cutoff.promised(ThisList).size)} are shortlisted"
        return f"{listed}, and at least {qualified(self.held)} are among them"

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        rows = counted(cutoff.rows, "calibration row")
        return f"wrong for at most {percent(policy.alpha)} of draws of the {rows} and the pool together"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        alike = "Calibration rows and the candidates of this pool are exchangeable: none of them is special."
        if cutoff.promised(ThisList).share is not None:
            alike = phrases.ROWS_ALIKE
        rows = phrases.SCORE_FIXED, alike, phrases.ROWS_APART, phrases.NO_ROW_LEFT_OUT, FIXED, TOGETHER
        return *rows, phrases.alpha_bounds(policy.alpha), NO_OTHER, phrases.ONE_LOOK

    def evidence(self, cutoff: Cutoff) -> str:
        above = counted(self.above, "calibration row")
        whole = self.pool == cutoff.promised(ThisList).size
        which = "" if whole else " that score above the first candidate not listed"
        return f"{self.wrong_above:,} of {above}{which} are not qualified"

    def check(self, cutoff: Cutoff) -> None:
        promise = cutoff.promised(ThisList)
        possible = 0 <= self.wrong_above <= self.above <= cutoff.rows and promise.size <= self.pool
        hold(possible and 0 < self.held <= promise.size, "the counts are impossible")
        hold(self.wrong_above <= cutoff.rows - cutoff.qualified, "more rows are not qualified than there are")
        held = promise._held(self.above, self.wrong_above, cutoff.level)
        hold(self.held <= held, f"it promises {self.held}, and these rows carry {held}")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        size = number(cutoff.promised(ThisList).size)
        return f"of this list of {size} candidates at least {number(self.held)} will be qualified"

    def sure(self, policy: Certificate) -> str:
        return f"over calibrations and pools together, wrong at most {percent(policy.alpha)} of the time"

    def whom(self, policy: Certificate) -> str:
        return "It is about this one list of this one pool."


LINES = 12
LEAST = 0.9  # of alpha, for “at least”; “at most” has the rest


class ListCurve(Struct, frozen=True, eq=False):
    """Lists of one pool by length: ``threshold`` is the score of the last one on it.

    ``at_least`` and ``at_most`` hold for all lengths at once, except with probability alpha over rows and
    pool together, so a length may be chosen after looking.

    Parameters
    ----------
    list_size, threshold : array
        The lengths, from 1 on, and the score of the last one on each list.
    at_least, at_most : array
        Qualified candidates on each list.
    rows : int
        Labelled rows behind it.
    alpha : float
        How often any of ``at_least`` and ``at_most`` may be wrong.
    doubt : str, optional
        That the pool's scores do not look like those of the rows.

    Examples
    --------
    >>> import surelist as sl
    >>> curve = sl.list_curve([0.9, 0.8, 0.3, 0.1] * 50, [1, 1, 0, 0] * 50, [0.95, 0.7, 0.6, 0.2])
    >>> curve.list_size.tolist()
    [1, 2, 3, 4]
    """

    list_size: Ints
    threshold: Floats
    at_least: Ints
    at_most: Ints
    rows: int
    alpha: float
    doubt: str | None = None

    def of(self, size: int) -> tuple[int, int]:
        """At least and at most how many of the best ``size`` are qualified."""
        at = int(np.searchsorted(self.list_size, check.as_count(size, "size")))
        if at == len(self.list_size) or self.list_size[at] != size:
            longest = f"from {self.list_size[0]:,} to {self.list_size[-1]:,}"
            allowed = f"expected a length {longest} that ties allow"
            raise InvalidInput("size", f"{allowed}, got {size!r}; read list_size.")
        return int(self.at_least[at]), int(self.at_most[at])

    def describe(self) -> str:
        """Some lengths, and how sure that is."""
        shown = np.unique(np.geomspace(1, len(self.list_size), LINES).round().astype(int)) - 1
        lines = [f"{'list':>9}  {'at least':>9}  {'at most':>9}  threshold"]
        for at in shown.tolist():
            counts = (f"{each[at]:>9,}  " for each in (self.list_size, self.at_least, self.at_most))
            lines.append("".join(counts) + numerals.number(float(self.threshold[at]), 6))
        return "\n".join([*lines, "", self.sure])

    @property
    def sure(self) -> str:
        """How sure that is."""
        first = "So many of the first n of this list are qualified, at least and at most, for all lengths at"
        over = f"over the draw of {self.rows:,} calibration rows and this pool together"
        wrong = f"Any of it is wrong with probability at most {percent(self.alpha)} {over}."
        return f"{first} once: a length may be chosen after looking. {wrong}"

    @property
    def conditions(self) -> tuple[str, ...]:
        """What it rests on."""
        alike = "Labelled rows and pool are independent draws from one population, and no row is in the pool."
        alike += " The score was fixed before any of these labels was seen."
        first = "The first n are those with the highest scores; who has the same score is listed together."
        return *([] if self.doubt is None else [self.doubt]), self.sure, TOGETHER, alike, first

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """At least and at most how many are qualified, by length (``plots`` extra; ``path``: also a file)."""
        return axes.picture(ax, path, axes.draw_list, self.list_size, self.at_least, self.at_most)


def list_curve(scores: object, labels: object, pool: object, *, alpha: float = 0.1) -> ListCurve:
    """How many of *this* pool's list are qualified, for every length at once.

    Parameters
    ----------
    scores, labels : array_like
        Of the calibration rows, as for ``calibrate``.
    pool : array_like
        The scores of the pool, of which the lists are made.
    alpha : float
        How often a curve may be wrong, over calibration rows and pool together.

    Returns
    -------
    ListCurve
        ``list_size``, ``threshold``, ``at_least`` and ``at_most``, for every length that ties allow.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> rng = np.random.default_rng(6)
    >>> scores, labels = population(rng, 1_000)
    >>> pool, _ = population(rng, 500)
    >>> curve = sl.list_curve(scores, labels, pool)
    >>> curve.of(50)
    (27, 49)
    """
    return curve_of_best(scores, labels, pool, None, alpha)


def curve_of_best(
    scores: object, labels: object, pool: object, candidates: int | None, alpha: float, name: str = "pool"
) -> ListCurve:
    """The same where only the best of a ``pool`` of so many candidates are at hand: its first lengths.

    Nothing that is said of a list rests on scores below it. Everyone with the lowest score has to be there.
    ``name``: what errors call the pool.
    """
    alpha = check.as_alpha(alpha)
    rows, good, _ = check.labelled_rows(scores, labels)
    others = check.as_scores(pool, name)
    check.require_rows(others, name)
    require_others(rows[rows >= others.min()], others, name)
    size = candidates or len(others)
    doubt = _doubt(rows, others, size)
    if doubt is not None:
        warnings.warn(doubt, PoolWarning, stacklevel=3)
    thresholds = np.unique(others)[::-1]
    listed = count_at_least(others, thresholds)
    least = _fewest(rows, good, thresholds, listed, size, LEAST * alpha)
    most = listed - _fewest(rows, ~good, thresholds, listed, size, (1 - LEAST) * alpha)
    return ListCurve(listed, thresholds, least, np.maximum(most, least), len(rows), alpha, doubt)


def _doubt(rows: Floats, others: Floats, candidates: int) -> str | None:
    """That a pool's scores do not look like those of the rows; None where they do.

    ``others`` are the best of so many candidates, or all of them. A warning that proves nothing, as of drift.
    """
    marks = np.unique(others)[::-1]
    reached, listed = count_at_least(rows, marks) / len(rows), count_at_least(others, marks) / candidates
    at = int(np.argmax(np.abs(listed - reached)))
    noise = math.sqrt(math.log(2 / LEVEL) / 2 * (1 / candidates + 1 / len(rows)))
    if abs(listed[at] - reached[at]) <= max(noise, GAP):
        return None
    here = f"{percent(round(listed[at], 4))} of {candidates:,} candidates score at least {number(marks[at])}"
    there = f"{percent(round(reached[at], 4))} of {len(rows):,} calibration rows"
    alike = "They do not look like candidates of one population by one score, and the promise needs such."
    return f"{here}, and {there}. {alike}"


def _fewest(rows: Floats, kind: Mask, thresholds: Floats, listed: Ints, pool: int, alpha: float) -> Ints:
    """At least so many of each list are of this kind: two tables, each at half of alpha."""
    beyond = count_at_least(rows[~kind], thresholds)  # rows of the other kind as high as the list
    reached = count_at_least(rows[kind], thresholds)
    bound = np.minimum(upper_counts(len(rows), pool, alpha / 2)[beyond], listed)
    # a longer list has no more of them than the shorter one and all that it adds
    bound = np.minimum(bound, listed + np.minimum.accumulate(bound - listed))
    held = np.maximum.accumulate(lower_counts(len(rows), pool, alpha / 2)[reached])
    fewest = np.maximum(np.minimum(held, listed), listed - bound)
    # and a shorter list all that a longer one has but for those it lacks
    return np.asarray(listed + np.maximum.accumulate((fewest - listed)[::-1])[::-1])
