"""One function per use case: the only code the front ends call."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelist import examples, tables
from surelist._files import writing
from surelist.calibration import Targets
from surelist.calibration import calibrate as calibrate_arrays
from surelist.curve import GuaranteeCurve
from surelist.curve import guarantee_curve as curve_of_arrays
from surelist.policy import Policy
from surelist.tables import Selection
from surelist.targets import Expected


def calibrate(
    table: str | Path,
    *,
    score: str,
    label: str,
    target: Targets,
    group: str | None = None,
    id: str | None = None,
    **options: Any,
) -> Policy:
    """Certify ``target`` from a table of past candidates; options as for ``calibrate``."""
    columns = {"score": score, "label": label, "group": group, "id": id}
    found = tables.read_columns(Path(table), columns)
    policy = calibrate_arrays(
        found["score"], found["label"], target, groups=found.get("group"), ids=found.get("id"), **options
    )
    return policy.with_columns(**columns)


def select(
    table: str | Path,
    policy: Policy,
    *,
    output: str | Path,
    score: str | None = None,
    group: str | None = None,
    id: str | None = None,
) -> Selection:
    """Write the shortlist of a pool; columns default to those the policy was calibrated on."""
    remembered = policy.columns or {}
    columns = {
        "score": score or remembered.get("score"),
        "group": group or remembered.get("group"),
        "id": id or remembered.get("id"),
    }
    return tables.write_shortlist(Path(table), policy, Path(output), columns)


def curve(
    table: str | Path,
    *,
    score: str,
    label: str,
    pool_size: float,
    alpha: float = 0.1,
    rule: str = "simultaneous",
    missing_labels: str = "error",
) -> GuaranteeCurve:
    """The guarantee curve of a table of past candidates."""
    found = tables.read_columns(Path(table), {"score": score, "label": label})
    return curve_of_arrays(found["score"], found["label"], pool_size, alpha, rule, missing_labels)


def load_policy(path: str | Path) -> Policy:
    """Read and verify a policy file."""
    return Policy.load(path)


@dataclass(frozen=True)
class Demo:
    """What ``surelist demo`` made and found."""

    folder: Path
    past: Path
    pool: Path
    policy_path: Path
    shortlist: Path
    policy: Policy
    selection: Selection
    paper_shortlisted: int


def demo(folder: Path, seed: int = 0) -> Demo:
    """Make an example, calibrate by the exact and the paper's rule, select from a new pool."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    past, pool = folder / "past.csv", folder / "new.csv"
    _write_csv(past, *examples.trial_rows(rng, 2000, labelled=True))
    _write_csv(pool, *examples.trial_rows(rng, 100, labelled=False))
    target = Expected(k=5, pool_size=100)
    columns = {"score": "score", "label": "qualified"}
    policy = calibrate(past, target=target, alpha=0.1, **columns)
    paper = calibrate(past, target=target, alpha=0.1, rule="dkw", **columns)
    policy.save(folder / "policy.json")
    chosen = select(pool, policy, output=folder / "shortlist.csv")
    longer = paper.select(tables.read_columns(pool, {"score": "score"})["score"])
    return Demo(
        folder,
        past,
        pool,
        folder / "policy.json",
        folder / "shortlist.csv",
        policy,
        chosen,
        int(longer.sum()),
    )


def _write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with writing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
