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

    @property
    def measured(self) -> str:
        return f"{self.value:,.2f}" if abs(self.value) < 1000 else f"{self.value:,.0f}"


def show(figures: Iterable[Figure]) -> list[Figure]:
    """Print a table line by line, as soon as each is measured."""
    print(f"{'what':<46}{'where':<30}{'measured':>14}{'limit':>8}")
    shown = []
    for each in figures:
        limit, verdict = "" if each.limit is None else f"{each.limit:g}", "  broken" if each.broken else ""
        print(f"{each.what:<46}{each.where:<30}{each.measured:>14}{limit:>8}{verdict}", flush=True)
        shown.append(each)
    return shown
