"""No labels yet? From a scored collection to a certified list: by page or API the app asks, people answer.

The candidates to label are answered in the review workspace, or sent; draw and answers are on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from msgspec import structs
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, Response

from surelist.errors import InvalidInput, SurelistError
from surelist.promises import kinds
from surelist.promises.options import Option
from surelist.service import answers, api, calibrating, drafts, labelling, promise_form, reviewing, wizard
from surelist.service.bodies import sent
from surelist.service.choices import ChosenColumns
from surelist.service.models import Name, Options, PolicyFile, Receipt, option, with_fields
from surelist.service.promise_form import Part
from surelist.service.record.event import Entry, Event
from surelist.service.record.view import View
from surelist.service.runtime import heavy
from surelist.service.uploads import Draft
from surelist.service.visitor import Auditor, Maker, Uploader, Visitor, router, send, to


@router.get("/labellings/new")
def new_labelling(me: Maker) -> Response:
    return me.show("labelling_new.html")


@heavy(router.post("/labellings"))
def upload_collection(me: Uploader) -> Response:
    return to(f"/collections/{drafts.stored(me, 'collection').id}")


@heavy(router.get("/collections/{ident}"))
def design_form(ident: str, me: Maker) -> Response:
    return _design_page(me, me.spool.draft(ident, me.owner, "collection"))


def _design_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft)
    draft, profile = calibrating.profile(me, draft)
    guesses = {role: profile.guesses[role] or "" for role in ("score", "id")}
    asked = labelling.DEFAULTS | (draft.typed or guesses)
    return me.show(
        "labelling_design.html", 400 if problem else 200, draft=draft, profile=profile, asked=asked,
        first=wizard.preview(profile, ChosenColumns(score=asked["score"], id=asked["id"])),
        offers=labelling.offers(), pieces=promise_form.parts, problem=problem,
        keep_choices=reviewing.keep_choices(me.settings),
    )  # fmt: skip


@heavy(router.post("/collections/{ident}"))
def start(ident: str, me: Maker) -> Response:
    """Draw the candidates to label. The draw is made once."""
    draft = me.spool.draft(ident, me.owner, "collection")
    draft = me.spool.note(draft, typed=labelling.asked_of(me.form))
    seconds = reviewing.keep_of(me.form.get("keep"), me.settings)
    try:
        made = labelling.start(me, draft.upload, draft.typed, seconds)
    except InvalidInput as error:
        return _design_page(me, draft, error)
    me.spool.drop_draft(draft)
    return to(f"/labellings/{made.entry.subject}")


@heavy(router.get("/labellings/{ident}"))
def show_labelling(ident: str, me: Auditor) -> Response:
    return me.show("labelling.html", **labelling.shown(me, ident), actor=me.view.actor)


@heavy(router.get("/labellings/{ident}/report"))
def report(ident: str, me: Auditor) -> Response:
    return HTMLResponse(labelling.report(me.view, ident))


@heavy(router.post("/labellings/{ident}/tell"))
def tell(ident: str, me: Maker) -> Response:
    """The answers of this stage count from now on; the next stage, or a promise, follows."""
    labelling.tell(me, ident, bool(me.form.get("missing")))
    return to(f"/labellings/{ident}")


@heavy(router.post("/labellings/{ident}/correct"))
def correct(ident: str, me: Maker) -> Response:
    """One answer in the place of another that nothing rests on."""
    labelling.correct_one(me, ident, me.said("candidate"), me.form.get("qualified") == "yes")
    return to(f"/labellings/{ident}")


@heavy(router.post("/labellings/{ident}/save"))
def save(ident: str, me: Maker) -> Response:
    me.view.labelling(ident)
    return to(f"/policies/{labelling.save(me.view, ident, *wizard.description_of(me.form))}")


@heavy(router.post("/labellings/{ident}/list"))
def download_list(ident: str, me: Maker) -> Response:
    """The certified list of the collection itself."""
    path = labelling.make_list(me, ident)
    return send(path, f"list-{ident}.csv", "text/csv; charset=utf-8")


LABELS = 4 << 20  # bytes of labels in one request


PARTS = [(offer, each) for offer in labelling.offers() for each in labelling.fields_of(offer)]


def _option(choice: str, part: Part) -> Option:
    """A field of the form as the API has it: shares are no percentages there."""
    kind = part.option.kind if part.option else float
    shown = int(part.shown) if kind is int else float(part.shown) / (100 if part.percent else 1)
    return Option(shown, kind, f"For `{choice}`: {part.label}.")


@with_fields({each.name: _option(offer.choice.name, each) for offer, each in PARTS})
class LabellingOptions(Options):
    """Columns of the collection, what is to be promised, and how many labels there can be."""

    score: Name = option("score")
    id: Name | None = Field(default=None, description="Column with candidate ids; row numbers without it.")
    group: Name | None = Field(default=None, description="Column with groups: the same is promised to each.")
    purpose: str = Field(default="", max_length=2000, description="With groups: why they are told apart.")
    promise: str = Field(
        default=kinds.FIRST, json_schema_extra={"enum": [each.choice.name for each in labelling.offers()]}
    )
    alpha: float = Field(default=0.1, gt=0, lt=1)
    labels: int = Field(ge=1, le=10**6, description="How many candidates can be labelled.")
    name: Name = "labelling"
    sheet: Name | None = option("sheet")
    header_row: Annotated[int, Field(ge=1)] | None = option("header_row")
    keep: int | None = Field(default=None, description="Seconds for which the candidates are kept.")

    def asked(self) -> dict[str, str]:
        """As the form has it. A field may also be given by the name that its promise has for it."""
        given = self.model_dump()
        shares = {"alpha": self.alpha}
        for _, part in PARTS:
            if part.field in self.model_fields_set and part.name not in self.model_fields_set:
                given[part.name] = given[part.field]
            if part.percent:
                shares[part.name] = given[part.name]
        percents = {name: f"{100 * value:.15g}" for name, value in shares.items()}
        return {**labelling.asked_of(given), **percents}


class LabelledRow(Options):
    row: int = Field(ge=0)
    qualified: bool | None = Field(description="null: this label will not come.")


class Labels(Options):
    labels: list[LabelledRow] = Field(min_length=1, max_length=100_000)


class CorrectedRow(LabelledRow):
    qualified: bool


class Corrections(Options):
    labels: list[CorrectedRow] = Field(min_length=1, max_length=100_000)


class LabellingName(Options):
    name: Name
    note: str = Field(default="", max_length=2000)


class LabellingView(BaseModel):
    """Where a labelling stands: how many labels are asked for now, or what can be promised."""

    id: str
    name: str
    target: str
    alpha: float
    labels: int
    candidates: int
    waiting: int
    needs_all: bool
    description: str
    promise: str | None
    refusal: str | None
    policy: str | None = Field(description="The policy that was saved from it.")
    receipt: Receipt


@api.with_table("/labellings", status=201, past=False)
def start_labelling(call: api.Maker, options: Annotated[LabellingOptions, Query()]) -> LabellingView:
    """Draw whom to label. The draw is made once and goes on record."""
    upload = structs.replace(call.past.upload, name="the collection")
    made = labelling.start(call, upload, options.asked(), reviewing.keep_of(options.keep, call.settings))
    return _answer(call.view, made.entry.subject)


def _answer(view: View, ident: str, counted: Entry[Event] | None = None) -> LabellingView:
    at = labelling.standing(view, ident)
    begun, now = at.entry.event, at.now
    return answers.view_of(
        LabellingView, begun, id=ident, waiting=len(now.waiting), needs_all=now.needs_all,
        description=now.description, promise=now.policy.promise if now.policy else None,
        refusal=now.refusal, policy=view.policy_of(ident), receipt=answers.receipt(counted or at.entry),
    )  # fmt: skip


@heavy(api.router.get("/labellings/{ident}"))
def show(ident: api.SelectionId, call: api.Auditor) -> LabellingView:
    """Where a labelling stands."""
    return _answer(call.view, ident)


@heavy(api.router.get("/labellings/{ident}/next"))
def next_rows(
    ident: api.SelectionId, call: api.Reader, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> list[labelling.AskedRow]:
    """Whom to label now. Asking again gives the same rows."""
    return labelling.asked_now(call, ident, limit)


@heavy(api.router.post("/labellings/{ident}/labels"))
def send_labels(
    ident: api.SelectionId, call: api.Maker, body: Annotated[Labels, sent(Labels, LABELS)]
) -> LabellingView:
    """Labels of rows that are asked for now. They count at once; see `corrections` for one that was wrong."""
    return _answer(call.view, ident, labelling.take(call, ident, _by_row(body.labels)).entry)


@heavy(api.router.post("/labellings/{ident}/corrections"))
def correct_labels(
    ident: api.SelectionId, call: api.Maker, body: Annotated[Corrections, sent(Corrections, LABELS)]
) -> LabellingView:
    """Labels in the place of others, while nothing rests on those. Both stay on record."""
    return _answer(call.view, ident, labelling.correct(call, ident, _by_row(body.labels)).entry)


def _by_row(given: Sequence[LabelledRow]) -> dict[int, Any]:
    labels = {each.row: each.qualified for each in given}
    if len(labels) < len(given):
        raise InvalidInput("labels", expected="one label per row", got="two of the same one")
    return labels


@heavy(api.router.post("/labellings/{ident}/save", status_code=201))
def save_policy(
    ident: api.SelectionId, call: api.Maker, body: Annotated[LabellingName, sent(LabellingName)]
) -> PolicyFile:  # fmt: skip
    """The certified policy on record."""
    return answers.policy_file(call.view.policy(labelling.save(call.view, ident, body.name, body.note)))
