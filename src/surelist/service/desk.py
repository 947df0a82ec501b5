"""What waits for a person, and what was done before: the worklist and the history, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surelist.service import answers, campaign_views, life, reviewing
from surelist.service.record.record import SavedPolicy
from surelist.service.record.view import View
from surelist.service.uploads import Spool

RECENT = 8  # policies on the worklist
SEARCHED = 2000  # of the latest selections
STATES = {"": "all", "use": "in use", "withdrawn": "withdrawn", "retired": "retired"}


def worklist(view: View, spool: Spool) -> dict[str, Any]:
    """Alarms, reviews that are due, and the latest policies with how they stand."""
    saved = view.policies(200)
    names = {each.hash: each.name for each in saved}
    recent = [each for each in saved if each.in_use][:RECENT]
    return {
        "alarms": [answers.policy(each) for each in saved if each.withdrawn and not each.retired],
        "due": _due(view, spool, names),
        "policies": [{**answers.policy(each), "standing": life.standing(view, each)} for each in recent],
        "labellings": _labellings(view),
        "campaigns": campaign_views.running(view, RECENT + 1),
        "total": len(saved),
        "kept_here": {each.id for each in spool.results()},
    }


def _labellings(view: View) -> list[dict[str, Any]]:
    """Labellings that have not led to a policy yet."""
    listed = view.listed()
    begun = [each for each in view.labellings() if each.subject not in listed]
    running = [each for each in begun if view.policy_of(each.subject) is None]
    return [{"id": each.subject, "at": each.at, **each.facts} for each in running]


def _due(view: View, spool: Spool, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Lists whose reviews are not finished: those that count, and those that are kept for reviewing."""
    kept = {each.id: each for each in spool.results()}
    finished = view.finished()
    due = []
    for entry in view.selections(None, 500):
        facts = entry.facts
        if entry.subject in finished:
            continue
        here = kept.get(entry.subject)
        if facts.get("watched") or (here is not None and here.notes.get("id")):
            made = reviewing.progress(view.marks(entry.subject), reviewing.to_review(facts))
            due.append(
                {"entry": entry, "name": view.title(entry), "policy": names.get(facts["policy"], ""),
                 "digest": facts["policy"], "progress": made, "kept": here is not None,
                 "until": reviewing.until(here.until) if here else None}
            )  # fmt: skip
    return due


def policies(view: View, search: str, state: str) -> list[dict[str, Any]]:
    """Policies on record that fit, newest first."""
    saved = view.policies(500)
    fitting = [each for each in saved if state in ("", _state(each)) and _matches(_words_of(each), search)]
    return [answers.policy(each) for each in fitting]


def _state(saved: SavedPolicy) -> str:
    return "withdrawn" if saved.withdrawn else "retired" if saved.retired else "use"


def _words_of(saved: SavedPolicy) -> Sequence[str]:
    facts = saved.entry.facts
    return (
        saved.name,
        saved.note,
        saved.policy.promise,
        facts.get("file", ""),
        saved.hash,
        saved.entry.actor,
    )


def selections(view: View, search: str, policy: str | None) -> list[dict[str, Any]]:
    """Selections on record that fit, newest first."""
    names = {each.hash: each.name for each in view.policies(500)}
    rows = []
    for entry in view.selections(policy, SEARCHED if search else 200):
        facts = entry.facts
        row = {
            **answers.selection(entry), "title": view.title(entry), "note": view.note(entry),
            "file": facts.get("file", ""), "policy_name": names.get(facts["policy"], facts["policy"][:12]),
        }  # fmt: skip
        words = (
            row["title"],
            row["note"],
            row["file"],
            row["policy_name"],
            entry.subject,
            entry.actor,
            entry.at,
        )
        if _matches(words, search):
            rows.append(row)
    return rows


def _matches(words: Sequence[str], search: str) -> bool:
    """Every word of the search occurs somewhere."""
    text = " ".join(words).casefold()
    return all(each in text for each in search.casefold().split())
