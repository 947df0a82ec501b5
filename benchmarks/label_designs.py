"""Few labels: designs beside one another, on the same collections: even or tight blocks, more or less for
the pilot.

    python benchmarks/label_designs.py [--labels 300] [--runs 120] [--size 20000]

Simulates draws and tests with the exact counts of ``surelist.bounds``, without the state that ``Labelling``
keeps, so that designs which are not offered can be tried. What is offered: tight blocks, a quarter of the
labels for the pilot.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
from scipy import special

import surelist as sl
from surelist.bounds.collection import block_rate_count
from surelist.lifecycle.block_design import choose_block, lay_out, need
from surelist.lifecycle.labelling_design import block_sizes

ALPHA, FALLBACK = 0.1, 0.15
POPULATIONS = (
    (0.19, 0.87, 5),
    (0.12, 0.88, 4),
    (0.30, 0.75, 10),
    (0.05, 0.93, 2),
    (0.50, 0.80, 20),
    (0.19, 0.65, 5),
)
DESIGNS = {
    "even blocks, pilot 25 %": (False, 0.25),
    "tight blocks, pilot 25 %": (True, 0.25),
    "tight blocks, pilot 15 %": (True, 0.15),
}


@dataclass
class Tally:
    lists: list[float] = field(default_factory=list)
    false: int = 0


def certify(scores, labels, target, size, budget, tight, pilot, rng):
    """One labelling: the threshold, or None."""
    wanted = need(target, size)
    layout = lay_out(
        size, budget, wanted, alpha=ALPHA, future=True, pilot=pilot, fallback=FALLBACK, aside=0.1, block=None
    )
    rest, wide, blocks = size - layout.apart, layout.pilot_block, layout.blocks
    if not tight:
        wide = min(layout.apart, int(np.ceil(8 * wanted.mean * layout.apart)))
        blocks = tuple(block_sizes(max(layout.labels, int(np.ceil(1.02 * wanted.mean * size)) + 1), rest))
    order = rng.permutation(size)
    aside, main = order[: layout.apart], order[layout.apart :]
    best = aside[np.argsort(-scores[aside])][:wide]
    ranks = np.sort(rng.choice(wide, layout.pilot_labels, replace=False))
    good = labels[best[ranks]]
    count = block_rate_count(layout.apart, wide, layout.pilot_labels, target.rate, ALPHA * FALLBACK)
    found, otherwise = [], 1.0
    if good.sum() >= count:
        at = ranks[good][count - 1]
        found, otherwise = [scores[best[at]]], (at + 1) / layout.apart
    share = ALPHA * (1 - FALLBACK)
    chosen = choose_block(
        (ranks + 0.5) / layout.apart, good, rest, blocks, layout.labels, wanted, share, otherwise
    )
    inside = main[np.argsort(-scores[main])][: blocks[chosen]]
    drawn = rng.choice(inside, layout.labels, replace=False)
    hits = np.sort(scores[drawn][labels[drawn]])[::-1]
    count = block_rate_count(rest, blocks[chosen], layout.labels, target.rate, share)
    return max([*found, *hits[count - 1 : count]], default=None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--size", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng()
    for share, auc, k in POPULATIONS:
        shift = float(np.sqrt(2) * special.ndtri(auc))
        limit, target = shift - float(special.ndtri(k / 100 / share)), sl.Expected(k, 100)

        def listed(t: float, share: float = share, shift: float = shift) -> float:
            return float(share * special.ndtr(shift - t) + (1 - share) * special.ndtr(-t))

        tallies = {name: Tally() for name in DESIGNS}
        for _ in range(options.runs):
            labels = rng.random(options.size) < share
            scores = rng.standard_normal(options.size) + shift * labels
            for name, (tight, pilot) in DESIGNS.items():
                threshold = certify(scores, labels, target, options.size, options.labels, tight, pilot, rng)
                tallies[name].lists.append(
                    1 / listed(limit) if threshold is None else listed(threshold) / listed(limit)
                )
                tallies[name].false += threshold is not None and threshold > limit
        for name, each in tallies.items():
            error = np.std(each.lists) / np.sqrt(options.runs)
            print(
                f"{share:.0%}, AUC {auc:.2f}, k={k:<3} {options.labels:>5} labels  {name:<26} {np.mean(each.lists):.3f} x "
                f"(+-{error:.3f}), false {each.false / options.runs:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
