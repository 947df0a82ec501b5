"""A labelling in words: its design, how far it is, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from surelist.drawing.display import Display
from surelist.lifecycle.labelling_design import Design
from surelist.promises.phrases import counted


def describe(designs: Sequence[Design]) -> list[str]:
    """The design of every group and how many labels are here; what to label next."""
    lines: list[str] = []
    waiting = 0
    for design in designs:
        lines += design.describe()
        waiting += len(design.waiting)
    return [*lines, f"Next: label {counted(waiting, 'candidate')}."] if waiting else lines


def stages(designs: Sequence[Design]) -> list[tuple[str | None, int, int, int]]:
    """Stage by stage: the group, how many labels have come, of how many, and how many are qualified."""
    return [(design.group, *design.counts(stage)) for design in designs for stage in design.stages]


def answers(designs: Sequence[Design]) -> list[tuple[int, bool]]:
    """Whoever has a label: the rank by score, from 1, and whether they are qualified."""
    return [
        (rank + 1, mark == "1")
        for design in designs
        for rank, mark in zip(design.sample.ranks, design.sample.labels, strict=True)
        if mark in "01"
    ]


def display(designs: Sequence[Design], full: str) -> Display:
    """How far it is, group by group; ``full`` is all there is to say."""
    facts, waiting, received = [], 0, 0
    for design in designs:
        waiting += len(design.waiting)
        received += design.counts(design.stages[-1])[0]
        facts.append((design.group or "promise", design.promise.describe()))
    progress = f"{received:,} of {received + waiting:,} labels of this stage are here"
    if not waiting:  # what comes after the design: the promise, or why there is none
        verdict = full.partition("\n\n")[2].partition("\n")[0]
        return Display(f"{progress}: all of them", verdict, facts, folded=[("In full", full.splitlines())])
    line = f"{progress}; {counted(waiting, 'candidate')} to label next"
    return Display(line, f"{line}.", facts, folded=[("In full", full.splitlines())])
