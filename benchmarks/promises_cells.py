"""Every promise that shares no alpha where it need not, at every population: level, and the figure wanted.

    python benchmarks/promises_cells.py --runs 2000 [--part triage]

Prints a table of cells, each with how often its promise was false, and one verdict over all of them: a cell is
called broken where so many false ones have a chance below 0.001 / cells at alpha. Exit code 1 if one is. Figures are
means over the promises made: candidates listed, or left to people by a triage, per 100; or a certified share.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import mean_rank
import surelist as sl
from promises_lists import band_of, judged
from promises_tally import ALPHA, POPULATIONS, Cell, Judge, Tally, Truth, verdict


def judge_all(truth: Truth, rate: float, recall: float) -> Judge:
    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed, qualified = truth.at(policy.threshold)
        return 100 * listed, qualified < max(rate, recall * truth.qualified[0])

    return judge


def no_split(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """Expected and Recall of one list; by shares of alpha it is the lower threshold of two at alpha / 2."""
    asked = {
        "usual": (5, 0.265, "8.85 to 8.35"), "rare": (0.6, 0.258, "4.57 to 4.16"),
        "weak": (5, 0.25, "20.6 to 19.4"),
    }  # fmt: skip
    for name, (k, share, wanted) in asked.items():
        truth = POPULATIONS[name]
        judge, whole, shares = judge_all(truth, k / 100, share), Tally("no alpha shared"), []
        promises = [sl.Expected(k, 100), sl.Recall(share)]
        for _ in range(runs):
            rows = truth.draw(rng, 1_000)
            whole.add(judge, *rows, promises)
            apart = [sl.calibrate(*rows, each, alpha=ALPHA / 2).threshold for each in promises]
            shares.append(100 * truth.at(min(apart))[0])
        cell = whole.cell(f"Expected({k:g}, 100) and Recall({share:g}), {name}", wanted)
        yield cell._replace(figure=f"{np.mean(shares):.2f} to {cell.figure}")


def common(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """One cutoff for four groups that score alike, 5 of 100 of each; by shares of alpha, and cutoffs that differ."""
    truth, names = POPULATIONS["usual"], np.repeat(list("abcd"), 650)
    judge = judge_all(truth, 0.05, 0.0)
    targets = {name: sl.Expected(5, 100) for name in "abcd"}

    def differing(policy: sl.Policy) -> tuple[float, bool]:
        ends = [truth.at(each) for each in policy.thresholds.values()]
        return 100 * float(np.mean([listed for listed, _ in ends])), min(held for _, held in ends) < 0.05

    one, shares, own = Tally("full alpha"), Tally("shares of alpha"), Tally("cutoffs that differ")
    for _ in range(runs):
        rows = truth.draw(rng, len(names))
        one.add(judge, *rows, targets, groups=sl.Groups(names, cutoff="common"))
        shares.add(judge, *rows, targets, groups=sl.Groups(names, cutoff="common"), alpha=ALPHA / 4)
        own.add(differing, *rows, targets, groups=sl.Groups(names, "a benchmark"))
    yield one.cell("One cutoff for four groups of 650", "10.5")
    yield shares.cell("One cutoff for four groups of 650", "12.0")
    yield own.cell("Four groups of 650", "9.0")


SHARES = {  # of the accepted, of the rejected
    "usual": ((0.5, 0.9), (0.6, 0.95)), "half": ((0.75, 0.75), (0.85, 0.85)), "rare": ((0.2, 0.98),),
}  # fmt: skip
RECALLS = {"usual": (0.6, 0.9, "43.8"), "half": (0.75, 0.85, "19.9")}


def triage(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """What is left to people."""
    wanted = {500: "", 1_000: "16.2, 0 refused"}
    for n in (200, 500, 1_000, 2_000, 3_000):
        ours = Tally("0.9 and 0.9")
        for _ in range(runs):
            rows, others = judged(rng, n), judged(rng, 10_000)[0]
            ours.add(_judge_band, *rows, sl.Triage(0.9, reject=0.9), unlabelled=others)
        yield ours.cell(f"Triage, judge, n = {n:,}", wanted.get(n, ""))
        for name, asked in SHARES.items():
            for accept, reject in asked:
                promise = sl.Triage(accept, reject=reject)
                yield _band(rng, runs, name, n, promise, f"{accept:g} and {reject:g}")
        for name, (accept, kept, figure) in RECALLS.items():
            promise = sl.Triage(accept, reject_recall=kept)
            said = f"{accept:g}, recall {kept:g}"
            yield _band(rng, runs, name, n, promise, said, figure if n == 1_000 else "")


def _judge_band(policy: sl.Policy) -> tuple[float, bool]:
    return band_of(_low(policy), policy.threshold)


def _low(policy: sl.Policy) -> float:
    low = policy.cutoffs[0].proof.looked_from
    assert low is not None
    return low


def _band(
    rng: np.random.Generator, runs: int, name: str, n: int, promise: sl.Triage, said: str, wanted: str = ""
) -> Cell:
    truth, ours = POPULATIONS[name], Tally(said)
    everyone = truth.qualified[0]

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        (accepted, right), (rest, held) = truth.at(policy.threshold), truth.at(_low(policy))
        if promise.reject is None:
            short = held < (promise.reject_recall or 0) * everyone
        else:
            short = (1 - rest) - (everyone - held) < promise.reject * (1 - rest)
        return 100 * (rest - accepted), right < promise.accept * accepted or short

    for _ in range(runs):
        rows, others = truth.draw(rng, n), truth.draw(rng, 10_000)[0]
        ours.add(judge, *rows, promise, unlabelled=others)
    return ours.cell(f"Triage, {name}, n = {n:,}", wanted)


def this_list(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """The share of a pool's best that is certified: after looking (false at any length counts), a length fixed."""
    n, m = 1_000, 1_000
    wanted = {
        "usual": (100, ".497", ".596"), "half": (200, ".812", ".866"), "rare": (50, ".118", ".196"),
    }  # fmt: skip
    for name, (size, looked, fixed) in wanted.items():
        truth, shares, false = POPULATIONS[name], np.zeros(3), np.zeros(2)
        for _ in range(runs):
            rows, (pool, good) = truth.draw(rng, n), truth.draw(rng, m)
            curve = sl.list_curve(*rows, pool, alpha=ALPHA)
            held = np.cumsum(good[np.argsort(-pool)])
            policy = sl.calibrate(*rows, sl.ThisList(size), unlabelled=pool, alpha=ALPHA)
            promised = int(policy.cutoffs[0].proof.held)  # type: ignore[union-attr]
            shares += np.array([curve.of(size)[0], promised, held[size - 1]]) / size
            beyond = np.any(curve.at_least > held) or np.any(curve.at_most < held)
            false += [beyond, promised > held[size - 1]]
        means, best = shares / runs, f"best {size} of this pool, {name}"
        figure = f"{means[0]:.3f} (realised {means[2]:.3f})"
        yield Cell(f"list_curve, at least and at most, any length; {best}", runs, false[0], figure, looked)
        yield Cell(f"ThisList({size}), {best}", runs, false[1], f"{means[1]:.3f}", fixed)


def noise(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """Labels as wrong as allowed, and none of the qualified lost: the worst case for Expected."""
    truth = POPULATIONS["usual"]
    for wrong in (0.02, 0.05):
        ours, ignored = Tally(f"{100 * wrong:g} % wrong"), 0
        judge = judge_all(truth, 0.05, 0.0)
        for _ in range(runs):
            scores, good = truth.draw(rng, 1_000)
            labels = good | (rng.random(len(good)) < wrong)
            noisy = sl.NoisyLabels(labels, wrong, 0.0, longest=0.15)
            ours.add(judge, scores, noisy, sl.Expected(5, 100), unlabelled=truth.draw(rng, 10_000)[0])
            ignored += judge(sl.calibrate(scores, labels, sl.Expected(5, 100), alpha=ALPHA))[1]
        cell = ours.cell("Expected(5, 100), labels")
        yield cell._replace(figure=f"{cell.figure}; ignored {100 * ignored / runs:.1f} % false")
    kept = Tally("2 % and 10 % wrong")
    for _ in range(runs):
        scores, good = truth.draw(rng, 1_000)
        labels = np.where(good, rng.random(len(good)) >= 0.1, rng.random(len(good)) < 0.02)
        kept.add(judge_all(truth, 0.0, 0.8), scores, sl.NoisyLabels(labels, 0.02, 0.1), sl.Recall(0.8))
    yield kept.cell("Recall(0.8), labels")


def several(rng: np.random.Generator, runs: int) -> Iterator[Cell]:
    """One score from two, beside the best of both."""
    for title, noises in mean_rank.CASES.items():
        for name, made in mean_rank.measure(rng, noises, runs).items():
            lists, false = np.sum(made, axis=0)
            yield Cell(f"Two scores, {title}: {name}", runs, false, f"{lists / runs:.2f}")


PARTS: dict[str, Callable[[np.random.Generator, int], Iterator[Cell]]] = {
    "no_split": no_split, "common": common, "triage": triage, "this_list": this_list, "noise": noise,
    "several": several,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--seed", type=int, default=24)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    cells: list[Cell] = []
    print(f"surelist {sl.__version__}, {given.runs} runs, seed {given.seed}, alpha {ALPHA}", flush=True)
    for name in given.part or PARTS:
        begun = time.process_time()
        for cell in PARTS[name](np.random.default_rng(given.seed), given.runs):
            cells.append(cell)
            print(*cell, sep=" | ", file=sys.stderr, flush=True)
        print(f"({name}: {time.process_time() - begun:.0f} s of CPU)", flush=True)
    sys.exit(0 if verdict(cells) else 1)


if __name__ == "__main__":
    main()
