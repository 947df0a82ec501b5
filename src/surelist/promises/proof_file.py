"""Proofs as files say them: a kind and its numbers. A rule is imported when a file names its kind."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

from surelist.promises.proofs import Proof

# kind: the module of its rule, and the class that holds its numbers
PROOFS = {
    "next-pool": ("pools", "NextPool"),
    "average": ("averages", "Average"),
    "audited": ("sampled", "Audited"),
    "fixed-sequence": ("reference", "FixedSequence"),
    "budget": ("reference", "ListedBudget"),
    "false-share": ("reference", "FalseShare"),
    "rank-chain": ("chain", "RankChain"),
    "block-sample": ("few_labels", "BlockSample"),
    "control-sample": ("few_labels", "ControlSample"),
}


def shape_of(kind: str) -> Any:
    """The class that proofs of this kind are read as; None for an unknown kind."""
    module, name = PROOFS.get(kind, (None, ""))
    return module and getattr(import_module(f"surelist.promises.{module}"), name)


AnyProof = Annotated[Proof, shape_of]
