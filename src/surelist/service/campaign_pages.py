"""Campaigns by page: start one, screen its pools, update its threshold, see its history.

Pools are reviewed in the review workspace; plain forms that work without script.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from surelist.errors import InvalidInput, NotCertifiable, SurelistError
from surelist.reports import pictures
from surelist.service import calibrating, campaigns, drafts, jobs, reviewing, wizard
from surelist.service.campaign_api import finished_in, waiting_in
from surelist.service.choices import AboutList, ChosenColumns, until
from surelist.service.record import campaigns as events
from surelist.service.record.event import Entry, of_kind
from surelist.service.record.view import View
from surelist.service.runtime import Working
from surelist.service.uploads import Draft, Spool
from surelist.service.visitor import UPLOAD, Auditor, Maker, Uploader, Visitor, send, to, visit

router = APIRouter()
work = Working(router)


@router.get("/campaigns")
def all_campaigns(me: Auditor) -> Response:
    return me.show("campaigns.html", campaigns=running(me.view), viewer=me.view.actor.role == "viewer")


def running(view: View, limit: int | None = None) -> list[dict[str, object]]:
    """Campaigns with what is due, newest first; those that were withdrawn come with why."""
    found = [campaigns.Standing(view, each.subject) for each in view.all_campaigns(limit)]
    return [
        {"entry": now.entry, "now": now.after, "waiting": waiting_in(now), "withdrawn": now.withdrawn}
        for now in found
    ]


@router.get("/campaigns/new")
def new_campaign(me: Maker, like: str | None = None) -> Response:
    """Begin a campaign; ``like`` takes over the promise of a policy."""
    saved = me.view.policy(like) if like else None
    taken = saved and {
        "hash": saved.hash, "name": saved.name, "promise": saved.policy.promise,
        "fits": campaigns.terms_like(saved.policy) is not None,
    }  # fmt: skip
    return me.show("campaign_new.html", like=taken)


@work.post("/campaigns")
def upload_past(me: Uploader) -> Response:
    draft, asked = drafts.stored(me, past=True), dict(campaigns.DEFAULTS)
    like = me.said("like")
    if like and (terms := campaigns.terms_like(me.view.policy(like).policy)):
        k, size, alpha = terms
        asked |= {"k": f"{k:.10g}", "pool_size": f"{size:.10g}", "alpha": f"{100 * alpha:.10g}"}
    me.spool.note(draft, then="campaign", typed=asked)
    return to(f"/drafts/{draft.id}")


@router.get("/drafts/{ident}/campaign")
def terms_form(ident: str, me: Maker) -> Response:
    return _terms_page(me, drafts.past_of(me, ident))


def _terms_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    if draft.columns is None:
        return to(f"/drafts/{draft.id}")
    return me.show(
        "campaign_terms.html", problem.status if problem else 200, draft=draft, problem=problem,
        asked=campaigns.DEFAULTS | draft.typed, wrong=getattr(problem, "field", None),
        refused=isinstance(problem, NotCertifiable), shown=wizard.mark_of(draft.columns),
    )  # fmt: skip


@work.post("/drafts/{ident}/campaign")
def start(ident: str, me: Maker) -> Response:
    draft, asked = drafts.past_of(me, ident), campaigns.asked_of(me.form)
    wizard.require_shown(me.form, draft.columns)
    draft = me.spool.note(draft, typed=asked)
    assert draft.columns is not None
    name = asked["name"][:200] or draft.filename.rsplit(".", 1)[0]
    past, about = calibrating.Past(draft.upload), AboutList(name, asked["note"])
    try:
        made = campaigns.start(me, past, draft.columns, campaigns.terms_of(asked), about).entry.subject
    except (InvalidInput, NotCertifiable) as error:
        return _terms_page(me, draft, error)
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    return to(f"/campaigns/{made}")


@router.get("/campaigns/{ident}")
def show_campaign(ident: str, me: Auditor) -> Response:
    """A campaign with its history."""
    now = campaigns.Standing(me.view, ident)
    pools = _pools(me.view, me.spool, now)
    updates: list[Entry[events.CampaignStarted | events.CampaignUpdated]] = [now.entry]
    updates += of_kind(now.steps, events.CampaignUpdated)
    return me.show(
        "campaign.html", entry=now.entry, facts=now.begun, now=now.after, steps=len(now.steps),
        withdrawn=now.withdrawn, pools=pools[::-1], open=[each for each in pools if not each["finished"]],
        updates=updates, viewer=me.view.actor.role == "viewer",
        pictures=_pictures(updates, [each["made"] for each in pools]),
    )  # fmt: skip


def _pools(view: View, spool: Spool, now: campaigns.Standing) -> list[dict[str, Any]]:
    """Its pools, with how far their reviews are and until when their lists are kept."""
    finished, lines = finished_in(now), []
    for each in of_kind(now.steps, events.CampaignScreened):
        made, ident, kept = each.event, each.subject, spool.result(each.subject)
        labels = finished.get(ident)
        if labels is None:
            progress = reviewing.progress(view.marks(ident), made.to_review, view.reviewer(ident))
        else:
            progress = {"reviewed": len(labels) - labels.count("?"), "yes": labels.count("1"), "seen": 0}
        lines.append({
            "id": ident, "at": each.at, "made": made, "progress": progress,
            "finished": labels is not None or not made.to_review,
            "until": until(kept.until) if kept else None,
        })  # fmt: skip
    return lines


def _pictures(
    updates: list[Entry[events.CampaignStarted | events.CampaignUpdated]],
    pools: list[events.CampaignScreened],
) -> dict[str, str | None]:
    """List length and threshold by pool, once there is something to compare."""
    shares = [100 * each.shortlisted / each.candidates for each in pools if each.candidates]
    after = [each.event.after for each in updates]
    values = [(float(each.pools), each.threshold) for each in after if each.threshold is not None]
    return {
        "lengths": pictures.lengths(shares) if len(shares) > 1 else None,
        "thresholds": pictures.thresholds(values, len(pools)) if values and len(pools) > 1 else None,
    }


@work.post("/campaigns/{ident}/pool")
def upload_pool(
    ident: str, me: Annotated[Visitor, visit("operator", all_policies=True, of="campaign", limit=UPLOAD)]
) -> Response:
    draft = me.spool.note(drafts.stored(me, past=False, kind="campaign pool"), campaign=ident)
    return to(f"/campaigns/pools/{draft.id}")


@work.get("/campaigns/pools/{ident}")
def pool_form(ident: str, me: Maker) -> Response:
    return _pool_page(me, me.spool.draft(ident, me.owner, "campaign pool"))


def _pool_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/pools/{draft.id}/sheet")
    entry = me.view.campaign(draft.campaign or "")
    draft, profile = calibrating.profile(me, draft)
    known = {role: name for role, name in entry.event.columns.items() if name in profile.names}
    # another score than the calibrated one is never taken silently
    guessed = ChosenColumns(score=known.get("score"), id=known.get("id") or profile.guesses["id"])
    chosen = draft.columns or guessed
    return drafts.show_pool(me, "campaign_pool.html", draft, profile, chosen, problem, entry=entry)


@work.post("/campaigns/pools/{ident}")
def screen(ident: str, me: Maker) -> Response:
    """Shortlist the pool with the threshold in force."""
    before = me.spool.draft(ident, me.owner, "campaign pool")
    draft, columns, about, seconds = drafts.note_pool(me, before, longest=100)
    campaign = draft.campaign or ""
    try:
        entry = campaigns.screen(me, campaign, draft.upload, columns, about, seconds).entry
    except InvalidInput as error:
        return _pool_page(me, draft, error)
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    work = entry.event.to_review
    return to(f"/selections/{entry.subject}/review" if work else f"/campaigns/{campaign}")


@work.post("/campaigns/{ident}/update")
def update(ident: str, me: Maker) -> Response:
    """The scheduled update of the threshold."""
    steps = me.said("steps")
    if not (steps.isascii() and steps.isdigit() and len(steps) < 9):
        raise InvalidInput("steps", "the form does not say what it was made from. Load the page again.")
    campaigns.update(me, ident, int(steps))
    return to(f"/campaigns/{ident}#history")


@work.get("/campaigns/{ident}/pools/{pool}/shortlist.{format}")
def download(ident: str, pool: str, format: str, me: Maker) -> Response:
    entry, kept = me.view.pool(ident, pool), me.spool.result(pool)
    if kept is None or format not in jobs.FORMATS:
        raise InvalidInput("shortlist", "it is no longer kept here, or not in this format.")
    begun = me.view.campaign(ident).event
    name = jobs.file_name(begun.name, entry.event.name, entry.at, format)
    return send(jobs.campaign_list(me.spool, kept, format, entry.event), name)
