"""Campaigns by API: start, screen, review, finish, update, and where they stand."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.requests import Request

from surelist._check import DecimalMark, MissingLabels
from surelist.promises import kinds
from surelist.promises.grammar import one_target
from surelist.service import answers, api, campaign_views, campaigns, reviewing
from surelist.service.api import Auditor, IdempotencyKey, Maker, SelectionId, Service
from surelist.service.bodies import TABLE_BODY, body_schema, parsed_body, past_body, table_body
from surelist.service.models import Finish, Name, Number, Options, Receipt, Reviews, ReviewsView, option
from surelist.service.runtime import key_of

router = APIRouter(prefix="/api/v1", responses=api.router.responses)
CampaignId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]


class CampaignOptions(Options):
    """Columns of the past decisions, what the campaign promises, and when it learns."""

    score: Name = option("score")
    label: Name = option("label")
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
    missing_labels: MissingLabels = option("missing_labels")
    pos_label: list[Name] = option("pos_label")
    neg_label: list[Name] = option("neg_label")
    sheet: Name | None = option("sheet")
    decimal: DecimalMark = option("decimal")
    name: Name = Field(default="campaign", description="What people call the campaign.")
    note: str = Field(default="", max_length=2000)

    def terms(self) -> tuple[Any, dict[str, Any]]:
        return one_target(kinds.FIRST, {"k": self.k, "pool_size": self.pool_size}), {
            "alpha": self.alpha, "monitor_alpha": self.monitor_alpha,
            "schedule": tuple(self.schedule) or None,
            "uncertified": "everyone" if self.everyone else "refuse", "audit_rate": self.audit_rate,
        }  # fmt: skip


class ScreenOptions(Options):
    """Columns of a pool; by default those of the past decisions."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="A new name for each pool.")
    note: str = Field(default="", max_length=2000)
    score: Name | None = None
    id: Name | None = Field(default=None, description="Column with candidate ids: reviews go by them.")
    sheet: Name | None = option("sheet")
    decimal: DecimalMark = option("decimal")
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


@router.post("/campaigns", status_code=201, response_model=CampaignView, openapi_extra=TABLE_BODY)
async def start(
    request: Request,
    runtime: Service,
    view: Maker,
    options: Annotated[CampaignOptions, Query()],
    key: IdempotencyKey = None,
) -> Any:
    """Start a campaign from past candidates. 422 if its first threshold is not certifiable."""
    said = {"score", "label", "id", "missing_labels", "pos_label", "neg_label", "decimal"}
    columns = options.model_dump(include=said)
    about = {"name": options.name, "note": options.note}
    async with past_body(request, runtime, options.sheet) as past:
        bound = key_of(key, "campaign", options.model_dump_json(), past.upload.sha256)
        ident = await runtime.work(
            campaigns.start, runtime, view, past, columns, options.terms(), about, bound
        )
    return await campaign(ident, runtime, view)


@router.get("/campaigns", response_model=list[CampaignView])
async def all_campaigns(runtime: Service, view: Auditor) -> Any:
    """Campaigns on record, newest first."""
    begun = await runtime.read(view.campaigns.all)
    return [await runtime.read(campaign_views.as_answer, view, each.subject) for each in begun]


@router.get("/campaigns/{campaign}", response_model=CampaignView)
async def campaign(campaign: CampaignId, runtime: Service, view: Auditor) -> Any:
    """Where a campaign stands."""
    return await runtime.read(campaign_views.as_answer, view, campaign)


@router.post("/campaigns/{campaign}/screen", response_model=ScreenedView, openapi_extra=TABLE_BODY)
async def screen(
    campaign: CampaignId,
    request: Request,
    runtime: Service,
    view: Maker,
    options: Annotated[ScreenOptions, Query()],
    key: IdempotencyKey = None,
) -> Any:
    """Shortlist a pool with the threshold in force. 409 while an update is due, or after an alarm."""
    entry = await runtime.read(view.campaigns.one, campaign)
    known = entry.facts["columns"]
    columns = {
        "score": options.score or known["score"], "id": options.id or known["id"], "decimal": options.decimal,
    }  # fmt: skip
    seconds = reviewing.keep_of({} if options.keep is None else {"keep": options.keep}, runtime.settings)
    async with table_body(request, runtime, past=False, sheet=options.sheet) as upload:
        bound = key_of(key, "screen", campaign, options.model_dump_json(), upload.sha256)
        about = campaigns.about_pool(options.name, options.note, seconds)
        made = await runtime.work(
            campaigns.screen, runtime, view, campaign, upload, name="the pool", columns=columns,
            about=about, seconds=seconds, key=bound, format="parquet" if upload.origin else None,
        )  # fmt: skip
    listed, drawn = await runtime.read(campaign_views.to_review, runtime.spool, made.subject)
    return {
        "pool": made.subject,
        **{name: made.facts[name] for name in ("candidates", "shortlisted", "threshold")},
        "shortlist": listed, "audit": drawn,
        "kept_until": made.facts["kept_until"], "receipt": answers.receipt(made),
        "campaign": await runtime.read(campaign_views.as_answer, view, campaign),
    }  # fmt: skip


@router.post(
    "/campaigns/{campaign}/pools/{pool}/reviews",
    status_code=201,
    response_model=ReviewsView,
    openapi_extra=body_schema(Reviews),
)
async def send_reviews(
    campaign: CampaignId,
    pool: SelectionId,
    request: Request,
    runtime: Service,
    view: Maker,
    key: IdempotencyKey = None,
) -> Any:
    """Say which candidates of a pool, listed or drawn besides, turned out to be qualified."""
    await runtime.read(view.campaigns.pool, campaign, pool)
    return await api.take_reviews(pool, request, runtime, view, key)


@router.post(
    "/campaigns/{campaign}/pools/{pool}/finish",
    response_model=CampaignView,
    openapi_extra=body_schema(Finish),
)
async def finish(
    campaign: CampaignId,
    pool: SelectionId,
    request: Request,
    runtime: Service,
    view: Maker,
    key: IdempotencyKey = None,
) -> Any:
    """End the reviews of a pool: they count from now on, and may raise the alarm."""
    await runtime.read(view.campaigns.pool, campaign, pool)
    body = await parsed_body(request, runtime, Finish)
    bound = key_of(key, "finish", pool, body.model_dump_json())
    written = await runtime.work(
        campaigns.finish, view, runtime.spool, pool, missing=body.missing, key=bound
    )  # fmt: skip
    known = await runtime.read(campaign_views.as_answer, view, campaign)
    return {**known, "receipt": answers.receipt(written)}


@router.post("/campaigns/{campaign}/update", response_model=CampaignView)
async def update(campaign: CampaignId, runtime: Service, view: Maker, key: IdempotencyKey = None) -> Any:
    """The scheduled update of the threshold; refused at any other time."""
    await runtime.read(view.campaigns.one, campaign)
    bound = key_of(key, "update", campaign)
    written = await runtime.work(campaigns.update, view, campaign, None, bound)
    known = await runtime.read(campaign_views.as_answer, view, campaign)
    return {**known, "receipt": answers.receipt(written)}
