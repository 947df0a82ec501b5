"""One line of a benchmark: what was measured, and the limit that it is held to. No benchmark itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A ratio, ours over bare, or another number that should be small; without a limit it is only told."""

    what: str
    where: str
    value: float
    limit: float | None = None

    @property
    def broken(self) -> bool:
        return self.limit is not None and self.value > self.limit


def show(figures: Iterable[Figure]) -> bool:
    """Print a table; whether every limit is kept."""
    print(f"{'what':<44}{'where':<24}{'measured':>10}{'limit':>8}")
    kept = True
    for each in figures:
        limit = "" if each.limit is None else f"{each.limit:g}"
        print(
            f"{each.what:<44}{each.where:<24}{each.value:>10.2f}{limit:>8}{'  broken' if each.broken else ''}"
        )
        kept = kept and not each.broken
    return kept
