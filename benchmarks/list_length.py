"""How list length shrinks: the paper's rule, the exact rule, the best possible. Draws the README's picture.

    python benchmarks/list_length.py [--out docs/list_length.png]

Expected list length in pools of 100 for 5 qualified on average at alpha = 0.1, on the population of
``surelist.examples``. The threshold is the c-th best qualified row of n, so the rate it reaches
is Beta(c, n-c+1) distributed: the expectation is an integral, not a simulation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import special

from surelist import bounds
from surelist.drawing import axes as plots
from surelist.examples import expected_list_size

RATE, ALPHA, BASE_RATE = 0.05, 0.1, 0.1891
SIZES = (300, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


def mean_list(n: int, rule: str) -> float:
    count = bounds.critical_count(n, RATE, ALPHA, rule)
    at = (np.arange(2_000) + 0.5) / 2_000
    reached = special.betaincinv(count, n - count + 1, at)
    return 100 * float(expected_list_size(np.minimum(reached, BASE_RATE)).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    oracle = 100 * float(expected_list_size(RATE))
    rules = ("dkw", "simultaneous", "exact")
    found = {rule: [mean_list(n, rule) for n in SIZES] for rule in rules}
    print(f"best possible: {oracle:.2f} candidates\n")
    print(f"{'n':>8}" + "".join(f"{rule:>22}" for rule in rules))
    for place, n in enumerate(SIZES):
        cells = "".join(f"{found[r][place]:>13.2f} ({found[r][place] / oracle:.2f} x)" for r in rules)
        print(f"{n:>8,}{cells}")
    if options.out:
        draw(found, oracle, options.out)


def draw(found: dict[str, list[float]], oracle: float, path: Path) -> None:
    axes = plots.new_axes(7.5, 4.2)
    for rule, values in found.items():
        axes.plot(SIZES, values, marker="o", markersize=4, color=plots.COLOURS[rule], label=plots.NAMES[rule])
    axes.axhline(
        oracle, color=plots.COLOURS["oracle"], linestyle="--", linewidth=1, label=plots.NAMES["oracle"]
    )
    axes.set_xscale("log")
    axes.set_ylim(0, 26)
    axes.set_xlabel("labelled calibration rows")
    axes.set_ylabel("candidates to review, of 100")
    axes.set_title(
        "Same promise, shorter list: 5 qualified of 100, wrong at most 10% of the time",
        loc="left",
        fontsize=11,
    )
    axes.legend(frameon=False)
    plots.save(axes, path)


if __name__ == "__main__":
    main()
