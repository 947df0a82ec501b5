"""Run time of the paper's experiments per setting, and against loops over candidates.

    python -m benchmarks.paper [FILE] [--runs 5]

FILE is a census file (Parquet, CSV or ZIP); without it, 175,000 synthetic people, as many as the
2018 file of 14 states has. CPU time of one process throughout, best of several. The last lines compare one setting (noise 0.4,
one run, all methods, 1,000 pools and the whole test half) with the same rules written as loops
over candidates in plain Python; both get the same random numbers and the results must agree.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import surelist as sl
from paper import baselines
from paper.experiments import EXPERIMENTS, fitting_settings, one_run
from paper.methods import BINS, UMB, fit
from paper.reproduce import people
from paper.screening import Scored, Setup, split, train

SETUP = Setup()
NOISE = 0.4
TARGET = sl.Expected(SETUP.k, SETUP.pool_size)


def per_setting(population, runs):
    """CPU time of one run with one setting; what all settings of a run share is told apart."""
    one_run(population, EXPERIMENTS["noise"], 0, 0, (0.0,), SETUP)  # imports are not what is timed
    total = 0.0
    for experiment in EXPERIMENTS.values():
        settings = fitting_settings(experiment, population, SETUP)
        shared = timed(lambda e=experiment: one_run(population, e, 0, 0, (), SETUP), runs)
        print(
            f"{experiment.name}: {1000 * shared:.0f} ms per run for split, training and scores, and per setting"
        )
        for setting in settings:
            spent = timed(lambda e=experiment, s=setting: one_run(population, e, 0, 0, (s,), SETUP), runs)
            print(f"  {setting:>8,g}  {1000 * (spent - shared):6.0f} ms")
            total += spent - shared
        total += shared
    print(f"all four experiments: {total:.2f} s of CPU per run, {100 * total / 60:.1f} min for 100 runs")


def timed(call, runs):
    best = math.inf
    for _ in range(runs):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


# --- the same rules, candidate by candidate -----------------------------------------------------


def loop_css(scores, labels, count):
    """Walk down the sorted rows until ``count`` qualified ones are found."""
    found = 0
    for score, label in sorted(zip(scores, labels, strict=True), reverse=True):
        found += label
        if found >= count:
            return rule_of([(score, 1.0)])
    return rule_of([(-math.inf, 1.0)])


def rule_of(steps):
    """A rule is asked about one candidate at a time."""

    def chance(score):
        for threshold, share in steps:
            if score >= threshold:
                return share
        return 0.0

    return chance


def loop_umb(scores, labels, bins):
    n = len(scores)
    width = 2 * math.sqrt(math.log(2 / SETUP.alpha) / (2 * n))
    rate = SETUP.k / SETUP.pool_size
    ordered = sorted(scores, reverse=True)
    edges = sorted({ordered[math.ceil(b * n / bins) - 1] for b in range(1, bins)}, reverse=True)
    steps, total, upper = [], 0.0, math.inf
    for edge in [*edges, -math.inf]:
        wins = 0
        for score, label in zip(scores, labels, strict=True):
            if edge <= score < upper:
                wins += label
        gain = wins / n - width
        if total + gain >= rate:
            return rule_of([*steps, (edge, (rate - total) / gain)])
        steps.append((edge, 1.0))
        total, upper = total + gain, edge
    return rule_of([(-math.inf, 1.0)])


def loop_average(rule, pools):
    size = wins = 0.0
    for scores, labels in pools:
        for score, label in zip(scores, labels, strict=True):
            chance = rule(score)
            size += chance
            wins += chance * label
    return size / len(pools), wins / len(pools)


def loop_until(pools, change):
    size = wins = 0.0
    for scores, labels in pools:
        pool = sorted(((change(s), y) for s, y in zip(scores, labels, strict=True)), reverse=True)
        total, last = 0.0, None
        for score, _ in pool:
            total += score
            if total >= SETUP.k:
                last = score
                break
        above = sum(score for score, _ in pool if last is not None and score > last)
        level = sum(score for score, _ in pool if score == last)
        for score, label in pool:
            chance = (
                1.0 if last is None or score > last else (SETUP.k - above) / level if score == last else 0.0
            )
            size += chance
            wins += chance * label
    return size / len(pools), wins / len(pools)


def loop_noise(people, uniforms):
    """Replace scores by Beta(1, 4) noise, one candidate at a time."""
    changed = []
    for score, coin, draw in zip(people.scores.tolist(), *uniforms.tolist(), strict=True):
        changed.append(1 - (1 - draw) ** 0.25 if coin < NOISE else score)
    return changed


def loops(calibration, test, uniforms, places):
    """One whole setting. Platt's fit is scikit-learn's in both versions."""
    scores, labels = loop_noise(calibration, uniforms[0]), calibration.qualified.astype(int).tolist()
    people, wins = loop_noise(test, uniforms[1]), test.qualified.astype(int).tolist()
    m, n = SETUP.pool_size, len(scores)
    whole = [(people[at : at + m], wins[at : at + m]) for at in range(0, len(people), m)]
    drawn = [([people[i] for i in pool], [wins[i] for i in pool]) for pool in places.tolist()]
    counts = {rule: sl.bounds.critical_count(n, TARGET.rate, SETUP.alpha, rule) for rule in ("dkw", "exact")}
    rules = {
        "CSS": loop_css(scores, labels, counts["dkw"]),
        "Exact": loop_css(scores, labels, counts["exact"]),
        "Isotonic": loop_css(scores, labels, math.ceil(n * TARGET.rate)),
        "Oracle": loop_css(people, wins, math.ceil(len(people) * TARGET.rate)),
    }
    for name, bins in zip(UMB, BINS, strict=True):
        rules[name] = loop_umb(scores, labels, bins)
    platt = baselines.platt(scores, labels)

    def mapped(score):
        return 1 / (1 + math.exp(-(platt.slope * score + platt.intercept)))

    found = []
    for pools in (whole, drawn):
        one = {name: loop_average(each, pools) for name, each in rules.items()}
        one["Uncalibrated"] = loop_until(pools, lambda score: score)
        one["Platt"] = loop_until(pools, mapped)
        found.append(one)
    return found


def arrays(calibration, test, uniforms, places):
    """The same setting as the experiments do it."""
    calibration, test = (_noisy(each, two) for each, two in zip((calibration, test), uniforms, strict=True))
    fitted = fit(calibration, TARGET, SETUP.alpha)
    fitted.bands["Oracle"] = baselines.oracle_threshold(test.scores, test.qualified, TARGET)
    whole = np.arange(len(test.scores)).reshape(-1, SETUP.pool_size)
    return [fitted.average(test.take(each), SETUP.k) for each in (whole, places)]


def _noisy(people, uniforms):
    scores, replaced = people.scores.copy(), uniforms[0] < NOISE
    scores[replaced] = 1 - np.sqrt(np.sqrt(1 - uniforms[1][replaced]))
    return Scored(scores, people.qualified, people.minority)


def against_loops(population):
    rng = np.random.default_rng(0)
    halves = split(population, False, SETUP, rng)
    classifier = train(population, halves.train)
    calibration = classifier.score(population, halves.calibration[: SETUP.calibration_rows])
    test = classifier.score(population, halves.test)
    uniforms = [rng.random((2, len(each.scores))) for each in (calibration, test)]
    places = rng.integers(len(test.scores), size=(SETUP.pools, SETUP.pool_size))
    fast = timed(lambda: arrays(calibration, test, uniforms, places), 7)
    slow = timed(lambda: loops(calibration, test, uniforms, places), 2)
    worst = 0.0
    found = arrays(calibration, test, uniforms, places)
    for one, other in zip(found, loops(calibration, test, uniforms, places), strict=True):
        for name, outcome in one.items():
            worst = max(worst, abs(outcome.size - other[name][0]), abs(outcome.qualified - other[name][1]))
    assert worst < 1e-6, worst
    print(
        f"one setting, all methods: {1000 * fast:.0f} ms; loops over candidates {1000 * slow:.0f} ms: "
        f"{slow / fast:.0f} times (largest difference {worst:.0e} candidates)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    population = people([arguments.file or "synthetic"], None if arguments.file else 175_000, 0)
    print(f"{len(population):,} people from {Path(population.source).name}")
    with threadpool_limits(1):
        per_setting(population, arguments.runs)
        against_loops(population)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
