"""Whether a labelling could ever certify its target, asked before anything is drawn; how many labels could.

Not whether it will: that depends on the labels. Here every label may turn out as well as can be.
"""

from __future__ import annotations

import math
from typing import Any

from surelist.bounds.control_sample import control_rule
from surelist.bounds.counts import critical_count
from surelist.errors import InvalidInput
from surelist.lifecycle.block_design import Layout, Need, lay_out
from surelist.promises.phrases import counted, percent
from surelist.promises.promise import About, Promise

SEARCHED = 20_000  # candidates up to which the fewest labels are searched for; beyond, some that could


def need(target: Promise, size: int) -> Need:
    """How many qualified rows of the collection the target asks for, as a share of it."""
    return Need(*target.block_need(size))


def lay_out_target(target: Promise, size: int, labels: int, alpha: float, options: dict[str, Any]) -> Layout:
    """The design of ``labels`` labels of ``size`` candidates."""
    if target.sample == "control":
        return Layout(0, 0, 0, (size,), labels, 0.0)
    future = target.about is not About.COLLECTION
    return lay_out(size, labels, need(target, size), alpha=alpha, future=future, **options)


def require_enough(
    target: Promise, size: int, labels: int, alpha: float, options: dict[str, Any], groups: int
) -> Layout:
    """The design, where it can certify; else an error with a number of labels that could."""
    layout = lay_out_target(target, size, labels, alpha, options)
    if _could(target, size, layout, alpha):
        return layout
    enough = _enough(target, size, labels, alpha, options)
    whose = f" in each of {groups} groups" if groups > 1 else ""
    asked = f"{target.describe()} at alpha {percent(alpha)}"
    way_out = (
        f"no number of labels of these {counted(size, 'candidate')} could; ask for less, or bring more"
        if enough is None
        else f"{enough * groups:,} could, if enough of them are qualified"
    )
    raise InvalidInput(
        "labels",
        f"{counted(labels, 'label')}{whose} cannot certify {asked}, however they turn out; {way_out}.",
    )


def _could(target: Promise, size: int, layout: Layout, alpha: float) -> bool:
    if target.sample == "control":
        return _recall_could(size, layout.labels, target, alpha)
    free = size - (layout.apart or layout.pilot_labels)
    if layout.fallback and layout.pilot_labels:
        part = layout.apart or size
        if _needed(target, part, layout.pilot_block, layout.pilot_labels, alpha * layout.fallback) <= 0:
            return True
    main = alpha * (1 - layout.fallback)
    known = layout.pilot_labels if target.about is About.COLLECTION else 0
    # the widest block needs the fewest
    return any(_needed(target, free, block, layout.labels, main, known) <= 0 for block in layout.blocks[::-1])


def _needed(target: Promise, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
    """How many qualified ones would be missing if all that are drawn were qualified."""
    return target.block_count(size, block, drawn, alpha, known) - drawn


def _recall_could(size: int, labels: int, target: Promise, alpha: float) -> bool:
    """Twice as many as the binomial rule needs always can: their failure is at most alpha squared."""
    if labels >= 2 * _binomial(target, alpha):
        return True
    return control_rule(size, labels, target.kept_share, alpha).needed is not None


def _binomial(target: Promise, alpha: float) -> int:
    """The fewest qualified ones with which the binomial rule keeps a share: share^n <= alpha."""
    share = target.kept_share
    count = max(1, math.ceil(math.log(alpha) / math.log(float(share))) - 1)
    while critical_count(count, share, alpha) > count:
        count += 1
    return count


def _enough(target: Promise, size: int, labels: int, alpha: float, options: dict[str, Any]) -> int | None:
    """A number of labels that could: the fewest, or in large collections those of the binomial rule."""

    def could(number: int) -> bool:
        return _could(target, size, lay_out_target(target, size, number, alpha, options), alpha)

    low, high = labels, min(size, 2 * labels)
    if target.sample == "control":
        high = min(size, _binomial(target, alpha))
    while not could(high):
        if high == size:
            return None
        low, high = high, min(size, 2 * high)
    while high - low > 1 and (size <= SEARCHED or target.sample != "control"):
        middle = (low + high) // 2
        low, high = (low, middle) if could(middle) else (middle, high)
    return high
