"""The promises people ask for: list length, false promises and time, beside peers. One run prints every figure.

    python benchmarks/promises.py [--runs 400] [--part pools] > benchmarks/promises.txt

Populations are made up, so that the truth is known; alpha is 0.1 throughout. "False" counts promises made and
false, as a share of all runs; lists are means over the promises made, per 100 candidates.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import surelist as sl
from surelist.examples import expected_list_size, population

ALPHA = 0.1
Floats = NDArray[np.float64]
Judge = Callable[[sl.Policy], tuple[float, bool]]


class Truth:
    """Of the population in ``surelist.examples``: share listed and qualified share listed at a threshold."""

    def __init__(self, points: int = 400_000) -> None:
        at = (np.arange(points) + 0.5) / points
        self.scores = special.expit(-2.2 + 1.8 * special.ndtri(at))
        self.qualified = np.append(np.cumsum(self.scores[::-1])[::-1] / points, 0.0)
        self.points = points

    def at(self, threshold: float) -> tuple[float, float]:
        place = int(np.searchsorted(self.scores, threshold))
        return (self.points - place) / self.points, float(self.qualified[place])


TRUTH = Truth()


class Tally:
    """Promises made, false ones, refusals and list lengths."""

    def __init__(self, name: str) -> None:
        self.name, self.runs, self.false, self.refused = name, 0, 0, 0
        self.lists: list[float] = []

    def add(self, judge: Judge, *rows: Any, **asked: Any) -> None:
        self.runs += 1
        try:
            length, false = judge(sl.calibrate(*rows, **asked))
        except sl.NotCertifiable:
            self.refused += 1
            return
        self.false += false
        self.lists.append(length)

    def row(self) -> str:
        mean = f"{np.mean(self.lists):.2f}" if self.lists else "-"
        return f"| {self.name} | {mean} | {self.false / self.runs:.3f} | {self.refused / self.runs:.3f} |"


def table(title: str, tallies: list[Tally], note: str = "") -> None:
    print(f"\n### {title}\n\n| | list | false | refused |\n|---|---|---|---|")
    for each in tallies:
        print(each.row())
    if note:
        print(f"\n{note}")


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
        average, rows = Tally("whole pools, Expected(5, spread=4)"), Tally("rows as units, Expected(5, 100)")
        following, single = Tally("whole pools, PerPool(k=3)"), Tally("rows as units, PerPool(3, 20)")
        for _ in range(runs):
            s, y, c = clustered(rng, count)
            new_s, new_y, _ = clustered(rng, 1)

            def next_pool(policy: sl.Policy, s: Any = new_s, y: Any = new_y) -> tuple[float, bool]:
                mask = policy.select(s)
                return 100 * float(mask.mean()), int((mask & y).sum()) < 3

            average.add(judge, s, y, sl.Expected(5, spread=4), pools=c)
            rows.add(judge, s, y, sl.Expected(5, 100))
            following.add(next_pool, s, y, sl.PerPool(k=3), pools=c)
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


def precision_at(share: Floats) -> Floats:
    listed = np.maximum((share * TRUTH.points).astype(int), 1)
    found: Floats = TRUTH.qualified[TRUTH.points - listed] / (listed / TRUTH.points)
    return found


def precision(rng: np.random.Generator, runs: int) -> None:
    shares = np.linspace(0.001, 0.9, 5000)
    for q in (0.7, 0.5):
        oracle = float(shares[precision_at(shares) >= q].max())

        def judge(policy: sl.Policy, q: float = q) -> tuple[float, bool]:
            listed, qualified = TRUTH.at(policy.threshold)
            return 100 * listed, qualified < q * listed

        planned, searched = (
            Tally("fixed sequence, planned start"),
            Tally("fixed sequence, no plan (four starts)"),
        )
        plug, peer, default = (
            Tally("plug-in, no proof"),
            Tally("MAPIE, fixed sequence"),
            Tally("MAPIE, its default"),
        )
        for _ in range(runs):
            s, y = population(rng, 1000)
            u, _ = population(rng, 10_000)
            start = float(round(oracle / 2, 4))
            planned.add(judge, s, y, sl.Precision(q, start=start), unlabelled=u)
            searched.add(judge, s, y, sl.Precision(q), unlabelled=u)
            _naive(plug, s, y, q)
            if peer.runs < min(runs, 100):
                _mapie(peer, s, y, u, q, "fixed_sequence")
                _mapie(default, s, y, u, q, None)
        title = f"Precision {q}, n = 1,000, half the best possible list as the start"
        table(title, [planned, searched, peer, default, plug], f"Best possible list: {100 * oracle:.1f}")


def _naive(tally: Tally, s: Floats, y: NDArray[np.bool_], q: float) -> None:
    order = np.argsort(-s)
    share = np.cumsum(y[order]) / np.arange(1, len(s) + 1)
    tally.runs += 1
    listed, qualified = TRUTH.at(float(s[order][np.flatnonzero(share >= q)[-1]]))
    tally.lists.append(100 * listed)
    tally.false += qualified < q * listed


class _Scores:
    """A fitted classifier, as MAPIE wants one: the score is its probability."""

    classes_ = np.array([0, 1])

    def fit(self, X: Floats, y: Any) -> _Scores:
        return self

    def predict(self, X: Floats) -> Any:
        return (X[:, 0] >= 0.5).astype(int)

    def predict_proba(self, X: Floats) -> Floats:
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def _mapie(tally: Tally, s: Floats, y: NDArray[np.bool_], u: Floats, q: float, control: str | None) -> None:
    """MAPIE on 100 thresholds, from 2 % to 60 % of candidates listed: where its walk can begin."""
    from mapie.risk_control import BinaryClassificationController

    extra: dict[str, Any] = {} if control is None else {"fwer_method": control}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            _Scores().predict_proba, "precision", target_level=q, confidence_level=1 - ALPHA,
            best_predict_param_choice="recall", list_predict_params=np.quantile(u, np.linspace(0.4, 0.98, 100)),
            **extra,
        )  # fmt: skip
        controller.calibrate(s[:, None], y.astype(int))
        chosen = controller.best_predict_param
    tally.runs += 1
    if chosen is None:
        tally.refused += 1
        return
    listed, qualified = TRUTH.at(float(np.asarray(chosen).ravel()[0]))
    tally.lists.append(100 * listed)
    tally.false += qualified < q * listed


def false_share(rng: np.random.Generator, runs: int) -> None:
    print("\n### Conformal selection, q = 0.7, n = 1,000, pools of 100\n")
    shares, below, lengths = [], 0, []
    for _ in range(runs):
        s, y = population(rng, 1000)
        pool, truth = population(rng, 100)
        try:
            listed = sl.calibrate(s, y, sl.Precision(0.7), rule="fdr", unlabelled=pool).select(pool)
        except sl.NotCertifiable:
            shares.append(0.0)
            continue
        shares.append(1 - float(truth[listed].mean()))
        below += shares[-1] > 0.3
        lengths.append(int(listed.sum()))
    print(
        f"list {np.mean(lengths):.1f}; mean false share {np.mean(shares):.3f} (promised at most 0.300);",
        end=" ",
    )
    print(f"lists with less than 70 % qualified: {100 * below / runs:.0f} %")


def best_of(rng: np.random.Generator, runs: int) -> None:
    for several in (5, 20):
        one, corrected, naive = (
            Tally("one score alone"),
            Tally(f"best of {several}, alpha split"),
            Tally("shortest, uncorrected"),
        )
        big = 100_000
        for _ in range(max(50, runs // 4)):
            z = rng.standard_normal(1000)
            y = rng.random(1000) < special.expit(-2.2 + 1.8 * z)
            noise = rng.standard_normal((several, 1000))
            scores = {f"s{i}": z + 0.7 * noise[i] for i in range(several)}
            zb = rng.standard_normal(big)
            judge = _noisy_judge(zb, rng.standard_normal(big))
            one.add(judge, scores["s0"], y, sl.Expected(5, 100))
            corrected.add(judge, scores, y, sl.Expected(5, 100))

            made = [sl.calibrate(each, y, sl.Expected(5, 100)) for each in scores.values()]
            shares = [
                float(np.mean(each >= p.threshold)) for each, p in zip(scores.values(), made, strict=True)
            ]
            length, false = judge(made[int(np.argmin(shares))])
            naive.runs, naive.false = naive.runs + 1, naive.false + false
            naive.lists.append(length)
        table(f"Best of {several} equally good scores, n = 1,000", [one, corrected, naive])


def _noisy_judge(z: Floats, noise: Floats) -> Judge:
    chance, score = special.expit(-2.2 + 1.8 * z), z + 0.7 * noise

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed = score >= policy.threshold
        return 100 * float(listed.mean()), 100 * float(chance[listed].sum()) / len(z) < 5

    return judge


def chain(rng: np.random.Generator, runs: int) -> None:
    for n, other in ((300, 3_000), (1_000, 10_000), (10_000, 100_000)):
        exact, ours = Tally("exact rule"), Tally(f"rank chain, {other:,} unlabelled scores")
        seconds = 0.0
        for place in range(runs):
            s, y = population(rng, n)
            u, _ = population(rng, other)
            exact.add(count_judge(5), s, y, sl.Expected(5, 100))
            begun = time.perf_counter()
            ours.add(count_judge(5), s, y, sl.Expected(5, 100), unlabelled=u)
            seconds = seconds if place else time.perf_counter() - begun
        note = f"First calibration {seconds:.1f} s (the counts are solved once for n, N, rate and alpha)."
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


def speed(rng: np.random.Generator, runs: int) -> None:
    import polars as pl

    rows, count = 10_000_000, 100_000
    frame = pl.DataFrame({
        "score": rng.random(rows), "qualified": (rng.random(rows) < 0.2).astype(np.int8),
        "pool": rng.integers(0, count, rows),
    })  # fmt: skip

    def best(function: Callable[[], Any]) -> float:
        times = []
        for _ in range(3):
            begun = time.perf_counter()
            function()
            times.append(time.perf_counter() - begun)
        return min(times)

    one = best(lambda: frame.group_by("pool").agg(pl.len(), pl.col("score").max(), pl.col("qualified").sum()))
    columns = frame["score"].to_numpy(), frame["qualified"].to_numpy(), frame["pool"].to_numpy()
    print("\n### Speed: 10 million rows, 100,000 pools\n")
    print(f"one polars group-by {one:.2f} s")
    for name, target in (("PerPool(k=5)", sl.PerPool(k=5)), ("Expected(5)", sl.Expected(5))):
        arrays = best(lambda target=target: sl.calibrate(*columns[:2], target, pools=columns[2]))
        table_ = best(
            lambda target=target: sl.calibrate_table(
                frame, score="score", label="qualified", pool="pool", target=target
            )
        )
        print(
            f"{name}: arrays {arrays:.2f} s ({arrays / one:.1f} x), table {table_:.2f} s ({table_ / one:.1f} x)"
        )
    s, y = population(rng, 1000)
    other = rng.random(rows)
    partition = best(lambda: np.partition(other, rows // 2))
    sl.calibrate(s, y, sl.Expected(5, 100), unlabelled=other)  # solves the counts
    ours = best(lambda: sl.calibrate(s, y, sl.Expected(5, 100), unlabelled=other))
    print(f"unlabelled= with 10 million scores {ours:.2f} s; one np.partition of them {partition:.2f} s")


PARTS: dict[str, Callable[[np.random.Generator, int], None]] = {
    "pools": pools, "sampled": sampled, "precision": precision, "false_share": false_share, "best_of": best_of,
    "budget": budget, "chain": chain, "speed": speed,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--seed", type=int, default=12)
    options = parser.parse_args()
    print(f"surelist {sl.__version__}, {options.runs} runs, seed {options.seed}, alpha {ALPHA}")
    for name in options.part or PARTS:
        begun = time.perf_counter()
        PARTS[name](np.random.default_rng(options.seed), options.runs)
        print(f"\n({name}: {time.perf_counter() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
