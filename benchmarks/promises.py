"""The promises people ask for: list length, false promises and time, beside peers. One run prints every figure.

    python benchmarks/promises.py --peers docs/peers.md > benchmarks/promises.txt      (about 12 minutes of CPU)
    python benchmarks/promises.py --part pools --runs 400                             (one part)

Populations are made up, so that the truth is known; alpha is 0.1 throughout. "False" counts promises made and
false, as a share of all runs; lists are means over the promises made, per 100 candidates.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import surelist as sl
from promises_lists import common, this_list, triage
from promises_peers import abstention, false_share, list_bounds, precision, recall_lists, stopping
from promises_tally import ALPHA, TRUTH, Floats, Judge, Tally, table
from surelist.bounds.rank_chain import rank_chain
from surelist.examples import expected_list_size, population


def count_judge(k: float) -> Judge:
    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed, qualified = TRUTH.at(policy.threshold)
        return 100 * listed, 100 * qualified < k

    return judge


def clustered(rng: np.random.Generator, pools: int) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Pools of 20 to 180 with an effect of .7 on the log-odds, and scores shifted by .5 from pool to pool."""
    codes = np.repeat(np.arange(pools), rng.integers(20, 181, pools))
    z = rng.standard_normal(len(codes))
    labels = rng.random(len(codes)) < special.expit(-2.2 + 1.8 * z + 0.7 * rng.standard_normal(pools)[codes])
    return z + 0.5 * rng.standard_normal(pools)[codes], labels, codes


NEW_POOLS = 50  # each of them is as good a next pool as any


def pools(rng: np.random.Generator, runs: int) -> None:
    size = 20_000
    scores, labels, _ = clustered(rng, size)
    order = np.argsort(-scores)
    ordered, hits = scores[order], np.cumsum(labels[order]) / size

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed = int(np.searchsorted(-ordered, -policy.threshold, side="right"))
        return listed / size, float(hits[listed - 1]) < 5

    oracle = (np.searchsorted(hits, 5) + 1) / size
    for count in (20, 100):
        average, rows = (
            Tally("whole pools, PoolAverage(5, spread=4)"),
            Tally("rows as units, Expected(5, 100)"),
        )
        following, single = Tally("whole pools, NextPool(k=3)"), Tally("rows as units, PerPool(3, 20)")
        for _ in range(runs):
            s, y, c = clustered(rng, count)
            new = clustered(rng, NEW_POOLS)

            def next_pool(policy: sl.Policy, new: Any = new) -> tuple[float, float]:
                s, y, c = new
                mask = policy.select_pools(s, c)
                held = np.bincount(c[mask & y], minlength=NEW_POOLS)
                return 100 * float(mask.mean()), float((held < 3).mean())

            average.add(judge, s, y, sl.PoolAverage(5, spread=4), pools=c)
            rows.add(judge, s, y, sl.Expected(5, 100))
            following.add(next_pool, s, y, sl.NextPool(k=3), pools=c)
            single.add(next_pool, s, y, sl.PerPool(3, 20))
        table(
            f"Pools as units, {count} pools",
            [average, rows, following, single],
            f"Best possible list: {oracle:.2f}",
        )


def sampled(rng: np.random.Generator, runs: int) -> None:
    for n, rate, above in ((2000, 0.1, 0.04), (2000, 0.1, 0.02), (5000, 0.05, 0.04), (1000, 0.3, 0.045)):
        edge = float(TRUTH.scores[np.searchsorted(-TRUTH.qualified, -above)])
        made = {
            name: Tally(name) for name in ("all labelled", "two rates", "thinned", "unlabelled rows dropped")
        }
        labelled = []
        for _ in range(runs):
            s, y = population(rng, n)
            drawn = (s >= edge) | (rng.random(n) < rate)
            known = np.where(drawn, y.astype(float), np.nan)
            labelled.append(drawn.sum())
            rates = np.where(s >= edge, 1.0, rate)
            target, judge = sl.Expected(5, 100), count_judge(5)
            made["all labelled"].add(judge, s, y, target)
            two = sl.SampledLabels(known, probability=rate, above=edge)
            made["two rates"].add(judge, s, two, target)
            many = sl.SampledLabels(known, probability=rates, lowest_rate=rate)
            made["thinned"].add(judge, s, many, target)
            made["unlabelled rows dropped"].add(judge, s[drawn], y[drawn], target)
        title = f"Known label probabilities, n = {n:,}, audit rate {rate}, {np.mean(labelled):.0f} labels"
        table(title, list(made.values()), f"Best possible list: {100 * float(expected_list_size(0.05)):.2f}")


def best_of(rng: np.random.Generator, runs: int) -> None:
    """Equally good scores; which is the shortest list is told by unlabelled scores, or by the rows themselves."""
    big = 400_000
    z = rng.standard_normal(big)
    judge = _noisy_judge(z, z + 0.7 * rng.standard_normal(big))
    target = sl.Expected(5, 100)
    for several in (5, 20):
        one, ours = Tally("one score alone"), Tally(f"best of {several}, chosen by the rows")
        beside, chosen = Tally("one score, unlabelled scores"), Tally(f"best of {several}, unlabelled scores")
        naive = Tally("shortest, uncorrected")
        for _ in range(max(50, runs if several == 5 else runs // 4)):
            scores, y = _noisy_scores(rng, several, 1000)
            others, _ = _noisy_scores(rng, several, 10_000)
            one.add(judge, scores["s0"], y, target)
            ours.add(judge, scores, y, target)
            beside.add(judge, scores["s0"], y, target, unlabelled=others["s0"])
            chosen.add(judge, scores, y, target, unlabelled=others)
            made = [sl.calibrate(each, y, target) for each in scores.values()]
            shares = [
                float(np.mean(each >= p.threshold)) for each, p in zip(scores.values(), made, strict=True)
            ]
            length, false = judge(made[int(np.argmin(shares))])
            naive.runs, naive.false = naive.runs + 1, naive.false + false
            naive.lists.append(length)
        table(f"Best of {several} equally good scores, n = 1,000", [one, ours, beside, chosen, naive])
        ratio = np.mean(chosen.lists) / np.mean(beside.lists) - 1
        print(f"\nBest of {several} against one score, both with unlabelled scores: {100 * ratio:+.1f} %.")


def _noisy_scores(
    rng: np.random.Generator, several: int, rows: int
) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    z = rng.standard_normal(rows)
    labels = rng.random(rows) < special.expit(-2.2 + 1.8 * z)
    return {f"s{i}": z + 0.7 * rng.standard_normal(rows) for i in range(several)}, labels


def _noisy_judge(z: Floats, scores: Floats) -> Judge:
    order = np.argsort(scores)
    ordered = scores[order]
    held = np.append(np.cumsum(special.expit(-2.2 + 1.8 * z)[order][::-1])[::-1] / len(z), 0.0)

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        place = int(np.searchsorted(ordered, policy.threshold))
        return 100 * (1 - place / len(z)), 100 * held[place] < 5

    return judge


def chain(rng: np.random.Generator, runs: int) -> None:
    for n, other in ((300, 3_000), (1_000, 10_000), (10_000, 100_000)):
        exact, ours = Tally("exact rule"), Tally(f"rank chain, {other:,} unlabelled scores")
        seconds = 0.0
        rank_chain.cache_clear()  # another part may have solved these counts
        for place in range(10 * runs if n < 10_000 else runs):  # the figures differ by hundredths
            s, y = population(rng, n)
            u, _ = population(rng, other)
            exact.add(count_judge(5), s, y, sl.Expected(5, 100))
            begun = time.process_time()
            ours.add(count_judge(5), s, y, sl.Expected(5, 100), unlabelled=u)
            seconds = seconds if place else time.process_time() - begun
        note = (
            f"First calibration {seconds:.1f} s of CPU (the counts are solved once for n, N, rate and alpha)."
        )
        table(f"Unlabelled scores, n = {n:,}", [exact, ours], note)


def budget(rng: np.random.Generator, runs: int) -> None:
    certified, false = [], 0
    truth = 0.0
    for _ in range(runs):
        s, y = population(rng, 1000)
        u, _ = population(rng, 10_000)
        policy = sl.calibrate(s, y, sl.Budget(10, 100), unlabelled=u)
        k = float(policy.cutoffs[0].proof.k)  # type: ignore[union-attr]
        truth = 100 * TRUTH.at(policy.threshold)[1]
        certified.append(k)
        false += truth < k
    print("\n### Budget: 10 of 100, n = 1,000\n")
    best = 100 * float(TRUTH.qualified[int(0.9 * TRUTH.points)])
    print(f"certified {np.mean(certified):.2f} of a true {best:.2f}; false {false / runs:.3f}")


def alarm(rng: np.random.Generator, runs: int) -> None:
    """Recall .9 watched with 5 % of the unlisted audited: pools of 100 with 19 qualified each on average."""
    rows = population(rng, 3000)
    policy = sl.calibrate(*rows, sl.Recall(0.9), alpha=ALPHA)  # type: ignore[call-arg]
    print(
        "\n### Recall .9 watched, audit rate .05, alpha .05\n\n| true recall | alarm | audited until then |\n|---|---|---|"
    )
    for recall, most in ((0.9, 1000), (0.8, 1000), (0.7, 1000)):
        audited, alarms = [], 0
        for _ in range(runs):
            monitor = sl.Monitor(policy, alpha=0.05, audit_rate=0.05)
            looked = 0
            for _ in range(most):
                good = rng.random(100) < 0.19
                listed = np.where(good, rng.random(100) < recall, rng.random(100) < 0.3)
                audit = ~listed & (rng.random(100) < 0.05)
                looked += int(audit.sum())
                monitor.observe(
                    pool_size=100, qualified=int((good & listed).sum()), missed=int((good & audit).sum())
                )
                if monitor.alarm:
                    break
            alarms += monitor.alarm
            audited.append(looked if monitor.alarm else np.inf)
        median = np.median(audited)
        shown = "-" if recall >= 0.9 else f"{median:.0f} in the median"
        print(f"| {recall} | {alarms / runs:.3f} | {shown} |")


def best(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(3):
        begun = clock()
        function()
        times.append(clock() - begun)
    return min(times)


def speed(rng: np.random.Generator, runs: int) -> None:
    import polars as pl

    rows, count = 10_000_000, 100_000
    frame = pl.DataFrame({
        "score": rng.random(rows), "qualified": (rng.random(rows) < 0.2).astype(np.int8),
        "pool": rng.integers(0, count, rows),
    })  # fmt: skip

    one = best(lambda: frame.group_by("pool").agg(pl.len(), pl.col("score").max(), pl.col("qualified").sum()))
    columns = frame["score"].to_numpy(), frame["qualified"].to_numpy(), frame["pool"].to_numpy()
    print("\n### Speed: 10 million rows, 100,000 pools\n")
    print(f"one polars group-by {one:.2f} s")
    for name, target in (("NextPool(k=5)", sl.NextPool(k=5)), ("PoolAverage(5)", sl.PoolAverage(5))):
        arrays = best(lambda target=target: sl.calibrate(*columns[:2], target, pools=columns[2]))
        table_ = best(
            lambda target=target: sl.calibrate_table(
                frame, score="score", label="qualified", pool="pool", target=target
            )
        )
        print(
            f"{name}: arrays {arrays:.2f} s ({arrays / one:.1f} x), table {table_:.2f} s ({table_ / one:.1f} x)"
        )


def speed_unlabelled(rng: np.random.Generator, runs: int) -> None:
    rows = 10_000_000
    s, y = population(rng, 1000)
    other = rng.random(rows)
    print("\n### Speed: 10 million unlabelled scores\n")
    clock = time.process_time  # one thread each
    partition = best(lambda: np.partition(other, rows // 2), clock)
    begun = clock()
    rank_chain(1000, rows, Fraction(1, 20), ALPHA)
    counts = clock() - begun
    ours = best(lambda: sl.calibrate(s, y, sl.Expected(5, 100), unlabelled=other), clock)
    print(
        f"one np.partition of them {partition:.3f} s of CPU; calibrating with unlabelled= {ours:.3f} s, and "
        f"{counts:.2f} s for its counts, which are solved once for n, N, rate and alpha"
    )


PARTS: dict[str, Callable[[np.random.Generator, int], None]] = {
    "pools": pools, "sampled": sampled, "precision": precision, "false_share": false_share,
    "stopping": stopping, "best_of": best_of, "budget": budget, "chain": chain, "alarm": alarm, "speed": speed,
    "speed_unlabelled": speed_unlabelled, "common": common, "triage": triage, "this_list": this_list,
    "recall": recall_lists, "abstention": abstention, "list_bounds": list_bounds,
}  # fmt: skip
BESIDE_PEERS = {  # a section each
    "precision": "Precision: beside MAPIE\n\nMAPIE tries 100 thresholds from 2 % to 60 % of candidates listed, so that its walk can begin.",
    "recall": "Recall: beside MAPIE\n\nMAPIE tries thresholds from 0 upwards, so that its walk begins with everyone.",
    "abstention": "Triage: beside MAPIE with abstention\n\nThe judge of MAPIE's own example. For two risks its default shares alpha between "
    "the pairs of its grid; the order of a fixed sequence would have to be learned from other labels.",
    "false_share": "The average false share: beside conformal selection\n\n`FalseShare` is conformal selection (Jin and Candès, 2023) "
    "with its promise in words; below the table, in how many runs both list the same candidates. It says nothing of a single list, as the fourth "
    "column shows.",
    "list_bounds": "This list: beside the Monte Carlo bound on the false share\n\nSong, Jin and Candès (arXiv 2605.20726) bound the false share "
    "of every list at once, from ranks drawn by Monte Carlo. Here it is written from its definition, with nonconform's default summary (truncated higher "
    "criticism). With ranks among all rows, a qualified one ranking last, it certifies a little less than `list_curve`, which also says at most how many; "
    "with ranks among unqualified rows alone, as nonconform ships it for anomalies, less still. A length fixed beforehand carries more.",
    "stopping": "When to stop: beside buscarpy",
}
MARK = "<!-- from here on: python benchmarks/promises.py --peers docs/peers.md -->"
PART = "<!-- part: {} -->"


def about_peers() -> str:
    return (
        f"MAPIE {version('mapie')}, buscarpy {version('buscarpy')}. A list is false where what was promised of it does not hold; beside "
        "precision and triage MAPIE has at most 100 runs. Times are wall clock on a busy machine: read them beside one another."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--peers", type=Path, help="the page whose tables beside peers are made anew")
    options = parser.parse_args()
    wanted = options.part or PARTS
    head = f"surelist {sl.__version__}, {options.runs} runs, seed {options.seed}, alpha {ALPHA}"
    print(head)
    beside = {}
    for name in wanted:
        begun = time.perf_counter()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            PARTS[name](np.random.default_rng(options.seed), options.runs)
        print(f"{printed.getvalue()}\n({name}: {time.perf_counter() - begun:.0f} s)", flush=True)
        if name in BESIDE_PEERS:
            command = (
                f"`python benchmarks/promises.py --part {name} --runs {options.runs} --seed {options.seed}`"
            )
            beside[name] = (
                f"{PART.format(name)}\n\n## {BESIDE_PEERS[name]}\n\n{command}\n\n{printed.getvalue().strip()}"
            )
    if options.peers:
        page, _, before = options.peers.read_text(encoding="utf-8").partition(MARK)
        for name in BESIDE_PEERS:  # what was not run stays as it was
            kept = before.partition(PART.format(name))[2].partition("<!-- part: ")[0].strip()
            if kept:
                beside.setdefault(name, f"{PART.format(name)}\n\n{kept}")
        sections = [beside[name] for name in BESIDE_PEERS if name in beside]
        about = f"Promises of other kinds, a section each. surelist {sl.__version__}, alpha {ALPHA}. {about_peers()}"
        text = "\n\n".join([page.rstrip(), MARK, about, *sections])
        options.peers.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
