"""No labels yet? From a scored collection to a certified list: the app asks, people answer.

The candidates to label are answered in the review workspace; draw and answers are on record.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from surelist.errors import InvalidInput, SurelistError
from surelist.service import columns_form, drafts, file_check, labelling, promise_form, reviewing, wizard
from surelist.service.choices import ChosenColumns
from surelist.service.visitor import Me, Visitor, send, to

router = APIRouter()


@router.get("/labellings/new")
async def new_labelling(me: Me) -> Response:
    await me.view("operator", all_policies=True)
    return me.show("labelling_new.html")


@router.post("/labellings")
async def upload_collection(me: Me) -> Response:
    await me.view("operator", all_policies=True)
    form = await me.form(limit=drafts.form_with_file(me))
    draft = await drafts.stored(me, form, past=False, kind="collection")
    return to(f"/collections/{draft.id}")


@router.get("/collections/{ident}")
async def design_form(ident: str, me: Me) -> Response:
    await me.view("operator", all_policies=True)
    return await _design_page(me, ident)


async def _design_page(me: Visitor, ident: str, problem: SurelistError | None = None) -> Response:
    draft = me.spool.draft(ident, me.owner, "collection")
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/pools/{ident}/sheet")
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    guesses = {role: profile.guesses[role] or "" for role in ("score", "id")}
    asked = labelling.DEFAULTS | (draft.typed or guesses)
    return me.show(
        "labelling_design.html", 400 if problem else 200, draft=draft, profile=profile, asked=asked,
        first=columns_form.preview(profile, ChosenColumns(score=asked["score"], id=asked["id"])),
        offers=labelling.offers(), pieces=promise_form.parts, problem=problem,
        keep_choices=reviewing.keep_choices(me.settings),
    )  # fmt: skip


@router.post("/collections/{ident}")
async def start(ident: str, me: Me) -> Response:
    """Draw the candidates to label. The draw is made once."""
    view = await me.view("operator", all_policies=True)
    form = await me.form()
    draft = me.spool.note(me.spool.draft(ident, me.owner, "collection"), typed=labelling.asked_of(form))
    seconds = reviewing.keep_of(form.get("keep"), me.settings)
    try:
        made = await me.runtime.work(labelling.start, me.runtime, view, draft, seconds)
    except InvalidInput as error:
        return await _design_page(me, ident, error)
    return to(f"/labellings/{made}")


@router.get("/labellings/{ident}")
async def show_labelling(ident: str, me: Me) -> Response:
    view = await me.view(all_policies=True)
    shown = await me.runtime.work(labelling.shown, me.runtime, view, ident)
    return me.show("labelling.html", **shown, actor=view.actor)


@router.post("/labellings/{ident}/tell")
async def tell(ident: str, me: Me) -> Response:
    """The answers of this stage count from now on; the next stage, or a promise, follows."""
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.labelling, ident)
    missing = bool((await me.form()).get("missing"))
    await me.runtime.work(
        labelling.tell, me.runtime, view, ident, missing, me.key("tell", ident, str(missing))
    )
    return to(f"/labellings/{ident}")


@router.post("/labellings/{ident}/correct")
async def correct(ident: str, me: Me) -> Response:
    """One answer in the place of another that nothing rests on."""
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.labelling, ident)
    form = await me.form()
    candidate, qualified = str(form.get("candidate") or "").strip(), form.get("qualified") == "yes"
    key = me.key("correct", ident, candidate, str(qualified))
    await me.runtime.work(labelling.correct_one, me.runtime, view, ident, candidate, qualified, key)
    return to(f"/labellings/{ident}")


@router.post("/labellings/{ident}/save")
async def save(ident: str, me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.labelling, ident)
    name, note = wizard.description_of(await me.form())
    made: Any = await me.runtime.work(labelling.save, view, ident, name, note, me.key("save", ident, name))
    return to(f"/policies/{made}")


@router.post("/labellings/{ident}/list")
async def download_list(ident: str, me: Me) -> Response:
    """The certified list of the collection itself."""
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.labelling, ident)
    await me.form()
    path = await me.runtime.work(labelling.make_list, me.runtime, view, ident, me.key("list", ident))
    return send(path, f"list-{ident}.csv", "text/csv; charset=utf-8")
