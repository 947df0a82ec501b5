"""Unlabelled scores make the list of ``Expected`` shorter: the rank chain [theory: rank-chain].

Where there are fewer unlabelled scores than labelled rows, or so many rows that nothing is left to gain, the
exact rule is used instead, and the promise is the ordinary one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from surelist._files import hold
from surelist.bounds.rank_chain import Block, Chain, chain_level, rank_chain
from surelist.promises import phrases
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.kinds.counts import RatePromise, rate_promise_of
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import Level, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step

if TYPE_CHECKING:
    from surelist.promises.evidence import Evidence

Floats = NDArray[np.float64]

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

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        return rate_promise_of(cutoff).claimed("the shortlist", by_group=False)

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        return (
            f"wrong with probability at most {percent(policy.alpha)} over the draw of the {cutoff.rows:,} "
            f"calibration rows and {self.unlabelled:,} unlabelled scores"
        )

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        needed = (*phrases.ALL_ROWS, phrases.OTHER_SCORES, phrases.POOL_SIZE_KNOWN)
        return phrases.common_conditions(policy.alpha, *needed)

    def evidence(self, cutoff: Cutoff) -> str:
        where = "all" if self.at == 0 else f"the best {number(self.blocks[self.at - 1].size)} scores'"
        return (
            f"{number(self.count)} qualified of {where} {counted(self.inside, 'calibration row')} are "
            f"needed; the level is bounded by {self.level:.4g}"
        )

    def check(self, cutoff: Cutoff) -> None:
        rate, rows, qualified = rate_promise_of(cutoff).rate, cutoff.rows, cutoff.qualified
        hold(0 <= self.at <= len(self.blocks) and 0 <= self.inside <= rows, "the block is none of its own")
        needed = self.first if self.at == 0 else self.blocks[self.at - 1].count(self.inside)
        hold(needed <= self.count <= qualified, "too few qualified rows")
        sizes = [self.unlabelled, *(each.size for each in self.blocks)]
        hold(sizes == sorted(set(sizes), reverse=True) and sizes[-1] > 0, "its blocks are out of order")
        hold(
            all(each.slope >= 0 for each in self.blocks) and self.first > 0, "a count falls as rows are added"
        )
        bound = chain_level(rows, self.unlabelled, rate, self.first, self.blocks)
        hold(bound <= cutoff.level.alpha, f"the level of its counts is {bound:.4g}, above alpha")

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        return rate_promise_of(cutoff).plainly(cutoff, policy)

    def share_seen(
        self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen, everyone: RowsSeen
    ) -> ShareSeen:
        return rate_promise_of(cutoff).share_seen(cutoff, policy, seen, everyone)


def chain_helps(rows: int, unlabelled: int) -> bool:
    """Whether there are enough unlabelled scores, and few enough rows, for the chain to be used."""
    return rows <= unlabelled and rows <= MOST_ROWS


def certify_chain(evidence: Evidence, target: RatePromise, level: Level) -> Certified | None:
    """The walk from block to block; None where the exact rule serves better, or says better why not."""
    assert evidence.others is not None
    if not chain_helps(evidence.rows, len(evidence.others)):
        return None
    scores, good, unlabelled = evidence.scores, evidence.good, evidence.require_others()
    chain = rank_chain(len(scores), len(unlabelled), target.rate, level.alpha)
    hits = np.sort(scores[good])
    if chain.first > len(hits):
        return None
    edges = _edges(chain, unlabelled)
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


def _edges(chain: Chain, unlabelled: Floats) -> Floats:
    """The score at which each block ends.

    The ranks are split in the middle, then each half in its own part: one rank at a time is what NumPy
    selects fastest.
    """
    places = len(unlabelled) - np.array([block.size for block in chain.blocks], dtype=np.int64)
    ordered, work = np.sort(places).tolist(), unlabelled.copy()
    parts = [(0, len(work), 0, len(ordered))]
    while parts:
        low, high, first, last = parts.pop()
        if first < last:
            middle = (first + last) // 2
            rank = ordered[middle]
            work[low:high].partition(rank - low)
            parts += [(low, rank, first, middle), (rank + 1, high, middle + 1, last)]
    return work[places]
