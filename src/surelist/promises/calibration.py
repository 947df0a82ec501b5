"""Columns in memory and a target in; a ``Policy`` or ``NotCertifiable`` out.

``calibrate`` is the door for arrays. It turns them into evidence; ``certification`` makes the promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._check import MissingLabels
from surelist.errors import InvalidInput, NotCertifiable
from surelist.filters import pool_members
from surelist.promises.best_of import best_of
from surelist.promises.certification import (
    certify,
    cutoff_of,
    fitting_advice,
    make_policy,
    refuse_estimated,
    require_labels,
    required_of,
    steps_of,
)
from surelist.promises.combinations import require_proof
from surelist.promises.direction import warn_of_doubts
from surelist.promises.evidence import ArrayEvidence
from surelist.promises.options import GroupRows, GroupSplit, Rule, Ties
from surelist.promises.policy import Policy
from surelist.promises.pool_effects import pool_effect, warn_of_pools
from surelist.promises.pools import PoolRows
from surelist.promises.sampled import SampledLabels
from surelist.promises.shift import DensityRatio, keep_rows, with_margin
from surelist.promises.special import RowSet, is_special, pools_cutoff, read_labels, special_cutoff, together
from surelist.promises.state import Cutoff
from surelist.promises.targets import (
    AnyTarget,
    Budget,
    Expected,
    Precision,
)
from surelist.promises.terms import Targets, Terms, make_terms
from surelist.score_summary import RowSummary


def calibrate(
    scores: Any, labels: Any, target: Targets, *, alpha: float = 0.1, rule: Rule = "exact",
    groups: Any = None, purpose: str | None = None, group_split: GroupSplit = "bonferroni",
    group_rows: GroupRows = "own", calibration_share: float = 0.5, ties: Ties = "include",
    ids: Any = None, weights: Any = None, weight_bound: float | None = None, weights_exact: bool = False,
    seed: int | None = None, missing_labels: MissingLabels = "error", pools: Any = None,
    unlabelled: Any = None,
) -> Policy:  # fmt: skip
    """Certify ``target`` from labelled calibration rows, or raise ``NotCertifiable``.

    Parameters
    ----------
    scores, labels
        One value per calibration row; higher scores are better, label 1 means qualified. The
        score must not have been trained or chosen on these rows. A mapping of name to scores certifies
        each at its share of alpha and keeps the one with the shortest list. Labels that were drawn with
        known probability are ``SampledLabels``.
    target
        ``Expected``, ``PerPool``, ``Recall``, ``Precision`` or ``Budget``; with ``groups``, a mapping of
        group to target; a list of targets promises all of them of one list.
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
        rows are kept with probability weight/weight_bound, once. The promise is over the rows and
        this thinning, so its seed is drawn from the system's randomness and recorded; a ``seed``
        given here is for repeating a calibration, and the conditions then say what it rests on.
    missing_labels
        ``"unqualified"`` keeps rows without a label as not qualified; they are never dropped.
    pools
        One pool id per row. For targets without a pool size whole pools are the units; for others rows
        are, and a warning says so where candidates of one pool resemble one another.
    unlabelled
        Scores of other candidates from the same population (with ``weights``, that of the pools): needed
        by ``Precision`` and ``Budget``, and a shorter list for ``Expected``. With ``rule="fdr"``, the scores
        of the pool to select from.

    Returns
    -------
    Policy
        What is promised, on which evidence, and whom it shortlists.

    Raises
    ------
    NotCertifiable
        The rows cannot carry the target; says what is missing and how many rows would do.
    InvalidInput
        Something does not fit; says what, and where.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100), alpha=0.1)
    >>> round(policy.threshold, 3)
    0.535
    >>> policy.select([0.2, 0.6, 0.9]).tolist()
    [False, True, True]
    """
    terms = make_terms(
        target, groups_given=groups is not None, overlapping=isinstance(groups, Mapping), alpha=alpha,
        rule=rule, purpose=purpose, group_split=group_split, group_rows=group_rows,
        calibration_share=calibration_share, ties=ties, missing_labels=missing_labels,
    )  # fmt: skip
    drawn = vars(labels) if isinstance(labels, SampledLabels) else {"labels": labels}
    check.require_one_index(
        scores=scores, labels=drawn["labels"], probability=drawn.get("probability"), groups=groups, ids=ids,
        weights=getattr(weights, "ratios", weights), pools=pools,
    )  # fmt: skip
    with fitting_advice(terms):
        policy = certify_arrays(
            scores, labels, terms, groups=groups, ids=ids, weights=weights, weight_bound=weight_bound,
            weights_exact=weights_exact, seed=seed, pools=pools, unlabelled=unlabelled,
        )  # fmt: skip
    warn_of_doubts(policy, stacklevel=2)
    return policy


def certify_arrays(
    scores: Any, labels: Any, terms: Terms, *, groups: Any = None, ids: Any = None, weights: Any = None,
    weight_bound: float | None = None, weights_exact: bool = False, seed: int | None = None,
    pools: Any = None, unlabelled: Any = None, alike: bool = True,
) -> Policy:  # fmt: skip
    """Certify ``terms`` from columns in memory; ``alike``: unlabelled scores are as those of rows kept."""
    factor = weights.factor if isinstance(weights, DensityRatio) else None
    require_proof(scores, labels, terms, factor, unlabelled)
    if isinstance(weights, DensityRatio):
        weights, weight_bound, weights_exact = weights.unpack(weight_bound, weights_exact)
        if factor is not None:
            return with_margin(
                terms, factor,
                lambda wider: certify_arrays(
                    scores, labels, wider, groups=groups, ids=ids, weights=weights, weight_bound=weight_bound,
                    weights_exact=weights_exact, seed=seed, pools=pools, unlabelled=unlabelled, alike=False,
                ),
            )  # fmt: skip
    if isinstance(scores, Mapping):
        return best_of(
            scores, unlabelled, terms,
            lambda column, asked, others: certify_arrays(
                column, labels, asked, groups=groups, ids=ids, weights=weights, weight_bound=weight_bound,
                weights_exact=weights_exact, seed=seed, pools=pools, unlabelled=others, alike=alike,
            ),
        )  # fmt: skip
    array = check.as_scores(scores)
    check.require_rows(array, "scores")
    read = read_labels(labels, array, terms)
    check.require_length(read.labels, len(array), "labels")
    if read.sampled and (weights is not None or pools is not None):
        raise InvalidInput("labels: labels that were drawn go without weights= and pools=; leave them out.")
    rows = RowSet(array, read.labels, pools, unlabelled, alike)
    _require_use(unlabelled, terms)
    special = bool(terms.also) or any(is_special(each, rows) for each in terms.all_targets)
    if special and weights is not None and pools is not None:
        raise InvalidInput("pools: whole pools cannot be thinned row by row; leave weights and rates out.")
    kept, shift = keep_rows(weights, weight_bound, weights_exact, seed, len(array))
    kept = read.kept if kept is None else kept
    facts: dict[str, Any] = {"missing_labels": read.missing, "shift": shift, "thinning": read.thinning}
    if special:
        _require_plain(terms, ids)
        try:
            policy = _certify_rows(rows if kept is None else rows.kept(kept), terms, facts)
        except NotCertifiable as refusal:
            raise _before_thinning(refusal, facts, None) from None
    else:
        texts = _calibration_ids(ids, terms.ties, len(array))
        members = _members(groups, terms, len(array))
        refuse_estimated(
            {name: _counted(array, read.labels, members.get(name)) for name in terms.targets}, terms
        )
        evidence = {
            name: ArrayEvidence.of(array, read.labels, _both(members.get(name), kept), texts, terms, kept)
            for name in terms.targets
        }
        policy = _certify_counts(evidence, terms, members, facts)
    if pools is not None and not policy.of_pools:
        _warn_of_pools(rows, policy)
    return policy


def _certify_counts(
    evidence: dict[str | None, ArrayEvidence], terms: Terms, members: dict[str | None, NDArray[np.bool_]],
    facts: dict[str, Any],
) -> Policy:  # fmt: skip
    try:
        return certify(evidence, terms, **facts)
    except NotCertifiable as refusal:
        mask = members.get(refusal.group) if terms.group_rows == "own" else None
        raise _before_thinning(refusal, facts, mask) from None


def _before_thinning(
    refusal: NotCertifiable, facts: dict[str, Any], member: NDArray[np.bool_] | None
) -> NotCertifiable:
    """Where rows were thinned, a refusal counts the rows to gather before the thinning."""
    thinned = facts["shift"] or facts["thinning"]
    if thinned is None or refusal.shortfall.rows_before is not None:
        return refusal
    before = thinned.rows_before if member is None else int(np.count_nonzero(member))
    return NotCertifiable(refusal.shortfall.thinned_from(before))


def _certify_rows(rows: RowSet, terms: Terms, facts: dict[str, Any]) -> Policy:
    """One or several promises of one list, at least one of them by a rule of its own."""
    require_labels(terms, facts["missing_labels"])
    cutoffs: dict[AnyTarget, Cutoff] = {}
    most = math.inf
    for target in sorted(terms.all_targets, key=lambda each: isinstance(each, Precision)):
        cutoff = special_cutoff(rows, target, terms.level, most) if is_special(target, rows) else None
        if cutoff is None:
            evidence = ArrayEvidence.of(rows.scores, rows.labels, None, None, terms, None)
            steps = steps_of(evidence, required_of(evidence, None, target, terms.level), None, set())
            cutoff = cutoff_of(evidence, None, target, terms, steps)
        cutoffs[target] = cutoff
        most = min(most, cutoff.steps[0].threshold)
    return make_policy(together([cutoffs[each] for each in terms.all_targets]), terms, **facts)


def _warn_of_pools(rows: RowSet, policy: Policy) -> None:
    if policy.grouped or isinstance(rows.labels, SampledLabels):
        return
    codes, pools = check.as_codes(rows.pools, len(rows.scores))
    listed = (rows.labels > 0) & (rows.scores >= policy.cutoffs[0].steps[0].threshold)  # or an amount
    sizes, totals = (np.bincount(each, minlength=pools) for each in (codes, codes[listed]))
    warn_of_pools(pool_effect(sizes, totals, policy.alpha), policy.alpha, policy.cutoffs[0].target)


def certify_pools(rows: PoolRows, terms: Terms, kept: RowSummary | None, **facts: Any) -> Policy:
    """Certify the one target of ``terms`` from whole pools."""
    _require_plain(terms, None)
    require_labels(terms, facts.get("missing_labels", 0))
    cutoff = pools_cutoff(rows, terms.all_targets[0], terms.level, kept)
    return make_policy([cutoff], terms, **facts)


def _require_plain(terms: Terms, ids: Any) -> None:
    if terms.grouped:
        raise InvalidInput(
            "groups: this promise is certified for one group at a time: calibrate each group on its own "
            "rows, with alpha divided by the number of groups."
        )
    if terms.ties != "include" or ids is not None:
        raise InvalidInput("ties: this promise includes everyone at the threshold; leave ties and ids out.")


def _require_use(unlabelled: Any, terms: Terms) -> None:
    """Other scores are not passed over in silence."""
    kinds = [type(each) for each in terms.all_targets]
    if unlabelled is not None and not {Expected, Precision, Budget}.intersection(kinds):
        raise InvalidInput(f"unlabelled: does not help a {kinds[0].__name__} promise; leave it out.")


def _members(groups: Any, terms: Terms, rows: int) -> dict[str | None, NDArray[np.bool_]]:
    """Row mask per group that has a target; every row's group must have one."""
    if not terms.grouped:
        return {}
    known = [str(name) for name in terms.targets]
    masks = pool_members(groups, known, rows, overlapping=terms.overlapping)
    return dict(masks.items())


def _counted(scores: Any, qualified: Any, member: NDArray[np.bool_] | None) -> tuple[int, int]:
    """Rows and qualified rows of a group, before any thinning."""
    if member is None:
        return len(scores), int(np.count_nonzero(qualified))
    return int(np.count_nonzero(member)), int(np.count_nonzero(qualified & member))


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
