"""A labelling in words: its design, how far it is, and what comes next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from surelist.drawing.display import Display
from surelist.lifecycle.labelling_file import WAITING, Design, Sample
from surelist.lifecycle.labelling_start import samples, stage
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import About


def describe(designs: Sequence[Design]) -> list[str]:
    """The design of every group and how many labels are here; what to label next."""
    lines: list[str] = []
    waiting = 0
    for design in designs:
        lines += _design(design)
        sample, members = stage(design)
        waiting += sum(sample.labels[at] == WAITING for at in members.tolist())
    return [*lines, f"Next: label {counted(waiting, 'candidate')}."] if waiting else lines


def stages(designs: Sequence[Design]) -> list[tuple[str | None, int, int, int]]:
    """Stage by stage: the group, how many labels have come, of how many, and how many are qualified."""
    return [
        (design.group, *_counts(sample, members)) for design in designs for sample, members in _asked(design)
    ]


def _asked(design: Design) -> list[tuple[Sample, list[int] | None]]:
    """The samples of which labels are asked, with those members of them that are; all for None."""
    pilot: list[tuple[Sample, list[int] | None]] = [(design.pilot, None)] if design.pilot is not None else []
    if design.promise.sample == "control":
        return [(design.main, None)]
    if design.chosen is None:
        return pilot
    return [*pilot, (design.main, design.main.inside(design.chosen).tolist())]


def answers(designs: Sequence[Design]) -> list[tuple[int, bool]]:
    """Whoever has a label: the rank by score, from 1, and whether they are qualified."""
    return [
        (sample.ranks[at] + 1, sample.labels[at] == "1")
        for design in designs
        for sample in samples(design)
        for at in range(len(sample.rows))
        if sample.labels[at] in "01"
    ]


def display(designs: Sequence[Design], full: str) -> Display:
    """How far it is, group by group; ``full`` is all there is to say."""
    facts, waiting, received = [], 0, 0
    for design in designs:
        sample, members = stage(design)
        marks = [sample.labels[at] for at in members.tolist()]
        waiting += marks.count(WAITING)
        received += len(marks) - marks.count(WAITING)
        facts.append((design.group or "promise", design.promise.describe()))
    progress = f"{received:,} of {received + waiting:,} labels of this stage are here"
    if not waiting:  # what comes after the design: the promise, or why there is none
        verdict = full.partition("\n\n")[2].partition("\n")[0]
        return Display(f"{progress}: all of them", verdict, facts, folded=[("In full", full.splitlines())])
    line = f"{progress}; {counted(waiting, 'candidate')} to label next"
    return Display(line, f"{line}.", facts, folded=[("In full", full.splitlines())])


def _design(design: Design) -> list[str]:
    target = design.promise
    whose = "" if design.group is None else f"Group {design.group!r}: "
    lines = [f"{whose}{target.describe()}; {counted(design.size, 'candidate')}, alpha {design.alpha:g}."]
    if target.sample == "control":
        text = (
            f"A control sample of {design.drawn:,}, drawn at random from all {design.size:,}. The list will "
            "be everyone at or above the threshold and the sample itself. Every label is needed."
        )
        return [*lines, *_wrapped(text), *_came(design.main, "control sample")]
    if design.pilot is not None:
        lines += _wrapped(_about_pilot(design, future=target.about is not About.COLLECTION))
        lines += _came(design.pilot, "pilot")
    if design.chosen is None:
        lines += _wrapped(
            f"Then {design.drawn:,} labels of a block that the pilot chooses, at "
            f"{percent(design.alpha * (1 - design.fallback))}."
        )
        return lines
    block = design.blocks[design.chosen]
    how = "fixed at the start" if design.pilot is None else "chosen from the pilot, before its labels"
    text = (
        f"Block: the best {number(block)} candidates, {how}; {design.drawn:,} of them, drawn at random, are "
        f"labelled and tested at {percent(design.alpha * (1 - design.fallback))}."
    )
    members = design.main.inside(design.chosen).tolist()
    return [*lines, *_wrapped(text), *_came(design.main, "block", members)]


def _about_pilot(design: Design, *, future: bool) -> str:
    assert design.pilot is not None
    rows = len(design.pilot.rows)
    among = f"of {design.apart:,} candidates set aside at random" if future else "of all"
    tail = (
        f" They also test that block, at {percent(design.alpha * design.fallback)}, as a fall-back."
        if design.fallback
        else ""
    )
    return (
        f"Pilot: {rows:,} labels from the best {design.pilot_block:,} {among}; they choose the block.{tail}"
    )


def _came(sample: Sample, name: str, members: list[int] | None = None) -> list[str]:
    received, asked, good = _counts(sample, members)
    return [f"  {name}: {received:,} of {asked:,} labels are here, {good:,} qualified."]


def _counts(sample: Sample, members: list[int] | None) -> tuple[int, int, int]:
    """How many labels have come, of how many, and how many of them are qualified."""
    labels = list(sample.labels) if members is None else [sample.labels[at] for at in members]
    return len(labels) - labels.count(WAITING), len(labels), labels.count("1")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent="  ", subsequent_indent="  ")
