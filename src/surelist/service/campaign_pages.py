"""Campaigns by page and by API: start one, screen its pools, update its threshold, see its history.

Pools are reviewed in the review workspace; plain forms that work without script.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import Query
from msgspec import structs
from pydantic import BaseModel, Field
from starlette.responses import Response

from surelist.errors import InvalidInput, NotCertifiable, SurelistError
from surelist.reports import pictures
from surelist.service import answers, api, calibrating, campaigns, drafts, jobs, reviewing, wizard
from surelist.service.choices import AboutList, ChosenColumns, Labels, until
from surelist.service.models import FileOptions, Name, Number, PastOptions, Receipt, ReviewsView
from surelist.service.record import campaigns as events
from surelist.service.record.event import Entry, of_kind
from surelist.service.record.view import View
from surelist.service.runtime import heavy
from surelist.service.uploads import Draft, Spool
from surelist.service.visitor import UPLOAD, Auditor, Maker, Uploader, Visitor, router, send, to, visit


@router.get("/campaigns")
def all_campaigns(me: Auditor) -> Response:
    return me.show(
        "campaigns.html", campaigns=campaigns.running(me.view), viewer=me.view.actor.role == "viewer"
    )


@router.get("/campaigns/new")
def new_campaign(me: Maker) -> Response:
    return me.show("campaign_new.html")


@heavy(router.post("/campaigns"))
def upload_past(me: Uploader) -> Response:
    return to(f"/drafts/{drafts.stored(me, 'past', then='campaign').id}")


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


@heavy(router.post("/drafts/{ident}/campaign"))
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
    made = [each["made"] for each in pools if each["made"].candidates]
    shares = [100 * each.shortlisted / each.candidates for each in made]
    return me.show(
        "campaign.html", entry=now.entry, facts=now.begun, now=now.after, steps=len(now.steps),
        withdrawn=now.withdrawn, pools=pools[::-1], open=[each for each in pools if not each["finished"]],
        updates=updates, viewer=me.view.actor.role == "viewer",
        lengths=pictures.lengths(shares) if len(shares) > 1 else None,
    )  # fmt: skip


def _pools(view: View, spool: Spool, now: campaigns.Standing) -> list[dict[str, Any]]:
    """Its pools, with how far their reviews are and until when their lists are kept."""
    finished, lines = now.finished, []
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


@heavy(router.post("/campaigns/{ident}/pool"))
def upload_pool(
    ident: str, me: Annotated[Visitor, visit("operator", all_policies=True, of="campaign", limit=UPLOAD)]
) -> Response:
    return to(f"/campaigns/pools/{drafts.stored(me, 'campaign pool', campaign=ident).id}")


@heavy(router.get("/campaigns/pools/{ident}"))
def pool_form(ident: str, me: Maker) -> Response:
    return _pool_page(me, me.spool.draft(ident, me.owner, "campaign pool"))


def _pool_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft)
    entry = me.view.campaign(draft.campaign or "")
    draft, profile = calibrating.profile(me, draft)
    known = {role: name for role, name in entry.event.columns.items() if name in profile.names}
    # another score than the calibrated one is never taken silently
    guessed = ChosenColumns(score=known.get("score"), id=known.get("id") or profile.guesses["id"])
    chosen = draft.columns or guessed
    return drafts.show_pool(me, "campaign_pool.html", draft, profile, chosen, problem, entry=entry)


@heavy(router.post("/campaigns/pools/{ident}"))
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


@heavy(router.post("/campaigns/{ident}/update"))
def update(ident: str, me: Maker) -> Response:
    """The scheduled update of the threshold."""
    steps = me.said("steps")
    if not (steps.isascii() and steps.isdigit() and len(steps) < 9):
        raise InvalidInput("steps", "the form does not say what it was made from. Load the page again.")
    campaigns.update(me, ident, int(steps))
    return to(f"/campaigns/{ident}#history")


@heavy(router.get("/campaigns/{ident}/pools/{pool}/shortlist.{format}"))
def download(ident: str, pool: str, format: str, me: Maker) -> Response:
    entry, kept = me.view.pool(ident, pool), me.spool.result(pool)
    if kept is None or format not in jobs.FORMATS:
        raise InvalidInput("shortlist", "it is no longer kept here, or not in this format.")
    begun = me.view.campaign(ident).event
    name = jobs.file_name(begun.name, entry.event.name, entry.at, format)
    return send(jobs.campaign_list(me.spool, kept, format, entry.event), name)


class CampaignOptions(PastOptions):
    """ChosenColumns of the past decisions, what the campaign promises, and when it learns."""

    id: Name | None = Field(default=None, description="Column with candidate ids, in the pools to come.")
    k: Number = Field(description="Qualified candidates on the list of an average pool.")
    pool_size: Number = Field(description="Candidates in a pool.")
    alpha: float = Field(default=0.1, gt=0, lt=1, description="How often any threshold may be false.")
    monitor_alpha: float = Field(default=0.05, gt=0, lt=1, description="How often a false alarm may come.")
    schedule: list[int] = Field(
        default=[], max_length=60,
        description="After how many pools the threshold is updated; by default at fourfold rows.",
    )  # fmt: skip
    everyone: bool = Field(
        default=False, description="Shortlist everyone until an update certifies a threshold, if need be."
    )
    audit_rate: float | None = Field(
        default=None, gt=0, lt=1,
        description="Draw every candidate with this probability, listed or not, and learn from the reviews "
        "of those drawn alone; the threshold may fall then. Who is to be reviewed beside the list comes "
        "with every pool.",
    )  # fmt: skip
    name: Name = Field(default="campaign", description="What people call the campaign.")
    note: str = Field(default="", max_length=2000)

    def terms(self) -> campaigns.CampaignTerms:
        return campaigns.CampaignTerms(
            campaigns.target_of(self.k, self.pool_size), self.alpha, self.monitor_alpha,
            tuple(self.schedule) or None, "everyone" if self.everyone else "refuse", self.audit_rate,
        )  # fmt: skip

    def columns(self) -> ChosenColumns:
        labels: Labels = "unqualified" if self.missing_labels == "unqualified" else "all"
        return ChosenColumns(
            score=self.score, label=self.label, id=self.id, labels=labels, decimal=self.decimal,
            pos_label=tuple(self.pos_label), neg_label=tuple(self.neg_label),
        )  # fmt: skip


class ScreenOptions(FileOptions):
    """ChosenColumns of a pool; by default those of the past decisions."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="A new name for each pool.")
    note: str = Field(default="", max_length=2000)
    score: Name | None = None
    id: Name | None = Field(default=None, description="Column with candidate ids: reviews go by them.")
    keep: int | None = Field(
        default=None, description="Seconds for which the list is kept; reviews have to be finished by then."
    )


class CampaignView(BaseModel):
    """Where a campaign stands."""

    id: str
    name: str
    target: str
    alpha: float
    spent: float = Field(description="Of alpha, by the updates so far.")
    schedule: list[int]
    audit_rate: float | None = Field(description="With which everyone is drawn for an audit, if at all.")
    promise: str
    threshold: float | None = Field(description="In force for the next pool; null while everyone is listed.")
    list_size: float = Field(description="Candidates to expect on the list of a pool of the promised size.")
    pools: int
    rows: int
    next_update: int | None = Field(description="After how many pools the threshold is updated again.")
    due: bool = Field(description="Whether that comes before the next pool.")
    standing: str
    sentence: str
    withdrawn: str | None
    waiting: list[str] = Field(description="Pools whose reviews are not finished.")
    receipt: Receipt


class ScreenedView(BaseModel):
    """A pool that was screened; listed candidates by id, the best score first."""

    pool: str
    candidates: int
    shortlisted: int
    threshold: float | None
    shortlist: list[str]
    audit: list[str] = Field(description="With `audit_rate`: whom to review beside the shortlist.")
    kept_until: str
    campaign: CampaignView
    receipt: Receipt


@api.with_table("/campaigns", status=201)
def start_campaign(call: api.Maker, options: Annotated[CampaignOptions, Query()]) -> CampaignView:
    """Start a campaign from past candidates. 422 if its first threshold is not certifiable."""
    begun = campaigns.start(
        call, call.past, options.columns(), options.terms(), AboutList(options.name, options.note)
    )
    return where_it_stands(begun.entry.subject, call)


@api.router.get("/campaigns")
def campaigns_on_record(call: api.Auditor) -> list[CampaignView]:
    """Campaigns on record, newest first."""
    return [where_it_stands(each.subject, call) for each in call.view.all_campaigns()]


@api.router.get("/campaigns/{campaign}")
def where_it_stands(campaign: api.SelectionId, call: api.Auditor) -> CampaignView:
    """Where a campaign stands."""
    now = campaigns.Standing(call.view, campaign)
    return CampaignView(  # of what is known, what the answer has
        **{**structs.asdict(now.begun), **structs.asdict(now.after)}, id=campaign,
        withdrawn=now.withdrawn.event.reason if now.withdrawn else None,
        waiting=[each.subject for each in now.waiting],
        receipt=answers.receipt(now.steps[-1] if now.steps else now.entry),
    )  # fmt: skip


@api.with_table("/campaigns/{campaign}/screen", past=False)
def screen_pool(
    campaign: api.SelectionId, call: api.Maker, options: Annotated[ScreenOptions, Query()]
) -> ScreenedView:
    """Shortlist a pool with the threshold in force. 409 while an update is due, or after an alarm."""
    known = call.view.campaign(campaign).event.columns
    upload = structs.replace(call.past.upload, name="the pool")
    columns = ChosenColumns(
        score=options.score or known["score"], id=options.id or known["id"], decimal=options.decimal
    )
    seconds = reviewing.keep_of(options.keep, call.settings)
    about = AboutList(options.name, options.note, kept_until=until(time.time() + seconds))
    made = campaigns.screen(call, campaign, upload, columns, about, seconds).entry
    kept = reviewing.known_list(call.spool, made.subject)
    return answers.view_of(
        ScreenedView, made.event, pool=made.subject,
        shortlist=[name for name in kept.ranks if name not in kept.audited],
        audit=[name for name in kept.ranks if name in kept.audited],
        receipt=answers.receipt(made), campaign=where_it_stands(campaign, call),
    )  # fmt: skip


@api.router.post("/campaigns/{campaign}/pools/{pool}/reviews", status_code=201)
def send_reviews(
    campaign: api.SelectionId, pool: api.SelectionId, call: api.Maker, body: api.SentReviews
) -> ReviewsView:  # fmt: skip
    """Say which candidates of a pool, listed or drawn besides, turned out to be qualified."""
    call.view.pool(campaign, pool)
    return api.take_reviews(pool, call, body)


@heavy(api.router.post("/campaigns/{campaign}/pools/{pool}/finish"))
def finish(
    campaign: api.SelectionId, pool: api.SelectionId, call: api.Maker, body: api.SentFinish
) -> CampaignView:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    call.view.pool(campaign, pool)
    written = campaigns.finish(call, pool, missing=body.missing)
    return answers.with_receipt(where_it_stands(campaign, call), written)


@heavy(api.router.post("/campaigns/{campaign}/update"))
def update_threshold(campaign: api.SelectionId, call: api.Maker) -> CampaignView:
    """The scheduled update of the threshold; refused at any other time."""
    call.view.campaign(campaign)
    written = campaigns.update(call, campaign)
    return answers.with_receipt(where_it_stands(campaign, call), written)
