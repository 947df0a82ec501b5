"""The audit report's summary from files alone, with no service and no record."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.reports import html as report
from surelist.service.jobs import evidence_of, hashed, pool_size_of, selection_facts
from surelist.workflows import tables as workflows


def summary(
    policy_path: Path,
    past: str | None,
    pool: str | None,
    attributes: tuple[str, ...],
    name: str,
    folder: Path,
) -> dict[str, Any]:
    """What the report says about a policy file, its calibration rows and one pool."""
    policy = workflows.load_policy(policy_path)
    return report.summarise(
        policy,
        name=name,
        policy_sha256=_sha256(policy_path),
        rows_sha256=_sha256(Path(past)) if past else None,
        evidence=_evidence(policy, Path(past)) if past else None,
        selection=_selection(policy, Path(pool), attributes, folder) if pool else None,
    )


def _evidence(policy: Policy, past: Path) -> dict[str, Any]:
    columns = policy.columns or {}
    if "score" not in columns or "label" not in columns:
        raise InvalidInput("past: the policy does not say which columns it was calibrated on.")
    rules = ("simultaneous", "dkw") if policy.rule == "simultaneous" else ("exact", "dkw")
    size = pool_size_of([cutoff.target for cutoff in policy.cutoffs], policy.group_rows == "own")
    return evidence_of(
        past, score=columns["score"], label=columns["label"], pool_size=size, alpha=policy.alpha, rules=rules,
        missing_labels="unqualified" if policy.missing_labels else "error",
    )  # fmt: skip


def _selection(policy: Policy, pool: Path, attributes: tuple[str, ...], folder: Path) -> dict[str, Any]:
    output = folder / f"shortlist{pool.suffix}"
    done = workflows.select(pool, policy, output=output)
    made = hashed(output)
    facts = selection_facts(done, _sha256(pool), pool.suffix[1:], made.sha256, made.format)
    if attributes:
        facts["impact"] = [asdict(table) for table in workflows.impact(pool, output, attributes)]
    return facts


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise InvalidInput(f"file: {path} does not exist.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
