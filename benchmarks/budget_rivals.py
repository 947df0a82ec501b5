"""BARGAIN and LOTUS by their own code, for benchmarks/budget.py, which runs this file in their environments.

    python budget_rivals.py bargain|lotus cells.npz answers.json

A cell is a set of scores and labels with a promise, a share, a budget and seeds; the answer says, for each
seed, how many were listed and how many of those are positive. What is listed by LOTUS: everyone above its
threshold (for a precision the upper, for a recall the lower one) and the positives of its sample. Labels
asked for count against the budget; nothing else is given away.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def bargain(
    scores: Any, labels: Any, promise: str, share: float, budget: int, delta: float, seed: int
) -> Any:
    from BARGAIN.models.AbstractModels import Oracle, Proxy
    from BARGAIN.process.BARGAIN_P import BARGAIN_P
    from BARGAIN.process.BARGAIN_R import BARGAIN_R

    class Scores(Proxy):  # the whole array at once instead of a thread for each
        def get_preds_and_scores(self, indxs: Any, data_records: Any) -> Any:
            return np.ones(len(indxs), dtype=bool), scores[np.asarray(indxs)]

    class Labels(Oracle):
        def oracle_func(self, data: Any, proxy_output: Any = None) -> Any:
            raise AssertionError("labels are looked up by index")

        def get_pred(self, data_records: Any, indxs: Any) -> Any:
            return labels[np.asarray(indxs)].astype(bool)

    rule = {"precision": BARGAIN_P, "recall": BARGAIN_R}[promise]
    asked = {"delta": delta, "target": share, "budget": budget, "seed": seed}
    made = rule(proxy=Scores(verbose=False), oracle=Labels(), **asked)
    return np.unique(np.asarray(made.process(np.arange(len(scores))), dtype=int))


def lotus(scores: Any, labels: Any, promise: str, share: float, budget: int, delta: float, seed: int) -> Any:
    from lotus.sem_ops.cascade_utils import importance_sampling, learn_cascade_thresholds
    from lotus.types import CascadeArgs

    args = CascadeArgs(
        recall_target=share if promise == "recall" else 0.0,
        precision_target=share if promise == "precision" else 0.0,
        sampling_percentage=budget / len(scores),
        failure_probability=delta,
        cascade_IS_random_seed=seed,
        cascade_IS_max_sample_range=len(scores),
    )
    drawn, factors = importance_sampling(scores.tolist(), args)
    (high, low), _ = learn_cascade_thresholds(
        scores[drawn].tolist(), labels[drawn].astype(bool).tolist(), factors[drawn], args
    )
    above = scores >= high if promise == "precision" else scores > low
    return np.union1d(np.flatnonzero(above), drawn[labels[drawn] == 1])


def main() -> None:
    name, source, output = sys.argv[1:]
    run = {"bargain": bargain, "lotus": lotus}[name]
    with np.load(source) as held:
        data = {key: held[key] for key in held.files if key != "cells"}
        cells = json.loads(str(held["cells"]))
    answers = []
    for cell in cells:
        scores, labels = data[cell["data"] + ":scores"], data[cell["data"] + ":labels"]
        for seed in range(cell["seeds"]):
            begun = time.perf_counter()
            listed = run(scores, labels, cell["promise"], cell["share"], cell["labels"], cell["alpha"], seed)
            took = time.perf_counter() - begun
            answers.append(
                {**cell, "listed": len(listed), "found": int(labels[listed].sum()), "seconds": took}
            )
        print(cell, flush=True, file=sys.stderr)
        with open(output, "w", encoding="utf-8") as file:
            json.dump(answers, file)


if __name__ == "__main__":
    main()
