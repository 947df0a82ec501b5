"""What is on record, as plain values for answers and templates."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import HTMLResponse

from surelist.reports import html as report
from surelist.reports.summary import summarise
from surelist.service.record.chain import Entry
from surelist.service.record.record import SavedPolicy, Written

SELECTION_FACTS = (
    "policy", "candidates", "shortlisted", "groups", "pool_sha256", "result_sha256", "result_format",
)  # fmt: skip


def receipt(made: Written | Entry) -> dict[str, Any]:
    entry, replayed = (made.entry, made.replayed) if isinstance(made, Written) else (made, False)
    return {"seq": entry.seq, "hash": entry.hash, "at": entry.at, "by": entry.actor, "replayed": replayed}


def policy(saved: SavedPolicy) -> dict[str, Any]:
    made = saved.policy
    return {
        "hash": saved.hash,
        "name": saved.name,
        "promise": made.promise,
        "conditions": list(made.conditions),
        "alpha": made.alpha,
        "rule": made.rule,
        "cutoffs": [
            {
                "group": cutoff.group,
                "threshold": cutoff.steps[0].threshold,
                "rows": cutoff.rows,
                "qualified": cutoff.qualified,
                "critical_count": cutoff.steps[0].critical_count,
            }
            for cutoff in made.cutoffs
        ],
        "purpose": made.purpose,
        "retired": saved.retired is not None,
        "earlier_looks": len(saved.entry.facts.get("earlier_looks", [])),
        "receipt": receipt(saved.entry),
    }


def policy_file(saved: SavedPolicy) -> dict[str, Any]:
    return {**policy(saved), "policy": json.loads(saved.entry.facts["policy"])}


def selection(made: Written | Entry) -> dict[str, Any]:
    entry = made.entry if isinstance(made, Written) else made
    facts = entry.facts
    return {"id": entry.subject, **{name: facts[name] for name in SELECTION_FACTS}, "receipt": receipt(made)}


def report_page(
    saved: SavedPolicy, entry: Entry | None = None, reviews: dict[str, bool] | None = None
) -> HTMLResponse:
    """The audit report, from the record alone."""
    facts = saved.entry.facts
    steps = {"Policy saved": saved.entry, "Policy retired": saved.retired, "Selection made": entry}
    summary = summarise(
        saved.policy,
        name=saved.name,
        policy_sha256=saved.hash,
        rows_sha256=facts.get("rows_sha256"),
        evidence=facts.get("evidence"),
        earlier_looks=facts.get("earlier_looks", []),
        selection=entry.facts if entry is not None else None,
        reviews=(len(reviews), sum(reviews.values())) if reviews else None,
        record=[
            {"what": what, "at": step.at, "by": step.actor, "receipt": step.receipt}
            for what, step in steps.items()
            if step is not None
        ],
    )
    return HTMLResponse(report.render(summary))
