"""A labelling's state as plain values, and its file: what adds up, what may be corrected, how far it is.

It holds row numbers, ids, scores and labels of drawn rows only. ``labelling`` builds from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from msgspec import field

from surelist import _check as check
from surelist._files import Chance, hold
from surelist.drawing.display import Display
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_block import BlockDesign
from surelist.lifecycle.labelling_design import WAITING, Design
from surelist.lifecycle.labelling_precision import PrecisionDesign
from surelist.lifecycle.labelling_recall import RecallDesign
from surelist.lifecycle.labelling_start import spelled
from surelist.lifecycle.labelling_triage import TriageDesign
from surelist.lifecycle.state import Correction, Positive, State, verify_corrections
from surelist.promises.phrases import counted, number, percent

AnyDesign = BlockDesign | RecallDesign | PrecisionDesign | TriageDesign
DESIGNS: dict[str, type[AnyDesign]] = {  # by what a kind says that it is labelled for
    "block": BlockDesign,
    "control": RecallDesign,
    "prefix": PrecisionDesign,
    "triage": TriageDesign,
}


class LabellingState(State, kw_only=True, forbid_unknown_fields=True):
    """All that a labelling knows, in the order of its file. ``seen``: its result was shown."""

    kind: Literal["surelist labelling"] = "surelist labelling"
    alpha: Chance
    labels: Positive
    purpose: str | None
    columns: dict[str, str] | None
    designs: list[AnyDesign]
    corrected: list[Correction] = field(default_factory=list)
    seen: bool = False

    def verify(self) -> None:
        hold(bool(self.designs), "it has no design")
        groups = [each.group for each in self.designs]
        hold(len(set(groups)) == len(groups), "a group appears twice")
        hold(len(groups) == 1 or None not in groups, "only some designs name a group")
        verify_corrections(self.corrected, {row for design in self.designs for row in design.sample.rows})
        for each in self.designs:
            hold(each.alpha == self.alpha / len(groups), "a group's alpha is not its share of alpha")
            same = type(each) is DESIGNS[each.promise.sample or "block"]
            hold(same, "its design is not that of its target")
            each.verify()

    def describe(self) -> list[str]:
        """The design of every group and how many labels are here; what to label next."""
        lines = [line for design in self.designs for line in design.describe()]
        waiting = sum(len(design.waiting) for design in self.designs)
        return [*lines, f"Next: label {counted(waiting, 'candidate')}."] if waiting else lines

    def display(self, full: str, listed: int | None) -> Display:
        """How far it is, group by group; ``full`` is all there is to say, ``listed`` who is on the list."""
        waiting = sum(len(design.waiting) for design in self.designs)
        received = sum(design.counts(design.stages[-1])[0] for design in self.designs)
        facts = [(design.group or "promise", design.promise.describe()) for design in self.designs]
        where = "accepted" if any(design.promise.three_ways for design in self.designs) else "on the list"
        facts.append(("wrong with probability", f"at most {percent(self.alpha)}"))
        facts.append(("candidates", number(sum(design.size for design in self.designs))))
        facts += [(where, number(listed))] if listed is not None else []
        facts.append(("started", self.created))
        line = f"{received:,} of {received + waiting:,} labels of this stage are here"
        line += f"; {counted(waiting, 'candidate')} to label next" if waiting else ": all of them"
        # with all of them, what comes after the design: the promise, or why there is none
        said = f"{line}." if waiting else full.partition("\n\n")[2].partition("\n")[0]
        return Display(line, said, facts, folded=[("In full", full.splitlines())])

    def correct(self, where: Mapping[int, tuple[Design, int]], rows: list[int], labels: object) -> int:
        """Replace labels that were told, all or none of them; what they chose is chosen anew."""
        flags, _ = check.as_labels(labels) if rows else (np.zeros(0, dtype=np.bool_), 0)
        check.require_length(flags, len(rows), "labels")
        if len(set(rows)) < len(rows):
            raise InvalidInput("rows", "a row is given twice; give each row once.")
        changes = []
        for row, mark in zip(rows, ("1" if each else "0" for each in flags.tolist()), strict=True):
            design, at = where.get(row, (None, 0))
            if design is None or design.sample.labels[at] == WAITING:
                raise InvalidInput("rows", f"row {row} has no label yet; there is none to correct.")
            was = design.sample.labels[at]
            why = "the result was shown with it" if self.seen else design.decided(at)
            if was != mark and why is not None:
                raise InvalidInput(
                    "labels",
                    f"row {row} was {spelled(was)}, and {why}. It can no longer be corrected; a label that "
                    "was wrong means starting again with a fresh draw.",
                )
            if was != mark:
                changes.append((design, row, at, mark))
        come = sum(design.sample.labels[at] != WAITING for design, at in where.values())
        for design, row, at, mark in changes:
            self.corrected.append(Correction(row, design.sample.labels[at], mark, come))
            design.correct(at, mark)
        return len(changes)
