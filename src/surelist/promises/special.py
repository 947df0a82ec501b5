"""Promises that need more than a count of qualified rows: arrays to one certified cutoff.

Each rule lives in a module of its own; here it is decided which one a target asks for, and what a
request lacks. Nothing is ever inferred from the rows it is tested on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass, replace
from surelist.errors import InvalidInput
from surelist.promises.averages import certify_average
from surelist.promises.chain import certify_chain, chain_helps
from surelist.promises.evidence import ArrayEvidence
from surelist.promises.other_scores import require_others
from surelist.promises.pools import PoolRows, certify_next_pool
from surelist.promises.proofs import Certified
from surelist.promises.reference import certify_budget, certify_false_share, certify_precision
from surelist.promises.sampled import SampledLabels, certify_audited, require_drawn, thin
from surelist.promises.state import Cutoff, Step, Thinning
from surelist.promises.targets import AnyTarget, Budget, Expected, Level, PerPool, Precision
from surelist.promises.terms import Terms
from surelist.score_summary import FINGERPRINT, RowSummary

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Read:
    """Labels as they were read: flags, amounts, or ``SampledLabels`` of two rates."""

    labels: Any
    missing: int = 0
    kept: NDArray[np.bool_] | None = None  # by thinning
    thinning: Thinning | None = None

    @property
    def sampled(self) -> bool:
        return self.thinning is not None or isinstance(self.labels, SampledLabels)


def read_labels(labels: Any, scores: Floats, terms: Terms) -> Read:
    """Labels for the targets asked for; rows are thinned where labels were drawn at many rates."""
    if isinstance(labels, SampledLabels):
        if labels.above is None:
            kept, good, thinning, missing = thin(scores, labels, terms)
            return Read(good, missing, kept, thinning)
        drawn, _ = labels.read(len(scores))
        return Read(labels, require_drawn(~drawn & (scores >= float(labels.above)), terms.missing_labels))
    read = check.as_values if any(has_values(each) for each in terms.all_targets) else check.as_labels
    return Read(*read(labels, missing=terms.missing_labels))


@dataclass(frozen=True)
class RowSet:
    """Calibration rows and what came with them. ``labels`` are qualified flags, or values, or sampled."""

    scores: Floats
    labels: Any
    pools: Any = None
    unlabelled: Any = None
    alike: bool = True  # whether unlabelled scores come from the population of these rows

    def kept(self, mask: NDArray[np.bool_]) -> RowSet:
        """Only some of the rows; unlabelled scores are others' and stay."""
        return replace(self, scores=self.scores[mask], labels=self.labels[mask])


def of_whole_pools(target: AnyTarget) -> bool:
    """Whether pools, not rows, are the units of a target."""
    return isinstance(target, (Expected, PerPool)) and target.pool_size is None


def has_values(target: AnyTarget) -> bool:
    """Whether labels are amounts instead of 0 and 1."""
    return isinstance(target, Expected) and target.of == "value"


def needs_columns(target: AnyTarget) -> bool:
    """Whether a target needs every row, not only counts or qualified rows."""
    return isinstance(target, (Precision, Budget)) or has_values(target)


def is_special(target: AnyTarget, rows: RowSet) -> bool:
    """Whether a target, or how its labels came about, needs more than counts."""
    if isinstance(target, (Precision, Budget)) or of_whole_pools(target) or has_values(target):
        return True
    if isinstance(rows.labels, SampledLabels):
        return True
    other_scores = rows.unlabelled is not None and isinstance(target, Expected) and rows.alike
    return other_scores and chain_helps(len(rows.scores), len(rows.unlabelled))


def special_cutoff(rows: RowSet, target: AnyTarget, level: Level, most: float = math.inf) -> Cutoff | None:
    """The cutoff that the rule of this target certifies; None where a count says better why not.

    ``most`` is the highest threshold that another promise allows.
    """
    certified = _certify(rows, target, level, most)
    if certified is None:
        return None
    return _cutoff(certified, target, level, _summary(rows), _listed_share(rows, certified))


def pools_cutoff(rows: PoolRows, target: AnyTarget, level: Level, kept: RowSummary | None) -> Cutoff:
    """The cutoff of a target whose units are whole pools."""
    _require_pool_rule(target, level)
    if isinstance(target, Expected):
        return _cutoff(certify_average(rows, target, level), target, level, kept)
    assert isinstance(target, PerPool)
    return _cutoff(certify_next_pool(rows, target, level), target, level, kept)


def _listed_share(rows: RowSet, certified: Certified) -> float | None:
    """How much of the rows the threshold lists, where future pools are like them and rows are the units."""
    if rows.pools is not None or certified.proof.kind == "false-share":
        return None
    if certified.proof.kind == "budget":  # as often as a new score lies there, by those that decided it
        others = check.as_scores(rows.unlabelled, "unlabelled")
        return float((np.count_nonzero(others >= certified.threshold) + 1) / (len(others) + 1))
    return float(np.mean(rows.scores >= certified.threshold))


def _cutoff(
    certified: Certified, target: AnyTarget, level: Level, kept: RowSummary | None, share: float | None = None
) -> Cutoff:
    step = Step(0, certified.count, certified.threshold, share=share)
    summary: dict[str, Any] = {}
    if kept is not None:
        summary = {"fingerprint": kept.fingerprint, "fingerprint_by": FINGERPRINT, "scores": kept.scores}
    rows, qualified, proof = certified.rows, certified.qualified, certified.proof
    return Cutoff(None, target, level, rows, qualified, (step,), proof=proof, **summary)


def _require_pool_rule(target: AnyTarget, level: Level) -> None:
    if isinstance(target, Expected) and level.rule != "exact":
        raise InvalidInput(f'rule: averages over pools and of values go with "exact", got {level.rule!r}.')
    if level.rule == "bernstein":
        raise InvalidInput('rule: whole pools go with "exact" and "pac", got \'bernstein\'.')


def _certify(rows: RowSet, target: AnyTarget, level: Level, most: float) -> Certified | None:
    if isinstance(rows.labels, SampledLabels):
        return _audited(rows, target, level)
    if of_whole_pools(target) or has_values(target):
        assert isinstance(target, (Expected, PerPool))
        return _by_units(rows, target, level)
    unlabelled = _other_scores(rows.unlabelled, target)
    require_others(rows.scores, unlabelled)
    if isinstance(target, Expected):
        if level.rule != "exact":
            raise InvalidInput(f'unlabelled: goes with rule="exact", got {level.rule!r}.')
        return certify_chain(rows.scores, rows.labels, target, level, unlabelled)
    if isinstance(target, Budget):
        return certify_budget(rows.scores, rows.labels, target, level, unlabelled)
    assert isinstance(target, Precision)
    if level.rule == "fdr":
        return certify_false_share(rows.scores, rows.labels, target, level, unlabelled)
    return certify_precision(rows.scores, rows.labels, target, level, unlabelled, most)


def _by_units(rows: RowSet, target: Expected | PerPool, level: Level) -> Certified:
    if rows.unlabelled is not None:
        raise InvalidInput("unlabelled: does not go with whole pools or values; leave it out.")
    _require_pool_rule(target, level)
    if target.pool_size is not None:  # of values: every row is a unit
        assert isinstance(target, Expected)
        units = PoolRows.of(rows.scores, rows.labels, np.arange(len(rows.scores)), len(rows.scores))
        return certify_average(units, target, level, "row")
    if rows.pools is None:
        raise InvalidInput(
            f"pools: {target.describe()}, whatever its size, needs pools=, one pool id per row. With a pool "
            "size in the target rows are the units."
        )
    codes, pools = check.as_codes(rows.pools, len(rows.scores))
    if isinstance(target, Expected):
        return certify_average(PoolRows.of(rows.scores, rows.labels, codes, pools), target, level)
    return certify_next_pool(PoolRows.of(rows.scores, rows.labels, codes, pools, target.by), target, level)


def _audited(rows: RowSet, target: AnyTarget, level: Level) -> Certified:
    if not isinstance(target, Expected) or target.pool_size is None or target.of == "value":
        raise InvalidInput(
            "labels: labels known above a score and audited below it certify a count on average, in pools of "
            f"a given size, not {target.describe()}. For that give every row's probability= and lowest_rate=."
        )
    if level.rule != "exact":
        raise InvalidInput(
            f'rule: labels known above a score and audited below it go with "exact", got {level.rule!r}.'
        )
    if rows.unlabelled is not None:
        raise InvalidInput("unlabelled: does not go with labels that were drawn; leave it out.")
    return certify_audited(rows.scores, rows.labels, target, level)


def _other_scores(unlabelled: Any, target: AnyTarget) -> Floats:
    if unlabelled is None:
        raise InvalidInput(
            f"unlabelled: {type(target).__name__} needs scores of other candidates from the same population, "
            "without labels; pass unlabelled=."
        )
    scores = check.as_scores(unlabelled, "unlabelled")
    check.require_rows(scores, "unlabelled")
    return scores


def together(cutoffs: Sequence[Cutoff]) -> tuple[Cutoff, ...]:
    """Several promises of one list [theory: two-promises]: the lowest threshold keeps every count.

    Precision was walked last, and passed at that very threshold.
    """
    threshold = min(each.steps[0].threshold for each in cutoffs)
    return tuple(replace(each, steps=(_lowered(each.steps[0], threshold),)) for each in cutoffs)


def _lowered(step: Step, threshold: float) -> Step:
    """At a lower threshold nothing is known of how many reach it."""
    if step.threshold == threshold:
        return step
    return replace(step, threshold=threshold, reached=None, share=None, share_untied=None)


def _summary(rows: RowSet) -> RowSummary:
    """What is kept of the rows behind a promise; an amount above 0 counts as qualified."""
    sampled = isinstance(rows.labels, SampledLabels)
    good = rows.labels.read(len(rows.scores))[1] if sampled else rows.labels > 0
    kept = ArrayEvidence(len(good), rows.scores[good], rows.scores, good).summary([])
    # of rows that were not labelled nobody knows how they rank
    return replace(kept, scores=replace(kept.scores, auc=None)) if sampled else kept
