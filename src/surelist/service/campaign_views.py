"""Campaigns as pages and answers show them, from the record: standing, pools, updates, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surelist.reports import history
from surelist.service import answers, reviewing
from surelist.service.campaigns import Standing
from surelist.service.record.campaigns import StepEntry
from surelist.service.record.chain import Entry
from surelist.service.record.view import View
from surelist.service.uploads import Spool, list_of
from surelist.service.worklist import Worklist
from surelist.workflows.campaign_record import REVIEWED, SCREENED, UPDATED

SHOWN = (
    "spent", "promise", "threshold", "list_size", "pools", "rows", "next_update", "due", "standing",
    "sentence",
)  # fmt: skip


def shown(view: View, spool: Spool, ident: str) -> dict[str, Any]:
    """A campaign with its history."""
    now = Standing(view, ident)
    pools = _pools(view, spool, now.steps)
    later = [(each.entry, each.facts["after"]) for each in now.steps if each.action == UPDATED]
    updates = [(now.entry, now.facts["after"]), *later]
    return {
        "entry": now.entry, "facts": now.facts, "now": now.after, "steps": len(now.steps),
        "withdrawn": now.withdrawn, "pools": pools[::-1],
        "open": [each for each in pools if not each["finished"]],
        "updates": [_update(*each) for each in updates],
        "pictures": _pictures([after for _, after in updates], pools),
    }  # fmt: skip


def _pools(view: View, spool: Spool, steps: Sequence[StepEntry]) -> list[dict[str, Any]]:
    finished = {each.subject: each.facts["labels"] for each in steps if each.action == REVIEWED}
    rows = []
    for each in steps:
        if each.action == SCREENED:
            if each.subject in finished:
                counts = _counted(finished[each.subject])
            else:
                counts = reviewing.progress(
                    view.marks(each.subject), reviewing.to_review(each.facts), view.reviewer(each.subject)
                )
            kept = spool.result(each.subject)
            rows.append(
                {"id": each.subject, "name": each.facts["pool"], "at": each.entry.at, "progress": counts,
                 "candidates": each.facts["candidates"], "listed": each.facts["shortlisted"],
                 "drawn": len(each.facts.get("audit", ())),
                 "threshold": each.facts["threshold"], "number": each.facts["after"]["pools"],
                 "finished": each.subject in finished or not reviewing.to_review(each.facts),
                 "until": reviewing.until(kept.until) if kept else None}
            )  # fmt: skip
    return rows


def _counted(labels: str) -> dict[str, int]:
    """What finished reviews say."""
    return {"reviewed": len(labels) - labels.count("?"), "yes": labels.count("1"), "seen": 0}


def _update(entry: Entry, after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "at": entry.at, "by": entry.actor, "from_pool": after["pools"] + 1,
        **{name: after[name] for name in ("rows", "threshold", "list_size", "floor", "spent")},
    }  # fmt: skip


def _pictures(
    updates: Sequence[Mapping[str, Any]], pools: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """List length and threshold by pool, once there is something to compare."""
    shares = [100 * each["listed"] / each["candidates"] for each in pools if each["candidates"]]
    known = [(after["pools"], after["threshold"]) for after in updates]
    values = [(float(pool), float(value)) for pool, value in known if value is not None]
    return {
        "lengths": history.lengths(shares) if len(shares) > 1 else None,
        "thresholds": history.thresholds(values, len(pools)) if values and len(pools) > 1 else None,
    }


def as_answer(view: View, ident: str) -> dict[str, Any]:
    """Where a campaign stands, for the API."""
    now = Standing(view, ident)
    facts = now.facts
    return {
        "id": ident, **{name: facts[name] for name in ("name", "target", "alpha", "schedule")},
        "audit_rate": facts.get("audit_rate"),
        **{name: now.after[name] for name in SHOWN},
        "withdrawn": now.withdrawn.facts["reason"] if now.withdrawn else None,
        "waiting": [each.subject for each in _waiting(now.steps)],
        "receipt": answers.receipt(now.steps[-1].entry if now.steps else now.entry),
    }  # fmt: skip


def _waiting(steps: Sequence[StepEntry]) -> list[StepEntry]:
    """Pools whose reviews are not finished."""
    finished = {each.subject for each in steps if each.action == REVIEWED}
    pools = [each for each in steps if each.action == SCREENED and reviewing.to_review(each.facts)]
    return [each for each in pools if each.subject not in finished]


def to_review(spool: Spool, pool: str) -> tuple[list[str], list[str]]:
    """Who is to be reviewed of a pool, by id and the best score first: its list, and those drawn besides."""
    kept = spool.result(pool)
    if kept is None:
        return [], []
    with Worklist(list_of(kept.upload)) as work:
        names = list(work.ranked())
        return names[: work.listed], names[work.listed :]


def running(view: View, limit: int | None = None) -> list[dict[str, Any]]:
    """Campaigns with what is due, newest first; those that were withdrawn come with why."""
    rows = []
    for entry in view.campaigns.all(limit):
        now = Standing(view, entry.subject)
        rows.append(
            {"id": entry.subject, "at": entry.at, "name": now.facts["name"],
             "target": now.facts["target"], "now": now.after, "waiting": _waiting(now.steps),
             "withdrawn": now.withdrawn.facts["reason"] if now.withdrawn else None}
        )  # fmt: skip
    return rows
