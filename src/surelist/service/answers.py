"""What is on record, as plain values for answers and templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs
from starlette.responses import HTMLResponse

from surelist import _numerals as numerals
from surelist.promises.policy import Policy
from surelist.reports import html as report
from surelist.reports.summary import summarise
from surelist.service.record.chain import Entry
from surelist.service.record.log import Written
from surelist.service.record.record import SavedPolicy

CHECK_FACTS = ("kind", "warns", "message", "group")  # a gap is for pictures
SELECTION_FACTS = (
    "policy", "candidates", "shortlisted", "groups", "pool_sha256", "result_sha256", "result_format",
)  # fmt: skip


def receipt(made: Written | Entry) -> dict[str, Any]:
    entry, replayed = (made.entry, made.replayed) if isinstance(made, Written) else (made, False)
    return {"seq": entry.seq, "hash": entry.hash, "at": entry.at, "by": entry.actor, "replayed": replayed}


def entry_facts(entry: Entry, *, hidden: bool) -> dict[str, Any]:
    """What an entry says; of marks that are still hidden only how many there are: a hash can be guessed."""
    return {"reviews": entry.facts["reviews"]} if hidden else entry.facts


def policy(saved: SavedPolicy, candidates: int | None = None) -> dict[str, Any]:
    """A policy; its promise as it stands beside a list of so many ``candidates``, or none."""
    made, looks = saved.policy, saved.entry.facts.get("earlier_looks", [])
    return {
        "hash": saved.hash,
        "name": saved.name,
        "note": saved.note,
        "file": saved.entry.facts.get("file"),
        "promise": saved.current.promise_of(candidates),
        "two_lines": structs.asdict(saved.current.two_lines_of(candidates)),
        "conditions": [*made.conditions, *look_conditions(made, looks)],
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
        **scores(made, saved.entry.facts.get("warnings", ())),
        "purpose": made.purpose,
        "retired": saved.retired is not None,
        "withdrawn": saved.withdrawn.facts["reason"] if saved.withdrawn else None,
        "earlier_looks": len(looks),
        "receipt": receipt(saved.entry),
    }


def scores(made: Policy, more: Sequence[str] = ()) -> dict[str, Any]:
    """Which column was certified, how its scores lie on the calibration rows, and what to look at."""
    ranges = [
        {"group": each.group, "lowest": each.scores.lowest, "highest": each.scores.highest,
         "auc": each.scores.auc}
        for each in made.cutoffs
        if each.scores is not None
    ]  # fmt: skip
    column = (made.columns or {}).get("score")
    return {"score_column": column, "scores": ranges, "warnings": [*made.warnings, *more]}


def look_conditions(made: Policy, looks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was chosen when: sentences for the looks before this promise was fixed."""
    free = [look for look in looks if made.rule == look.get("rule") == "simultaneous"]
    same = [look for look in free if look.get("alpha") == made.alpha]
    others = [look for look in looks if look not in same]
    sentences = []
    if same:
        sentences.append(
            "It was chosen after looking at what these rows carry, with the same chance of error; that is "
            "covered."
        )
    if others:
        seen = "; ".join(_seen(look) for look in others[:5]) + ("; …" if len(others) > 5 else "")
        asked = "another question was" if len(others) == 1 else f"{len(others):,} other questions were"
        sentences.append(
            f"Before it was fixed, {asked} asked of its calibration rows ({seen}). If the promise was chosen "
            "because of an answer, its chance of error does not cover that."
        )
    return sentences


def _seen(look: Mapping[str, Any]) -> str:
    asked = "; ".join(look.get("targets", {}).values()) or "the curve"
    alpha = "" if "alpha" in asked else f", false at most {numerals.percent(look.get('alpha'))}"
    return f"{numerals.moment(str(look.get('at', '')))}: {asked}{alpha}"


def policy_file(saved: SavedPolicy, replayed: bool = False) -> dict[str, Any]:
    """A policy with its file; ``replayed`` where the request found it on record."""
    again = receipt(Written(saved.entry, replayed))
    return {**policy(saved), "policy": json.loads(saved.entry.facts["policy"]), "receipt": again}


def selection(made: Written | Entry) -> dict[str, Any]:
    entry = made.entry if isinstance(made, Written) else made
    facts = entry.facts
    known = {name: facts[name] for name in SELECTION_FACTS}
    checks = [{name: each[name] for name in CHECK_FACTS} for each in facts.get("checks", [])]
    return {"id": entry.subject, **known, "checks": checks, "receipt": receipt(made)}


def report_html(
    saved: SavedPolicy, entry: Entry | None = None, reviews: dict[str, bool] | None = None
) -> str:
    """The audit report, from the record alone."""
    facts = saved.entry.facts
    steps = {
        "Policy saved": saved.entry, "Policy retired": saved.retired, "Promise withdrawn": saved.withdrawn,
        "Selection made": entry,
    }  # fmt: skip
    summary = summarise(
        saved.current,
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
    return report.render(summary)


def report_page(*known: Any) -> HTMLResponse:
    """The same as a page."""
    return HTMLResponse(report_html(*known))
