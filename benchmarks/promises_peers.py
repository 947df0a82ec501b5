"""Parts of ``promises.py`` beside peers.

MAPIE's control of precision, of recall and, with abstention, of both ends of a triage; conformal selection; the
Monte Carlo bound on the false share of a list; buscarpy's stopping rule.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surelist as sl
from promises_lists import band_of, judge_triage, judged
from promises_tally import ALPHA, TRUTH, Floats, Tally, table
from surelist.examples import population


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
    begun = time.perf_counter()
    order = np.argsort(-s)
    share = np.cumsum(y[order]) / np.arange(1, len(s) + 1)
    threshold = float(s[order][np.flatnonzero(share >= q)[-1]])
    tally.seconds += time.perf_counter() - begun
    tally.runs += 1
    listed, qualified = TRUTH.at(threshold)
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
    """MAPIE's precision on 100 thresholds, from 2 % to 60 % of candidates listed: where its walk can begin."""
    chosen = _chosen(
        tally, s, y, "precision", q, "recall", np.quantile(u, np.linspace(0.4, 0.98, 100)), control
    )
    if chosen is not None:
        listed, qualified = TRUTH.at(chosen)
        tally.lists.append(100 * listed)
        tally.false += qualified < q * listed


def _chosen(
    tally: Tally, s: Floats, y: NDArray[np.bool_], risk: str, level: float, best: str, grid: Floats, control: str | None,
) -> float | None:  # fmt: skip
    """The threshold that MAPIE certifies, timed and counted; None where it certifies none."""
    from mapie.risk_control import BinaryClassificationController

    begun = time.perf_counter()
    extra: dict[str, Any] = {} if control is None else {"fwer_method": control}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            _Scores().predict_proba, risk, target_level=level, confidence_level=1 - ALPHA,
            best_predict_param_choice=best, list_predict_params=grid, **extra,
        )  # fmt: skip
        controller.calibrate(s[:, None], y.astype(int))
        chosen = controller.best_predict_param
    tally.seconds += time.perf_counter() - begun
    tally.runs += 1
    tally.refused += chosen is None
    return None if chosen is None else float(np.asarray(chosen).ravel()[0])


def recall_lists(rng: np.random.Generator, runs: int) -> None:
    """The lists that keep 90 % of the qualified: MAPIE on 100 and on 1,000 thresholds, from everyone upwards."""
    r, everyone = 0.9, float(TRUTH.qualified[0])
    oracle = 100 * (1 - np.argmax(TRUTH.qualified < r * everyone) / TRUTH.points)

    def judge(policy: sl.Policy) -> tuple[float, bool]:
        listed, qualified = TRUTH.at(policy.threshold)
        return 100 * listed, qualified < r * everyone

    ours = Tally("surelist, Recall(0.9)")
    peers = {
        (points, control): Tally(
            f"MAPIE, {points:,} thresholds, {(control or 'its default').replace('_', ' ')}"
        )
        for points, control in ((100, "fixed_sequence"), (1_000, "fixed_sequence"), (100, None))
    }
    for _ in range(runs):
        s, y = population(rng, 1000)
        ours.add(judge, s, y, sl.Recall(r))
        for (points, control), peer in peers.items():
            chosen = _chosen(peer, s, y, "recall", r, "precision", np.linspace(0, 0.99, points), control)
            if chosen is not None:
                listed, qualified = TRUTH.at(chosen)
                peer.lists.append(100 * listed)
                peer.false += qualified < r * everyone
    table("Recall 0.9, n = 1,000", [ours, *peers.values()], f"Best possible list: {oracle:.1f}")


def _three_ways(rows: Floats, low: float, high: float) -> Floats:
    return np.where(rows[:, 0] >= high, 1.0, np.where(rows[:, 0] < low, 0.0, np.nan))


def _abstaining(tally: Tally, s: Floats, y: NDArray[np.bool_], points: int) -> tuple[float, float] | None:
    """The pair of thresholds with the least abstention that MAPIE certifies, of points x points pairs."""
    from mapie.risk_control import BinaryClassificationController, abstention_rate

    ends = np.linspace(0.5 / points, 0.5, points)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            _three_ways, ["positive_predictive_value", "negative_predictive_value"], target_level=[0.9, 0.9],
            confidence_level=1 - ALPHA, best_predict_param_choice=abstention_rate,
            list_predict_params=np.array([(low, 1 - high) for low in ends for high in ends]),
        )  # fmt: skip
        controller.calibrate(s[:, None], y.astype(int))
        chosen = controller.best_predict_param
    tally.seconds += time.perf_counter() - begun
    tally.runs += 1
    tally.refused += chosen is None
    return None if chosen is None else (float(chosen[0]), float(chosen[1]))


def abstention(rng: np.random.Generator, runs: int) -> None:
    """What is left to people by Triage and by MAPIE with abstention; MAPIE at most 100 runs."""
    for n in (500, 1_000):
        ours = Tally("surelist, Triage(0.9, reject=0.9)")
        peers = {
            points: Tally(f"MAPIE with abstention, {points**2} pairs of thresholds") for points in (3, 5, 10)
        }
        for _ in range(runs):
            s, y = judged(rng, n)
            ours.add(judge_triage, s, y, sl.Triage(0.9, reject=0.9), unlabelled=judged(rng, 10_000)[0])
            for points, peer in peers.items():
                chosen = _abstaining(peer, s, y, points) if peer.runs < 100 else None
                if chosen is not None:
                    band, false = band_of(*chosen)
                    peer.lists.append(band)
                    peer.false += false
        title = f"Triage of a judge's answers, 90 % at both ends, n = {n:,}: left to people, per 100"
        table(title, [ours, *peers.values()], "Ideal band: 7.1")


def monte_carlo_critical(rng: np.random.Generator, n: int, m: int, draws: int = 1000) -> float:
    """How far the ranks of m candidates among n rows stray from uniform, in standard deviations, at level alpha.

    Song, Jin and Candes (arXiv 2605.20726) bound the false share of every list at once: the marks of rows and
    candidates come in any order with equal chances, so the law of the p-values is known and drawn by Monte Carlo.
    Their default summary is the truncated higher criticism: the largest excess of the share of p-values up to
    t over t, divided by sqrt(t (1 - t)), for t from 0.01 to 0.99. Written from that definition.
    """
    stray = np.empty(draws)
    share = np.arange(1, m + 1) / m
    for at in range(draws):
        ours = np.sort(rng.permutation(n + m)[:m])
        p = np.sort(
            (ours - np.arange(m) + rng.random(m)) / (n + 1)
        )  # rows before it, and a uniform in its cell
        inside = (p > 0.01) & (p <= 0.99)
        excess = (share - p)[inside] / np.sqrt(p * (1 - p))[inside]
        stray[at] = max(excess.max(initial=0.0), (np.mean(p <= 0.01) - 0.01) / np.sqrt(0.01 * 0.99))
    return float(np.sort(stray)[int(np.ceil((1 - ALPHA) * (draws + 1))) - 1])


def monte_carlo_at_least(unqualified: Floats, n: int, pool: Floats, size: int, critical: float) -> int:
    """At least so many qualified among the best ``size``: false ones up to each p, and everyone listed after it.

    ``n`` are the rows that ranks are taken among: all of them, a qualified one ranking last (as in conformal
    selection), or the unqualified alone (as nonconform does for anomalies, where normal rows are all there are).
    """
    best = np.sort(pool)[::-1][:size]
    p = (1 + (unqualified[None, :] >= best[:, None]).sum(axis=1)) / (n + 1)
    t = np.maximum(p, 0.01)
    false = np.where(p > 0.99, len(pool), len(pool) * (t + critical * np.sqrt(t * (1 - t))))
    return max(0, size - int(np.min(false + np.arange(size - 1, -1, -1))))


def list_bounds(rng: np.random.Generator, runs: int) -> None:
    """How many of this very list: certified share, beside the Monte Carlo bound."""
    n, m, sizes = 1_000, 1_000, (50, 100, 200)
    critical = monte_carlo_critical(rng, n, m)

    def all_rows(s: Floats, y: NDArray[np.bool_], pool: Floats) -> list[int]:
        return [monte_carlo_at_least(s[~y], n, pool, k, critical) for k in sizes]

    def unqualified_rows(s: Floats, y: NDArray[np.bool_], pool: Floats) -> list[int]:
        others = s[~y]
        stray = monte_carlo_critical(rng, len(others), m, 300)
        return [monte_carlo_at_least(others, len(others), pool, k, stray) for k in sizes]

    def looked(s: Floats, y: NDArray[np.bool_], pool: Floats) -> list[int]:
        curve = sl.list_curve(s, y, pool, alpha=ALPHA)
        return [curve.of(k)[0] for k in sizes]

    print(f"\n### The best of this pool of {m:,}, n = {n:,}: share certified, and how often that was false\n")
    print(
        "| | best 50 | false | best 100 | false | best 200 | false | ms |\n|---|---|---|---|---|---|---|---|"
    )
    rules = {
        "surelist, ThisList (length fixed beforehand)": _by_this_list,
        "surelist, list_curve (after looking)": looked,
        "Monte Carlo bound, ranks among all rows (after looking)": all_rows,
        "Monte Carlo bound, ranks among unqualified rows (after looking)": unqualified_rows,
    }
    drawn = [(*population(rng, n), *population(rng, m)) for _ in range(runs)]
    held = np.array([[truth[np.argsort(-pool)[:k]].sum() for k in sizes] for _, _, pool, truth in drawn])
    for name, rule in rules.items():
        begun = time.perf_counter()
        promised = np.array([rule(s, y, pool) for s, y, pool, _ in drawn])
        took = 1000 * (time.perf_counter() - begun) / runs
        cells = zip((promised / sizes).mean(axis=0), (promised > held).mean(axis=0), strict=True)
        print(f"| {name} | {' | '.join(f'{mean:.3f} | {false:.3f}' for mean, false in cells)} | {took:.1f} |")
    print(f"| realised | {' | '.join(f'{mean:.3f} | ' for mean in (held / sizes).mean(axis=0))} | |")


def _by_this_list(s: Floats, y: NDArray[np.bool_], pool: Floats) -> list[int]:
    made = [sl.calibrate(s, y, sl.ThisList(k), unlabelled=pool, alpha=ALPHA) for k in (50, 100, 200)]
    return [int(str(each.promise).split("at least ")[1].split()[0]) for each in made]


def conformal_selection(s: Floats, y: NDArray[np.bool_], pool: Floats, q: float) -> NDArray[np.bool_]:
    """As Jin and Candes (2023) define it: the clipped score, p-values of every candidate, Benjamini-Hochberg.

    V(x, y) = infinity where y exceeds the cutoff (qualified), minus the score where not; a candidate's p is
    (1 + calibration rows with V <= its V-hat) / (n + 1).
    """
    v, own = np.where(y, np.inf, -s), -pool
    p = (1 + (v[None, :] <= own[:, None]).sum(axis=1)) / (len(s) + 1)
    order = np.argsort(p)
    small = np.flatnonzero(p[order] <= (1 - q) * np.arange(1, len(p) + 1) / len(p))
    listed = np.zeros(len(p), dtype=bool)
    if len(small):
        listed[order[: small[-1] + 1]] = True
    return listed


def false_share(rng: np.random.Generator, runs: int) -> None:
    """The average false share: another promise than precision, and never to be taken for it."""
    print("\n### Average false share at most .3, n = 1,000, pools of 100\n")
    print("| | list | mean false share | lists below 70 % qualified | ms |\n|---|---|---|---|---|")
    drawn = [(*population(rng, 1000), *population(rng, 100)) for _ in range(runs)]
    made = []
    for name, select in (
        ("surelist, FalseShare", _by_false_share),
        ("conformal selection, by its definition", conformal_selection),
    ):
        begun = time.perf_counter()
        lists = [select(s, y, pool, 0.7) for s, y, pool, _ in drawn]
        took = 1000 * (time.perf_counter() - begun) / runs
        shares = [
            1 - float(truth[listed].mean()) if listed.any() else 0.0
            for listed, (*_, truth) in zip(lists, drawn, strict=True)
        ]
        length, below = np.mean([each.sum() for each in lists]), np.mean([share > 0.3 for share in shares])
        print(f"| {name} | {length:.2f} | {np.mean(shares):.3f} | {below:.2f} | {took:.1f} |")
        made.append(lists)
    equal = sum(np.array_equal(one, other) for one, other in zip(*made, strict=True))
    print(f"\nBoth lists hold the same candidates in {equal} of {runs} runs.")


def _by_false_share(s: Floats, y: NDArray[np.bool_], pool: Floats, q: float) -> NDArray[np.bool_]:
    try:
        return sl.calibrate(s, y, sl.FalseShare(1 - q), unlabelled=pool).select(pool)
    except sl.NotCertifiable:
        return np.zeros(len(pool), dtype=bool)


SIZE, RELEVANT, RECALL, RISK, BATCH = 2000, 100, 0.9, 0.05, 20


def stopping(rng: np.random.Generator, runs: int) -> None:
    """When may a ranked review stop? 2,000 items, 100 of them relevant, recall .9 asked for at 5 %."""
    runs = max(20, runs // 8)
    print(
        f"\n### When to stop: {SIZE:,} items, {RELEVANT} relevant, recall {RECALL}, risk {RISK} ({runs} runs)\n"
    )
    print("| ranking | rule | reviewed | below the recall | not certified | ms |\n|---|---|---|---|---|---|")
    rankings = {
        "good": lambda: np.sort(rng.choice(SIZE, RELEVANT, replace=False, p=_weights(6.0))),
        "random": lambda: np.sort(rng.choice(SIZE, RELEVANT, replace=False)),
        "a second topic ranks last": lambda: np.concatenate(
            [np.sort(rng.choice(400, 70, replace=False)), SIZE - 1 - rng.choice(100, 30, replace=False)]
        ),
    }
    rules = {
        "buscarpy": _buscarpy,
        "StopTest after the ranked part": _stop_test,
        "control sample of 30 %": _control_sample,
    }
    for ranking, draw in rankings.items():
        for name, rule in rules.items():
            reviewed, false, open_, begun = [], 0, 0, time.perf_counter()
            for _ in range(runs):
                labels = np.zeros(SIZE, dtype=bool)
                labels[draw()] = True
                mask = rule(labels)
                open_ += mask.all()
                reviewed.append(mask.mean())
                false += labels[mask].sum() < RECALL * RELEVANT
            took = 1000 * (time.perf_counter() - begun) / runs
            print(
                f"| {ranking} | {name} | {np.mean(reviewed):.2f} | {false / runs:.2f} | {open_ / runs:.2f} | {took:.0f} |"
            )
    print(
        "\nbuscarpy takes ranked order to be no worse than random order; the other two rules assume nothing of "
        "the ranking."
    )


def _weights(steep: float) -> Floats:
    heights = np.exp(-steep * np.arange(SIZE) / SIZE)
    return heights / heights.sum()


def _buscarpy(labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Review by rank; after every batch its p-value, and stop when it is below the risk."""
    from buscarpy import calculate_h0

    seen = labels.astype(np.int64)
    for size in range(BATCH, SIZE, BATCH):
        p = calculate_h0(seen[:size], SIZE, RECALL)
        if p is not None and p < RISK:
            return np.arange(SIZE) < size
    return np.ones(SIZE, dtype=bool)


def _stop_test(labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Review by rank until 100 in a row brought nothing, then test the rest; where that fails, review it all."""
    gaps = np.convolve(labels, np.ones(100), mode="full")[: len(labels)]
    size = next((i + 1 for i in range(99, SIZE) if labels[: i + 1].any() and gaps[i] == 0), SIZE)
    mask = np.arange(SIZE) < size
    if size == SIZE:
        return mask
    test = sl.StopTest(int(labels[:size].sum()), SIZE - size, RECALL, alpha=RISK)
    while len(rows := test.ask()):
        test.tell(labels[size + rows].astype(float))
        mask[size + rows] = True
    return mask if test.certified else np.ones(SIZE, dtype=bool)


def _control_sample(labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A random 30 % are labelled first; the ranked review then stops where that sample says."""
    scores = -np.arange(SIZE, dtype=np.float64)
    work = sl.Labelling(scores, sl.Recall(RECALL), alpha=RISK, labels=round(0.3 * SIZE))
    asked = np.zeros(SIZE, dtype=bool)
    while len(rows := work.ask()):
        work.tell(rows, labels[rows].astype(float))
        asked[rows] = True
    try:
        work.policy  # noqa: B018
    except sl.NotCertifiable:
        return np.ones(SIZE, dtype=bool)
    return np.asarray(work.select(scores)) | asked
