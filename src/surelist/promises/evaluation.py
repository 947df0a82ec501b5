"""What a policy kept, on labelled rows it never saw: exact shares, and whether they fit its promise.

Not a promise: a look back. "Speaks against" means that a true promise would show so little less than once in
twenty times; a promise is false at most alpha of the time, and evaluation is how that is found out.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist import bounds
from surelist._dataclasses import asdict, dataclass
from surelist._scipy import special
from surelist.drawing import axes
from surelist.drawing.shown import Display, Displayed
from surelist.errors import InvalidInput
from surelist.promises.phrases import counted, number
from surelist.promises.policy import Policy
from surelist.promises.pools import NextPool
from surelist.promises.reference import FalseShare, ListedBudget
from surelist.promises.state import Cutoff
from surelist.promises.targets import Budget, Expected, PerPool, Precision, Recall

LEVEL = 0.05

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Share:
    """``count`` of ``of``, with an interval that covers the true share at least 19 times in 20."""

    count: int
    of: int
    low: float
    high: float

    @classmethod
    def exact(cls, count: int, of: int) -> Share:
        return cls(count, of, *bounds.exact_interval(of, count, LEVEL))

    def __str__(self) -> str:
        if self.of == 0:
            return "none"
        shown = f"{100 * self.count / self.of:.1f}% ({100 * self.low:.1f} to {100 * self.high:.1f}%)"
        return f"{shown}, {self.count:,} of {self.of:,}"


@dataclass(frozen=True)
class Kept:
    """What the list of some rows held: of ``rows`` candidates, and of a group where there is one."""

    group: str | None
    listed: Share  # of all rows
    found: Share  # listed and qualified, of all rows
    recall: Share  # listed, of the qualified
    precision: Share  # qualified, of the listed


@dataclass(frozen=True, repr=False)
class Evaluation(Displayed):
    """The rows as a whole and by group; pools that kept the promise, where it is about pools.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    >>> later, outcome = population(np.random.default_rng(7), 3_000)
    >>> sl.evaluate(policy, later, outcome).verdict.split(":")[0]
    'Consistent with the promise'
    """

    promise: str
    kept: tuple[Kept, ...]
    pools: Share | None
    consistent: bool
    verdict: str

    def describe(self) -> str:
        """For a person."""
        lines = [self.promise, ""]
        for each in self.kept:
            name = "all candidates" if each.group is None else f"group {each.group}"
            lines += [
                f"  {name}", f"    listed      {each.listed}", f"    qualified and listed, of all  "
                f"{each.found}",
                f"    recall      {each.recall}", f"    precision   {each.precision}",
            ]  # fmt: skip
        if self.pools is not None:
            lines.append(f"  pools that kept it   {self.pools}")
        return "\n".join([*lines, "", self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def plot(self, ax: Any = None, *, path: str | Path | None = None) -> Any:
        """Recall and precision of the list, with their intervals (``plots`` extra; ``path``: also a file)."""
        rates = [
            axes.Rate(f"{what}\n{'all' if each.group is None else each.group}", share.low, share.high, None)
            for each in self.kept
            for what, share in (("recall", each.recall), ("precision", each.precision))
            if share.of
        ]
        return axes.draw_rates(rates, self.verdict.partition(":")[0], "share, exact 95 % interval", ax, path)

    def _display(self) -> Display:
        facts = [
            (what if each.group is None else f"{what}, {each.group}", str(share))
            for each in self.kept
            for what, share in (
                ("listed", each.listed),
                ("recall", each.recall),
                ("precision", each.precision),
            )
        ]
        facts += [] if self.pools is None else [("pools that kept it", str(self.pools))]
        line = "consistent with the promise" if self.consistent else "the rows speak against the promise"
        return Display(line, self.verdict, facts, folded=[("The promise", [self.promise])])


def evaluate(
    policy: Policy, scores: Any, labels: Any, *, groups: Any = None, ids: Any = None, pools: Any = None
) -> Evaluation:
    """How the policy did on labelled rows that took no part in making it.

    ``pools`` says which pool a row is in; promises about single pools are then judged pool by pool. For
    other arguments see ``calibrate``. Rows that made the policy, or chose it, prove nothing here.

    Returns
    -------
    Evaluation
        Shares with exact intervals, and a verdict.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    >>> later, outcome = population(np.random.default_rng(7), 3_000)
    >>> sl.evaluate(policy, later, outcome).consistent
    True
    """
    check.require_one_index(scores=scores, labels=labels, groups=groups, ids=ids, pools=pools)
    good, _ = check.as_labels(labels)
    codes, count = (None, 0) if pools is None else check.as_codes(pools, len(good))
    listed = _listed(policy, scores, groups, ids, pools)
    check.require_length(good, len(listed), "labels")
    check.require_rows(good, "labels")
    kept = [_kept(None, listed, good)]
    if policy.grouped:
        members = _members(groups, policy)
        kept += [_kept(name, listed & mask, good & mask, mask) for name, mask in members.items()]
    by_pool = None if codes is None else _pools(policy, listed, good, codes, count)
    consistent, verdict = _judge(policy, kept, by_pool)
    return Evaluation(policy.promise, tuple(kept), by_pool, consistent, verdict)


def _listed(policy: Policy, scores: Any, groups: Any, ids: Any, pools: Any) -> Mask:
    """The shortlist; pool by pool where the pool decides it."""
    if pools is not None:
        return policy.select_pools(scores, pools, groups, ids)
    if policy.by_rank:
        raise InvalidInput("pools: lists by rank are made pool by pool; pass pools=.")
    return policy.select(scores, groups, ids)


def _members(groups: Any, policy: Policy) -> dict[str, Mask]:
    if policy.overlapping:
        return {str(name): np.asarray(mask, dtype=np.bool_) for name, mask in groups.items()}
    names = check.as_groups(groups)
    return {str(cutoff.group): names == cutoff.group for cutoff in policy.cutoffs}


def _kept(group: str | None, listed: Mask, good: Mask, rows: Mask | None = None) -> Kept:
    total = len(listed) if rows is None else int(np.count_nonzero(rows))
    on_list, qualified = int(np.count_nonzero(listed)), int(np.count_nonzero(good))
    both = int(np.count_nonzero(listed & good))
    return Kept(
        group, Share.exact(on_list, total), Share.exact(both, total), Share.exact(both, qualified),
        Share.exact(both, on_list),
    )  # fmt: skip


def _pools(policy: Policy, listed: Mask, good: Mask, codes: NDArray[np.int64], pools: int) -> Share | None:
    """In how many pools the list holds what is promised of each."""
    target = policy.cutoffs[0].target
    if not isinstance(target, PerPool) or policy.grouped:
        return None
    held, available = (np.bincount(codes[mask], minlength=pools) for mask in (listed & good, good))
    if target.recall is None:
        enough = held >= target.k
    else:
        share = check.as_fraction(target.recall, "recall")
        enough = held * share.denominator >= available * share.numerator
    return Share.exact(int(np.count_nonzero(enough)), pools)


def _judge(policy: Policy, kept: list[Kept], pools: Share | None) -> tuple[bool, str]:
    """The smallest chance, over the promises, of so little if each were only just true."""
    judged = [_chance(cutoff, _rows_of(cutoff, kept), pools) for cutoff in policy.cutoffs]
    known = [each for each in judged if each is not None]
    if not known:
        return (
            True,
            "These rows alone cannot speak for or against this promise: it is about averages over pools.",
        )
    chance, finding = min(known)
    if chance * len(known) < LEVEL:
        rare = f"which a true one shows {_rarely(chance)} of the time"
        return False, f"These rows speak against the promise: {finding}, {rare}."
    return True, f"Consistent with the promise: {finding}."


def _rows_of(cutoff: Cutoff, kept: list[Kept]) -> Kept:
    return next(each for each in kept if each.group == cutoff.group)


def _chance(cutoff: Cutoff, kept: Kept, pools: Share | None) -> tuple[float, str] | None:
    target, proof = cutoff.target, cutoff.proof
    if isinstance(proof, FalseShare):
        return None
    if isinstance(target, PerPool):
        if pools is None:
            return None
        return _pools_short(cutoff, pools)
    if isinstance(target, Recall):
        return _fewer(kept.recall, target.share, "of the qualified are listed")
    if isinstance(target, Precision):
        return _fewer(kept.precision, target.share, "of the list is qualified")
    if isinstance(target, Expected) and (target.pool_size is None or target.of == "value"):
        return None
    if not isinstance(target, (Expected, Budget)):
        return None
    k = proof.k if isinstance(proof, ListedBudget) else float(getattr(target, "k", math.nan))
    return _fewer(kept.found, k / float(target.pool_size), "of all candidates are qualified and listed")


def _pools_short(cutoff: Cutoff, pools: Share) -> tuple[float, str] | None:
    """P(so many pools fall short); None where that varies with the calibration rows in no known way."""
    missed = pools.of - pools.count
    finding = f"{counted(missed, 'pool')} of {number(pools.of)} fell short"
    if missed == 0:
        return 1.0, finding
    if cutoff.level.rule != "exact":
        return float(special.bdtrc(missed - 1, pools.of, cutoff.level.pool_alpha)), finding
    if not isinstance(cutoff.proof, NextPool):
        return None
    # as many new pools below the rank-th of the calibration pools, all of them exchangeable
    return 1.0 - bounds.pool_tail(cutoff.proof.pools, missed, pools.of, cutoff.proof.rank), finding


def _fewer(share: Share, promised: float, what: str) -> tuple[float, str] | None:
    """P(so few or fewer) where the share is exactly what is promised."""
    if share.of == 0:
        return None
    finding = f"{100 * share.count / share.of:.4g}% {what}, {100 * promised:.4g}% are promised"
    return float(special.bdtr(share.count, share.of, promised)), finding


def _rarely(chance: float) -> str:
    return f"{100 * chance:.2g}%" if chance >= 1e-6 else "less than 0.0001%"
