"""Parts of ``promises.py`` about one cutoff for all groups, triage, and the very list in hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

import surelist as sl
from promises_tally import ALPHA, Floats, Tally, table
from surelist.examples import population

GROUPS = ("a", "b", "c", "d")
SHIFT = np.array([0.0, -0.2, 0.2, -0.4])  # of the log-odds of being qualified at a score, by group


def grouped(rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """The usual population in four groups of equal size, whose scores mean somewhat different things."""
    scores, _ = population(rng, n)
    codes = rng.integers(0, 4, n)
    return scores, rng.random(n) < special.expit(special.logit(scores) + SHIFT[codes]), codes


def common(rng: np.random.Generator, runs: int) -> None:
    big, good, codes = grouped(rng, 1_000_000)
    order = np.argsort(-big)
    hits = {at: np.cumsum((good & (codes == at))[order]) / len(big) for at in range(4)}
    targets = {name: sl.Expected(1.2, 100) for name in GROUPS}
    rate = 0.012

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed = int(np.searchsorted(-big[order], -policy.threshold, side="right"))
        return 100 * listed / len(big), min(float(held[listed - 1]) for held in hits.values()) < rate

    def differing(policy: sl.Policy) -> tuple[float, bool]:
        listed, short = 0, False
        for at, name in enumerate(GROUPS):
            mine = (codes == at) & (big >= policy.thresholds[name])
            listed += int(np.count_nonzero(mine))
            short |= np.count_nonzero(mine & good) / len(big) < rate
        return 100 * listed / len(big), short

    one, shares, own = (
        Tally("one cutoff, full alpha"),
        Tally("one cutoff by shares of alpha"),
        Tally("cutoffs that differ"),
    )
    for _ in range(runs):
        scores, labels, mine = grouped(rng, 2_000)
        names = np.array(GROUPS)[mine]
        one.add(judge, scores, labels, targets, groups=sl.Groups(names, rows="all", cutoff="common"))
        own.add(differing, scores, labels, targets, groups=sl.Groups(names, "a benchmark", rows="all"))
        shares.add(
            judge,
            scores,
            labels,
            targets,
            alpha=ALPHA / 4,
            groups=sl.Groups(names, rows="all", cutoff="common"),
        )
    table("One cutoff for four groups, 1.2 of 100 of each, n = 2,000", [one, shares, own])


def judged(rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The law of MAPIE's judge example."""
    labels = rng.random(n) < 0.5
    return np.where(labels, rng.beta(3, 1, n), rng.beta(1, 3, n)), labels


def band_of(low: float, high: float, q: float = 0.9) -> tuple[float, bool]:
    """Left to people per 100 between two thresholds, and whether an end holds less than it should."""
    good, bad = (lambda t: t**3), (lambda t: 1 - (1 - t) ** 3)  # distribution functions of both kinds
    accepted, rejected = 1 - (good(high) + bad(high)) / 2, (good(low) + bad(low)) / 2
    short = (1 - good(high)) / 2 < q * accepted or bad(low) / 2 < q * rejected
    return 100 * (1 - accepted - rejected), short


def judge_triage(policy: sl.Policy) -> tuple[float, bool]:
    low = policy.cutoffs[0].proof.looked_from
    assert low is not None
    return band_of(low, policy.threshold)


def triage(rng: np.random.Generator, runs: int) -> None:
    for n in (500, 1_000):
        ours = Tally("Triage(0.9, reject=0.9)")
        for _ in range(runs):
            ours.add(
                judge_triage, *judged(rng, n), sl.Triage(0.9, reject=0.9), unlabelled=judged(rng, 10_000)[0]
            )
        table(f"Triage of a judge's answers, n = {n:,}: left to people, per 100", [ours], "Ideal band: 7.1")


def this_list(rng: np.random.Generator, runs: int) -> None:
    size, n, m = 100, 1_000, 1_000
    looked, fixed, held, wrong = [], [], [], np.zeros(2)
    for _ in range(runs):
        (scores, labels), (pool, good) = population(rng, n), population(rng, m)
        curve = sl.list_curve(scores, labels, pool, alpha=ALPHA)
        truth = np.cumsum(good[np.argsort(-pool)])
        policy = sl.calibrate(scores, labels, sl.ThisList(size), unlabelled=pool, alpha=ALPHA)
        promised = int(str(policy.promise).split("at least ")[1].split()[0])
        looked.append(curve.of(size)[0] / size)
        fixed.append(promised / size)
        held.append(truth[size - 1] / size)
        wrong += [np.any(curve.at_least > truth), promised > truth[size - 1]]
    print(f"\n### This list, the best {size} of {m:,}, n = {n:,}: share certified\n")
    print(
        f"after looking {np.mean(looked):.3f}, fixed beforehand {np.mean(fixed):.3f}, realised {np.mean(held):.3f}"
    )
    print(f"false {wrong[0] / runs:.3f} (any length) and {wrong[1] / runs:.3f}")
