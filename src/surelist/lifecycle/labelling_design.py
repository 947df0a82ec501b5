"""What every design of a labelling answers: whom it asks, what it does with the labels, its list, its words.

A design holds the rows that were drawn at its start (``Sample``), the draws that later stages may take from
(``BlockDraws``), and its stages so far. It belongs to one group, or to everyone. ``labelling`` is the state
machine and knows no design; each design is one class in a module of its own.

Everything that will ever be asked is drawn at the start and recorded, for every block of ranks that labels
might choose, by random numbers only: nothing can be redrawn, and nothing but the drawn rows has to be kept.
The sample of the next larger block keeps a random part of the one before: as many rows as a uniform sample
of the larger block has in the smaller one (hypergeometric). So every block's sample is uniform, and a row
is in the samples of neighbouring blocks only, from the block where it ``enters`` to the one where it
``leaves``.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist._files import hold
from surelist.errors import NotCertifiable
from surelist.promises import kinds
from surelist.promises.conditions import Conditions
from surelist.promises.phrases import counted
from surelist.promises.promise import Level, Promise
from surelist.promises.proved import proof_of, proved_from
from surelist.promises.state import Cutoff, Step, refuse

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RATIO = 1.06  # between neighbouring blocks
NOBODY = np.zeros(0, dtype=np.int64)
WAITING, MISSING = "?", "-"
MISSING_LABELS = Conditions(evidence="labelling", labels="missing")


class Fetched(Struct, frozen=True):
    """Rows of a collection at given ranks: row numbers, scores, ids where there are any, and how many of the
    group score as high as each or higher."""

    rows: Ints
    scores: NDArray[np.float64]
    ids: list[str] | None
    reaching: Ints


class ScoredCollection(Protocol):
    """A scored collection: how many candidates per group (None: all), and who is at given ranks."""

    sizes: dict[str | None, int]

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        """The rows at these ranks of the group's order by score, best first."""


class Sample(Struct, forbid_unknown_fields=True):
    """Drawn rows, best first. ``labels`` has one sign a row: 0, 1, ? (waiting) or - (will not come).

    ``ends``: where rows of the collection are tied with the last drawn row of a score and rank below it, its
    place and how many score so high.
    """

    rows: list[int]
    ids: list[str] | None
    scores: list[float]
    ranks: list[int]
    labels: str
    ends: list[tuple[int, int]]

    def marked(self, places: list[int], mark: str = "1") -> list[int]:
        """Those of the places with this label."""
        return [at for at in places if self.labels[at] == mark]

    def reaching(self, score: float) -> int:
        """How many of the collection score as high as this drawn score or higher."""
        last = sum(each >= score for each in self.scores) - 1
        return dict(self.ends).get(last, self.ranks[last] + 1) if last >= 0 else 0

    def set_label(self, at: int, mark: str) -> None:
        self.labels = self.labels[:at] + mark + self.labels[at + 1 :]

    def verify(self, size: int) -> None:
        length = len(self.rows)
        even = {len(self.scores), len(self.ranks), len(self.labels)} == {length}
        hold(even, "its sample is uneven")
        hold(self.ids is None or len(set(self.ids)) == len(self.ids) == length, "an id appears twice")
        hold(set(self.labels) <= set("01?-"), "a label is neither 0, 1, ? nor -")
        hold(len(set(self.rows)) == length and min(self.rows, default=0) >= 0, "a row appears twice")
        hold(self.ranks == sorted(set(self.ranks)), "its ranks are out of order")
        hold(not self.ranks or 0 <= self.ranks[0] <= self.ranks[-1] < size, "a rank is impossible")
        hold(self.scores == sorted(self.scores, reverse=True), "its scores are out of order")
        below = [*self.ranks[1:], size]
        for at, end in self.ends:
            possible = 0 <= at < length and self.ranks[at] + 1 < end <= below[at]
            hold(possible, "more or fewer are tied with a row than there can be")


class RankDraw(Struct, frozen=True):
    """Ranks in the whole collection, rising; ``enters`` and ``leaves`` are numbers of blocks."""

    ranks: Ints
    enters: Ints
    leaves: Ints


def set_aside(size: int, rows: int, rng: np.random.Generator) -> Ints:
    """Ranks of ``rows`` random rows of the collection, rising."""
    return np.sort(rng.choice(size, rows, replace=False, shuffle=False)).astype(np.int64)


def draw_blocks(apart: Ints, blocks: list[int], drawn: int, rng: np.random.Generator) -> RankDraw:
    """Uniform samples of ``drawn`` rows of every block of the rows that were *not* set aside."""
    sample = rng.choice(blocks[0], drawn, replace=False, shuffle=False)
    inside = {int(rank): 0 for rank in sample}  # rank to the block where it entered
    done: list[tuple[int, int, int]] = []
    for number, (before, block) in enumerate(pairwise(blocks), start=1):
        fresh = int(rng.hypergeometric(block - before, before, drawn))
        names = np.fromiter(inside, dtype=np.int64)
        for rank in rng.choice(names, fresh, replace=False, shuffle=False).tolist():
            done.append((rank, inside.pop(rank), number - 1))
        shell = rng.choice(block - before, fresh, replace=False, shuffle=False) + before
        inside.update((int(rank), number) for rank in shell)
    done.extend((rank, entered, len(blocks) - 1) for rank, entered in inside.items())
    table = np.array(sorted(done), dtype=np.int64).reshape(-1, 3)
    return RankDraw(_around(apart, table[:, 0]), table[:, 1], table[:, 2])


def _around(apart: Ints, ranks: Ints) -> Ints:
    """Ranks among the rows that were not set aside to ranks in the whole collection."""
    before = np.searchsorted(apart - np.arange(len(apart)), ranks, side="right")
    return ranks + before


def block_sizes(smallest: int, largest: int, ratio: float = RATIO) -> list[int]:
    """The blocks that may be chosen: each a little larger than the one before."""
    sizes = [min(smallest, largest)]
    while sizes[-1] < largest:
        sizes.append(min(largest, max(sizes[-1] + 1, round(sizes[-1] * ratio))))
    return sizes


class BlockDraws(Struct, forbid_unknown_fields=True):
    """A draw that a later stage may take rows from: for each block of rows, a uniform sample in random order.

    ``places`` in the sample, in the order of drawing; a row is in the samples of the blocks from ``enters``
    to ``leaves`` (numbers of blocks).
    """

    places: list[int]
    enters: list[int]
    leaves: list[int]

    @classmethod
    def located(cls, drawn: RankDraw, ranks: Ints, order: Ints | None = None) -> BlockDraws:
        """The draw with its ranks as places among ``ranks``; in this order of drawing, or by rank."""
        at = np.arange(len(drawn.ranks)) if order is None else order
        places = np.searchsorted(ranks, drawn.ranks[at])
        return cls(places.tolist(), drawn.enters[at].tolist(), drawn.leaves[at].tolist())

    def of(self, block: int) -> list[int]:
        """The places of this block's sample, in the order of drawing."""
        spans = zip(self.places, self.enters, self.leaves, strict=True)
        return [at for at, enter, leave in spans if enter <= block <= leave]

    def verify(self, sample: Sample, blocks: int) -> None:
        length = len(self.places)
        hold(len(self.enters) == len(self.leaves) == length == len(set(self.places)), "a draw is uneven")
        hold(all(0 <= at < len(sample.rows) for at in self.places), "a draw is of none of its rows")
        pairs = zip(self.enters, self.leaves, strict=True)
        hold(all(0 <= enter <= leave < blocks for enter, leave in pairs), "a row is in no block's sample")


class Stage(Struct, forbid_unknown_fields=True):
    """Rows that are asked for at a time: places in the sample, best first; ``chosen`` is their block's
    number. ``least`` is how many of all asked so far have to be qualified for a sample in parts to go on.

    ``steps`` are numbers of prefixes that they test, in order, ``weights`` the parts of alpha that these
    bring.
    """

    name: str
    asked: list[int]
    chosen: int | None = None
    steps: list[int] = []
    weights: list[int] = []
    least: int = 0


class LabelRequest(Struct, frozen=True):
    """What a design starts from: whom it may ask of one group (None: of everyone), and how many."""

    collection: ScoredCollection
    group: str | None
    target: Promise
    alpha: float
    labels: int
    options: dict[str, Any]  # of the design of a block

    @property
    def size(self) -> int:
        return self.collection.sizes[self.group]

    def sampled(self, ranks: Ints) -> dict[str, Any]:
        """What every design records: what was asked, and the rows at these ranks, rising."""
        fetched = self.collection.at(self.group, ranks)
        last = np.append(fetched.scores[1:] != fetched.scores[:-1], True)
        tied = np.flatnonzero(last & (fetched.reaching > ranks + 1))
        sample = Sample(
            fetched.rows.tolist(), fetched.ids, fetched.scores.tolist(), ranks.tolist(), WAITING * len(ranks),
            list(zip(tied.tolist(), fetched.reaching[tied].tolist(), strict=True)),
        )  # fmt: skip
        asked = {"group": self.group, "target": msgspec.to_builtins(self.target), "alpha": self.alpha}
        return {**asked, "size": self.size, "sample": sample}


class Finding(Struct, frozen=True):
    """A threshold with its proof, or the refusal. ``listed``: candidates on the list."""

    threshold: float
    count: int
    listed: int | None
    proof: Any  # of the design, None with a refusal
    refusal: NotCertifiable | None = None
    share: float | None = None  # of the collection, at or above the threshold


class Design(Struct, tag_field="design", forbid_unknown_fields=True, kw_only=True):
    """One labelling of one group (or of everyone): what was drawn, what was chosen, what came back."""

    group: str | None
    target: dict[str, Any]  # its kind and numbers
    alpha: float
    size: int
    sample: Sample
    stages: list[Stage]

    pilots: ClassVar[tuple[str, ...]] = ("pilot",)  # stages that only choose what follows

    @classmethod
    def start(cls, asked: LabelRequest, rng: np.random.Generator) -> Self:
        """Draw everything that may be asked of one group."""
        raise NotImplementedError

    @property
    def promise(self) -> Promise:
        return kinds.read(self.target, Promise)

    @property
    def every_label(self) -> bool:
        """Whether a label that does not come is an error."""
        return proof_of(self.promise, MISSING_LABELS) is None

    @property
    def waiting(self) -> list[int]:
        """Places of the stage at hand whose labels have not come."""
        return self.sample.marked(self.stages[-1].asked, WAITING)

    def asked_before(self, stage: int) -> set[int]:
        """Places that earlier stages than this one asked for."""
        return {at for each in self.stages[:stage] for at in each.asked}

    @property
    def asked(self) -> list[int]:
        """Places that all stages so far asked for, best first."""
        return sorted(self.asked_before(len(self.stages)))

    def advance(self) -> None:
        """Go on to the next stage once the labels of this one are here."""
        while not self.waiting and (following := self.next_stage()) is not None:
            self.stages.append(following)

    def next_stage(self) -> Stage | None:
        """What is asked next, given the labels of all stages so far; None where nothing is."""
        raise NotImplementedError

    def decided(self, at: int) -> str | None:
        """What rests on the label at this place already; None while it can be corrected.

        A pilot may choose what follows in any way at all until a label of it is known.
        """
        number = next(n for n, stage in enumerate(self.stages) if at in set(stage.asked))
        later = self.stages[number + 1 :]
        if not later:
            return None
        if self.stages[number].name in self.pilots and len(self.waiting) == len(later[0].asked):
            return None if len(later) == 1 else "a later stage was chosen with it"
        if len(later) == 1 and len(self.waiting) == len(later[0].asked):
            return "what is asked for now shows what it certified"
        name, after = self.stages[number].name, later[0].name
        which = f"next {after}" if after == name else f"{after} that the {name} chose"
        return f"labels of the {which} are here"

    def correct(self, at: int, mark: str) -> None:
        """Replace a label that nothing rests on; what it chose is chosen anew."""
        self.sample.set_label(at, mark)
        if at not in set(self.stages[-1].asked):
            self.stages.pop()
            self.advance()

    def verdict(self) -> Finding:
        """What the labels prove, all of them being here."""
        raise NotImplementedError

    def cutoff(self) -> Cutoff:
        """The threshold that the labels certify, with its proof; raises the refusal where there is none."""
        verdict = self.verdict()
        if verdict.refusal is not None:
            raise verdict.refusal
        promise, level = self.promise, Level(self.alpha, "exact")
        steps = (Step(promise.smallest_pool, verdict.count, verdict.threshold, share=verdict.share),)
        return Cutoff(self.group, promise, level, self.rows, self.qualified, steps, proof=verdict.proof)

    def named(self) -> tuple[list[int], list[int]]:
        """Places on the list whatever their score, and places that are not."""
        return [], []

    def looks(self) -> list[int]:
        """Places that people still have to look at, of a list in three parts."""
        return []

    @property
    def most_looks(self) -> int | None:
        """How many looks are left at most, where all labels are here and people go on as they like."""
        return None

    @property
    def rows(self) -> int:
        """Rows asked for in all."""
        return len(self.asked)

    @property
    def qualified(self) -> int:
        """How many of them are qualified."""
        return len(self.sample.marked(self.asked))

    def refused(self, reason: str, count: int) -> Finding:
        error = refuse(self.promise, Level(self.alpha), self, reason, count=count)
        return Finding(float("nan"), count, None, None, error)

    def verify(self) -> None:
        """Raise where the file contradicts itself."""
        hold(proved_from(self.promise, "labelling"), "its target is none that is labelled for")
        self.sample.verify(self.size)
        places = [at for stage in self.stages for at in stage.asked]
        hold(bool(self.stages) and len(set(places)) == len(places), "its stages are impossible")
        hold(all(0 <= at < len(self.sample.rows) for at in places), "a stage asks for none of its rows")
        hold(all(stage.asked == sorted(stage.asked) for stage in self.stages), "a stage is out of order")
        earlier = self.asked_before(len(self.stages) - 1)
        hold(not self.sample.marked([*earlier], WAITING), "a stage began before the one before it had ended")
        told = {at for at, mark in enumerate(self.sample.labels) if mark != WAITING}
        hold(told <= set(places), "labels came that were not asked for")
        whole = not self.every_label or MISSING not in self.sample.labels
        hold(whole, "a label is missing, and its promise needs every one")

    def describe(self) -> list[str]:
        """The design and how many labels are here."""
        whose = "" if self.group is None else f"Group {self.group!r}: "
        return [f"{whose}{self.promise.describe()}; {counted(self.size, 'candidate')}, alpha {self.alpha:g}."]

    def counts(self, stage: Stage) -> tuple[int, int, int]:
        """How many labels of a stage have come, of how many, and how many of them are qualified."""
        marks = [self.sample.labels[at] for at in stage.asked]
        return marks.count("0") + marks.count("1"), len(marks), marks.count("1")

    def came(self, stage: Stage) -> str:
        received, asked, good = self.counts(stage)
        gone = len(self.sample.marked(stage.asked, MISSING))
        rest = f"; {gone:,} will not come" if gone else ""
        return f"  {stage.name}: {received:,} of {asked:,} labels are here, {good:,} qualified{rest}."


def wrapped(text: str) -> list[str]:
    """Lines of a paragraph, indented."""
    return textwrap.wrap(text, 98, initial_indent="  ", subsequent_indent="  ")
