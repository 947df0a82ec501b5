"""Plan, watch, learn: how fast, how small, how soon an alarm, how short the list.

python benchmarks/living.py            # all of it, about a minute
python benchmarks/living.py speed      # or one of: speed, delay, learn, audit, plan
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtr

import surelist as sl

DISTANCE = 1.4512  # binormal scores, 19 % qualified: the oracle's list for 5 of 100 holds 6.5


def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.random(rows) < 0.19
    return rng.normal(size=rows) + DISTANCE * labels, labels


def speed(reviews: int = 1_000_000) -> None:
    """A million reviews through a campaign (with its monitor), then through a monitor alone."""
    for size in (1000, 100):
        rng = np.random.default_rng(0)
        scores, labels = draw(rng, 3000)
        campaign = sl.Campaign(scores, labels, sl.Expected(0.05 * size, size))
        block = [draw(rng, size) for _ in range(4000)]
        fed, counts, began, busy = 0, [], time.perf_counter(), time.process_time()
        while fed < reviews:
            scores, labels = block[campaign.pools % len(block)]
            found = labels[campaign.screen(scores)]
            fed += campaign.review(campaign.pools, found)
            counts.append(int(found.sum()))
        took = time.perf_counter() - began
        monitor, began = sl.Monitor(campaign.policy), time.perf_counter()
        for number, count in enumerate(counts):
            monitor.observe(qualified=count, pool_size=size, review_id=number)
        alone, busy = time.perf_counter() - began, time.process_time() - busy
        with tempfile.TemporaryDirectory() as folder:
            sizes = []
            for each in (campaign, monitor):
                path = Path(folder) / f"{type(each).__name__}.json"
                each.save(path)
                sizes.append(path.stat().st_size / 1e3)
        print(
            f"pools of {size:,}: {fed:,} reviews of {campaign.pools:,} pools: campaign {took:.1f} s, monitor "
            f"{alone:.1f} s, together {took + alone:.1f} s ({busy:.1f} s of CPU); state {sizes[0]:.0f} kB and {sizes[1]:.0f} kB; "
            f"{len(campaign.updates) - 1} updates"
        )


def delay(runs: int = 200, most: int = 4000) -> None:
    """Pools of 100 until the alarm, after 100 good pools, when the qualified rate drops."""
    rng = np.random.default_rng(1)
    policy = sl.calibrate(*draw(rng, 3000), sl.Expected(5, 100))
    print("\npools until the alarm (alpha 0.05), after 100 pools without drift; promised rate 5 %")
    print(f"{'rate before':>12} {'drop':>6} {'median':>8} {'90 %':>8} {'no alarm':>9} {'before':>7}")
    for before in (0.05, 0.055):
        for drop in (0.0, 0.10, 0.25, 0.50):
            waits, early = [], 0
            for _ in range(runs):
                monitor = sl.Monitor(policy, alpha=0.05)
                counts = [*rng.binomial(100, before, 100), *rng.binomial(100, before * (1 - drop), most)]
                for count in counts:
                    monitor.observe(qualified=int(count), pool_size=100)
                    if monitor.alarm:
                        break
                early += monitor.alarm and monitor.pools <= 100
                waits.append(monitor.pools - 100 if monitor.alarm else np.inf)
            never = np.isinf(waits).mean()
            middle, late = (np.quantile(waits, q, method="inverted_cdf") for q in (0.5, 0.9))
            print(
                f"{before:>12.3f} {drop:>6.0%} {middle:>8.0f} {late:>8.0f} {never:>9.1%} {early / runs:>7.1%}"
            )


def learn(runs: int = 60) -> None:
    """The campaign of the documentation: 300 rows, 5 of 100, alpha 0.1, rows growing fourfold."""
    rng = np.random.default_rng(2)
    lists, failures, alarms = [], 0, 0
    for _ in range(runs):
        campaign = sl.Campaign(
            *draw(rng, 300), sl.Expected(5, 100), schedule=(9, 45, 189, 765, 3069), uncertified="everyone"
        )
        for _ in range(3069):
            scores, labels = draw(rng, 100)
            shortlist = campaign.screen(scores)
            campaign.review(campaign.pools, labels[shortlist])
        if campaign.due:
            campaign.update()
        t = np.asarray([-np.inf if u.threshold is None else u.threshold for u in campaign.updates])
        t = np.append(t, [t[-1]] * (6 - len(t)))
        lists.append(100 * (0.19 * ndtr(DISTANCE - t) + 0.81 * ndtr(-t)))
        failures += bool((0.19 * ndtr(DISTANCE - t) < 0.05).any())
        alarms += campaign.alarm
    shown = " -> ".join(f"{size:.2f}" for size in np.mean(lists, axis=0))
    oracle = sl.plan(
        sl.Expected(5, 100), base_rate=0.19, auc=float(ndtr(DISTANCE / 2**0.5)), sizes=[300]
    ).oracle
    print(f"\nexpected list over five updates, {runs} campaigns: {shown} (oracle {oracle:.2f})")
    print(f"campaigns with a threshold that fails: {failures} of {runs}; with an alarm: {alarms}")


def audit(runs: int = 250) -> None:
    """Lists and false thresholds over three updates, without an audit and with one."""
    print(f"\nexpected list (threshold in force false) over three updates, {runs} campaigns")
    rng = np.random.default_rng()  # the audit's draws are the system's own
    for rate in (None, 0.1, 0.3):
        lists, false = np.zeros((runs, 4)), np.zeros((runs, 4))
        for run in range(runs):
            campaign = sl.Campaign(
                *draw(rng, 300), sl.Expected(5, 100), schedule=(1, 2, 3), uncertified="everyone",
                monitor_alpha=1e-30, audit_rate=rate,
            )  # fmt: skip
            for pool, size in enumerate((900, 3600, 14400), start=1):
                scores, labels = draw(rng, size)
                rows = np.flatnonzero(campaign.screen(scores, pool=pool)).tolist()
                rows += [] if rate is None else [int(row) for row in campaign.audit(pool)]
                campaign.review(pool, labels[rows], ids=rows)
                campaign.update()
            t = np.array([-9.0 if each.threshold is None else each.threshold for each in campaign.updates])
            lists[run] = 100 * (0.19 * ndtr(DISTANCE - t) + 0.81 * ndtr(-t))
            false[run] = 0.19 * ndtr(DISTANCE - t) < 0.05
        shown = " -> ".join(
            f"{size:.1f} ({share:.0%})" for size, share in zip(lists.mean(0), false.mean(0), strict=True)
        )
        name = "no audit" if rate is None else f"{rate:.0%} drawn"
        print(f"  {name}: {shown}; any false {false.any(axis=1).mean():.1%}", flush=True)


def plan() -> None:
    """A table of twelve sizes, from a guess and from pilots."""
    rng = np.random.default_rng(3)
    target = sl.Expected(5, 100)
    began, busy = time.perf_counter(), time.process_time()
    sl.plan(target, base_rate=0.19, auc=0.85)
    print("\nplan of 12 sizes and 2 rules, seconds (of CPU): guess ", end="")
    print(f"{time.perf_counter() - began:.2f} ({time.process_time() - busy:.2f})", end="")
    for rows in (300, 3000, 100_000):
        pilot = draw(rng, rows)
        began, busy = time.perf_counter(), time.process_time()
        sl.plan(target, pilot=pilot)
        took, busy = time.perf_counter() - began, time.process_time() - busy
        print(f", pilot of {rows:,} rows {took:.2f} ({busy:.2f})", end="")
    truth = (
        sl.plan(target, base_rate=0.19, auc=float(ndtr(DISTANCE / 2**0.5)), sizes=[1000]).table[0].list_size
    )
    covered = 0
    for seed in range(300):
        low, high = sl.plan(target, pilot=draw(rng, 400), sizes=[1000], seed=seed).table[0].interval or (0, 0)
        covered += low <= (truth or 0) <= high
    print(f"\n95 % intervals from pilots of 400 rows cover the truth in {covered / 300:.1%} of 300 pilots")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["speed", "delay", "learn", "audit", "plan"]
    for name in wanted:
        {"speed": speed, "delay": delay, "learn": learn, "audit": audit, "plan": plan}[name]()
