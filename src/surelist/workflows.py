"""One function per use case: the only code the front ends call."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelist import audit, examples, profile, tables
from surelist._files import writing
from surelist.calibration import Targets
from surelist.calibration import calibrate as calibrate_arrays
from surelist.curve import GuaranteeCurve, pointwise_curve
from surelist.curve import guarantee_curve as curve_of_arrays
from surelist.errors import InvalidInput
from surelist.policy import Policy
from surelist.profile import Profile
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


def select_rows(
    rows: Sequence[Mapping[str, Any]],
    policy: Policy,
    *,
    score: str | None = None,
    group: str | None = None,
    id: str | None = None,
) -> tuple[list[int], Selection]:
    """Which of a pool's rows (column name to value) are on the shortlist; nothing is written."""
    remembered = policy.columns or {}
    named = {"score": score or remembered.get("score", "score")}
    if policy.grouped:
        named["group"] = group or remembered.get("group", "group")
    if policy.salt_hash is not None:
        named["id"] = id or remembered.get("id", "id")
    columns = {role: _column(rows, name, role) for role, name in named.items()}
    mask = policy.select(columns["score"], columns.get("group"), columns.get("id"))
    chosen = np.flatnonzero(mask).tolist()
    sizes = Counter(map(str, columns.get("group", ())))
    listed = Counter(str(columns["group"][row]) for row in chosen) if policy.grouped else Counter()
    counts = {name: (size, listed[name]) for name, size in sorted(sizes.items())}
    return chosen, Selection(len(rows), len(chosen), counts)


def _column(rows: Sequence[Mapping[str, Any]], name: str, role: str) -> list[Any]:
    try:
        return [row[name] for row in rows]
    except KeyError:
        at = next(i for i, row in enumerate(rows) if name not in row)
        there = ", ".join(repr(each) for each in list(rows[at])[:20])
        raise InvalidInput(f"{role}: row {at} has no {name!r}; it has {there}.") from None


def shape(table: str | Path) -> tuple[int, list[str]]:
    """Rows (of CSV: lines) and column names of a file, without reading its cells."""
    return profile.shape(Path(table))


def inspect(table: str | Path) -> Profile:
    """Columns, first rows and good guesses: what a person confirms before calibrating."""
    return profile.profile(Path(table))


def problems(table: str | Path, **columns: Any) -> list[profile.Problem]:
    """What stands in the way of using these columns, with example rows."""
    return profile.problems(Path(table), **columns)


@dataclass(frozen=True)
class Evidence:
    """What a report shows of the calibration rows: curves and how labels follow scores."""

    curves: tuple[GuaranteeCurve, ...]
    bins: tuple[audit.ScoreBin, ...]


def evidence(
    table: str | Path,
    *,
    score: str,
    label: str,
    pool_size: float,
    alpha: float = 0.1,
    rules: tuple[str, ...] = ("exact", "dkw"),
    missing_labels: str = "error",
) -> Evidence:
    """Curves by several rules from one reading of the table; ``exact`` holds point by point."""
    found = tables.read_columns(Path(table), {"score": score, "label": label})
    scores, labels = found["score"], found["label"]
    curves = []
    for rule in rules:
        if rule == "exact":
            curves.append(pointwise_curve(scores, labels, pool_size, alpha, missing_labels))
        else:
            curves.append(curve_of_arrays(scores, labels, pool_size, alpha, rule, missing_labels))
    return Evidence(tuple(curves), audit.score_bins(scores, labels, missing_labels=missing_labels))


def listed_share(table: str | Path, policy: Policy, *, score: str, group: str | None = None) -> float:
    """The share of these rows that the policy would shortlist: how long lists will be, estimated.

    For policies with a threshold per pool size, by the one for the smallest pool.
    """
    found = tables.read_columns(Path(table), {"score": score, "group": group})
    chosen = np.zeros(len(found["score"]), dtype=np.bool_)
    for name, threshold in policy.thresholds.items():
        above = found["score"] >= threshold
        chosen |= above if name is None else above & (np.asarray(found["group"]).astype(str) == name)
    return float(chosen.mean())


def group_names(table: str | Path, group: str) -> dict[str, int]:
    """The groups of a table and how many rows each has."""
    return profile.group_names(Path(table), group)


def first_rows(table: str | Path, limit: int) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows of a table, as text."""
    return profile.first_rows(Path(table), limit)


def convert(table: str | Path, output: str | Path) -> None:
    """The same table in the format of ``output``."""
    profile.convert(Path(table), Path(output))


def impact(pool: str | Path, shortlist: str | Path, attributes: Sequence[str]) -> list[audit.ImpactTable]:
    """Selection rates by each attribute, and by all of them together where there are several."""
    wanted: list[tuple[str, ...]] = [(name,) for name in attributes]
    if len(attributes) > 1:
        wanted.append(tuple(attributes))
    return [
        audit.impact_table(names, profile.category_counts(Path(pool), Path(shortlist), names))
        for names in wanted
    ]


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
