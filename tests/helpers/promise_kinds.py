"""One policy of every kind of promise there is, for tests over all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import surelist as sl
from surelist.examples import population
from tests.helpers.randomness import seeded

rng = np.random.default_rng(20)
SCORES, LABELS = population(rng, 2_000)
OTHERS = population(rng, 4_000)[0]
POOLS = np.repeat(np.arange(50), 40)
GROUPS = np.where(np.arange(2_000) % 2, "north", "south")
TARGET = sl.Expected(5, 100)


def made(target: Any, labels: Any = LABELS, scores: Any = SCORES, **options: Any) -> sl.Policy:
    return sl.calibrate(scores, labels, target, **options)


def labelled(target: Any, labels: int = 300, truth: Any = LABELS) -> sl.Policy:
    work = sl.Labelling(SCORES, target, labels=labels)
    while len(rows := work.ask()):
        work.tell(rows, truth[rows])
    return work.policy


def drawn(rate: float = 0.3) -> Any:
    keep = (SCORES >= 0.4) | (np.random.default_rng(1).random(len(SCORES)) < rate)
    return np.where(keep, LABELS, np.nan)


KINDS: dict[str, Callable[[], sl.Policy]] = {
    "expected": lambda: made(TARGET),
    "expected after looking": lambda: made(TARGET, rule="simultaneous"),
    "expected, the paper": lambda: made(TARGET, rule="dkw"),
    "expected with other scores": lambda: made(TARGET, LABELS[:300], SCORES[:300], unlabelled=OTHERS[:900]),
    "expected over whole pools": lambda: made(sl.PoolAverage(5), pools=POOLS),
    "value": lambda: made(sl.Value(400, 100), 100 * LABELS.astype(float)),
    "value over whole pools": lambda: made(
        sl.PoolAverage(100, of="value"), 100 * LABELS.astype(float), pools=POOLS
    ),
    "per pool": lambda: made(sl.PerPool(5, 100)),
    "per pool of many sizes": lambda: made(sl.PerPool(3, (50, 200))),
    "per pool, two levels": lambda: made(sl.PerPool(5, 100), rule="pac"),
    "next pool": lambda: made(sl.NextPool(k=2), pools=POOLS),
    "next pool, two levels": lambda: made(sl.NextPool(k=1), pools=POOLS, rule="pac", alpha=0.2),
    "next pool by rank": lambda: made(sl.NextPool(k=2, by="rank"), pools=POOLS),
    "recall of the next pool": lambda: made(sl.NextPool(recall=0.8), pools=POOLS),
    "recall": lambda: made(sl.Recall(0.95)),
    "precision": lambda: made(sl.Precision(0.6, start=0.05), unlabelled=OTHERS),
    "average false share": lambda: made(sl.FalseShare(0.4), unlabelled=OTHERS[:400]),
    "triage": lambda: made(sl.Triage(0.4, reject=0.95), unlabelled=OTHERS),
    "triage by a recall": lambda: made(sl.Triage(0.4, reject_recall=0.9), unlabelled=OTHERS),
    "this list": lambda: made(sl.ThisList(20), unlabelled=OTHERS[:400]),
    "budget": lambda: made(sl.Budget(10, 100), unlabelled=OTHERS),
    "best of several": lambda: made(TARGET, scores={"model": SCORES, "rating": SCORES**2}),
    "labels above and an audit": lambda: made(TARGET, sl.SampledLabels(drawn(), probability=0.3, above=0.4)),
    "labels by probability": lambda: made(
        TARGET, sl.SampledLabels(drawn(), probability=np.where(SCORES >= 0.4, 1, 0.3), lowest_rate=0.3)
    ),
    "labels that may be wrong": lambda: made(
        TARGET, sl.NoisyLabels(LABELS, 0.02, 0.0, longest=0.3), unlabelled=OTHERS
    ),
    "recall, labels that may be wrong": lambda: made(sl.Recall(0.8), sl.NoisyLabels(LABELS, 0.02, 0.02)),
    "two promises": lambda: made(
        [TARGET, sl.Precision(0.3)], LABELS[:300], SCORES[:300], unlabelled=OTHERS[:900]
    ),
    "two counts": lambda: made([sl.Recall(0.5), TARGET]),
    "groups, own rows": lambda: made(
        {"north": TARGET, "south": sl.Expected(3, 100)}, groups=sl.Groups(GROUPS, purpose="a test")
    ),
    "groups, all rows": lambda: made(
        {"north": sl.Expected(2, 100), "south": sl.Expected(2, 100)},
        groups=sl.Groups(GROUPS, purpose="a test", rows="all"),
    ),
    "groups, every pool": lambda: made(
        {"north": sl.PerPool(2, 50), "south": sl.PerPool(2, 50)}, groups=sl.Groups(GROUPS, purpose="a test")
    ),
    "groups, recall": lambda: made(
        {"north": sl.Recall(0.8), "south": sl.Recall(0.9)}, groups=sl.Groups(GROUPS, purpose="a test")
    ),
    "weights": lambda: made(TARGET, shift=sl.DensityRatio(1 - SCORES / 2, 1.0)),
    "collection, at least": lambda: labelled(sl.AtLeast(100)),
    "collection, recall": lambda: labelled(sl.Recall(0.8), 600),
    "collection, recall of rare ones": lambda: labelled(sl.Recall(0.95), 600, LABELS & (SCORES > 0.8)),
    "collection, precision": lambda: labelled(sl.Precision(0.5), 600),
    "collection, triage": lambda: labelled(sl.Triage(0.5, reject_recall=0.8), 900),
    "few labels, expected": lambda: labelled(TARGET),
    "few labels, per pool": lambda: labelled(sl.PerPool(3, 100)),
    "campaign": lambda: sl.Campaign(SCORES, LABELS, TARGET, schedule=(9, 45)).policy,
    "withdrawn": lambda: made(TARGET).withdraw("the alarm of the monitor was raised"),
}


@cache
def policy_of(kind: str) -> sl.Policy:
    """The policy of one kind, made once."""
    with seeded(f"policy of kind {kind}"):
        return KINDS[kind]()
