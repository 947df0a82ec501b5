"""Accept, look, reject: the precision of those accepted, then a recall of everyone not rejected.

Half of alpha each, the second conditional on the first [theory: collection-triage]. Between the last prefix
that passes and the end that the recall allows lies the band. People go on there from its lower end, until
it is empty or the rest may be accepted unseen, as pads. Every candidate is in the sample, since anybody may
lie in the band.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from surelist._arrays import Ints
from surelist._files import hold
from surelist.errors import InvalidInput
from surelist.lifecycle import labelling_design as base
from surelist.lifecycle.labelling_precision import STEP, WIDER, Accepted, PrecisionDesign
from surelist.lifecycle.labelling_ranked import RankBlock, pilot_bins, pilot_ranks
from surelist.lifecycle.labelling_recall import FIRST, SECOND, BothDraws
from surelist.promises.kinds.few_labels import AcceptedRejected, TwoDraws
from surelist.promises.phrases import counted, number

BAND = "band"
PILOT = 0.1  # of the labels
TESTS = 0.4  # of the labels left after it, for the block that tests whom to accept
MOST = 200_000  # candidates: all of them are kept


class Lists(NamedTuple):
    """Those accepted, where the rejected begin and why, and whom neither promise decides."""

    accepted: Accepted
    cut: int
    rejected: TwoDraws | None
    undecided: list[int]

    @property
    def fits(self) -> bool:
        """Whether all who are undecided may be accepted unseen."""
        return len(self.undecided) <= self.accepted.pads


class TriageDesign(PrecisionDesign, tag="triage"):
    """The stages of a precision, two draws for a recall from blocks of ``sizes`` rows, and the band."""

    sizes: list[int]

    orders = tuple(
        ["pilot", *look, *block, *draws, BAND]
        for look in ([], ["closer look"])
        for block in ([], ["block"])
        for draws in ([], [FIRST], [FIRST, SECOND])
    )
    everywhere = True
    last = BAND

    @classmethod
    def start(cls, asked: base.LabelRequest, rng: np.random.Generator) -> Self:
        if asked.size > MOST:
            raise InvalidInput(
                "scores", expected=f"at most {MOST:,} candidates for a triage, which keeps all of them",
                got=f"{asked.size:,}", remedy="Precision or Recall of the collection has no such limit.",
            )  # fmt: skip
        return super().start(asked, rng)

    @classmethod
    def first_ranks(cls, size: int, labels: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        rows = size if labels >= size else max(1, int(PILOT * labels))
        return pilot_ranks(0, size, rows, pilot_bins(size, labels), rng), base.NOBODY

    @classmethod
    def beside(
        cls, size: int, labels: int, rng: np.random.Generator
    ) -> tuple[int, list[base.RankDraw], dict[str, Any]]:
        sizes = base.block_sizes(1, size, STEP)
        return size, BothDraws.draw(sizes, size, labels, rng), {"sizes": sizes}

    @property
    def share(self) -> Fraction:
        return self.promise.right_share

    @property
    def level(self) -> Fraction:
        return super().level / 2

    @property
    def left(self) -> int:
        return self.labels - sum(len(stage.asked) for stage in self.stages if stage.name != BAND)

    @property
    def _draws(self) -> BothDraws:
        return BothDraws(self, self.sizes, self.promise.kept_share, self.level, at=WIDER + 1)

    def blocks(self, name: str) -> list[RankBlock]:
        return self._draws.blocks(name) if name in (FIRST, SECOND) else super().blocks(name)

    def samples(self) -> list[tuple[int, int]]:
        return super().samples() + self._draws.samples()

    def next_stage(self) -> base.Stage | None:
        left, name = self.left, self.stages[-1].name
        if name == BAND:
            return None
        if left > 0 and name in self.pilots and (tests := self.next_test(left, int(TESTS * left))):
            return tests
        if left > 0 and name == FIRST:
            return self._draws.second(self.curve(), left)
        drawing = left > 0 and name != SECOND and self.size > 1
        if drawing and (first := self._draws.first(self.curve(), left)).asked:
            return first
        lists = self._lists()
        band = [at for at in lists.undecided if self.sample.labels[at] == base.WAITING]
        return base.Stage(BAND, band) if band and not lists.fits else None

    def _lists(self) -> Lists:
        made, labels, scores = self.accepted(), self.sample.labels, self.sample.scores
        drawn = any(stage.name == SECOND for stage in self.stages)
        cut, rejected = self._draws.ended() if drawn else (self.size, None)
        while 0 < cut < self.size and scores[cut] == scores[cut - 1]:  # equal scores are treated alike
            cut += 1
        cut, off = max(cut, made.end), {*made.off}
        # a missing label that no test counted: for the recall it stays, so it takes the place of a pad
        undecided = [
            at
            for at, mark in enumerate(labels)
            if (mark == base.WAITING and made.end <= at < cut)
            or (mark == base.MISSING and (at >= made.end or at in off))
        ]
        return Lists(made, cut, rejected, undecided)

    @property
    def waiting(self) -> list[int]:
        if self.stages[-1].name != BAND:
            return super().waiting
        rest = self.sample.marked(self.stages[-1].asked, base.WAITING)
        return [] if not rest or self._lists().fits else rest[::-1]

    def looks(self) -> list[int]:
        lists = self._lists()
        return [] if lists.fits else lists.undecided

    def _decided(self) -> tuple[Accepted, Lists]:
        lists = self._lists()
        made, joined = lists.accepted, {*lists.undecided}
        if lists.fits:
            off = [at for at in made.off if at not in joined]
            made = made.padded(lists.undecided)._replace(off=off)
        return made, lists

    def verdict(self) -> base.Finding:
        made, lists = self._decided()
        found = self.listing(made.end, made.proof.listed, made.proof)
        low = found.threshold if lists.cut == made.end else self.sample.scores[lists.cut - 1]
        proof = AcceptedRejected(
            self.group, self.size, made.proof, lists.rejected, lists.cut, low,
            0 if lists.fits else len(lists.undecided),
        )  # fmt: skip
        return self.listing(made.end, made.proof.listed, proof)

    def named(self) -> tuple[list[int], list[int]]:
        made, _ = self._decided()
        return made.on, made.off

    def verify(self) -> None:
        hold(self.sizes == base.block_sizes(1, self.size, STEP), "its blocks are others")
        hold(self.sample.ranks == list(range(self.size)), "it does not hold everyone")
        super().verify()
        self._draws.verify()
        if self.stages[-1].name == BAND:
            lists, asked = self._lists(), self.stages[-1].asked
            rest = [at for at in lists.undecided if self.sample.labels[at] == base.WAITING]
            hold({*rest} <= {*asked}, "its band is another")

    def about(self, stage: base.Stage, asked: str) -> str:
        if stage.name == BAND:
            return (
                f"The band: {asked} between those accepted and those rejected, from its lower end, until the "
                "rest may be accepted unseen."
            )
        if stage.name not in (FIRST, SECOND):
            return super().about(stage, asked)
        rows = number(self.sizes[stage.chosen or 0])
        if stage.name == FIRST:
            return f"The first draw: {asked} from the best {rows}, to count who qualifies there."
        return f"The second draw: {asked} from the lowest {rows}, to say who is rejected."

    @property
    def most_looks(self) -> int | None:
        if self.stages[-1].name != BAND or not self.waiting:
            return None
        lists = self._lists()
        return min(len(self.waiting), len(lists.undecided) - lists.accepted.pads)

    def describe(self) -> list[str]:
        lines = super().describe()
        if (most := self.most_looks) is None:
            return lines
        text = f"Left: {counted(most, 'look')} at most; they may end at any time, and the promise then "
        return [*lines, *base.wrapped(text + "says how many are left to people.")]
