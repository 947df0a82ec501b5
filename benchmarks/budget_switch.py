"""How a recall from a label budget chooses its design, beside each design by itself and the rule before both.

    python benchmarks/budget_switch.py --data ../shared/data --runs 15 -o benchmarks/budget_switch.txt

One sample: with the whole budget, and the drops of today. Two draws: after a pilot of 5 %. Plug-in: one sample with the
drops of the plug-in alone, and those labelled not qualified stay on the list. Listed: candidates, everyone where nothing is
certified. When a sample is looked at was set on the sets up to "tied in 20" and on those of budget.py; the others came after.
What the file of -o says of other cells and rules is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import surelist as sl
from budget import ALPHA, floor, merged
from surelist.bounds import control_sample as control
from surelist.lifecycle import labelling_recall

Set = tuple[str, Any, Any, float, tuple[int, ...]]
TOPICS = ("CD006468", "CD009069", "CD011768", "CD011787", "CD012080", "CD012669")
LATER = ("CD001261", "CD009642", "CD011686", "CD012551")
QUALIFIED = {  # of the census: what is sought, and the budgets
    "employed": ("employed", 1, (200, 1000)),
    "cannot walk well": ("DPHY", 1, (300, 1000)),
    "seeks work": ("ESR", 3, (1000, 3000)),
}
SOUGHT_LATER = {
    "moved": ("MOVED", 1, (250, 750)),
    "cannot see well": ("DEYE", 1, (750, 2000)),
    "born abroad": ("NATIVITY", 2, (250, 500)),
}
RULES: dict[str, dict[str, Any]] = {  # what is changed in labelling_recall
    "as it is": {"FEWEST": labelling_recall.FEWEST},
    "one sample": {"FEWEST": 10**9},
    "two draws": {"about_needed": lambda *given: 10**9},
    "plug-in": {"FEWEST": labelling_recall.FEWEST},
}


def sets(folder: Path) -> Iterator[Set]:
    """Name, scores, labels, the share to keep and the budgets."""
    import pandas as pd

    topics = pd.read_parquet(folder / "clef_tar_2019.parquet")
    census = pd.read_parquet(folder / "acs2024_24states.parquet")
    yield from _topics(topics, TOPICS)
    yield from _census(census.iloc[:60_000], QUALIFIED)
    yield from _made_up(
        {
            "noise": lambda ranks: np.full(len(ranks), 0.05),
            "two humps": lambda ranks: np.where(
                ranks < 0.01, 0.8, np.where(abs(ranks - 0.4) < 0.05, 0.15, 0.002)
            ),
            "flat, then none": lambda ranks: np.where(ranks < 0.3, 0.1, 0.0),
            "very good": lambda ranks: np.where(ranks < 0.015, 0.97, 0.0002),
            "tied in 20": lambda ranks: 0.6 * np.exp(-((ranks * 20).astype(int)) / 2),
        },
        20,
    )
    yield from _topics(topics, LATER)
    yield from _census(census.iloc[800_000:860_000], SOUGHT_LATER)
    yield from _made_up(
        {
            "power": lambda ranks: 0.01 * np.maximum(ranks, 1e-3) ** -0.6,
            "ramp": lambda ranks: 0.04 * (1 - ranks),
            "good, 0.95": lambda ranks: np.where(ranks < 0.02, 0.6, 0.01 * np.exp(-8 * ranks)),
            "good, 0.8": lambda ranks: np.where(ranks < 0.02, 0.6, 0.01 * np.exp(-8 * ranks)),
        },
        21,
    )


def _topics(topics: Any, names: tuple[str, ...]) -> Iterator[Set]:
    for name in names:
        topic = topics[topics["review"] == name]
        size, scores = len(topic), topic["score"].to_numpy(float)
        yield name, scores, topic["label"].to_numpy(int), 0.9, (size // 6, size // 3)


def _census(table: Any, qualified: dict[str, tuple[str, int, tuple[int, ...]]]) -> Iterator[Set]:
    """A logistic regression of a third scores the other two."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    features = StandardScaler().fit_transform(
        table[["AGEP", "SCHL", "MAR", "CIT", "MIL", "SEX", "ENG"]].to_numpy(float)
    )
    for name, (column, value, budgets) in qualified.items():
        labels = (table[column] == value).to_numpy(int)
        seen = (
            features if name != "born abroad" else features[:, [0, 1, 2, 4, 5]]
        )  # neither passport nor English
        model = LogisticRegression(max_iter=500).fit(seen[:20_000], labels[:20_000])
        yield name, model.decision_function(seen[20_000:]), labels[20_000:], 0.9, budgets


def _made_up(laws: dict[str, Any], seed: int, size: int = 20_000) -> Iterator[Set]:
    """Budgets: half of 25 qualified ones in a sample of everyone, 25, and twice as many."""
    rng, ranks = np.random.default_rng(seed), (np.arange(size) + 0.5) / size
    for name, law in laws.items():
        scores = -(np.floor(ranks * 20) if name == "tied in 20" else ranks)
        labels = (rng.random(size) < law(ranks)).astype(int)
        share = {"good, 0.95": 0.95, "good, 0.8": 0.8}.get(name, 0.9)
        few = int(25 * size / labels.sum())
        yield name, scores, labels, share, (few // 2, few, 2 * few)


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


@cache
def plug_in_drops(size: int, drawn: int, share: Fraction) -> list[int]:
    """The drops before any of alpha that they leave is used up."""
    with mock.patch.object(control._Sample, "used_up", lambda self, drops, known, largest: drops.tolist()):
        return list(control.control_rule.__wrapped__(size, drawn, share, ALPHA))


def plug_in_run(scores: Any, labels: Any, share: float, budget: int) -> tuple[int, bool, bool]:
    """One sample with the drops of the plug-in; everyone who was drawn is on the list."""
    size, rng = len(scores), np.random.default_rng()
    order = np.lexsort((rng.random(size), -scores))
    drawn = np.sort(rng.choice(size, budget, replace=False))
    hits = drawn[labels[order[drawn]] == 1]
    drop = plug_in_drops(size, budget, Fraction(str(share)))[len(hits)]
    if drop < 0:
        return size, False, True
    listed = scores >= scores[order[hits[len(hits) - 1 - drop]]]
    listed[order[drawn]] = True
    return int(listed.sum()), int(labels[listed].sum()) < Fraction(str(share)) * int(labels.sum()), True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines = ["set | candidates | qualified | recall | labels | rule | runs | listed | two standard errors | one sample | false | oracle | floor"]  # fmt: skip
    for name, scores, labels, share, budgets in sets(given.data):
        if given.sets and name not in given.sets:
            continue
        held = np.cumsum(labels[np.argsort(-scores, kind="stable")])
        oracle = int(np.searchsorted(held, share * held[-1] - 1e-9)) + 1
        for budget in budgets:
            for rule in given.rules:
                run = plug_in_run if rule == "plug-in" else one_run
                with mock.patch.multiple(labelling_recall, **RULES[rule]):
                    runs = [run(scores, labels, share, budget) for _ in range(given.runs)]
                listed, false, uniform = (np.array(each) for each in zip(*runs, strict=True))
                lines.append(
                    f"{name} | {len(scores):,} | {held[-1]:,} | {share} | {budget:,} | {rule} | {given.runs} | "
                    f"{listed.mean():,.0f} | {2 * listed.std() / given.runs**0.5:,.0f} | {uniform.mean():.2f} | "
                    f"{false.sum()} | {oracle:,} | {floor(len(scores), int(held[-1]), budget, share):,}"
                )
                print(lines[-1], flush=True)
    if given.output:
        before = given.output.read_text(encoding="utf-8") if given.output.exists() else ""
        given.output.write_text(merged(before, "\n".join(lines), key=6), encoding="utf-8")


if __name__ == "__main__":
    main()
