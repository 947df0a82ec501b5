"""Campaigns by API: start, screen, review, finish, update, and where they stand."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from surelist.service import answers, api, campaign_views, campaigns, reviewing
from surelist.service.api import Auditor, Maker, SelectionId
from surelist.service.bodies import TABLE_BODY, body_schema, past_body
from surelist.service.campaign_views import CampaignView
from surelist.service.choices import AboutList, ChosenColumns, Labels, until
from surelist.service.models import (
    FileOptions,
    Finish,
    Name,
    Number,
    PastOptions,
    Receipt,
    Reviews,
    ReviewsView,
)

router = APIRouter(prefix="/api/v1", responses=api.router.responses)


class CampaignOptions(PastOptions):
    """ChosenColumns of the past decisions, what the campaign promises, and when it learns."""

    id: Name | None = Field(default=None, description="Column with candidate ids, in the pools to come.")
    k: Number = Field(description="Qualified candidates on the list of an average pool.")
    pool_size: Number = Field(description="Candidates in a pool.")
    alpha: float = Field(
        default=0.1, gt=0, lt=1, description="The chance that any threshold is false is at most this."
    )
    monitor_alpha: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="How often a false alarm may be raised, over the whole campaign.",
    )
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


@router.post("/campaigns", status_code=201, openapi_extra=TABLE_BODY)
async def start(call: Maker, options: Annotated[CampaignOptions, Query()]) -> CampaignView:
    """Start a campaign from past candidates. 422 if its first threshold is not certifiable."""
    async with past_body(call.request, call.runtime, options.sheet) as past:
        key = call.key("campaign", options.model_dump_json(), past.upload.sha256)
        ident = await call.work(
            campaigns.start, call.runtime, call.view, past, options.columns(), options.terms(), options.name,
            options.note, key,
        )  # fmt: skip
    return await campaign(ident, call)


@router.get("/campaigns")
async def all_campaigns(call: Auditor) -> list[CampaignView]:
    """Campaigns on record, newest first."""
    return [await campaign(each.subject, call) for each in await call.read(call.view.all_campaigns)]


@router.get("/campaigns/{campaign}")
async def campaign(campaign: SelectionId, call: Auditor) -> CampaignView:
    """Where a campaign stands."""
    return await call.read(campaign_views.as_answer, call.view, campaign)


@router.post("/campaigns/{campaign}/screen", openapi_extra=TABLE_BODY)
async def screen(
    campaign: SelectionId, call: Maker, options: Annotated[ScreenOptions, Query()]
) -> ScreenedView:
    """Shortlist a pool with the threshold in force. 409 while an update is due, or after an alarm."""
    known = (await call.read(call.view.campaign, campaign)).event.columns
    columns = ChosenColumns(
        score=options.score or known["score"], id=options.id or known["id"], decimal=options.decimal
    )
    seconds = reviewing.keep_of(options.keep, call.runtime.settings)
    async with call.table(past=False, sheet=options.sheet) as upload:
        about = AboutList(options.name, options.note, kept_until=until(time.time() + seconds))
        made = await call.work(
            campaigns.screen, call.runtime, call.view, campaign, upload, name="the pool", columns=columns,
            about=about, seconds=seconds, format="parquet" if upload.origin else None,
            key=call.key("screen", campaign, options.model_dump_json(), upload.sha256),
        )  # fmt: skip
    listed, drawn = await call.read(campaign_views.to_review, call.runtime.spool, made.subject)
    names = ("candidates", "shortlisted", "threshold", "kept_until")
    return ScreenedView(
        **{name: getattr(made.event, name) for name in names}, pool=made.subject, shortlist=listed,
        audit=drawn, receipt=answers.receipt(made),
        campaign=await call.read(campaign_views.as_answer, call.view, campaign),
    )  # fmt: skip


@router.post(
    "/campaigns/{campaign}/pools/{pool}/reviews", status_code=201, openapi_extra=body_schema(Reviews)
)
async def send_reviews(campaign: SelectionId, pool: SelectionId, call: Maker) -> ReviewsView:
    """Say which candidates of a pool, listed or drawn besides, turned out to be qualified."""
    await call.read(call.view.pool, campaign, pool)
    return await api.take_reviews(pool, call)


@router.post("/campaigns/{campaign}/pools/{pool}/finish", openapi_extra=body_schema(Finish))
async def finish(campaign: SelectionId, pool: SelectionId, call: Maker) -> CampaignView:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    await call.read(call.view.pool, campaign, pool)
    body = await call.body(Finish)
    key, spool = call.key("finish", pool, body.model_dump_json()), call.runtime.spool
    written = await call.work(campaigns.finish, call.view, spool, pool, missing=body.missing, key=key)
    known = await call.read(campaign_views.as_answer, call.view, campaign)
    return answers.with_receipt(known, written)


@router.post("/campaigns/{campaign}/update")
async def update(campaign: SelectionId, call: Maker) -> CampaignView:
    """The scheduled update of the threshold; refused at any other time."""
    await call.read(call.view.campaign, campaign)
    written = await call.work(campaigns.update, call.view, campaign, None, call.key("update", campaign))
    known = await call.read(campaign_views.as_answer, call.view, campaign)
    return answers.with_receipt(known, written)
