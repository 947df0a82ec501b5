"""A labelling's state as plain values, and its file: strict, versioned JSON.

It holds row numbers, ids, scores and labels of drawn rows only. ``labelling`` builds from it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from surelist._files import hold
from surelist._version import __version__
from surelist.lifecycle.labelling_block import BlockDesign
from surelist.lifecycle.labelling_design import Design
from surelist.lifecycle.labelling_precision import PrecisionDesign
from surelist.lifecycle.labelling_recall import RecallDesign
from surelist.lifecycle.monitor_file import parse_state

AnyDesign = BlockDesign | RecallDesign | PrecisionDesign
DESIGNS: dict[str, type[AnyDesign]] = {  # by what a kind says that it is labelled for
    "block": BlockDesign,
    "control": RecallDesign,
    "prefix": PrecisionDesign,
}


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
    designs: list[AnyDesign]
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
    verify_corrections(state.corrected, {row for design in state.designs for row in design.sample.rows})
    for each in state.designs:
        hold(each.alpha == state.alpha / len(groups), "a group's alpha is not its share of alpha")
        hold(
            isinstance(each, DESIGNS[each.promise.sample or "block"]), "its design is not that of its target"
        )
        each.verify()
    return state


def verify_corrections(corrected: list[Correction], rows: Collection[int]) -> None:
    """Every correction is of a label that may have been told."""
    for each in corrected:
        hold(each.row in rows, "a correction is of none of its rows")
        hold({each.was, each.now} <= set("01-") and each.labels > 0, "a correction is impossible")


__all__ = ["DESIGNS", "AnyDesign", "Correction", "Design", "LabellingState", "loads", "verify_corrections"]
