"""How a labelling is laid out: pilot, block, shares of alpha; and how the pilot's labels choose the block.

Nothing here decides a level: any choice made from the pilot alone is valid [theory: few-labels]. It decides
how short the list comes out, and whether it could ever come out at all (``require_enough``, which takes
every label to turn out as well as can be). A small block needs few labels per qualified row found in it,
but it must hold enough of them. The pilot's labels give a posterior for the curve "chance to be qualified
at a rank" (a logistic line on the normal scale of ranks); the block is the one with the shortest expected
list under it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist._arrays import special
from surelist.bounds.collection import Rates, tightened
from surelist.bounds.control_sample import control_rule
from surelist.bounds.counts import critical_count
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_design import Floats, LabelRequest, block_sizes
from surelist.promises.phrases import counted, percent
from surelist.promises.promise import About, Promise

WIDE = 8.0  # the pilot's block, as a multiple of the qualified rows that the target needs
FEWEST = 40  # labels below which a pilot costs more than it brings
MOST_APART = 100_000  # rows set aside for the pilot; more would not be used
SEARCHED = 20_000  # candidates up to which the fewest labels are searched for; beyond, some that could


class Need(Struct, frozen=True):
    """Qualified rows that a list must hold among the collection: mean and variance of T, as shares.

    ``rates``: for future pools, the rate above the boundary as points and weights.
    """

    mean: float
    variance: float
    rates: Rates | None = None

    def count(self, size: int, block: Floats, drawn: int, alpha: float) -> Floats:
        """About the critical count of a sample of ``drawn`` rows of a block (normal approximation)."""
        share = np.minimum(1.0, self.mean * size / block)
        variance = drawn * share * (1 - share) * np.maximum(0.0, 1 - drawn / block)
        spread = np.sqrt(variance + (drawn * size / block) ** 2 * self.variance)
        return np.asarray(drawn * share - float(special.ndtri(min(alpha, 0.5))) * spread + 0.5)


class Layout(Struct, frozen=True):
    """The design of one labelling, before any label: how many rows, of what, at which share of alpha."""

    pilot_labels: int
    apart: int  # rows set aside for the pilot (0: the pilot's rows stay in the collection)
    pilot_block: int
    blocks: tuple[int, ...]
    labels: int
    fallback: float  # share of alpha of the pilot's own block


def need(target: Promise, size: int) -> Need:
    """How many qualified rows of the collection the target asks for, as a share of it."""
    return Need(*target.block_need(size))


def lay_out(
    size: int, labels: int, need: Need, *, alpha: float, future: bool, pilot: float = 0.25,
    fallback: float = 0.15, aside: float = 0.1, block: int | None = None,
) -> Layout:  # fmt: skip
    """The design for ``size`` candidates and ``labels`` labels; ``block`` given: no pilot."""
    smallest = math.ceil(1.02 * need.mean * size) + 1
    if labels >= size:
        return Layout(0, 0, 0, (size,), size, 0.0)
    if block is not None:
        return Layout(0, 0, 0, (min(max(block, labels), size),), labels, 0.0)
    first = round(labels * pilot)
    apart = min(max(math.ceil(size * aside), 2 * first), MOST_APART) if future else first
    rest = size - apart
    if labels < FEWEST or first == 0 or rest < 2 * labels:
        only = min(size, max(labels, math.ceil(WIDE / 2 * need.mean * size)))
        return Layout(0, 0, 0, _tight(size, [only], labels, need, alpha), labels, 0.0)
    part = apart if future else size
    wide = min(part, max(first, math.ceil(WIDE * need.mean * part)))
    if fallback:
        (wide,) = _tight(part, [wide], first, need, alpha * fallback)
    sizes = block_sizes(min(rest, max(labels - first, smallest)), rest)
    tight = _tight(rest, sizes, labels - first, need, alpha * (1 - fallback))
    return Layout(first, apart if future else 0, wide, tight, labels - first, fallback)


def _tight(size: int, blocks: list[int], drawn: int, need: Need, alpha: float) -> tuple[int, ...]:
    """Blocks that use their share of alpha up, where the rates are known."""
    return tuple(blocks if need.rates is None else tightened(size, blocks, drawn, need.rates, alpha))


def choose_block(
    shares: Floats, labels: NDArray[np.bool_], size: int, blocks: Sequence[int], drawn: int, need: Need,
    alpha: float, otherwise: float,
) -> int:  # fmt: skip
    """Number of the block with the shortest expected list, given the pilot's labels at rank ``shares``.

    ``otherwise`` is the share of the collection that is listed if the block's test certifies nothing.
    """
    weights, curves = _posterior(shares, labels)
    at, _ = _ranks()
    sizes = np.asarray(blocks, dtype=np.float64)
    ends = sizes / size
    counts = need.count(size, sizes, drawn, alpha)
    wanted = counts / drawn * ends  # qualified rows, as a share of all, at the threshold
    expected = np.zeros(len(sizes))
    for weight, curve in zip(weights, curves, strict=True):
        held = np.interp(ends, at, curve)
        chance = np.clip(held / ends, 1e-12, 1 - 1e-12)
        certified = special.betainc(counts, np.maximum(drawn - counts + 1, 1e-3), chance)
        listed = np.minimum(np.interp(wanted, curve, at), ends)
        expected += weight * (certified * listed + (1 - certified) * otherwise)
    expected[counts > drawn] = np.inf
    return int(np.argmin(expected)) if np.isfinite(expected).any() else len(sizes) - 1


@cache
def _ranks() -> tuple[Floats, Floats]:
    """Rank shares from 1/10,000 to 1 and the normal score in the middle of each step."""
    at = np.exp(np.linspace(math.log(1e-4), 0.0, 140))
    middle = (np.append(0.0, at[:-1]) + at) / 2
    return at, special.ndtri(1 - np.clip(middle, 1e-6, 1 - 1e-4))


@cache
def _curves() -> tuple[Floats, Floats, Floats, Floats]:
    """Intercepts, slopes, prior and cumulative shares of qualified rows of every logistic line tried."""
    intercepts, slopes = (
        each.ravel() for each in np.meshgrid(np.linspace(-8, 4, 49), np.linspace(-0.3, 4.5, 25))
    )
    at, scores = _ranks()
    steps = np.diff(np.append(0.0, at))
    held = np.cumsum(special.expit(intercepts[:, None] + slopes[:, None] * scores) * steps, axis=1)
    prior = -0.5 * ((intercepts + 2) / 3) ** 2 - 0.5 * ((slopes - 1.5) / 1.5) ** 2
    return intercepts, slopes, prior, held


def _posterior(shares: Floats, labels: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Weights and curves of the likely lines."""
    intercepts, slopes, prior, held = _curves()
    scores = special.ndtri(1 - np.clip(shares, 1e-6, 1 - 1e-6))
    line = intercepts[:, None] + slopes[:, None] * scores
    log = prior - np.logaddexp(0, np.where(labels, -line, line)).sum(axis=1)
    weights = np.exp(log - log.max())
    likely = np.argsort(-weights)[:250]
    likely = likely[weights[likely] > 1e-4]
    chosen = weights[likely]
    return chosen / chosen.sum(), held[likely]


def _laid_out(asked: LabelRequest, labels: int) -> Layout:
    """The design of this many labels."""
    target, size = asked.target, asked.size
    if target.sample == "control":
        return Layout(0, 0, 0, (size,), labels, 0.0)
    future = target.about is not About.COLLECTION
    return lay_out(size, labels, need(target, size), alpha=asked.alpha, future=future, **asked.options)


def require_enough(asked: LabelRequest) -> Layout:
    """The design, where it can certify; else an error with a number of labels that could."""
    layout = _laid_out(asked, asked.labels)
    if _could(asked, layout):
        return layout
    enough, groups = _enough(asked), len(asked.collection.sizes)
    given = counted(asked.labels, "label") + (f" in each of {groups} groups" if groups > 1 else "")
    promise = f"{asked.target.describe()} at alpha {percent(asked.alpha)}"
    way_out = (
        f"no number of labels of these {counted(asked.size, 'candidate')} could; ask for less, or bring more"
        if enough is None
        else f"{enough * groups:,} could, if enough of them are qualified"
    )
    raise InvalidInput("labels", f"{given} cannot certify {promise}, however they turn out; {way_out}.")


def _could(asked: LabelRequest, layout: Layout) -> bool:
    """Whether labels that all turn out qualified would certify; of the blocks the widest needs the fewest."""
    target, size, alpha = asked.target, asked.size, asked.alpha
    if target.sample == "control":  # twice what the binomial rule needs: it fails at alpha squared
        if layout.labels >= 2 * binomial_needed(target.kept_share, alpha):
            return True
        return control_rule(size, layout.labels, target.kept_share, alpha).needed is not None
    pilot, share = layout.pilot_labels, alpha * layout.fallback
    if (
        share
        and pilot
        and target.block_count(layout.apart or size, layout.pilot_block, pilot, share) <= pilot
    ):
        return True
    free, main = size - (layout.apart or pilot), alpha * (1 - layout.fallback)
    known = pilot if target.about is About.COLLECTION else 0
    counts = (target.block_count(free, each, layout.labels, main, known) for each in layout.blocks[::-1])
    return any(count <= layout.labels for count in counts)


def binomial_needed(share: Fraction, alpha: float) -> int:
    """The fewest qualified ones with which the binomial rule keeps a share: share^n <= alpha."""
    count = max(1, math.ceil(math.log(alpha) / math.log(float(share))) - 1)
    while critical_count(count, share, alpha) > count:
        count += 1
    return count


def _enough(asked: LabelRequest) -> int | None:
    """A number of labels that could: the fewest, or in large collections those of the binomial rule."""
    size, control = asked.size, asked.target.sample == "control"
    most = binomial_needed(asked.target.kept_share, asked.alpha) if control else 2 * asked.labels
    low, high = asked.labels, min(size, most)
    while not _could(asked, _laid_out(asked, high)):
        if high == size:
            return None
        low, high = high, min(size, 2 * high)
    while high - low > 1 and (size <= SEARCHED or not control):
        middle = (low + high) // 2
        low, high = (low, middle) if _could(asked, _laid_out(asked, middle)) else (middle, high)
    return high
