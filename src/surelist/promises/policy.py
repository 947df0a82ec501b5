"""The policy: a few frozen numbers that shortlist candidates and say what is promised.

Applying a policy needs nothing but the policy. What it knows lives in ``state``, how it was
learned in ``calibrate``, its file format in ``policy_file``, its sentences in ``wording``.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from surelist import _check as check, _numerals as numerals
from surelist._arrays import Ints, Mask
from surelist.drawing import Display, Displayed, axes
from surelist.errors import InvalidInput, PoolWarning
from surelist.filters import TRIAGE, Filter, GroupFilter, Threshold
from surelist.promises import policy_display, policy_file, pool_checks, wording
from surelist.promises.options import GroupKey
from surelist.promises.promise import About
from surelist.promises.state import Certificate, Cutoff, ExcessBound
from surelist.promises.wording import TwoLines
from surelist.score_summary import PoolCheck


class Policy(Displayed, Certificate, frozen=True):
    """A certified shortlisting rule. Made by ``calibrate``, kept by ``save`` and ``load``.

    Parameters
    ----------
    cutoffs : tuple
        For each group and promise: thresholds, the rows behind them, and the proof.
    alpha, rule
        How often the promise may be wrong, and how it was certified.
    everything else
        The conditions under which it was certified, as ``show`` prints them and a file keeps them.

    Examples
    --------
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100))
    >>> policy.promise.split(";")[0]
    'The shortlist holds at least 5 qualified candidates on average over pools of 100 candidates'
    >>> len(policy.conditions)
    6
    >>> policy.save("policy.json")
    >>> sl.Policy.load("policy.json") == policy
    True
    """

    @property
    def threshold(self) -> float:
        """The one threshold. Policies with several have ``thresholds`` instead."""
        if not self.filter.grouped and len(self.cutoffs[0].steps) == 1:
            return self.cutoffs[0].steps[0].threshold
        several = "this policy has several, by group or by pool size; read policy.cutoffs."
        raise InvalidInput("threshold", several)

    @property
    def thresholds(self) -> dict[GroupKey | None, float]:
        """Threshold per group, named as in the target, for the smallest pool that is covered."""
        return {self.group_key(cutoff.group): cutoff.steps[0].threshold for cutoff in self.cutoffs}

    promise = cached_property(wording.promise)
    two_lines = cached_property(wording.two_lines)
    conditions = cached_property(wording.conditions)
    warnings = cached_property(wording.warnings)

    def promise_of(self, candidates: int | None) -> str:
        """The promise as it stands beside a list of so many candidates; None: beside no list.

        Of nobody nothing is promised, nor of others than those that a promise about a collection is about.
        """
        return self._nothing_of(candidates) or self.promise

    def two_lines_of(self, candidates: int | None) -> TwoLines:
        """The promise about this many candidates, in two lines."""
        nothing = self._nothing_of(candidates)
        return self.two_lines if nothing is None else TwoLines(nothing, "", ())

    def _nothing_of(self, candidates: int | None) -> str | None:
        if candidates is not None and candidates and self.of_collection:
            return f"Nothing is promised of other candidates: {self.not_of_these}. {wording.THEIR_LIST}"
        return wording.OF_NOBODY if candidates == 0 else None

    @property
    def excess_bound(self) -> dict[GroupKey | None, ExcessBound]:
        """How far above the target the list may lie, per disjoint group; for ``Expected`` targets.

        ``paper``: Proposition 3; None where ties let in more rows than it allows. ``count``: from the
        rows that reach the threshold, far tighter, whatever the ties; only for a target fixed
        beforehand, else None. See [theory: dkw].
        """
        helped = self.overlapping or self.common or self.several  # lists that help one another
        # within a factor they would be bounds of the kept rows' population, not of the pool's
        moved = self.shift is not None and self.shift.within is not None
        if self.withdrawn is not None or self.missing_labels or self.choice is not None or helped or moved:
            return {}
        counted = [cutoff for cutoff in self.cutoffs if cutoff.proof.counted]
        bounds = {self.group_key(each.group): each.target.excess(each) for each in counted}
        return {group: bound for group, bound in bounds.items() if bound is not None}

    @cached_property
    def filter(self) -> Filter:
        """What is applied to a pool of any kind: the thresholds without their evidence.

        Policies of one pool also ask for ``require_pool``.
        """
        groups = [GroupFilter(each.group, each.thresholds) for each in self.cutoffs]
        if self.common:  # of pools whose groups are not known, only the size of the whole is
            step, sizes = self.cutoffs[0].steps[0], [each.steps[0].pool_size for each in self.cutoffs]
            size = max(sizes) if self.group_rows == "all" else 0
            groups = [GroupFilter(None, (Threshold(size, step.threshold, step.tie_break),))]
        by_group = self.grouped and not self.common
        return Filter(
            tuple(groups if by_group else groups[:1]),
            size_by_group=by_group and self.group_rows == "own",
            overlapping=by_group and self.overlapping,
            by_rank=self.by_rank,
            hashed=self.salt_hash is not None,
            salt=self.salt,
            looked_from=self.cutoffs[0].proof.looked_from,
        )

    def describe(self) -> str:
        """Promise, thresholds, evidence and conditions, for a person."""
        lines = [self.promise, ""]
        for cutoff in self.cutoffs:
            lines += self._describe(cutoff)
        lines += [f"  {each}" for each in self.reading or ()]
        lines += [f"  warning: {each}" for each in self.warnings]
        rested = "rests" if self.withdrawn is None else "rested"
        lines += ["", f"  made {self.created} with surelist {self.version}", "", f"The promise {rested} on:"]
        for each in self.conditions:
            lines.append(textwrap.fill(each, 84, initial_indent="  - ", subsequent_indent=" " * 4))
        return "\n".join(lines)

    def _describe(self, cutoff: Cutoff) -> list[str]:
        shown = wording.threshold(cutoff)
        if self.by_rank:
            shown = f"shortlist {policy_display.listed(cutoff)}"
        backed = policy_display.backed(cutoff, self.rule)
        width = 10_000 if cutoff.proof.counted else 96
        lines = [f"  {shown}", textwrap.fill(f"    evidence: {backed}", width, subsequent_indent=" " * 4)]
        bound = self.excess_bound.get(self.group_key(cutoff.group))
        if bound is not None and bound.count is not None:
            most = f"    at most {numerals.number(bound.count, 3)} qualified more than asked for"
            lines.append(f"{most}, with probability at least {1 - cutoff.level.alpha:g}")
        lines += [f"    {each}" for each in wording.about_scores(cutoff, self)]
        if cutoff.fingerprint:
            lines.append(f"    calibration rows: sha256 {cutoff.fingerprint}")
        return lines

    def _display(self) -> Display:
        return policy_display.policy_display(self)

    @property
    def by_rank(self) -> bool:
        """Whether the list is each pool's best by rank."""
        return self.cutoffs[0].target.by_rank

    @property
    def of_pools(self) -> bool:
        """Whether whole pools were the units of calibration."""
        return self.cutoffs[0].target.whole_pools

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """The share of calibration rows at or above each score, and the thresholds (``plots`` extra)."""
        curves = {
            cutoff.group or "calibration rows": cutoff.scores.shares()
            for cutoff in self.cutoffs
            if cutoff.scores is not None
        }
        if not curves:
            kept = "this policy keeps no scores; an earlier version made it, or a campaign."
            raise InvalidInput("plot", kept)
        ends = [step for cutoff in self.cutoffs for step in (cutoff.steps[0], cutoff.steps[-1])]
        return axes.picture(ax, path, axes.draw_scores, curves, {step.threshold: step.share for step in ends})

    def select(self, scores: object, groups: object = None, ids: object = None) -> Mask:
        """True for every candidate of the pool who is on the shortlist.

        ``groups`` and ``ids`` go with policies calibrated with them. The pool is taken as a
        whole: for ``PerPool`` targets its size decides the threshold. Whether it is the kind of pool
        the promise is about is not said here: ``check_pool`` says it.
        """
        check.require_one_index(scores=scores, groups=groups, ids=ids)
        array = self._chosen_score(scores)
        if self.of_one_pool:
            self.require_pool(array)
        mask = self.filter.select(array, groups, ids)
        if len(mask) == 0:
            warn("scores: the pool is empty, and so is its shortlist.", PoolWarning, stacklevel=2)
        return mask

    @property
    def three_ways(self) -> bool:
        """Whether it accepts, rejects, and leaves the rest to people."""
        return self.cutoffs[0].target.three_ways

    @property
    def list_column(self) -> str | None:
        """The column of a written list that says which of three lists a candidate is on."""
        return TRIAGE if self.three_ways else None

    def triage(self, scores: object) -> NDArray[np.str_]:
        """For every candidate "accept", "look" or "reject"; of a ``Triage`` policy only."""
        if not self.three_ways:
            raise InvalidInput("policy", "it makes one list; calibrate with Triage for three.")
        array = check.as_scores(self._chosen_score(scores))
        return self.filter.triage(array)

    def select_pools(self, scores: object, pools: object, groups: object = None, ids: object = None) -> Mask:
        """The same for the candidates of many pools; ``pools`` says which one each is in."""
        check.require_one_index(scores=scores, pools=pools, groups=groups, ids=ids)
        if not (self.by_rank or self.filter.by_size):
            return self.select(scores, groups, ids)
        array = check.as_scores(self._chosen_score(scores))
        codes, count = check.as_codes(pools, len(array))
        if self.filter.hashed and ids is not None:
            ids = check.as_ids(ids, len(array))  # no two alike, in whichever pools they are
        chosen = np.zeros(len(array), dtype=np.bool_)
        order = np.argsort(codes, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1]):
            part = array[rows] if self.choice is None else {self.choice.chosen: array[rows]}
            chosen[rows] = self.select(part, _rows_of(groups, rows), _rows_of(ids, rows))
        return chosen

    @property
    def of_one_pool(self) -> bool:
        """Whether it shortlists the very pool it was made with, and no other."""
        return self.cutoffs[0].about is About.THIS_POOL

    def require_pool(self, scores: Any) -> None:
        """Raise for a policy of one pool where these are not that pool's scores."""
        if self.of_one_pool and not self.cutoffs[0].proof.is_of(scores):
            own = "this policy selects from the pool it was made with, and from no other."
            raise InvalidInput("scores", own)

    def check_pool(self, scores: object, groups: object = None, ids: object = None) -> tuple[PoolCheck, ...]:
        """Is this the kind of pool the promise is about? Sentences, some of them warnings.

        Pool size, share shortlisted, range and drift of scores, calibration rows in the pool. For
        policies whose groups overlap, each with its own cutoff, there are none.
        """
        return self.checks_of(self._chosen_score(scores), groups, self.select(scores, groups, ids))

    def checks_of(
        self, scores: object, groups: object, listed: Mask, pools: object = None
    ) -> tuple[PoolCheck, ...]:
        """The same for pools whose shortlist is known; ``scores`` are those of the one column chosen."""
        if self.filter.overlapping:
            return ()
        return pool_checks.check_arrays(self, scores, groups, listed, pools)

    def _chosen_score(self, scores: Any) -> Any:
        """The score that was chosen, where there were several."""
        if isinstance(scores, Mapping) != (self.choice is not None):
            want = "one column of scores" if self.choice is None else f"{{{self.choice.chosen!r}: scores}}"
            raise InvalidInput("scores", f"this policy takes {want}, got {type(scores).__name__}.")
        if self.choice is None:
            return scores if self.cutoffs[0].proof.counted else check.as_scores(scores)
        if self.choice.chosen not in scores:
            listed = ", ".join(repr(name) for name in scores)
            raise InvalidInput("scores", f"this policy was made for {self.choice.chosen!r}, got {listed}.")
        return check.as_scores(scores[self.choice.chosen])

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON; a salt goes to ``<path>.salt`` beside it. Never half-written."""
        policy_file.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy back; anything unknown, missing or contradictory is an error."""
        return policy_file.load(Path(path), cls)

    @classmethod
    def loads(cls, text: str, name: str = "policy", salt_text: str | None = None) -> Policy:
        """Read a policy from the text of its file; ``name`` says in errors which one it is."""
        return policy_file.loads(text, cls, name, salt_text)

    def with_columns(self, **columns: str | None) -> Policy:
        """A copy that remembers which table columns it was calibrated on."""
        return replace(self, columns={k: v for k, v in columns.items() if v is not None})

    def read_from(self, *sentences: str) -> Policy:
        """A copy that remembers how the file of its calibration rows was read."""
        return replace(self, reading=sentences or None)

    def withdraw(self, reason: str) -> Policy:
        """A copy with the thresholds, promising nothing any more; ``promise`` says why."""
        return replace(self, withdrawn=reason)


def as_policy(policy: object) -> Policy:
    """A policy, or the one in the file at this path."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, (str, os.PathLike)):
        return Policy.load(Path(policy))
    raise InvalidInput("policy", expected="a Policy or the path of its file", got=check.shown(policy))


def _rows_of(values: object, rows: Ints) -> Any:
    """Some rows of a column, or of a mapping of columns; None stays None."""
    if isinstance(values, Mapping):
        return {name: np.asarray(each)[rows] for name, each in values.items()}
    return None if values is None else np.asarray(values, dtype=object)[rows]
