"""No labels yet? From a scored collection to a certified list: the app asks, people answer.

The candidates to label are answered in the review workspace; draw and answers are on record.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from surelist.errors import InvalidInput, SurelistError
from surelist.service import calibrating, drafts, labelling, promise_form, reviewing, wizard
from surelist.service.choices import ChosenColumns
from surelist.service.runtime import Working
from surelist.service.uploads import Draft
from surelist.service.visitor import Auditor, Maker, Uploader, Visitor, send, to

router = APIRouter()
work = Working(router)


@router.get("/labellings/new")
def new_labelling(me: Maker) -> Response:
    return me.show("labelling_new.html")


@work.post("/labellings")
def upload_collection(me: Uploader) -> Response:
    return to(f"/collections/{drafts.stored(me, past=False, kind='collection').id}")


@work.get("/collections/{ident}")
def design_form(ident: str, me: Maker) -> Response:
    return _design_page(me, me.spool.draft(ident, me.owner, "collection"))


def _design_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/pools/{draft.id}/sheet")
    draft, profile = calibrating.profile(me, draft)
    guesses = {role: profile.guesses[role] or "" for role in ("score", "id")}
    asked = labelling.DEFAULTS | (draft.typed or guesses)
    return me.show(
        "labelling_design.html", 400 if problem else 200, draft=draft, profile=profile, asked=asked,
        first=wizard.preview(profile, ChosenColumns(score=asked["score"], id=asked["id"])),
        offers=labelling.offers(), pieces=promise_form.parts, problem=problem,
        keep_choices=reviewing.keep_choices(me.settings),
    )  # fmt: skip


@work.post("/collections/{ident}")
def start(ident: str, me: Maker) -> Response:
    """Draw the candidates to label. The draw is made once."""
    draft = me.spool.draft(ident, me.owner, "collection")
    draft = me.spool.note(draft, typed=labelling.asked_of(me.form))
    seconds = reviewing.keep_of(me.form.get("keep"), me.settings)
    try:
        return to(f"/labellings/{labelling.start(me, draft, seconds)}")
    except InvalidInput as error:
        return _design_page(me, draft, error)


@work.get("/labellings/{ident}")
def show_labelling(ident: str, me: Auditor) -> Response:
    return me.show("labelling.html", **labelling.shown(me, ident), actor=me.view.actor)


@work.get("/labellings/{ident}/report")
def report(ident: str, me: Auditor) -> Response:
    return HTMLResponse(labelling.report(me.view, ident))


@work.post("/labellings/{ident}/tell")
def tell(ident: str, me: Maker) -> Response:
    """The answers of this stage count from now on; the next stage, or a promise, follows."""
    labelling.tell(me, ident, bool(me.form.get("missing")))
    return to(f"/labellings/{ident}")


@work.post("/labellings/{ident}/correct")
def correct(ident: str, me: Maker) -> Response:
    """One answer in the place of another that nothing rests on."""
    labelling.correct_one(me, ident, me.said("candidate"), me.form.get("qualified") == "yes")
    return to(f"/labellings/{ident}")


@work.post("/labellings/{ident}/save")
def save(ident: str, me: Maker) -> Response:
    me.view.labelling(ident)
    return to(f"/policies/{labelling.save(me.view, ident, *wizard.description_of(me.form))}")


@work.post("/labellings/{ident}/list")
def download_list(ident: str, me: Maker) -> Response:
    """The certified list of the collection itself."""
    path = labelling.make_list(me, ident)
    return send(path, f"list-{ident}.csv", "text/csv; charset=utf-8")
