"""A share of the list is qualified: a pilot, a sample of a block of the best, and prefixes tested in order.

The list is everyone down to the last prefix that passes but those labelled not qualified, everyone labelled
qualified, and *pads*: rows that may join unseen in place of those that left [theory: collection-precision].
Where no prefix passes it is those labelled qualified and their pads.

Where to look closer, which block to sample and which prefixes to test is chosen from labels known before, in
any way at all; these plans were tuned for the number of qualified candidates on the list
(``benchmarks/budget.py``).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from msgspec.structs import replace

from surelist._arrays import Ints, special
from surelist._files import hold
from surelist._scalars import as_fraction
from surelist.bounds.collection_lists import Prefix, last_passing, most_pads
from surelist.lifecycle import labelling_design as base
from surelist.lifecycle.labelling_ranked import Curve, RankBlock, RankedDesign, pilot_bins, pilot_ranks
from surelist.promises.kinds.few_labels import AcceptedRejected, PrefixSample
from surelist.promises.phrases import counted, number, percent

STEP = 1.04  # between neighbouring prefixes
TOP = 2  # times the labels: so many of the best are kept by name, to be labelled one after another
PARTS = 100  # weights are whole numbers that add up to this
SHARES = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 1.0)  # of the labels left, for the block
FAR = 1.5  # times the labels left: lists longer than this cannot be labelled one by one
NEAR = 0.05  # below the share: where so many of the best qualify, the list may go on
WIDER = 2  # the number of the wider look's draw
FARTHER = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1)  # of the longest that holds the share: blocks of far lists
SHORTEST = 20  # of a prefix that is worth a plan


class Accepted(NamedTuple):
    """Where the last prefix that passed ends, who is listed by name and who is not, how many rows may join
    unseen, and the proof."""

    end: int
    on: list[int]
    off: list[int]
    pads: int
    proof: PrefixSample

    def padded(self, unseen: list[int]) -> Accepted:
        """With so many of them."""
        listed = self.proof.listed + len(unseen)
        return self._replace(on=self.on + unseen, proof=replace(self.proof, pads=len(unseen), listed=listed))


class PrecisionDesign(RankedDesign, tag="precision"):
    """Prefixes end at ``ends`` (ranks), which are ends of scores: everyone down to there has ``cuts`` or
    more.

    ``draws`` are of the closer look and of the block; the sample of a prefix of at most ``whole`` rows is
    all of it. A stage's ``chosen`` is the number of an end.
    """

    best: float  # the highest score
    ends: list[int]
    cuts: list[float]
    whole: list[int]

    pilots = ("pilot", "wider look", "closer look")
    everywhere: ClassVar[bool] = False  # whether the pilot is of all ranks
    last: ClassVar[str] = "below"  # the stage that is not part of any draw
    orders: ClassVar[tuple[list[str], ...]] = tuple(
        ["pilot", *looks, *block, "below"]
        for looks in ([], ["wider look"], ["wider look", "closer look"], ["closer look"])
        for block in ([], ["block"])
    )

    @classmethod
    def start(cls, asked: base.LabelRequest, rng: np.random.Generator) -> Self:
        size, labels = asked.size, asked.labels
        ends, cuts, best = score_ends(asked.collection, asked.group)
        pilot, wider = cls.first_ranks(size, labels, rng)
        whole = [min(size, max(1, math.ceil(labels / 5))), min(size, labels)]
        drawn = [base.draw_blocks(base.NOBODY, blocks_of(ends, each), each, rng) for each in whole]
        top, later, more = cls.beside(size, labels, rng)
        drawn += [base.RankDraw(wider, 0 * wider, 0 * wider), *later]
        ranks = np.unique(np.concatenate([pilot, np.arange(top), *(each.ranks for each in drawn)]))
        draws = [base.BlockDraws.located(each, ranks, rng.permutation(len(each.ranks))) for each in drawn]
        stages = [base.Stage("pilot", np.searchsorted(ranks, pilot).tolist())]
        return cls(
            **asked.sampled(ranks), labels=labels, best=best, ends=ends, cuts=cuts, draws=draws, whole=whole,
            stages=stages, **more,
        )  # fmt: skip

    @classmethod
    def first_ranks(cls, size: int, labels: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Of the pilot, and of a wider look beyond it: where labels go one by one from the top, no label of
        the pilot is lost."""
        if labels >= size:
            return np.arange(size), base.NOBODY
        bins, rows = pilot_bins(size, labels), cls.first_labels(labels)
        return pilot_ranks(0, labels, rows, bins, rng), pilot_ranks(labels, size, rows, bins, rng)

    @classmethod
    def first_labels(cls, labels: int) -> int:
        """How many labels the pilot takes, and a wider look after it."""
        return max(1, int(0.05 * labels), min(50, labels // 6))

    @classmethod
    def beside(
        cls, size: int, labels: int, rng: np.random.Generator
    ) -> tuple[int, list[base.RankDraw], dict[str, Any]]:
        """How many of the best are kept by name, the draws of later stages, and their fields."""
        return min(size, TOP * labels), [], {}

    @property
    def share(self) -> Fraction:
        """Of the list, the share that has to be qualified."""
        return self.promise.kept_share

    @property
    def level(self) -> Fraction:
        """What the tests of prefixes may spend in all."""
        return as_fraction(self.alpha, "alpha")

    def next_stage(self) -> base.Stage | None:
        left, name = self.left, self.stages[-1].name
        if left <= 0 or name == self.last:
            return None
        if name != "block" and (test := self.next_test(left, left)) is not None:
            return test
        # the best of those nobody has asked for, from the end of the list on
        before, end = self.asked_before(len(self.stages)), self._passed()[0]
        free = [at for at, rank in enumerate(self.sample.ranks) if rank >= end and at not in before]
        return base.Stage("below", free[:left]) if free else None

    def next_test(self, left: int, block: int) -> base.Stage | None:
        """A closer look, or a block of at most ``block`` labels and its tests; None: nothing is worth it."""
        share, curve, ends = float(self.share), self.curve(), np.array(self.ends)
        # whether the list may go far beyond those who can be labelled one by one
        beyond = float(curve.down_to(self.labels)) >= (share - NEAR) * self.labels
        if len(self.stages) == 1 and self.draws[WIDER].places and beyond:
            return self.drawn("wider look", 0, left)
        looked = self.stages[-1].name == "closer look"
        look = None if looked else closer_look(curve, ends, self.labels, left, share)
        if look is not None:
            return self.drawn("closer look", *look)
        plan = plan_block(curve, ends, block, share, float(self.level))
        if plan is None:
            return None
        stage = self.drawn("block", plan.end, plan.labels)
        stage.steps, stage.weights = plan.steps, plan.weights
        return stage

    def blocks(self, name: str) -> list[RankBlock]:
        if name == "wider look":
            return [RankBlock(0, self.size, WIDER, 0)]
        if name not in ("closer look", "block"):
            return []
        draw = int(name == "block")
        ends = blocks_of(self.ends, self.whole[draw])
        return [RankBlock(0, end, draw, ends.index(max(end, ends[0]))) for end in self.ends]

    def samples(self) -> list[tuple[int, int]]:
        blocks = [(whole, len(blocks_of(self.ends, whole))) for whole in self.whole]
        wider = 0 if self.everywhere else min(self.first_labels(self.labels), self.size - self.labels)
        return [*blocks, (max(0, wider), 1)]

    def _tested(self) -> int | None:
        """The number of the stage that tests prefixes."""
        return next((n for n, stage in enumerate(self.stages) if stage.name == "block"), None)

    def _passed(self) -> tuple[int, set[int], Prefix, Fraction]:
        """The last prefix that passes: where it ends (0: none does), who was asked before its test, its
        counts and the level it passed at."""
        tested = self._tested()
        none: tuple[int, set[int], Prefix, Fraction] = 0, set(), Prefix(0, 0, 0), Fraction(0)
        if tested is None:
            return none
        before, stage, ranks = self.asked_before(tested), self.stages[tested], np.array(self.sample.ranks)
        known, fresh = ranks[sorted(before)], ranks[stage.asked]
        failed = ranks[[at for at in stage.asked if self.sample.labels[at] != "1"]]
        prefixes = [
            Prefix(end - int((known < end).sum()), int((fresh < end).sum()), int((failed < end).sum()))
            for end in (self.ends[step] for step in stage.steps)
        ]
        weights = [self.level * Fraction(weight, PARTS) for weight in stage.weights]
        last, level = last_passing(prefixes, weights, self.share, len(self.sample.marked([*before])))
        return none if last < 0 else (self.ends[stage.steps[last]], before, prefixes[last], level)

    def accepted(self) -> Accepted:
        """The list without pads, and how many it may have."""
        end, before, prefix, level = self._passed()
        asked, ranks, known = self.asked, self.sample.ranks, len(self.sample.marked([*before]))
        later = [at for at in asked if at not in before]
        good = self.sample.marked(asked)
        dropped = sum(ranks[at] < end for at in self.sample.marked(later, "0"))
        found = sum(ranks[at] >= end for at in self.sample.marked(later))
        off = self.sample.marked(asked, "0") + self.sample.marked([*before], "-")
        listed = end - sum(ranks[at] < end for at in off) + sum(ranks[at] >= end for at in good)
        proof = PrefixSample(
            self.group, self.size, end, prefix.free, prefix.drawn, prefix.failed, known, float(level),
            dropped, found, 0, listed,
        )  # fmt: skip
        return Accepted(end, good, off, most_pads(self.share, dropped, found), proof)

    def _padded(self) -> Accepted:
        """The list with the best unseen ones below it as pads."""
        made, labels = self.accepted(), self.sample.labels
        below = [at for at, rank in enumerate(self.sample.ranks) if rank >= made.end and labels[at] == "?"]
        return made.padded(below[: made.pads])

    def verdict(self) -> base.Finding:
        made = self._padded()
        return self.listing(made.end, made.proof.listed, made.proof)

    def listing(self, end: int, listed: int, proof: PrefixSample | AcceptedRejected) -> base.Finding:
        """A list of the best ``end`` and others by name; where that is 0, nobody's score is high enough."""
        threshold = self.cuts[self.ends.index(end)] if end else math.nextafter(self.best, math.inf)
        return base.Finding(threshold, self.qualified, listed, proof, share=listed / self.size)

    def named(self) -> tuple[list[int], list[int]]:
        made = self._padded()
        return made.on, made.off

    def verify(self) -> None:
        ends, cuts = self.ends, self.cuts
        hold(len(ends) == len(cuts) > 0 and ends == sorted(set(ends)), "its prefixes are out of order")
        hold(ends[0] > 0 and ends[-1] == self.size, "its prefixes do not fit the collection")
        hold(cuts == sorted(cuts, reverse=True) and self.best >= cuts[0], "its cuts are impossible")
        hold(len(self.whole) == 2, "it has other draws than its design")
        super().verify()
        if (tested := self._tested()) is not None:
            stage = self.stages[tested]
            steps, weights = stage.steps, stage.weights
            hold(len(steps) == len(weights) > 0 and steps == sorted(set(steps)), "its tests are out of order")
            hold(steps[0] >= 0 and steps[-1] <= (stage.chosen or 0), "its tests go beyond its block")
            hold(min(weights) >= 0 and sum(weights) <= PARTS, "its weights are more than alpha")

    def about(self, stage: base.Stage, asked: str) -> str:
        best = f"drawn at random from the best {number(self.ends[stage.chosen or 0])}"
        among = "from all ranks" if self.everywhere else f"among the best {number(self.labels)}"
        tests = (
            f"{counted(len(stage.steps), 'list')}, the shortest first, at {percent(float(self.level))} in all"
        )
        return {
            "pilot": f"Pilot: {asked} {among}, to choose what follows.",
            "wider look": f"A wider look: {asked} from all ranks below, to choose what follows.",
            "closer look": f"A closer look: {asked}, {best}, to choose what follows.",
            "block": f"Block: {asked}, {best}, which were chosen before. Their labels test {tests}.",
            "below": f"The {asked} that come next in the ranking: those that qualify are listed by name.",
        }[stage.name]

    def describe(self) -> list[str]:
        lines = super().describe()
        if self.waiting and self.left > 0 and self.stages[-1].name != self.last:
            lines += base.wrapped(f"Then {counted(self.left, 'label')} more.")
        return lines


def blocks_of(ends: list[int], whole: int) -> list[int]:
    """The prefixes that a draw has samples of: the smallest is taken whole."""
    return [whole, *(end for end in ends if end > whole)]


def score_ends(collection: base.ScoredCollection, group: str | None) -> tuple[list[int], list[float], float]:
    """Where prefixes of growing length end, each moved on to the end of its score; their lowest scores; the
    best score of all."""
    size = collection.sizes[group]
    ends = np.array(base.block_sizes(1, size, STEP), dtype=np.int64)
    fetched = collection.at(group, ends - 1)
    moved = dict(zip(fetched.reaching.tolist(), fetched.scores.tolist(), strict=True))
    return sorted(moved), [moved[end] for end in sorted(moved)], float(fetched.scores[0])


class BlockPlan(NamedTuple):
    """The block's end and how many labels it gets; the prefixes tested and the share of alpha that each
    brings."""

    end: int
    labels: int
    steps: list[int]
    weights: list[int]


def _longest(curve: Curve, ends: Ints, share: float) -> int:
    """The longest prefix that holds the share, about; 0 for none."""
    fits = np.flatnonzero((curve.down_to(ends) >= share * ends) & (ends >= SHORTEST))
    return int(ends[fits[-1]]) if len(fits) else 0


def _number(ends: Ints, rank: float) -> int:
    """The first end at this rank or beyond."""
    return min(int(np.searchsorted(ends, rank)), len(ends) - 1)


def closer_look(curve: Curve, ends: Ints, labels: int, left: int, share: float) -> tuple[int, int] | None:
    """Where far more qualify than can be labelled: the end of a prefix to look at once more, and with how
    many."""
    longest, look = _longest(curve, ends, share - 0.07), int(0.2 * labels)
    return (_number(ends, FAR * longest), look) if longest > FAR * left and look else None


def plan_block(curve: Curve, ends: Ints, left: int, share: float, alpha: float) -> BlockPlan | None:
    """The block and its tests; None: label from the top."""
    longest = _longest(curve, ends, share)
    if longest > FAR * left:
        blocks = [_number(ends, part * longest) for part in FARTHER]
        plans = [_steps(ends, at, left, ((0.3 * ends[at], 40), (0.55 * ends[at], 60))) for at in blocks]
        values = np.array([_expected(curve, ends, plan, share, alpha) for plan in plans])
        found = float(curve.down_to(left))
        if values.max() > float(curve.down_to(left + found * (1 - share) / share)):
            return plans[int(np.argmax(values > 0.9 * values.max()))]
    return _short(curve, ends, left, share, alpha)


def _expected(curve: Curve, ends: Ints, plan: BlockPlan, share: float, alpha: float) -> float:
    """How many qualified the list of a far block holds, about: a prefix counts by the chance that it and all
    before it pass."""
    prefixes = ends[plan.steps]
    held = curve.down_to(prefixes)
    drawn = np.maximum(1, plan.labels * prefixes // ends[plan.end])
    level = np.cumsum(plan.weights) / PARTS * alpha
    most = np.floor(special.bdtrik(level, drawn, 1 - share))
    most[special.bdtr(0, drawn, 1 - share) > level] = -1
    bad = np.clip(1 - held / prefixes, 0, 1)
    passing = np.where(most < 0, 0.0, special.bdtr(np.maximum(most, 0), drawn, bad))
    return float(np.sum(np.diff(held, prepend=0.0) * np.minimum.accumulate(passing)))


def _steps(ends: Ints, end: int, labels: int, starts: tuple[tuple[float, int], ...]) -> BlockPlan:
    """Every prefix from the first start to the block's end; each start brings its share of alpha."""
    numbers = [min(_number(ends, rank), end) for rank, _ in starts]
    steps = list(range(min(numbers), end + 1))
    weights = [0] * len(steps)
    for step, (_, weight) in zip(numbers, starts, strict=True):
        weights[step - steps[0]] += weight
    return BlockPlan(end, labels, steps, weights)


def _short(curve: Curve, ends: Ints, left: int, share: float, alpha: float) -> BlockPlan | None:
    """Of all blocks and shares of the labels the one with the most qualified on the list, if it is worth
    it."""
    z = -float(special.ndtri(alpha))
    everyone = min(curve.size, left + int(curve.labelled_above(left)))
    best, made = float(curve.down_to(everyone)), None
    free = ends - curve.labelled_above(ends)
    allowed = (1 - share) * (free + curve.found)
    bad = np.maximum(0, free - curve.down_to(ends) * free / ends)
    for end in range(int(np.searchsorted(ends, SHORTEST)), len(ends)):
        inside = slice(0, end + 1)
        for part in SHARES:
            labels = int(part * left)
            if labels >= free[end] or labels < 1:
                continue
            rate = labels / free[end]
            limit = np.clip(allowed[inside] / np.maximum(free[inside], 1), 1e-9, 1)
            drawn = rate * free[inside]
            spread = np.sqrt(drawn * limit * (1 - limit) * (1 - rate))
            score = (drawn * limit - rate * bad[inside]) / np.maximum(spread, 1e-9)
            # too few rows to pass at all, or nothing to test
            score[((1 - limit) ** drawn > alpha) | (allowed[inside] >= free[inside])] = -9
            sure = np.flatnonzero((score >= z + 0.5) & (ends[inside] >= SHORTEST))
            if not len(sure):
                continue
            start = int(ends[sure[np.argmax(score[sure])]])
            last = int(ends[np.flatnonzero(score >= z)[-1]])
            beyond = min(curve.size, last + left - labels)
            held = curve.down_to(np.array([last, ends[end], beyond]))
            value = float(held[2] + rate * (held[1] - held[0])) - 1e-9 * float(ends[end])
            if value > 1.03 * best:
                best = value
                made = _steps(ends, end, labels, ((start, 70), (math.sqrt(start * last), 30)))
    return made
