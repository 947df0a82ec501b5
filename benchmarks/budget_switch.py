"""A recall from a label budget on data that its choice between one sample and two draws was not set on.

    python benchmarks/budget_switch.py --data ../shared/data --runs 15 -o benchmarks/budget_switch.txt

Beside the rule as it is, each of the two designs by itself: one uniform sample with the whole budget, and two draws
after the pilot. Listed: candidates, everyone where nothing is certified. The choice was set on onto, CD008874, CD012069,
CD012661 and made-up laws other than these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import surelist as sl
from budget import ALPHA, floor
from surelist.lifecycle import labelling_recall

TOPICS = ("CD006468", "CD009069", "CD011768", "CD011787", "CD012080", "CD012669")
RULES: dict[str, dict[str, float]] = {  # what is changed in labelling_recall
    "as it is": {"FEWEST": labelling_recall.FEWEST},
    "one sample": {"FEWEST": 10**9},
    "two draws": {"HOPELESS": 2.0},
}


def sets(folder: Path) -> Iterator[tuple[str, Any, Any, float, tuple[int, ...]]]:
    """Name, scores, labels, the share to keep and the budgets."""
    import pandas as pd

    topics = pd.read_parquet(folder / "clef_tar_2019.parquet")
    for name in TOPICS:
        topic = topics[topics["review"] == name]
        size = len(topic)
        yield (
            name,
            topic["score"].to_numpy(float),
            topic["label"].to_numpy(int),
            0.9,
            (size // 6, size // 3),
        )
    yield from _census(pd.read_parquet(folder / "acs2024_24states.parquet").iloc[:60_000])
    rng, size = np.random.default_rng(20), 20_000
    ranks = (np.arange(size) + 0.5) / size
    laws = {
        "noise": np.full(size, 0.05),
        "two humps": np.where(ranks < 0.01, 0.8, np.where(abs(ranks - 0.4) < 0.05, 0.15, 0.002)),
        "flat, then none": np.where(ranks < 0.3, 0.1, 0.0),
        "very good": np.where(ranks < 0.015, 0.97, 0.0002),
        "tied in 20": 0.6 * np.exp(-((ranks * 20).astype(int)) / 2),
    }
    for name, law in laws.items():
        scores = -(np.floor(ranks * 20) if name == "tied in 20" else ranks)
        labels = (rng.random(size) < law).astype(int)
        few = int(25 * size / labels.sum())
        yield name, scores, labels, 0.9, (few // 2, few, 2 * few)


def _census(table: Any) -> Iterator[tuple[str, Any, Any, float, tuple[int, ...]]]:
    """A logistic regression of a third scores the other two."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    features = StandardScaler().fit_transform(
        table[["AGEP", "SCHL", "MAR", "CIT", "MIL", "SEX", "ENG"]].to_numpy(float)
    )
    qualified = {
        "employed": table["employed"],
        "cannot walk well": table["DPHY"] == 1,
        "seeks work": table["ESR"] == 3,
    }
    for (name, column), budgets in zip(
        qualified.items(), ((200, 1000), (300, 1000), (1000, 3000)), strict=True
    ):
        labels = column.to_numpy(int)
        model = LogisticRegression(max_iter=500).fit(features[:20_000], labels[:20_000])
        yield name, model.decision_function(features[20_000:]), labels[20_000:], 0.9, budgets


def one_run(scores: Any, labels: Any, share: float, budget: int) -> tuple[int, bool, bool]:
    """How many are listed, whether that keeps too few, and whether one sample was taken."""
    try:
        work = sl.Labelling(scores, sl.Recall(share), alpha=ALPHA, labels=budget)
    except sl.InvalidInput:  # however the labels turn out, nothing would be certified
        return len(scores), False, True
    uniform = False
    while len(rows := work.ask()):
        uniform = "A control sample" in work.describe()
        work.tell(rows, labels[rows])
    try:
        listed = work.select(scores)
    except sl.NotCertifiable:
        return len(scores), False, uniform
    return int(listed.sum()), int(labels[listed].sum()) < Fraction(str(share)) * int(labels.sum()), uniform


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines = ["set | candidates | qualified | recall | labels | rule | runs | listed | two standard errors | one sample | false | oracle | floor"]  # fmt: skip
    for name, scores, labels, share, budgets in sets(given.data):
        held = np.cumsum(labels[np.argsort(-scores, kind="stable")])
        oracle = int(np.searchsorted(held, share * held[-1] - 1e-9)) + 1
        for budget in budgets:
            for rule, changes in RULES.items():
                with mock.patch.multiple(labelling_recall, **changes):
                    runs = [one_run(scores, labels, share, budget) for _ in range(given.runs)]
                listed, false, uniform = (np.array(each) for each in zip(*runs, strict=True))
                lines.append(
                    f"{name} | {len(scores):,} | {held[-1]:,} | {share} | {budget:,} | {rule} | {given.runs} | "
                    f"{listed.mean():,.0f} | {2 * listed.std() / given.runs**0.5:,.0f} | {uniform.mean():.2f} | "
                    f"{false.sum()} | {oracle:,} | {floor(len(scores), int(held[-1]), budget, share):,}"
                )
                print(lines[-1], flush=True)
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
