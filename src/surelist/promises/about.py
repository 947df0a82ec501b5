"""What a promise is about. Whoever judges, watches, draws or repeats a promise asks here first.

``"population"``: a rate among all candidates who come. ``"average"``: an average over whole pools or of
amounts, which nothing bounds. ``"next pool"``: single pools. ``"collection"``: the very candidates in hand,
with the sample drawn from them. ``"this pool"``: lists of the one pool it was made with.
"""

from __future__ import annotations

from typing import Any, Literal

from surelist.promises.phrases import counted
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.targets import AtLeast, Expected, PerPool

About = Literal["population", "average", "next pool", "collection", "this pool"]


def about(cutoff: Cutoff) -> About:
    """What the promise of one cutoff is about."""
    target, kind = cutoff.target, None if cutoff.proof is None else cutoff.proof.kind
    if isinstance(target, AtLeast) or kind == "control-sample":
        return "collection"
    if kind == "false-share":
        return "this pool"
    if isinstance(target, PerPool):
        return "next pool"
    if isinstance(target, Expected) and (target.pool_size is None or target.of == "value"):
        return "average"
    return "population"


def of_collection(policy: Certificate) -> bool:
    """Whether a policy promises something of the candidates it was made from, and of no others."""
    return any(about(cutoff) == "collection" for cutoff in policy.cutoffs)


def not_of_these(policy: Certificate) -> str:
    """Why other rows say nothing about a promise of a collection."""
    proofs: list[Any] = [cutoff.proof for cutoff in policy.cutoffs]
    of = counted(sum(proof.collection for proof in proofs), "candidate")
    return f"it is about the {of} it was made from, and about no others"
