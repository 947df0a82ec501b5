"""What a person has chosen so far, as values that wait in a draft."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from surelist._check import DecimalMark, MissingLabels
from surelist.errors import InvalidInput
from surelist.promises.terms import Roles
from surelist.service.record.events import PolicySaved
from surelist.workflows.source import Hints

Labels = Literal["all", "unqualified", "drawn", "amounts"]  # what the label column holds


class ChosenColumns(Struct, frozen=True, omit_defaults=True):
    """Which column is what, and how the file is to be read."""

    score: str | None = None
    label: str | None = None
    group: str | None = None
    id: str | None = None
    pool: str | None = None
    labels: Labels = "all"
    decimal: DecimalMark = "auto"
    pos_label: tuple[str, ...] = ()
    neg_label: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()

    @property
    def missing_labels(self) -> MissingLabels:
        return "unqualified" if self.labels == "unqualified" else "error"

    @property
    def hints(self) -> Hints:
        """What was said about reading the file; the sheet was chosen before."""
        return Hints(None, self.decimal, self.pos_label, self.neg_label)

    @property
    def roles(self) -> Roles:
        return Roles(self.score, self.label, self.group, self.id, pool=self.pool)

    def asked(self) -> dict[str, Any]:
        """The columns by the names of ``OPTIONS``."""
        roles = {name: getattr(self, name) for name in ROLES}
        return {**roles, "missing_labels": self.missing_labels}


ROLES = ("score", "label", "group", "id", "pool")
LABELS: tuple[Labels, ...] = get_args(Labels)


class AskedPromise(Struct, frozen=True, omit_defaults=True):
    """A promise as a person typed it: the form's fields, how many of each group, scores in the running."""

    fields: dict[str, str] = {}
    groups: dict[str, str] = {}
    other_score: tuple[str, ...] = ()


class PromiseOutcome(Struct, frozen=True, omit_defaults=True):
    """What came of a promise: a policy that may be saved, or why there is none."""

    saved: PolicySaved | None = None
    share: float = 0.0  # of candidates, on the list
    refused: dict[str, Any] | None = None


class AboutList(Struct, frozen=True):
    """What a person calls a pool and until when its list is kept, for the record."""

    name: str = ""
    note: str = ""
    file: str = ""
    kept_until: str | None = None


class ListCounts(Struct, frozen=True):
    """How many of a list are qualified, by length: what was worked out from labelled rows, without them."""

    points: tuple[tuple[int, int, int], ...]  # length, at least, at most
    conditions: tuple[str, ...]
    file: str

    def at(self, size: int | None) -> tuple[int, int, int]:
        """The longest list of at most this size that ties allow; the whole one where none is asked for."""
        shorter = [each for each in self.points if size is None or each[0] <= size]
        return (shorter or self.points[:1])[-1]


def until(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(moment))


def place_of(form: Mapping[str, object], sheet: str | None = None) -> Hints:
    """Where in its file a person says that the table is."""
    row = str(form.get("header_row") or "").strip()
    if row and not (row.isdecimal() and int(row[:9])):
        raise InvalidInput("header_row", expected="a row from 1 on", got=repr(row[:20]))
    return Hints(sheet, header_row=int(row[:9]) if row else None)
