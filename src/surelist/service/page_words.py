"""What the page and the API call what can be set, and sentences as the page shows them."""

from __future__ import annotations

from surelist._names import TABLES, OptionNames
from surelist.errors import SurelistError


class PageNames(OptionNames):
    """Labels of the page; a value has a name of its own, or none."""

    def option(self, name: str, value: str) -> str | None:
        """The label of a field, quoted."""
        if (of_value := self.table.get(f"{name}={value}")) is not None:
            return of_value
        label = self.table.get(name, name.replace("_", " "))
        return None if label is None else f"“{label}”"


PAGE = PageNames({
    "alpha": "How often it may be false", "k": "How many qualified", "pool_size": "Pool size",
    "missing_labels": "Labels", "missing_labels=unqualified": "the field “Labels”", "on_bad_rows": None,
    "pos_label": "The values that mean qualified", "neg_label": "The values that mean qualified",
    "decimal=,": "the field “Decimal mark”.", "decimal": None, "labels": "Labels", "rule": None,
    "unlabelled": "Scores of other candidates", "target": "The promise", "probability": "Probability",
    "lowest_rate": "The lowest probability", "pools": "Pool", "groups": "Group", "ids": "Candidate id",
    "pool": "Pool", "group": "Group", "id": "Candidate id", "score": "Score", "share": "The share",
    "header_row": "Row with the column names", "audit_rate": "Reviewed of the others", "policy": "Policy",
    "false_positive": "Wrong labels", "longest": "The longest list",
    "scores": "Score", "start": "The list to begin with", "purpose=...": "a sentence",
})  # fmt: skip


class ParameterNames(OptionNames):
    """Parameters of the API."""

    def written(self, known: str, value: str) -> str:
        """As in a query."""
        return f"{known}={value}"


PARAMETERS = ParameterNames({**TABLES.table, "ties=hash": "ties", "on_bad_rows": None})


def sentence(text: str) -> str:
    """What the core says in the middle of a sentence, at the beginning of one."""
    return text[:1].upper() + text[1:]


def plainly(said: SurelistError | str) -> str:
    """An error or a sentence as the page shows it."""
    text = said.said(PAGE) if isinstance(said, SurelistError) else PAGE.said(said)
    return text.replace("e-value", "evidence")
