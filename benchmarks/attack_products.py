"""More worst cases of ``attack.py``: products of two conditions, and what people do between the steps of a labelling.

A design is as in ``attack_designs.py``. Rates come near to alpha where the boundary of one promise decides alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import surelist as sl
from attack_designs import ALPHA, HAIR, Rng, Run, asked, hardest


def common_expected_overlapping(rng: Rng) -> Run:
    """One cutoff, a group that is everyone and a part of it that asks for little: the large group's boundary decides."""
    rows = hardest(0.2, ALPHA, 60, 110)
    targets = {"x": sl.Expected(20 * HAIR, 100), "y": sl.Expected(5, 50)}

    def run() -> float:
        part = {"x": np.ones(rows, dtype=bool), "y": rng.random(rows) < 0.5}
        policy = asked(
            rng.random(rows), rng.random(rows) < 0.5, targets, groups=sl.Groups(part, cutoff="common")
        )
        return float(policy is not None and policy.threshold > 0.6)

    return run


def common_recall_alike(rng: Rng) -> Run:
    """One cutoff, three groups that are nearly the same people, one recall: what is true of one is true of all."""
    targets = dict.fromkeys("xyz", sl.Recall(0.4 * HAIR))

    def run() -> float:
        part = {"x": rng.random(90) < 0.97, "y": np.ones(90, dtype=bool), "z": rng.random(90) < 0.95}
        policy = asked(rng.random(90), rng.random(90) < 0.6, targets, groups=sl.Groups(part, cutoff="common"))
        return float(policy is not None and policy.threshold > 0.6)

    return run


def common_next_pool(rng: Rng) -> Run:
    """One cutoff, whole pools, one qualified of each group in every pool: the worse of both decides."""
    count, targets = 24, dict.fromkeys("xy", sl.NextPool(k=1))
    pools, names = np.repeat(np.arange(count + 1), 4), np.tile(["x", "x", "y", "y"], count + 1)
    good, past = np.tile([True, False, True, False], count + 1), pools < count

    def run() -> float:
        scores = rng.random(len(pools))
        policy = asked(
            scores[past], good[past], targets, groups=sl.Groups(names[past], cutoff="common"), pools=pools[past]
        )  # fmt: skip
        return float(policy is not None and scores[~past & good].min() < policy.threshold)

    return run


def triage_tied(rng: Rng) -> Run:
    """Four scores, unlabelled ones tied as well: accepting two of them, and rejecting the last, is short by a hair."""
    score, chance, good = np.arange(3.0, -1, -1), [0.3, 0.2, 0.2, 0.3], np.array([0.8, 0.5, 0.5, 0.2])
    target = sl.Triage(0.68 * HAIR, reject_recall=0.88 * HAIR)

    def run() -> float:
        at, others = rng.choice(4, 150, p=chance), rng.choice(4, 200, p=chance)
        policy = asked(score[at], rng.random(150) < good[at], target, unlabelled=score[others])
        if policy is None:
            return 0.0
        lists = policy.triage(score)
        return float(lists[1] == "accept" or lists[3] == "reject")

    return run


def expected_noisy_longest(rng: Rng) -> Run:
    """Wrong labels as many as allowed among those listed, and the longest list just that of the boundary."""
    rows, wrong = 100, 0.1

    def run() -> float:
        scores, good = rng.random(rows), rng.random(rows) < 0.5
        labels = sl.NoisyLabels(good | (rng.random(rows) < wrong), wrong, 0.0, longest=0.4)
        policy = asked(scores, labels, sl.Expected(20 * HAIR, 100), unlabelled=rng.random(4000))
        return float(policy is not None and policy.threshold > 0.6)

    return run


def closed_when_it_looks_good(rng: Rng) -> Run:
    """A labelling, label by label, closed at the first moment at which many of those drawn are qualified."""

    def run() -> float:
        good = _one_short(rng)
        work = sl.Labelling(SCORES, sl.AtLeast(40), labels=100, alpha=ALPHA)
        while len(rows := work.ask()):
            for row in rng.permutation(rows).tolist():
                work.tell([row], [good[row]])
                *_, come, of, held = work.stages[-1]
                if come < of and held >= 0.45 * of and len(work.stages) > 1:
                    work.close()
                    break
        return _falls_short(work, good)

    return run


def corrected_where_it_helps(rng: Rng) -> Run:
    """A labelling in which three in ten of the qualified are mistyped, and corrected as far as it is allowed."""

    def run() -> float:
        good = _one_short(rng)
        work = sl.Labelling(SCORES, sl.AtLeast(40), labels=100, alpha=ALPHA)
        while len(rows := work.ask()):
            work.tell(rows, good[rows] & (rng.random(len(rows)) > 0.3))
        for row in [row for row, label in work.told.items() if label == 0 and good[row]]:
            try:
                work.correct([row], [1])
            except sl.InvalidInput:
                continue
        return _falls_short(work, good)

    return run


SCORES = np.arange(400.0)[::-1]


def _one_short(rng: Rng) -> Any:
    """39 of the best hundred are qualified where 40 are promised, and many at the bottom."""
    good = np.zeros(400, dtype=bool)
    good[rng.permutation(100)[:39]] = True
    good[200 + rng.permutation(200)[:100]] = True
    return good


def _falls_short(work: Any, good: Any) -> float:
    try:
        return float((work.select(SCORES) & good).sum() < 40)
    except sl.NotCertifiable:
        return 0.0
