"""Best of several scores: each certified at its share of alpha, one chosen after looking [theory: best-of].

The choice may use anything at all, here the length of the list. Every score that was ever looked at on
these rows counts, also those discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from surelist import _check as check
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises.policy import Policy
from surelist.promises.state import Choice
from surelist.promises.terms import Terms

Certify = Callable[[Any, Terms, Any], Policy]


def best_of(scores: Mapping[Any, Any], unlabelled: Any, terms: Terms, certify: Certify) -> Policy:
    """The policy with the best list: the shortest, or the longest where that is wanted.

    ``certify`` makes one from scores, terms and unlabelled scores.
    """
    names = [check.group_name(name, "scores") for name in scores]
    if not names or len(set(names)) != len(names):
        raise InvalidInput("scores", expected="one column per name", got=f"the names {names!r}")
    others = _others(unlabelled, list(scores))
    asked = replace(terms, scores=len(names))
    wanted = any(each.others != "refused" for each in terms.all_targets)
    made: list[tuple[float, str, Policy]] = []
    refused: NotCertifiable | None = None
    for name, (key, column) in zip(names, scores.items(), strict=True):
        try:
            policy = certify(column, asked, others.get(key) if wanted else None)
        except NotCertifiable as error:
            refused = refused or error
            continue
        made.append((_length(policy, others.get(key, column)), name, policy))
    if not made:
        assert refused is not None
        raise refused
    best = max if all(each.longest for each in terms.all_targets) else min
    _, name, policy = best(made, key=lambda each: each[0])
    return replace(policy, choice=Choice(tuple(names), name))


def _others(unlabelled: Any, keys: list[Any]) -> dict[Any, Any]:
    if unlabelled is None:
        return {}
    if not isinstance(unlabelled, Mapping) or set(unlabelled) != set(keys):
        raise InvalidInput("unlabelled", "with several scores, give a mapping with the same names.")
    return dict(unlabelled)


def _length(policy: Policy, scores: Any) -> float:
    """The share of these candidates on the list; by rank, the rank where it ends."""
    threshold = min(cutoff.steps[0].threshold for cutoff in policy.cutoffs)
    if policy.by_rank:
        return -threshold
    return float(np.mean(check.as_scores(scores, "unlabelled") >= threshold))
