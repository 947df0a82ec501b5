"""At least so many qualified: a pilot chooses a block of the best candidates, a sample of it is tested.

The block's test and the pilot's share alpha; the larger of the two thresholds is valid at the sum. For a
promise about the collection itself the pilot's labels in the block are known: the prefixes of the block are
tested from the longest to shorter ones, and the first that fails ends it [theory: few-labels].
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from surelist._files import hold
from surelist.lifecycle import labelling_design as base
from surelist.lifecycle.block_design import choose_block, need, require_enough
from surelist.promises.kinds.few_labels import BlockSample
from surelist.promises.phrases import number, percent
from surelist.promises.promise import About


class BlockDesign(base.Design, tag="block"):
    """A pilot that chooses a block, and a sample of the block.

    ``apart`` rows are set aside for the pilot (0: none); ``blocks`` count rows that are not set aside and,
    for a promise about the collection, not in the pilot; ``drawn`` of each are drawn. ``within``: the
    pilot's ranks among the rows set aside, which know nothing of the others.
    """

    apart: int
    pilot_block: int
    fallback: float
    blocks: list[int]
    drawn: int
    draw: base.BlockDraws
    within: list[int] | None = None

    @classmethod
    def start(cls, asked: base.LabelRequest, rng: np.random.Generator) -> Self:
        layout = require_enough(asked)
        pilot = apart = base.NOBODY
        within = None
        if layout.pilot_labels:
            future = asked.target.about is not About.COLLECTION
            part = base.set_aside(asked.size, layout.apart, rng) if future else None
            inside = base.set_aside(layout.pilot_block, layout.pilot_labels, rng)
            pilot = inside if part is None else part[inside]
            apart = pilot if part is None else part
            within = None if part is None else inside.tolist()
        main = base.draw_blocks(apart, list(layout.blocks), layout.labels, rng)
        ranks = np.sort(np.concatenate([pilot, main.ranks]))
        draw, first = base.BlockDraws.located(main, ranks), np.searchsorted(ranks, pilot).tolist()
        return cls(
            **asked.sampled(ranks), apart=layout.apart, pilot_block=layout.pilot_block, within=within,
            fallback=layout.fallback, blocks=list(layout.blocks), drawn=layout.labels, draw=draw,
            stages=[base.Stage("pilot", first) if first else base.Stage("block", draw.of(0), 0)],
        )  # fmt: skip

    @property
    def pilot(self) -> list[int]:
        """The pilot's places, best first."""
        return self.stages[0].asked if self.stages[0].name == "pilot" else []

    @property
    def chosen(self) -> int | None:
        """The number of the block tested."""
        return self.stages[-1].chosen

    def next_stage(self) -> base.Stage | None:
        """The block, fixed once the pilot is complete, before any label that tests it is asked for.

        For future pools by the pilot's ranks among the rows set aside alone: its ranks in the whole
        collection say how many of the other rows lie above, which are those that test the block.
        """
        if self.chosen is not None:
            return None
        target, fallback = self.promise, self.run_fallback()
        whole = [self.sample.ranks[at] for at in self.pilot]
        ranks, size = (whole, self.size) if self.within is None else (self.within, self.apart)
        otherwise = 1.0
        if fallback is not None and fallback.listed is not None:
            otherwise = (ranks[whole.index(fallback.listed - 1)] + 1) / size
        good = np.array([self.sample.labels[at] == "1" for at in self.pilot])
        places, alpha = (np.array(ranks) + 0.5) / size, self.alpha * (1 - self.fallback)
        chosen = choose_block(
            places, good, self._free, self.blocks, self.drawn, need(target, self.size), alpha, otherwise
        )
        return base.Stage("block", self.draw.of(chosen), chosen)

    def verdict(self) -> base.Finding:
        """The larger of the thresholds that the stages certify, or the refusal."""
        passed = [each for each in (self._run_block(), self.run_fallback()) if each is not None]
        if not passed:
            return self._refused()
        best = max(passed, key=lambda verdict: verdict.threshold)
        listed = self.sample.reaching(best.threshold)
        return replace(best, listed=listed, share=listed / self.size)

    def run_fallback(self) -> base.Finding | None:
        """The pilot's own block, fixed beforehand, at its share of alpha."""
        alpha = self.alpha * self.fallback
        if not self.pilot or alpha == 0:
            return None
        size, drawn = self.apart or self.size, len(self.pilot)
        count = self.promise.block_count(size, self.pilot_block, drawn, alpha)
        hits = self.sample.marked(self.pilot)
        if count > len(hits):
            return None
        return self._passed(hits[max(count, 1) - 1], size, self.pilot_block, drawn, alpha, 0, count, "pilot")

    def _run_block(self) -> base.Finding | None:
        assert self.chosen is not None
        hits = self.sample.marked(self.stages[-1].asked)  # best first
        alpha, block = self.alpha * (1 - self.fallback), self.blocks[self.chosen]
        if self.promise.about is About.COLLECTION:
            return self._run_prefixes(hits, alpha, block)
        count = self.promise.block_count(self._free, block, self.drawn, alpha)
        if count > len(hits):
            return None
        return self._passed(hits[count - 1], self._free, block, self.drawn, alpha, 0, count, "block")

    def _run_prefixes(self, hits: list[int], alpha: float, block: int) -> base.Finding | None:
        """From the whole block up, while the fresh hits suffice beside the qualified rows that are known."""
        scores, known = self.sample.scores, self._known(block)
        best = None
        for at in sorted([*hits, *known], key=lambda at: scores[at]):
            fresh, held = (sum(scores[each] >= scores[at] for each in those) for those in (hits, known))
            if fresh < self.promise.block_count(block, block, self.drawn, alpha, held):
                break
            best = self._passed(at, self._free, block, self.drawn, alpha, held, fresh, "block")
        return best

    def _known(self, block: int) -> list[int]:
        """The pilot's qualified rows inside the block: its rows that were not in the pilot, and those among
        them."""
        end = block
        for at in self.pilot:
            if self.sample.ranks[at] < end:
                end += 1
        return [at for at in self.sample.marked(self.pilot) if self.sample.ranks[at] < end]

    def _passed(self, at: int, *numbers: Any) -> base.Finding:
        """What the hit at this place certifies; ``numbers`` are those of its proof."""
        proof = BlockSample(self.group, self.size, *numbers)
        return base.Finding(self.sample.scores[at], proof.count, self.sample.ranks[at] + 1, proof)

    def _refused(self) -> base.Finding:
        assert self.chosen is not None
        block = self.blocks[self.chosen]
        good = len(self.sample.marked(self.stages[-1].asked))
        count = self.promise.block_count(self._free, block, self.drawn, self.alpha * (1 - self.fallback))
        return self.refused(
            f"{count:,} qualified are needed among the {self.drawn:,} labelled of the best {block:,} "
            f"candidates, and {good:,} are. A new labelling with more labels, or a smaller k, draws afresh.",
            count,
        )

    @property
    def _free(self) -> int:
        """Rows that the block's test is about: not set aside, and for the collection itself not in the
        pilot."""
        return self.size - (self.apart or len(self.pilot))

    def verify(self) -> None:
        super().verify()
        blocks, pilot = self.blocks, len(self.pilot)
        hold(bool(blocks) and blocks == sorted(set(blocks)), "its blocks are out of order")
        hold(0 < self.drawn <= blocks[0] and blocks[-1] <= self._free, "its blocks do not fit the collection")
        hold(0 <= self.fallback < 1, "its share of alpha is impossible")
        self.draw.verify(self.sample, len(blocks))
        for block in range(len(blocks)):
            hold(len(self.draw.of(block)) == self.drawn, "a block's sample has another size")
        places = {*self.pilot} | {*self.draw.places}
        hold(len(places) == pilot + len(self.draw.places), "a row is in the pilot and in the block")
        names = [stage.name for stage in self.stages]
        hold(names in (["pilot"], ["block"], ["pilot", "block"]), "its stages are not those of its design")
        if names[-1] == "block":
            hold(self.chosen is not None and 0 <= self.chosen < len(blocks), "its block is none of its own")
            hold(self.stages[-1].asked == self.draw.of(self.chosen or 0), "its block asks for other rows")
        hold(pilot > 0 or (len(blocks) == 1 and self.fallback == 0), "no pilot, and blocks to choose")
        hold(pilot <= self.pilot_block <= (self.apart or self.size), "its pilot does not fit")
        ended = names[-1] == "pilot" and not self.waiting
        hold(not ended, "the block was not chosen when the pilot had ended")
        if (within := self.within) is not None:
            rising = len(within) == pilot and within == sorted(set(within))
            inside = rising and 0 <= within[0] <= within[-1] < self.pilot_block
            hold(inside, "the pilot's ranks are out of order")

    def describe(self) -> list[str]:
        lines = super().describe()
        own, share = (percent(self.alpha * part) for part in (self.fallback, 1 - self.fallback))
        if self.pilot:
            among = "of all" if self.within is None else f"of {self.apart:,} candidates set aside at random"
            pilot = (
                f"Pilot: {len(self.pilot):,} labels from the best {self.pilot_block:,} {among}; they choose"
            )
            tail = f" They also test that block, at {own}, as a fall-back." * bool(self.fallback)
            lines += [*base.wrapped(f"{pilot} the block.{tail}"), self.came(self.stages[0])]
        if self.chosen is None:
            text = f"Then {self.drawn:,} labels of a block that the pilot chooses, at {share}."
            return lines + base.wrapped(text)
        how = "chosen from the pilot, before its labels" if self.pilot else "fixed at the start"
        text = (
            f"Block: the best {number(self.blocks[self.chosen])} candidates, {how}; {self.drawn:,} of them, "
            f"drawn at random, are labelled and tested at {share}."
        )
        return [*lines, *base.wrapped(text), self.came(self.stages[-1])]
