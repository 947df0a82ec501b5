"""What every proof of a promise has, and the refusal they share.

A *proof* is a small frozen value beside a threshold: the numbers a rule needed beyond rows, qualified rows
and a critical count. It says its promise and conditions in words, and checks that its own numbers
agree, which is what loading a policy file relies on. The rules that make proofs live beside them.
"""

from __future__ import annotations

from typing import Any, Protocol

from surelist._dataclasses import dataclass
from surelist.errors import NotCertifiable, Shortfall
from surelist.promises.targets import Level


class Proof(Protocol):
    """What a policy asks of the evidence behind one of its thresholds; ``kind`` names the rule in files."""

    @property
    def kind(self) -> str: ...

    def claim(self, target: Any) -> str:
        """What is promised, as the first half of a sentence."""

    def wrong(self, level: Level, rows: int) -> str:
        """How often that may be wrong, as the second half."""

    def conditions(self, target: Any, level: Level) -> tuple[str, ...]:
        """What the promise rests on."""

    def evidence(self, level: Level) -> str:
        """One line for a person who wants to know why."""

    def check(self, target: Any, level: Level, rows: int, qualified: int, threshold: float) -> None:
        """Raise PolicyFileError where the numbers contradict one another."""


@dataclass(frozen=True)
class Certified:
    """What a rule found: who is listed, from how much, and why that is enough."""

    threshold: float
    count: int
    rows: int
    qualified: int
    proof: Any


def refuse(
    target: str, level: Level, rows: int, qualified: int, reason: str, *, count: int = 0,
    largest_k: float | None = None, rows_needed: int | None = None,
) -> NotCertifiable:  # fmt: skip
    """The refusal of a rule that counts something other than rows; ``reason`` says what and the way out."""
    return NotCertifiable(
        Shortfall(
            target=f"{target} (alpha={level.alpha:g}, rule={level.rule!r})",
            rows=rows, qualified_available=qualified, critical_count=count, largest_k=largest_k,
            largest_share=None, rows_needed=rows_needed, reason=reason,
        )
    )  # fmt: skip
