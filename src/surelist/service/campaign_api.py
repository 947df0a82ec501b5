"""Campaigns by API: start, screen, review, finish, update, and where they stand."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from msgspec import structs
from pydantic import BaseModel, Field

from surelist.service import answers, api, campaigns, reviewing
from surelist.service.api import Auditor, Maker, SelectionId
from surelist.service.choices import AboutList, ChosenColumns, Labels, until
from surelist.service.models import FileOptions, Name, Number, PastOptions, Receipt, ReviewsView
from surelist.service.record import campaigns as events
from surelist.service.record.event import Entry, of_kind
from surelist.service.runtime import Working
from surelist.service.uploads import Spool, list_of
from surelist.service.worklist import Worklist

router = APIRouter(prefix="/api/v1", responses=api.router.responses)
work = Working(router)


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


def finished_in(now: campaigns.Standing) -> dict[str, str]:
    """The labels of pools whose reviews have ended."""
    return {each.subject: each.event.labels for each in of_kind(now.steps, events.CampaignReviewed)}


def waiting_in(now: campaigns.Standing) -> list[Entry[events.CampaignScreened]]:
    """Pools whose reviews are not finished."""
    finished, screened = finished_in(now), of_kind(now.steps, events.CampaignScreened)
    return [each for each in screened if each.event.to_review and each.subject not in finished]


@api.with_table(router, "/campaigns", status=201)
def start(call: Maker, options: Annotated[CampaignOptions, Query()]) -> CampaignView:
    """Start a campaign from past candidates. 422 if its first threshold is not certifiable."""
    begun = campaigns.start(
        call, call.past, options.columns(), options.terms(), AboutList(options.name, options.note)
    )
    return where_it_stands(begun.entry.subject, call)


@router.get("/campaigns")
def all_campaigns(call: Auditor) -> list[CampaignView]:
    """Campaigns on record, newest first."""
    return [where_it_stands(each.subject, call) for each in call.view.all_campaigns()]


@router.get("/campaigns/{campaign}")
def where_it_stands(campaign: SelectionId, call: Auditor) -> CampaignView:
    """Where a campaign stands."""
    now = campaigns.Standing(call.view, campaign)
    return CampaignView(  # of what is known, what the answer has
        **{**structs.asdict(now.begun), **structs.asdict(now.after)}, id=campaign,
        withdrawn=now.withdrawn.event.reason if now.withdrawn else None,
        waiting=[each.subject for each in waiting_in(now)],
        receipt=answers.receipt(now.steps[-1] if now.steps else now.entry),
    )  # fmt: skip


@api.with_table(router, "/campaigns/{campaign}/screen", past=False)
def screen(campaign: SelectionId, call: Maker, options: Annotated[ScreenOptions, Query()]) -> ScreenedView:
    """Shortlist a pool with the threshold in force. 409 while an update is due, or after an alarm."""
    known = call.view.campaign(campaign).event.columns
    upload = structs.replace(call.past.upload, name="the pool")
    columns = ChosenColumns(
        score=options.score or known["score"], id=options.id or known["id"], decimal=options.decimal
    )
    seconds = reviewing.keep_of(options.keep, call.settings)
    about = AboutList(options.name, options.note, kept_until=until(time.time() + seconds))
    made = campaigns.screen(call, campaign, upload, columns, about, seconds).entry
    listed, drawn = _to_review(call.spool, made.subject)
    names = ("candidates", "shortlisted", "threshold", "kept_until")
    return ScreenedView(
        **{name: getattr(made.event, name) for name in names}, pool=made.subject, shortlist=listed,
        audit=drawn, receipt=answers.receipt(made), campaign=where_it_stands(campaign, call),
    )  # fmt: skip


def _to_review(spool: Spool, pool: str) -> tuple[list[str], list[str]]:
    """Who is to be reviewed of a pool, by id and the best score first: its list, and those drawn besides."""
    kept = spool.result(pool)
    if kept is None:
        return [], []
    with Worklist(list_of(kept.upload)) as work:
        names = list(work.ranked())
        return names[: work.listed], names[work.listed :]


@router.post("/campaigns/{campaign}/pools/{pool}/reviews", status_code=201)
def send_reviews(
    campaign: SelectionId, pool: SelectionId, call: Maker, body: api.SentReviews
) -> ReviewsView:  # fmt: skip
    """Say which candidates of a pool, listed or drawn besides, turned out to be qualified."""
    call.view.pool(campaign, pool)
    return api.take_reviews(pool, call, body)


@work.post("/campaigns/{campaign}/pools/{pool}/finish")
def finish(campaign: SelectionId, pool: SelectionId, call: Maker, body: api.SentFinish) -> CampaignView:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    call.view.pool(campaign, pool)
    written = campaigns.finish(call, pool, missing=body.missing)
    return answers.with_receipt(where_it_stands(campaign, call), written)


@work.post("/campaigns/{campaign}/update")
def update(campaign: SelectionId, call: Maker) -> CampaignView:
    """The scheduled update of the threshold; refused at any other time."""
    call.view.campaign(campaign)
    written = campaigns.update(call, campaign)
    return answers.with_receipt(where_it_stands(campaign, call), written)
