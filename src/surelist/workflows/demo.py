"""The two-minute example: made-up candidates, two policies, one shortlist."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from msgspec import Struct

from surelist import examples
from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.promises.kinds.expected import Expected
from surelist.promises.policy import Policy
from surelist.tables.arrays import read_columns
from surelist.tables.shortlist import Selection
from surelist.workflows.tables import calibrate_table, select_table


class Demo(Struct, frozen=True):
    """What ``surelist demo`` made.

    ``lists`` says, per rule, how many of this pool are shortlisted and how many of 100 on
    average, over 100 further pools.
    """

    folder: Path
    policy: Policy
    selection: Selection
    lists: dict[str, tuple[int, float]]


def demo(folder: Path, seed: int = 5) -> Demo:
    """Make an example, calibrate by the exact and the paper's rule, select from a new pool."""
    rng = np.random.default_rng(seed)
    ours = {"past.csv", "new.csv", "policy.json", "shortlist.csv"}
    if folder.exists() and {path.name for path in folder.iterdir()} - ours:
        raise InvalidInput("folder", f"{folder} holds other files; give the demo a folder of its own.")
    folder.mkdir(parents=True, exist_ok=True)
    past, pool = folder / "past.csv", folder / "new.csv"
    write_example(past, rng, 1000, labelled=True)
    write_example(pool, rng, 100, labelled=False)
    further, _ = examples.population(rng, 10_000)
    scores = read_columns(pool, {"score": "score"})["score"]
    policies = {
        rule: calibrate_table(past, score="score", label="qualified", target=Expected(5, 100), rule=rule)
        for rule in ("exact", "dkw")
    }
    lists = {
        rule: (int(policy.select(scores).sum()), float(100 * policy.select(further).mean()))
        for rule, policy in policies.items()
    }
    policies["exact"].save(folder / "policy.json")
    chosen = select_table(pool, policies["exact"], output=folder / "shortlist.csv")
    return Demo(folder, policies["exact"], chosen, lists)


def write_example(path: Path, rng: np.random.Generator, size: int, *, labelled: bool) -> None:
    """Made-up candidates as a CSV file, to try things with."""
    header, rows = examples.trial_rows(rng, size, labelled=labelled)
    with writing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
