"""The start of a labelling: the collection as ranks, the draw, and the choice of the block after the pilot.

A collection only has to say how many candidates it has and who is at given ranks of their order by score;
arrays do it here, tables elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput
from surelist.lifecycle import block_draw
from surelist.lifecycle.block_design import choose_block
from surelist.lifecycle.block_test import need, run_fallback
from surelist.lifecycle.labelling_enough import require_enough
from surelist.lifecycle.labelling_file import MISSING, WAITING, Correction, Design, LabellingState, Sample
from surelist.promises.conditions import Conditions
from surelist.promises.promise import About, Promise
from surelist.promises.proved import proof_of, require_proof

Ints = NDArray[np.int64]
BINS = 1 << 17


@dataclass(frozen=True)
class Fetched:
    """Rows of a collection at given ranks: row numbers, scores, and ids where there are any."""

    rows: Ints
    scores: NDArray[np.float64]
    ids: list[str] | None


class ScoredCollection(Protocol):
    """A scored collection: how many candidates per group (None: all), and who is at given ranks."""

    sizes: dict[str | None, int]

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        """The rows at these ranks of the group's order by score, best first."""


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
        if group is None:
            rows = rows_at_ranks(self._scores, ranks)
        else:
            members = self._members[group]
            rows = members[rows_at_ranks(self._scores[members], ranks)]
        ids = None if self._ids is None else [self._ids[row] for row in rows.tolist()]
        return Fetched(rows, self._scores[rows], ids)


def rows_at_ranks(scores: NDArray[np.float64], ranks: Ints) -> Ints:
    """Who is at these ranks by score, best first, without sorting everyone.

    Scores are counted in bins of equal width; only the bins that hold a wanted rank are sorted. A lower score
    never has a lower bin (subtraction, multiplication and truncation are monotone in floating point).
    """
    low, high = float(scores.min()), float(scores.max())
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    if not np.isfinite(scale) or not np.isfinite(high - low):
        return np.argsort(scores)[::-1][ranks]
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


def make_design(
    collection: ScoredCollection, group: str | None, target: Promise, alpha: float, labels: int,
    options: dict[str, Any], rng: np.random.Generator,
) -> Design:  # fmt: skip
    """Draw everything that may be asked of one group."""
    size = collection.sizes[group]
    future = target.about is not About.COLLECTION
    layout = require_enough(target, size, labels, alpha, options, len(collection.sizes))
    drawn, apart, within = [], np.zeros(0, dtype=np.int64), None
    if layout.pilot_labels:
        part = block_draw.set_aside(size, layout.apart, rng) if future else None
        drawn = [block_draw.draw_part(part, layout.pilot_block, layout.pilot_labels, rng)]
        apart = drawn[0].ranks if part is None else part
        within = None if part is None else np.searchsorted(part, drawn[0].ranks).tolist()
    drawn.append(block_draw.draw_blocks(apart, list(layout.blocks), layout.labels, rng))
    *pilot, main = _fetch(collection, group, drawn)
    return Design(
        group=group, target=msgspec.to_builtins(target), alpha=alpha, size=size, apart=layout.apart,
        pilot_block=layout.pilot_block, fallback=layout.fallback, blocks=list(layout.blocks),
        drawn=layout.labels, chosen=None if pilot else 0, pilot=pilot[0] if pilot else None, main=main,
        within=within,
    )  # fmt: skip


def _fetch(collection: ScoredCollection, group: str | None, drawn: list[block_draw.RankDraw]) -> list[Sample]:
    """The samples of all stages, fetched at once."""
    fetched = collection.at(group, np.concatenate([each.ranks for each in drawn]))
    made, start = [], 0
    for each in drawn:
        part = slice(start, start + len(each.ranks))
        made.append(
            Sample(
                rows=fetched.rows[part].tolist(), ids=None if fetched.ids is None else fetched.ids[part],
                scores=fetched.scores[part].tolist(), ranks=each.ranks.tolist(), enters=each.enters.tolist(),
                leaves=each.leaves.tolist(), labels=WAITING * len(each.ranks),
            )
        )  # fmt: skip
        start = part.stop
    return made


def samples(design: Design) -> list[Sample]:
    """The pilot's rows, where there is one, and the block's."""
    return [design.main] if design.pilot is None else [design.pilot, design.main]


def stage(design: Design) -> tuple[Sample, Ints]:
    """The sample at hand and which of its rows are asked for."""
    if design.chosen is None:
        assert design.pilot is not None
        return design.pilot, np.arange(len(design.pilot.rows))
    return design.main, design.main.inside(design.chosen)


MISSING_LABELS = Conditions(evidence="labelling", labels="missing")


def open_rows(
    designs: list[Design], among: Mapping[int, tuple[Sample, int]] | None = None
) -> dict[int, bool]:  # fmt: skip
    """The rows of the stages at hand; True where the label must come.

    Only those ``among`` which are given with their places: many answers may come one by one.
    """
    rows: dict[int, bool] = {}
    for design in designs:
        must = proof_of(design.promise, MISSING_LABELS) is None
        if among is None:
            sample, members = stage(design)
            rows.update({sample.rows[at]: must for at in members.tolist()})
        else:
            rows.update({row: must for row, place in among.items() if _is_asked(design, *place)})
    return rows


def _is_asked(design: Design, sample: Sample, at: int) -> bool:
    """Whether the row at this place of a sample is of the design's stage at hand."""
    if design.chosen is None:
        return sample is design.pilot
    return sample is design.main and sample.enters[at] <= design.chosen <= sample.leaves[at]


def policy_columns(columns: dict[str, str] | None) -> dict[str, str] | None:
    """What a policy remembers of a table: its columns, not where it was or who read it."""
    if columns is None:
        return None
    return {role: name for role, name in columns.items() if role in ("score", "group", "id")}


def fix_block(design: Design) -> None:
    """Fix the block once the pilot is complete, before any label that tests it is asked for.

    For future pools by the pilot's ranks among the rows set aside alone: its ranks in the whole collection
    say how many of the other rows lie above, which are those that test the block.
    """
    if design.chosen is not None or design.pilot is None or WAITING in design.pilot.labels:
        return
    pilot, target = design.pilot, design.promise
    fallback = run_fallback(design)
    everyone = np.arange(len(pilot.rows))
    ranks, size = (pilot.ranks, design.size) if design.within is None else (design.within, design.apart)
    otherwise = 1.0
    if fallback is not None and fallback.listed is not None:
        otherwise = (ranks[pilot.ranks.index(fallback.listed - 1)] + 1) / size
    design.chosen = choose_block(
        (np.array(ranks) + 0.5) / size,
        pilot.qualified(everyone),
        design.size - (design.apart or len(pilot.rows)),
        tuple(design.blocks),
        design.drawn,
        need(target, design.size),
        design.alpha * (1 - design.fallback),
        otherwise,
    )


def correct_labels(
    state: LabellingState, where: Mapping[int, tuple[Sample, int]], rows: list[int], labels: Any
) -> int:
    """Replace labels that were told, all or none of them; the block is chosen anew where a pilot changed."""
    flags, _ = check.as_labels(labels) if rows else (np.zeros(0, dtype=np.bool_), 0)
    check.require_length(flags, len(rows), "labels")
    changes = []
    for row, mark in zip(rows, ("1" if each else "0" for each in flags.tolist()), strict=True):
        sample, at = where.get(row, (None, 0))
        if sample is None or sample.labels[at] == WAITING:
            raise InvalidInput(f"rows: row {row} has no label yet; there is none to correct.")
        design = next(each for each in state.designs if any(sample is part for part in samples(each)))
        why = _decided(design, sample, seen=state.seen)
        if sample.labels[at] != mark and why is not None:
            raise InvalidInput(
                f"labels: row {row} was {spelled(sample.labels[at])}, and {why}. It can no longer be "
                "corrected; a label that was wrong means starting again with a fresh draw."
            )
        if sample.labels[at] != mark:
            changes.append((design, sample, row, at, mark))
    come = sum(sample.labels[at] != WAITING for sample, at in where.values())
    for design, sample, row, at, mark in changes:
        state.corrected.append(Correction(row, sample.labels[at], mark, come))
        sample.labels = sample.labels[:at] + mark + sample.labels[at + 1 :]
        if sample is design.pilot:
            design.chosen = None
            fix_block(design)
    return len(changes)


def _decided(design: Design, sample: Sample, *, seen: bool) -> str | None:
    """What rests on the labels of this sample already; None while they can be corrected.

    A pilot may choose the block in any way at all until a label that tests the block is known.
    """
    if seen:
        return "the result was shown with it"
    if sample is design.pilot and set(design.main.labels) != {WAITING}:
        return "labels of the block that the pilot chose are here"
    return None


def as_targets(target: Any, groups: list[str | None]) -> dict[str | None, Promise]:
    """One target per group, of a kind that labelling can promise."""
    named = {check.group_name(key, "target"): each for key, each in target.items()} if isinstance(
        target, Mapping
    ) else dict.fromkeys(groups, target)  # fmt: skip
    if set(named) != set(groups):
        odd = sorted(map(str, set(named) ^ set(groups)))
        raise InvalidInput(
            f"target: expected one target for each group of groups=; {odd[0]!r} has only one of both."
        )
    for each in named.values():
        if not isinstance(each, Promise):
            raise InvalidInput(f"target: expected a promise, such as Expected(5, 100), got {each!r}.")
        require_proof(each, Conditions(evidence="labelling", groups="none" if None in named else "own"))
    return {group: each.of_collection() for group, each in named.items()}


def as_share(value: Any, name: str) -> float:
    """A share of the design: 0 or more, below 1."""
    number = check.as_positive(value, name) if value else 0.0
    if number >= 1:
        raise InvalidInput(
            f"{name}: expected a share of at least 0 and below 1, got {value!r}.{check.share_meant(value)}"
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
        raise InvalidInput(f"rows: expected row numbers, got {value!r}.")
    return plain
