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

import numpy as np

from surelist import _check as check
from surelist import bounds
from surelist.errors import InvalidInput
from surelist.promises import wording
from surelist.promises.targets import Expected, Level, PerPool, Target
from surelist.ties import Salt

if TYPE_CHECKING:
    from surelist._check import Mask, Scores


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

    def step(self, pool_size: int) -> Step:
        """The step in force for a pool of this many candidates."""
        fitting = [step for step in self.steps if step.pool_size <= pool_size]
        if not fitting:
            who = f" of group {self.group!r}" if self.group is not None else ""
            raise InvalidInput(
                f"pool: the promise covers pools of {self.steps[0].pool_size} or more candidates"
                f"{who}, got {pool_size}. Pool more candidates, or calibrate for smaller pools."
            )
        return fitting[-1]


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

    def select(self, scores: Any, groups: Any = None, ids: Any = None) -> Mask:
        """True for every candidate of the pool who is on the shortlist.

        ``groups`` and ``ids`` go with policies calibrated with them. The pool is taken as a
        whole: for ``PerPool`` targets its size decides the threshold.
        """
        array = check.as_scores(scores, finite=False)
        texts = self._tie_ids(ids, len(array)) if self.salt_hash is not None else None
        if not self.grouped:
            if groups is not None:
                raise InvalidInput("groups: this policy has no groups; leave groups out.")
            step = self.cutoffs[0].step(len(array))
            return self._at_least(array, step, texts)
        return self._select_groups(array, groups, texts)

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

    def _at_least(self, scores: Scores, step: Step, ids: list[str] | None) -> Mask:
        mask = check.finite_at_least(scores, step.threshold)
        if step.tie_break is not None and ids is not None:
            self._break_ties(mask, scores, step, ids)
        return mask

    def _break_ties(self, mask: Mask, scores: Scores, step: Step, ids: list[str]) -> None:
        assert self.salt is not None
        assert step.tie_break is not None
        tied = np.flatnonzero(scores == step.threshold)
        numbers = self.salt.numbers([ids[row] for row in tied])
        for row, number in zip(tied.tolist(), numbers, strict=True):
            if number in self.salt.spent:
                raise InvalidInput(
                    f"ids: candidate {ids[row]!r} is also a calibration row. "
                    "Randomised ties need ids that are unique over calibration and pool."
                )
            mask[row] = number >= step.tie_break

    def _tie_ids(self, ids: Any, rows: int) -> list[str]:
        if ids is None:
            raise InvalidInput("ids: this policy breaks ties by candidate id; pass ids=.")
        if self.salt is None:
            raise InvalidInput(
                "policy: its salt is missing. Keep the .salt file beside the policy file and load again."
            )
        return check.as_ids(ids, rows)

    def _select_groups(self, scores: Scores, groups: Any, ids: list[str] | None) -> Mask:
        check.require_finite(scores)
        known = [cutoff.group or "" for cutoff in self.cutoffs]
        members = pool_members(groups, known, len(scores), overlapping=self.overlapping)
        chosen = np.zeros(len(scores), dtype=np.bool_)
        for cutoff in self.cutoffs:
            rows = np.flatnonzero(members[cutoff.group or ""])
            size = len(scores) if self.group_rows == "all" else len(rows)
            if size == 0 and not isinstance(cutoff.target, PerPool):
                continue
            step = cutoff.step(size)
            texts = [ids[row] for row in rows] if ids is not None else None
            chosen[rows] |= self._at_least(scores[rows], step, texts)
        return chosen


def pool_members(groups: Any, known: list[str], rows: int, *, overlapping: bool) -> dict[str, Mask]:
    """Row mask per known group; unknown or missing groups are errors that name them."""
    if groups is None:
        raise InvalidInput(f"groups: this policy has groups ({_listed(known)}); pass groups=.")
    if isinstance(groups, Mapping) != overlapping:
        form = "a mapping of name to boolean mask" if overlapping else "one group name per candidate"
        raise InvalidInput(f"groups: this policy takes {form}, got {type(groups).__name__}.")
    if overlapping:
        masks = check.as_masks(groups, rows)
        unknown = sorted(set(masks) - set(known))
        missing = sorted(set(known) - set(masks))
        if missing:
            raise InvalidInput(f"groups: no mask for group {missing[0]!r}.")
    else:
        names = check.as_groups(groups)
        check.require_length(names, rows, "groups")
        masks = {name: names == name for name in known}
        covered = sum(int(np.count_nonzero(mask)) for mask in masks.values())
        unknown = sorted(set(np.unique(names).tolist()) - set(known)) if covered < rows else []
    if unknown:
        raise InvalidInput(f"groups: unknown group {unknown[0]!r}; known groups: {_listed(known)}.")
    return masks


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def _excess(cutoff: Cutoff, target: Expected) -> ExcessBound:
    n, count = cutoff.rows, cutoff.steps[0].critical_count
    alpha, m = cutoff.level.alpha, target.pool_size
    dkw = bounds.critical_count(n, target.rate, alpha, "dkw")
    paper = bounds.excess_paper(n, m, alpha) if count <= dkw else None
    return ExcessBound(paper, bounds.excess_count(n, count, target.k, m, alpha))
