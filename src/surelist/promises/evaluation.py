"""What a policy kept, on labelled rows it never saw: exact shares, and whether they fit its promise.

Not a promise: a look back. "Speaks against" means that a true promise would show so little less than once in
twenty times; a promise is false at most alpha of the time, and evaluation is how that is found out. The tests
are in ``judging``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from surelist import _check as check, bounds
from surelist._arrays import Mask
from surelist._names import option
from surelist.bounds.looking_back import clustered_interval
from surelist.drawing import Display, Displayed, axes
from surelist.errors import InvalidInput
from surelist.filters import pool_members
from surelist.promises.judging import LEVEL, Pools, RowsSeen, judge, kept_by_pool
from surelist.promises.policy import Policy, as_policy


class Share(Struct, frozen=True):
    """``count`` of ``of``, with an interval that covers the true share at least 19 times in 20.

    Where pools are known, rows of one pool may resemble one another: pools are then the draws.
    """

    count: int
    of: int
    low: float
    high: float

    @classmethod
    def exact(cls, count: int, of: int) -> Share:
        return cls(count, of, *bounds.exact_interval(of, count, LEVEL))

    @classmethod
    def seen(cls, won: Mask, of: Mask, pools: Pools | None) -> Share:
        """Who of whom, in pools or not."""
        count, total = int(np.count_nonzero(won)), int(np.count_nonzero(of))
        if pools is None:
            return cls.exact(count, total)
        ends = clustered_interval(pools.counts(won), pools.counts(of), pools.largest, LEVEL)
        return cls(count, total, *ends)

    def __str__(self) -> str:
        if self.of == 0:
            return "none"
        share = self.count / self.of
        least = min(part for part in (share, 1 - share, self.high, 1 - self.low) if part > 0)
        places = max(1, -math.floor(math.log10(100 * least)))  # as many as tell it from 0 and from 100
        unit = Fraction(1, 10**places)
        low, high = math.floor(Fraction(100 * self.low) / unit), math.ceil(Fraction(100 * self.high) / unit)
        ends = f"{float(low * unit):.{places}f} to {float(min(high * unit, Fraction(100))):.{places}f}%"
        return f"{100 * share:.{places}f}% ({ends}), {self.count:,} of {self.of:,}"


class Kept(Struct, frozen=True):
    """What the list of some rows held, of all candidates or of a group."""

    group: str | None
    listed: Share  # of these rows
    found: Share  # listed and qualified, of these rows; of everybody's where that is promised of a group
    recall: Share  # listed, of the qualified
    precision: Share  # qualified, of the listed

    @property
    def rates(self) -> dict[str, Share]:
        """Those that are drawn."""
        return {"recall": self.recall, "precision": self.precision}


class Evaluation(Displayed, Struct, frozen=True):
    """The rows as a whole and by group; pools that kept the promise, where it is about pools.

    ``consistent`` is None where such rows cannot speak for or against the promise; ``verdict`` says why.

    Parameters
    ----------
    promise : str
        What the policy promises, in a sentence.
    kept : tuple
        Of all rows and by group: shares listed, found, kept of the qualified and right of the listed.
    pools : share, optional
        Of the pools, those in which the promise was kept; for promises about pools.
    consistent : bool, optional
        Whether the rows are such as the promise allows.
    verdict : str
        That in words, with the numbers.

    Examples
    --------
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    >>> later, outcome = population(7, 3_000)
    >>> sl.evaluate(policy, later, outcome).verdict.split(":")[0]
    'Consistent with the promise'
    """

    promise: str
    kept: tuple[Kept, ...]
    pools: Share | None
    consistent: bool | None
    verdict: str

    def describe(self) -> str:
        """For a person."""
        lines = [self.promise, ""]
        for each in self.kept:
            name = "all candidates" if each.group is None else f"group {each.group}"
            lines += [f"  {name}", f"    listed      {each.listed}"]
            lines += [f"    qualified and listed, of all  {each.found}"]
            lines += [f"    {what:<11} {share}" for what, share in each.rates.items()]
        if self.pools is not None:
            lines.append(f"  pools that kept it   {self.pools}")
        return "\n".join([*lines, "", self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Recall and precision of the list, with their intervals (``plots`` extra; ``path``: also a file)."""
        rates = [
            axes.Rate(f"{what}\n{'all' if each.group is None else each.group}", share.low, share.high, None)
            for each in self.kept
            for what, share in each.rates.items()
            if share.of
        ]
        verdict, axis = self.verdict.partition(":")[0], "share, exact 95 % interval"
        return axes.picture(ax, path, axes.draw_rates, rates, verdict, axis)

    def _display(self) -> Display:
        facts = [
            (what if each.group is None else f"{what}, {each.group}", str(share))
            for each in self.kept
            for what, share in {"listed": each.listed, **each.rates}.items()
        ]
        facts += [] if self.pools is None else [("pools that kept it", str(self.pools))]
        lines = {
            True: "consistent with the promise", False: "the rows speak against the promise",
            None: "these rows cannot speak for or against the promise",
        }  # fmt: skip
        return Display(lines[self.consistent], self.verdict, facts, folded=[("The promise", [self.promise])])


def evaluate(
    policy: Policy | str | PathLike[str], scores: object, labels: object, *, groups: object = None,
    ids: object = None, pools: object = None,
) -> Evaluation:  # fmt: skip
    """How the policy did on labelled rows that took no part in making it.

    ``policy`` may be the path of its file. ``pools`` says which pool a row is in; promises about single pools
    are then judged pool by pool, and for all others pools are the draws, whose candidates may resemble one
    another: leave it out where rows are independent. For other arguments see ``calibrate``. Do not use
    calibration rows.

    Parameters
    ----------
    policy : Policy or path
        What is judged.
    scores, labels : array_like
        Of rows that took no part in making it.
    groups, ids, pools : array_like, optional
        One per row, for policies by group, with ties broken by id, and about pools.

    Returns
    -------
    Evaluation
        Shares with exact intervals, and a verdict; ``consistent`` is None where rows cannot say.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    >>> later, outcome = population(7, 3_000)
    >>> sl.evaluate(policy, later, outcome).consistent
    True
    """
    policy = as_policy(policy)
    check.require_one_index(scores=scores, labels=labels, groups=groups, ids=ids, pools=pools)
    good, _ = check.as_labels(labels)
    drawn = None if pools is None else Pools(*check.as_codes(pools, len(good)))
    listed = _listed(policy, scores, groups if policy.filter.grouped else None, ids, pools)
    check.require_length(good, len(listed), "labels")
    check.require_rows(good, "labels")
    rejected = policy.triage(scores) == "reject" if policy.three_ways else None
    everyone = RowsSeen(np.ones(len(good), dtype=np.bool_), listed, good, drawn, rejected)
    members = _members(groups, policy, len(good)) if policy.grouped else {}
    kept = [_kept(None, everyone, everyone)]
    whole = policy.group_rows == "all"
    for name, mask in members.items():
        if policy.common and name == check.EVERYONE:
            continue  # they come first
        seen = everyone.of(mask)
        kept.append(_kept(name, seen, everyone if whole else seen))
    enough = kept_by_pool(policy, everyone, members)
    by_pool = None if enough is None else Share.exact(int(np.count_nonzero(enough)), len(enough))
    consistent, verdict = judge(policy, everyone, members)
    return Evaluation(policy.promise, tuple(kept), by_pool, consistent, verdict)


def _listed(policy: Policy, scores: object, groups: object, ids: object, pools: object) -> Mask:
    """The shortlist; pool by pool where the pool decides it."""
    if pools is not None:
        return policy.select_pools(scores, pools, groups, ids)
    if policy.by_rank:
        raise InvalidInput("pools", f"lists by rank are made pool by pool; pass {option('pools')}.")
    return policy.select(scores, groups, ids)


def _members(groups: object, policy: Policy, rows: int) -> dict[str, Mask]:
    known = [str(cutoff.group) for cutoff in policy.cutoffs]
    return pool_members(groups, known, rows, overlapping=policy.overlapping, everyone=policy.common)


def _kept(group: str | None, seen: RowsSeen, of: RowsSeen) -> Kept:
    both, pools = seen.listed & seen.good, seen.pools
    parts = (seen.listed, seen.rows), (both, of.rows), (both, seen.good), (both, seen.listed)
    return Kept(group, *(Share.seen(won, among, pools) for won, among in parts))
