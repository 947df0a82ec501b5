"""Columns in memory and a target in; a ``Policy`` or ``NotCertifiable`` out. Here promises are made.

``calibrate`` is the interface for arrays, ``certify`` what tables come to with counts of their own. Which
rule serves is decided by the promise itself, in ``kinds``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist import _check as check
from surelist._arrays import Column, Mask
from surelist._check import MissingLabels
from surelist._version import __version__
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.filters import Salt, pool_members
from surelist.promises.conditions import Conditions, Groups, Hash, refuse_earlier
from surelist.promises.cutoffs import best_of, common_cutoffs, cutoff_of, lowered
from surelist.promises.evidence import Evidence, RowColumns
from surelist.promises.options import Rule
from surelist.promises.phrases import counted
from surelist.promises.policy import Policy
from surelist.promises.pool_checks import pool_effect, warn_of_pools
from surelist.promises.promise import Promise
from surelist.promises.proved import require_proof, require_use
from surelist.promises.sampled import NoisyLabels, SampledLabels, require_chance, require_drawn, thin
from surelist.promises.shift import DensityRatio, keep_rows, ratios_of, with_margin
from surelist.promises.state import Certified, Cutoff, Everyone, Shift, Thinning
from surelist.promises.terms import Targets, Terms, fitting_advice, make_terms
from surelist.promises.wording import warn_of_doubts


def calibrate(
    scores: Any, labels: Any, target: Targets, *, alpha: float = 0.1, rule: Rule = "exact",
    calibration_share: float = 0.5, groups: Groups | None = None, ties: Literal["include"] | Hash = "include",
    shift: DensityRatio | None = None, pools: Any = None, unlabelled: Any = None,
    missing_labels: MissingLabels = "error", **earlier: Any,
) -> Policy:  # fmt: skip
    """Certify ``target`` from labelled calibration rows, or raise ``NotCertifiable``.

    Parameters
    ----------
    scores : array_like or mapping of str to array_like
        One score per calibration row, higher is better. The score must not have been trained or chosen on
        these rows. A mapping of name to scores certifies each at its share of alpha and keeps the one with
        the shortest list, for ``Precision`` the longest.
    labels : array_like, SampledLabels or NoisyLabels
        1 where a row is qualified, else 0. Labels that were drawn with known probability are
        ``SampledLabels``, labels that may be wrong ``NoisyLabels``.
    target : Promise, list of Promise, or mapping of str to Promise
        What is promised, such as ``Expected(5, 100)``: any kind that has a proof from calibration rows
        (``surelist promises`` lists them); with ``groups`` a mapping of group to target; a list promises
        all of them of one list.
    alpha : float
        How often the promise may be false: at most this often, whatever the data look like.
    rule : {"exact", "dkw", "simultaneous", "pac", "bernstein"}
        For ``Expected`` also ``"dkw"`` (the paper's) and ``"simultaneous"``, under which the target may be
        chosen after looking; for ``PerPool`` also ``"pac"`` and ``"bernstein"``, where ``calibration_share``
        of alpha is spent on the calibration rows and the rest on the pool; for ``NextPool`` also ``"pac"``.
    calibration_share : float
        See ``rule``.
    groups : Groups, optional
        Who is in which group, and what cutoffs that differ are for.
    ties : "include" or Hash
        ``"include"`` shortlists everyone at the threshold; ``Hash(ids)`` breaks ties by a secret salt.
    shift : DensityRatio, optional
        For pools that differ from the calibration rows in a known way.
    pools : array_like, optional
        One pool id per row. For ``NextPool`` and ``PoolAverage`` whole pools are the units; for others rows
        are, and a warning says so where candidates of one pool resemble one another.
    unlabelled : array_like or mapping of str to array_like, optional
        Scores of other candidates from the same population (with ``shift``, that of the pools): needed by
        ``Precision`` and ``Budget``, and a shorter list for ``Expected``. For ``FalseShare`` the scores of
        the pool to select from.
    missing_labels : {"error", "unqualified"}
        ``"unqualified"`` keeps rows without a label as not qualified; they are never dropped.

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
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> policy = sl.calibrate(scores, labels, sl.Expected(5, 100), alpha=0.1)
    >>> round(policy.threshold, 3)
    0.535
    >>> policy.select([0.2, 0.6, 0.9]).tolist()
    [False, True, True]
    """
    refuse_earlier(earlier, "calibrate")
    terms = make_terms(
        target, groups=groups, ties=ties, alpha=alpha, rule=rule, calibration_share=calibration_share,
        missing_labels=missing_labels,
    )  # fmt: skip
    names, ids, known = groups and groups.names, getattr(ties, "ids", None), getattr(labels, "labels", labels)
    check.require_one_index(
        scores=scores, labels=known, probability=getattr(labels, "probability", None), groups=names, ids=ids,
        ratios=ratios_of(shift), pools=pools,
    )  # fmt: skip
    given = Arrays(scores, labels, names, ids, shift, pools, unlabelled)
    with fitting_advice(terms):
        policy = certify_arrays(given, terms)
    warn_of_doubts(policy, stacklevel=2)
    return policy


class Arrays(Struct, frozen=True, eq=False):
    """Calibration rows in memory, as they were given."""

    scores: Any
    labels: Any
    groups: Any = None
    ids: Any = None
    shift: DensityRatio | None = None
    pools: Any = None
    unlabelled: Any = None
    bad_rows: str = "none"  # what was done with rows that have no score
    alike: bool = True  # whether unlabelled scores are surely as those of the rows that a shift keeps

    def conditions(self, terms: Terms) -> Conditions:
        """What a promise from these rows rests on."""
        labels = "missing" if terms.missing_labels == "unqualified" else "complete"
        if isinstance(self.labels, SampledLabels):
            labels = "thinned" if self.labels.above is None else "two rates"
        elif isinstance(self.labels, NoisyLabels):
            labels = "noisy"
        within = self.shift is not None and self.shift.factor is not None
        several = isinstance(self.scores, Mapping) and len(self.scores) > 1
        beside = self.pools is not None and not any(each.whole_pools for each in terms.all_targets)
        return terms.conditions(
            labels=labels, shift="none" if self.shift is None else "within" if within else "known",
            others="none" if self.unlabelled is None else "given", scores="several" if several else "one",
            pools="beside" if beside else "none", bad_rows=self.bad_rows,
        )  # fmt: skip


class Facts(Struct, frozen=True):
    """What was done to the rows before they were counted."""

    missing_labels: int = 0
    dropped_rows: int = 0
    shift: Shift | None = None
    thinning: Thinning | None = None


def certify_arrays(given: Arrays, terms: Terms) -> Policy:
    """Certify ``terms`` from columns in memory, if that has a proof."""
    require_proofs(given, terms)
    return _certify_arrays(given, terms)


def require_proofs(given: Arrays, terms: Terms) -> None:
    """Raise where something that was asked for has no proof; of ``given`` only what is there counts."""
    asked = given.conditions(terms)
    require_use(terms.all_targets, asked)
    for promise in terms.all_targets:
        require_proof(promise, asked)


def _certify_arrays(given: Arrays, terms: Terms) -> Policy:
    if given.shift is not None and given.shift.factor is not None:
        exactly = replace(given, shift=replace(given.shift, within=None), alike=False)
        return with_margin(terms, given.shift.factor, lambda wider: _certify_arrays(exactly, wider))
    if isinstance(given.scores, Mapping):

        def certify_one(column: Any, asked: Terms, others: Any) -> Policy:
            return _certify_arrays(replace(given, scores=column, unlabelled=others), asked)

        return best_of(given.scores, given.unlabelled, terms, certify_one)
    scores = check.as_numbers(given.scores)
    check.require_rows(scores, "scores")
    columns, facts, kept = _read(given, scores, terms)
    evidence, before = {}, {}
    for name, mask in members_of(given.groups, terms, len(scores)).items():
        good = columns.good if mask is None else columns.good & mask
        before[name] = (len(scores) if mask is None else int(mask.sum())), int(np.count_nonzero(good))
        evidence[name] = _evidence(given, columns, mask, kept, terms, name)
    if terms.common:
        evidence[None] = _evidence(given, columns, None, kept, terms, None)
    policy = certify(evidence, terms, facts, before)
    if given.pools is not None and not (policy.of_pools or policy.grouped):
        _warn_of_pools(columns, policy)
    return policy


def _read(given: Arrays, numbers: Column, terms: Terms) -> tuple[RowColumns, Facts, Mask | None]:
    """The rows, what was done to them, and which of them are kept (None: all)."""
    kept: Mask | None = None
    thinning, shift, labels = None, None, given.labels
    if isinstance(labels, SampledLabels):
        read: Any
        scores = numbers.astype(np.float64, copy=False)
        if labels.above is None:
            kept, read, thinning, missing = thin(scores, labels, terms)
        else:
            drawn, read = labels.read(len(scores))
            certain = scores >= float(labels.above)
            missing = require_drawn(~drawn & certain, terms.missing_labels)
            require_chance(drawn, np.where(certain, 1.0, float(labels.probability)))
    elif isinstance(labels, NoisyLabels):
        read, missing = check.as_labels(labels.labels)
    else:
        amounts = any(each.amounts for each in terms.all_targets)
        reads = check.as_values if amounts else check.as_labels
        read, missing = reads(labels, missing=terms.missing_labels)
    check.require_length(read, len(numbers), "labels")
    if given.shift is not None:
        kept, shift = keep_rows(given.shift, len(numbers))
    ids = None if given.ids is None else check.as_ids(given.ids, len(numbers))
    return RowColumns(numbers, read, given.pools, ids), Facts(missing, 0, shift, thinning), kept


def _evidence(
    given: Arrays, columns: RowColumns, mask: Mask | None, kept: Mask | None, terms: Terms, name: str | None
) -> Evidence:
    if terms.grouped and terms.group_rows == "all":
        columns = replace(columns, among=columns.rows if kept is None else int(np.count_nonzero(kept)))
    whole = terms.common and terms.all_targets[0].whole_pools  # a pool without members of a group is one too
    mine = mask if kept is None else kept if mask is None else mask & kept
    part = columns.only(mask) if whole else columns.part(mine)
    others = None
    if given.unlabelled is not None:
        others = check.as_numbers(given.unlabelled, "unlabelled")
        check.require_rows(others, "unlabelled")
    counts = columns if whole else part
    return Evidence(counts, name, part, others=others, alike=given.alike, labels_given=given.labels)


def members_of(groups: object, terms: Terms, rows: int) -> dict[str | None, Mask | None]:
    """Row mask per group that has a target; every row's group must have one."""
    if not terms.grouped:
        return {None: None}
    known = [str(name) for name in terms.targets]
    members = pool_members(groups, known, rows, overlapping=terms.overlapping, everyone=terms.common)
    return dict(members.items())


def _warn_of_pools(columns: RowColumns, policy: Policy) -> None:
    codes, pools = check.as_codes(columns.pools, len(columns.scores))
    listed = columns.good & (columns.scores >= policy.cutoffs[0].steps[0].threshold)
    sizes, totals = (np.bincount(each, minlength=pools) for each in (codes, codes[listed]))
    warn_of_pools(pool_effect(sizes, totals, policy.alpha), policy.alpha, policy.cutoffs[0].target)


def certify(
    evidence: Mapping[str | None, Evidence], terms: Terms, facts: Facts,
    before: Mapping[str | None, tuple[int, int]] | None = None,
) -> Policy:  # fmt: skip
    """Turn evidence into a policy: the only function that makes a promise from rows.

    ``before``: rows and qualified rows of each group before some were thinned out.
    """
    before = before or {name: (evidence[name].rows, evidence[name].qualified) for name in terms.targets}
    _require_labels(terms, facts.missing_labels)
    terms.refuse_estimated(before)
    salt, spent = (Salt.draw() if terms.hashed else None), set[int]()  # after the ids are fixed
    found: dict[tuple[str | None, Promise], tuple[Evidence, Certified]] = {}
    short: list[Shortfall] = []
    lowest = math.inf
    beside = tuple((each, evidence[name]) for name, each in terms.targets.items()) if terms.common else ()
    first = evidence[next(iter(terms.targets))]
    levels = terms.levels(first.rows, joint=first.others is None)
    # of several promises of one list those first that any longer list keeps as well [theory: two-promises]
    for name, promise in sorted(terms.asked, key=lambda each: not each[1].monotone):
        rows = replace(evidence[name], salt=salt, spent=spent, beside=beside)
        try:
            certified = promise.certify(rows, levels[promise], lowest)
        except NotCertifiable as refusal:
            short.append(_counted_before(refusal, facts, terms, before).shortfall)
            if not terms.grouped:
                break
            continue
        if terms.also:
            lowest = min(lowest, certified.steps[0].threshold)
        found[name, promise] = rows, certified
    if short:
        raise NotCertifiable(replace(short[0], others=tuple(short[1:])))
    salt = None if salt is None else Salt(salt.key, frozenset(spent))
    if terms.common:
        cutoffs, everyone = common_cutoffs(found, evidence[None], terms)
        return _policy(cutoffs, terms, facts, salt, everyone)
    cutoffs = [cutoff_of(*found[each], each[1], levels[each[1]]) for each in terms.asked]
    if terms.also:
        cutoffs = [lowered(each, lowest) for each in cutoffs]
    return _policy(cutoffs, terms, facts, salt)


def _require_labels(terms: Terms, missing: int) -> None:
    needing = [each for each in terms.all_targets if each.every_label]
    if missing and needing:
        needs = f"missing: {counted(missing, 'label')}, and {type(needing[0]).__name__} needs them all"
        fewer = "a qualified row counted as not qualified would make fewer look missed or rejected than are"
        raise InvalidInput("missing_labels", f"{needs}: {fewer}; get the labels, or promise a count.")


def _counted_before(
    refusal: NotCertifiable, facts: Facts, terms: Terms, before: Mapping[str | None, tuple[int, int]]
) -> NotCertifiable:
    """Where rows were thinned, a refusal counts the rows to gather before the thinning."""
    thinned = facts.shift or facts.thinning
    if thinned is None or refusal.shortfall.rows_before is not None:
        return refusal
    own = terms.group_rows == "own" and refusal.group in before
    rows = before[refusal.group][0] if own else thinned.rows_before
    return NotCertifiable(refusal.shortfall.thinned_from(rows))


def _policy(
    cutoffs: list[Cutoff], terms: Terms, facts: Facts, salt: Salt | None, everyone: Everyone | None = None
) -> Policy:
    return Policy(
        cutoffs=tuple(cutoffs), alpha=terms.alpha, rule=terms.rule,
        created=datetime.now(UTC).isoformat(timespec="seconds"), version=__version__,
        group_split=terms.group_split if terms.grouped else None,
        group_rows=terms.group_rows if terms.grouped else None, group_keys=terms.group_keys,
        overlapping=terms.overlapping, group_cutoff="common" if terms.common else None, everyone=everyone,
        purpose=terms.purpose, salt_hash=salt.hash if salt else None, salt=salt, **asdict(facts),
    )  # fmt: skip
