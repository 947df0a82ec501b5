"""A label budget: the list that so many labels certify, beside SUPG, BARGAIN and LOTUS.

    python benchmarks/budget.py --data ../shared/data --runs 50 --rival-runs 10 -o benchmarks/budget.txt
    python benchmarks/budget_page.py            (table and picture of docs/budget.md, from these figures)

BARGAIN and LOTUS run by their own code, each in an environment of its own that is made under --environments
(the first time, from the package index). SUPG's estimators are written here from its paper (Kang and
others, 2020). Every set is run as it is and with a few positives hidden among low scores. False: runs with less
than was promised. alpha 5 %. What the file of -o says of other sets and rules is kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import surelist as sl
from surelist.bounds.collection_lists import shortest_list

ALPHA = 0.05
PACKAGES = {"bargain": "bargain", "lotus": "lotus-ai"}
CELLS = {  # by set: precisions and recalls with their budgets
    "onto": [("precision", 0.9, (500, 1000, 2000)), ("recall", 0.9, (1000, 2000, 4000)), ("recall", 0.95, (2000,))],
    "imagenet": [("precision", 0.9, (500, 1000, 2000)), ("recall", 0.9, (1000, 2000, 5000))],
    "census": [("precision", 0.8, (500, 1000, 2000)), ("recall", 0.9, (500, 1000, 2000))],
    "beta": [("precision", 0.9, (1000, 3000, 10000)), ("recall", 0.9, (1000, 3000, 10000))],
    "CD012069": [("precision", 0.5, (250, 500, 1000)), ("recall", 0.9, (250, 500, 1000))],
    "CD012661": [("precision", 0.5, (250, 500, 1000)), ("recall", 0.9, (250, 500, 1000))],
    "CD008874": [("precision", 0.5, (250, 500, 1000)), ("recall", 0.9, (250, 500, 1000))],
}  # fmt: skip
# CD...: the three topics of CLEF TAR 2019 with the most relevant abstracts
MOST = {"bargain": 10_000, "lotus": 5_000}  # labels; LOTUS takes half a minute a run for 10,000


def sets(folder: Path, names: list[str]) -> dict[str, tuple[Any, Any]]:
    """Scores and labels by name, each as it is and with positives hidden low."""
    import pandas as pd

    made: dict[str, tuple[Any, Any]] = {}
    for name in names:
        if name == "beta":
            rng = np.random.RandomState(3212142)
            scores = rng.beta(0.01, 2, 10**6)
            labels = (rng.random_sample(10**6) < scores).astype(int)
        elif name == "census":
            scores, labels = _census(pd.read_parquet(folder / "acsemployment_2018_14states.parquet"))
        elif name.startswith("CD"):
            topics = pd.read_parquet(folder / "clef_tar_2019.parquet")
            topic = topics[topics["review"] == name]
            scores, labels = topic["score"].to_numpy(float), topic["label"].to_numpy(int)
        else:
            table = pd.read_parquet(folder / f"supg_{name}.parquet")
            scores, labels = table["score"].to_numpy(float), table["label"].to_numpy(int)
        made[name] = scores, labels
        hidden, low = labels.copy(), np.argsort(-scores, kind="stable")[len(scores) // 5 :]
        hidden[np.random.default_rng(1).choice(low, max(50, int(labels.sum()) // 50), replace=False)] = 1
        made[f"{name}, hidden"] = scores, hidden
    return made


def _census(table: Any) -> tuple[Any, Any]:
    """A model of one half scores 40,000 of the other."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    features = table[["AGEP", "SCHL", "MAR", "RELP", "DIS", "CIT", "MIL", "SEX"]].to_numpy(float)
    labels, half = table["employed"].to_numpy(int), len(table) // 2
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(features[:half], labels[:half])
    rest = slice(half, half + 40_000)
    scores = model.predict_proba(features[rest])[:, 1]
    return scores + 1e-9 * np.random.default_rng(0).random(len(scores)), labels[rest]


def ours(scores: Any, labels: Any, promise: str, share: float, budget: int, seed: int) -> Any:
    target = sl.Precision(share) if promise == "precision" else sl.Recall(share)
    work = sl.Labelling(scores, target, alpha=ALPHA, labels=budget)
    while len(rows := work.ask()):
        work.tell(rows, labels[rows])
    try:
        return np.flatnonzero(work.select(scores))
    except sl.NotCertifiable:
        return np.arange(len(scores))


def top(scores: Any, labels: Any, promise: str, share: float, budget: int, seed: int) -> Any:
    """Label the best one after another; the list is those found (and, for a precision, unseen ones that it
    allows)."""
    order = np.argsort(-scores, kind="stable")
    found = order[:budget][labels[order[:budget]] == 1]
    if promise == "recall":
        return np.arange(len(scores))
    return np.concatenate([found, order[budget : budget + int(len(found) * (1 - share) / share + 1e-9)]])


def supg(scores: Any, labels: Any, promise: str, share: float, budget: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    weights = np.sqrt(np.clip(scores, 0, None))
    weights = 0.9 * weights / weights.sum() + 0.1 / len(scores)
    if promise == "recall":
        drawn = rng.choice(len(scores), budget, p=weights / weights.sum())
        return np.union1d(_supg_recall(scores, labels, share, drawn, weights), drawn[labels[drawn] == 1])
    return _supg_precision(scores, labels, share, budget, weights, rng)


def _bound(values: Any, delta: float, sign: int) -> float:
    if not len(values):
        return 0.0
    return float(values.mean() + sign * values.std() / np.sqrt(len(values)) * np.sqrt(2 * np.log(1 / delta)))


def _supg_recall(scores: Any, labels: Any, share: float, drawn: Any, weights: Any) -> Any:
    """Importance sampling with a corrected target (algorithm 4)."""
    factor = 1 / (len(scores) * weights[drawn])
    held, at = labels[drawn] * factor, scores[drawn]

    def cut(wanted: float) -> float:
        order = np.argsort(-at)
        reached = np.cumsum(held[order]) >= wanted * held.sum() - 1e-12
        return float(at[order][np.argmax(reached)]) if held.sum() and reached.any() else -np.inf

    first = cut(share)
    high = _bound(np.where(at >= first, held, 0.0), ALPHA / 2, 1)
    low = max(0.0, _bound(np.where(at < first, held, 0.0), ALPHA / 2, -1))
    return np.flatnonzero(scores >= cut(min(1.0, high / (high + low)) if high + low else 1.0))


def _supg_precision(scores: Any, labels: Any, share: float, budget: int, weights: Any, rng: Any) -> Any:
    """Two stages: how many positives there are at most, then a threshold among the best (algorithm 5)."""
    first = rng.choice(len(scores), budget // 2, p=weights / weights.sum())
    most = len(scores) * _bound(labels[first] / (len(scores) * weights[first]), ALPHA / 2, 1)
    best = np.argsort(-scores, kind="stable")[: min(len(scores), max(1, int(most / share)))]
    inside = weights[best] / weights[best].sum()
    second = best[rng.choice(len(best), budget - budget // 2, p=inside)]
    second = second[np.argsort(-scores[second])]
    factor = 1 / weights[second]
    places = range(min(100, len(second)), len(second) + 1, 100)
    sampled = np.union1d(first[labels[first] == 1], second[labels[second] == 1])
    for end in reversed(places):
        held = labels[second[:end]] * factor[:end] / factor[:end].mean()
        if _bound(held, ALPHA / 2 / len(places), -1) > share:
            return np.union1d(np.flatnonzero(scores >= scores[second[end - 1]]), sampled)
    return sampled


def rivals(name: str, data: dict[str, Any], cells: list[dict[str, Any]], where: Path) -> list[dict[str, Any]]:
    """By their own code, in an environment of their own."""
    home = where / name
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PACKAGES[name]], check=True)
    source, output = where / f"{name}.npz", where / f"{name}.json"
    arrays = {f"{key}:{part}": value for key, pair in data.items() for part, value in zip(("scores", "labels"), pair, strict=True)}  # fmt: skip
    np.savez(source, cells=json.dumps(cells), **arrays)
    script = Path(__file__).with_name("budget_rivals.py")
    subprocess.run([python, script, name, source, output], check=True)
    return list(json.loads(output.read_text(encoding="utf-8")))


def table(answers: dict[str, list[dict[str, Any]]], data: dict[str, Any]) -> str:
    """One line for each cell and rule: false runs, recall or length, how often everything was returned."""
    lines = [
        "set | promise | labels | rule | runs | false | recall | listed | oracle | everything | seconds | floor"
    ]
    for rule, rows in answers.items():
        for key in dict.fromkeys((r["data"], r["promise"], r["share"], r["labels"]) for r in rows):
            name, promise, share, labels = key
            runs = [r for r in rows if (r["data"], r["promise"], r["share"], r["labels"]) == key]
            scores, truth = data[name]
            everyone, size = int(truth.sum()), len(scores)
            found, listed = (np.array([r[part] for r in runs]) for part in ("found", "listed"))
            held = found / np.maximum(listed, 1) if promise == "precision" else found / everyone
            false = int(np.sum((held < share - 1e-12) & (listed > 0)))
            ranked = np.cumsum(truth[np.argsort(-scores, kind="stable")])
            if promise == "recall":
                best = int(np.searchsorted(ranked, share * everyone)) + 1
            else:
                best = int(np.flatnonzero(np.append(True, ranked >= share * np.arange(1, size + 1)))[-1])
            lines.append(
                f"{name} | {promise} {share} | {labels:,} | {rule} | {len(runs)} | {false} | "
                f"{np.mean(found / everyone):.3f} | {listed.mean():,.0f} | {best:,} | "
                f"{np.mean(listed >= 0.999 * size):.0%} | {np.mean([r['seconds'] for r in runs]):.2f} | "
                + (f"{floor(size, everyone, labels, share):,}" if promise == "recall" else "-")
            )
    return "\n".join(lines)


def floor(size: int, qualified: int, labels: int, share: float) -> int:
    """What no exact rule that ends its list at a score can be sure to list fewer than."""
    exact = Fraction(str(share)), Fraction(str(ALPHA))
    return shortest_list(size, qualified, labels, *exact)


def times(runs: int, cell: dict[str, Any], data: dict[str, tuple[Any, Any]]) -> int:
    """So many runs of a cell: a tenth on a million rows."""
    return max(5, runs // 10) if len(data[cell["data"]][0]) > 10**5 else runs


def merged(before: str, said: str, key: int = 4) -> str:
    """The new lines in the place of those about the same cell and rule; all others stay."""
    lines = {tuple(line.split(" | ")[:key]): line for line in [*before.splitlines(), *said.splitlines()]}
    return "\n".join(lines.values()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=list(CELLS))
    parser.add_argument("--promises", nargs="+", default=["precision", "recall"])
    parser.add_argument("--shares", nargs="+", type=float, help="only these")
    parser.add_argument("--labels", nargs="+", type=int, help="only these budgets")
    parser.add_argument("--rules", nargs="+", default=["surelist", "top b", "SUPG", *PACKAGES])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rival-runs", type=int, default=10)
    parser.add_argument("--environments", type=Path, default=Path(".rivals"))
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    data = sets(given.data, given.sets)
    cells = [
        {"data": each, "promise": promise, "share": share, "labels": labels, "alpha": ALPHA}
        for name in given.sets for each in (name, f"{name}, hidden")
        for promise, share, budgets in CELLS[name]
        if promise in given.promises and (not given.shares or share in given.shares)
        for labels in budgets if not given.labels or labels in given.labels
    ]  # fmt: skip
    own: dict[str, Callable[..., Any]] = {"surelist": ours, "top b": top, "SUPG": supg}
    answers: dict[str, list[dict[str, Any]]] = {}
    for rule in given.rules:
        if rule in PACKAGES:
            few = [
                {**cell, "seeds": times(given.rival_runs, cell, data)}
                for cell in cells
                if cell["labels"] <= MOST[rule]
            ]
            given.environments.mkdir(exist_ok=True)
            answers[rule] = rivals(rule, data, few, given.environments)
            continue
        answers[rule] = []
        for cell in cells:
            scores, labels = data[cell["data"]]
            runs = 1 if rule == "top b" else times(given.runs, cell, data)
            for seed in range(runs):
                begun = time.perf_counter()
                asked = cell["promise"], cell["share"], cell["labels"]
                listed = own[rule](scores, labels, *asked, seed)
                took = time.perf_counter() - begun
                facts = {"listed": len(listed), "found": int(labels[listed].sum()), "seconds": took}
                answers[rule].append({**cell, **facts})
        print(rule, "done", file=sys.stderr, flush=True)
    said = table(answers, data)
    print(said)
    if given.output:
        before = given.output.read_text(encoding="utf-8") if given.output.exists() else ""
        given.output.write_text(merged(before, said), encoding="utf-8")


if __name__ == "__main__":
    main()
