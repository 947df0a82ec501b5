"""Promises on real data: review topics and states as pools, labels of last year's list plus an audit.

    python benchmarks/promises_real.py [--data ../shared/data] [--out docs/promises.png]

CLEF eHealth TAR 2019 topics and the American Community Survey of 2024; skipped with a message where absent.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import surelist as sl
from surelist.drawing import axes as plots

FEATURES = ["AGEP", "SCHL", "MAR", "DIS", "CIT", "MIL", "NATIVITY", "SEX"]


def kept_by_topics(frame: pd.DataFrame, splits: int) -> dict[tuple[float, str], float]:
    """Share of held-out topics that keep the promised share of their own relevant abstracts."""
    topics, codes = np.unique(frame.review.to_numpy().astype(str), return_inverse=True)
    scores, labels = frame.score.to_numpy(), frame.label.to_numpy() == 1
    relevant = np.bincount(codes[labels])
    outcome: dict[tuple[float, str], list[float]] = {}
    lengths: dict[tuple[float, str], list[float]] = {}
    rng = np.random.default_rng(3)
    for _ in range(splits):
        past = np.zeros(len(topics), dtype=bool)
        past[rng.permutation(len(topics))[:20]] = True
        known = past[codes]
        rows = scores[known], labels[known]
        for alpha in (0.1, 0.2):
            whole = sl.NextPool(recall=0.9)
            made = {
                "whole topics": sl.calibrate(*rows, whole, pools=codes[known], alpha=alpha),
                "abstracts as units": sl.calibrate(*rows, sl.Recall(0.9), alpha=alpha),
            }
            for name, policy in made.items():
                listed = policy.select(scores) & ~known
                held = np.bincount(codes[listed & labels], minlength=len(topics))
                kept = (10 * held >= 9 * relevant)[~past]
                outcome.setdefault((alpha, name), []).append(float(kept.mean()))
                lengths.setdefault((alpha, name), []).append(float(listed.sum() / (~known).sum()))
    print("\n### Review topics as pools: 90 % of each topic's own relevant abstracts\n")
    print("| alpha | units | held-out topics that keep it | abstracts listed |\n|---|---|---|---|")
    for (alpha, name), values in outcome.items():
        print(
            f"| {alpha} | {name} | {100 * np.mean(values):.1f} % | {100 * np.mean(lengths[alpha, name]):.0f} % |"
        )
    return {key: float(np.mean(values)) for key, values in outcome.items()}


def acs_scores(frame: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Adults, and the score of a model trained on other rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    adults = frame[frame.AGEP >= 16]
    train = adults.iloc[:60_000]
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(train[FEATURES], train.employed)
    rest = adults.iloc[60_000:460_000]
    return rest, model.predict_proba(rest[FEATURES])[:, 1]


def states_as_pools(rows: pd.DataFrame, scores: NDArray[np.float64], splits: int) -> None:
    """30 adults of a state are a pool; 8 employed ones are promised in the next state's pool."""
    rng = np.random.default_rng(5)
    state, label = rows.ST.to_numpy(), rows.employed.to_numpy().astype(bool)
    by_state = {code: np.flatnonzero(state == code) for code in np.unique(state)}
    codes = list(by_state)
    failed, length, pools = 0, [], 0
    for _ in range(splits):
        order = rng.permutation(codes)
        drawn = {code: rng.choice(by_state[code], 30, replace=False) for code in order}
        past = np.concatenate([drawn[code] for code in order[:-1]])
        policy = sl.calibrate(scores[past], label[past], sl.NextPool(k=8), pools=state[past], alpha=0.1)
        new = drawn[order[-1]]
        listed = policy.select(scores[new])
        failed += int((listed & label[new]).sum()) < 8
        length.append(float(listed.sum()))
        pools += 1
    print("\n### States as pools: 8 employed of 30 adults in the next state\n")
    print(
        f"{len(codes) - 1} states to calibrate, {pools} splits: the next state fell short in {100 * failed / pools:.1f} %",
        end=" ",
    )
    print(f"(promised at most 10 %); {np.mean(length):.1f} of 30 listed")


def last_years_list(rows: pd.DataFrame, scores: NDArray[np.float64], runs: int) -> None:
    """Labels only for those shortlisted last year, and for 5 % of the rest."""
    rng = np.random.default_rng(6)
    label = rows.employed.to_numpy().astype(bool)
    half = len(rows)  # the truth is that of all rows, from which the calibration rows are drawn
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(label[order]) / half
    ordered = scores[order]
    edge = float(np.quantile(scores, 0.85))
    oracle = 100 * (np.searchsorted(hits, 0.2) + 1) / half
    tallies: dict[str, list[tuple[float, bool]]] = {}
    for _ in range(runs):
        take = rng.choice(half, 4000, replace=False)
        s, y = scores[take], label[take]
        drawn = (s >= edge) | (rng.random(4000) < 0.05)
        target = sl.Expected(20, 100)
        sampled = sl.SampledLabels(np.where(drawn, y.astype(float), np.nan), probability=0.05, above=edge)
        made: dict[str, tuple[Any, Any]] = {
            "all 4,000 labelled": (s, y),
            f"{int(drawn.sum() // 10 * 10)} labels: last year's list and 5 % audited": (s, sampled),
            "the unlabelled rows dropped": (s[drawn], y[drawn]),
        }
        for place, (name, columns) in enumerate(made.items()):
            key = name if place != 1 else "last year's list and 5 % audited"
            policy = sl.calibrate(*columns, target)
            listed = int(np.searchsorted(-ordered, -policy.threshold, side="right"))
            tallies.setdefault(key, []).append((100 * listed / half, bool(hits[max(0, listed - 1)] < 0.2)))
    print(
        f"\n### Employed adults, 20 of 100: labels of last year's list ({100 * np.mean(s >= edge):.0f} % of rows)\n"
    )
    print("| labels | list | false |\n|---|---|---|")
    for name, found in tallies.items():
        print(
            f"| {name} | {np.mean([each[0] for each in found]):.1f} | {np.mean([each[1] for each in found]):.3f} |"
        )
    print(f"\nBest possible list: {oracle:.1f}. {runs} draws of 4,000 rows.")


def draw(kept: dict[tuple[float, str], float], path: Path) -> None:
    """Promised against kept."""
    ax = plots.new_axes(6.4, 3.6)
    names = ["whole topics", "abstracts as units"]
    for place, alpha in enumerate((0.1, 0.2)):
        for step, (name, colour) in enumerate(zip(names, ("#2a6f97", "#b0b0b0"), strict=True)):
            at = place * 3 + step
            ax.bar(at, 100 * kept[alpha, name], color=colour, label=name if place == 0 else None)
        ax.hlines(
            100 * (1 - alpha), place * 3 - 0.5, place * 3 + 1.5, color="black", linestyle="--", linewidth=1
        )
    ax.set_xticks([0.5, 3.5], ["promised 90 %", "promised 80 %"])
    ax.set_ylabel("held-out topics that keep\n90 % of their relevant abstracts, %")
    ax.legend(frameon=False, loc="lower right")
    plots.save(ax, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--splits", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore", sl.PoolWarning)
    topics, acs = options.data / "clef_tar_2019.parquet", options.data / "acs2024_24states.parquet"
    if topics.exists():
        kept = kept_by_topics(pd.read_parquet(topics), options.splits)
        if options.out:
            draw(kept, options.out)
    else:
        print(f"{topics} is not there: skipped.")
    if acs.exists():
        rows, scores = acs_scores(pd.read_parquet(acs, columns=[*FEATURES, "ST", "employed"]))
        states_as_pools(rows, scores, options.splits)
        last_years_list(rows, scores, options.splits)
    else:
        print(f"{acs} is not there: skipped.")


if __name__ == "__main__":
    main()
