"""Conditions that have no proof together are refused here, before anything is certified.

``certify_arrays`` asks, through which arrays, tables, command line, API and estimator all go. Each condition
is fine alone; a refusal names the two that are not and the way out. What goes together, and why, is in
[theory: together].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelist.errors import InvalidInput
from surelist.promises.sampled import SampledLabels
from surelist.promises.targets import Budget, Expected, Precision
from surelist.promises.terms import Terms


def require_proof(scores: Any, labels: Any, terms: Terms, within: float | None, unlabelled: Any) -> None:
    """Raise where what was asked for is not proved; ``within``: how wrong density ratios may be."""
    if isinstance(scores, Mapping) and len(scores) > 1:
        _several_scores(labels, terms)
    if within is not None:
        _wrong_ratios(terms, unlabelled)


def _several_scores(labels: Any, terms: Terms) -> None:
    """[theory: best-of]: each score has to be certified by a rule of its own."""
    if terms.rule == "fdr":
        raise InvalidInput(
            'scores: rule="fdr" promises an average over lists, which has no alpha to share, and a list '
            "chosen after looking is not an average one; give one score."
        )
    if any(isinstance(each, Budget) for each in terms.all_targets):
        raise InvalidInput(
            "scores: a budget is kept on average over draws of the unlabelled scores, and a list chosen "
            "among several after looking is not an average one; give one score."
        )
    if isinstance(labels, SampledLabels) and labels.above is not None:
        raise InvalidInput(
            "labels: labels known above a score and audited below it go with that one score, and several "
            "were given: where every label is known by one score it is not by another. Give one score, or "
            "every row's probability= and lowest_rate=."
        )


def _wrong_ratios(terms: Terms, unlabelled: Any) -> None:
    """[theory: shift]: the margin is proved for a list that does not depend on the pool's scores."""
    if terms.rule == "fdr":
        raise InvalidInput(
            'within: does not go with rule="fdr": wrong ratios are covered for a list that was fixed '
            "beforehand, and that list is chosen by the pool it is about. Leave within out, or use "
            'rule="exact".'
        )
    kinds = [type(each) for each in terms.all_targets]
    if unlabelled is not None and Expected in kinds and Precision not in kinds:
        raise InvalidInput(
            "unlabelled: does not go with DensityRatio(within=...): other scores shorten the list only where "
            "they come from the population of the rows that the ratios keep, which wrong ratios need not "
            "give. Leave unlabelled out."
        )
