"""The page on which columns are chosen, as plain values: what each holds, what is open, what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surelist._names import OptionNames
from surelist._numerals import count, number
from surelist.service.choices import ChosenColumns
from surelist.service.file_check import Profile
from surelist.service.jobs import Problem
from surelist.workflows.tables import NO_LABEL, Column

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
        parts.append(f"{count(others)} cells are not numbers")
    parts.append(f"{count(column.missing)} empty" if column.missing else "none empty")
    if column.values and not column.numeric:
        more = " and others" if len(column.values) > 4 else ""
        parts.append("holds " + ", ".join(value[:40] for value, _ in column.values[:4]) + more)
    elif column.examples and not column.labels:
        parts.append(f"for example {', '.join(column.examples)}")
    return "; ".join(parts) + "."


def _plain(value: float) -> str:
    """As people write numbers, never as 9.9e-05."""
    text = f"{value:.6g}"
    return f"{value:.8f}".rstrip("0").rstrip(".") if "e-" in text else number(value)


def values_of(profile: Profile, label: str | None) -> dict[str, object] | None:
    """The values of the label column with counts, where it is not 0 and 1: which ones mean qualified?

    With each goes whether it is no label at all unless somebody says so, such as n/a. None is chosen
    beforehand: whether “yes” or “no” is the good answer depends on the question.
    """
    column = column_of(profile, label)
    if column is None or column.labels or not column.values:
        return None
    values = [(value, rows, value.lower() in NO_LABEL) for value, rows in column.values]
    return {"column": column.name, "values": values, "missing": column.missing}


def column_of(profile: Profile, name: str | None) -> Column | None:
    return next((each for each in profile.columns if each.name == name), None)


def preview(profile: Profile, chosen: ChosenColumns, most: int = 30) -> dict[str, object]:
    """The first rows, chosen columns first and named for what they are."""
    roles = {
        name: role for role in ("id", "group", "label", "score") if (name := getattr(chosen, role))
    }  # fmt: skip
    order = [at for at, each in enumerate(profile.columns) if each.name in roles]
    order.sort(key=lambda at: ("score", "label", "group", "id").index(roles[profile.columns[at].name]))
    order += [at for at, each in enumerate(profile.columns) if each.name not in roles]
    shown = order[:most]
    return {
        "heads": [(profile.columns[at].name, roles.get(profile.columns[at].name)) for at in shown],
        "rows": [[row[at] for at in shown] for row in profile.first_rows],
        "more": len(profile.names) - len(shown),
    }


@dataclass(frozen=True)
class ShownProblem:
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


def shown(problems: Sequence[Problem]) -> list[ShownProblem]:
    """Problems as the page shows them: calibration's own words, and what to do here."""
    return [_shown(each) for each in problems]


def _shown(problem: Problem) -> ShownProblem:
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
