"""Parts of ``promises.py`` beside peers: MAPIE's precision control, conformal selection, buscarpy's stopping rule."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surelist as sl
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
    """MAPIE on 100 thresholds, from 2 % to 60 % of candidates listed: where its walk can begin."""
    from mapie.risk_control import BinaryClassificationController

    begun = time.perf_counter()
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
    tally.seconds += time.perf_counter() - begun
    tally.runs += 1
    if chosen is None:
        tally.refused += 1
        return
    listed, qualified = TRUTH.at(float(np.asarray(chosen).ravel()[0]))
    tally.lists.append(100 * listed)
    tally.false += qualified < q * listed


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
    for name, select in (
        ("surelist, FalseShare", _by_false_share),
        ("conformal selection, by its definition", conformal_selection),
    ):
        lengths, shares, below, begun = [], [], 0, time.perf_counter()
        for s, y, pool, truth in drawn:
            listed = select(s, y, pool, 0.7)
            lengths.append(int(listed.sum()))
            shares.append(1 - float(truth[listed].mean()) if listed.any() else 0.0)
            below += shares[-1] > 0.3
        took = 1000 * (time.perf_counter() - begun) / runs
        print(
            f"| {name} | {np.mean(lengths):.2f} | {np.mean(shares):.3f} | {below / runs:.2f} | {took:.1f} |"
        )


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
