"""The page's forms as values, and values as the page shows them. Nothing is computed or recorded."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from surelist.errors import InvalidInput
from surelist.promises.asked import one_target, roles_of, terms_of
from surelist.promises.options import PromiseKind
from surelist.promises.policy import Policy
from surelist.promises.targets import Expected, PerPool, Recall, Target
from surelist.reports import history
from surelist.reports import html as report
from surelist.reports.summary import RULE_NAMES, summarise
from surelist.service import answers
from surelist.service.errors import Conflict
from surelist.service.jobs import CalibrationRequest, hints_of
from surelist.service.record.chain import Entry
from surelist.service.record.record import SavedPolicy
from surelist.service.reviewing import until
from surelist.service.uploads import Draft

ROLES = ("score", "label", "group", "id")
PROMISES = ("expected", "per-pool", "recall")
AFTER_LOOKING = (
    "After looking, only a promise on average can be certified: its rule is true for every number at once. "
    "For this promise take fresh rows that nobody has looked at and fix it before, or choose “On average”."
)
DEFAULTS: dict[str, Any] = {
    "promise": "expected", "k": "5", "pool_size": "100", "share": "95", "alpha": "10", "purpose": "",
    "rule": "exact", "groups": {},
}  # fmt: skip


def columns_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The columns a person confirmed."""
    chosen: dict[str, Any] = {role: str(form.get(role) or "") or None for role in ROLES}
    chosen["missing_labels"] = "unqualified" if form.get("missing_labels") else "error"
    chosen["decimal"] = {",": ",", ".": "."}.get(str(form.get("decimal") or ""), "auto")
    said = str(form.get("pos_label") or "")
    # a value belongs to the column it was chosen from
    chosen["pos_label"] = said if said and form.get("pos_label_of") == chosen["label"] else None
    chosen["attributes"] = [str(form.get(n)) for n in ("attribute1", "attribute2") if form.get(n)]
    return chosen


class FieldError(InvalidInput):
    """A field of the form does not fit; the page says so beside it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


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


def asked_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The promise as a person typed it; checked when it is certified. An empty field stays empty."""
    asked: dict[str, Any] = {name: str(form.get(name) or "") for name in DEFAULTS if name != "groups"}
    asked["groups"] = {
        str(form[name]): str(form.get(f"k-{name[6:]}") or "") for name in form if name.startswith("group-")
    }
    return asked


def request_of(draft: Draft) -> CalibrationRequest:
    """The calibration that the draft's choices describe."""
    columns, asked = draft.notes["columns"], draft.notes["asked"]
    promise, group = asked["promise"], columns["group"]
    if promise not in PROMISES:
        raise FieldError("promise", "Choose what is to be promised.")
    if asked["rule"] not in ("exact", "simultaneous"):
        raise FieldError("rule", "Say whether the promise was fixed before looking at these rows.")
    options = {**columns, "rule": asked["rule"]}
    options["alpha"] = share_in(asked["alpha"], "alpha", "how often it may be false")
    options["purpose"] = (asked["purpose"].strip() or None) if group else None
    options["group_rows"] = "all" if group and promise != "recall" else "own"
    fields: dict[str | None, str] = (
        {name: f"k-{number}" for number, name in enumerate(asked["groups"], 1)} if group else {None: "k"}
    )
    wanted: dict[str | None, str] = dict(asked["groups"]) if group else {None: asked["k"]}
    targets = {name: _target(promise, k, asked, fields[name], name) for name, k in wanted.items()}
    if any(asked["rule"] not in target.rules for target in targets.values()):
        raise FieldError("rule", AFTER_LOOKING)
    terms = terms_of(options, targets if group else targets[None])
    return CalibrationRequest(roles_of(options), terms, hints_of(columns))


def _target(promise: PromiseKind, k: str, asked: Mapping[str, Any], field: str, name: str | None) -> Target:
    if promise == "recall":
        return one_target(promise, share=share_in(asked["share"], "share", "the share to keep"))
    whose = f" of {name}" if name is not None else ""
    size = number_in(asked["pool_size"], "pool_size", "the pool size")
    needed = number_in(k, field, f"how many qualified you need{whose}")
    return one_target(promise, k=needed, pool_size=size)


def share_in(percent: str, name: str, what: str) -> float:
    """A percentage that a person typed, as a share."""
    share = number_in(percent, name, what) / 100
    if not 0 < share < 1:
        raise FieldError(name, f"{what}: expected a percentage between 0 and 100, got {percent[:40]!r}.")
    return share


def number_in(text: str, field: str, what: str) -> float:
    """A positive number that a person typed."""
    if not text.strip():
        raise FieldError(field, f"{what}: this field is empty. Enter a number.")
    try:
        value = float(text)
    except ValueError:
        raise FieldError(field, f"{what}: expected a number such as 2.5, got {text[:40]!r}.") from None
    if not math.isfinite(value) or value <= 0:
        raise FieldError(field, f"{what}: expected a number above 0, got {text[:40]!r}.")
    return value


def result(draft: Draft) -> dict[str, Any]:
    """What the page says of a certified promise."""
    outcome, asked = draft.notes["outcome"], draft.notes["asked"]
    policy, facts = Policy.loads(outcome["policy"]), outcome["facts"]
    evidence = facts["evidence"]
    size = evidence["pool_size"]
    listed = outcome["share"] * size
    mark, paper = None, None
    if asked["promise"] == "expected" and not policy.grouped:
        k = float(asked["k"])
        mark = (listed, k)
        paper = shortest(evidence["curves"]["dkw"], k)
    return {
        "policy": policy, "evidence": evidence, "listed": listed, "paper": paper, "asked": asked,
        "picture": report.curve_picture(evidence, mark), "looks": facts["earlier_looks"],
        "cutoffs": summarise(policy)["cutoffs"],
        "view": answers.scores(policy),
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
    return {"picture": report.curve_picture(evidence), "highest": int(highest * 10) / 10}


def comparison(chosen: list[SavedPolicy]) -> list[dict[str, Any]]:
    """Policies fact by fact."""
    columns = [_facts(saved) for saved in chosen]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [
        {"name": name, "values": [c.get(name, "–") for c in columns],
         "differs": len({c.get(name) for c in columns}) > 1}
        for name in names
    ]  # fmt: skip


def comparison_picture(chosen: list[SavedPolicy]) -> str | None:
    """The curves of all that have one, per 100 candidates."""
    curves = [
        (saved.name, saved.entry.facts["evidence"]) for saved in chosen if saved.entry.facts.get("evidence")
    ]
    return history.curves(curves) if curves else None


def description_of(form: Mapping[str, Any]) -> tuple[str, str]:
    """A name and a note, as a person typed them."""
    name = str(form.get("name") or "").strip()[:200]
    if not name:
        raise InvalidInput("name: this field is empty. Say what it is called.")
    return name, str(form.get("note") or "").strip()[:2000]


def asked_like(policy: Policy) -> dict[str, Any] | None:
    """A policy's promise as the form holds it, to be asked of other rows; None where the form has no such."""
    targets = [cutoff.target for cutoff in policy.cutoffs]
    kinds = {type(target) for target in targets}
    known = {Expected: "expected", PerPool: "per-pool", Recall: "recall"}
    kind = kinds.pop()
    if kinds or kind not in known or (not policy.grouped and len(targets) > 1):
        return None
    asked = {
        **DEFAULTS, "promise": known[kind], "alpha": f"{100 * policy.alpha:.10g}",
        "rule": "exact", "purpose": policy.purpose or "",
    }  # fmt: skip
    first = targets[0]
    if isinstance(first, Recall):
        return {**asked, "share": f"{100 * float(first.share):.10g}"}
    if not isinstance(first, Expected | PerPool) or not isinstance(first.pool_size, int | float):
        return None
    asked |= {"k": f"{float(first.k):.10g}", "pool_size": f"{float(first.pool_size):.10g}"}
    if policy.grouped:
        asked["groups"] = {
            str(cutoff.group): f"{float(getattr(cutoff.target, 'k', 1)):.10g}" for cutoff in policy.cutoffs
        }
    return asked


def _facts(saved: SavedPolicy) -> dict[str, str]:
    policy, view = saved.policy, answers.policy(saved)
    facts = {
        "Promise": policy.promise,
        "May be false": report.percent(policy.alpha),
        "Rule": RULE_NAMES[policy.rule],
        "Status": "withdrawn" if view["withdrawn"] else "retired" if view["retired"] else "in use",
        "Saved": f"{report.moment(saved.entry.at)} by {saved.entry.actor}",
        "Note": saved.note or "–",
        "Earlier looks at the rows": str(view["earlier_looks"]),
        "Purpose": policy.purpose or "–",
    }
    for each in view["cutoffs"]:
        who = f" ({each['group']})" if each["group"] else ""
        facts[f"Threshold{who}"] = report.number(each["threshold"], 8)
        facts[f"Calibration rows{who}"] = report.count(each["rows"])
        facts[f"Qualified rows{who}"] = report.count(each["qualified"])
        facts[f"Needed{who}"] = report.count(each["critical_count"])
    facts["Calibration file"] = str(saved.entry.facts.get("rows_sha256", "–"))[:16]
    return facts


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
    group = names.index(columns["group"]) if policy.grouped and columns.get("group") in names else None
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
