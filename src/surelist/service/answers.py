"""What is on record, as plain values for answers and templates."""

from __future__ import annotations

import json
import secrets
from typing import Any

from starlette.responses import HTMLResponse

from surelist.reports import html as report
from surelist.reports.summary import summarise
from surelist.service.record.chain import Entry
from surelist.service.record.record import SavedPolicy, Written
from surelist.service.runtime import Context

HTML_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The report."}
}


def new_id() -> str:
    return secrets.token_hex(8)


def receipt(found: Written | Entry) -> dict[str, Any]:
    entry = found.entry if isinstance(found, Written) else found
    replayed = isinstance(found, Written) and found.replayed
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


def selection(found: Written | Entry) -> dict[str, Any]:
    entry = found.entry if isinstance(found, Written) else found
    facts = entry.facts
    wanted = (
        "policy",
        "candidates",
        "shortlisted",
        "groups",
        "pool_sha256",
        "result_sha256",
        "result_format",
    )
    return {"id": entry.subject, **{name: facts[name] for name in wanted}, "receipt": receipt(found)}


async def policy_report(here: Context, digest: str) -> HTMLResponse:
    saved = await here.read(here.registry.policy, digest)
    return HTMLResponse(report.render(summary(saved)))


async def selection_report(here: Context, name: str) -> HTMLResponse:
    entry = await here.read(here.registry.selection, name)
    saved = await here.read(here.registry.policy, entry.facts["policy"])
    reviews = await here.read(here.registry.reviews, name)
    return HTMLResponse(report.render(summary(saved, entry, reviews)))


def summary(
    saved: SavedPolicy, entry: Entry | None = None, reviews: dict[str, bool] | None = None
) -> dict[str, Any]:
    """Everything a report says, from the record alone."""
    facts = saved.entry.facts
    record = [
        {
            "what": "Policy saved",
            "at": saved.entry.at,
            "by": saved.entry.actor,
            "receipt": saved.entry.receipt,
        }
    ]
    if saved.retired is not None:
        record.append(
            {"what": "Policy retired", "at": saved.retired.at, "by": saved.retired.actor,
             "receipt": saved.retired.receipt}
        )  # fmt: skip
    if entry is not None:
        record.append({"what": "Selection made", "at": entry.at, "by": entry.actor, "receipt": entry.receipt})
    return summarise(
        saved.policy,
        name=saved.name,
        policy_sha256=saved.hash,
        rows_sha256=facts.get("rows_sha256"),
        evidence=facts.get("evidence"),
        earlier_looks=facts.get("earlier_looks", []),
        selection=entry.facts if entry is not None else None,
        reviews=(len(reviews), sum(reviews.values())) if reviews else None,
        record=record,
    )
