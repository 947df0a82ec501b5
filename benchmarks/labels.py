"""Few labels: list length, refusals and false certificates, beside the exact rule and the best possible.

    python benchmarks/labels.py > benchmarks/labels.txt               (about 8 minutes of CPU) python
    benchmarks/labels.py [--runs 100] [--part pools|sizes|blocks|collection|recall|stop|acs|reviews]

Everything goes through ``surelist.Labelling`` and ``surelist.StopTest`` with the system's randomness. A
list of a refused run counts as everyone. Populations: ``surelist.examples`` and six binormal ones (share
qualified, AUC, k of 100). Real data is read from ../shared/data and skipped with a message where it is
absent.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

import surelist as sl
from surelist import bounds, examples

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Draw = Callable[[np.random.Generator, int], tuple[Floats, Bools]]

DATA = Path(__file__).parents[2] / "shared" / "data"
BINORMAL = (
    (0.19, 0.87, 5),
    (0.12, 0.88, 4),
    (0.30, 0.75, 10),
    (0.05, 0.93, 2),
    (0.50, 0.80, 20),
    (0.19, 0.65, 5),
)
ALPHA = 0.1


@dataclass(frozen=True)
class Population:
    """A population that can be drawn from; ``limit(rate)`` and ``listed(threshold)`` are exact where they
    can be."""

    name: str
    draw: Draw
    limit: Callable[[float], float]
    listed: Callable[[float], float]  # candidates of 100 at or above a threshold


def binormal(share: float, auc: float, k: int) -> Population:
    shift = float(np.sqrt(2) * special.ndtri(auc))

    def draw(rng: np.random.Generator, size: int) -> tuple[Floats, Bools]:
        labels = rng.random(size) < share
        return rng.standard_normal(size) + shift * labels, labels

    def listed(t: float) -> float:
        return 100 * float(share * special.ndtr(shift - t) + (1 - share) * special.ndtr(-t))

    return Population(
        f"{share:.0%}, AUC {auc:.2f}, k={k}",
        draw,
        lambda rate: shift - float(special.ndtri(rate / share)),
        listed,
    )


def example() -> Population:
    at = (np.arange(4_000_000) + 0.5) / 4_000_000
    chance = special.expit(-2.2 + 1.8 * special.ndtri(at))[::-1]
    held = np.cumsum(chance) / len(chance)
    return Population(
        "surelist.examples",
        examples.population,
        lambda rate: float(chance[np.searchsorted(held, rate)]),
        lambda t: 100 * float(special.ndtr(-(special.logit(t) + 2.2) / 1.8)),
    )


def finite(name: str, scores: Floats, labels: Bools) -> Population:
    """Draws from real rows."""
    order = np.argsort(-scores)
    held, rising = np.cumsum(labels[order]), np.sort(scores)

    def draw(rng: np.random.Generator, size: int) -> tuple[Floats, Bools]:
        rows = rng.choice(len(scores), size)
        return scores[rows], labels[rows]

    return Population(
        name,
        draw,
        lambda rate: float(scores[order][np.searchsorted(held, rate * len(scores))]),
        lambda t: 100 * (1 - float(np.searchsorted(rising, t)) / len(scores)),
    )


def answer(work: sl.Labelling, labels: Bools) -> sl.Policy | None:
    while len(rows := work.ask()):
        work.tell(rows, labels[rows])
    try:
        return work.policy
    except sl.NotCertifiable:
        return None


def pools(population: Population, k: int, size: int, budget: int, runs: int) -> float:
    """Future pools: mean list length as a multiple of the oracle's."""
    rng, target = np.random.default_rng(), sl.Expected(k, 100)
    limit = population.limit(k / 100)
    best = population.listed(limit)
    lists, false, refused, exact = [], 0, 0, []
    count = bounds.critical_count(budget, k / 100, ALPHA)
    for _ in range(runs):
        scores, labels = population.draw(rng, size)
        policy = answer(sl.Labelling(scores, target, alpha=ALPHA, labels=budget), labels)
        refused += policy is None
        lists.append(100.0 if policy is None else population.listed(policy.threshold))
        false += policy is not None and policy.threshold > limit
        good = np.sort(scores[:budget][labels[:budget]])
        exact.append(population.listed(float(good[-count])) if len(good) >= count else 100.0)
    mean, random = float(np.mean(lists)), float(np.mean(exact))
    print(
        f"{population.name:<22}{size:>9,}{budget:>7,}{mean:>8.2f}{mean / best:>7.2f} x{random:>9.2f}{random / best:>7.2f} x"
        f"{best:>8.2f}{refused / runs:>9.1%}{false / runs:>8.1%}",
        flush=True,
    )
    return mean / best


HEAD = (
    f"{'population':<22}{'N':>9}{'labels':>7}{'list':>8}{'':>9}{'random':>9}{'':>9}{'oracle':>8}{'refused':>9}"
    f"{'false':>8}"
)


def future(runs: int, size: int, budgets: tuple[int, ...], binormal_budgets: tuple[int, ...]) -> None:
    print(HEAD)
    for budget in budgets:
        pools(example(), 5, size, budget, runs)
    for budget in binormal_budgets:
        ratios = [pools(binormal(q, auc, k), k, size, budget, runs) for q, auc, k in BINORMAL]
        print(f"{'mean of the six':<22}{size:>9,}{budget:>7,}{'':>8}{np.mean(ratios):>7.2f} x")


def blocks() -> None:
    """What blocks that use their share of alpha up are worth: the level reached, and the count in rows of
    the collection.

    Exact for every block that may be chosen: no labels are drawn. Before, blocks grew by 6 % each.
    """
    from surelist.bounds.collection import about_level, block_rate_count
    from surelist.lifecycle.block_design import lay_out, need
    from surelist.lifecycle.labelling_design import block_sizes

    size, share = 20_000, ALPHA * 0.85
    print(f"{'k of 100':<9}{'labels':>7}{'level, even blocks':>20}{'tight':>8}{'rows needed':>13}")
    for k in (2, 5, 20):
        for budget in (100, 300, 1000):
            target = sl.Expected(k, 100)
            wanted = need(target, size)
            layout = lay_out(
                size,
                budget,
                wanted,
                alpha=ALPHA,
                future=True,
                pilot=0.25,
                fallback=0.15,
                aside=0.1,
                block=None,
            )
            rest, rates = size - layout.apart, wanted.rates
            assert rates is not None
            even = block_sizes(max(layout.labels, int(1.3 * rest * k / 100)), rest // 3)
            rows = []
            for each in even[:: max(1, len(even) // 8)]:
                tight = max(block for block in layout.blocks if block <= each)
                found = []
                for block in (each, tight):
                    count = block_rate_count(rest, block, layout.labels, target.rate, share)
                    level = about_level(
                        rest, np.array([float(block)]), layout.labels, rates, np.array([float(count)])
                    )
                    found += [float(level[0]), count * block / layout.labels]
                rows.append(found)
            plain, needed, used, fewer = np.mean(rows, axis=0)
            print(f"{k:<9}{budget:>7,}{plain:>20.4f}{used:>8.4f}{fewer / needed - 1:>13.1%}", flush=True)


def collection(runs: int) -> None:
    """A collection in hand: 20,000 candidates, at least 1,000 qualified on the list."""
    rng, lengths, false, refused = np.random.default_rng(2), [], 0, 0
    for _ in range(runs):
        scores, labels = examples.population(rng, 20_000)
        work = sl.Labelling(scores, sl.AtLeast(1000), alpha=ALPHA, labels=300)
        policy = answer(work, labels)
        best = int(np.searchsorted(np.cumsum(labels[np.argsort(-scores)]), 1000)) + 1
        mask = scores >= policy.threshold if policy else np.ones(len(scores), dtype=bool)
        refused += policy is None
        lengths.append(mask.sum() / best)
        false += int(labels[mask].sum()) < 1000
    print(
        f"collection of 20,000, k = 1,000, 300 labels: list {np.mean(lengths):.3f} x the oracle's, "
        f"refused {refused / runs:.1%}, false {false / runs:.1%}"
    )


def recall() -> None:
    """What the solved level of a control sample gives over the binomial rule."""
    from fractions import Fraction

    from surelist.bounds.control_sample import _levels, _missable, binomial_drops, control_rule

    for size, drawn, share in ((2000, 600, "0.95"), (10_000, 2500, "0.95"), (10_000, 2500, "0.8")):
        start = time.process_time()
        rule = control_rule(size, drawn, Fraction(share), ALPHA)
        took = time.process_time() - start
        plain = binomial_drops(drawn, Fraction(share), ALPHA)
        relevant = np.arange(size + 1)
        level = _levels(size, drawn, plain, relevant, _missable(relevant, Fraction(share))).max()
        print(
            f"N = {size:,}, n = {drawn:,}, r = {share}: level {rule.level:.4f} over every R, {rule.needed} relevant "
            f"items suffice; binomial {level:.4f}, {int(np.argmax(plain >= 0))}; solved in {took:.2f} s of CPU"
        )


def stop(runs: int) -> None:
    """Stop test: 8,000 not reviewed, 195 found, recall .95, alpha .05."""
    plan = sl.StopTest(195, 8000, 0.95, alpha=0.05)
    print(f"looks {plan.sizes}; level {plan.level:.5f}")
    for left in (0, 2, 5, 11):
        drawn, certified, false = [], 0, 0
        for _ in range(runs):
            test = sl.StopTest(195, 8000, 0.95, alpha=0.05)
            labels = np.zeros(8000)
            labels[:left] = 1
            while len(rows := test.ask()):
                test.tell(labels[rows])
            drawn.append(test.drawn)
            certified += test.certified
            false += test.certified and 195 + test.hits < 0.95 * (195 + left)
        print(
            f"  {left:>2} left: {np.mean(drawn):>6,.0f} drawn, certified {certified / runs:.1%}, false {false / runs:.1%}"
        )


def census(runs: int, data: Path) -> None:
    """Census: employed people of 20,000 drawn, score by logistic regression on other rows."""
    path = data / "acs2024_24states.parquet"
    if not path.is_file():
        print(f"census: skipped, {path} is not here.")
        return
    import pyarrow.parquet as pq
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    columns = ["AGEP", "SCHL", "MAR", "DIS", "SEX", "CIT"]
    table = pq.read_table(path, columns=[*columns, "employed"]).slice(0, 700_000)
    features = np.column_stack([table[name].to_numpy().astype(float) for name in columns])
    labels = table["employed"].to_numpy().astype(bool)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[:50_000], labels[:50_000])
    rng = np.random.default_rng(3)
    scores = model.decision_function(features[50_000:]) + 1e-9 * rng.random(len(labels) - 50_000)
    labels = labels[50_000:]

    print(HEAD)
    for budget in (100, 300, 1000):
        pools(finite("census 2024, k=20", scores, labels), 20, 20_000, budget, runs)


def reviews(runs: int, data: Path) -> None:
    """Review topics: each a collection; recall .9 from a control sample of 30 %, and the rest of a half
    review."""
    path = data / "clef_tar_2019.parquet"
    if not path.is_file():
        print(f"reviews: skipped, {path} is not here.")
        return
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["review", "score", "label"])
    topic, score = table["review"].to_numpy(zero_copy_only=False), table["score"].to_numpy().astype(float)
    label = table["label"].to_numpy().astype(bool)
    print(
        f"{'topic':<10}{'abstracts':>10}{'relevant':>9}{'certified':>10}{'listed':>8}{'recall':>8}{'false':>7}"
    )
    for name in sorted(set(topic.tolist())):
        own = topic == name
        scores, labels = score[own], label[own]
        drawn = max(1, round(0.3 * len(scores)))
        shares, kept, false, certified = [], [], 0, 0
        for _ in range(runs):
            work = sl.Labelling(scores, sl.Recall(0.9), alpha=ALPHA, labels=drawn)
            policy = answer(work, labels)
            if policy is None:
                continue
            mask = work.select(scores)
            certified += 1
            shares.append(mask.mean())
            kept.append(labels[mask].sum() / labels.sum())
            false += kept[-1] < 0.9
        cells = f"{np.mean(shares):>8.2f}{np.mean(kept):>8.3f}" if shares else f"{'-':>8}{'-':>8}"
        print(
            f"{name:<10}{len(scores):>10,}{labels.sum():>9}{certified / runs:>10.0%}{cells}{false / runs:>7.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parts = ("pools", "sizes", "blocks", "collection", "recall", "stop", "acs", "reviews")
    parser.add_argument("--part", choices=parts)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    runs, part = options.runs, options.part
    if part in (None, "pools"):
        future(runs, 100_000, (100, 300, 1000), (300,))
    if part in (None, "sizes"):
        for size in (5_000, 20_000):
            future(runs, size, (100, 300, 1000), (100, 300, 1000))
    if part in (None, "blocks"):
        blocks()
    if part in (None, "collection"):
        collection(runs)
    if part in (None, "recall"):
        recall()
    if part in (None, "stop"):
        stop(runs)
    if part in (None, "acs"):
        census(runs, options.data)
    if part in (None, "reviews"):
        reviews(max(20, runs // 4), options.data)


if __name__ == "__main__":
    main()
