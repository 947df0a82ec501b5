"""The page's forms as values, and values as the page shows them. Nothing is computed or recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.datastructures import FormData

from surelist import _numerals as numerals
from surelist._check import EVERYONE
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.promises.wording import list_length
from surelist.reports import history
from surelist.reports.pictures import promise_chart, promise_charts, promised_point
from surelist.reports.summary import summarise
from surelist.service import answers
from surelist.service.errors import Conflict
from surelist.service.file_check import Profile
from surelist.service.promise_form import BY_GROUP, DEFAULTS, LABELS, number_in, share_in
from surelist.service.record.chain import Entry
from surelist.service.record.record import SavedPolicy
from surelist.service.reviewing import until
from surelist.service.uploads import Draft

FIXED = {
    "exact": "before looking", "simultaneous": "after looking, or not sure",
    "dkw": "after looking, or not sure", "pac": "before looking", "bernstein": "before looking",
}  # fmt: skip
ROLES = ("score", "label", "group", "id", "pool")


def columns_of(form: FormData) -> dict[str, Any]:
    """The columns a person confirmed."""
    chosen: dict[str, Any] = {role: str(form.get(role) or "") or None for role in ROLES}
    labels = "unqualified" if form.get("missing_labels") else str(form.get("labels") or "all")
    chosen["labels"] = labels if labels in LABELS else "all"
    chosen["missing_labels"] = "unqualified" if labels == "unqualified" else "error"
    chosen["decimal"] = {",": ",", ".": "."}.get(str(form.get("decimal") or ""), "auto")
    # values belong to the column they were chosen from; those shown and not ticked mean not qualified
    shown = form.get("pos_label_of") == chosen["label"]
    said = [str(each) for each in form.getlist("pos_label") if each] if shown else []
    chosen["pos_label"] = said
    chosen["neg_label"] = [str(n) for n in form.getlist("label_shown") if n not in said] if said else []
    chosen["attributes"] = [str(form.get(n)) for n in ("attribute1", "attribute2") if form.get(n)]
    return chosen


def mark_of(value: Any) -> str:
    """What a form carries to say what it shows: a short hash."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def require_shown(form: Mapping[str, Any], value: Any) -> None:
    """Refuse a form that shows something else than what it would act on: another tab went on."""
    if form.get("shown") != mark_of(value):
        raise Conflict(
            "This page shows something else than what was chosen last for this upload, perhaps in another "
            "tab. Nothing was done. Load the page again to see how it stands, then repeat."
        )


def result(draft: Draft) -> dict[str, Any]:
    """What the page says of a certified promise."""
    outcome, asked = draft.notes["outcome"], draft.notes["asked"]
    policy, facts = Policy.loads(outcome["policy"]), outcome["facts"]
    evidence = facts["evidence"]
    length = policy.listed_per(policy.cutoffs[0]) if len(policy.cutoffs) == 1 else None
    size = evidence["pool_size"] if evidence is not None else 100.0
    listed, per = length or (outcome["share"] * size, size)
    paper, rule = None, policy.cutoffs[0].target.paper_rule
    if evidence is not None and not policy.grouped and rule in (evidence["curves"] or ()):
        paper = shortest(evidence["curves"][rule], float(asked["k"]))
    return {
        "policy": policy, "evidence": evidence, "listed": listed, "per": per, "paper": paper, "asked": asked,
        "charts": promise_charts(evidence, policy),
        "looks": facts["earlier_looks"],
        "cutoffs": summarise(policy)["cutoffs"],
        "view": answers.scores(policy, facts.get("warnings", ())),
        "conditions": [*policy.conditions, *answers.look_conditions(policy, facts["earlier_looks"])],
    }  # fmt: skip


def shortest(curve: Mapping[str, Any], k: float) -> float | None:
    """The shortest list of a recorded curve that holds k, if any does."""
    points = zip(curve["list_size"], curve["qualified"], strict=True)
    return next((size for size, certified in points if certified >= k), None)


def curve_of(draft: Draft, pool_size: str | None, alpha: str | None) -> tuple[float, float]:
    """Pool size and percentage of the curve to explore."""
    size, percent = curve_asked(draft, pool_size, alpha)
    share_in(percent, "alpha", "how often it may be false")
    return number_in(size, "pool_size", "the pool size"), float(percent)


def curve_asked(draft: Draft, pool_size: str | None, alpha: str | None) -> tuple[str, str]:
    """The same as a person typed it: as in the address, else as asked before."""
    asked = {**DEFAULTS, **{name: text for name, text in draft.notes.get("asked", {}).items() if text}}
    return asked["pool_size"] if pool_size is None else pool_size, asked["alpha"] if alpha is None else alpha


def exploration(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The simultaneous curve: a promise may be chosen from it after looking."""
    highest = max(evidence["curves"]["simultaneous"]["qualified"], default=0.0)
    return {"chart": promise_chart(evidence), "highest": int(highest * 10) / 10}


def comparison(chosen: list[SavedPolicy]) -> list[dict[str, Any]]:
    """Policies fact by fact."""
    columns = [_facts(saved) for saved in chosen]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [
        {"name": name, "values": [c.get(name, "–") for c in columns],
         "differs": len({c.get(name) for c in columns}) > 1}
        for name in names
    ]  # fmt: skip


def comparison_picture(chosen: list[SavedPolicy]) -> tuple[str, list[str]] | None:
    """The curves of all that have one, per 100 candidates, and their names in the order of their styles."""
    curves = [
        (saved.name, saved.entry.facts["evidence"], promised_point(saved.policy))
        for saved in chosen
        if (saved.entry.facts.get("evidence") or {}).get("curves")
    ]
    return (history.curves(curves), [name for name, *_ in curves]) if curves else None


def description_of(form: Mapping[str, Any]) -> tuple[str, str]:
    """A name and a note, as a person typed them."""
    name = str(form.get("name") or "").strip()[:200]
    if not name:
        raise InvalidInput("name", "this field is empty. Say what it is called.")
    return name, str(form.get("note") or "").strip()[:2000]


def audit_asked(offer: Mapping[str, Any] | None, form: Mapping[str, Any], ident: str | None) -> float | None:
    """The audit's rate that a pool's form asks for; None where none is offered or nothing is watched."""
    if offer is None or not form.get("watch"):
        return None
    if not ident:
        raise InvalidInput(
            "id",
            "this promise is watched by reviews of some who are not listed, and reviews go by candidate "
            "ids. Choose their column, or do not let this pool count.",
        )
    return share_in(offer["fixed"] or str(form.get("audit_rate") or ""), "audit_rate", "the share to review")


def asked_like(policy: Policy) -> dict[str, Any] | None:
    """A policy's promise as the form holds it, to be asked of other rows; None where the form has no such."""
    targets = [cutoff.target for cutoff in policy.cutoffs]
    kind = targets[0].kind
    if policy.several or kind not in BY_GROUP or not targets[0].one_threshold:
        return None
    asked = {
        **DEFAULTS, "promise": kind, "alpha": f"{100 * policy.alpha:.10g}",
        "rule": "exact", "purpose": policy.purpose or "",
        "cutoff": "own" if policy.grouped and not policy.common else DEFAULTS["cutoff"],
    }  # fmt: skip
    first = msgspec.to_builtins(targets[0])
    if "share" in first:
        return {**asked, "share": f"{100 * float(first['share']):.10g}"}
    asked |= {name: f"{float(first[name]):.10g}" for name in ("k", "pool_size")}
    if policy.grouped:
        numbers = {str(cutoff.group): msgspec.to_builtins(cutoff.target)["k"] for cutoff in policy.cutoffs}
        shown = {group: f"{float(k):.10g}" for group, k in numbers.items()}
        asked["all"] = shown.pop(EVERYONE, "") if policy.common else ""
        asked["groups"] = shown
    return asked


def _facts(saved: SavedPolicy) -> dict[str, str]:
    policy, view = saved.policy, answers.policy(saved)
    facts = {
        "Promise": policy.two_lines.what,
        "How sure": policy.two_lines.sure.removeprefix("How sure: "),
        "May be false": numerals.percent(policy.alpha),
        "When it was fixed": FIXED[policy.rule],
        "Status": "withdrawn" if view["withdrawn"] else "retired" if view["retired"] else "in use",
        "Saved": f"{numerals.moment(saved.entry.at)} by {saved.entry.actor}",
        "Note": saved.note or "–",
        "Earlier questions to the rows": str(view["earlier_looks"]),
        "Purpose": policy.purpose or "–",
    }
    lengths = {cutoff.group: list_length(cutoff, policy) for cutoff in policy.cutoffs}
    for each in view["cutoffs"]:
        who = f" ({each['group']})" if each["group"] else ""
        facts[f"Threshold{who}"] = numerals.number(each["threshold"], 8)
        facts[f"Calibration rows{who}"] = numerals.count(each["rows"])
        facts[f"Qualified rows{who}"] = numerals.count(each["qualified"])
        facts[f"Needed{who}"] = numerals.count(each["critical_count"])
        facts[f"List to expect{who}"] = lengths.get(each["group"]) or "–"
    facts["Calibration file"] = str(saved.entry.facts.get("rows_sha256", "–"))[:16]
    return facts


def other_numbers(profile: Profile, columns: Mapping[str, Any]) -> list[str]:
    """Columns of numbers that have no role yet."""
    taken = {columns.get(role) for role in ROLES}
    return [
        each.name for each in profile.columns if each.numbers == profile.rows > 0 and each.name not in taken
    ]


def pool_columns(policy: Policy, names: Sequence[str], guesses: Mapping[str, str | None]) -> dict[str, Any]:
    """The columns a pool probably has: those of the calibration rows."""
    known = policy.columns or {}
    chosen = {role: known.get(role) if known.get(role) in names else None for role in ROLES}
    if "score" not in known:  # another column than the calibrated one is never taken silently
        chosen["score"] = guesses["score"]
    chosen["id"] = chosen["id"] or guesses["id"]
    return {**chosen, "attributes": []}


def shortlist(
    policy: Policy, entry: Entry, kept: Draft, names: list[str], rows: list[list[str]]
) -> dict[str, Any]:
    """The first rows of a shortlist, each with the reason why it is there."""
    columns = kept.notes
    score = names.index(columns["score"]) if columns.get("score") in names else None
    group = names.index(columns["group"]) if policy.filter.grouped and columns.get("group") in names else None
    ident = names.index(columns["id"]) if columns.get("id") in names else None
    sizes = {name: size for name, (size, _) in entry.facts["groups"].items()}
    candidates = entry.facts["candidates"]
    reasons = [
        policy.filter.reason(row[group] if group is not None else None, candidates, sizes).replace(">=", "≥")
        for row in rows
    ]
    return {
        "names": names, "rows": rows, "reasons": reasons, "id": ident, "score": score,
        "until": until(kept.until),
    }  # fmt: skip
