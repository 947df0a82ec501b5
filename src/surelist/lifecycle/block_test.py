"""What finished labels prove: thresholds of the block, of the pilot's own block, and of a control sample.

The block's test and the pilot's share alpha; the larger of the two thresholds is valid at the sum. For a
promise about the collection itself the pilot's labels in the block are known: the prefixes of the block are
tested from the longest to shorter ones, and the first that fails ends it [theory: few-labels].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist.bounds.control_sample import control_rule
from surelist.errors import NotCertifiable
from surelist.lifecycle.block_design import Need
from surelist.lifecycle.labelling_file import Design, Sample
from surelist.promises.kinds.few_labels import BlockSample, ControlSample
from surelist.promises.promise import About, Level, Promise
from surelist.promises.state import Cutoff, Step, refuse

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockVerdict:
    """A threshold with its proof, or the refusal. ``listed``: candidates at or above it, about."""

    threshold: float
    count: int
    rows: int
    qualified: int
    listed: int | None
    proof: Any
    refusal: NotCertifiable | None = None


def need(target: Promise, size: int) -> Need:
    """How many qualified rows of the collection the target asks for, as a share of it."""
    return Need(*target.block_need(size))


def run_tests(design: Design) -> BlockVerdict:
    """The larger of the thresholds that the stages certify, or the refusal."""
    if design.promise.sample == "control":
        return _run_control(design)
    main, fallback = _run_block(design), run_fallback(design)
    passed = [each for each in (main, fallback) if each is not None]
    if passed:
        return max(passed, key=lambda verdict: verdict.threshold)
    return _refused(design)


def cutoff_of(design: Design) -> Cutoff:
    """The threshold that the labels certify, with its proof; raises the refusal where there is none."""
    verdict = run_tests(design)
    if verdict.refusal is not None:
        raise verdict.refusal
    level, target = Level(design.alpha, "exact"), design.promise
    step = Step(0, verdict.count, verdict.threshold, share=listed_share(design, verdict))
    return Cutoff(design.group, target, level, verdict.rows, verdict.qualified, (step,), proof=verdict.proof)


def listed_share(design: Design, verdict: BlockVerdict) -> float | None:
    """How much of the collection scores at or above the threshold, about; None for a recall, whose list has
    the sample on it as well."""
    if verdict.listed is None or design.promise.sample == "control":
        return None
    return verdict.listed / design.size


def run_fallback(design: Design) -> BlockVerdict | None:
    """The pilot's own block, fixed beforehand, at its share of alpha."""
    pilot, target = design.pilot, design.promise
    alpha = design.alpha * design.fallback
    if pilot is None or alpha == 0:
        return None
    size = design.apart or design.size
    drawn = len(pilot.rows)
    count = target.block_count(size, design.pilot_block, drawn, alpha)
    hits = np.flatnonzero(pilot.qualified(np.arange(drawn)))
    if count > len(hits):
        return None
    at = int(hits[max(count, 1) - 1])
    proof = _proof(design, size, design.pilot_block, drawn, alpha, 0, count, "pilot")
    return _verdict(design, pilot.scores[at], pilot.ranks[at], count, proof)


def _run_block(design: Design) -> BlockVerdict | None:
    assert design.chosen is not None
    target, sample = design.promise, design.main
    members = sample.inside(design.chosen)
    hits = members[sample.qualified(members)]  # best first
    alpha, block = design.alpha * (1 - design.fallback), design.blocks[design.chosen]
    if target.about is About.COLLECTION:
        return _run_prefixes(design, target, hits, alpha, block)
    size = _free(design)
    count = target.block_count(size, block, design.drawn, alpha)
    if count > len(hits):
        return None
    at = int(hits[count - 1])
    proof = _proof(design, size, block, design.drawn, alpha, 0, count, "block")
    return _verdict(design, sample.scores[at], sample.ranks[at], count, proof)


def _proof(design: Design, *numbers: Any) -> BlockSample:
    return BlockSample(design.group, design.size, *numbers)


def _run_prefixes(
    design: Design, target: Promise, hits: NDArray[np.int64], alpha: float, block: int
) -> BlockVerdict | None:
    """From the whole block up, while the fresh hits suffice beside the qualified rows that are known."""
    sample = design.main
    fresh = np.array([sample.scores[at] for at in hits.tolist()])
    pilot, ranks = _known(design, block)
    best: tuple[float, int, int] | None = None
    for threshold in np.unique(np.concatenate([fresh, pilot])):
        count, known = int((fresh >= threshold).sum()), int((pilot >= threshold).sum())
        if count < target.block_count(block, block, design.drawn, alpha, known):
            break
        best = float(threshold), count, known
    if best is None:
        return None
    threshold, count, known = best
    proof = _proof(design, _free(design), block, design.drawn, alpha, known, count, "block")
    every = {**dict(zip(pilot.tolist(), ranks, strict=True)), **_ranks_of(sample, hits)}
    return _verdict(design, threshold, every[threshold], count, proof)


def _known(design: Design, block: int) -> tuple[Floats, list[int]]:
    """Scores and ranks of the pilot's qualified rows inside the block."""
    pilot = design.pilot
    if pilot is None:
        return np.zeros(0), []
    # the block's rows that were not in the pilot, and the pilot's rows among them
    end = block
    for rank in pilot.ranks:
        if rank < end:
            end += 1
    inside = [at for at, rank in enumerate(pilot.ranks) if rank < end and pilot.labels[at] == "1"]
    return np.array([pilot.scores[at] for at in inside]), [pilot.ranks[at] for at in inside]


def _ranks_of(sample: Sample, rows: NDArray[np.int64]) -> dict[float, int]:
    return {sample.scores[at]: sample.ranks[at] for at in rows.tolist()}


def _run_control(design: Design) -> BlockVerdict:
    sample, share = design.main, design.promise.kept_share
    members = np.arange(len(sample.rows))
    hits = members[sample.qualified(members)]
    rule = control_rule(design.size, len(members), share, design.alpha)
    drop = rule.drops[len(hits)]
    if drop < 0:
        needed = rule.needed
        enough = "no number of qualified ones would do" if needed is None else f"{needed:,} would do"
        return _refusal(
            design, f"{len(hits):,} of the {len(members):,} candidates drawn are qualified; {enough}. Draw "
            "more candidates for a new labelling, or ask for a smaller share.", needed or 0,
        )  # fmt: skip
    at = int(hits[len(hits) - 1 - drop])
    proof = ControlSample(design.group, design.size, len(members), len(hits), drop)
    return _verdict(design, sample.scores[at], sample.ranks[at], len(hits) - drop, proof)


def _verdict(design: Design, threshold: float, rank: int, count: int, proof: Any) -> BlockVerdict:
    rows, qualified = _labelled(design)
    return BlockVerdict(threshold, count, rows, qualified, rank + 1, proof)


def _labelled(design: Design) -> tuple[int, int]:
    """Rows labelled in all, and how many of them are qualified."""
    members = design.main.inside(design.chosen or 0)
    rows, good = len(members), int(design.main.qualified(members).sum())
    if design.pilot is not None:
        rows, good = rows + len(design.pilot.rows), good + design.pilot.labels.count("1")
    return rows, good


def _refused(design: Design) -> BlockVerdict:
    assert design.chosen is not None
    target, block = design.promise, design.blocks[design.chosen]
    members = design.main.inside(design.chosen)
    good = int(design.main.qualified(members).sum())
    count = target.block_count(_free(design), block, design.drawn, design.alpha * (1 - design.fallback))
    return _refusal(
        design, f"{count:,} qualified are needed among the {design.drawn:,} labelled of the best {block:,} "
        f"candidates, and {good:,} are. A new labelling with more labels, or a smaller k, draws afresh.",
        count,
    )  # fmt: skip


class Labelled(Struct, frozen=True):
    """How many rows have labels, and how many of them are qualified."""

    rows: int
    qualified: int


def _refusal(design: Design, reason: str, count: int) -> BlockVerdict:
    rows, qualified = _labelled(design)
    error = refuse(design.promise, Level(design.alpha), Labelled(rows, qualified), reason, count=count)
    return BlockVerdict(float("nan"), count, rows, qualified, None, None, error)


def _free(design: Design) -> int:
    """Rows that the block's test is about: not set aside, and for the collection itself not in the pilot."""
    return design.size - (design.apart or (len(design.pilot.rows) if design.pilot is not None else 0))
