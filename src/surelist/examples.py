"""A made-up population to try things on: trial candidates with a score and a label.

The chance to be qualified is sigmoid(-2.2 + 1.8 Z) with Z standard normal: 19 % qualified, and
the best possible list for 5 of 100 has 6.5 candidates. The score is that chance itself.
"""

from __future__ import annotations

import numpy as np

from surelist._arrays import Floats, Mask, special

SITES = ("north", "south", "east", "west")


def population(rng: np.random.Generator | int, size: int) -> tuple[Floats, Mask]:
    """Scores and labels of ``size`` candidates; by a generator, or by a seed."""
    rng = np.random.default_rng(rng)
    scores: Floats = special.expit(-2.2 + 1.8 * rng.standard_normal(size))
    return scores, rng.random(size) < scores


def trial_rows(rng: np.random.Generator, size: int, *, labelled: bool) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV of trial candidates."""
    scores, labels = population(rng, size)
    ages = rng.integers(18, 90, size)
    sites = rng.integers(0, len(SITES), size)
    header = ["candidate", "age", "site", "score"] + (["qualified"] if labelled else [])
    prefix = "past" if labelled else "new"
    rows = []
    for i in range(size):
        row = [f"{prefix}-{i + 1:05d}", str(ages[i]), SITES[sites[i]], f"{scores[i]:.6f}"]
        rows.append(row + ([str(int(labels[i]))] if labelled else []))
    return header, rows


def expected_list_size(share: Floats | float) -> Floats:
    """The share of this population on the shortest list that holds ``share`` qualified on average.

    Solves P(Y=1, score >= t) = share for t and returns P(score >= t), by quadrature.
    """
    at = (np.arange(400_000) + 0.5) / 400_000
    chance = special.expit(-2.2 + 1.8 * special.ndtri(at))[::-1]
    sizes: Floats = np.searchsorted(np.cumsum(chance) / len(chance), share) / len(chance)
    return sizes
