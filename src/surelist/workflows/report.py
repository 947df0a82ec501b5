"""The audit report from files alone, with no service and no record; and what both say of rows and lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from surelist._files import writing
from surelist._version import __version__
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.promises.targets import Expected, PerPool, Target
from surelist.reports import html
from surelist.reports.summary import summarise
from surelist.workflows import tables as workflows

CURVE_POINTS = 240
ENDINGS = (".html", ".pdf", ".json")


def write(
    policy: Path,
    output: Path,
    *,
    past: Path | None = None,
    pool: Path | None = None,
    attributes: tuple[str, ...] = (),
    name: str = "policy",
) -> None:
    """Write the report of a policy file, its calibration rows and one pool; the ending is the format."""
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(f"output: expected a name ending in .html, .pdf or .json, got {output.name!r}.")
    summary = _summary(policy, past, pool, attributes, name)
    with writing(output) as temporary:
        if ending == ".pdf":
            html.write_pdf(html.render(summary), temporary)
        else:
            text = json.dumps(summary, indent=1) if ending == ".json" else html.render(summary)
            temporary.write_text(text, encoding="utf-8")


def _summary(
    path: Path, past: Path | None, pool: Path | None, attributes: tuple[str, ...], name: str
) -> dict[str, Any]:
    if len(attributes) > 2:
        raise InvalidInput(f"attribute: expected at most two, got {len(attributes)}.")
    policy = workflows.load_policy(path)
    return summarise(
        policy,
        name=name,
        policy_sha256=sha256_of(path),
        rows_sha256=sha256_of(past) if past else None,
        evidence=_evidence(policy, past) if past else None,
        selection=_selection(policy, pool, attributes) if pool else None,
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


def _selection(policy: Policy, pool: Path, attributes: tuple[str, ...]) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        output = Path(folder) / f"shortlist{pool.suffix}"
        done = workflows.select(pool, policy, output=output)
        facts = selection_facts(done, sha256_of(pool), pool.suffix[1:], sha256_of(output), pool.suffix[1:])
        if attributes:
            facts["impact"] = [asdict(table) for table in workflows.impact(pool, output, attributes)]
    return facts


def evidence_of(table: Path, **options: Any) -> dict[str, Any]:
    """Curves and score bins as plain values, few enough points for a picture."""
    found = workflows.evidence(table, **options)
    return {
        "pool_size": options["pool_size"],
        "curves": {curve.rule: _thinned(curve) for curve in found.curves},
        "bins": [{k: _short(v) for k, v in asdict(each).items()} for each in found.bins],
    }


def pool_size_of(targets: Sequence[Target], own_rows: bool) -> float:
    """For drawing curves: the pool size of the promise, else a pool of 100."""
    sizes = [_pool_size(target) for target in targets]
    return sum(sizes) if own_rows and all(sizes) else max(sizes) or 100.0


def selection_facts(
    done: Any, pool: str, pool_format: str, result: str, result_format: str
) -> dict[str, Any]:
    """What is kept of a selection, in the record and in a report: counts and fingerprints."""
    return {
        "pool_sha256": pool,
        "pool_format": pool_format,
        "candidates": done.candidates,
        "shortlisted": done.shortlisted,
        "groups": {name: list(counts) for name, counts in done.groups.items()},
        "result_sha256": result,
        "result_format": result_format,
        "version": __version__,
    }


def sha256_of(path: Path) -> str:
    """The fingerprint of a file."""
    if not path.is_file():
        raise InvalidInput(f"file: {path} does not exist.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pool_size(target: Target) -> float:
    if isinstance(target, Expected):
        return float(target.pool_size)
    return float(target.sizes[0]) if isinstance(target, PerPool) else 0.0


def _thinned(curve: Any) -> dict[str, Any]:
    """At most a few hundred points, each a true point of the curve."""
    stride = -(-len(curve.list_size) // CURVE_POINTS)
    return {
        name: [_short(float(value)) for value in getattr(curve, name)[::stride]]
        for name in ("list_size", "qualified", "threshold")
    }


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
