"""Calls that are refused, one for each way in which a sentence names what can be set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

import surelist as sl

SCORES = np.linspace(0, 1, 400)
LABELS = (SCORES > 0.5).astype(float)
GAP = np.where(np.arange(400) == 7, np.nan, LABELS)
FIVE = sl.Expected(5, 100)
PAST = pl.DataFrame({"score": SCORES, "qualified": LABELS, "word": ["yes", "no", "maybe", "n/a"] * 100})


def _table(target: Any = FIVE, **given: Any) -> sl.Policy:
    return sl.calibrate_table(PAST, score="score", label="qualified", target=target, **given)


FAULTS: Mapping[str, Callable[[], Any]] = {
    "a number": lambda: sl.Expected(-1, 100),
    "more than a pool": lambda: sl.Expected(120, 100),
    "a choice": lambda: sl.calibrate(SCORES, LABELS, FIVE, rule="exakt"),
    "a share in percent": lambda: sl.Recall(95),
    "a score that is not finite": lambda: sl.calibrate(np.where(SCORES == 1, np.nan, SCORES), LABELS, FIVE),
    "a missing label": lambda: sl.calibrate(SCORES, GAP, FIVE),
    "a missing label under recall": lambda: sl.calibrate(SCORES, GAP, sl.Recall(0.9)),
    "a label of another kind": lambda: sl.calibrate(SCORES, LABELS + 1, FIVE),
    "columns of two lengths": lambda: sl.calibrate(SCORES, LABELS[:9], FIVE),
    "pools are missing": lambda: sl.calibrate(SCORES, LABELS, sl.NextPool(k=3)),
    "pools of a table are missing": lambda: _table(sl.NextPool(k=3)),
    "other scores are missing": lambda: sl.calibrate(SCORES, LABELS, sl.Precision(0.5)),
    "groups are missing": lambda: sl.calibrate(SCORES, LABELS, {"a": FIVE}),
    "a missing score in a table": lambda: sl.calibrate_table(
        PAST.with_columns(pl.lit(None, pl.Float64).alias("score")),
        score="score",
        label="qualified",
        target=FIVE,
    ),
    "labels in words": lambda: sl.calibrate_table(PAST, score="score", label="word", target=FIVE),
    "no such column": lambda: sl.calibrate_table(PAST, score="scores", label="qualified", target=FIVE),
    "no proof together": lambda: sl.calibrate(
        SCORES, sl.SampledLabels(GAP, probability=0.5, above=0.5), sl.Recall(0.9)
    ),
    "an earlier keyword": lambda: sl.calibrate(SCORES, LABELS, FIVE, weights=SCORES),
    "not certifiable": lambda: sl.calibrate(SCORES[300:], LABELS[300:], sl.Expected(99, 100)),
    "a policy of groups without groups": lambda: sl.calibrate(
        SCORES, LABELS, {"a": FIVE}, groups=sl.Groups(["a"] * 400, purpose="x")
    ).select(SCORES),
    "ties without ids": lambda: sl.calibrate(SCORES, LABELS, FIVE, ties=sl.Hash(range(400))).select(SCORES),
    "a promise that is not watched": lambda: sl.Monitor(sl.calibrate(SCORES, LABELS, sl.PerPool(2, 100))),
    "an audit is missing": lambda: sl.Monitor(sl.calibrate(SCORES, LABELS, sl.Recall(0.9))),
    "a plan without a guess": lambda: sl.plan(FIVE),
    "not a policy file": lambda: sl.Policy.loads("{}"),
}
