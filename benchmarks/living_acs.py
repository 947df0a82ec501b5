"""Campaign, alarm and drift on census data (ACS 2024), with a logistic regression.

    python benchmarks/living_acs.py [--data FILE] [--runs 40] [--picture docs/images/living_acs.png]

Qualified means employed, among people of 16 and over. The model is trained, the campaign started
and its pools drawn in three states (MA, MN, NJ), each on rows of their own. Then the pools come
from one other state after another: their scores and their rate of employment differ, and the
promise made for the home states does not hold there. The data are not part of the repository.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import surelist as sl
from surelist.drawing import axes as plots

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "acs2024_24states.parquet"
HOME = {25: "MA", 27: "MN", 34: "NJ"}
AWAY = {39: "Ohio", 26: "Michigan", 47: "Tennessee", 22: "Louisiana", 35: "New Mexico"}
NUMBERS = ["AGEP", "AGE2", "SCHL", "DIS", "DEAR", "DEYE", "DREM", "DPHY", "NATIVITY", "LANX", "MOVED"]
CODES = ["MAR", "CIT", "MIL", "SEX", "RAC1P", "ENG", "FER"]
TARGET = sl.Expected(10, 100)
START, SCHEDULE, HOME_POOLS, AWAY_POOLS, POOL = 1000, (30, 150, 630), 800, 100, 100


def load(path: Path) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Scores and labels by state code; the home states without the model's training rows."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table = pd.read_parquet(path, columns=[*(c for c in NUMBERS if c != "AGE2"), *CODES, "ST", "employed"])
    table = table[(table.AGEP >= 16) & table.ST.isin([*HOME, *AWAY])].reset_index(drop=True)
    table["AGE2"] = (table.AGEP - 40.0) ** 2
    train = table[table.ST.isin(HOME)].sample(40_000, random_state=0)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), CODES)),
        LogisticRegression(max_iter=300),
    )
    model.fit(train[NUMBERS + CODES], train.employed)
    rest = table.drop(train.index)
    rest = rest.assign(score=model.decision_function(rest[NUMBERS + CODES]))
    return {int(st): (g.score.to_numpy(), g.employed.to_numpy()) for st, g in rest.groupby("ST")}


def feed(campaign: sl.Campaign, scores: np.ndarray, labels: np.ndarray, logs: list[float]) -> None:
    """Screen and review pools of 100 one after another; keep the log e-value after each."""
    for start in range(0, len(scores), POOL):
        pool = slice(start, start + POOL)
        shortlist = campaign.screen(scores[pool])
        campaign.review(campaign.pools, labels[pool][shortlist])
        logs.append(campaign.monitor.log_e_value if campaign.monitor else 0.0)


def start(home: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """A campaign on fresh home rows, and the rows its pools may use."""
    order = rng.permutation(len(home[0]))
    first = order[:START]
    campaign = sl.Campaign(home[0][first], home[1][first], TARGET, alpha=0.1, schedule=SCHEDULE)
    return campaign, order[START : START + HOME_POOLS * POOL]


def run(
    states: dict[int, Any], home: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
) -> tuple[Any, list[float]]:
    campaign, rows = start(home, rng)
    logs: list[float] = []
    feed(campaign, home[0][rows], home[1][rows], logs)
    campaign.quiet_at_home = not campaign.alarm
    for code in AWAY:
        scores, labels = states[code]
        rows = rng.choice(len(scores), AWAY_POOLS * POOL, replace=False)
        feed(campaign, scores[rows], labels[rows], logs)
    return campaign, logs


def summarise(
    states: dict[int, Any], home: tuple[np.ndarray, np.ndarray], runs: int
) -> tuple[Any, list[float]]:
    rng = np.random.default_rng(0)
    best = np.sort(home[0][home[1] == 1])[-int(np.ceil(0.1 * len(home[0])))]
    lists, failed, early, waits, first = [], 0, 0, [], None
    for _ in range(runs):
        campaign, logs = run(states, home, rng)
        first = first or (campaign, logs)
        thresholds = [update.threshold for update in campaign.updates]
        lists.append(
            [100 * np.mean(home[0] >= t) for t in thresholds + thresholds[-1:] * (4 - len(thresholds))]
        )
        failed += any(t > best for t in thresholds)
        early += not campaign.quiet_at_home
        if campaign.quiet_at_home:
            waits.append(campaign.monitor.raised.pools - HOME_POOLS if campaign.alarm else np.inf)
    shown = " -> ".join(f"{size:.2f}" for size in np.mean(lists, axis=0))
    print(
        f"list length at home over three updates: {shown} (best possible {100 * np.mean(home[0] >= best):.2f})"
    )
    print(f"campaigns with a threshold that fails at home: {failed} of {runs}")
    print(f"alarms during {HOME_POOLS} pools at home: {early} of {runs}")
    print(f"after the drift: alarm in {np.isfinite(waits).sum()} of {len(waits)}, after a median of "
          f"{np.median(waits):.0f} pools (90 %: {np.quantile(waits, 0.9):.0f})")  # fmt: skip
    assert first is not None
    return first


def alone(states: dict[int, Any], home: tuple[np.ndarray, np.ndarray], runs: int) -> None:
    """Each state on its own: the same 200 pools at home, then 300 pools from there."""
    rng = np.random.default_rng(1)
    print(
        f"{'state':>12} {'promise kept':>13} {'alarm':>6} {'median pools':>13} {'score gap':>10} {'p-value':>9}"
    )
    for code, name in {**{0: "(home)"}, **AWAY}.items():
        scores, labels = home if code == 0 else states[code]
        waits, rates, drift = [], [], None
        for _ in range(runs):
            campaign, rows = start(home, rng)
            rows = rows[: 200 * POOL]
            feed(campaign, home[0][rows], home[1][rows], [])
            rates.append(np.mean(labels[scores >= campaign.threshold].sum() / len(scores)) / 0.1)
            picked = rng.choice(len(scores), min(300 * POOL, len(scores) // POOL * POOL), replace=False)
            drift = drift or sl.drift(home[0][rows], scores[picked[:1000]])
            feed(campaign, scores[picked], labels[picked], [])
            waits.append(campaign.monitor.raised.pools - 200 if campaign.alarm else np.inf)
        middle = np.quantile(waits, 0.5, method="inverted_cdf")
        print(f"{name:>12} {np.mean(rates):>12.0%} {np.isfinite(waits).mean():>7.0%} {middle:>13.0f} "
              f"{drift.gap:>10.3f} {drift.p_value:>9.1g}")  # fmt: skip


def draw(campaign: Any, logs: list[float], best: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.2), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.axvspan(HOME_POOLS, len(logs), color="#f3e9e2", lw=0)
    starts = [update.pools for update in campaign.updates]
    ends = [*starts[1:], len(logs)]
    for place, (update, begin, end) in enumerate(zip(campaign.updates, starts, ends, strict=True)):
        top.plot(
            [begin, end],
            [update.list_size] * 2,
            lw=2.5,
            color="#0b6e4f",
            label=None if place else "list length",
        )
        top.plot([begin, end], [update.floor] * 2, lw=1.2, ls="--", color="#1f77b4",
                 label=None if place else "about the shortest achievable (from the data)")  # fmt: skip
    top.axhline(best, color="#444444", lw=1, ls=":", label="best possible (population known)")
    top.set_ylim(9, 13.5)
    top.set_ylabel("candidates on the list, of 100")
    top.set_title(
        "10 employed of 100 on average, alpha 0.1: lists get shorter as reviews come in",
        loc="left",
        fontsize=10,
    )
    top.legend(frameon=False, fontsize=8)
    bottom.plot(range(1, len(logs) + 1), np.asarray(logs) / np.log(10), color="#444444", lw=1)
    bottom.axhline(np.log10(20), color="#c1440e", lw=1, label="alarm level, 20")
    if campaign.alarm:
        bottom.axvline(campaign.monitor.raised.pools, color="#c1440e", lw=1, ls="--",
                       label=f"alarm after pool {campaign.monitor.raised.pools}")  # fmt: skip
    for place, name in enumerate(AWAY.values()):
        bottom.text(
            HOME_POOLS + (place + 0.5) * AWAY_POOLS, 4.9, name, fontsize=7, ha="center", va="top", rotation=90
        )
    bottom.set_ylim(-1.8, 5)  # it goes on rising far beyond
    bottom.set_ylabel("log10 of the e-value")
    bottom.set_xlabel("pools screened and reviewed: home states (MA, MN, NJ), then one state after another")
    bottom.legend(frameon=False, fontsize=8, loc="upper left")
    plots.save(bottom, path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if not options.data.exists():
        print(f"skipped: {options.data} is not there (ACS 2024 person file; see docs/living.md)")
        return
    states = load(options.data)
    home = tuple(np.concatenate([states[code][part] for code in HOME]) for part in (0, 1))
    campaign, logs = summarise(states, home, options.runs)
    alone(states, home, max(5, options.runs // 4))
    best = np.sort(home[0][home[1] == 1])[-int(np.ceil(0.1 * len(home[0])))]
    if options.picture:
        draw(campaign, logs, 100 * float(np.mean(home[0] >= best)), options.picture)
        print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
