"""A share of the list is qualified: a pilot, a sample of a block of the best, and prefixes tested in order.

The list is everyone down to the last prefix that passes but those labelled not qualified, everyone labelled
qualified, and *pads*: rows that may join unseen in place of those that left [theory: collection-precision].
Where no prefix passes it is those labelled qualified and their pads. Plans come from
``labelling_precision_plan``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from surelist._files import hold
from surelist._scalars import as_fraction
from surelist.bounds.collection_precision import Prefix, last_passing, most_pads
from surelist.lifecycle.block_draw import block_sizes, draw_blocks
from surelist.lifecycle.labelling_design import (
    BlockDraws,
    Design,
    Finding,
    Sample,
    ScoredCollection,
    Stage,
    wrapped,
)
from surelist.lifecycle.labelling_pilot import Curve, pilot_ranks
from surelist.lifecycle.labelling_precision_plan import closer_look, pilot_size, plan_block
from surelist.promises.kinds.few_labels import PrefixSample
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import Promise

STEP = 1.04  # between neighbouring prefixes
TOP = 2  # times the labels: so many of the best are kept by name, to be labelled one after another
PARTS = 100  # weights are whole numbers that add up to this


class PrecisionDesign(Design, tag="precision"):
    """Prefixes end at ``ends`` (ranks), which are ends of scores: everyone down to there has ``cuts`` or
    more.

    ``draws`` are of the closer look and of the block; the sample of a prefix of at most ``whole`` rows is
    all of it. A stage's ``chosen`` is the number of an end.
    """

    labels: int
    best: float  # the highest score
    ends: list[int]
    cuts: list[float]
    draws: list[BlockDraws]
    whole: list[int]

    pilots = ("pilot", "closer look")

    @classmethod
    def start(
        cls, collection: ScoredCollection, group: str | None, target: Promise, alpha: float, labels: int,
        options: dict[str, Any], rng: np.random.Generator,
    ) -> PrecisionDesign:  # fmt: skip
        """Draw everything that may be asked of one group."""
        size = collection.sizes[group]
        ends, cuts, best = score_ends(collection, group)
        pilot = pilot_ranks(size, pilot_size(labels, size), labels, rng)
        whole = [min(size, max(1, math.ceil(labels / 5))), min(size, labels)]
        drawn = [draw_blocks(np.zeros(0, dtype=np.int64), blocks_of(ends, each), each, rng) for each in whole]
        top = np.arange(min(size, TOP * labels))
        ranks = np.unique(np.concatenate([pilot, top, *(each.ranks for each in drawn)]))
        draws = [BlockDraws.located(each, ranks, rng.permutation(len(each.ranks))) for each in drawn]
        asked = np.searchsorted(ranks, pilot).tolist()
        return cls(
            group=group, target=msgspec.to_builtins(target), alpha=alpha, size=size, labels=labels, best=best,
            ends=ends, cuts=cuts, draws=draws, whole=whole, sample=Sample.fetch(collection, group, ranks),
            stages=[Stage("pilot", asked)],
        )  # fmt: skip

    def next_stage(self) -> Stage | None:
        left = self.labels - len(self.asked_before(len(self.stages)))
        if left <= 0 or self.stages[-1].name == "below":
            return None
        if self.stages[-1].name == "block":
            return self._below(left)
        share = float(self.promise.kept_share)
        curve = self._curve()
        if self.stages[-1].name == "pilot":
            look = closer_look(curve, self.ends, self.labels, left, share)
            if look is not None:
                return self._drawn("closer look", *look)
        plan = plan_block(curve, self.ends, left, share, self.alpha)
        if plan is None:
            return self._below(left)
        stage = self._drawn("block", plan.end, plan.labels)
        stage.steps, stage.weights = plan.steps, plan.weights
        return stage

    def _curve(self) -> Curve:
        known = sorted(self.asked_before(len(self.stages)))
        ranks = np.array([self.sample.ranks[at] for at in known])
        return Curve.of(
            self.size, self.labels, ranks, np.array([self.sample.labels[at] == "1" for at in known])
        )

    def _drawn(self, name: str, end: int, labels: int) -> Stage:
        before = self.asked_before(len(self.stages))
        return Stage(name, sorted(self._fresh(name, end, before)[:labels]), end)

    def _fresh(self, name: str, end: int, before: set[int]) -> list[int]:
        """Places that a stage may ask for: a uniform sample of a prefix, in random order, but for those
        that were asked for before. It was drawn without them in mind: what is left is a uniform sample of
        the others."""
        which = 0 if name == "closer look" else 1
        draw, whole, ranks = self.draws[which], self.whole[which], self.sample.ranks
        block = blocks_of(self.ends, whole).index(max(self.ends[end], whole))
        return [at for at in draw.of(block) if at not in before and ranks[at] < self.ends[end]]

    def _below(self, left: int) -> Stage | None:
        """The best of those nobody has asked for, from the end of the list on."""
        before, end = self.asked_before(len(self.stages)), self._passed()[0]
        free = [at for at, rank in enumerate(self.sample.ranks) if rank >= end and at not in before]
        return Stage("below", free[:left]) if free else None

    def _tested(self) -> int | None:
        """The number of the stage that tests prefixes."""
        return next((n for n, stage in enumerate(self.stages) if stage.name == "block"), None)

    def _passed(self) -> tuple[int, Prefix, Fraction]:
        """The last prefix that passes: where it ends, its counts and the level it passed at; 0 for none."""
        tested, none = self._tested(), (0, Prefix(0, 0, 0), Fraction(0))
        if tested is None:
            return none
        stage, ranks = self.stages[tested], np.array(self.sample.ranks)
        known, fresh = ranks[sorted(self.asked_before(tested))], ranks[stage.asked]
        failed = ranks[[at for at in stage.asked if self.sample.labels[at] != "1"]]
        prefixes = [
            Prefix(end - int((known < end).sum()), int((fresh < end).sum()), int((failed < end).sum()))
            for end in (self.ends[step] for step in stage.steps)
        ]
        alpha = as_fraction(self.alpha, "alpha")
        weights = [alpha * Fraction(weight, PARTS) for weight in stage.weights]
        last, level = last_passing(prefixes, weights, self.promise.kept_share, self._known_good())
        return none if last < 0 else (self.ends[stage.steps[last]], prefixes[last], level)

    def _known_good(self) -> int:
        """How many were known to be qualified when the prefixes were tested."""
        return len(self.sample.marked([*self.asked_before(self._tested() or 0)]))

    def _list(self) -> tuple[int, list[int], list[int], PrefixSample]:
        """Where the prefix ends, who is on the list by name, who is not, and the proof."""
        end, prefix, level = self._passed()
        tested = self._tested() if end else 0  # where nothing passed, no test counted anybody
        before = self.asked_before(tested or 0)
        asked = sorted(self.asked_before(len(self.stages)))
        later = [at for at in asked if at not in before]
        good, ranks = self.sample.marked(asked), self.sample.ranks
        dropped = sum(ranks[at] < end for at in self.sample.marked(later, "0"))
        found = sum(ranks[at] >= end for at in self.sample.marked(later))
        off = self.sample.marked(asked, "0") + self.sample.marked([*before], "-")
        unseen = [at for at, rank in enumerate(ranks) if rank >= end and self.sample.labels[at] == "?"]
        pads = unseen[: most_pads(self.promise.kept_share, dropped, found)]
        listed = end - sum(ranks[at] < end for at in off) + sum(ranks[at] >= end for at in good) + len(pads)
        proof = PrefixSample(
            self.group, self.size, end, prefix.free, prefix.drawn, prefix.failed,
            self._known_good() if end else 0, float(level), dropped, found, len(pads), listed,
        )  # fmt: skip
        return end, good + pads, off, proof

    def verdict(self) -> Finding:
        end, _, _, proof = self._list()
        counts = self.labelled()
        threshold = self.cuts[self.ends.index(end)] if end else math.nextafter(self.best, math.inf)
        return Finding(
            threshold, counts.qualified, counts.rows, counts.qualified, proof.listed, proof,
            share=proof.listed / self.size,
        )  # fmt: skip

    def named(self) -> tuple[list[int], list[int]]:
        _, on, off, _ = self._list()
        return on, off

    def verify(self) -> None:
        super().verify()
        ends, names = self.ends, [stage.name for stage in self.stages]
        hold(len(ends) == len(self.cuts) > 0 and ends == sorted(set(ends)), "its prefixes are out of order")
        hold(ends[0] > 0 and ends[-1] == self.size, "its prefixes do not fit the collection")
        hold(
            self.cuts == sorted(self.cuts, reverse=True) and self.best >= self.cuts[0],
            "its cuts are impossible",
        )
        hold(len(self.draws) == len(self.whole) == 2, "it has other draws than its design")
        for draw, whole in zip(self.draws, self.whole, strict=True):
            blocks = blocks_of(ends, whole)
            draw.verify(self.sample, len(blocks))
            sizes = [len(draw.of(block)) for block in range(len(blocks))]
            hold(sizes == [min(whole, self.size)] * len(blocks), "a block's sample has another size")
        known = ("pilot", "closer look", "block", "below")
        hold(
            names[0] == "pilot" and names == [each for each in known if each in names],
            "its stages are others",
        )
        for at, stage in enumerate(self.stages):
            self._verify_stage(stage, self.asked_before(at))
        hold(len(self.asked_before(len(names))) <= self.labels, "it asks for more labels than it may")

    def _verify_stage(self, stage: Stage, before: set[int]) -> None:
        if stage.name in ("closer look", "block"):
            hold(
                stage.chosen is not None and 0 <= stage.chosen < len(self.ends), "a block is none of its own"
            )
            fresh = self._fresh(stage.name, stage.chosen or 0, before)
            hold(
                stage.asked == sorted(fresh[: len(stage.asked)]),
                "a stage asks for other rows than were drawn",
            )
        if stage.name == "block":
            steps, weights = stage.steps, stage.weights
            hold(len(steps) == len(weights) > 0 and steps == sorted(set(steps)), "its tests are out of order")
            hold(steps[0] >= 0 and steps[-1] <= (stage.chosen or 0), "its tests go beyond its block")
            hold(min(weights) >= 0 and sum(weights) <= PARTS, "its weights are more than alpha")

    def describe(self) -> list[str]:
        lines = super().describe()
        for stage in self.stages:
            asked = counted(len(stage.asked), "candidate")
            texts = {
                "pilot": f"Pilot: {asked} from all ranks, to choose what follows.",
                "closer look": f"A closer look: {asked}, drawn at random from the best "
                f"{number(self.ends[stage.chosen or 0])}, to choose what follows.",
                "block": f"Block: {asked}, drawn at random from the best "
                f"{number(self.ends[stage.chosen or 0])}, which were chosen before. Their labels test "
                f"{counted(len(stage.steps), 'list')}, the shortest first, at {percent(self.alpha)} in all.",
                "below": f"The {asked} that come next in the ranking: those that qualify are listed by name.",
            }
            lines += [*wrapped(texts[stage.name]), self.came(stage)]
        left = self.labels - len(self.asked_before(len(self.stages)))
        if self.waiting and left > 0 and self.stages[-1].name != "below":
            lines += wrapped(f"Then {counted(left, 'label')} more.")
        return lines


def blocks_of(ends: list[int], whole: int) -> list[int]:
    """The prefixes that a draw has samples of: the smallest is taken whole."""
    return [whole, *(end for end in ends if end > whole)]


def score_ends(collection: ScoredCollection, group: str | None) -> tuple[list[int], list[float], float]:
    """Where prefixes of growing length end, each moved on to the end of its score; their lowest scores; the
    best score of all."""
    size = collection.sizes[group]
    ends = np.array(block_sizes(1, size, STEP), dtype=np.int64)
    around = np.unique(np.concatenate([ends - 1, np.minimum(ends, size - 1)]))
    scores = collection.at(group, around).scores
    last, after = (scores[np.searchsorted(around, at)] for at in (ends - 1, np.minimum(ends, size - 1)))
    inside = (last == after) & (ends < size)
    tied = np.unique(last[inside]).tolist()
    reached = dict(zip(tied, collection.reaching(group, tied), strict=True))
    moved = {reached[cut] if cross else end: cut for end, cut, cross in zip(
        ends.tolist(), last.tolist(), inside.tolist(), strict=True
    )}  # fmt: skip
    return sorted(moved), [moved[end] for end in sorted(moved)], float(scores[0])
