"""The page's form of a promise: what a person typed, and the calibration it asks for.

Fields become the words of ``promises.grammar``; nothing is certified here. An empty field is an error at that
field, never a default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec.structs import replace
from starlette.datastructures import FormData

from surelist._check import EVERYONE
from surelist._names import OptionNames
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.conditions import Conditions
from surelist.promises.grammar import drawn_labels, one_target, roles_of, target_asked, terms_of
from surelist.promises.options import Option, Share, WholeShare
from surelist.promises.policy import Policy
from surelist.promises.promise import PageChoice, Promise
from surelist.promises.proved import proof_of
from surelist.promises.terms import Targets
from surelist.service.calibrating import CalibrationRequest
from surelist.service.choices import AskedPromise, ChosenColumns, Labels

LABELS: dict[Labels, str] = {
    "all": "an answer in every row",
    "unqualified": "an answer or nothing; nothing counts as not qualified",
    "drawn": "an answer for rows that were drawn; the others are empty",
    "amounts": "amounts of at least 0: money, grades",
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


class FieldError(InvalidInput):
    """A field of the form does not fit; the page says so beside it, in a sentence that names it already."""

    def said(self, names: OptionNames) -> str:
        """The sentence alone."""
        return names.said(self.problem)


def asked_of(form: FormData) -> AskedPromise:
    """The promise as a person typed it; checked when it is certified. An empty field stays empty."""
    groups = {
        str(form[name]): str(form.get(f"k-{name[6:]}") or "") for name in form if name.startswith("group-")
    }
    scores = tuple(str(each) for each in form.getlist("other_score")[:20])
    return AskedPromise({name: str(form.get(name) or "") for name in DEFAULTS}, groups, scores)


class Offer(NamedTuple):
    """A choice of the form: the kind of promise behind it, and how the page says it."""

    kind: type[Promise]
    choice: PageChoice


class Part(NamedTuple):
    """A piece of a sentence; with a ``name`` a field of the form, which without a label repeats another."""

    text: str
    name: str = ""
    field: str = ""  # of the promise
    shown: str = ""  # at first
    label: str = ""
    option: Option | None = None
    optional: bool = False  # may stay empty

    @property
    def percent(self) -> bool:
        """Whether a share is typed in percent."""
        return self.option is not None and self.option.kind in (Share, WholeShare)

    def shown_as(self, value: float | None) -> str:
        """A number as a person would type it."""
        return "" if value is None else f"{100 * value if self.percent else value:.10g}"

    def read(self, fields: Mapping[str, str]) -> float:
        """What a person typed."""
        words = self.option.words if self.option else self.name
        return (share_in if self.percent else number_in)(fields[self.name], self.name, words)


def offers(columns: ChosenColumns) -> list[Offer]:
    """The promises that the form offers for these columns."""
    every = [Offer(kind, choice) for kind in kinds.classes() for choice in kind.page]
    if columns.group:
        return [each for each in every if each.choice.by_group]
    if columns.labels == "drawn":
        thinned = Conditions(labels="thinned")
        return [each for each in every if each.choice.by_group and proof_of(each.kind, thinned)]
    amounts = columns.labels == "amounts"
    return [
        each
        for each in every
        if each.choice.amounts == amounts and each.kind.whole_pools == bool(columns.pool)
    ]


def parts(kind: type[Promise], words: str) -> list[Part]:
    """A sentence in pieces: text, and fields of a kind to fill in or to repeat."""
    options, found, last = kinds.fields_of(kind), list[Part](), 0
    for field in re.finditer(r"{(\w+)(?:=(\w+))?(\?)?(?::([\w.]+))?(?:\|([^}]*))?}", words):
        name, of, optional, shown, label = field.groups(default="")
        found.append(Part(words[last : field.start()]))
        found.append(Part("", name, of or name, shown, label, options.get(of or name), bool(optional)))
        last = field.end()
    return [*found, Part(words[last:])]


# the promise about the share of a list, which can be made beside another
BESIDE = next(each for each in kinds.classes() if each.alias and each.others == "needed")


def beside_parts(choice: PageChoice) -> list[Part]:
    """The pieces of what can be asked for with a choice: the share of its list."""
    return parts(BESIDE, choice.beside) if choice.beside else []


def ticks(offered: Iterable[Offer]) -> list[tuple[str, str, str]]:
    """Fields of these promises that are a tick on the form: name, what a tick means, and its label."""
    options = {name: each for kind, _ in offered for name, each in kinds.fields_of(kind).items()}
    return [
        (name, next(choice for choice in get_args(each.kind) if choice != each.default), each.words)
        for name, each in options.items()
        if get_origin(each.kind) is Literal and each.words
    ]


def _every_field() -> dict[str, str]:
    """The fields of every sentence and tick, with what they show at first."""
    offered = [Offer(kind, choice) for kind in kinds.classes() for choice in kind.page]
    shown = {name: "" for name, _, _ in ticks(offered)}
    for kind, choice in offered:
        sentences = [parts(kind, choice.words), beside_parts(choice)]
        shown |= {each.name: each.shown for words in sentences for each in words if each.label}
    return shown


# what the form shows at first
DEFAULTS = {
    "promise": kinds.FIRST, "alpha": "10", "purpose": "", "rule": "exact", "audit_rate": "5",
    "audited_below": "", "probability": "", "lowest_rate": "", "cutoff": "common", "all": "",
    "noise": "", "longest": "",
    **_every_field(),
}  # fmt: skip


def shown_of(columns: ChosenColumns, asked: AskedPromise | None) -> AskedPromise:
    """What the form shows: as it was asked for before, the promise in the words of these columns."""
    asked = asked or AskedPromise()
    fields, offered = DEFAULTS | asked.fields, [each.choice for each in offers(columns)]
    if fields["promise"] not in [each.name for each in offered]:
        every = [choice for kind in kinds.classes() for choice in kind.page]
        family = next((each.family for each in every if each.name == fields["promise"]), None)
        fields["promise"] = next((each.name for each in offered if family and each.family == family), "")
    return replace(asked, fields=fields)


def asked_like(policy: Policy) -> AskedPromise | None:
    """A policy's promise as the form holds it, to be asked of other rows; None where the form has no such."""
    target, first = policy.cutoffs[0].target, msgspec.to_builtins(policy.cutoffs[0].target)
    assumed = any(cutoff.proof.unjudged for cutoff in policy.cutoffs)
    said = ((each, [part for part in parts(type(target), each.words) if part.name]) for each in target.page)
    fitting = (
        (choice, numbers)
        for choice, numbers in said
        if all(first.get(each.field) is not None or each.optional for each in numbers)
        and all(first.get(name) == value for name, value in choice.sets.items())
    )
    if policy.several or assumed or not target.one_threshold or not (found := next(fitting, None)):
        return None
    choice, typed = found
    fields = {
        **DEFAULTS, "promise": choice.name, "alpha": f"{100 * policy.alpha:.10g}",
        "rule": "exact", "purpose": policy.purpose or "",
        "cutoff": "own" if policy.grouped and not policy.common else DEFAULTS["cutoff"],
    }  # fmt: skip
    fields |= {each.name: each.shown_as(first.get(each.field)) for each in typed}
    ticked = ticks([Offer(type(target), choice)])
    fields |= {name: value for name, value, _ in ticked if first.get(name) == value}
    if not policy.grouped or first.get("k") is None:
        return AskedPromise(fields)
    numbers = {str(cutoff.group): msgspec.to_builtins(cutoff.target)["k"] for cutoff in policy.cutoffs}
    shown = {name: f"{float(k):.10g}" for name, k in numbers.items()}
    fields["all"] = shown.pop(EVERYONE, "") if policy.common else ""
    return AskedPromise(fields, shown)


def request_of(columns: ChosenColumns, asked: AskedPromise, *, others: bool) -> CalibrationRequest:
    """The calibration that a person's choices describe; ``others``: with a file of other scores."""
    fields = DEFAULTS | asked.fields
    offer = next((each for each in offers(columns) if each.choice.name == fields["promise"]), None)
    if offer is None:
        raise FieldError("promise", "Choose what is to be promised.")
    if fields["rule"] not in ("exact", "simultaneous"):
        raise FieldError("rule", "Say whether the promise was fixed before looking at these rows.")
    options = {**columns.asked(), "promise": kind_of(offer.kind), "rule": fields["rule"]}
    options["alpha"] = share_in(fields["alpha"], "alpha", "how often it may be false")
    drawn = columns.labels == "drawn"
    target: Targets
    if columns.group:
        share, common = "share" in offer.kind.__struct_fields__, fields["cutoff"] == "common"
        if fields["cutoff"] not in ("common", "own"):
            raise FieldError(
                "cutoff", "Say whether there is one cutoff for everybody, or one for each group."
            )
        if common and fields["rule"] != "exact":
            raise FieldError("rule", COMMON_BEFORE)
        options |= {
            "purpose": None if common else fields["purpose"].strip() or None, "pool": None,
            "group_rows": "own" if share else "all", "group_cutoff": fields["cutoff"],
        }  # fmt: skip
        target = {
            name: _group_target(offer.kind, k, fields, f"k-{at}", name)
            for at, (name, k) in enumerate(asked.groups.items(), 1)
        }
        if common and fields["all"].strip() and not share:
            target[EVERYONE] = _group_target(offer.kind, fields["all"], fields, "all", "all groups together")
        covered = all(fields["rule"] in each.rules for each in target.values())
    else:
        options |= _numbers(offer, fields, others=others)
        options |= _drawn(fields) if drawn else _noise(fields, offer.kind)
        options["other_score"] = [each for each in asked.other_score if each != columns.score]
        target = target_asked(options)
        covered = isinstance(target, Promise) and "simultaneous" in target.rules and not (drawn or others)
    if fields["rule"] == "simultaneous" and not covered:
        raise FieldError("rule", AFTER_LOOKING)
    return CalibrationRequest(
        roles_of(options), terms_of(options, target), drawn_labels(options), columns.hints
    )


def _group_target(kind: type[Promise], k: str, fields: Mapping[str, str], field: str, name: str) -> Promise:
    options = kinds.fields_of(kind)
    given = {each: Part("", each, each, option=options[each]) for each in kinds.required(kind)}
    numbers = {each: part.read(fields) for each, part in given.items() if each != "k"}
    if "k" in given:
        numbers["k"] = number_in(k, field, f"{options['k'].words} of {name}")
    return one_target(kind_of(kind), numbers)


def kind_of(promise: type[Promise]) -> str:
    """The name of a kind in files, flags and addresses."""
    return str(promise.__struct_config__.tag)


def _numbers(offer: Offer, fields: Mapping[str, str], *, others: bool) -> dict[str, object]:
    """The numbers of a promise, by the names of ``OPTIONS``: those that its sentence asks for."""
    promise, choice = offer
    found: dict[str, object] = {
        each.field: each.read(fields)
        for each in parts(promise, choice.words)
        if each.name and not (each.optional and not fields[each.name].strip())
    }
    found |= choice.sets
    found |= {name: ticked for name, ticked, _ in ticks([offer]) if fields[name] == ticked}
    for each in beside_parts(choice):
        if each.name and fields[each.name].strip():
            found[each.name] = [f"{BESIDE.alias}:{each.read(fields)!r}"]
    if not others and (promise.others == "needed" or "also" in found):
        raise FieldError("others", "This promise needs a file of other candidates' scores: choose one below.")
    return found


EMPTY = {"missing_labels": "unqualified"}


def _drawn(asked: Mapping[str, str]) -> dict[str, object]:
    """How labels were drawn: above a score and a share below it, or by a column of probabilities.

    The page asks nothing more of empty labels: one that was certain to be drawn counts as not qualified.
    """
    if asked["probability"]:
        lowest = share_in(asked["lowest_rate"], "lowest_rate", "the lowest probability", most=100)
        return {"probability": asked["probability"], "lowest_rate": lowest, **EMPTY}
    edge = number_in(
        asked["audited_below"], "audited_below", "the score from which all were labelled", least=-math.inf
    )
    rate = share_in(asked["audit_rate"], "audit_rate", "the share of the others that was drawn", most=100)
    return {"audited_below": edge, "audit_rate": rate, **EMPTY}


def covers_noise(kind: type[Promise]) -> bool:
    """Whether a promise declares a proof with labels that may be wrong."""
    return any("noisy" in each.labels for each in kind.proved_with)


def _noise(asked: Mapping[str, str], kind: type[Promise]) -> dict[str, object]:
    """How often labels may be wrong, one bound for both kinds of mistakes; and the longest list."""
    given = {name: asked[name] for name in ("noise", "longest") if asked[name].strip()}
    if not given:
        return {}
    if not covers_noise(kind):
        raise FieldError("noise", "This promise has no proof with labels that may be wrong. Choose another.")
    wrong = share_in(asked["noise"], "noise", "how often a label is wrong at most")
    found: dict[str, object] = {"false_positive": wrong, "false_negative": wrong}
    if "longest" in given:
        found["longest"] = share_in(given["longest"], "longest", "the longest list")
    return found


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
