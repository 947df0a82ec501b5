"""A share of all qualified: a pilot chooses between one random sample of everyone and two draws.

One sample: the drops that it allows [theory: collection-recall]. Two draws: how many qualify at the top,
and how far up from the bottom they may be missed [theory: collection-recall-block]. Either way whoever is
labelled not qualified leaves the list and whoever is labelled qualified stays on it.

Any choice made from labels that are known before is valid. One uniform sample is the better design where it
certifies; two draws are where qualified ones are rare.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from msgspec import Struct

from surelist import _numerals as numerals
from surelist._arrays import special
from surelist._files import hold
from surelist._scalars import as_fraction
from surelist.bounds import collection_lists as lists
from surelist.bounds.control_sample import block_drop, control_rule
from surelist.lifecycle.block_design import Family, likely_curves, require_enough
from surelist.lifecycle.labelling_design import (
    NOBODY,
    BlockDraws,
    Finding,
    Floats,
    LabelRequest,
    RankDraw,
    Stage,
    block_sizes,
    draw_blocks,
    wrapped,
)
from surelist.lifecycle.labelling_ranked import Curve, RankBlock, RankedDesign, pilot_bins, pilot_ranks
from surelist.promises.kinds.few_labels import ControlSample, TwoDraws
from surelist.promises.phrases import counted, number

UNIFORM, FIRST, SECOND = "control sample", "first draw", "second draw"
STEP = 1.04  # between neighbouring blocks
FEWEST = 100  # labels below which a pilot says nothing
PILOT = 0.05  # of the labels
HITS = np.arange(30)  # that may be allowed below the cut
CHANCES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHARES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # of the labels left, for the first draw
SHORTER = 0.8  # of the list to expect of two draws: that of one uniform sample that certifies
HOPELESS = 0.1  # chance that one uniform sample certifies, up to which it is not taken
ENOUGH = 2000  # labels of a pilot, to see how many qualify
STEEP = Family((-16, 4, 41), (-0.3, 8, 25), (-3, 4), (2, 2.5), (1.0, 0.5, 0.2))


class RecallDesign(RankedDesign, tag="control"):
    """Blocks of ``sizes`` rows, from the top for the first draw and from the bottom for the second.

    The sample of a block of at most ``labels`` rows is all of it; the rows just above each bottom block are
    kept too.
    """

    sizes: list[int]

    orders = (["pilot", UNIFORM], [UNIFORM], ["pilot", FIRST, SECOND])

    @classmethod
    def start(cls, asked: LabelRequest, rng: np.random.Generator) -> Self:
        size, labels, pilot = asked.size, asked.labels, NOBODY
        if FEWEST <= labels < size:
            pilot = pilot_ranks(0, size, int(PILOT * labels), pilot_bins(size, labels), rng)
        else:
            require_enough(asked)
        sizes = block_sizes(1, size, STEP)
        both = BothDraws.draw(sizes, size, labels, rng)
        edges = np.array([max(0, size - each - 1) for each in sizes])
        ranks = np.unique(np.concatenate([pilot, *(each.ranks for each in both), edges, [0]]))
        draws = [BlockDraws.located(each, ranks, rng.permutation(len(each.ranks))) for each in both]
        stages = [Stage("pilot", np.searchsorted(ranks, pilot).tolist())]
        made = cls(**asked.sampled(ranks), labels=labels, sizes=sizes, draws=draws, stages=stages)
        if not len(pilot):
            made.stages = [made.drawn(UNIFORM, len(sizes) - 1, labels)]
        return made

    def next_stage(self) -> Stage | None:
        left = self.left
        if left <= 0 or self.stages[-1].name in (UNIFORM, SECOND):
            return None
        share, alpha = self.promise.kept_share, as_fraction(self.alpha, "alpha")
        curve = self.curve()
        if self.stages[-1].name == FIRST:
            return self._draws.second(curve, left)
        first = plan_first(curve, self.sizes[:-1:6], left, share, alpha)
        certain = chance_to_certify(curve, left, share, self.alpha)
        gained = certain * (self.size - SHORTER * first.expected)  # a refusal leaves everyone
        if certain > HOPELESS and gained > self.size - first.expected:
            return self.drawn(UNIFORM, len(self.sizes) - 1, left)
        return self.drawn(FIRST, self.sizes.index(first.end), first.labels)

    def offers(self, name: str) -> int:
        return 0 if name == "pilot" else len(self.sizes)

    def block(self, name: str, chosen: int) -> RankBlock:
        return self._draws.block(name, chosen)

    def samples(self) -> list[tuple[int, int]]:
        return self._draws.samples()

    @property
    def _draws(self) -> BothDraws:
        return BothDraws(self, self.sizes, self.promise.kept_share, as_fraction(self.alpha, "alpha"))

    def verdict(self) -> Finding:
        return self._uniform() if self.stages[-1].name == UNIFORM else self._two_draws()

    def _uniform(self) -> Finding:
        places = self.stages[-1].asked
        before = [*self.asked_before(len(self.stages) - 1)]
        hits, known, kept = self.sample.marked(places), len(before), len(self.sample.marked(before))
        rule = control_rule(self.size - known, len(places), self.promise.kept_share, self.alpha, kept)
        drop = rule.drops[len(hits)]
        if not hits and len(places) == self.size - known:
            return self.refused("Everyone is labelled and nobody is qualified: there is no share to keep.", 1)
        if drop < 0:
            needed = rule.needed
            enough = "no number of qualified ones would do" if needed is None else f"{needed:,} would do"
            return self.refused(
                f"{len(hits):,} of the {len(places):,} candidates drawn are qualified; {enough}. Draw "
                "more candidates for a new labelling, or ask for a smaller share.", needed or 0,
            )  # fmt: skip
        proof = ControlSample(self.group, self.size, len(places), len(hits), drop, known, kept)
        cut = self.sample.ranks[hits[len(hits) - 1 - drop]] + 1 if drop < len(hits) else 0
        return self._listing(cut, kept + len(hits) - drop, proof)

    def _two_draws(self) -> Finding:
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

    def _listing(self, cut: int, count: int, proof: ControlSample | TwoDraws) -> Finding:
        """Everyone above the cut but those labelled not qualified, and those labelled qualified below it."""
        counts, (on, off) = self.labelled(), self.named()
        scores, ranks = self.sample.scores, self.sample.ranks
        threshold = scores[ranks.index(cut - 1)] if cut else math.nextafter(scores[0], math.inf)
        end = self.sample.reaching(threshold)
        listed = end - self.inside({*off}, 0, end) + self.inside({*on}, end, self.size)
        return Finding(threshold, count, counts.rows, counts.qualified, listed, proof)

    def named(self) -> tuple[list[int], list[int]]:
        asked = self.asked
        return self.sample.marked(asked), self.sample.marked(asked, "0")

    def verify(self) -> None:
        sizes = self.sizes
        hold(sizes == block_sizes(1, self.size, STEP), "its blocks are others")
        super().verify()
        edges = {0, *(self.size - each - 1 for each in sizes if each < self.size)}
        hold(edges <= set(self.sample.ranks), "the ends of its blocks are not in its sample")
        if self.stages[-1].name == UNIFORM:
            hold(self.stages[-1].chosen == len(sizes) - 1, "its sample is not of everyone")
        self._draws.verify()

    def about(self, stage: Stage, asked: str) -> str:
        rows = number(self.sizes[stage.chosen or 0])
        return {
            "pilot": f"Pilot: {asked} from all ranks, to choose what follows.",
            UNIFORM: f"A control sample: {asked}, drawn at random from all who are not labelled yet.",
            FIRST: f"The first draw: {asked} from the best {rows}, to count who qualifies there.",
            SECOND: f"The second draw: {asked} from the lowest {rows}, to end the list.",
        }[stage.name]

    def describe(self) -> list[str]:
        best = at_best(self.size, self.labels, self.promise.kept_share, self.alpha)
        lines = super().describe() + (wrapped(best) if self.waiting else [])
        listing = "The list will be everyone above its end but those labelled not qualified, and everyone "
        return [*lines, *wrapped(listing + "labelled qualified. Every label is needed.")]


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
    def draw(cls, sizes: list[int], size: int, labels: int, rng: np.random.Generator) -> list[RankDraw]:
        """Samples of every block, from the top and from the bottom."""
        blocks = [labels, *(each for each in sizes if each > labels)]
        top, bottom = (draw_blocks(NOBODY, blocks, labels, rng) for _ in range(2))
        return [top, RankDraw(size - 1 - bottom.ranks, bottom.enters, bottom.leaves)]

    def block(self, name: str, chosen: int) -> RankBlock:
        rows, labels, size = self.sizes[chosen], self.design.labels, self.design.size
        later = [each for each in self.sizes if each > labels]
        sample = later.index(rows) + 1 if rows > labels else 0
        if name == FIRST:
            return RankBlock(0, rows, self.at, sample)
        return RankBlock(size - rows, size, self.at + 1, sample)

    def samples(self) -> list[tuple[int, int]]:
        labels = self.design.labels
        return 2 * [(labels, 1 + sum(each > labels for each in self.sizes))]

    @property
    def _first(self) -> int:
        """The number of the first draw's stage."""
        return [stage.name for stage in self.design.stages].index(FIRST)

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

    def second(self, curve: Curve, left: int) -> Stage:
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

    def bottom(self) -> tuple[Stage, int]:
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


class Tail(Struct, frozen=True):
    """Qualified rows below each rank, about; with a little for what a tail without a hit may hide."""

    ranks: Floats
    below: Floats

    @classmethod
    def of(cls, curve: Curve) -> Tail:
        steps, everyone = np.diff(curve.held), float(curve.held[-1])
        empty = np.flatnonzero(steps < 1e-9)
        start = int(curve.edges[empty[0]]) if len(empty) else curve.size
        seen = max(1, int((curve.ranks >= start).sum()))
        hidden = min(0.3 * (curve.size - start) / seen, 0.02 * max(everyone, 1.0)) if len(empty) else 0.0
        ranks = np.linspace(0, curve.size, 2001)
        share = (curve.size - np.maximum(ranks, start)) / max(1, curve.size - start)
        return cls(ranks, everyone - curve.down_to(ranks) + hidden * share)

    def cut(self, wanted: Floats) -> Floats:
        """The rank below which so many qualified ones lie."""
        return np.asarray(np.interp(-wanted, -self.below, self.ranks))


def chance_to_certify(curve: Curve, left: int, share: Fraction, alpha: float) -> float:
    """That one uniform sample of everyone who is not labelled yet certifies anything, about."""
    free = curve.size - len(curve.ranks)
    needed = control_rule(free, min(left, free), share, alpha, curve.found, hits=0).needed
    if needed is None:
        return 0.0
    some = slice(None, None, 1 + len(curve.ranks) // ENOUGH)
    weights, held = likely_curves((curve.ranks[some] + 0.5) / curve.size, curve.good[some], STEEP)
    rate = min(left / free, 1.0)
    hits = rate * np.maximum(0.0, held[:, -1] * curve.size - curve.found)
    spread = np.sqrt(np.maximum(hits * (1 - rate), 0.1))
    return float(weights @ special.ndtr((hits - needed + 0.5) / spread))


def best_allowed(
    curve: Curve, tail: Tail, missable: int, drawn: int, level: Fraction, top: int, found: float,
    listed: Floats,
) -> tuple[float, int]:  # fmt: skip
    """The expected list, and the hits to allow below the cut: the block of each is the largest that
    certifies.

    ``listed``: rows above each rank of the tail that are labelled and will not be listed.
    """
    share = special.betaincinv(HITS + 1, missable + 1, 1 - float(level))
    begins = np.maximum(curve.size - drawn / share, top)
    rate = np.minimum(1.0, drawn / np.maximum(curve.size - begins, 1))
    cuts = np.maximum(begins, tail.cut(_quantiles() / rate))
    cost = np.where(cuts <= 0, found, cuts - np.interp(cuts, tail.ranks, listed)).mean(axis=0)
    best = int(np.argmin(cost))
    return float(cost[best]), int(HITS[best])


@cache
def _quantiles() -> Floats:
    """When the hit after so many comes, if they come at rate one: a row for each chance."""
    return np.asarray(special.gammaincinv(HITS[None, :] + 1, CHANCES[:, None]))


class FirstDraw(NamedTuple):
    """Two draws: where the first one ends, its labels, and the list to expect."""

    end: int
    labels: int
    expected: float


def plan_first(curve: Curve, ends: list[int], left: int, share: Fraction, alpha: Fraction) -> FirstDraw:
    """The first draw with the shortest list to expect."""
    tail, best = Tail.of(curve), FirstDraw(ends[0], 0, float("inf"))
    for end in ends:
        free = end - int(curve.labelled_above(end))
        known = int(np.count_nonzero(curve.good & (curve.ranks < end)))
        for labels in sorted({min(free, int(part * left)) for part in SHARES}):
            if not labels:
                continue
            census = labels == free
            counting, level = lists.levels(alpha, census=census)
            hits = labels * max(0.0, float(curve.down_to(end)) - known) / free
            low = hits
            if not census:
                spread = np.sqrt(max(hits, 0.5) * (1 - labels / free))
                low = max(0.0, hits + float(special.ndtri(float(counting))) * spread) * free / labels
            missable = lists.may_miss(share, int(curve.found + low))
            labelled = curve.labelled_above(tail.ranks) + np.minimum(tail.ranks / end, 1) * labels
            listed = labelled - (curve.found + hits)
            cost, _ = best_allowed(
                curve, tail, missable, left - labels, level, end, curve.found + hits, listed
            )
            if cost < 0.999 * best.expected:
                best = FirstDraw(end, labels, cost)
    return best
