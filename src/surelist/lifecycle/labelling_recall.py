"""A share of all qualified: a pilot chooses between one random sample of everyone and two draws.

One sample: the drops that it allows [theory: collection-recall]. Two draws: how many qualify at the top,
and how far up from the bottom they may be missed [theory: collection-recall-block]. Either way whoever is
labelled not qualified leaves the list and whoever is labelled qualified stays on it. Plans come from
``labelling_recall_plan``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from surelist._files import hold
from surelist._scalars import as_fraction
from surelist.bounds.collection_recall import (
    allowed_hits,
    at_least,
    largest_block,
    levels,
    may_miss,
    most_left_out,
)
from surelist.bounds.control_sample import control_rule
from surelist.lifecycle.block_draw import RankDraw, block_sizes, draw_blocks
from surelist.lifecycle.labelling_design import (
    BlockDraws,
    Design,
    Finding,
    Sample,
    ScoredCollection,
    Stage,
    wrapped,
)
from surelist.lifecycle.labelling_enough import require_enough
from surelist.lifecycle.labelling_pilot import Curve, pilot_ranks
from surelist.lifecycle.labelling_recall_plan import (
    PREFERRED,
    Tail,
    best_allowed,
    expected_uniform,
    plan_first,
)
from surelist.promises.kinds.few_labels import ControlSample, TwoDraws
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import Promise

UNIFORM, FIRST, SECOND = "control sample", "first draw", "second draw"
STEP = 1.04  # between neighbouring blocks
FEWEST = 100  # labels below which a pilot says nothing
PILOT = 0.05  # of the labels


class RecallDesign(Design, tag="control"):
    """Blocks of ``sizes`` rows, from the top for the first draw and from the bottom for the second.

    The sample of a block of at most ``labels`` rows is all of it; the rows just above each bottom block are
    kept too. A stage's ``chosen`` is the number of a size.
    """

    labels: int
    sizes: list[int]
    draws: list[BlockDraws]

    @classmethod
    def start(
        cls, collection: ScoredCollection, group: str | None, target: Promise, alpha: float, labels: int,
        options: dict[str, Any], rng: np.random.Generator,
    ) -> RecallDesign:  # fmt: skip
        """Draw everything that may be asked of one group."""
        size = collection.sizes[group]
        pilot = np.zeros(0, dtype=np.int64)
        if FEWEST <= labels < size:
            pilot = pilot_ranks(size, int(PILOT * labels), labels, rng)
        else:
            require_enough(target, size, labels, alpha, options, len(collection.sizes))
        sizes = block_sizes(1, size, STEP)
        blocks = [labels, *(each for each in sizes if each > labels)]
        top, bottom = (draw_blocks(np.zeros(0, dtype=np.int64), blocks, labels, rng) for _ in range(2))
        bottom = RankDraw(size - 1 - bottom.ranks, bottom.enters, bottom.leaves)
        edges = np.array([max(0, size - each - 1) for each in sizes])
        ranks = np.unique(np.concatenate([pilot, top.ranks, bottom.ranks, edges, [0]]))
        draws = [BlockDraws.located(each, ranks, rng.permutation(len(each.ranks))) for each in (top, bottom)]
        made = cls(
            group=group, target=msgspec.to_builtins(target), alpha=alpha, size=size, labels=labels,
            sizes=sizes, draws=draws, sample=Sample.fetch(collection, group, ranks),
            stages=[Stage("pilot", np.searchsorted(ranks, pilot).tolist())],
        )  # fmt: skip
        if not len(pilot):
            made.stages = [made._drawn(UNIFORM, len(sizes) - 1, labels)]
        return made

    def next_stage(self) -> Stage | None:
        left = self.labels - len(self.asked_before(len(self.stages)))
        if left <= 0 or self.stages[-1].name in (UNIFORM, SECOND):
            return None
        share, alpha = self.promise.kept_share, as_fraction(self.alpha, "alpha")
        curve = self._curve()
        if self.stages[-1].name == FIRST:
            return self._second(curve, left, share)
        first = plan_first(curve, np.array(self._ends()), left, share, alpha)
        if expected_uniform(curve, left, share, self.alpha) < PREFERRED * first.expected:
            return self._drawn(UNIFORM, len(self.sizes) - 1, left)
        return self._drawn(FIRST, self.sizes.index(self._ends()[first.end]), first.labels)

    def _ends(self) -> list[int]:
        """Ends of the first draw that are tried: some of the sizes."""
        return self.sizes[:-1:6]

    def _second(self, curve: Curve, left: int, share: Fraction) -> Stage:
        """The block at the bottom: the largest that certifies the hits that are best allowed."""
        kept, level = self._kept()
        tail, top = Tail.of(curve), self.sizes[self.stages[1].chosen or 0]
        missable, found = may_miss(share, kept), curve.found
        listed = np.asarray(curve.labelled_above(tail.ranks), dtype=np.float64) - found
        _, allowed = best_allowed(curve, tail, missable, left, level, top, found, listed)
        before = sorted(self.asked_before(len(self.stages)))
        known = np.array([self.sample.ranks[at] for at in before])
        free = np.array([each - int((known >= self.size - each).sum()) for each in self.sizes])
        most = largest_block(int(free[-1]), missable, min(left, int(free[-1])), allowed, level)
        fits = np.flatnonzero((free <= most) & (self.size - np.array(self.sizes) >= top))
        return self._drawn(SECOND, int(fits[-1]) if len(fits) else 0, left)

    def _curve(self) -> Curve:
        known = sorted(self.asked_before(len(self.stages)))
        ranks = np.array([self.sample.ranks[at] for at in known])
        good = np.array([self.sample.labels[at] == "1" for at in known])
        return Curve.of(self.size, self.labels, ranks, good)

    def _drawn(self, name: str, block: int, labels: int) -> Stage:
        before = self.asked_before(len(self.stages))
        return Stage(name, sorted(self._fresh(name, block, before)[:labels]), block)

    def _fresh(self, name: str, block: int, before: set[int]) -> list[int]:
        """Places that a stage may ask for: a uniform sample of its block, in random order, but for those that
        were asked for before. It was drawn without them in mind: what is left is uniform too."""
        draw, rows, ranks = self.draws[0 if name == FIRST else 1], self.sizes[block], self.sample.ranks
        later = [each for each in self.sizes if each > self.labels]
        places = draw.of(later.index(rows) + 1 if rows > self.labels else 0)
        low, high = (0, rows) if name == FIRST else (self.size - rows, self.size)
        return [at for at in places if at not in before and low <= ranks[at] < high]

    def _inside(self, places: set[int], low: int, high: int) -> int:
        return sum(low <= self.sample.ranks[at] < high for at in places)

    def _top(self) -> tuple[int, int, int]:
        """Of the first draw: free rows of its block, rows drawn, and how many of them qualify."""
        stage = self.stages[1]
        end = self.sizes[stage.chosen or 0]
        free = end - self._inside(self.asked_before(1), 0, end)
        return free, len(stage.asked), len(self.sample.marked(stage.asked))

    def _kept(self) -> tuple[int, Fraction]:
        """Qualified rows that the list keeps for sure before the second draw, and that draw's level."""
        free, drawn, hits = self._top()
        counting, level = levels(as_fraction(self.alpha, "alpha"), census=drawn == free)
        known = len(self.sample.marked([*self.asked_before(1)]))
        return known + at_least(hits, free, drawn, counting), level

    def verdict(self) -> Finding:
        return self._uniform() if self.stages[-1].name == UNIFORM else self._two_draws()

    def _uniform(self) -> Finding:
        places = self.stages[-1].asked
        hits, known = self.sample.marked(places), len(self.asked_before(len(self.stages) - 1))
        rule = control_rule(self.size - known, len(places), self.promise.kept_share, self.alpha)
        drop = rule.drops[len(hits)]
        if drop < 0:
            needed = rule.needed
            enough = "no number of qualified ones would do" if needed is None else f"{needed:,} would do"
            return self.refused(
                f"{len(hits):,} of the {len(places):,} candidates drawn are qualified; {enough}. Draw "
                "more candidates for a new labelling, or ask for a smaller share.", needed or 0,
            )  # fmt: skip
        proof = ControlSample(self.group, self.size, len(places), len(hits), drop, known)
        return self._listing(self.sample.ranks[hits[len(hits) - 1 - drop]] + 1, len(hits) - drop, proof)

    def _two_draws(self) -> Finding:
        stage = self.stages[-1]
        rows, hits = self.sizes[stage.chosen or 0], self.sample.marked(stage.asked)
        begin = self.size - rows
        free = rows - self._inside(self.asked_before(2), begin, self.size)
        kept, level = self._kept()
        missable = may_miss(self.promise.kept_share, kept + len(hits))
        allowed = allowed_hits(free, missable, len(stage.asked), level)
        if allowed < 0:
            return self.refused(
                f"{len(hits):,} of the {len(stage.asked):,} drawn from the lowest {rows:,} qualify, beside "
                f"{kept:,} above: too few to leave anybody out. Draw more for a new labelling, or ask for a "
                "smaller share.", kept + len(hits),
            )  # fmt: skip
        known = len(self.sample.marked([*self.asked_before(1)]))
        proof = TwoDraws(
            self.group, self.size, known, self.sizes[self.stages[1].chosen or 0], *self._top(), begin, free,
            len(stage.asked), len(hits), min(allowed, len(hits)),
        )  # fmt: skip
        cut = begin if len(hits) <= allowed else self.sample.ranks[hits[len(hits) - 1 - allowed]] + 1
        return self._listing(cut, kept + len(hits), proof)

    def _listing(self, cut: int, count: int, proof: ControlSample | TwoDraws) -> Finding:
        """Everyone above the cut but those labelled not qualified, and those labelled qualified below it."""
        counts, (on, off) = self.labelled(), self.named()
        listed = cut - self._inside({*off}, 0, cut) + self._inside({*on}, cut, self.size)
        scores, ranks = self.sample.scores, self.sample.ranks
        threshold = scores[ranks.index(cut - 1)] if cut else math.nextafter(scores[0], math.inf)
        return Finding(threshold, count, counts.rows, counts.qualified, listed, proof)

    def named(self) -> tuple[list[int], list[int]]:
        asked = sorted(self.asked_before(len(self.stages)))
        return self.sample.marked(asked), self.sample.marked(asked, "0")

    def verify(self) -> None:
        super().verify()
        sizes, names = self.sizes, [stage.name for stage in self.stages]
        hold(sizes == block_sizes(1, self.size, STEP), "its blocks are others")
        edges = {0, *(self.size - each - 1 for each in sizes if each < self.size)}
        hold(edges <= set(self.sample.ranks), "the ends of its blocks are not in its sample")
        known = (["pilot"], ["pilot", UNIFORM], [UNIFORM], ["pilot", FIRST], ["pilot", FIRST, SECOND])
        hold(names in known, "its stages are not those of its design")
        hold(len(self.draws) == 2, "it has other draws than its design")
        blocks = 1 + sum(each > self.labels for each in sizes)
        for draw in self.draws:
            draw.verify(self.sample, blocks)
            held = [len(draw.of(block)) for block in range(blocks)]
            hold(held == [min(self.labels, self.size)] * blocks, "a block's sample has another size")
        for at, stage in enumerate(self.stages):
            if stage.name != "pilot":
                hold(
                    stage.chosen is not None and 0 <= stage.chosen < len(sizes), "a block is none of its own"
                )
                fresh = self._fresh(stage.name, stage.chosen or 0, self.asked_before(at))
                hold(
                    stage.asked == sorted(fresh[: len(stage.asked)]),
                    "a stage asks for others than were drawn",
                )
        if names[-1] == UNIFORM:
            hold(self.stages[-1].chosen == len(sizes) - 1, "its sample is not of everyone")
        if SECOND in names:
            top, rows = (sizes[stage.chosen or 0] for stage in self.stages[1:])
            hold(self.size - rows >= top, "its second draw begins above the end of its first")
        hold(len(self.asked_before(len(names))) <= self.labels, "it asks for more labels than it may")

    def describe(self) -> list[str]:
        lines = super().describe()
        for stage in self.stages:
            asked, rows = counted(len(stage.asked), "candidate"), self.sizes[stage.chosen or 0]
            texts = {
                "pilot": f"Pilot: {asked} from all ranks, to choose what follows.",
                UNIFORM: f"A control sample: {asked}, drawn at random from all who are not labelled yet.",
                FIRST: f"The first draw: {asked} from the best {number(rows)}, to count who qualifies there.",
                SECOND: f"The second draw: {asked} from the lowest {number(rows)}, to end the list.",
            }
            lines += [*wrapped(texts[stage.name]), self.came(stage)]
        if self.waiting:
            lines += wrapped(self._at_best())
        listing = "The list will be everyone above its end but those labelled not qualified, and everyone "
        return [*lines, *wrapped(listing + "labelled qualified. Every label is needed.")]

    def _at_best(self) -> str:
        """What no rule could do better, said before anybody labels."""
        share = self.promise.kept_share
        rates = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
        left_out = {
            rate: most_left_out(self.size, int(rate * self.size), self.labels, share, self.alpha)
            for rate in rates
        }
        half = [rate for rate, rows in left_out.items() if rows >= self.size / 2]
        if half and half[0] == rates[0]:
            return ""
        least = f"at least about {percent(half[0])}" if half else "more than half"
        return (
            f"At best: with {counted(self.labels, 'label')} no rule can leave out half of these candidates "
            f"unless {least} of them qualify."
        )
