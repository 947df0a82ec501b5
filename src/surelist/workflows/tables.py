"""What a person does with tables of candidates: calibrate, select, look them over."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surelist import tables
from surelist._check import EngineName, MissingLabels, OnBadRows
from surelist.errors import InvalidInput
from surelist.promises import pool_checks
from surelist.promises.calibration import certify_arrays
from surelist.promises.curve import GuaranteeCurve
from surelist.promises.curve import guarantee_curve as curve_of_arrays
from surelist.promises.evaluation import Evaluation, evaluate
from surelist.promises.options import CurveRule, GroupRows, GroupSplit, Rule, Ties
from surelist.promises.policy import Policy
from surelist.promises.sampled import SampledLabels
from surelist.promises.terms import Roles, Targets, make_terms
from surelist.reports import audit
from surelist.tables import Problem, Selection
from surelist.tables.csv_text import delimiter_in
from surelist.tables.engines.duckdb import limit as limit_duckdb
from surelist.tables.profile import (
    Profile,
    category_counts,
    convert,
    first_rows,
    group_names,
    profile,
    shape,
)
from surelist.workflows.certify import REMEMBERED, WITH_POOLS, certify_source
from surelist.workflows.source import Source

__all__ = [
    "Problem",
    "Profile",
    "calibrate_table",
    "convert",
    "curve",
    "delimiter_in",
    "evaluate_table",
    "first_rows",
    "group_names",
    "impact",
    "limit_duckdb",
    "load_policy",
    "problems",
    "profile",
    "select_rows",
    "select_table",
    "shape",
]  # fmt: skip


def calibrate_table(
    table: Any, *, score: str | Sequence[str], label: str | SampledLabels, target: Targets,
    group: str | None = None, id: str | None = None, weight: str | None = None, pool: str | None = None,
    unlabelled: Any = None, alpha: float = 0.1, rule: Rule = "exact", purpose: str | None = None,
    group_split: GroupSplit = "bonferroni", group_rows: GroupRows = "own",
    calibration_share: float = 0.5, ties: Ties = "include", weight_bound: float | None = None,
    weights_exact: bool = False, seed: int | None = None, missing_labels: MissingLabels = "error",
    on_bad_rows: OnBadRows = "error", engine: EngineName = "auto", spark_master: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Policy:  # fmt: skip
    """Certify ``target`` from a table of past candidates, where the table is.

    table
        A path, glob or folder of CSV or Parquet; a pandas, polars or PySpark DataFrame, a pyarrow
        table, a DuckDB relation, or anything that streams Arrow.
    score, label, group, id, weight
        Names of columns. ``id`` is needed by ``ties="hash"`` only. Several score columns are certified
        each at its share of alpha and the one with the shortest list is kept; a label column of
        ``SampledLabels("label", ...)`` is missing where a row was not drawn.
    pool
        Column that says which pool a row is in: as ``pools`` of ``calibrate``.
    unlabelled
        A table with the score columns of other candidates, or the scores themselves.
    on_bad_rows
        ``"drop"`` leaves out rows without a finite score, and says so in the policy; the promise
        is then about candidates who have one. Rows without a *label* are never dropped.
    engine, spark_master
        Who reads files: ``"duckdb"``, ``"polars"``, or ``"spark"`` at this master. ``"auto"`` is
        polars for Parquet where it is installed, else DuckDB.
    progress
        Called with a few words at the start of every pass over the data.

    Everything else is as for ``calibrate``. Rows are counted, not collected; only ``weight`` reads
    its columns into memory, because the draw depends on the order of rows.
    """
    source = Source(table, engine, spark_master, on_bad_rows, progress)
    terms = make_terms(
        target, groups_given=group is not None, alpha=alpha, rule=rule, purpose=purpose,
        group_split=group_split, group_rows=group_rows, calibration_share=calibration_share, ties=ties,
        missing_labels=missing_labels,
    )  # fmt: skip
    names = (score,) if isinstance(score, str) else tuple(score)
    drawn = label if isinstance(label, SampledLabels) else None
    column: str = label.labels if isinstance(label, SampledLabels) else label
    roles = Roles(names[0] if names else None, column, group, id, weight, pool, names[1:])
    if weight is None and weight_bound is None:
        return certify_source(source, roles, terms, unlabelled, drawn)
    if drawn is not None or len(names) > 1 or unlabelled is not None:
        raise InvalidInput("weight: goes with one score column and plain labels.")
    if on_bad_rows != "error":
        raise InvalidInput('on_bad_rows: weights go with "error" only; clean the table first.')
    arrays = tables.read_columns(source.open(), roles.names(*WITH_POOLS, "weight"))
    policy = certify_arrays(
        arrays["score"], arrays["label"], terms, groups=arrays.get("group"), ids=arrays.get("id"),
        weights=arrays.get("weight"), weight_bound=weight_bound, weights_exact=weights_exact, seed=seed,
        pools=arrays.get("pool"),
    )  # fmt: skip
    return policy.with_columns(**roles.names(*WITH_POOLS))


def select_table(
    table: Any,
    policy: Policy,
    *,
    score: str | None = None,
    group: str | None = None,
    id: str | None = None,
    pool: str | None = None,
    output: str | os.PathLike[str] | None = None,
    on_bad_rows: OnBadRows = "error",
    reason: bool = False,
    engine: EngineName = "auto",
    spark_master: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Selection:
    """Shortlist the candidates of a table, where the table is.

    Returns a ``Selection``: its ``table`` is the shortlist, the same kind of table as came in
    (lazy where that was lazy), with the same columns, types and order of rows; beside it are
    the counts. With ``output`` the shortlist is written there instead, and appears only
    when complete.

    score, group, id
        Names of columns; by default those the policy was calibrated on.
    pool
        Column that says which pool a candidate is in, for tables of many pools: counts are
        given per pool, and ``PerPool`` thresholds go by each pool's size.
    on_bad_rows
        ``"drop"`` leaves out candidates without a finite score.
    reason
        Add a column ``shortlist_reason`` with the threshold that let the candidate in.
    """
    remembered = policy.columns or {}
    if policy.choice is not None and score not in (None, policy.choice.chosen):
        raise InvalidInput(f"score: this policy was made for {policy.choice.chosen!r}, got {score!r}.")
    names = {"score": score or remembered.get("score"), "pool": pool}
    if policy.grouped:
        names["group"] = group or remembered.get("group")
    elif group is not None:
        raise InvalidInput("group: this policy has no groups; leave group out.")
    names["id"] = (id or remembered.get("id")) if policy.salt_hash is not None else id
    opened = tables.open_table(table, engine, spark_master, progress)
    if policy.of_one_pool:
        policy.require_pool(
            tables.read_columns(opened, {"score": names["score"]}, on_bad_rows, any_order=True)["score"]
        )
    done = tables.select_rows(
        opened, policy.filter, names=names, output=output, on_bad_rows=on_bad_rows, reason=reason,
        marks=pool_checks.marks_of(policy),
    )  # fmt: skip
    sizes: dict[str | None, tuple[int, int]] = {None: (done.candidates, done.shortlisted)}
    sizes.update(done.groups)
    pools = [each.candidates for each in done.pools]
    return replace(done, checks=pool_checks.check_pool(policy, done.candidates, sizes, done.scores, pools))


def evaluate_table(
    table: Any, policy: Policy, *, score: str | None = None, label: str | None = None,
    group: str | None = None, id: str | None = None, pool: str | None = None, engine: EngineName = "auto",
) -> Evaluation:  # fmt: skip
    """How a policy did on a table of labelled candidates that took no part in making it.

    Columns are by default those the policy was calibrated on; ``pool`` says which pool a row is in.
    """
    remembered = policy.columns or {}
    asked = {"score": score, "label": label, "group": group, "pool": pool, "id": id}
    names = {role: asked[role] or remembered.get(role) for role in ("score", "label", "group", "pool")}
    names["id"] = (id or remembered.get("id")) if policy.salt_hash is not None else None
    for role in ("score", "label"):
        if names[role] is None:
            raise InvalidInput(f"{role}: this policy remembers no {role} column; pass {role}=.")
    arrays = tables.read_columns(Source(table, engine).open(), names)
    scores = arrays["score"] if policy.choice is None else {policy.choice.chosen: arrays["score"]}
    return evaluate(
        policy,
        scores,
        arrays["label"],
        groups=arrays.get("group"),
        ids=arrays.get("id"),
        pools=arrays.get("pool"),
    )


calibrate, select = calibrate_table, select_table  # shorter, for the front ends


def problems(source: Source, roles: Roles, missing_labels: MissingLabels = "error") -> tuple[Problem, ...]:
    """What calibration would refuse or warn of with these columns, in the same words."""
    return tables.calibration_problems(
        source.open(), roles.names(*REMEMBERED), missing_labels=missing_labels, on_bad_rows=source.on_bad_rows
    )


def curve(
    table: str | Path,
    *,
    score: str,
    label: str,
    pool_size: float,
    alpha: float = 0.1,
    rule: CurveRule = "simultaneous",
    missing_labels: MissingLabels = "error",
) -> GuaranteeCurve:
    """The guarantee curve of a table of past candidates."""
    arrays = tables.read_columns(table, {"score": score, "label": label})
    return curve_of_arrays(arrays["score"], arrays["label"], pool_size, alpha, rule, missing_labels)


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
    checks = pool_checks.check_arrays(policy, columns["score"], columns.get("group"), mask)
    return chosen, Selection(len(rows), len(chosen), counts, checks=checks)


def _column(rows: Sequence[Mapping[str, Any]], name: str, role: str) -> list[Any]:
    try:
        return [row[name] for row in rows]
    except KeyError:
        at = next(i for i, row in enumerate(rows) if name not in row)
        there = ", ".join(repr(each) for each in list(rows[at])[:20])
        raise InvalidInput(f"{role}: row {at} has no {name!r}; it has {there}.") from None


def impact(pool: str | Path, shortlist: str | Path, attributes: Sequence[str]) -> list[audit.ImpactTable]:
    """Selection rates by each attribute, and by all of them together where there are several."""
    wanted: list[tuple[str, ...]] = [(name,) for name in attributes]
    if len(attributes) > 1:
        wanted.append(tuple(attributes))
    return [
        audit.impact_table(names, category_counts(Path(pool), Path(shortlist), names)) for names in wanted
    ]


def load_policy(path: str | Path) -> Policy:
    """Read and verify a policy file."""
    return Policy.load(path)
