"""Plans that are simulated from a guess of the population [theory: planning]; nothing here is a promise.

Precision, a budget and what a triage leaves to people: chances and lengths are averages over simulated
calibrations. What chosen labels would give: pilots are simulated, each chooses its block as a labelling
would; given the block, chance to certify and list length follow from the guess. A recall or a precision of
one collection: its design is run, as it is, on a few collections; beside it what no rule could do better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelist import _numerals as numerals, bounds
from surelist._arrays import Floats, Ints, special
from surelist._names import option
from surelist._scalars import as_fraction
from surelist.bounds.collection_lists import shortest_list
from surelist.bounds.precision import chances, passing
from surelist.errors import InvalidInput, NotCertifiable
from surelist.lifecycle.block_design import Layout, Need, choose_block, lay_out, need
from surelist.lifecycle.labelling_design import Fetched, LabelRequest
from surelist.lifecycle.labelling_recall import at_best
from surelist.lifecycle.labelling_state import DESIGNS
from surelist.lifecycle.plan import PER, Needed, Plan, PlanRequest, PlanRow, Population, RateByShare
from surelist.lifecycle.pool_plans import plan_pools
from surelist.promises import kinds
from surelist.promises.evidence import Evidence, RowColumns
from surelist.promises.kinds.precision import STARTS, grid
from surelist.promises.phrases import counted
from surelist.promises.promise import Level, Promise

SIZES = (100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 100_000, 300_000)
RUNS = 400
TRIAGES = 60
CELLS = 200  # of the population, by score: within one, candidates are as likely to be qualified
OTHERS = 4_000
RULE = "labelling"
COLLECTION = 100_000
PILOTS = 24
MOST_LABELS = 50_000
LABELLED = 20  # collections of a design
BUDGETS = (300, 1_000, 3_000)


def plan_special(asked: PlanRequest, *, labelling: bool) -> Plan:
    """The plan that the design of a promise asks for."""
    target = asked.target
    if isinstance(target, (list, tuple)):
        raise InvalidInput("target", "plan several promises one by one, each with its share of alpha.")
    if not isinstance(target, Promise):
        raise InvalidInput(
            "target",
            f"expected a promise that can be planned: {kinds.offered(lambda kind: kind.planned)}; got "
            f"{target!r}.",
        )
    if target.amounts:
        raise InvalidInput("target", "no plan for amounts: nothing is guessed of how large they are.")
    if not target.planned:
        raise InvalidInput("target", f"there is no plan for {target.describe()}.")
    if labelling:
        raise InvalidInput(
            "labelling",
            "goes with promises of rows that labels can be chosen for; leave it out, or for a recall or a "
            f"precision of one collection give {option('collection')}, how many candidates it has.",
        )
    if target.whole_pools:
        return plan_pools(asked)
    best, _, _, basis = asked.populations()
    more: dict[str, Any] = {}
    if target.three_ways:
        oracle, rows, more["measure"] = *_bands(asked, best), "band"
    elif target.listed is not None:
        oracle, rows, more["measure"] = *_certified(asked, best), "certified"
    else:
        oracle, rows, more["start"] = _precise(asked, best)
    return Plan(
        target, asked.alpha, basis, best.base_rate, oracle, tuple(rows), (), asked.pools, None, **more
    )


def _certified(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow]]:
    """How many a list of fixed length is certified to hold, on average over calibrations."""
    target = asked.target
    rate = float(RateByShare(best).rate(np.array([target.size / target.pool_size]))[0])
    rows = []
    for n in asked.sizes or SIZES:
        some = 1 - (1 - rate) ** n
        places = np.clip((np.arange(64) + 0.5) / 64, 1 - some + 1e-12, None)
        # binomial quantiles by the normal curve; a plan needs no more
        near = np.rint(n * rate + math.sqrt(n * rate * (1 - rate)) * special.ndtri(places))
        counts, weights = np.unique(np.clip(near, 1, n), return_counts=True)
        certified = [bounds.largest_rate(n, int(count), asked.alpha) for count in counts]
        k = float(target.pool_size * np.average(certified, weights=weights))
        rows.append(PlanRow(n, "exact", 0, some, k, k / (target.pool_size * rate) - 1))
    return target.pool_size * rate, rows


def _precise(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow], float | None]:
    """The walk on simulated rows, with lists from very many unlabelled scores; and where it should start."""
    target, curve, rng = asked.target, RateByShare(best), np.random.default_rng(asked.seed)
    longest = curve.longest(target.share)
    start = None if math.isnan(longest) else round(longest / 2, 4)
    starts = (target.start,) if target.start is not None else (start,) if start is not None else STARTS
    rows = []
    for n in asked.sizes or SIZES:
        lists = _walks(target.share, asked.alpha, starts, n, curve, rng)
        certain = lists > 0
        mean = PER * float(lists[certain].mean()) if certain.mean() >= 0.005 else None
        rows.append(PlanRow(n, "exact", 0, float(certain.mean()), mean, mean and mean / (PER * longest) - 1))
    return PER * longest, rows, start


def _walks(
    share: float, alpha: float, starts: Sequence[float], n: int, curve: RateByShare, rng: np.random.Generator
) -> Floats:
    """Shares on the longest lists that pass in simulations; 0 where none does."""
    others = 1 - (np.arange(OTHERS) + 0.5) / OTHERS
    thresholds, levels, _ = grid(others, starts, (1,) * len(starts), alpha)
    shares = 1 - thresholds + 0.5 / OTHERS
    rates = curve.rate(shares)
    qualified, others = np.diff(rates, prepend=0.0), np.diff(shares - rates, prepend=0.0)
    cells = np.clip(np.concatenate([qualified, others]), 0, None)
    drawn = rng.multinomial(n, np.append(cells, max(0.0, 1 - cells.sum())), RUNS)
    steps = len(shares)
    hits = np.cumsum(drawn[:, :steps], axis=1)
    listed = hits + np.cumsum(drawn[:, steps : 2 * steps], axis=1)
    passed = (passing(each, levels) for each in chances(listed, hits, share))
    return np.asarray([shares[each].max(initial=0.0) for each in passed])


def _bands(asked: PlanRequest, best: Population) -> tuple[float, list[PlanRow]]:
    """The triage itself on simulated rows: how often it is certified, and the band that is left."""
    rng, edges = np.random.default_rng(asked.seed), np.linspace(0.0, 1.0, CELLS + 1)
    chance = np.clip(np.diff(RateByShare(best).cells(edges)) * CELLS, 0.0, 1.0)  # best scores first
    others = 1 - (np.arange(OTHERS) + 0.5) / OTHERS
    rows = []
    for n in asked.sizes or SIZES[:9]:
        bands = []
        for _ in range(TRIAGES):
            scores = rng.random(n)
            good = rng.random(n) < chance[((1 - scores) * CELLS).astype(int).clip(0, CELLS - 1)]
            drawn = RowColumns(scores, good)
            evidence = Evidence(drawn, None, drawn, others=others)
            try:
                found = asked.target.certify(evidence, Level(asked.alpha))
            except NotCertifiable:
                continue
            bands.append(found.steps[0].threshold - found.proof.looked_from)
        mean = PER * float(np.mean(bands)) if bands else None
        rows.append(PlanRow(n, "exact", 0, len(bands) / TRIAGES, mean, None))
    return PER * _ideal_band(asked.target, chance), rows


def _ideal_band(target: Any, chance: Floats) -> float:
    """The share of candidates between the longest lists that keep both promises, the population known."""
    many = np.arange(1, CELLS + 1)
    accepted = np.cumsum(chance) >= target.accept * many
    first = float(many[accepted].max(initial=0)) / CELLS
    if target.reject is not None:
        rejected = np.cumsum(1 - chance[::-1]) >= target.reject * many
    else:
        rejected = np.cumsum(chance[::-1]) <= (1 - target.reject_recall) * chance.sum()
    last = float(many[rejected].max(initial=0)) / CELLS
    return math.nan if first == 0 or last == 0 else max(0.0, 1 - first - last)


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
        text = f"With {counted(labels, 'label')}: certified in {len(lists)} of {LABELLED} simulations"
        text += "." if mean is None else f", with a list of about {numerals.about(mean)} on average."
        shortest = None
        if recall:
            shortest = shortest_list(size, qualified, labels, share, as_fraction(alpha, "alpha"))
            floor = f"With {qualified:,} qualified its list has {shortest:,} at best, however good the score."
            text = " ".join(filter(None, [text, at_best(size, labels, share, alpha), floor]))
        rows.append(PlanRow(labels, RULE, 0, len(lists) / LABELLED, mean, excess, shortest=shortest))
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
    for _ in range(LABELLED):
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
