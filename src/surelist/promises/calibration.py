"""Scores, labels and a target in; a ``Policy`` or ``NotCertifiable`` out.

``certify`` is the one place where a promise is made. It asks each group's evidence for three
things only: how many rows, how many of them qualified, and a few order statistics of the
qualified scores. ``calibrate`` supplies them from arrays, ``tables`` from any engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._check import MissingLabels
from surelist._version import __version__
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.filters import pool_members
from surelist.promises.evidence import ArrayEvidence, Evidence
from surelist.promises.options import GroupRows, GroupSplit, Rule, Ties
from surelist.promises.policy import Policy
from surelist.promises.state import Cutoff, Shift, Step
from surelist.promises.targets import Recall, Requirement, estimate_rows
from surelist.promises.terms import Targets, Terms, make_terms
from surelist.ties import Salt

_THINNING = 0x5EED5EED


def calibrate(
    scores: Any,
    labels: Any,
    target: Targets,
    *,
    alpha: float = 0.1,
    rule: Rule = "exact",
    groups: Any = None,
    purpose: str | None = None,
    group_split: GroupSplit = "bonferroni",
    group_rows: GroupRows = "own",
    calibration_share: float = 0.5,
    ties: Ties = "include",
    ids: Any = None,
    weights: Any = None,
    weight_bound: float | None = None,
    weights_exact: bool = False,
    seed: int = 0,
    missing_labels: MissingLabels = "error",
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
    terms = make_terms(
        target, groups_given=groups is not None, overlapping=isinstance(groups, Mapping), alpha=alpha,
        rule=rule, purpose=purpose, group_split=group_split, group_rows=group_rows,
        calibration_share=calibration_share, ties=ties, missing_labels=missing_labels,
    )  # fmt: skip
    return certify_arrays(
        scores, labels, terms, groups=groups, ids=ids, weights=weights, weight_bound=weight_bound,
        weights_exact=weights_exact, seed=seed,
    )  # fmt: skip


def certify_arrays(
    scores: Any, labels: Any, terms: Terms, *, groups: Any = None, ids: Any = None, weights: Any = None,
    weight_bound: float | None = None, weights_exact: bool = False, seed: int = 0,
) -> Policy:  # fmt: skip
    """Certify ``terms`` from columns in memory."""
    array = check.as_scores(scores)
    qualified, missing = check.as_labels(labels, missing=terms.missing_labels)
    check.require_rows(array, "scores")
    check.require_length(qualified, len(array), "labels")
    texts = _calibration_ids(ids, terms.ties, len(array))
    members = _members(groups, terms, len(array))
    kept, shift = _thin(weights, weight_bound, weights_exact, seed, len(array))
    evidence = {
        name: ArrayEvidence.of(array, qualified, _both(members.get(name), kept), texts, terms, kept)
        for name in terms.targets
    }
    return certify(evidence, terms, missing_labels=missing, shift=shift)


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
