"""Labels that may be wrong: what ``Expected`` and ``Recall`` promise of those who really are qualified
[theory: noise].

Bounds on how often a label is wrong, at every score, are an assumption that the person makes. The rule is a
count of labelled rows against a higher rate, or share, than the promise's own.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from surelist import bounds
from surelist._files import hold
from surelist._names import option
from surelist.bounds.noise import edge_rank, labelled_rate, labelled_share, spent
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.evidence import Evidence
from surelist.promises.kinds.counts import CountPromise, Counts, RatePromise
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import Level
from surelist.promises.state import Certificate, Certified, Cutoff, Requirement, refuse


class Noisy(Counts, frozen=True):
    """A count of labelled rows that covers labels which may be wrong."""

    counted = False
    many_steps = False
    unjudged: ClassVar[str] = "its labels may be wrong, and nothing says whether those of these rows are"
    rests_on = "an assumption about labels that may be wrong"

    false_positive: float
    false_negative: float

    def spent(self, level: Level) -> float:
        """The part of alpha that did not go to the count."""
        return spent(level.alpha, self.false_positive)

    def when_fixed(self, promise: CountPromise, policy: Certificate) -> str:
        return phrases.ONE_LOOK

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        noise = (
            f"Of candidates who are not qualified at most {percent(self.false_positive)} are labelled "
            f"qualified, of the qualified at most {percent(self.false_negative)} are not, at every score; "
            "each label is wrong or right on its own. This is an assumption: the rows cannot show it."
        )
        return (*super().conditions(cutoff, policy), noise)

    def evidence(self, cutoff: Cutoff) -> str:
        count = cutoff.steps[0].critical_count
        return (
            f"{counted(count, 'row')} of {number(cutoff.qualified)} labelled qualified (of "
            f"{number(cutoff.rows)}) score at or above it, as many as needed with labels that may be wrong"
        )


class NoisyRate(Noisy, tag="noisy-rate", frozen=True):
    """Lists of at most a share ``longest`` count, those that end at or above ``edge``: strictly above the
    ``rank``-th best of ``others`` unlabelled scores."""

    longest: float
    others: int
    rank: int
    edge: float

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        said = super().wrong(cutoff, policy)
        return f"{said} and {number(self.others)} unlabelled scores" if self.rank else said

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        fixed = f"That at most {percent(self.longest)} of candidates may be listed was fixed beforehand."
        return (*super().conditions(cutoff, policy), phrases.OTHER_SCORES, fixed)

    def check(self, cutoff: Cutoff) -> None:
        alpha, step = cutoff.level.alpha, cutoff.steps[0]
        gamma = self.spent(cutoff.level)
        rate = labelled_rate(cutoff.promised(RatePromise).rate, self.false_positive, self.longest)
        needed = bounds.critical_count(cutoff.rows, rate, alpha - gamma)
        hold(step.critical_count >= needed, f"its count is less than the {needed} that its labels need")
        if gamma:
            hold(1 <= self.rank <= edge_rank(self.others, self.longest, gamma), "its edge is too low")
            hold(step.threshold >= self.edge, "its list is longer than the longest")


class NoisyShare(Noisy, tag="noisy-share", frozen=True):
    """A share of the rows that are labelled qualified, so that a share of the qualified is kept."""

    def check(self, cutoff: Cutoff) -> None:
        target = cutoff.promised(CountPromise)
        count = cutoff.steps[0].critical_count
        needed = _needed_of_share(target, cutoff.rows, cutoff.qualified, self, cutoff.level)
        hold(needed is not None and count >= needed, f"its count is less than the {needed} needed")


def certify_rate(evidence: Evidence, target: RatePromise, level: Level) -> Certified:
    """At least a rate of qualified candidates, on a list that is short enough for false positives."""
    noise = evidence.noise
    assert noise is not None
    if noise.longest is None:
        raise InvalidInput(
            "longest",
            f"with labels that may be wrong {type(target).__name__} needs the largest share of candidates "
            f"that may be listed, fixed beforehand; give {option('longest')}, e.g. 0.3.",
        )
    gamma = spent(level.alpha, noise.false_positive)
    others = evidence.require_others()
    rank, edge = 0, -math.inf
    if gamma:
        rank = edge_rank(len(others), noise.longest, gamma)
        if rank == 0:
            raise refuse(
                target, level, evidence,
                f"{len(others):,} unlabelled scores are too few to show which lists have at most "
                f"{percent(noise.longest)} of candidates: give more of them.",
            )  # fmt: skip
        edge = float(np.nextafter(np.partition(others, len(others) - rank)[len(others) - rank], math.inf))
    rate = labelled_rate(target.rate, noise.false_positive, noise.longest)
    count = bounds.critical_count(evidence.rows, rate, level.alpha - gamma)
    listed = int(np.count_nonzero(evidence.good & (evidence.scores >= edge)))
    if count > listed:
        raise refuse(
            target, level, evidence,
            f"with labels that may be wrong {count:,} rows labelled qualified are needed on a list of at "
            f"most {percent(noise.longest)} of candidates, and there are {listed:,}: gather more rows, or "
            "ask for less.",
            count=count,
        )  # fmt: skip
    steps = evidence.steps((Requirement(0, count),))
    proof = NoisyRate(
        float(noise.false_positive), float(noise.false_negative), float(noise.longest), len(others), rank,
        edge if gamma else float(others.min()),
    )  # fmt: skip
    return Certified(steps, evidence.rows, evidence.qualified, proof)


def certify_share(evidence: Evidence, target: CountPromise, level: Level) -> Certified:
    """A share of those labelled qualified that keeps the promised share of the qualified."""
    noise = evidence.noise
    assert noise is not None
    proof = NoisyShare(float(noise.false_positive), float(noise.false_negative))
    count = _needed_of_share(target, evidence.rows, evidence.qualified, proof, level)
    if count is None or count > evidence.qualified:
        raise refuse(
            target, level, evidence,
            f"{evidence.qualified:,} rows labelled qualified are too few where labels may be wrong that "
            "often: gather more rows, or ask for less.",
            count=count or 0,
        )  # fmt: skip
    return Certified(evidence.steps((Requirement(0, count),)), evidence.rows, evidence.qualified, proof)


def _needed_of_share(
    target: CountPromise, rows: int, labelled: int, noise: Noisy, level: Level
) -> int | None:
    """How many of the rows labelled qualified have to be listed; None where no number would do."""
    gamma = noise.spent(level)
    share = labelled_share(
        target.kept_share, rows, labelled, noise.false_positive, noise.false_negative, gamma
    )
    if share is None or labelled == 0:
        return None
    return bounds.critical_count(labelled, share, level.alpha - gamma)
