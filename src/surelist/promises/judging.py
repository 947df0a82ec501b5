"""Do labelled rows speak against a promise? For each kind of promise an exact test, or why there is none.

A test says at most how often a true promise shows so little [theory: looking-back]. ``evaluation`` counts and
prints; what is tested of a promise is said by its kind.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from surelist._arrays import Ints, Mask, special
from surelist.bounds.looking_back import clustered_chance
from surelist.promises.phrases import counted, number
from surelist.promises.promise import About, Promise
from surelist.promises.state import Certificate, Cutoff

LEVEL = 0.05
CANNOT = "These rows cannot speak for or against this promise"
AVERAGE = "it is about averages over pools of any size, and one very large pool could make up for many others"
AMOUNTS = "it is about averages of amounts, and rows are counted here"
NO_POOLS = "it is about single pools, and nothing says which pool each row is in"
OF_DRAWS = "how often it fails is an average over draws of the collection, of which this is one"
ONE_LIST = "it is about an average over draws of rows and pool together, and this is one list"


class Pools(Struct, frozen=True, eq=False, dict=True):
    """Which pool each row is in, as a number below ``count``."""

    codes: Ints
    count: int

    def counts(self, mask: Mask) -> Ints:
        """How many rows of each pool are of these."""
        return np.bincount(self.codes[mask], minlength=self.count)

    @cached_property
    def largest(self) -> int:
        return int(np.bincount(self.codes).max())


class RowsSeen(Struct, frozen=True, eq=False):
    """The rows of one group, or all: who they are, who of them is listed and who is qualified."""

    rows: Mask
    listed: Mask
    good: Mask
    pools: Pools | None = None
    rejected: Mask | None = None  # of a triage
    among: Mask | None = None  # of a group: the rows of everyone

    def of(self, group: Mask) -> RowsSeen:
        rows, listed, good = (each & group for each in (self.rows, self.listed, self.good))
        return RowsSeen(rows, listed, good, self.pools, among=self.rows)


class ShareSeen(Struct, frozen=True, eq=False):
    """Who counts, out of whom, the share promised, the words for it, and what to say of nobody."""

    won: Mask
    of: Mask
    promised: float
    words: str
    nobody: str


Finding = tuple[float, str]  # at most how often a true promise shows this, and what was seen


def judge(policy: Certificate, everyone: RowsSeen, groups: dict[str, Mask]) -> tuple[bool | None, str]:
    """Whether the rows fit the promise, None where they cannot say, and the sentence."""
    if policy.withdrawn is not None:
        return None, "Nothing is promised any more, so there is nothing to judge."
    judged = _pools_judged(policy, everyone, groups) or []
    for cutoff in policy.cutoffs if not judged else ():
        judged += _judged(policy, cutoff, _of(everyone, cutoff, groups), everyone)
    findings = [each for each in judged if not isinstance(each, str)]
    unknown = list(dict.fromkeys(each for each in judged if isinstance(each, str)))
    if not findings:
        return None, f"{CANNOT}: {'; '.join(unknown)}."
    rest = "".join(f" Of another part they cannot say anything: {each}." for each in unknown)
    chance, finding = min(findings)
    chance = min(1.0, chance * len(findings))
    if chance < LEVEL:
        rarely = f"{100 * chance:.2g}%" if chance >= 1e-6 else "0.0001%"
        rare = f"which a true one shows at most {rarely} of the time"
        return False, f"These rows speak against the promise: {finding}, {rare}.{rest}"
    return True, f"Consistent with the promise: {finding}.{rest}"


def _of(everyone: RowsSeen, cutoff: Cutoff, groups: dict[str, Mask]) -> RowsSeen:
    return everyone if cutoff.group is None else everyone.of(groups[cutoff.group])


def _judged(policy: Certificate, cutoff: Cutoff, seen: RowsSeen, everyone: RowsSeen) -> list[Finding | str]:
    """The findings for one cutoff, or why there is none."""
    if cutoff.proof.unjudged:
        return [cutoff.proof.unjudged]
    if cutoff.about is About.POPULATION:
        return [_share_short(each, seen) for each in cutoff.proof.shares_seen(cutoff, policy, seen)]
    if cutoff.about is About.COLLECTION:
        return [policy.not_of_these]
    if cutoff.about is About.POOL:
        return [_exactly_short(policy, cutoff, seen, everyone)]
    return [ONE_LIST if cutoff.about is About.THIS_POOL else AMOUNTS if cutoff.target.amounts else AVERAGE]


def _share_short(share: ShareSeen, seen: RowsSeen) -> Finding | str:
    """P(so few or fewer) where the share is exactly what is promised; rows of one pool may be alike."""
    won, of, promised = share.won, share.of, share.promised
    count, total = int(np.count_nonzero(won)), int(np.count_nonzero(of))
    if total == 0:
        return share.nobody
    finding = f"{100 * count / total:.4g}% {share.words}, {100 * promised:.4g}% are promised"
    if seen.pools is None:
        return float(special.bdtr(count, total, promised)), finding
    pools = seen.pools
    return clustered_chance(pools.counts(won), pools.counts(of), pools.largest, promised), finding


def kept_by_pool(policy: Certificate, everyone: RowsSeen, groups: dict[str, Mask]) -> Mask | None:
    """Which pools that the promise covers kept it for every group; None where it is not about pools."""
    if everyone.pools is None or any(each.about is not About.POOL for each in policy.cutoffs):
        return None
    kept, covered = (np.ones(everyone.pools.count, dtype=np.bool_) for _ in range(2))
    for cutoff in policy.cutoffs:
        seen = _of(everyone, cutoff, groups)
        kept &= _enough(cutoff.target, seen, everyone.pools)
        covered &= _covered(policy, cutoff.target, seen, everyone) >= 1
    return np.asarray(kept[covered])


def _enough(target: Promise, seen: RowsSeen, pools: Pools) -> Mask:
    held, available = pools.counts(seen.listed & seen.good), pools.counts(seen.good)
    return np.asarray(held >= target.needed(available))


def _covered(policy: Certificate, target: Promise, seen: RowsSeen, everyone: RowsSeen) -> Ints:
    """The size of each pool that the promise covers, 0 for the others."""
    assert everyone.pools is not None
    sizes = everyone.pools.counts(everyone.rows if policy.group_rows == "all" else seen.rows)
    return np.where(sizes >= (target.pool or 1), sizes, 0)


def _pools_judged(
    policy: Certificate, everyone: RowsSeen, groups: dict[str, Mask]
) -> list[Finding | str] | None:
    """Promises of two levels bound the share of pools that fall short for any group: one binomial test."""
    if policy.cutoffs[0].level.rule == "exact":
        return None
    kept = kept_by_pool(policy, everyone, groups)
    if kept is None:
        return None
    if len(kept) == 0:
        return [_none_covered(policy.cutoffs[0].target)]
    missed = int(np.count_nonzero(~kept))
    chance = special.bdtrc(missed - 1, len(kept), policy.pool_alpha) if missed else 1.0
    return [(float(chance), _fell_short(missed, len(kept)))]


def _exactly_short(policy: Certificate, cutoff: Cutoff, seen: RowsSeen, everyone: RowsSeen) -> Finding | str:
    """P(so many pools fall short) over calibrations and pools together; for the best of several, the sum."""
    if everyone.pools is None:
        return NO_POOLS
    sizes = _covered(policy, cutoff.target, seen, everyone)
    if not sizes.any():
        return _none_covered(cutoff.target)
    missed = int(np.count_nonzero(~_enough(cutoff.target, seen, everyone.pools) & (sizes > 0)))
    chance = cutoff.proof.chance_short(cutoff, sizes[sizes > 0], missed)
    if chance is None:
        return OF_DRAWS
    finding = _fell_short(missed, int(np.count_nonzero(sizes)))
    if cutoff.group is not None:
        finding = f"in group {cutoff.group!r} {finding}"
    if missed == 0:
        return 1.0, finding
    scores = 1 if policy.choice is None else len(policy.choice.scores)
    return min(1.0, scores * chance), finding


def _fell_short(missed: int, pools: int) -> str:
    return f"{counted(missed, 'pool')} of {number(pools)} fell short"


def _none_covered(target: Promise) -> str:
    return f"it covers pools of {number(target.pool or 1)} or more candidates, and none of these is as large"
