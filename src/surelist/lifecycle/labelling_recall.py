"""A share of all qualified: one random sample of everyone, or two draws where too few of its parts qualify.

One sample: the drops that it allows [theory: collection-recall]. Two draws: how many qualify at the top,
and how far up from the bottom they may be missed [theory: collection-recall-block]. Either way whoever is
labelled not qualified leaves the list and whoever is labelled qualified stays on it.

The sample is asked for in parts. After each, how many of it are qualified says whether it goes on: the
drops then hold given that it did, and two draws hold whatever was labelled before. One uniform sample is the
better design where it certifies; two draws are where qualified ones are rare.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self

import numpy as np
from msgspec import Struct

from surelist import _numerals as numerals
from surelist._files import hold
from surelist._scalars import as_fraction
from surelist.bounds import collection_lists as lists
from surelist.bounds.collection_lists import Look
from surelist.bounds.control_sample import block_drop, control_rule
from surelist.lifecycle import labelling_design as base
from surelist.lifecycle.block_design import require_enough
from surelist.lifecycle.labelling_ranked import Curve, RankBlock, RankedDesign, pilot_bins, pilot_ranks
from surelist.lifecycle.recall_plan import Tail, about_needed, best_allowed, looks_at, plan_first
from surelist.promises.kinds.few_labels import ControlSample, TwoDraws
from surelist.promises.phrases import counted, number

PART, UNIFORM = "part of a control sample", "control sample"
FIRST, SECOND = "first draw", "second draw"
STEP = 1.04  # between neighbouring blocks
FEWEST = 100  # labels below which parts of them say nothing
PILOT = 0.05  # of the labels, where one sample could not certify anything


class RecallDesign(RankedDesign, tag="control"):
    """Blocks of ``sizes`` rows, from the top for the first draw and from the bottom for the second.

    The sample of a block of at most ``labels`` rows is all of it; the rows just above each bottom block are
    kept too.
    """

    sizes: list[int]

    orders = (
        *(parts * [PART] + after for parts in range(3) for after in ([UNIFORM], [FIRST, SECOND])),
        ["pilot", FIRST, SECOND],
    )
    pilots = ("pilot", PART)

    @classmethod
    def start(cls, asked: base.LabelRequest, rng: np.random.Generator) -> Self:
        size, labels, pilot = asked.size, asked.labels, base.NOBODY
        if not FEWEST <= labels < size:
            require_enough(asked)
        elif about_needed(size, labels, asked.target.kept_share, asked.alpha) > labels:
            pilot = pilot_ranks(0, size, int(PILOT * labels), pilot_bins(size, labels), rng)
        sizes = base.block_sizes(1, size, STEP)
        both = BothDraws.draw(sizes, size, labels, rng)
        edges = np.array([max(0, size - each - 1) for each in sizes])
        ranks = np.unique(np.concatenate([pilot, *(each.ranks for each in both), edges, [0]]))
        draws = [base.BlockDraws.located(each, ranks, rng.permutation(len(each.ranks))) for each in both]
        stages = [base.Stage("pilot", np.searchsorted(ranks, pilot).tolist())] if len(pilot) else []
        made = cls(**asked.sampled(ranks), labels=labels, sizes=sizes, draws=draws, stages=stages)
        made.stages = stages or [made._of_everyone()]
        return made

    def _of_everyone(self) -> base.Stage:
        """The next part of a sample of everyone, or the rest of it."""
        everyone, before, looks = len(self.sizes) - 1, len(self.stages), self._looks
        if before == len(looks):
            return self.drawn(UNIFORM, everyone, self.left)
        rows, least = looks[before]
        part = self.drawn(PART, everyone, rows - len(self.asked))
        part.least = least
        return part

    def next_stage(self) -> base.Stage | None:
        left, name = self.left, self.stages[-1].name
        if left <= 0 or name in (UNIFORM, SECOND):
            return None
        if name == PART and self._goes_on(len(self.stages) - 1):
            return self._of_everyone()
        curve = self.curve()
        if name == FIRST:
            return self._draws.second(curve, left)
        return self._draws.first(curve if name == "pilot" else curve.with_one_more(), left)

    @property
    def _looks(self) -> tuple[Look, ...]:
        """When a sample of everyone is looked at: fixed before any label."""
        if not FEWEST <= self.labels < self.size:
            return ()
        return looks_at(self.size, self.labels, self.promise.kept_share, self.alpha)

    def _goes_on(self, part: int) -> bool:
        """Whether enough of the sample are qualified for more of it, after the part of this number."""
        return len(self.sample.marked([*self.asked_before(part + 1)])) >= self.stages[part].least

    @property
    def passed(self) -> tuple[Look, ...]:
        """After how many rows the sample went on, and how many qualified ones it took."""
        parts = [at for at, stage in enumerate(self.stages) if stage.name == PART]
        return tuple((len(self.asked_before(at + 1)), self.stages[at].least) for at in parts)

    def blocks(self, name: str) -> list[RankBlock]:
        return [] if name == "pilot" else self._draws.blocks(name)

    def samples(self) -> list[tuple[int, int]]:
        return self._draws.samples()

    @property
    def _draws(self) -> BothDraws:
        return BothDraws(self, self.sizes, self.promise.kept_share, as_fraction(self.alpha, "alpha"))

    def verdict(self) -> base.Finding:
        return self._uniform() if self.stages[-1].name == UNIFORM else self._two_draws()

    def _uniform(self) -> base.Finding:
        places = self.asked
        hits = self.sample.marked(places)
        rule = control_rule(self.size, len(places), self.promise.kept_share, self.alpha, looks=self.passed)
        drop = rule.drops[len(hits)]
        if not hits and len(places) == self.size:
            return self.refused("Everyone is labelled and nobody is qualified: there is no share to keep.", 1)
        if drop < 0:
            needed = rule.needed
            enough = "no number of qualified ones would do" if needed is None else f"{needed:,} would do"
            return self.refused(
                f"{len(hits):,} of the {len(places):,} candidates drawn are qualified; {enough}. Draw "
                "more candidates for a new labelling, or ask for a smaller share.", needed or 0,
            )  # fmt: skip
        proof = ControlSample(self.group, self.size, len(places), len(hits), drop, self.passed)
        cut = self.sample.ranks[hits[len(hits) - 1 - drop]] + 1 if drop < len(hits) else 0
        return self._listing(cut, len(hits) - drop, proof)

    def _two_draws(self) -> base.Finding:
        cut, proof = self._draws.ended()
        if proof is None:
            (stage, rows), (kept, _) = self._draws.bottom(), self._draws.kept()
            hits = len(self.sample.marked(stage.asked))
            return self.refused(
                f"{hits:,} of the {len(stage.asked):,} drawn from the lowest {rows:,} qualify, beside "
                f"{kept:,} above: too few to leave anybody out. Draw more for a new labelling, or ask for a "
                "smaller share.", kept + hits,
            )  # fmt: skip
        return self._listing(cut, self._draws.kept()[0] + proof.hits, proof)

    def _listing(self, cut: int, count: int, proof: ControlSample | TwoDraws) -> base.Finding:
        """Everyone above the cut but those labelled not qualified, and those labelled qualified below it."""
        (on, off), scores, ranks = self.named(), self.sample.scores, self.sample.ranks
        threshold = scores[ranks.index(cut - 1)] if cut else math.nextafter(scores[0], math.inf)
        end = self.sample.reaching(threshold)
        listed = end - self.inside({*off}, 0, end) + self.inside({*on}, end, self.size)
        return base.Finding(threshold, count, listed, proof)

    def named(self) -> tuple[list[int], list[int]]:
        asked = self.asked
        return self.sample.marked(asked), self.sample.marked(asked, "0")

    def verify(self) -> None:
        sizes = self.sizes
        hold(sizes == base.block_sizes(1, self.size, STEP), "its blocks are others")
        super().verify()
        edges = {0, *(self.size - each - 1 for each in sizes if each < self.size)}
        hold(edges <= set(self.sample.ranks), "the ends of its blocks are not in its sample")
        parts, looks = self.passed, self._looks
        fixed = parts == looks[: len(parts)] and (self.stages[-1].name != UNIFORM or parts == looks)
        hold(fixed, "its sample is looked at otherwise than was fixed")
        for at, stage in enumerate(self.stages):
            if stage.name in (PART, UNIFORM):
                hold(stage.chosen == len(sizes) - 1, "its sample is not of everyone")
            if stage.name == PART and at < len(self.stages) - 1:
                follows = self.stages[at + 1].name != FIRST
                hold(self._goes_on(at) == follows, "its sample goes on with too few, or not with enough")
        self._draws.verify()

    def about(self, stage: base.Stage, asked: str) -> str:
        rows = number(self.sizes[stage.chosen or 0])
        return {
            "pilot": f"Pilot: {asked} from all ranks, to choose what follows.",
            PART: f"Part of a control sample: {asked}, drawn at random. It goes on if {stage.least:,} or "
            "more of all drawn so far are qualified; if not, two draws follow.",
            UNIFORM: f"A control sample: {asked}, drawn at random from all who are not labelled yet.",
            FIRST: f"The first draw: {asked} from the best {rows}, to count who qualifies there.",
            SECOND: f"The second draw: {asked} from the lowest {rows}, to end the list.",
        }[stage.name]

    def describe(self) -> list[str]:
        best = at_best(self.size, self.labels, self.promise.kept_share, self.alpha)
        lines = super().describe() + (base.wrapped(best) if self.waiting else [])
        listing = "The list will be everyone above its end but those labelled not qualified, and everyone "
        return [*lines, *base.wrapped(listing + "labelled qualified. Every label is needed.")]


def at_best(size: int, labels: int, share: Fraction, alpha: float) -> str:
    """What no rule could do better, said before anybody labels; nothing where half can be left out anyway."""
    least = lists.fewest_qualified(size, labels, share, as_fraction(alpha, "alpha"), size // 2)
    if least == 0:
        return ""
    unless = ", however many qualify"
    if least is not None:
        unless = f" unless at least {least:,} of them ({numerals.percent(least / size)}) qualify"
    return (
        f"At best: with {counted(labels, 'label')} no rule that ends its list at a score is sure to leave "
        f"out half of these {counted(size, 'candidate')}{unless}."
    )


class BothDraws(Struct, frozen=True):
    """Two draws of a design: from the best of ``sizes`` rows, then from the lowest; ``at`` are their numbers.

    The sample of a block of at most as many rows as there are labels is all of it. A label that is missing
    is no qualified one at the top, and a hit at the bottom.
    """

    design: RankedDesign
    sizes: list[int]
    share: Fraction
    alpha: Fraction
    at: int = 0

    @classmethod
    def draw(cls, sizes: list[int], size: int, labels: int, rng: np.random.Generator) -> list[base.RankDraw]:
        """Samples of every block, from the top and from the bottom."""
        blocks = [labels, *(each for each in sizes if each > labels)]
        top, bottom = (base.draw_blocks(base.NOBODY, blocks, labels, rng) for _ in range(2))
        return [top, base.RankDraw(size - 1 - bottom.ranks, bottom.enters, bottom.leaves)]

    def blocks(self, name: str) -> list[RankBlock]:
        labels, size = self.design.labels, self.design.size
        whole = sum(each <= labels for each in self.sizes)  # blocks that share a sample, all of them
        samples = [max(0, number - whole + 1) for number in range(len(self.sizes))]
        pairs = zip(self.sizes, samples, strict=True)
        if name == FIRST:
            return [RankBlock(0, rows, self.at, sample) for rows, sample in pairs]
        return [RankBlock(size - rows, size, self.at + 1, sample) for rows, sample in pairs]

    def samples(self) -> list[tuple[int, int]]:
        labels = self.design.labels
        return 2 * [(labels, 1 + sum(each > labels for each in self.sizes))]

    @property
    def _first(self) -> int:
        """The number of the first draw's stage."""
        return [stage.name for stage in self.design.stages].index(FIRST)

    def first(self, curve: Curve, left: int) -> base.Stage:
        """The block at the top, and how many of it: those with the shortest list to expect."""
        plan = plan_first(curve, self.sizes[:-1:6], left, self.share, self.alpha)
        return self.design.drawn(FIRST, self.sizes.index(plan.end), plan.labels)

    def top(self) -> tuple[int, int, int, int]:
        """Of the first draw: rows of its block, how many were free, how many drawn, how many qualify."""
        first, design = self._first, self.design
        stage = design.stages[first]
        end = self.sizes[stage.chosen or 0]
        free = end - design.inside(design.asked_before(first), 0, end)
        return end, free, len(stage.asked), len(design.sample.marked(stage.asked))

    def kept(self) -> tuple[int, Fraction]:
        """Qualified rows that the list keeps for sure before the second draw, and that draw's level."""
        _, free, drawn, hits = self.top()
        counting, level = lists.levels(self.alpha, census=drawn == free)
        return self._known() + lists.at_least(hits, free, drawn, counting), level

    def _known(self) -> int:
        """How many were known to be qualified before both draws."""
        return len(self.design.sample.marked([*self.design.asked_before(self._first)]))

    def second(self, curve: Curve, left: int) -> base.Stage:
        """The block at the bottom: the largest that certifies the hits that are best allowed."""
        kept, level = self.kept()
        tail, top, size = Tail.of(curve), self.top()[0], self.design.size
        missable, found = lists.may_miss(self.share, kept), curve.found
        listed = np.asarray(curve.labelled_above(tail.ranks), dtype=np.float64) - found
        _, allowed = best_allowed(curve, tail, missable, left, level, top, found, listed)
        free = np.array([each - int((curve.ranks >= size - each).sum()) for each in self.sizes])
        most = lists.largest_block(int(free[-1]), missable, min(left, int(free[-1])), allowed, level)
        fits = np.flatnonzero((free <= most) & (size - np.array(self.sizes) >= top))
        return self.design.drawn(SECOND, int(fits[-1]) if len(fits) else 0, left)

    def bottom(self) -> tuple[base.Stage, int]:
        """The stage of the second draw, and the rows of its block."""
        stage = self.design.stages[self._first + 1]
        return stage, self.sizes[stage.chosen or 0]

    def ended(self) -> tuple[int, TwoDraws | None]:
        """Where the list ends, and why; everyone is on it where nothing is certified."""
        design, (stage, rows), (kept, level) = self.design, self.bottom(), self.kept()
        begin, sample = design.size - rows, design.sample
        free = rows - design.inside(design.asked_before(self._first + 1), begin, design.size)
        hits = [at for at in stage.asked if sample.labels[at] != "0"]
        sure = len(sample.marked(stage.asked))
        allowed = block_drop(free, len(stage.asked), self.share, level, kept, sure)
        if allowed < 0:
            return design.size, None
        cut = begin if len(hits) <= allowed else sample.ranks[hits[len(hits) - 1 - allowed]] + 1
        below = len(sample.marked([at for at in hits if sample.ranks[at] >= cut]))
        numbers = begin, free, len(stage.asked), sure, below
        return cut, TwoDraws(design.group, design.size, self._known(), *self.top(), *numbers)

    def verify(self) -> None:
        if SECOND in [stage.name for stage in self.design.stages]:
            above = self.design.size - self.bottom()[1] >= self.top()[0]
            hold(above, "its second draw begins above the end of its first")
