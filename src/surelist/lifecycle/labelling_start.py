"""What comes in: a collection in memory as ranks, targets, rows and labels as people give them;
corrections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_design import MISSING, WAITING, Design, Fetched, Ints
from surelist.lifecycle.labelling_file import Correction, LabellingState
from surelist.promises.conditions import Conditions
from surelist.promises.promise import Promise
from surelist.promises.proved import require_proof

BINS = 1 << 17


class ArrayCollection:
    """A collection in memory."""

    def __init__(self, scores: Any, ids: Any = None, groups: Any = None) -> None:
        check.require_one_index(scores=scores, ids=ids, groups=groups)
        self._scores = check.as_scores(scores)
        check.require_rows(self._scores, "scores")
        self._ids = None if ids is None else check.as_ids(ids, len(self._scores))
        self._members: dict[str, Ints] = {}
        self.sizes: dict[str | None, int] = {None: len(self._scores)}
        if groups is not None:
            names = check.as_groups(groups)
            check.require_length(names, len(self._scores), "groups")
            self._members = {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}
            self.sizes = {name: len(rows) for name, rows in self._members.items()}

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        rows = rows_at_ranks(self._of(group), ranks)
        rows = rows if group is None else self._members[group][rows]
        ids = None if self._ids is None else [self._ids[row] for row in rows.tolist()]
        return Fetched(rows, self._scores[rows], ids)

    def reaching(self, group: str | None, scores: list[float]) -> list[int]:
        rising = np.sort(scores)
        passed = np.bincount(
            np.searchsorted(rising, self._of(group), side="right"), minlength=len(scores) + 1
        )
        above = np.cumsum(passed[::-1])[::-1][1:]  # at or above the lowest, the second lowest, ...
        return [int(above[at]) for at in np.searchsorted(rising, scores)]

    def _of(self, group: str | None) -> NDArray[np.float64]:
        return self._scores if group is None else self._scores[self._members[group]]


def rows_at_ranks(scores: NDArray[np.float64], ranks: Ints) -> Ints:
    """Who is at these ranks by score, best first, without sorting everyone.

    Scores are counted in bins of equal width; only the bins that hold a wanted rank are sorted. A lower score
    never has a lower bin (subtraction, multiplication and truncation are monotone in floating point).
    """
    low, high = float(scores.min()), float(scores.max())
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    if len(scores) < BINS or not np.isfinite(scale) or not np.isfinite(high - low):
        return np.argsort(-scores, kind="stable")[ranks]
    bins = ((high - scores) * scale).astype(np.int32)  # 0 holds the best
    counts = np.bincount(bins, minlength=BINS)
    ends = np.cumsum(counts)
    wanted = np.searchsorted(ends, ranks, side="right")
    held = np.zeros(BINS, dtype=np.bool_)
    held[wanted] = True
    rows = np.flatnonzero(held[bins])
    rows = rows[np.lexsort((-scores[rows], bins[rows]))]
    skipped = np.cumsum(np.where(held, 0, counts))[wanted]  # better candidates in bins that were not sorted
    return np.asarray(rows[ranks - skipped])


def policy_columns(columns: dict[str, str] | None) -> dict[str, str] | None:
    """What a policy remembers of a table: its columns, not where it was or who read it."""
    if columns is None:
        return None
    return {role: name for role, name in columns.items() if role in ("score", "group", "id")}


def correct_labels(
    state: LabellingState, where: Mapping[int, tuple[Design, int]], rows: list[int], labels: Any
) -> int:
    """Replace labels that were told, all or none of them; what they chose is chosen anew."""
    flags, _ = check.as_labels(labels) if rows else (np.zeros(0, dtype=np.bool_), 0)
    check.require_length(flags, len(rows), "labels")
    changes = []
    for row, mark in zip(rows, ("1" if each else "0" for each in flags.tolist()), strict=True):
        design, at = where.get(row, (None, 0))
        if design is None or design.sample.labels[at] == WAITING:
            raise InvalidInput("rows", f"row {row} has no label yet; there is none to correct.")
        was = design.sample.labels[at]
        why = "the result was shown with it" if state.seen else design.decided(at)
        if was != mark and why is not None:
            raise InvalidInput(
                "labels",
                f"row {row} was {spelled(was)}, and {why}. It can no longer be corrected; a label that was "
                "wrong means starting again with a fresh draw.",
            )
        if was != mark:
            changes.append((design, row, at, mark))
    come = sum(design.sample.labels[at] != WAITING for design, at in where.values())
    for design, row, at, mark in changes:
        state.corrected.append(Correction(row, design.sample.labels[at], mark, come))
        design.correct(at, mark)
    return len(changes)


def as_targets(target: Any, groups: list[str | None]) -> dict[str | None, Promise]:
    """One target per group, of a kind that labelling can promise."""
    named = {check.group_name(key, "target"): each for key, each in target.items()} if isinstance(
        target, Mapping
    ) else dict.fromkeys(groups, target)  # fmt: skip
    if set(named) != set(groups):
        odd = sorted(map(str, set(named) ^ set(groups)))
        raise InvalidInput(
            "target",
            f"expected one target for each group of {option('groups')}; {odd[0]!r} has only one of both.",
        )
    for each in named.values():
        if not isinstance(each, Promise):
            raise InvalidInput("target", expected="a promise, such as Expected(5, 100)", got=repr(each))
        require_proof(each, Conditions(evidence="labelling", groups="none" if None in named else "own"))
    return {group: each.of_collection() for group, each in named.items()}


def as_share(value: Any, name: str) -> float:
    """A share of the design: 0 or more, below 1."""
    number = check.as_positive(value, name) if value else 0.0
    if number >= 1:
        raise InvalidInput(
            name,
            expected="a share of at least 0 and below 1",
            got=repr(value),
            remedy=check.share_meant(value),
        )
    return number


def marks_of(labels: Any, length: int | None) -> list[str]:
    """One sign per label: 0, 1 or missing; as many as asked for, or any number."""
    qualified, missing = check.as_labels(labels, missing="unqualified")
    if length is not None:
        check.require_length(qualified, length, "labels")
    marks = ["1" if each else "0" for each in qualified.tolist()]
    if missing:
        array = np.asarray(labels, dtype=object)
        for at, value in enumerate(array.tolist()):
            if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
                marks[at] = MISSING
    return marks


def spelled(mark: str) -> str:
    """A label's sign in words."""
    return {"0": "not qualified", "1": "qualified", MISSING: "said not to come"}[mark]


def as_rows(rows: Any) -> list[int]:
    """Row numbers, from an array or any sequence."""
    return [as_row(row) for row in (rows.tolist() if hasattr(rows, "tolist") else list(rows))]


def as_row(value: Any) -> int:
    """A row number."""
    plain = check.plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise InvalidInput("rows", expected="row numbers", got=repr(value))
    return plain
