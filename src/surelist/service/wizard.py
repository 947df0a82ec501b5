"""The page's story step by step, without HTTP: what a person chose, and what came of it."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from surelist import examples
from surelist.cli import error_body
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises import policy_file
from surelist.promises.policy import Policy
from surelist.reports import html as report
from surelist.reports.summary import RULE_NAMES, summarise
from surelist.service import answers as views
from surelist.service import jobs as operations
from surelist.service.jobs import Request
from surelist.service.models import Promise
from surelist.service.record.access import Actor
from surelist.service.record.chain import Entry
from surelist.service.record.record import SavedPolicy
from surelist.service.runtime import Context
from surelist.service.uploads import Draft
from surelist.tables.profile import Problem, Profile
from surelist.workflows import tables as workflows

ROLES = ("score", "label", "group", "id")
DEFAULTS: dict[str, Any] = {
    "promise": "expected", "k": "5", "pool_size": "100", "share": "95", "alpha": "10", "purpose": "",
    "rule": "exact", "groups": {},
}  # fmt: skip


def example(here: Context, owner: str, kind: str, policy: str | None = None) -> Draft:
    """Made-up candidates, to try the page with."""
    past = kind == "past"
    rng = np.random.default_rng(0 if past else 2)
    header, rows = examples.trial_rows(rng, 2000 if past else 100, labelled=past)
    path = here.spool.new_path("csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    with path.open("rb") as made:
        upload = here.spool.store(made, here.settings.max_upload)
    path.unlink()
    name = "example-past.csv" if past else "example-pool.csv"
    return here.spool.add_draft(owner, kind, name, upload, here.settings.draft_life, policy)


def columns_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The columns a person confirmed."""
    chosen: dict[str, Any] = {role: str(form.get(role) or "") or None for role in ROLES}
    chosen["missing_labels"] = "unqualified" if form.get("missing_labels") else "error"
    chosen["attributes"] = [str(form.get(n)) for n in ("attribute1", "attribute2") if form.get(n)]
    return chosen


def problems(draft: Draft) -> list[Problem]:
    """What stands in the way of the chosen columns."""
    chosen = draft.notes["columns"]
    for role in ("score", "label"):
        if not chosen[role]:
            what = "the score" if role == "score" else "the label (1 = qualified)"
            return [Problem(role, f"no column holds {what} yet", 0, (), "Choose one below.")]
    with operations.named(draft.upload, draft.filename):
        found = workflows.problems(draft.upload.path, **{role: chosen[role] for role in ROLES})
    if chosen["missing_labels"] == "unqualified":
        found = [each for each in found if not each.message.endswith("without a label")]
    return found


def asked_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The promise as a person typed it; checked when it is certified."""
    asked: dict[str, Any] = {
        name: str(form.get(name) or default) for name, default in DEFAULTS.items() if name != "groups"
    }
    asked["groups"] = {
        str(form[name]): str(form.get(f"k-{name[6:]}") or "") for name in form if name.startswith("group-")
    }
    return asked


def request_of(draft: Draft) -> Request:
    """The calibration that the draft's choices describe."""
    columns, asked = draft.notes["columns"], draft.notes["asked"]
    promise = asked["promise"]
    numbers: dict[str, Any] = {"alpha": _number(asked["alpha"], "how often it may be false") / 100}
    if promise == "recall":
        numbers["share"] = _number(asked["share"], "the share to keep") / 100
    else:
        numbers["pool_size"] = _number(asked["pool_size"], "the pool size")
    group = columns["group"]
    if group:
        numbers["group"], numbers["purpose"] = group, asked["purpose"].strip() or None
        numbers["target"] = [_group_target(name, k, numbers) for name, k in asked["groups"].items()]
        numbers["group_rows"] = "own" if promise == "recall" else "all"
    elif promise != "recall":
        numbers["k"] = _number(asked["k"], "how many qualified you need")
    if not 0 < numbers["alpha"] < 1:
        raise InvalidInput("alpha: expected a percentage between 0 and 100.")
    if "share" in numbers and not 0 < numbers["share"] < 1:
        raise InvalidInput("share: expected a percentage between 0 and 100.")
    rule = "simultaneous" if asked["rule"] == "simultaneous" and promise == "expected" else "exact"
    options = Promise.model_construct(**{**Promise().model_dump(), "promise": promise, **numbers})
    return Request(
        score=columns["score"], label=columns["label"], target=options.targets(), alpha=numbers["alpha"],
        rule=rule, group=group, purpose=numbers.get("purpose"), group_rows=numbers.get("group_rows", "own"),
        missing_labels=columns["missing_labels"],
    )  # fmt: skip


def _group_target(name: str, k: str, numbers: Mapping[str, Any]) -> str:
    if "share" in numbers:
        return f"{name}={numbers['share']!r}"
    return f"{name}={_number(k, f'how many qualified you need of {name}')!r}/{numbers['pool_size']!r}"


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{what}: expected a number such as 2.5, got {text[:40]!r}.") from None
    if not np.isfinite(value) or value <= 0:
        raise InvalidInput(f"{what}: expected a number above 0, got {text[:40]!r}.")
    return value


def certify(here: Context, draft: Draft, actor: Actor) -> None:
    """One look at the rows, put on record; the outcome waits in the draft."""
    request = request_of(draft)
    looks = operations.record_look(here.registry, draft.upload, actor, "promise on the page", request.said)
    earlier = [look for look in looks if {k: look.get(k) for k in request.said} != request.said]
    try:
        policy = operations.calibrate(request, draft.upload, draft.filename)
    except NotCertifiable as refusal:
        here.metrics.refused.inc()
        here.spool.note(draft, outcome={"refused": error_body(refusal)})
        return
    rules = ("exact", "dkw") if request.rule == "exact" else ("simultaneous", "dkw")
    here.spool.note(
        draft,
        outcome={
            "policy": policy_file.dumps(policy),
            "looks": earlier,
            "evidence": operations.evidence(request, draft.upload, rules),
            "share": workflows.listed_share(
                draft.upload.path, policy, score=request.score, group=request.group
            ),
        },
    )


def result(draft: Draft) -> dict[str, Any]:
    """What the page says of a certified promise."""
    outcome, asked = draft.notes["outcome"], draft.notes["asked"]
    policy, evidence = Policy.loads(outcome["policy"]), outcome["evidence"]
    size = evidence["pool_size"]
    listed = outcome["share"] * size
    mark, paper = None, None
    if asked["promise"] == "expected" and not policy.grouped:
        k = _number(asked["k"], "k")
        mark = (listed, k)
        paper = shortest(evidence["curves"]["dkw"], k)
    return {
        "policy": policy, "evidence": evidence, "listed": listed, "paper": paper, "asked": asked,
        "picture": report.curve_picture(evidence, mark), "looks": outcome["looks"],
        "cutoffs": summarise(policy)["cutoffs"],
    }  # fmt: skip


def shortest(curve: Mapping[str, Any], k: float) -> float | None:
    """The shortest list of a recorded curve that holds k, if any does."""
    points = zip(curve["list_size"], curve["qualified"], strict=True)
    return next((size for size, certified in points if certified >= k), None)


def explore(here: Context, draft: Draft, actor: Actor, pool_size: str, alpha: str) -> dict[str, Any]:
    """The simultaneous curve: a promise may be chosen from it after looking."""
    columns, asked = draft.notes["columns"], draft.notes.get("asked") or DEFAULTS
    size = _number(pool_size or asked["pool_size"], "the pool size")
    level = _number(alpha or asked["alpha"], "how often it may be false")
    if not level < 100:
        raise InvalidInput("alpha: expected a percentage between 0 and 100.")
    request = Request(
        score=columns["score"], label=columns["label"], target=Promise(k=1e-9, pool_size=size).targets(),
        alpha=level / 100, rule="simultaneous", missing_labels=columns["missing_labels"],
    )  # fmt: skip
    operations.record_look(
        here.registry, draft.upload, actor, "curve on the page",
        {"targets": {}, "alpha": request.alpha, "rule": "simultaneous"},
    )  # fmt: skip
    evidence = operations.evidence(request, draft.upload, ("simultaneous", "dkw"))
    highest = max(evidence["curves"]["simultaneous"]["qualified"], default=0.0)
    return {
        "evidence": evidence, "picture": report.curve_picture(evidence), "pool_size": size, "alpha": level,
        "highest": int(highest * 10) / 10, "grouped": bool(columns["group"]),
    }  # fmt: skip


def save(here: Context, draft: Draft, actor: Actor, name: str) -> str:
    """Put the certified policy on record, with its evidence; returns its hash."""
    outcome = draft.notes.get("outcome") or {}
    if "policy" not in outcome:
        raise InvalidInput("policy: nothing is certified yet. Choose a promise first.")
    facts = {
        "rows_sha256": draft.upload.sha256,
        "evidence": outcome["evidence"],
        "earlier_looks": outcome["looks"],
    }
    title = name.strip()[:200] or draft.filename
    policy = Policy.loads(outcome["policy"])
    return here.registry.save_policy(policy, title, actor.name, facts).result().entry.subject


def comparison(both: list[SavedPolicy]) -> list[dict[str, Any]]:
    """Two policies fact by fact."""
    columns = [_facts(saved) for saved in both]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [
        {"name": name, "values": [c.get(name, "–") for c in columns],
         "differs": columns[0].get(name) != columns[1].get(name)}
        for name in names
    ]  # fmt: skip


def _facts(saved: SavedPolicy) -> dict[str, str]:
    policy, view = saved.policy, views.policy(saved)
    found = {
        "Promise": policy.promise,
        "May be false": report.percent(policy.alpha),
        "Rule": RULE_NAMES[policy.rule],
        "Status": "retired" if view["retired"] else "in use",
        "Saved": f"{report.moment(saved.entry.at)} by {saved.entry.actor}",
        "Earlier looks at the rows": str(view["earlier_looks"]),
        "Purpose": policy.purpose or "–",
    }
    for each in view["cutoffs"]:
        who = f" ({each['group']})" if each["group"] else ""
        found[f"Threshold{who}"] = report.number(each["threshold"], 8)
        found[f"Calibration rows{who}"] = report.count(each["rows"])
        found[f"Qualified rows{who}"] = report.count(each["qualified"])
        found[f"Needed{who}"] = report.count(each["critical_count"])
    found["Calibration file"] = str(saved.entry.facts.get("rows_sha256", "–"))[:16]
    return found


def pool_columns(policy: Policy, profile: Profile) -> dict[str, Any]:
    """The columns a pool probably has: those of the calibration rows."""
    known = policy.columns or {}
    chosen = {role: known.get(role) if known.get(role) in profile.names else None for role in ROLES}
    chosen["score"] = chosen["score"] or profile.guesses["score"]
    chosen["id"] = chosen["id"] or profile.guesses["id"]
    return {**chosen, "attributes": []}


def select(here: Context, draft: Draft, actor: Actor) -> str:
    """Shortlist the pool; the shortlist waits for download as long as the settings say."""
    chosen = draft.notes["columns"]
    columns = {role: chosen[role] for role in ("score", "group", "id")}
    if not columns["score"]:
        raise InvalidInput("score: choose the column that holds the score.")
    done = operations.select_file(
        here.registry, here.spool, draft.policy or "", draft.upload, actor, name=draft.filename,
        columns=columns, attributes=chosen["attributes"],
    )  # fmt: skip
    entry = done.written.entry
    here.metrics.candidates.inc(entry.facts["candidates"])
    here.metrics.shortlisted.inc(entry.facts["shortlisted"])
    assert done.file is not None
    here.spool.keep_result(entry.subject, done.file, here.settings.keep_results, columns)
    return entry.subject


def shortlist(policy: Policy, entry: Entry, kept: Draft, limit: int) -> dict[str, Any]:
    """The first rows of a shortlist, each with the reason why it is there."""
    names, rows = workflows.first_rows(kept.upload.path, limit)
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
        "until": time.strftime("%H:%M UTC", time.gmtime(kept.until)),
    }  # fmt: skip


def reviews_of(form: Mapping[str, Any]) -> dict[str, bool]:
    """Candidates marked yes or no in the table of the page."""
    found = {}
    for name in form:
        if name.startswith("review-") and form[name] in ("yes", "no"):
            candidate = str(form.get(f"candidate-{name[7:]}") or "")
            if candidate:
                found[candidate] = form[name] == "yes"
    return found
