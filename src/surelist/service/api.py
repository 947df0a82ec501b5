"""The API, version 1: options in the query, the table in the body (JSON rows, CSV or Parquet)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from surelist.errors import InvalidInput, NotCertifiable
from surelist.service import answers as views
from surelist.service import jobs as operations
from surelist.service import models
from surelist.service.errors import MEANING, WrongType
from surelist.service.models import ErrorView
from surelist.service.record.access import Actor
from surelist.service.runtime import Context, context_of, key_of
from surelist.service.spreadsheet import escape_file
from surelist.service.uploads import TooLarge, Upload
from surelist.workflows import tables as workflows

INLINE = 1 << 20  # JSON bodies up to this size are worked on at once, larger ones on a thread

router = APIRouter(
    prefix="/api/v1",
    responses={status: {"model": ErrorView, "description": said} for status, said in MEANING.items()},
)

Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of the policy.")]
SelectionId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$",
           description="Sent again with the same request, nothing is recorded twice."),
]  # fmt: skip
Limit = Annotated[int, Query(ge=1, le=500)]
Before = Annotated[int | None, Query(ge=1, le=2**62, description="Entries before this sequence number.")]

TABLE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Rows"}},
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
FILE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": models.Shortlist,
        "description": "For JSON the shortlisted rows with the receipt; for files the shortlist, with the "
        "selection in `Surelist-Selection` and the receipt in `Surelist-Receipt`.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def _role(role: str) -> Any:
    async def actor(request: Request) -> Actor:
        context = context_of(request)
        if not context.settings.login:
            return context.actor(request, role)
        return await context.read(context.actor, request, role)

    return Depends(actor)


Viewer = Annotated[Actor, _role("viewer")]
Operator = Annotated[Actor, _role("operator")]
Admin = Annotated[Actor, _role("admin")]


async def _here(request: Request) -> Context:  # async: FastAPI would send a plain function to a thread
    return context_of(request)


Here = Annotated[Context, Depends(_here)]

SELECT_PARAMETERS = [
    {"name": name, "in": "query", "required": False, "schema": part}
    for name, part in models.SelectOptions.model_json_schema()["properties"].items()
]


def _select_options(request: Request) -> models.SelectOptions:
    """By hand, since selections are many and mostly have none: a fifth of the time of a request."""
    if not request.scope["query_string"]:
        return models.SelectOptions()
    query = request.query_params
    raw = {name: query.getlist(name) if name == "attribute" else query[name] for name in query}
    try:
        return models.SelectOptions.model_validate(raw)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


@router.post("/calibrate", status_code=201, response_model=models.PolicyFile, openapi_extra=TABLE_BODY)
async def calibrate(
    request: Request,
    here: Here,
    actor: Operator,
    options: Annotated[models.CalibrateOptions, Query()],
    key: IdempotencyKey = None,
) -> Any:
    """Certify a promise from past candidates and put the policy on record.

    422 if it is not certifiable. Every look at the same rows is recorded: trying again with
    another promise is not covered by the first one's alpha.
    """
    asked = options.request()
    async with _table(request, here) as upload:

        def job() -> str:
            looks = operations.record_look(here.registry, upload, actor, "calibrate", asked.said)
            try:
                policy = operations.calibrate(asked, upload)
            except NotCertifiable:
                here.metrics.refused.inc()
                raise
            bound = key_of(key, "calibrate", options.model_dump_json(), upload.sha256)
            written = operations.save(here.registry, policy, asked, upload, actor, options.name, looks, bound)
            return written.entry.subject

        digest = await here.work(job)
    return views.policy_file(await here.read(here.registry.policy, digest))


@router.post("/curve", response_model=models.CurveView, openapi_extra=TABLE_BODY)
async def curve(
    request: Request, here: Here, actor: Operator, options: Annotated[models.CurveOptions, Query()]
) -> Any:
    """For every list size the qualified candidates certified, all at once: for choosing after looking."""
    async with _table(request, here) as upload:
        said: dict[str, Any] = {"alpha": options.alpha, "rule": options.rule, "targets": {}}
        await here.read(operations.record_look, here.registry, upload, actor, "curve", said)

        def job() -> Any:
            with operations.named(upload, "the upload"):
                return workflows.curve(upload.path, **options.model_dump())

        found = await here.work(job)
    return {
        "rule": found.rule, "alpha": found.alpha, "pool_size": found.pool_size, "rows": found.rows,
        "list_size": found.list_size.tolist(), "qualified": found.qualified.tolist(),
        "threshold": found.threshold.tolist(),
    }  # fmt: skip


@router.get("/policies", response_model=list[models.PolicyView])
async def policies(here: Here, actor: Viewer, limit: Limit = 100, before: Before = None) -> Any:
    """Policies on record, newest first."""
    found = await here.read(here.registry.policies, limit, before)
    return [views.policy(each) for each in found if actor.policy in (None, each.hash)]


@router.get("/policies/{policy}", response_model=models.PolicyFile)
async def policy(policy: Digest, here: Here, actor: Viewer) -> Any:
    """One policy with its file. A salt for ties stays secret."""
    actor.require_policy(policy)
    return views.policy_file(await here.read(here.registry.policy, policy))


@router.post("/policies/{policy}/retire", response_model=models.Receipt)
async def retire(
    policy: Digest, body: models.Retirement, here: Here, actor: Admin, key: IdempotencyKey = None
) -> Any:
    """End a policy. It stays on record and makes no new shortlists."""
    bound = key_of(key, "retire", policy, body.reason)
    written = await here.written(here.registry.retire_policy(policy, actor.name, body.reason, bound))
    return views.receipt(written)


@router.get("/policies/{policy}/report", response_class=Response, responses=views.HTML_ANSWER)
async def policy_report(policy: Digest, here: Here, actor: Viewer) -> Response:
    """The audit report of a policy, as one HTML file."""
    actor.require_policy(policy)
    return await views.policy_report(here, policy)


@router.post(
    "/policies/{policy}/select",
    openapi_extra={**TABLE_BODY, "parameters": SELECT_PARAMETERS},
    responses=FILE_ANSWER,
    response_class=Response,
)
async def select(
    policy: Digest,
    request: Request,
    here: Here,
    actor: Operator,
    key: IdempotencyKey = None,
) -> Response:
    """Shortlist a pool. The answer comes when the selection is on record."""
    actor.require_policy(policy)
    options = _select_options(request)
    if _content_type(request) == "application/json":
        return await _select_rows(policy, request, here, actor, options, key)
    async with _table(request, here, past=False) as upload:
        form = "csv" if options.format == "spreadsheet" else options.format
        chosen = await here.work(
            operations.select_file, here.registry, here.spool, policy, upload, actor,
            columns=options.model_dump(include={"score", "group", "id"}), attributes=options.attribute,
            format=form, key=key_of(key, "select", policy, options.model_dump_json(), upload.sha256),
        )  # fmt: skip
    assert chosen.file is not None
    file = chosen.file.path
    if options.format == "spreadsheet":
        file = await here.work(escape_file, file)
    _count(here, chosen.written.entry.facts)
    kind = "application/vnd.apache.parquet" if chosen.file.format == "parquet" else "text/csv; charset=utf-8"
    return FileResponse(
        file,
        media_type=kind,
        filename=f"shortlist.{chosen.file.format}",
        headers={
            "Surelist-Selection": chosen.written.entry.subject,
            "Surelist-Receipt": chosen.written.entry.receipt,
            "Surelist-Result-SHA256": chosen.written.entry.facts["result_sha256"],
        },
        background=BackgroundTask(file.unlink, missing_ok=True),
    )


async def _select_rows(
    policy: str, request: Request, here: Context, actor: Actor, options: models.SelectOptions, key: str | None
) -> Response:
    if options.format is not None or options.attribute:
        raise InvalidInput("format: it goes with CSV and Parquet bodies, as does attribute; leave it out.")
    body = await _json_body(request, here)
    quick = len(body) <= INLINE
    columns = options.model_dump(include={"score", "group", "id"})
    found = here.known_policy(policy)
    saved = found if found is not None else await here.read(here.load_policy, policy)

    def job() -> Any:
        return operations.rows_facts(saved, body, _rows(body), **columns)

    shortlist, facts = job() if quick else await here.work(job)
    bound = key_of(key, "select", policy, options.model_dump_json(), facts["pool_sha256"])
    written = await here.written(
        here.registry.record_selection(views.new_id(), policy, actor.name, facts, bound)
    )
    _count(here, facts)
    answer = {"selection": views.selection(written), "shortlist": shortlist}
    return Response(pydantic_core.to_json(answer), media_type="application/json")


@router.get("/selections", response_model=list[models.SelectionView])
async def selections(
    here: Here,
    actor: Viewer,
    policy: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
    limit: Limit = 100,
    before: Before = None,
) -> Any:
    """Selections on record, newest first."""
    wanted = actor.policy or policy
    if policy is not None:
        actor.require_policy(policy)
    return [views.selection(e) for e in await here.read(here.registry.selections, wanted, limit, before)]


@router.get("/selections/{selection}", response_model=models.SelectionView)
async def selection(selection: SelectionId, here: Here, actor: Viewer) -> Any:
    """One selection: sizes, hashes, receipt. Not the candidates: they are not kept."""
    return views.selection(await _allowed_selection(here, actor, selection))


@router.get("/selections/{selection}/report", response_class=Response, responses=views.HTML_ANSWER)
async def selection_report(selection: SelectionId, here: Here, actor: Viewer) -> Response:
    """The audit report of a selection, as one HTML file."""
    await _allowed_selection(here, actor, selection)
    return await views.selection_report(here, selection)


@router.post("/selections/{selection}/reviews", status_code=201, response_model=models.ReviewsView)
async def send_reviews(
    selection: SelectionId, body: models.Reviews, here: Here, actor: Operator, key: IdempotencyKey = None
) -> Any:
    """Say which shortlisted candidates turned out to be qualified."""
    await _allowed_selection(here, actor, selection)
    found = {review.candidate: review.qualified for review in body.reviews}
    if len(found) < len(body.reviews):
        raise InvalidInput("reviews: expected one review per candidate, got two of the same one.")
    bound = key_of(key, "reviews", selection, body.model_dump_json())
    written = await here.written(
        await here.read(here.registry.record_reviews, selection, actor.name, found, bound)
    )
    return {**await _reviews(here, selection), "receipt": views.receipt(written)}


@router.get("/selections/{selection}/reviews", response_model=models.ReviewsView)
async def reviews(selection: SelectionId, here: Here, actor: Viewer) -> Any:
    """How many shortlisted candidates were reviewed, and how many are qualified."""
    await _allowed_selection(here, actor, selection)
    return await _reviews(here, selection)


@router.get("/log", response_model=list[models.EntryView])
async def log(here: Here, actor: Viewer, limit: Limit = 100, before: Before = None) -> Any:
    """The record, newest first."""
    actor.require_policy("")
    entries = await here.read(here.registry.entries, limit=limit, before=before)
    return [{**vars(entry), "details": entry.facts} for entry in entries]


async def _reviews(here: Context, selection: str) -> dict[str, Any]:
    found = await here.read(here.registry.reviews, selection)
    return {"selection": selection, "reviewed": len(found), "qualified": sum(found.values())}


async def _allowed_selection(here: Context, actor: Actor, selection: str) -> Any:
    entry = await here.read(here.registry.selection, selection)
    actor.require_policy(entry.facts["policy"])
    return entry


def _count(here: Context, facts: Mapping[str, Any]) -> None:
    here.metrics.candidates.inc(facts["candidates"])
    here.metrics.shortlisted.inc(facts["shortlisted"])


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _json_body(request: Request, here: Context) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > here.settings.max_json:
            raise TooLarge(here.settings.max_json)
        pieces.append(piece)
    return b"".join(pieces)


def _rows(body: bytes) -> Sequence[Mapping[str, Any]]:
    try:
        found = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"body: expected JSON, got something else ({error}).") from error
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not set(map(type, rows)) <= {dict}:
        raise InvalidInput('body: expected {"rows": [{column: value, ...}, ...]}.')
    return rows


class _table:
    """The body as a file, for the length of one request and not longer."""

    def __init__(self, request: Request, here: Context, *, past: bool = True) -> None:
        self._request, self._here, self._past = request, here, past
        self._upload: Upload | None = None

    async def __aenter__(self) -> Upload:
        kind = _content_type(self._request)
        if kind == "application/json":
            body = await _json_body(self._request, self._here)
            self._upload = await self._here.work(lambda: self._written(body))
        elif kind in ("text/csv", "application/vnd.apache.parquet", "application/octet-stream"):
            self._upload = await self._here.spool.receive(
                self._request.stream(), self._here.settings.max_upload
            )
        else:
            raise WrongType(
                "Content-Type: expected application/json, text/csv or application/vnd.apache.parquet, "
                f"got {kind[:80]!r}."
            )
        try:
            await self._here.work(operations.admit, self._upload, self._here.settings, past=self._past)
        except BaseException:
            self._upload.path.unlink(missing_ok=True)
            raise
        return self._upload

    def _written(self, body: bytes) -> Upload:
        rows = _rows(body)
        if not rows:
            raise InvalidInput("rows: expected at least one row, got none.")
        return operations.write_rows(self._here.spool, rows, body)

    async def __aexit__(self, *_: object) -> None:
        if self._upload is not None:
            self._upload.path.unlink(missing_ok=True)
