"""Promises whose lists come from unlabelled scores: precision, a budget, and the average false share.

Thresholds that do not come from the labelled rows can be tested on them one after another
[theory: precision], or taken as they are [theory: budget].
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist import bounds
from surelist._dataclasses import dataclass
from surelist._files import hold
from surelist.bounds.precision import false_share_rank, passed_steps
from surelist.errors import NotCertifiable
from surelist.promises import phrases
from surelist.promises.phrases import counted, number, number_down, percent, wrong_over_rows
from surelist.promises.proofs import Certified, refuse
from surelist.promises.targets import Budget, Level, Precision

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

STARTS = (0.02, 0.05, 0.12, 0.3)  # list shares where the walk begins if no plan says so
RATIO = 1.05  # a step of the walk makes the list this much longer


@dataclass(frozen=True)
class FixedSequence:
    """The walk ended at a list of ``listed`` calibration rows, ``good`` of them qualified.

    ``start`` is the share of unlabelled scores on the first list; with ``starts`` of them, each walk has
    its share of alpha. ``steps`` lists passed in a row, this one last.
    """

    kind: Literal["fixed-sequence"]
    unlabelled: int
    start: float
    starts: int
    steps: int
    listed: int
    good: int

    def claim(self, target: Precision) -> str:
        listed = "of those whom this policy shortlists are qualified, in the long run"
        return f"at least {percent(target.share)} {listed}"

    def wrong(self, level: Level, rows: int) -> str:
        return wrong_over_rows(level.alpha, rows)

    def conditions(self, target: Precision, level: Level) -> tuple[str, ...]:
        plan = (
            f"The walk began at a list of {percent(self.start)} of candidates, fixed before looking at "
            "these rows."
            if self.starts == 1
            else f"No plan said where to begin, so {self.starts} walks share alpha."
        )
        long_run = (
            "The share is that of all who are ever shortlisted by this policy; a single list may hold less."
        )
        return phrases.common_conditions(level.alpha, *phrases.ALL_ROWS, phrases.OTHER_SCORES, plan, long_run)

    def evidence(self, level: Level) -> str:
        return (
            f"{number(self.good)} of {counted(self.listed, 'calibration row')} on the list are qualified; "
            f"{counted(self.steps, 'list')} in a row passed, from the shortest on"
        )

    def check(self, target: Precision, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(
            0 <= self.good <= self.listed <= rows and self.good <= qualified, "the row counts are impossible"
        )
        shares = (target.start,) if target.start is not None else STARTS
        hold(self.starts == len(shares) and self.start in shares, "the start is not the one planned")
        hold(self.steps >= 1, "no list passed")
        listed, good = np.array([self.listed]), np.array([self.good])
        hold(
            passed_steps(listed, good, target.share, level.alpha / self.starts) == 1, "its list does not pass"
        )


def grid(unlabelled: Floats, start: float) -> Floats:
    """Thresholds from a list of ``start`` of the unlabelled scores on, each list a little longer."""
    total = len(unlabelled)
    ranks = [max(1, math.ceil(check.as_fraction(start, "start") * total))]
    while ranks[-1] < total:
        ranks.append(min(total, max(ranks[-1] + 1, math.floor(ranks[-1] * RATIO))))
    at = total - np.array(ranks)
    thresholds: Floats = np.partition(unlabelled, at)[at]
    return np.asarray(thresholds[np.append(True, np.diff(thresholds) < 0)])


def certify_precision(
    scores: Floats, good: Mask, target: Precision, level: Level, unlabelled: Floats, most: float = math.inf
) -> Certified:
    """The longest list that passes, by a fixed sequence of exact tests on lists from other scores.

    ``most`` is a threshold that another promise allows: longer lists are passed over, and the answer is
    the first list that passed at or below it.
    """
    starts = (target.start,) if target.start is not None else STARTS
    alpha = level.alpha / len(starts)
    ordered, hits = np.sort(scores), np.sort(scores[good])
    answers: list[tuple[float, FixedSequence]] = []
    for start in starts:
        thresholds = grid(unlabelled, start)
        listed = len(ordered) - np.searchsorted(ordered, thresholds)
        passing = len(hits) - np.searchsorted(hits, thresholds)
        passed = passed_steps(listed, passing, target.share, alpha)
        fitting = np.flatnonzero(thresholds[:passed] <= most)
        if len(fitting):
            at = int(fitting[0]) if most < math.inf else passed - 1
            proof = FixedSequence(
                "fixed-sequence",
                len(unlabelled),
                start,
                len(starts),
                at + 1,
                int(listed[at]),
                int(passing[at]),
            )
            answers.append((float(thresholds[at]), proof))
    if not answers:
        first = float(grid(unlabelled, starts[0])[0])
        raise _precision_refused(scores, good, target, level, first, starts[0], most)
    pick = max if most < math.inf else min  # the list just long enough, or the longest
    threshold, proof = pick(answers, key=lambda each: each[0])
    return Certified(threshold, proof.good, len(scores), len(hits), proof)


def _precision_refused(
    scores: Floats, good: Mask, target: Precision, level: Level, first: float, start: float, most: float
) -> NotCertifiable:
    listed = scores >= first
    held, of = int(np.count_nonzero(good & listed)), int(np.count_nonzero(listed))
    if most < math.inf:
        reason = "No list that is long enough for the other promise passed: ask for less of one of them."
    else:
        reason = (
            f"The first list, {percent(start)} of candidates, holds {held:,} qualified of {of:,} calibration "
            f"rows, which is not enough to be sure of {percent(target.share)}: start where the list is surer "
            "(start=), ask for a smaller share, or bring more rows."
        )
    return refuse(target.describe(), level, len(scores), int(np.count_nonzero(good)), reason)


@dataclass(frozen=True)
class ListedBudget:
    """The list is everyone above the ``rank``-th best of ``unlabelled`` scores, certified to hold ``k``."""

    kind: Literal["budget"]
    unlabelled: int
    rank: int
    good: int
    k: float

    def claim(self, target: Budget) -> str:
        return (
            f"the shortlist holds at least {number_down(self.k)} qualified candidates on average over pools "
            f"of {number(target.pool_size)} candidates"
        )

    def wrong(self, level: Level, rows: int) -> str:
        return wrong_over_rows(level.alpha, rows)

    def conditions(self, target: Budget, level: Level) -> tuple[str, ...]:
        size = (
            f"A list has at most {number(target.size)} of {number(target.pool_size)} candidates on average "
            "over draws of the unlabelled scores; this policy's own average exceeds that about half the "
            "time, by little where they are many. The size was fixed before looking at these rows."
        )
        needed = (*phrases.ALL_ROWS, phrases.OTHER_SCORES, phrases.POOL_SIZE_KNOWN, size)
        return phrases.common_conditions(level.alpha, *needed)

    def evidence(self, level: Level) -> str:
        return (
            f"{counted(self.good, 'qualified calibration row')} above the {number(self.rank)}-th best of "
            f"{counted(self.unlabelled, 'unlabelled score')}"
        )

    def check(self, target: Budget, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(self.rank == budget_rank(target, self.unlabelled) > 0, "the rank is not the budget's")
        hold(0 < self.good <= qualified, "the row counts are impossible")
        hold(
            self.k <= certified_k(target, rows, self.good, level) * (1 + 1e-12),
            "the number certified is too large",
        )


def budget_rank(target: Budget, unlabelled: int) -> int:
    """floor((b/m)(M + 1)) in rationals."""
    share = check.as_fraction(target.size, "size") / check.as_fraction(target.pool_size, "pool_size")
    return math.floor(share * (unlabelled + 1))


def certified_k(target: Budget, rows: int, good: int, level: Level) -> float:
    """The largest number that ``good`` of ``rows`` certify."""
    return target.pool_size * bounds.largest_rate(rows, good, level.alpha)


def certify_budget(scores: Floats, good: Mask, target: Budget, level: Level, unlabelled: Floats) -> Certified:
    """How many are certified on a list whose length was fixed beforehand."""
    rank, total = budget_rank(target, len(unlabelled)), int(np.count_nonzero(good))
    if rank == 0:
        needed = math.ceil(target.pool_size / target.size)
        raise refuse(
            target.describe(), level, len(scores), total,
            f"{len(unlabelled):,} unlabelled scores are too few to tell where {number(target.size)} of "
            f"{number(target.pool_size)} end: bring {needed:,} or more.",
        )  # fmt: skip
    edge = float(np.partition(unlabelled, len(unlabelled) - rank)[len(unlabelled) - rank])
    threshold = math.nextafter(edge, math.inf)  # the list is everyone strictly above: ties stay within it
    on_list = int(np.count_nonzero(good & (scores >= threshold)))
    if on_list == 0:
        raise refuse(
            target.describe(), level, len(scores), total,
            "No qualified calibration row is on it, so nothing can be certified: bring more rows, or a "
            "longer list.",
        )  # fmt: skip
    k = certified_k(target, len(scores), on_list, level)
    return Certified(
        threshold, on_list, len(scores), total, ListedBudget("budget", len(unlabelled), rank, on_list, k)
    )


@dataclass(frozen=True)
class FalseShare:
    """Conformal selection from one pool: its ``listed`` best of ``pool`` candidates, by Benjamini-Hochberg.

    ``above`` calibration rows that are not qualified score at least as high as the last one listed. The
    promise is about the pool with this ``fingerprint`` and no other.
    """

    kind: Literal["false-share"]
    pool: int
    listed: int
    above: int
    fingerprint: str

    def is_of(self, scores: Floats) -> bool:
        """Whether these are the scores of its pool, in any order."""
        return self.fingerprint == scores_fingerprint(scores)

    def claim(self, target: Precision) -> str:
        return (
            f"of this pool's {number(self.pool)} candidates {number(self.listed)} are shortlisted by a "
            "procedure whose "
            f"false share, of those listed, is at most {percent(round(1 - target.share, 12))} on average"
        )

    def wrong(self, level: Level, rows: int) -> str:
        over = f"draws of the {counted(rows, 'calibration row')} and the pool together"
        return f"true over {over}, and says nothing about this list alone"

    def conditions(self, target: Precision, level: Level) -> tuple[str, ...]:
        return (
            phrases.SCORE_FIXED, *phrases.ALL_ROWS,
            "An average over many calibrations and pools: the list at hand may hold a smaller share of "
            "qualified candidates, about half the time. For this policy's own share, in the long run and "
            'with confidence, use rule="exact".',
            "It is about the pool that was given and selects from no other.", phrases.ONE_LOOK,
        )  # fmt: skip

    def evidence(self, level: Level) -> str:
        above = counted(self.above, "calibration row")
        return f"{above} of those not qualified score as high as the last one listed"

    def check(self, target: Precision, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(
            0 < self.listed <= self.pool and 0 <= self.above <= rows - qualified, "the counts are impossible"
        )
        false = 1 - check.as_fraction(target.share, "share")
        hold(
            (1 + self.above) * self.pool <= false * self.listed * (rows + 1),
            "the false share allowed is exceeded",
        )


def certify_false_share(
    scores: Floats, good: Mask, target: Precision, level: Level, pool: Floats
) -> Certified:
    """The list of this very pool whose false share is small on average."""
    ordered, unqualified = np.sort(pool)[::-1], np.sort(scores[~good])
    above = len(unqualified) - np.searchsorted(unqualified, ordered)
    allowed = 1 - check.as_fraction(target.share, "share")
    listed = false_share_rank(above, len(scores), allowed)
    if listed == 0:
        raise refuse(
            target.describe(), level, len(scores), int(np.count_nonzero(good)),
            "No candidate of this pool scores high enough above the calibration rows that are not qualified: "
            "the list would be empty. Ask for a smaller share, or bring more rows.",
        )  # fmt: skip
    proof = FalseShare("false-share", len(pool), listed, int(above[listed - 1]), scores_fingerprint(pool))
    return Certified(float(ordered[listed - 1]), listed, len(scores), int(np.count_nonzero(good)), proof)


def scores_fingerprint(scores: Floats) -> str:
    """SHA-256 of a pool's scores, in any order."""
    return hashlib.sha256(np.sort(scores).astype("<f8").tobytes()).hexdigest()
