"""What chosen labels would give, for a plan: estimates from a guessed population, never a promise.

Pilots are simulated from the guess, each chooses its block as a labelling would; given the block, chance
to certify and list length follow from the guess. The collection is taken as large.

A recall or a precision of one collection: its design is run, as it is, on a few collections simulated from
the guess; and what no rule could do better is said beside it.
"""

from __future__ import annotations

import numpy as np

from surelist import _numerals as numerals
from surelist._arrays import Floats, special
from surelist._scalars import as_fraction
from surelist.bounds.collection_lists import shortest_list
from surelist.errors import InvalidInput
from surelist.lifecycle.block_design import Layout, Need, choose_block, lay_out, need
from surelist.lifecycle.labelling_design import Fetched, Ints, LabelRequest
from surelist.lifecycle.labelling_recall import at_best
from surelist.lifecycle.labelling_state import DESIGNS
from surelist.lifecycle.plan import Needed, Plan, PlanRequest, PlanRow, Population, RateByShare
from surelist.promises.phrases import counted
from surelist.promises.promise import Promise

RULE = "labelling"
COLLECTION = 100_000
PILOTS = 24
MOST_LABELS = 50_000
RUNS = 20
BUDGETS = (300, 1_000, 3_000)


def labelling_row(
    target: Promise, alpha: float, labels: int, population: Population, pool_size: float, seed: int
) -> PlanRow:
    """Chance to certify and expected list length with ``labels`` chosen labels."""
    wanted = need(target, COLLECTION)
    layout = lay_out(COLLECTION, min(labels, COLLECTION), wanted, alpha=alpha, future=True)
    rates = np.linspace(0.0, population.base_rate, 4001)
    shares = np.maximum.accumulate(population.listed(rates))
    rng = np.random.default_rng(seed)
    chances, lists, counts = [], [], []
    for _ in range(PILOTS if layout.pilot_labels else 1):
        chance, listed, count = _one(layout, wanted, alpha, shares, rates, rng)
        chances.append(chance)
        lists.append(chance * listed)
        counts.append(count)
    assurance = float(np.mean(chances))
    size = pool_size * float(np.sum(lists) / np.sum(chances)) if assurance > 0.005 else None
    return PlanRow(labels, RULE, round(float(np.mean(counts))), assurance, size, None)


def _one(
    layout: Layout, wanted: Need, alpha: float, shares: Floats, rates: Floats, rng: np.random.Generator
) -> tuple[float, float, float]:
    """One simulated pilot: chance to certify, listed share if certified, critical count of its block."""
    chosen, otherwise, share_of_alpha = 0, None, 1 - layout.fallback
    rest = COLLECTION - layout.apart
    if layout.pilot_labels:
        at = np.sort(rng.random(layout.pilot_labels)) * layout.pilot_block / layout.apart
        good = rng.random(len(at)) < _chance(at, shares, rates)
        wide, share = np.array([float(layout.pilot_block)]), alpha * layout.fallback
        needed = float(wanted.count(layout.apart, wide, layout.pilot_labels, share)[0])
        hits = at[good]
        otherwise = float(hits[int(np.ceil(needed)) - 1]) if len(hits) >= needed else None
        chosen = choose_block(
            at, good, rest, layout.blocks, layout.labels, wanted, alpha * share_of_alpha,
            1.0 if otherwise is None else otherwise,
        )  # fmt: skip
    block = float(layout.blocks[chosen])
    end = block / rest
    count = float(wanted.count(rest, np.array([block]), layout.labels, alpha * share_of_alpha)[0])
    if count > layout.labels:
        return (0.0, 1.0, count) if otherwise is None else (1.0, otherwise, count)
    held = np.clip(np.interp(end, shares, rates) / end, 1e-12, 1 - 1e-12)
    certified = float(special.betainc(count, layout.labels - count + 1, held))
    listed = min(end, float(np.interp(count / layout.labels * end, rates, shares)))
    if otherwise is None:
        return certified, listed, count
    return 1.0, certified * listed + (1 - certified) * otherwise, count


def _chance(at: Floats, shares: Floats, rates: Floats) -> Floats:
    """The chance to be qualified at a rank, from the curve of qualified by listed share."""
    step = 0.5 * np.clip(at, 1e-3, 0.02)
    high, low = np.minimum(at + step, 1.0), np.maximum(at - step, 0.0)
    rise = np.interp(high, shares, rates) - np.interp(low, shares, rates)
    return np.asarray(np.clip(rise / (high - low), 0.0, 1.0))


def labelling_needs(target: Promise, alpha: float, population: Population, seed: int) -> list[Needed]:
    """About how many chosen labels certify with probability 50 % and 90 %."""
    needs: list[Needed] = []
    labels = 16
    for assurance in (0.5, 0.9):
        while (
            labels <= MOST_LABELS
            and labelling_row(target, alpha, labels, population, 1.0, seed).assurance < assurance
        ):
            labels = round(labels * 1.2)
        needs.append(Needed(assurance, RULE, labels if labels <= MOST_LABELS else None))
    return needs


class RanksAlone:
    """A collection of which nothing is known but how many there are: rows are ranks."""

    def __init__(self, size: int) -> None:
        self.sizes: dict[str | None, int] = {None: size}

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        return Fetched(ranks, -ranks.astype(np.float64), None, ranks + 1)


def plan_collection(asked: PlanRequest, size: int) -> Plan:
    """What so many labels of a collection of ``size`` candidates would give."""
    (best, _, _, basis), target, alpha = asked.populations(), asked.target, asked.alpha
    if target.sample not in ("control", "prefix"):
        raise InvalidInput("collection", "goes with Recall and Precision; leave it out for other promises.")
    target, curve = target.of_collection(), RateByShare(best)
    share = target.kept_share
    recall = target.sample == "control"
    if recall:
        oracle = size * float(best.listed(np.asarray([float(share) * best.base_rate]))[0])
    else:
        oracle = size * float(np.nan_to_num(curve.longest(float(share))))
    qualified, rows, said = round(size * best.base_rate), [], []
    for labels in dict.fromkeys(min(each, size) for each in asked.sizes or BUDGETS):
        lists = _simulated(LabelRequest(RanksAlone(size), None, target, alpha, labels, {}), curve, asked.seed)
        mean = float(np.mean(lists)) if lists else None
        excess = mean / oracle - 1 if mean is not None and oracle else None
        text = f"With {counted(labels, 'label')}: certified in {len(lists)} of {RUNS} simulations"
        text += "." if mean is None else f", with a list of about {numerals.about(mean)} on average."
        shortest = None
        if recall:
            shortest = shortest_list(size, qualified, labels, share, as_fraction(alpha, "alpha"))
            floor = f"With {qualified:,} qualified its list has {shortest:,} at best, however good the score."
            text = " ".join(filter(None, [text, at_best(size, labels, share, alpha), floor]))
        rows.append(PlanRow(labels, RULE, 0, len(lists) / RUNS, mean, excess, shortest=shortest))
        said.append(text)
    return Plan(
        target, alpha, basis, best.base_rate, oracle, tuple(rows), (), 1, None, unit="labels",
        collection=size, said=tuple(said),
    )  # fmt: skip


def _simulated(asked: LabelRequest, curve: RateByShare, seed: int) -> list[int]:
    """How long the lists are that the design certifies, each of a collection of its own."""
    rng = np.random.default_rng(seed)
    edges = np.unique(np.append(0.0, np.geomspace(1 / asked.size, 1.0, 100)))
    held = asked.size * curve.cells(edges)
    lists = []
    for _ in range(RUNS):
        try:
            design = DESIGNS[asked.target.sample or ""].start(asked, rng)
        except InvalidInput:  # it could not certify, however the labels turn out
            return []
        ranks = np.array(design.sample.ranks)
        above, below = (np.interp(at / asked.size, edges, held) for at in (ranks, ranks + 1))
        truth = rng.random(len(ranks)) < below - above
        while waiting := set(design.waiting):
            marks = zip(design.sample.labels, truth.tolist(), strict=True)
            design.sample.labels = "".join(
                str(int(good)) if at in waiting else mark for at, (mark, good) in enumerate(marks)
            )
            design.advance()
        lists.append(design.verdict().listed or 0)
    return [listed for listed in lists if listed]
