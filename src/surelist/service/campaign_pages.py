"""Campaigns by page: start one, screen its pools, update its threshold, see its history.

Pools are reviewed in the review workspace; plain forms that work without script.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from surelist.errors import InvalidInput, NotCertifiable, SurelistError
from surelist.service import (
    campaign_views,
    campaigns,
    downloading,
    drafts,
    file_check,
    wizard,
)
from surelist.service.calibrating import Past
from surelist.service.choices import ChosenColumns
from surelist.service.uploads import Draft
from surelist.service.visitor import Me, Visitor, send, to

KEPT_AS = ("csv", "jsonl", "parquet", "xlsx")
router = APIRouter()


@router.get("/campaigns")
async def all_campaigns(me: Me) -> Response:
    view = await me.view(all_policies=True)
    found = await me.runtime.read(campaign_views.running, view)
    return me.show("campaigns.html", campaigns=found, viewer=view.actor.role == "viewer")


@router.get("/campaigns/new")
async def new_campaign(me: Me, like: str | None = None) -> Response:
    """Begin a campaign; ``like`` takes over the promise of a policy."""
    view = await me.view("operator", all_policies=True)
    saved = await me.runtime.read(view.policy, like) if like else None
    taken = saved and {
        "hash": saved.hash, "name": saved.name, "promise": saved.policy.promise,
        "fits": campaigns.terms_like(saved.policy) is not None,
    }  # fmt: skip
    return me.show("campaign_new.html", like=taken)


@router.post("/campaigns")
async def upload_past(me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    form = await me.form(limit=drafts.form_with_file(me))
    draft = await drafts.stored(me, form, past=True)
    like = str(form.get("like") or "")
    terms = campaigns.terms_like((await me.runtime.read(view.policy, like)).policy) if like else None
    asked = dict(campaigns.DEFAULTS)
    if terms is not None:
        k, size, alpha = terms
        asked |= {"k": f"{k:.10g}", "pool_size": f"{size:.10g}", "alpha": f"{100 * alpha:.10g}"}
    me.spool.note(draft, then="campaign", typed=asked)
    return to(f"/drafts/{draft.id}")


@router.get("/drafts/{ident}/campaign")
async def terms_form(ident: str, me: Me) -> Response:
    await me.view("operator", all_policies=True)
    return _terms_page(me, me.spool.draft(ident, me.owner, "past"))


def _terms_page(me: Visitor, draft: Draft, problem: Exception | None = None) -> Response:
    if draft.columns is None:
        return to(f"/drafts/{draft.id}")
    status = 200 if problem is None else getattr(problem, "status", 400)
    return me.show(
        "campaign_terms.html", status, draft=draft, problem=problem,
        asked=campaigns.DEFAULTS | draft.typed, wrong=getattr(problem, "field", None),
        refused=isinstance(problem, NotCertifiable), shown=wizard.mark_of(draft.columns),
    )  # fmt: skip


@router.post("/drafts/{ident}/campaign")
async def start(ident: str, me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    draft, form = me.spool.draft(ident, me.owner, "past"), await me.form()
    wizard.require_shown(form, draft.columns)
    asked = campaigns.asked_of(form)
    draft = me.spool.note(draft, typed=asked)
    name = asked["name"][:200] or draft.filename.rsplit(".", 1)[0]
    past, key = Past(draft.upload, draft.filename), me.key("campaign", draft.upload.sha256, repr(asked))
    try:
        terms = campaigns.terms_of(asked)
        made = await me.runtime.work(
            campaigns.start, me.runtime, view, past, draft.columns, terms, name, asked["note"], key
        )
    except (InvalidInput, NotCertifiable) as error:
        return _terms_page(me, draft, error)
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    return to(f"/campaigns/{made}")


@router.get("/campaigns/{ident}")
async def show_campaign(ident: str, me: Me) -> Response:
    view = await me.view(all_policies=True)
    shown = await me.runtime.read(campaign_views.shown, view, me.spool, ident)
    return me.show("campaign.html", **shown, viewer=view.actor.role == "viewer")


@router.post("/campaigns/{ident}/pool")
async def upload_pool(ident: str, me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.campaign, ident)
    form = await me.form(limit=drafts.form_with_file(me))
    draft = await drafts.stored(me, form, past=False, kind="campaign pool")
    me.spool.note(draft, campaign=ident)
    return to(f"/campaigns/pools/{draft.id}")


@router.get("/campaigns/pools/{ident}")
async def pool_form(ident: str, me: Me) -> Response:
    await me.view("operator", all_policies=True)
    return await _pool_page(me, ident)


async def _pool_page(me: Visitor, ident: str, problem: SurelistError | None = None) -> Response:
    view = await me.view("operator", all_policies=True)
    draft = me.spool.draft(ident, me.owner, "campaign pool")
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/pools/{ident}/sheet")
    entry = await me.runtime.read(view.campaign, draft.campaign)
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    known = {role: name for role, name in entry.event.columns.items() if name in profile.names}
    # another score than the calibrated one is never taken silently
    guessed = ChosenColumns(score=known.get("score"), id=known.get("id") or profile.guesses["id"])
    chosen = draft.columns or guessed
    return drafts.show_pool(me, "campaign_pool.html", draft, profile, chosen, problem, entry=entry)


@router.post("/campaigns/pools/{ident}")
async def screen(ident: str, me: Me) -> Response:
    """Shortlist the pool with the threshold in force."""
    view = await me.view("operator", all_policies=True)
    draft, form = me.spool.draft(ident, me.owner, "campaign pool"), await me.form()
    draft, columns, about, seconds = drafts.note_pool(me, draft, form, longest=100)
    campaign = draft.campaign or ""
    try:
        entry = await me.runtime.work(
            campaigns.screen, me.runtime, view, campaign, draft.upload, name=draft.filename, columns=columns,
            about=about, seconds=seconds, key=me.key("screen", ident),
            format="parquet" if draft.upload.origin else None,
        )  # fmt: skip
    except InvalidInput as error:
        return await _pool_page(me, ident, error)
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    work = entry.event.to_review
    return to(f"/selections/{entry.subject}/review" if work else f"/campaigns/{campaign}")


@router.post("/campaigns/{ident}/update")
async def update(ident: str, me: Me) -> Response:
    """The scheduled update of the threshold."""
    view = await me.view("operator", all_policies=True)
    await me.runtime.read(view.campaign, ident)
    steps = str((await me.form()).get("steps") or "")
    if not (steps.isascii() and steps.isdigit() and len(steps) < 9):
        raise InvalidInput("steps", "the form does not say what it was made from. Load the page again.")
    await me.runtime.work(campaigns.update, view, ident, int(steps), me.key("update", ident, steps))
    return to(f"/campaigns/{ident}#history")


@router.get("/campaigns/{ident}/pools/{pool}/shortlist.{format}")
async def download(ident: str, pool: str, format: str, me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    entry = await me.runtime.read(view.pool, ident, pool)
    kept = me.spool.result(pool)
    if kept is None or format not in KEPT_AS:
        raise InvalidInput("shortlist", "it is no longer kept here, or not in this format.")
    begun = await me.runtime.read(view.campaign, ident)
    name = downloading.file_name(begun.event.name, entry.event.name, entry.at, format)
    path = await me.runtime.work(downloading.campaign_list, me.spool, kept, format, entry.event)
    return send(path, name)
