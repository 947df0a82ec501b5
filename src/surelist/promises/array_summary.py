"""The score summary of calibration rows in memory: one pass, block by block, with no array of their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from surelist._arrays import Column, Floats, Ints
from surelist.score_summary import BINS, REACH, STEPS, USUAL, Bins, Reached, RowSummary, Scale, summarise

BLOCK = 1 << 16  # rows at a time: temporary arrays stay in the processor's cache
WIDE = 1 << 18  # rows at a time where little is done to each: fewer calls
FIRST = 1 << 13  # of the first block, where nearly every score is the smallest of its bin so far
ZERO = int(REACH) * BINS  # where the usual bin of a score of 0 is in arrays of bins
PLACED = (1 << 16) - 1  # the last of the bins that a place is looked for in: their numbers take two bytes
CODES = 2 * ZERO + 1  # enough for the usual bins, and for own ones with one below and one above


def summarise_arrays(everyone: Column, qualified: Floats, thresholds: Sequence[float]) -> RowSummary:
    """What a calibration keeps of ``everyone``, of whom some are ``qualified``."""
    found, good = _Counted(USUAL, everyone, thresholds), _Counted(USUAL, qualified, thresholds, ends=False)
    if found.complete:
        bins = found.bins(good)
        if not bins.fine:  # unless every bin has one score only
            bins = found.bins(good, _largest(USUAL, everyone))
        if bins.fine:
            return summarise(bins, found.reached(good, thresholds))
    span = qualified if len(qualified) else everyone
    ends = [float(end) for each in (span, everyone) for end in (each.min(), each.max())]
    scale = Scale.own(*ends)
    found, good = _Counted(scale, everyone, thresholds), _Counted(scale, qualified, thresholds, ends=False)
    return summarise(found.bins(good, _largest(scale, everyone)), found.reached(good, thresholds))


class _Counted:
    """Rows and smallest score of each bin, the fingerprint's sum, and how many reach thresholds.

    Not ``complete`` where a score lies beyond the usual bins.
    """

    def __init__(
        self, scale: Scale, scores: Column, thresholds: Iterable[float], *, ends: bool = True
    ) -> None:
        self.rows, self.smallest, self.sum = np.zeros(CODES, dtype=np.int64), np.full(CODES, np.inf), 0
        self.highest, self.complete = -np.inf, True
        self.at_least, self.above = Counter[float](), Counter[float]()
        space = _Space()
        for block in _blocks(scores):
            low, high = float(block.min()), float(block.max())
            if scale is USUAL and not -REACH <= low <= high <= REACH:
                self.complete = False
                return
            self.highest = max(self.highest, high)
            codes, zero = space.codes(scale, block, low)
            counts = np.bincount(codes)
            self.rows[zero : zero + len(counts)] += counts
            if ends:
                _lower(self.smallest[zero:], codes, block)
            self.sum += space.sum(scale, block)
            for each in set(thresholds):
                self.at_least[each] += int(np.count_nonzero(block >= each))
                self.above[each] += int(np.count_nonzero(block > each))

    def reached(self, qualified: _Counted, thresholds: Iterable[float]) -> list[Reached]:
        return [
            Reached(self.at_least[each], qualified.at_least[each], self.above[each], qualified.above[each])
            for each in thresholds
        ]

    def bins(self, qualified: _Counted, largest: Floats | None = None) -> Bins:
        """Without ``largest`` any bin of two rows may hold two scores."""
        full = np.flatnonzero(self.rows)
        rows, low = self.rows[full], self.smallest[full]
        several = rows > 1 if largest is None else low < largest[full]
        return Bins(low, several, rows, qualified.rows[full], self.highest, (self.sum, qualified.sum))


def _root(scale: Scale, block: Floats) -> Floats:
    value: Floats = scale.inside(block)
    for _ in range(scale.roots):
        value = np.sqrt(value)
    return value


class _Space:
    """Arrays for one block, used again and again."""

    def __init__(self, rows: int = BLOCK) -> None:
        self.one, self.other = np.empty(rows), np.empty(rows)
        self.whole = np.empty(rows, dtype=np.int64)

    def codes(self, scale: Scale, block: Floats, lowest: float) -> tuple[Ints, int]:
        """The bins of scores as numbers from 0 on, and where those begin."""
        codes, place = self.whole[: len(block)], self.one[: len(block)]
        if scale is not USUAL:
            np.floor(scale.place(_root(scale, block)), out=place)
            np.copyto(codes, place, casting="unsafe")
            codes += 1
            codes -= block < scale.low
            codes += block > scale.high
            return codes, 0
        np.multiply(block, scale.per_unit, out=place)
        zero = ZERO
        if lowest < 0:
            np.floor(place, out=place)
            place += float(ZERO)
            zero = 0
        np.copyto(codes, place, casting="unsafe")  # of what is not negative, the whole part
        return codes, zero

    def numbers(self, block: Column, low: float, per_unit: float) -> Ints:
        """The even bins of scores, from 0 to PLACED."""
        value, codes = self.one[: len(block)], self.whole[: len(block)]
        np.subtract(block, low, out=value, dtype=np.float64)
        np.multiply(value, per_unit, out=value)
        np.clip(value, 0, PLACED, out=value)
        np.copyto(codes, value, casting="unsafe")
        return codes

    def sum(self, scale: Scale, block: Floats) -> int:
        """The sum of ``Scale.digits``: of whole numbers up to 2^30, and exact."""
        if scale is not USUAL:
            return int(scale.digits(block, _root(scale, block), np.floor).sum())
        product, whole = self.one[: len(block)], self.other[: len(block)]
        np.multiply(block, scale.factor, out=product)
        np.floor(product, out=whole)
        product -= whole
        product *= product
        product *= STEPS
        np.floor(product, out=product)
        return int(product.sum())


def _blocks(scores: Column) -> Iterator[Floats]:
    start = 0
    while start < len(scores):
        end = start + min(BLOCK, max(FIRST, start))
        yield scores[start:end].astype(np.float64, copy=False)
        start = end


def _lower(smallest: Floats, codes: Ints, scores: Floats) -> None:
    """Note scores that are smaller than all before them in their bin: after a few blocks, hardly any."""
    new = np.flatnonzero(scores < smallest.take(codes))
    while len(new):  # of several in one bin one is noted, and those that are smaller still come again
        codes, scores = codes[new], scores[new]
        smallest[codes] = scores
        new = np.flatnonzero(scores < smallest.take(codes))


def _largest(scale: Scale, scores: Column) -> Floats:
    """The largest score of each bin."""
    smallest, space = np.full(CODES, np.inf), _Space()
    for block in _blocks(scores):
        codes, zero = space.codes(scale, block, float(block.min()))
        _lower(smallest[zero:], codes, -block)
    return -smallest


def at_places(scores: Column, places: Ints, probes: Floats) -> tuple[Floats, bool]:
    """The scores at these places of the rising order, and whether any of the probes is a score: counted in
    even bins, of which few are then sorted.

    Bins lie between the ends of a sample; scores beyond are in the first and the last. The number of a bin
    never falls when the score grows, so that places are exact whatever the sample was.
    """
    sample = scores[:: max(1, len(scores) >> 14)].astype(np.float64)
    low, width = float(sample.min()), float(sample.max()) - float(sample.min())
    per_unit = PLACED / width if width else 0.0
    if not 0 < per_unit < np.inf:
        ordered = np.sort(scores.astype(np.float64, copy=False))
        return ordered[places], _any_of(probes, ordered)
    numbers, counts = np.empty(len(scores), dtype=np.uint16), np.zeros(PLACED + 1, dtype=np.int64)
    space, one = _Space(max(WIDE, len(probes))), np.int64(1)
    parts = [slice(start, start + WIDE) for start in range(0, len(scores), WIDE)]
    with np.errstate(over="ignore"):  # far beyond the sample: in the last bin
        for each in parts:
            numbers[each] = codes = space.numbers(scores[each], low, per_unit)
            np.add.at(counts, codes, one)  # quicker than bincount
        wanted = np.zeros(PLACED + 1, dtype=np.bool_)
        wanted[space.numbers(probes, low, per_unit)] = True
    ends = np.cumsum(counts)
    held = np.searchsorted(ends, places, side="right")
    wanted[held] = True
    few = np.concatenate([scores[each].compress(wanted.take(numbers[each])) for each in parts])
    kept = np.sort(few.astype(np.float64, copy=False))
    inside = np.where(wanted, counts, 0)
    first = np.cumsum(inside) - inside
    return kept[first[held] + places - (ends - counts)[held]], _any_of(probes, kept)


def _any_of(probes: Floats, ordered: Floats) -> bool:
    """Whether one of the probes is among scores in rising order."""
    return bool((ordered.searchsorted(probes) < ordered.searchsorted(probes, side="right")).any())
