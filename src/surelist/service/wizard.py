"""The page's forms as values, and values as the page shows them. Nothing is computed or recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec import Struct
from starlette.datastructures import FormData

from surelist import _numerals as numerals
from surelist._check import DecimalMark
from surelist._names import OptionNames
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.promises.wording import list_length
from surelist.reports import pictures
from surelist.reports.audit import noise_supported
from surelist.reports.pictures import list_chart, promise_charts, promised_point
from surelist.reports.report import common_of, cutoffs_of
from surelist.service import answers
from surelist.service.calibrating import NO_LABEL, Column
from surelist.service.choices import LABELS, ROLES, AskedPromise, ChosenColumns, ListCounts, until
from surelist.service.errors import Conflict
from surelist.service.jobs import Problem, Profile
from surelist.service.promise_form import DEFAULTS, share_in
from surelist.service.record.events import PolicySaved, SelectionMade
from surelist.service.record.marks import Marks
from surelist.service.record.record import SavedPolicy
from surelist.service.uploads import KeptList

MEANINGS = {"score": "the score", "label": "the label"}
FIELDS = {
    "score": "score", "mostly dropped": "score", "label": "label", "missing label": "label",
    "missing group": "group", "unknown group": "group", "missing id": "id", "repeated id": "id",
    "decimal": "decimal",
}  # fmt: skip
REMEDIES = {  # what to do about each kind of problem, on the page
    "score": "Give every candidate a score; leaving rows out breaks the promise.",
    "label": "1 means qualified, 0 not qualified.",
    "missing label": "Fill them in, or say below what an empty one means. They are never left out: that "
    "would break the promise.",
    "missing group": 'Give them a group of their own, for example "unknown".',
    "missing id": "Give every candidate an id, or choose no id column.",
    "decimal": "Choose the decimal mark below.",
    "repeated id": "Check for duplicates, or choose no id column.",
}
FIXED = {
    "exact": "before looking", "simultaneous": "after looking, or not sure",
    "dkw": "after looking, or not sure", "pac": "before looking", "bernstein": "before looking",
}  # fmt: skip


def columns_of(form: FormData) -> ChosenColumns:
    """The columns a person confirmed."""
    chosen: dict[str, Any] = {role: str(form.get(role) or "") or None for role in ROLES}
    labels = "unqualified" if form.get("missing_labels") else str(form.get("labels") or "all")
    chosen["decimal"] = next((each for each in get_args(DecimalMark) if each == form.get("decimal")), "auto")
    # values belong to the column they were chosen from; those shown and not ticked mean not qualified
    shown = form.get("pos_label_of") == chosen["label"]
    said = tuple(str(each) for each in form.getlist("pos_label") if each) if shown else ()
    return ChosenColumns(
        **chosen, labels=next((e for e in LABELS if e == labels), "all"), pos_label=said,
        neg_label=tuple(str(n) for n in form.getlist("label_shown") if n not in said) if said else (),
        attributes=tuple(str(form.get(n)) for n in ("attribute1", "attribute2") if form.get(n)),
    )  # fmt: skip


def mark_of(value: Struct | None) -> str:
    """What a form carries to say what it shows: a short hash."""
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:32]


def require_shown(form: FormData, value: Struct | None) -> None:
    """Refuse a form that shows something else than what it would act on: another tab went on."""
    if form.get("shown") != mark_of(value):
        raise Conflict(
            "This page shows something else than what was chosen last for this upload, perhaps in another "
            "tab. Nothing was done. Load the page again to see how it stands, then repeat."
        )


def result(saved: PolicySaved, policy: Policy, share: float, asked: AskedPromise) -> dict[str, object]:
    """What the page says of a certified promise."""
    evidence, looks = saved.evidence, saved.earlier_looks
    length = policy.listed_per(policy.cutoffs[0]) if len(policy.cutoffs) == 1 else None
    size = evidence.pool_size if evidence is not None else 100.0
    listed, per = length or (share * size, size)
    return {
        "policy": policy, "evidence": evidence, "listed": listed, "per": per,
        "looked": policy.looked_per(policy.cutoffs[0]), "asked": asked.fields, "looks": looks,
        "charts": promise_charts(evidence, policy),
        "cutoffs": cutoffs_of(policy), "common": common_of(policy), "scores": answers.scores(policy),
        "score_column": (policy.columns or {}).get("score"),
        "warnings": [*policy.warnings, *saved.warnings],
        "conditions": [*policy.conditions, *answers.look_conditions(policy, looks)],
    }  # fmt: skip


def curve_asked(asked: AskedPromise | None, pool_size: str | None, alpha: str | None) -> tuple[str, str]:
    """The same as a person typed it: as in the address, else as asked before."""
    before = {name: text for name, text in (asked.fields if asked else {}).items() if text}
    fields = DEFAULTS | before
    size = fields["pool_size"] if pool_size is None else pool_size
    return size, fields["alpha"] if alpha is None else alpha


def comparison(chosen: list[SavedPolicy]) -> list[dict[str, object]]:
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
        (each.name, each.saved.evidence, promised_point(each.policy))
        for each in chosen
        if each.saved.evidence and each.saved.evidence.curves
    ]
    return (pictures.curves(curves), [name for name, *_ in curves]) if curves else None


def description_of(form: FormData) -> tuple[str, str]:
    """A name and a note, as a person typed them."""
    name = str(form.get("name") or "").strip()[:200]
    if not name:
        raise InvalidInput("name", "this field is empty. Say what it is called.")
    return name, str(form.get("note") or "").strip()[:2000]


def audit_asked(offer: Mapping[str, float | None] | None, form: FormData, ident: str | None) -> float | None:
    """The audit's rate that a pool's form asks for; None where none is offered or nothing is watched."""
    if offer is None or not form.get("watch"):
        return None
    if not ident:
        raise InvalidInput(
            "id",
            "this promise is watched by reviews of some who are not listed, and reviews go by candidate "
            "ids. Choose their column, or do not let this pool count.",
        )
    return offer["fixed"] or share_in(str(form.get("audit_rate") or ""), "audit_rate", "the share to review")


def _facts(saved: SavedPolicy) -> dict[str, str]:
    policy, view = saved.policy, answers.policy(saved)
    facts = {
        "Promise": policy.two_lines.what,
        "How sure": policy.two_lines.sure.removeprefix("How sure: "),
        "May be false": numerals.percent(policy.alpha),
        "When it was fixed": FIXED[policy.rule],
        "Status": saved.state,
        "Saved": f"{numerals.moment(saved.entry.at)} by {saved.entry.actor}",
        "Note": saved.note or "–",
        "Earlier questions to the rows": str(view.earlier_looks),
        "Purpose": policy.purpose or "–",
    }
    lengths = {cutoff.group: list_length(cutoff, policy) for cutoff in policy.cutoffs}
    for each in view.cutoffs:
        who = f" ({each.group})" if each.group else ""
        facts[f"Threshold{who}"] = numerals.number(each.threshold, 8)
        facts[f"Calibration rows{who}"] = numerals.count(each.rows)
        facts[f"Qualified rows{who}"] = numerals.count(each.qualified)
        facts[f"Needed{who}"] = numerals.count(each.critical_count)
        facts[f"List to expect{who}"] = lengths.get(each.group) or "–"
    facts["Calibration file"] = (saved.saved.rows_sha256 or "–")[:16]
    return facts


def other_numbers(profile: Profile, columns: ChosenColumns) -> list[str]:
    """ChosenColumns of numbers that have no role yet."""
    taken = {getattr(columns, role) for role in ROLES}
    return [
        each.name for each in profile.columns if each.numbers == profile.rows > 0 and each.name not in taken
    ]


def pool_columns(policy: Policy, profile: Profile) -> ChosenColumns:
    """The columns a pool probably has: those of the calibration rows."""
    known, guesses = policy.columns or {}, profile.guesses
    chosen: dict[str, Any] = {
        role: known.get(role) if known.get(role) in profile.names else None for role in ROLES
    }
    if "score" not in known:  # another column than the calibrated one is never taken silently
        chosen["score"] = guesses["score"]
    return ChosenColumns(**{**chosen, "id": chosen["id"] or guesses["id"]})


def one_ranking(saved: SavedPolicy) -> bool:
    """Whether lists of a policy are the best of their pool by one score: then they can be counted."""
    policy, chosen = saved.policy, saved.policy.filter
    by_score = not (chosen.grouped or chosen.by_size or policy.by_rank or policy.three_ways)
    right = not any(cutoff.proof.unjudged for cutoff in policy.cutoffs)  # labels are those of the qualified
    return right and by_score and policy.salt_hash is None and policy.shift is None and saved.in_use


def shown_counts(counts: ListCounts, size: int | None) -> dict[str, object]:
    """How many of a list are qualified: the picture, and one length of it."""
    at = counts.at(size)
    return {
        "chart": list_chart(counts.points), "points": counts.points, "at": counts.points.index(at),
        "size": at[0], "least": at[1], "most": at[2], "conditions": counts.conditions, "file": counts.file,
    }  # fmt: skip


def wrong_labels(marks: Marks) -> str | None:
    """What the disagreements of two reviewers would support; None where no two marked the same candidates."""
    given = [[mark.qualified for mark in marks.of(each) if not mark.settles] for each in marks.ever]
    both = [pair[0] != pair[1] for pair in given if len(pair) > 1]
    return noise_supported(len(both), sum(both)) if both else None


def shortlist(
    policy: Policy, made: SelectionMade, kept: KeptList, names: list[str], rows: list[list[str]]
) -> dict[str, object]:
    """The first rows of a shortlist, each with the reason why it is there."""
    columns = kept.columns
    score, ident, group = (
        names.index(name) if name in names else None for name in (columns.score, columns.id, columns.group)
    )
    sizes = {name: size for name, (size, _) in made.groups.items()}
    reasons = [
        policy.filter.reason(
            row[group] if policy.filter.grouped and group is not None else None, made.candidates, sizes
        ).replace(">=", "≥")
        for row in rows
    ]
    if policy.list_column in names:
        reasons = [row[names.index(policy.list_column)] for row in rows]
    return {
        "names": names, "rows": rows, "reasons": reasons, "id": ident, "score": score,
        "until": until(kept.until),
    }  # fmt: skip


# -- the page on which columns are chosen: what each holds, what is open, what is wrong


def about(column: Column | None) -> str:
    """What a column holds, in a line."""
    if column is None:
        return ""
    parts = [column.kind if column.filled else "empty"]
    if column.lowest is not None and column.numeric and column.kind == "numbers":
        parts = [f"numbers from {_plain(column.lowest)} to {_plain(column.highest or 0.0)}"]
    if column.read:
        parts.append(column.read)
    others = column.filled - column.numbers
    if column.numbers > others > 0 and column.kind == "text":
        parts.append(f"{numerals.count(others)} cells are not numbers")
    parts.append(f"{numerals.count(column.missing)} empty" if column.missing else "none empty")
    if column.values and not column.numeric:
        more = " and others" if len(column.values) > 4 else ""
        parts.append("holds " + ", ".join(value[:40] for value, _ in column.values[:4]) + more)
    elif column.examples and not column.labels:
        parts.append(f"for example {', '.join(column.examples)}")
    return "; ".join(parts) + "."


def _plain(value: float) -> str:
    """As people write numbers, never as 9.9e-05."""
    text = f"{value:.6g}"
    return f"{value:.8f}".rstrip("0").rstrip(".") if "e-" in text else numerals.number(value)


def values_of(profile: Profile, label: str | None) -> dict[str, object] | None:
    """The values of the label column with counts, where it is not 0 and 1: which ones mean qualified?

    With each goes whether it is no label at all unless somebody says so, such as n/a. None is chosen
    beforehand: whether “yes” or “no” is the good answer depends on the question.
    """
    column = next((each for each in profile.columns if each.name == label), None)
    if column is None or column.labels or not column.values:
        return None
    values = [(value, rows, value.lower() in NO_LABEL) for value, rows in column.values]
    return {"column": column.name, "values": values, "missing": column.missing}


def preview(profile: Profile, chosen: ChosenColumns, most: int = 30) -> dict[str, object]:
    """The first rows, chosen columns first and named for what they are."""
    roles = {name: role for role in ("id", "group", "label", "score") if (name := getattr(chosen, role))}
    order = [at for at, each in enumerate(profile.columns) if each.name in roles]
    order.sort(key=lambda at: ("score", "label", "group", "id").index(roles[profile.columns[at].name]))
    order += [at for at, each in enumerate(profile.columns) if each.name not in roles]
    shown = order[:most]
    return {
        "heads": [(profile.columns[at].name, roles.get(profile.columns[at].name)) for at in shown],
        "rows": [[row[at] for at in shown] for row in profile.first_rows],
        "more": len(profile.names) - len(shown),
    }


class ShownProblem(Struct, frozen=True):
    """What stands in the way, at which field, and what to do here."""

    field: str | None
    message: str
    remedy: str
    examples: Sequence[tuple[int | None, object]] = ()
    count: int = 0


def guessed(profile: Profile) -> ChosenColumns:
    """The columns that are probably meant."""
    found = profile.guesses
    return ChosenColumns(score=found["score"], label=found["label"], id=found["id"], group=found.get("group"))


def shown(problem: Problem) -> ShownProblem:
    """A problem as the page shows it: calibration's own words, and what to do here."""
    message = OptionNames({"decimal": None}).said(problem.message)
    return ShownProblem(
        FIELDS.get(problem.kind), message.strip().removesuffix("."), REMEDIES.get(problem.kind, ""),
        [(example.row, example.values.get(problem.column or "")) for example in problem.examples],
        problem.count,
    )  # fmt: skip


def unchosen(columns: ChosenColumns, profile: Profile) -> list[ShownProblem]:
    """What still has to be chosen, first of all, as the page shows problems."""
    missing = [
        ShownProblem(role, f"no column holds {what} yet", "Choose one below.")
        for role, what in MEANINGS.items()
        if not getattr(columns, role)
    ]
    amounts = columns.labels == "amounts"
    if not missing and not amounts and not columns.pos_label and values_of(profile, columns.label):
        said = f"“{columns.label}” is not 0 and 1"
        missing = [ShownProblem("pos_label", said, "Choose below which values mean qualified.")]
    return missing[:1]
