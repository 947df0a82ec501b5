"""Scores, labels and a target in; a ``Policy`` or ``NotCertifiable`` out.

``certify`` is the one place where a promise is made. It asks each group's evidence for three
things only: how many rows, how many of them qualified, and a few order statistics of the
qualified scores. ``calibrate`` supplies them from arrays, ``tables`` from any engine.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._version import __version__
from surelist.errors import GroupCutoffWarning, InvalidInput, NotCertifiable, Shortfall
from surelist.filters import pool_members
from surelist.promises.groups import GroupRows, GroupSplit, split_alpha
from surelist.promises.policy import Policy
from surelist.promises.state import Cutoff, Shift, Step
from surelist.promises.targets import Expected, Level, PerPool, Recall, Requirement, Target, estimate_rows
from surelist.ties import Salt

TIES = ("include", "hash")

_THINNING = 0x5EED5EED

GROUP_WARNING = (
    "Cutoffs that differ by group are unlawful in some uses: in the United States, Title VII "
    "section 703(l) forbids different cutoff scores by race, colour, religion, sex or national "
    'origin in employment tests. State what these are for with purpose="..."; it is recorded in '
    "the policy. This is not legal advice."
)

Targets = Target | Mapping[Any, Target]


class Evidence(Protocol):
    """What calibration needs to know of one group's rows."""

    @property
    def rows(self) -> int: ...
    @property
    def qualified(self) -> int: ...
    @property
    def fingerprint(self) -> str | None: ...
    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        """The count-th largest qualified score, for each count."""

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        """How many qualified rows score above, and the ids of those exactly at the threshold."""


@dataclass(frozen=True)
class Terms:
    """What the user asked for, checked: the targets by group and how to certify them."""

    targets: Mapping[str | None, Target]
    alpha: float
    rule: str
    calibration_share: float = 0.5
    group_split: GroupSplit = "bonferroni"
    group_rows: GroupRows = "own"
    overlapping: bool = False
    purpose: str | None = None
    ties: str = "include"

    @property
    def grouped(self) -> bool:
        return None not in self.targets

    @property
    def level(self) -> Level:
        """The level at which each group is certified."""
        alpha = self.alpha
        if self.grouped:
            alpha = split_alpha(alpha, len(self.targets), self.group_split)
        return Level(alpha, self.rule, self.calibration_share)


def calibrate(
    scores: Any,
    labels: Any,
    target: Targets,
    *,
    alpha: float = 0.1,
    rule: str = "exact",
    groups: Any = None,
    purpose: str | None = None,
    group_split: GroupSplit = "bonferroni",
    group_rows: GroupRows = "own",
    calibration_share: float = 0.5,
    ties: str = "include",
    ids: Any = None,
    weights: Any = None,
    weight_bound: float | None = None,
    weights_exact: bool = False,
    seed: int = 0,
    missing_labels: str = "error",
) -> Policy:
    """Certify ``target`` from labelled calibration rows, or raise ``NotCertifiable``.

    scores, labels
        One value per calibration row; higher scores are better, label 1 means qualified. The
        score must not have been trained or chosen on these rows.
    target
        ``Expected``, ``PerPool`` or ``Recall``; with ``groups``, a mapping of group to target.
    alpha
        How often the promise may be false: at most this often, whatever the data look like.
    rule
        ``"exact"`` (default). For ``Expected`` also ``"dkw"`` (the paper's) and
        ``"simultaneous"``, under which the target may be chosen after looking; for
        ``PerPool`` also ``"pac"`` and ``"bernstein"``, where ``calibration_share`` of alpha
        is spent on the calibration rows and the rest on the pool.
    groups, purpose, group_split, group_rows
        One group name per row, or, for overlapping groups, a mapping of name to boolean mask.
        Alpha is split evenly (``"bonferroni"``) or, for disjoint groups, by ``"sidak"``.
        ``group_rows="all"`` uses all rows for every group with the size of the *whole* pool
        in each target: for group sizes that are not known. ``purpose`` says what per-group
        cutoffs are for and is recorded.
    ties, ids
        ``"include"`` shortlists everyone at the threshold; ``"hash"`` breaks ties by a secret
        salt and the candidates' ``ids``.
    weights, weight_bound, weights_exact, seed
        Density ratios of pool to calibration rows and their known bound, for a known shift:
        rows are kept with probability weight/weight_bound, once, by ``seed``.
    missing_labels
        ``"unqualified"`` keeps rows without a label as not qualified; they are never dropped.
    """
    array = check.as_scores(scores)
    qualified, missing = check.as_labels(labels, missing=missing_labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    terms = make_terms(
        target, alpha=alpha, rule=rule, groups_given=groups is not None,
        overlapping=isinstance(groups, Mapping), purpose=purpose, group_split=group_split,
        group_rows=group_rows, calibration_share=calibration_share, ties=ties,
    )  # fmt: skip
    texts = _calibration_ids(ids, ties, len(array))
    members = _members(groups, terms, len(array))
    kept, shift = _thin(weights, weight_bound, weights_exact, seed, len(array))
    evidence = {
        name: ArrayEvidence.of(array, qualified, _both(members.get(name), kept), texts, terms, kept)
        for name in terms.targets
    }
    return certify(evidence, terms, missing_labels=missing, shift=shift)


def make_terms(
    target: Targets, *, groups_given: bool, alpha: float, rule: str, overlapping: bool,
    purpose: str | None, group_split: GroupSplit, group_rows: GroupRows, calibration_share: float, ties: str,
) -> Terms:  # fmt: skip
    """Check what was asked for, before any row is looked at."""
    alpha = check.as_alpha(alpha)
    check.as_alpha(calibration_share, "calibration_share")
    check.as_choice(group_split, get_args(GroupSplit), "group_split")
    check.as_choice(group_rows, get_args(GroupRows), "group_rows")
    check.as_choice(ties, TIES, "ties")
    targets = _targets(target, groups_given)
    for each in targets.values():
        check.as_choice(rule, each.rules, f"rule (for {type(each).__name__} targets)")
        if group_rows == "all" and isinstance(each, Recall):
            raise InvalidInput('group_rows: "all" goes with Expected and PerPool targets, got Recall.')
    if group_split == "sidak" and (overlapping or group_rows == "all"):
        raise InvalidInput(
            'group_split: "sidak" needs disjoint groups with rows of their own; use "bonferroni".'
        )
    if groups_given:
        _require_purpose(purpose)
    elif purpose is not None:
        raise InvalidInput(f"purpose: goes with groups=, got {purpose!r} without.")
    return Terms(targets, alpha, rule, calibration_share, group_split, group_rows, overlapping, purpose, ties)


def certify(
    evidence: Mapping[str | None, Evidence],
    terms: Terms,
    *,
    missing_labels: int = 0,
    dropped_rows: int = 0,
    shift: Shift | None = None,
    salt: Salt | None = None,
) -> Policy:
    """Turn evidence into a policy. The only function that makes a promise.

    ``salt`` is for tests; by default it is drawn here, after the ids are fixed.
    """
    if missing_labels and any(isinstance(each, Recall) for each in terms.targets.values()):
        raise InvalidInput(
            f"missing_labels: {missing_labels:,} labels are missing, and Recall needs them all: a qualified "
            "row counted as not qualified would make the share kept look larger than it is."
        )
    required = requirements(evidence, terms)
    if terms.ties == "hash":
        salt = salt or Salt.draw()
    spent: set[int] = set()
    cutoffs = []
    for name, target in terms.targets.items():
        rows = evidence[name]
        steps = _steps(rows, required[name], salt, spent)
        cutoffs.append(Cutoff(name, target, terms.level, rows.rows, rows.qualified, steps, rows.fingerprint))
    if salt is not None:
        salt = Salt(salt.key, frozenset(spent))
    return Policy(
        cutoffs=tuple(cutoffs),
        alpha=terms.alpha,
        rule=terms.rule,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        group_split=terms.group_split if terms.grouped else None,
        group_rows=terms.group_rows if terms.grouped else None,
        overlapping=terms.overlapping,
        purpose=terms.purpose,
        missing_labels=missing_labels,
        dropped_rows=dropped_rows,
        shift=shift,
        salt_hash=salt.hash if salt else None,
        salt=salt,
    )


def requirements(
    evidence: Mapping[str | None, Evidence], terms: Terms
) -> dict[str | None, tuple[Requirement, ...]]:
    """The counts each group's evidence has to meet, or ``NotCertifiable``."""
    return {name: _required(evidence[name], name, terms) for name in terms.targets}


@dataclass(frozen=True)
class ArrayEvidence:
    """Evidence in memory: the qualified scores of one group."""

    rows: int
    scores: NDArray[np.float64]
    fingerprint: str | None
    ids: list[str] | None = None

    @property
    def qualified(self) -> int:
        return len(self.scores)

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        qualified: NDArray[np.bool_],
        member: NDArray[np.bool_] | None,
        ids: list[str] | None,
        terms: Terms,
        kept: NDArray[np.bool_] | None,
    ) -> ArrayEvidence:
        """``member`` marks the group's rows; with group_rows="all" every kept row counts."""
        chosen = qualified if member is None else qualified & member
        rows = len(scores) if member is None else int(np.count_nonzero(member))
        if terms.grouped and terms.group_rows == "all":
            rows = len(scores) if kept is None else int(np.count_nonzero(kept))
        own = scores[chosen]
        texts = [ids[row] for row in np.flatnonzero(chosen)] if ids is not None else None
        return cls(rows, own, _fingerprint(rows, chosen, own), texts)

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        places = [len(self.scores) - count for count in counts]
        ordered = np.partition(self.scores, sorted(set(places)))
        return [float(ordered[place]) for place in places]

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        assert self.ids is not None
        above = int(np.count_nonzero(self.scores > threshold))
        return above, [self.ids[row] for row in np.flatnonzero(self.scores == threshold)]


def _required(evidence: Evidence, name: str | None, terms: Terms) -> tuple[Requirement, ...]:
    target, level = terms.targets[name], terms.level
    rows, qualified = evidence.rows, evidence.qualified
    if rows == 0:
        raise InvalidInput(f"groups: group {name!r} has a target but no calibration rows.")
    required = target.requirements(rows, qualified, level)
    needed = max(each.count for each in required)
    if needed > qualified:
        largest = target.largest(rows, qualified, level)
        recall = isinstance(target, Recall)
        raise NotCertifiable(
            Shortfall(
                target=f"{target.describe()} (alpha={level.alpha:g}, rule={level.rule!r})",
                rows=rows,
                qualified_available=qualified,
                critical_count=needed,
                largest_k=None if recall else largest,
                largest_share=largest if recall else None,
                rows_needed=estimate_rows(target, rows, qualified, level),
                group=name,
                simultaneous_rule="simultaneous" in target.rules,
            )
        )
    return required


def _steps(
    evidence: Evidence, required: tuple[Requirement, ...], salt: Salt | None, spent: set[int]
) -> tuple[Step, ...]:
    thresholds = evidence.nth_largest([each.count for each in required])
    steps = []
    for each, threshold in zip(required, thresholds, strict=True):
        number = None
        if salt is not None:
            above, ids = evidence.tied(threshold)
            numbers = sorted(salt.numbers(ids), reverse=True)
            number = numbers[each.count - above - 1]
            spent.update(numbers)
        steps.append(Step(each.pool_size, each.count, threshold, number))
    return tuple(steps)


def _targets(target: Targets, groups_given: bool) -> dict[str | None, Target]:
    if isinstance(target, Mapping):
        if not groups_given:
            raise InvalidInput("groups: a mapping of targets needs groups=, one name per row.")
        targets: dict[str | None, Target] = {}
        for key, each in target.items():
            name = check.group_name(key, "target")
            if name in targets:
                raise InvalidInput(f"target: group {name!r} appears twice.")
            targets[name] = _one_target(each, f"target[{key!r}]")
        if not targets:
            raise InvalidInput("target: expected at least one group, got an empty mapping.")
        if len({type(each) for each in targets.values()}) > 1:
            raise InvalidInput("target: expected the same kind of target for every group.")
        return targets
    if groups_given:
        raise InvalidInput("target: with groups=, give a mapping of group to target.")
    return {None: _one_target(target, "target")}


def _one_target(target: Any, name: str) -> Target:
    if not isinstance(target, (Expected, PerPool, Recall)):
        raise InvalidInput(f"{name}: expected Expected, PerPool or Recall, got {target!r}.")
    return target


def _require_purpose(purpose: str | None) -> None:
    if purpose is None:
        warnings.warn(GROUP_WARNING, GroupCutoffWarning, stacklevel=4)
    elif not isinstance(purpose, str) or not purpose.strip():
        raise InvalidInput(f"purpose: expected a sentence on what the cutoffs are for, got {purpose!r}.")
    else:
        check.as_text(purpose, "purpose")


def _members(groups: Any, terms: Terms, rows: int) -> dict[str | None, NDArray[np.bool_]]:
    """Row mask per group that has a target; every row's group must have one."""
    if not terms.grouped:
        return {}
    known = [str(name) for name in terms.targets]
    masks = pool_members(groups, known, rows, overlapping=terms.overlapping)
    return dict(masks.items())


def _both(a: NDArray[np.bool_] | None, b: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _calibration_ids(ids: Any, ties: str, rows: int) -> list[str] | None:
    if ties != "hash":
        if ids is not None:
            raise InvalidInput('ids: only ties="hash" uses candidate ids; leave ids out.')
        return None
    if ids is None:
        raise InvalidInput('ids: ties="hash" breaks ties by candidate id; pass ids=.')
    return check.as_ids(ids, rows)


def _thin(
    weights: Any, bound: float | None, exact: bool, seed: int, rows: int
) -> tuple[NDArray[np.bool_] | None, Shift | None]:
    """Rejection sampling [theory: shift]: the kept rows are i.i.d. from the pool's population."""
    if (weights is None) != (bound is None):
        raise InvalidInput("weights: weights= and weight_bound= go together; give both or neither.")
    if weights is None or bound is None:
        return None, None
    bound = check.as_positive(bound, "weight_bound")
    ratio = check.as_weights(weights, rows, bound) / bound
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput(f"seed: expected a whole number of at least 0, got {seed!r}.")
    # a stream of our own: the same seed elsewhere must not be the same numbers as here
    kept = np.random.default_rng([int(seed), _THINNING]).random(rows) < ratio
    if not kept.any():
        raise InvalidInput("weights: no calibration row was kept; weight_bound is far too large.")
    return kept, Shift(bound, rows, int(seed), check.as_flag(exact, "weights_exact"))


def _fingerprint(rows: int, qualified: NDArray[np.bool_], scores: NDArray[np.float64]) -> str:
    """SHA-256 of what the policy depends on: which rows are qualified, and their scores."""
    digest = hashlib.sha256(rows.to_bytes(8, "little"))
    digest.update(np.packbits(qualified).tobytes())
    digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return digest.hexdigest()
