"""A labelling's state as plain values, and its file: strict, versioned JSON.

It holds row numbers, ids, scores and labels of drawn rows only. ``labelling`` builds from it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from surelist._files import hold
from surelist._version import __version__
from surelist.lifecycle.monitor_file import parse_state
from surelist.promises import kinds
from surelist.promises.promise import Promise
from surelist.promises.proved import proved_from

WAITING, MISSING = "?", "-"


class Sample(Struct, forbid_unknown_fields=True):
    """Drawn rows, best first. ``labels`` has one sign a row: 0, 1, ? (waiting) or - (will not come)."""

    rows: list[int]
    ids: list[str] | None
    scores: list[float]
    ranks: list[int]
    enters: list[int]
    leaves: list[int]
    labels: str

    def inside(self, block: int) -> NDArray[np.int64]:
        """Which of the drawn rows belong to the sample of this block."""
        return np.flatnonzero((np.array(self.enters) <= block) & (block <= np.array(self.leaves)))

    def qualified(self, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.array([self.labels[row] == "1" for row in chosen.tolist()], dtype=np.bool_)


class Design(Struct, forbid_unknown_fields=True):
    """One labelling of one group (or of everyone): what was drawn, what was chosen, what came back.

    ``apart`` rows are set aside for the pilot (0: none); ``blocks`` count rows that are not set aside and,
    for a promise about the collection, not in the pilot; ``chosen`` is the number of the block tested.
    ``within``: the pilot's ranks among the rows set aside, which know nothing of the others.
    """

    group: str | None
    target: dict[str, Any]  # its kind and numbers
    alpha: float
    size: int
    apart: int
    pilot_block: int
    fallback: float
    blocks: list[int]
    drawn: int
    chosen: int | None
    pilot: Sample | None
    main: Sample
    within: list[int] | None = None

    @property
    def promise(self) -> Promise:
        return kinds.read_promise(self.target)


class Correction(Struct, frozen=True, forbid_unknown_fields=True):
    """A label that was corrected: what it was, what it is said to be, and how many had come by then."""

    row: int
    was: str
    now: str
    labels: int


class LabellingState(Struct, kw_only=True, forbid_unknown_fields=True):
    """All that a labelling knows, in the order of its file. ``seen``: its result was shown."""

    format: Literal[1] = 1
    kind: Literal["surelist labelling"] = "surelist labelling"
    alpha: float
    labels: int
    created: str
    version: str = __version__
    purpose: str | None
    columns: dict[str, str] | None
    designs: list[Design]
    corrected: list[Correction] = field(default_factory=list)
    seen: bool = False


def loads(text: str, path: Path) -> LabellingState:
    """A labelling's state; what does not add up is an error."""
    state = parse_state(text, LabellingState, path)
    hold(
        0 < state.alpha < 1 and state.labels > 0 and bool(state.designs), "its level or labels are impossible"
    )
    groups = [each.group for each in state.designs]
    hold(len(set(groups)) == len(groups), "a group appears twice")
    hold(len(groups) == 1 or None not in groups, "only some designs name a group")
    rows = {row for design in state.designs for row in [*_rows(design.pilot), *design.main.rows]}
    verify_corrections(state.corrected, rows)
    for each in state.designs:
        hold(each.alpha == state.alpha / len(groups), "a group's alpha is not its share of alpha")
        _verify(each)
    return state


def _verify(design: Design) -> None:
    hold(proved_from(design.promise, "labelling"), "its target is none that is labelled for")
    blocks = design.blocks
    hold(bool(blocks) and blocks == sorted(set(blocks)), "its blocks are out of order")
    free = design.size - (design.apart or _length(design.pilot))
    hold(0 < design.drawn <= blocks[0] and blocks[-1] <= free, "its blocks do not fit the collection")
    hold(0 <= design.fallback < 1, "its share of alpha is impossible")
    _verify_sample(design.main, design, len(blocks))
    for number in range(len(blocks)):
        hold(len(design.main.inside(number)) == design.drawn, "a block's sample has another size")
    if design.pilot is None:
        hold(
            design.chosen == 0 and len(blocks) == 1 and design.fallback == 0, "no pilot, and blocks to choose"
        )
        return
    _verify_sample(design.pilot, design, 1)
    if design.within is not None:
        hold(
            len(design.within) == _length(design.pilot) and design.within == sorted(set(design.within))
            and 0 <= design.within[0] <= design.within[-1] < design.pilot_block,
            "the pilot's ranks are out of order",
        )  # fmt: skip
    hold(
        _length(design.pilot) <= design.pilot_block <= (design.apart or design.size), "its pilot does not fit"
    )
    waits = WAITING in design.pilot.labels
    hold((design.chosen is None) == waits, "the block was chosen before the pilot had ended, or not after")
    hold(design.chosen is None or 0 <= design.chosen < len(blocks), "the block chosen is none of its own")
    hold(not waits or not set(design.main.labels) - {WAITING}, "labels came before their block was chosen")
    hold(not set(design.pilot.rows) & set(design.main.rows), "a row is in the pilot and in the block")


def verify_corrections(corrected: list[Correction], rows: Collection[int]) -> None:
    """Every correction is of a label that may have been told."""
    for each in corrected:
        hold(each.row in rows, "a correction is of none of its rows")
        hold({each.was, each.now} <= set("01-") and each.labels > 0, "a correction is impossible")


def _rows(sample: Sample | None) -> list[int]:
    return [] if sample is None else sample.rows


def _length(sample: Sample | None) -> int:
    return len(_rows(sample))


def _verify_sample(sample: Sample, design: Design, blocks: int) -> None:
    length = len(sample.rows)
    parts = (sample.scores, sample.ranks, sample.enters, sample.leaves, sample.labels)
    hold(all(len(part) == length for part in parts), "a sample is uneven")
    hold(sample.ids is None or len(set(sample.ids)) == len(sample.ids) == length, "an id appears twice")
    hold(set(sample.labels) <= set("01?-"), "a label is neither 0, 1, ? nor -")
    hold(len(set(sample.rows)) == length and min(sample.rows, default=0) >= 0, "a row appears twice")
    hold(sample.ranks == sorted(set(sample.ranks)), "its ranks are out of order")
    hold(not sample.ranks or 0 <= sample.ranks[0] <= sample.ranks[-1] < design.size, "a rank is impossible")
    hold(sample.scores == sorted(sample.scores, reverse=True), "its scores are out of order")
    pairs = zip(sample.enters, sample.leaves, strict=True)
    hold(all(0 <= enter <= leave < blocks for enter, leave in pairs), "a row is in no block's sample")
