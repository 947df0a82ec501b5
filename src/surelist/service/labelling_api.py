"""Labellings by API: start one, ask whom to label, send labels, see what can be promised, save it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from surelist.errors import InvalidInput
from surelist.service import answers, api, labelling, reviewing
from surelist.service.api import Auditor, IdempotencyKey, Maker, SelectionId, Service
from surelist.service.bodies import TABLE_BODY, body_schema, parsed_body, table_body
from surelist.service.models import Name, Number, Options, PolicyFile, Receipt, option
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, key_of
from surelist.service.uploads import Upload

LABELS = 4 << 20  # bytes of labels in one request
router = APIRouter(prefix="/api/v1", responses=api.router.responses)


class LabellingOptions(Options):
    """Columns of the collection, what is to be promised, and how many labels there can be."""

    score: Name = option("score")
    id: Name | None = Field(default=None, description="Column with candidate ids; row numbers without it.")
    group: Name | None = Field(default=None, description="Column with groups: the same is promised to each.")
    purpose: str = Field(default="", max_length=2000, description="With groups: why they are told apart.")
    promise: Literal["expected", "at-least", "recall", "precision"] = "expected"
    k: Number = Field(default=5, description="For `expected`: qualified on the list of an average pool.")
    pool_size: Number = Field(default=100, description="For `expected`: candidates in a pool.")
    many: int = Field(default=100, ge=1, description="For `at-least`: qualified on the list of these.")
    share: float = Field(
        default=0.9, gt=0, lt=1,
        description="For `recall`: of the qualified among these. For `precision`: of the list.",
    )  # fmt: skip
    alpha: float = Field(default=0.1, gt=0, lt=1)
    labels: int = Field(ge=1, le=10**6, description="How many candidates can be labelled.")
    name: Name = "labelling"
    sheet: Name | None = option("sheet")
    keep: int | None = Field(default=None, description="Seconds for which the candidates are kept.")

    def asked(self) -> dict[str, Any]:
        """As the form has it."""
        shares = {"alpha": self.alpha, "share": self.share, "purity": self.share}
        percents = {name: f"{100 * value:.15g}" for name, value in shares.items()}
        return {**labelling.asked_of(self.model_dump()), **percents}


class LabelledRow(BaseModel):
    model_config = ConfigDict(extra="forbid")
    row: int = Field(ge=0)
    qualified: bool | None = Field(description="null: this label will not come.")


class Labels(BaseModel):
    model_config = ConfigDict(extra="forbid")
    labels: list[LabelledRow] = Field(min_length=1, max_length=100_000)


class LabellingName(BaseModel):
    model_config = ConfigDict(extra="forbid")
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


class AskedRow(BaseModel):
    row: int
    candidate: str
    columns: dict[str, str]


BODIES = (Labels, LabellingName)


@router.post("/labellings", status_code=201, response_model=LabellingView, openapi_extra=TABLE_BODY)
async def start(
    request: Request,
    runtime: Service,
    view: Maker,
    options: Annotated[LabellingOptions, Query()],
    key: IdempotencyKey = None,
) -> Any:
    """Draw whom to label. The draw is made once and goes on record."""
    seconds = reviewing.keep_of({} if options.keep is None else {"keep": options.keep}, runtime.settings)
    async with table_body(request, runtime, past=False, sheet=options.sheet) as upload:
        draft = runtime.spool.add_draft("", "collection", "the collection", _kept(runtime, upload), seconds)
        draft = runtime.spool.note(draft, asked=options.asked())
        bound = key_of(key, "labelling", options.model_dump_json(), upload.sha256)
        try:
            ident = await runtime.work(labelling.start, runtime, view, draft, seconds, bound)
        except BaseException:
            runtime.spool.drop_draft(draft)
            raise
    return await runtime.work(_answer, view, ident)


def _kept(runtime: Runtime, upload: Upload) -> Upload:
    """The body as a file that stays when the request ends."""
    path = runtime.spool.new_path(upload.path.suffix[1:])
    os.link(upload.path, path)
    return replace(upload, path=path)


def _answer(view: View, ident: str) -> dict[str, Any]:
    at = labelling.standing(view, ident)
    entry, now = at.entry, at.now
    return {
        "id": ident,
        **{name: entry.facts[name] for name in ("name", "target", "alpha", "labels", "candidates")},
        "waiting": len(now.waiting), "needs_all": now.needs_all, "description": now.description,
        "promise": now.policy.promise if now.policy else None, "refusal": now.refusal,
        "policy": view.policy_of(ident), "receipt": answers.receipt(entry),
    }  # fmt: skip


@router.get("/labellings/{ident}", response_model=LabellingView)
async def show(ident: SelectionId, runtime: Service, view: Auditor) -> Any:
    """Where a labelling stands."""
    return await runtime.work(_answer, view, ident)


@router.get("/labellings/{ident}/next", response_model=list[AskedRow])
async def next_rows(
    ident: SelectionId,
    runtime: Service,
    view: Maker,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Any:
    """Whom to label now. Asking again gives the same rows."""
    return await runtime.work(labelling.asked_now, runtime, view, ident, limit)


@router.post("/labellings/{ident}/labels", response_model=LabellingView, openapi_extra=body_schema(Labels))
async def send_labels(
    ident: SelectionId, request: Request, runtime: Service, view: Maker, key: IdempotencyKey = None
) -> Any:
    """Labels of rows that are asked for now; they count at once and cannot change."""
    await runtime.read(view.labelling, ident)
    body = await parsed_body(request, runtime, Labels, LABELS)
    labels = {each.row: each.qualified for each in body.labels}
    if len(labels) < len(body.labels):
        raise InvalidInput("labels", expected="one label per row", got="two of the same one")
    bound = key_of(key, "labels", ident, body.model_dump_json())
    counted = await runtime.work(labelling.take, runtime, view, ident, labels, bound)
    return {**await runtime.work(_answer, view, ident), "receipt": answers.receipt(counted)}


@router.post(
    "/labellings/{ident}/save", status_code=201, response_model=PolicyFile,
    openapi_extra=body_schema(LabellingName),
)  # fmt: skip
async def save(
    ident: SelectionId, request: Request, runtime: Service, view: Maker, key: IdempotencyKey = None
) -> Any:
    """The certified policy on record."""
    await runtime.read(view.labelling, ident)
    body = await parsed_body(request, runtime, LabellingName)
    bound = key_of(key, "save", ident, body.model_dump_json())
    made = await runtime.work(labelling.save, view, ident, body.name, body.note, bound)
    return answers.policy_file(await runtime.read(view.policy, made))
