"""The page's form of a promise: what a person typed, and the calibration it asks for.

Fields become the words of ``promises.grammar``; nothing is certified here. An empty field is an error at that
field, never a default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surelist._check import EVERYONE
from surelist._names import OptionNames
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.grammar import drawn_labels, one_target, roles_of, target_asked, terms_of
from surelist.promises.promise import Promise
from surelist.service.calibrating import CalibrationRequest
from surelist.service.jobs import hints_of
from surelist.service.uploads import Draft

BY_GROUP = ("expected", "per-pool", "recall")
OF_ROWS = (*BY_GROUP, "precision", "budget")
OF_POOLS = ("next-pool", "pool-average", "pool-recall")
# the same of other columns: a choice stays when a person goes back and chooses these
ALIKE = (("expected", "pool-average", "value"), ("per-pool", "next-pool"), ("recall", "pool-recall"))
# the field of the form that holds the number of a promise, and what it is called
NUMBER = {"k": ("k", "how many qualified you need"), "share": ("share", "the share to keep"),
          "recall": ("share", "the share to keep"), "size": ("budget", "how many you can "
          "review")}  # fmt: skip
OF_LIST = ("precision", "the share of the list")
LABELS = {
    "all": "an answer in every row",
    "unqualified": "an answer or nothing; nothing counts as not qualified",
    "drawn": "an answer for rows that were drawn; the others are empty",
    "value": "amounts of at least 0: money, grades",
}
AFTER_LOOKING = (
    "After looking, only a promise on average can be certified, in pools of a given size, with a label in "
    "every row and without a file of other scores: its rule is true for every number at once. For this "
    "promise take fresh rows that nobody has looked at and fix it before."
)
COMMON_BEFORE = (
    "One cutoff for everybody has a proof for promises that were fixed before looking. Take fresh rows and "
    "fix them before, or a cutoff for each group."
)
DEFAULTS: dict[str, Any] = {
    "promise": "expected", "k": "5", "pool_size": "100", "share": "95", "alpha": "10", "purpose": "",
    "rule": "exact", "spread": "", "by": "", "precision": "80", "start": "", "budget": "10", "also": "",
    "audit_rate": "5", "audited_below": "", "probability": "", "lowest_rate": "", "groups": {},
    "other_score": [],
    "cutoff": "common", "all": "",
}  # fmt: skip


class FieldError(InvalidInput):
    """A field of the form does not fit; the page says so beside it, in a sentence that names it already."""

    def said(self, names: OptionNames) -> str:
        """The sentence alone."""
        return names.said(self.problem)


def asked_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """The promise as a person typed it; checked when it is certified. An empty field stays empty."""
    asked: dict[str, Any] = {
        name: str(form.get(name) or "") for name, default in DEFAULTS.items() if isinstance(default, str)
    }
    asked["groups"] = {
        str(form[name]): str(form.get(f"k-{name[6:]}") or "") for name in form if name.startswith("group-")
    }
    several = getattr(form, "getlist", lambda name: form.get(name, []))
    asked["other_score"] = [str(each) for each in several("other_score")][:20]
    return asked


def promises_of(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """The promises that the form offers for these columns."""
    if columns["group"]:
        return BY_GROUP
    if columns.get("labels") == "value":
        return ("pool-average",) if columns.get("pool") else ("value",)
    if columns.get("labels") == "drawn":
        return BY_GROUP
    return OF_POOLS if columns.get("pool") else OF_ROWS


def shown_of(columns: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows: as it was asked for before, the promise in the words of these columns."""
    shown, offered = {**DEFAULTS, **asked}, promises_of(columns)
    if shown["promise"] not in offered:
        alike = next((each for each in ALIKE if shown["promise"] in each), ())
        shown["promise"] = next((each for each in alike if each in offered), "")
    return shown


def request_of(draft: Draft) -> CalibrationRequest:
    """The calibration that the draft's choices describe."""
    columns, asked = draft.notes["columns"], {**DEFAULTS, **draft.notes["asked"]}
    promise, group = asked["promise"], columns["group"]
    if promise not in promises_of(columns):
        raise FieldError("promise", "Choose what is to be promised.")
    if asked["rule"] not in ("exact", "simultaneous"):
        raise FieldError("rule", "Say whether the promise was fixed before looking at these rows.")
    options = {**columns, "promise": promise, "rule": asked["rule"]}
    options["alpha"] = share_in(asked["alpha"], "alpha", "how often it may be false")
    if group:
        return _by_group(options, promise, asked)
    options |= _numbers(promise, columns, asked, others=draft.others is not None)
    options |= _drawn(columns, asked)
    options["other_score"] = [each for each in asked["other_score"] if each != columns["score"]]
    target = target_asked(options)
    if asked["rule"] == "simultaneous" and not _covered_after_looking(target, columns, draft):
        raise FieldError("rule", AFTER_LOOKING)
    return CalibrationRequest(
        roles_of(options), terms_of(options, target), drawn_labels(options), hints_of(columns)
    )


def _covered_after_looking(target: Any, columns: Mapping[str, Any], draft: Draft) -> bool:
    several = isinstance(target, list)
    plain = not several and "simultaneous" in target.rules
    return plain and columns.get("labels") != "drawn" and draft.others is None


def _by_group(options: dict[str, Any], promise: str, asked: Mapping[str, Any]) -> CalibrationRequest:
    if asked["cutoff"] not in ("common", "own"):
        raise FieldError("cutoff", "Say whether there is one cutoff for everybody, or one for each group.")
    common = asked["cutoff"] == "common"
    options["group_cutoff"] = asked["cutoff"]
    options["purpose"] = None if common else asked["purpose"].strip() or None
    options["group_rows"] = "own" if _field(promise) == "share" else "all"
    options["pool"] = None
    targets = {
        name: _group_target(promise, k, asked, f"k-{at}", name)
        for at, (name, k) in enumerate(asked["groups"].items(), 1)
    }
    if common and asked["all"].strip() and _field(promise) != "share":
        targets[EVERYONE] = _group_target(promise, asked["all"], asked, "all", "all groups together")
    if any(asked["rule"] not in target.rules for target in targets.values()):
        raise FieldError("rule", AFTER_LOOKING)
    if common and asked["rule"] != "exact":
        raise FieldError("rule", COMMON_BEFORE)
    return CalibrationRequest(roles_of(options), terms_of(options, targets), hints=hints_of(options))


def _group_target(promise: str, k: str, asked: Mapping[str, Any], field: str, name: str) -> Promise:
    if _field(promise) == "share":
        return one_target(promise, {"share": share_in(asked["share"], "share", "the share to keep")})
    size = number_in(asked["pool_size"], "pool_size", "the pool size")
    needed = number_in(k, field, f"how many qualified you need of {name}")
    return one_target(promise, {"k": needed, "pool_size": size})


def _field(promise: str) -> str:
    """The field of a promise that its number in the form sets."""
    known = kinds.chosen(promise)
    assert known is not None
    return known[1]


def _numbers(
    promise: str, columns: Mapping[str, Any], asked: Mapping[str, Any], *, others: bool
) -> dict[str, Any]:
    """The promise and its numbers, by the names of ``OPTIONS``."""
    known = kinds.chosen(promise)
    made = known and kinds.promise_class(known[0])
    assert known is not None
    assert made is not None
    kind, field = known
    fields = made.__struct_fields__
    name, what = OF_LIST if made.others == "needed" and field == "share" else NUMBER[field]
    read = share_in if field in ("share", "recall") else number_in
    found: dict[str, Any] = {"promise": kind, field: read(asked[name], name, what)}
    if "pool_size" in fields:
        found["pool_size"] = number_in(asked["pool_size"], "pool_size", "the pool size")
    if "of" in fields and columns.get("labels") == "value":
        found["of"] = "value"
    for each, reader, words in (
        ("start", share_in, "the list to begin with"),
        ("spread", number_in, "the spread"),
    ):
        if each in fields:
            found |= _optional(asked, each, reader, words)
    if "by" in fields and asked["by"] == "rank":
        found["by"] = "rank"
    if promise == kinds.FIRST and asked["also"].strip():
        part = share_in(asked["also"], "also", "the share of the list")
        found["also"] = [f"{_beside()}:{part!r}"]
    if not others and (made.others == "needed" or "also" in found):
        raise FieldError("others", "This promise needs a file of other candidates' scores: choose one below.")
    return found


def _beside() -> str:
    """The short name of the promise about the share of a list, which can be made beside another."""
    return next(each.alias for each in kinds.classes() if each.alias and each.others == "needed")


EMPTY = {"missing_labels": "unqualified"}


def _drawn(columns: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """How labels were drawn: above a score and a share below it, or by a column of probabilities.

    The page asks nothing more of empty labels: one that was certain to be drawn counts as not qualified.
    """
    if columns.get("labels") != "drawn":
        return {}
    if asked["probability"]:
        lowest = share_in(asked["lowest_rate"], "lowest_rate", "the lowest probability", most=100)
        return {"probability": asked["probability"], "lowest_rate": lowest, **EMPTY}
    edge = number_in(
        asked["audited_below"], "audited_below", "the score from which all were labelled", least=-math.inf
    )
    rate = share_in(asked["audit_rate"], "audit_rate", "the share of the others that was drawn", most=100)
    return {"audited_below": edge, "audit_rate": rate, **EMPTY}


def _optional(asked: Mapping[str, Any], name: str, read: Any, what: str) -> dict[str, float]:
    return {name: read(asked[name], name, what)} if asked[name].strip() else {}


def share_in(percent: str, name: str, what: str, most: float = 100 - 1e-9) -> float:
    """A percentage as a share."""
    part = number_in(percent, name, what) / 100
    if not 0 < part <= most / 100:
        raise FieldError(name, f"{what}: expected a percentage between 0 and 100, got {percent[:40]!r}.")
    return part


def number_in(text: str, field: str, what: str, least: float = 0) -> float:
    """A number above ``least``."""
    if not text.strip():
        raise FieldError(field, f"{what}: this field is empty. Enter a number.")
    try:
        value = float(text)
    except ValueError:
        raise FieldError(field, f"{what}: expected a number such as 2.5, got {text[:40]!r}.") from None
    if not math.isfinite(value) or value <= least:
        raise FieldError(field, f"{what}: expected a number above 0, got {text[:40]!r}.")
    return value
