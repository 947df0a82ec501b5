"""What calibration needs to know of calibration rows, and the answer from arrays.

Tables answer in their own room; whoever implements ``Evidence`` can be certified from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surelist.promises.terms import Terms


class Evidence(Protocol):
    """What calibration needs to know of one group's rows."""

    @property
    def rows(self) -> int: ...
    @property
    def qualified(self) -> int: ...
    @property
    def fingerprint(self) -> str | None: ...
    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        """The count-th largest qualified score, for each count."""

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        """How many qualified rows score above, and the ids of those exactly at the threshold."""


@dataclass(frozen=True)
class ArrayEvidence:
    """Evidence in memory: the qualified scores of one group."""

    rows: int
    scores: NDArray[np.float64]
    fingerprint: str | None
    ids: list[str] | None = None

    @property
    def qualified(self) -> int:
        return len(self.scores)

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        qualified: NDArray[np.bool_],
        member: NDArray[np.bool_] | None,
        ids: list[str] | None,
        terms: Terms,
        kept: NDArray[np.bool_] | None,
    ) -> ArrayEvidence:
        """``member`` marks the group's rows; with group_rows="all" every kept row counts."""
        chosen = qualified if member is None else qualified & member
        rows = len(scores) if member is None else int(np.count_nonzero(member))
        if terms.grouped and terms.group_rows == "all":
            rows = len(scores) if kept is None else int(np.count_nonzero(kept))
        own = scores[chosen]
        texts = [ids[row] for row in np.flatnonzero(chosen)] if ids is not None else None
        return cls(rows, own, fingerprint_of(rows, chosen, own), texts)

    def nth_largest(self, counts: Sequence[int]) -> list[float]:
        places = [len(self.scores) - count for count in counts]
        ordered = np.partition(self.scores, sorted(set(places)))
        return [float(ordered[place]) for place in places]

    def tied(self, threshold: float) -> tuple[int, list[str]]:
        assert self.ids is not None
        above = int(np.count_nonzero(self.scores > threshold))
        return above, [self.ids[row] for row in np.flatnonzero(self.scores == threshold)]


def fingerprint_of(rows: int, qualified: NDArray[np.bool_], scores: NDArray[np.float64]) -> str:
    """SHA-256 of what the policy depends on: which rows are qualified, and their scores."""
    digest = hashlib.sha256(rows.to_bytes(8, "little"))
    digest.update(np.packbits(qualified).tobytes())
    digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return digest.hexdigest()
