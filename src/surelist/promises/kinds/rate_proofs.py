"""Proofs of ``Expected`` and ``Recall`` other than a count of known, right labels: by unlabelled scores, by
an audit of labels, and by labels that may be wrong.

Unlabelled scores make the list shorter: the rank chain [theory: rank-chain]. Where there are fewer of them
than labelled rows, or so many rows that nothing is left to gain, the exact rule is used instead, and the
promise is the ordinary one. Of labels known above a score, and an audit of the rest, the worst split of the
target between both decides; a row that was not drawn has no label and stays in [theory: sampled-labels].
Bounds on how often a label is wrong, at every score, are an assumption that the person makes; the rule is
then a count of labelled rows against a higher rate, or share, than the promise's own [theory: noise].
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from surelist import _check as check, bounds
from surelist._files import hold
from surelist._names import option
from surelist.bounds.rank_chain import Block, chain_level, rank_chain
from surelist.bounds.sampled import audit_count, edge_count, edge_rank, labelled_rate, labelled_share, spent
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.array_summary import at_places
from surelist.promises.evidence import Evidence, some_of
from surelist.promises.kinds.counts import CountPromise, Counts, RatePromise
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import Level, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Requirement, Step, refuse

MOST_ROWS = 20_000  # beyond, the exact rule's list is within a percent or two


class RankChain(Proof, tag="rank-chain", frozen=True):
    """The walk ended in block ``at`` (0: all rows) with ``inside`` rows in it, ``count`` of them qualified.

    ``level`` bounds the chance of a false answer over every distribution of scores.
    """

    unlabelled: int
    first: int
    blocks: tuple[Block, ...]
    level: float
    at: int
    inside: int
    count: int

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return f"{super().over(cutoff, policy)} and {self.unlabelled:,} unlabelled scores"

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        return *phrases.ALL_ROWS, phrases.OTHER_SCORES, phrases.POOL_SIZE_KNOWN

    def evidence(self, cutoff: Cutoff) -> str:
        where = "all" if self.at == 0 else f"the best {number(self.blocks[self.at - 1].size)} scores'"
        of = f"{where} {counted(self.inside, 'calibration row')}"
        return f"{number(self.count)} qualified of {of} are needed; the level is bounded by {self.level:.4g}"

    def check(self, cutoff: Cutoff) -> None:
        rate, rows, qualified = cutoff.promised(RatePromise).rate, cutoff.rows, cutoff.qualified
        hold(0 <= self.at <= len(self.blocks) and 0 <= self.inside <= rows, "the block is none of its own")
        needed = self.first if self.at == 0 else self.blocks[self.at - 1].count(self.inside)
        hold(needed <= self.count <= qualified, "too few qualified rows")
        sizes = [self.unlabelled, *(each.size for each in self.blocks)]
        hold(sizes == sorted(set(sizes), reverse=True) and sizes[-1] > 0, "its blocks are out of order")
        rising = all(each.slope >= 0 for each in self.blocks) and self.first > 0
        hold(rising, "a count falls as rows are added")
        bound = chain_level(rows, self.unlabelled, rate, self.first, self.blocks)
        hold(bound <= cutoff.level.alpha, f"the level of its counts is {bound:.4g}, above alpha")


def certify_chain(evidence: Evidence, target: RatePromise, level: Level) -> Certified | None:
    """The walk from block to block; None where the exact rule serves better, or says better why not."""
    assert evidence.others is not None
    scores, good, unlabelled = evidence.scores, evidence.good, evidence.others
    if len(scores) > min(len(unlabelled), MOST_ROWS):
        return None
    chain = rank_chain(len(scores), len(unlabelled), target.rate, level.alpha)
    hits = np.sort(scores[good])
    if chain.first > len(hits):
        return None
    sizes = np.array([block.size for block in chain.blocks], dtype=np.int64)
    probes = some_of(scores, len(scores) + len(unlabelled))  # without one among them none would be refused
    edges, shared = at_places(unlabelled, len(unlabelled) - sizes, probes)  # where each block ends
    if shared:
        evidence.require_others()
    ordered = np.sort(scores)
    inside = len(ordered) - np.searchsorted(ordered, edges)
    held = len(hits) - np.searchsorted(hits, edges)
    at, rows, count = 0, len(scores), chain.first
    threshold = None
    for index, block in enumerate(chain.blocks):
        if held[index] < count:
            break
        needed = block.count(int(inside[index]))
        if held[index] < needed:
            threshold = float(edges[index])
            break
        at, rows, count = index + 1, int(inside[index]), max(1, needed)
    if threshold is None:
        threshold = float(hits[len(hits) - count])
    proof = RankChain(len(unlabelled), chain.first, chain.blocks, chain.level, at, rows, count)
    return Certified((Step(0, count, threshold),), len(scores), len(hits), proof)


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

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        return f"{super().over(cutoff, policy)} and of those of them that were labelled"

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        top = f"Every row that scores at least {number(self.edge)} was to be labelled, and each of the others"
        drawn = f"with probability {percent(self.audit_rate)}, by a draw of its own that depends on nothing"
        has = "whoever was drawn has a label, but for those counted here as not qualified"
        labelled = f"{top} {drawn} else; {has}. Edge and rate were fixed before."
        every = f"All {number(self.unlabelled)} rows without a label are in: none was left out."
        return phrases.ROWS_ALIKE, phrases.POOL_SIZE_KNOWN, labelled, every

    def evidence(self, cutoff: Cutoff) -> str:
        above, edge = number(self.above), number(self.edge)
        if self.needed == 0:
            known = f"{number(self.enough)} qualified rows at or above the threshold, all of whose labels"
            return f"{known} are known, of {above} at or above {edge}"
        audited = f"{number(self.needed)} audited ones below it, of {number(self.available)}"
        return f"{above} qualified rows at or above {edge}, and {audited}"

    def check(self, cutoff: Cutoff) -> None:
        rate, alpha = cutoff.promised(RatePromise).rate, cutoff.level.alpha
        rows, qualified = cutoff.rows, cutoff.qualified
        hold(self.above + self.available == qualified, "the qualified rows do not add up")
        hold(min(self.above, self.needed) >= 0 and self.needed <= self.available, "too few audited rows")
        hold(0 <= self.unlabelled <= rows - qualified, "the number without a label is impossible")
        needed = audit_count(rows, self.above, rate, self.audit_rate, alpha)
        hold(self.needed >= needed, f"{self.needed} audited rows are less than the {needed} needed")
        if cutoff.steps[0].threshold >= self.edge:
            enough = edge_count(rows, rate, self.audit_rate, alpha)
            hold(self.above >= self.enough >= enough, "too few qualified rows for a threshold above the edge")


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
        many = f"{needed:,}" if needed <= rows else f"more than the {rows:,} rows there are, as"
        asked = f"{above:,} qualified rows at or above {edge:g} ask for {many} audited qualified rows below"
        reason = f"{asked} it, and there are {available:,}: audit more rows, or ask for less."
        raise refuse(target, level, evidence, reason, count=needed)
    enough = edge_count(rows, target.rate, audit_rate, level.alpha)
    if needed == 0:  # every label above the edge is known: no audited row decides
        known = scores[good & top]
        threshold = float(np.partition(known, above - enough)[above - enough])
    else:
        threshold = float(np.partition(below, available - needed)[available - needed])
    unlabelled = int(np.count_nonzero(~drawn))
    proof = Audited(edge, float(sampled.probability), above, enough, needed, available, unlabelled)
    count = above + needed if needed else enough
    return Certified((Step(0, count, threshold),), rows, above + available, proof)


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
        wrong = f"Of candidates who are not qualified at most {percent(self.false_positive)} are labelled"
        missed = f"qualified, of the qualified at most {percent(self.false_negative)} are not, at every score"
        alone = "each label is wrong or right on its own. This is an assumption: the rows cannot show it."
        noise = f"{wrong} {missed}; {alone}"
        return (*super().conditions(cutoff, policy), noise)

    def evidence(self, cutoff: Cutoff) -> str:
        count, of = counted(cutoff.steps[0].critical_count, "row"), number(cutoff.qualified)
        rows = f"{count} of {of} labelled qualified (of {number(cutoff.rows)})"
        return f"{rows} score at or above it, as many as needed with labels that may be wrong"


class NoisyRate(Noisy, tag="noisy-rate", frozen=True):
    """Lists of at most a share ``longest`` count, those that end at or above ``edge``: strictly above the
    ``rank``-th best of ``others`` unlabelled scores."""

    longest: float
    others: int
    rank: int
    edge: float

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        scores = f" and {number(self.others)} unlabelled scores" if self.rank else ""
        return super().over(cutoff, policy) + scores

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
        needs = f"with labels that may be wrong {type(target).__name__} needs the largest share of candidates"
        give = f"that may be listed, fixed beforehand; give {option('longest')}, e.g. 0.3."
        raise InvalidInput("longest", f"{needs} {give}")
    gamma = spent(level.alpha, noise.false_positive)
    others = evidence.require_others()
    rank, edge = 0, -math.inf
    if gamma:
        rank = edge_rank(len(others), noise.longest, gamma)
        if rank == 0:
            few = f"{len(others):,} unlabelled scores are too few to show which lists have at most"
            reason = f"{few} {percent(noise.longest)} of candidates: give more of them."
            raise refuse(target, level, evidence, reason)
        edge = float(np.nextafter(np.partition(others, len(others) - rank)[len(others) - rank], math.inf))
    rate = labelled_rate(target.rate, noise.false_positive, noise.longest)
    count = bounds.critical_count(evidence.rows, rate, level.alpha - gamma)
    listed = int(np.count_nonzero(evidence.good & (evidence.scores >= edge)))
    if count > listed:
        needed = f"with labels that may be wrong {count:,} rows labelled qualified are needed on a list of at"
        there = f"most {percent(noise.longest)} of candidates, and there are {listed:,}"
        reason = f"{needed} {there}: gather more rows, or ask for less."
        raise refuse(target, level, evidence, reason, count=count)
    steps = evidence.steps((Requirement(0, count),))
    wrong, longest = (float(noise.false_positive), float(noise.false_negative)), float(noise.longest)
    proof = NoisyRate(*wrong, longest, len(others), rank, edge if gamma else float(others.min()))
    return Certified(steps, evidence.rows, evidence.qualified, proof)


def certify_share(evidence: Evidence, target: CountPromise, level: Level) -> Certified:
    """A share of those labelled qualified that keeps the promised share of the qualified."""
    noise = evidence.noise
    assert noise is not None
    if noise.longest is not None:
        needless = f"goes with Expected; {type(target).__name__} needs none. Leave it out."
        raise InvalidInput("longest", needless)
    proof = NoisyShare(float(noise.false_positive), float(noise.false_negative))
    count = _needed_of_share(target, evidence.rows, evidence.qualified, proof, level)
    if count is None or count > evidence.qualified:
        few = f"{evidence.qualified:,} rows labelled qualified are too few where labels may be wrong that"
        reason = f"{few} often: gather more rows, or ask for less."
        raise refuse(target, level, evidence, reason, count=count or 0)
    return Certified(evidence.steps((Requirement(0, count),)), evidence.rows, evidence.qualified, proof)


def _needed_of_share(
    target: CountPromise, rows: int, labelled: int, noise: Noisy, level: Level
) -> int | None:
    """How many of the rows labelled qualified have to be listed; None where no number would do."""
    gamma = noise.spent(level)
    rates = (noise.false_positive, noise.false_negative)
    share = labelled_share(target.kept_share, rows, labelled, *rates, gamma)
    if share is None or labelled == 0:
        return None
    return bounds.critical_count(labelled, share, level.alpha - gamma)
