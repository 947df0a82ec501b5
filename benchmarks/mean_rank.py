"""One score from several by mean rank, beside the best of two and each score alone: lists of 100, false promises.

    python benchmarks/mean_rank.py [--runs 400] [--seed 5]

Two scores of the same candidates, each the truth with noise of its own: equally good ones, and one much worse.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import special

import surelist as sl

ROWS, OTHERS, BIG = 1_000, 10_000, 200_000
TARGET = sl.Expected(5, 100)
CASES = {"equally good": (0.7, 0.7), "one much worse": (0.3, 1.5)}  # the noise of each score


def candidates(rng, rows, noise):
    z = rng.standard_normal(rows)
    chance = special.expit(-2.2 + 1.8 * z)
    return {f"s{i}": z + each * rng.standard_normal(rows) for i, each in enumerate(noise)}, chance


def judged(policy, scores, chance):
    listed = scores >= policy.threshold
    return 100 * listed.mean(), 100 * chance[listed].sum() / len(chance) < TARGET.k


def measure(rng, noise, runs):
    everyone, truth = candidates(rng, BIG, noise)
    made = {name: [] for name in ("mean rank", "best of two", "the better alone")}
    for _ in range(runs):
        scores, chance = candidates(rng, ROWS, noise)
        labels = rng.random(ROWS) < chance
        others, _ = candidates(rng, OTHERS, noise)
        ranks = sl.mean_rank(others)
        policy = sl.calibrate(ranks(scores), labels, TARGET)
        made["mean rank"].append(judged(policy, ranks(everyone), truth))
        best = sl.calibrate(scores, labels, TARGET)
        made["best of two"].append(judged(best, everyone[best.choice.chosen], truth))
        alone = sl.calibrate(scores["s0"], labels, TARGET)
        made["the better alone"].append(judged(alone, everyone["s0"], truth))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=5)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    for title, noise in CASES.items():
        print(f"\nTwo scores, {title} (noise {noise[0]} and {noise[1]}), n = {ROWS:,}, {asked.runs} runs:\n")
        print("| score | list of 100 | false |\n|---|---|---|")
        for name, each in measure(rng, noise, asked.runs).items():
            lists, false = np.mean(each, axis=0)
            print(f"| {name} | {lists:.2f} | {100 * false:.1f} % |")


if __name__ == "__main__":
    main()
