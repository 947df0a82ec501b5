"""The policy: a few frozen numbers that shortlist candidates and say what is promised.

Applying a policy needs nothing but the policy. How it was learned lives in ``calibration``,
its file format in ``policy_file``, its sentences in ``wording``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelist import bounds
from surelist.errors import InvalidInput
from surelist.filters import Filter, GroupFilter, Threshold
from surelist.promises import wording
from surelist.promises.targets import Expected, Level, Target
from surelist.ties import Salt

if TYPE_CHECKING:
    from surelist._check import Mask


@dataclass(frozen=True)
class Step:
    """One threshold: for pools of at least ``pool_size``, shortlist scores >= ``threshold``.

    With randomised ties, candidates exactly at the threshold need a tie number of at least
    ``tie_break``.
    """

    pool_size: int
    critical_count: int
    threshold: float
    tie_break: int | None = None


@dataclass(frozen=True)
class Cutoff:
    """What was certified for one group (``group=None``: for everyone), with its evidence."""

    group: str | None
    target: Target
    level: Level
    rows: int
    qualified: int
    steps: tuple[Step, ...]
    fingerprint: str | None = None

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """The steps without the counts behind them."""
        return tuple(Threshold(each.pool_size, each.threshold, each.tie_break) for each in self.steps)


@dataclass(frozen=True)
class Shift:
    """Calibration rows were thinned by density ratios to look like the pool [theory: shift]."""

    weight_bound: float
    rows_before: int
    seed: int
    weights_exact: bool


@dataclass(frozen=True)
class Looks:
    """The looks of a campaign so far [theory: reviews]: rows, cumulative alpha and count at each.

    ``chosen`` is the look whose count gave the threshold in force.
    """

    rows: tuple[int, ...]
    budgets: tuple[float, ...]
    counts: tuple[int, ...]
    chosen: int


@dataclass(frozen=True)
class ExcessBound:
    """Qualified candidates beyond the target, each bound holding with probability >= 1-alpha."""

    paper: float | None
    count: float


@dataclass(frozen=True)
class Policy:
    """A certified shortlisting rule. Made by ``calibrate``, kept by ``save`` and ``load``."""

    cutoffs: tuple[Cutoff, ...]
    alpha: float
    rule: str
    created: str
    version: str
    group_split: str | None = None
    group_rows: str | None = None
    overlapping: bool = False
    purpose: str | None = None
    missing_labels: int = 0
    dropped_rows: int = 0
    shift: Shift | None = None
    salt_hash: str | None = None
    salt: Salt | None = None
    columns: Mapping[str, str] | None = None
    looks: Looks | None = None  # of a campaign
    withdrawn: str | None = None  # why nothing is promised any more

    @property
    def threshold(self) -> float:
        """The one threshold. Policies with several have ``thresholds`` instead."""
        if len(self.cutoffs) == 1 and len(self.cutoffs[0].steps) == 1:
            return self.cutoffs[0].steps[0].threshold
        raise InvalidInput(
            "threshold: this policy has several, by group or by pool size; read policy.cutoffs."
        )

    @property
    def thresholds(self) -> dict[str | None, float]:
        """Threshold per group, for the smallest pool that is covered."""
        return {cutoff.group: cutoff.steps[0].threshold for cutoff in self.cutoffs}

    @property
    def grouped(self) -> bool:
        return self.cutoffs[0].group is not None

    @cached_property
    def promise(self) -> str:
        """What is promised, in one sentence, with the numbers."""
        return wording.promise(self)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """What the promise rests on, in plain words [theory: setting]."""
        return wording.conditions(self)

    @property
    def excess_bound(self) -> dict[str | None, ExcessBound]:
        """How far above the target the list may lie, per disjoint group; for ``Expected`` targets.

        ``paper``: Proposition 3 (monotone score without atoms). ``count``: from the count
        alone, for untied qualified scores; far tighter. See [theory: dkw].
        """
        found: dict[str | None, ExcessBound] = {}
        if self.looks is not None or self.overlapping:
            return found  # the best of several looks, or lists that help one another: no bound holds
        for cutoff in self.cutoffs:
            if isinstance(cutoff.target, Expected):
                found[cutoff.group] = _excess(cutoff, cutoff.target)
        return found

    @cached_property
    def filter(self) -> Filter:
        """What is applied to a pool: the thresholds without their evidence."""
        return Filter(
            tuple(GroupFilter(cutoff.group, cutoff.thresholds) for cutoff in self.cutoffs),
            size_by_group=self.grouped and self.group_rows == "own",
            overlapping=self.overlapping,
            hashed=self.salt_hash is not None,
            salt=self.salt,
        )

    def select(self, scores: Any, groups: Any = None, ids: Any = None) -> Mask:
        """True for every candidate of the pool who is on the shortlist.

        ``groups`` and ``ids`` go with policies calibrated with them. The pool is taken as a
        whole: for ``PerPool`` targets its size decides the threshold.
        """
        return self.filter.select(scores, groups, ids)

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON; a salt goes to ``<path>.salt`` beside it. Never half-written."""
        from surelist.promises import policy_file

        policy_file.save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Policy:
        """Read a policy back; anything unknown, missing or contradictory is an error."""
        from surelist.promises import policy_file

        return policy_file.load(Path(path))

    def with_columns(self, **columns: str | None) -> Policy:
        """The same policy, remembering which table columns it was calibrated on."""
        return replace(self, columns={k: v for k, v in columns.items() if v is not None})

    def withdraw(self, reason: str) -> Policy:
        """The same thresholds, promising nothing any more; ``promise`` says why."""
        return replace(self, withdrawn=reason)


def _excess(cutoff: Cutoff, target: Expected) -> ExcessBound:
    n, count = cutoff.rows, cutoff.steps[0].critical_count
    alpha, m = cutoff.level.alpha, target.pool_size
    dkw = bounds.critical_count(n, target.rate, alpha, "dkw")
    paper = bounds.excess_paper(n, m, alpha) if count <= dkw else None
    return ExcessBound(paper, bounds.excess_count(n, count, target.k, m, alpha))
