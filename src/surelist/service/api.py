"""The API, version 1: options in the query, the table in the body (JSON rows, CSV or Parquet)."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import Field, StringConstraints, ValidationError
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from surelist.errors import InvalidInput
from surelist.service import answers, calibrating, jobs, life, models, reviewing
from surelist.service.bodies import (
    EXCEL,
    INLINE,
    PAST_BODY,
    TABLE_BODY,
    body_schema,
    content_type,
    json_body,
    parse_rows,
    parsed_body,
    past_body,
    table_body,
)
from surelist.service.errors import MEANING
from surelist.service.record.log import Key
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, key_of, runtime_of

REVIEWS = 16 << 20  # bytes of reviews in one request

router = APIRouter(
    prefix="/api/v1",
    responses={
        status: {"model": models.ErrorView, "description": meaning} for status, meaning in MEANING.items()
    },
)

DigestText = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern="^[!-~]+$")]
KEY, KEY_HELP = "Idempotency-Key", "Sent again with the same request, nothing is recorded twice."
Digest = Annotated[DigestText, Path(description="SHA-256 of the policy.")]
SelectionId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
IdempotencyKey = Annotated[KeyText | None, Header(alias=KEY, description=KEY_HELP)]
Limit = Annotated[int, Query(ge=1, le=500)]
Before = Annotated[int | None, Query(ge=1, le=2**62, description="Entries before this sequence number.")]
MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv; charset=utf-8", "xlsx": EXCEL}

FILE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": models.Shortlist,
        "description": "For JSON the shortlisted rows with the receipt; for files the shortlist, with the "
        "selection in `Surelist-Selection` and the receipt in `Surelist-Receipt`.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            EXCEL: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
HTML_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The report."}
}


async def _view(request: Request, role: str) -> View:
    runtime = runtime_of(request)
    if not runtime.settings.login:  # nothing to read from the record
        return runtime.view(request, role)
    return await runtime.read(runtime.view, request, role)


def _role(role: str, *, all_policies: bool = False) -> Any:
    async def view(request: Request) -> View:
        allowed = await _view(request, role)
        if all_policies:
            allowed.actor.require_all_policies()
        return allowed

    return Depends(view)


Viewer = Annotated[View, _role("viewer")]
Auditor = Annotated[View, _role("viewer", all_policies=True)]
Operator = Annotated[View, _role("operator")]
Maker = Annotated[View, _role("operator", all_policies=True)]
Admin = Annotated[View, _role("admin")]


async def _runtime(request: Request) -> Runtime:  # async: FastAPI would send a plain function to a thread
    return runtime_of(request)


Service = Annotated[Runtime, Depends(_runtime)]


class _Selection(models.SelectOptions):
    """All that a selection's address and headers say."""

    policy: DigestText = Field(description="SHA-256 of the policy.")
    key: KeyText | None = Field(default=None, alias="Idempotency-Key", description=KEY_HELP)

    def bound_to(self, pool: str) -> Key | None:
        """The idempotency key, bound to the options and the pool it came with."""
        options = self.model_dump_json(exclude={"policy", "key"}) if self.key else ""
        return key_of(self.key, "select", self.policy, options, pool)


_PLACES = {"policy": "path", KEY: "header"}
SELECT_PARAMETERS = [
    {"name": name, "in": _PLACES.get(name, "query"), "required": name == "policy", "schema": part}
    for name, part in _Selection.model_json_schema()["properties"].items()
]


def _selection(request: Request) -> _Selection:
    """Read by hand, since selections are many and FastAPI takes a fifth of a request's time for it."""
    raw: dict[str, Any] = {}
    if request.scope["query_string"]:
        query = request.query_params
        raw = {name: query.getlist(name) if name == "attribute" else query[name] for name in query}
        if not raw.keys().isdisjoint(_PLACES):
            raise InvalidInput("query: policy is part of the path, and Idempotency-Key a header.")
    raw["policy"] = request.path_params["policy"]
    if (key := request.headers.get("idempotency-key")) is not None:
        raw[KEY] = key
    try:
        return _Selection.model_validate(raw)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


# first, because routes are tried in order and this one is asked most
@router.post(
    "/policies/{policy}/select",
    openapi_extra={**TABLE_BODY, "parameters": SELECT_PARAMETERS},
    responses=FILE_ANSWER,
    response_class=Response,
)
async def select(request: Request) -> Response:
    """Shortlist a pool. The answer comes when the selection is on record."""
    runtime, view = runtime_of(request), await _view(request, "operator")
    asked = _selection(request)
    view.actor.require_policy(asked.policy)
    if content_type(request) == "application/json":
        return await _select_rows(request, runtime, view, asked)
    async with table_body(request, runtime, past=False, sheet=asked.sheet) as upload:
        done = await runtime.work(
            jobs.select_file, runtime, view, asked.policy, upload, columns=asked.columns,
            hints=jobs.hints_of({"decimal": asked.decimal}), attributes=asked.attribute,
            format="csv" if asked.format == "spreadsheet" else asked.format,
            key=asked.bound_to(upload.sha256), about={"watch": asked.watch},
        )  # fmt: skip
    file, entry = done.file.path, done.written.entry
    if asked.format == "spreadsheet":
        file = await runtime.work(jobs.escaped, file)
    return FileResponse(
        file,
        media_type=MEDIA_TYPES[done.file.format],
        filename=f"shortlist.{done.file.format}",
        headers={
            "Surelist-Selection": entry.subject,
            "Surelist-Receipt": entry.receipt,
            "Surelist-Result-SHA256": entry.facts["result_sha256"],
        },
        background=BackgroundTask(file.unlink, missing_ok=True),
    )


async def _select_rows(request: Request, runtime: Runtime, view: View, asked: _Selection) -> Response:
    if asked.format is not None or asked.attribute or asked.sheet:
        raise InvalidInput("format: it goes with files, as do attribute and sheet; leave it out.")
    body = await json_body(request, runtime, runtime.settings.max_json)
    known = runtime.known_policy(asked.policy)
    made = known if known is not None else await runtime.read(runtime.load_policy, asked.policy)

    def job() -> Any:
        return jobs.select_rows(made, parse_rows(body), body, asked.columns)

    shortlist, facts = job() if len(body) <= INLINE else await runtime.work(job)
    key = asked.bound_to(facts["pool_sha256"])
    if asked.watch:
        facts |= await runtime.read(life.watched_facts, view, asked.policy, facts)
    written = await runtime.written(view.record_selection(jobs.new_id(), asked.policy, facts, key))
    jobs.count_selection(runtime, facts)
    answer = {"selection": answers.selection(written), "shortlist": shortlist}
    return Response(pydantic_core.to_json(answer), media_type="application/json")


@router.post("/calibrate", status_code=201, response_model=models.PolicyFile, openapi_extra=PAST_BODY)
async def calibrate(
    request: Request,
    runtime: Service,
    view: Maker,
    options: Annotated[models.CalibrateOptions, Query()],
    key: IdempotencyKey = None,
) -> Any:
    """Certify a promise from past candidates and put the policy on record.

    Precision and budgets need scores of other candidates, and lists on average get shorter by them:
    `unlabelled` beside `rows` in JSON, or a form with the files `past` and `unlabelled`. 422 if the promise
    is not certifiable. Every look at the same rows is recorded: trying again with another promise is not
    covered by the first one's alpha.
    """
    asked = options.request()
    async with past_body(request, runtime, options.sheet) as past:
        hashes = [each.sha256 for each in (past.upload, past.others) if each is not None]
        bound = key_of(key, "calibrate", options.model_dump_json(), *hashes)
        saved = await runtime.work(calibrating.calibrate, runtime, view, asked, past, options.name, bound)
    return answers.policy_file(saved)


@router.post("/curve", response_model=models.CurveView, openapi_extra=TABLE_BODY)
async def curve(
    request: Request, runtime: Service, view: Maker, options: Annotated[models.CurveOptions, Query()]
) -> Any:
    """For every list size the qualified candidates certified, all at once: for choosing after looking."""
    async with table_body(request, runtime, past=True, sheet=options.sheet) as upload:
        made = await runtime.work(calibrating.curve, view, upload, *options.split(), options.hints)
    return {
        "rule": made.rule, "alpha": made.alpha, "pool_size": made.pool_size, "rows": made.rows,
        "list_size": made.list_size.tolist(), "qualified": made.qualified.tolist(),
        "threshold": made.threshold.tolist(),
    }  # fmt: skip


@router.get("/policies", response_model=list[models.PolicyView])
async def policies(runtime: Service, view: Viewer, limit: Limit = 100, before: Before = None) -> Any:
    """Policies on record, newest first."""
    return [answers.policy(each) for each in await runtime.read(view.policies, limit, before)]


@router.get("/policies/{policy}", response_model=models.PolicyFile)
async def policy(policy: Digest, runtime: Service, view: Viewer) -> Any:
    """One policy with its file. A salt for ties stays secret."""
    return answers.policy_file(await runtime.read(view.policy, policy))


@router.post(
    "/policies/{policy}/retire",
    response_model=models.Receipt,
    openapi_extra=body_schema(models.Retirement),
)
async def retire(
    policy: Digest, request: Request, runtime: Service, view: Admin, key: IdempotencyKey = None
) -> Any:
    """End a policy. It stays on record and makes no new shortlists."""
    view.actor.require_policy(policy)
    body = await parsed_body(request, runtime, models.Retirement)
    bound = key_of(key, "retire", policy, body.reason)
    written = await runtime.written(view.retire_policy(policy, body.reason, bound))
    return answers.receipt(written)


@router.post("/policies/{policy}/evaluate", response_model=models.EvaluationView, openapi_extra=TABLE_BODY)
async def evaluate(
    policy: Digest,
    request: Request,
    runtime: Service,
    view: Maker,
    options: Annotated[models.EvaluateOptions, Query()],
) -> Any:
    """Do labelled candidates whom the policy never saw fit its promise? Goes on record as a look at them."""
    async with table_body(request, runtime, past=True) as upload:
        return await runtime.work(calibrating.evaluate, view, policy, upload, options.model_dump())


@router.get("/policies/{policy}/report", response_class=Response, responses=HTML_ANSWER)
async def policy_report(policy: Digest, runtime: Service, view: Viewer) -> Response:
    """The audit report of a policy, as one HTML file."""
    return answers.report_page(await runtime.read(view.policy, policy))


@router.get("/selections", response_model=list[models.SelectionView])
async def selections(
    runtime: Service,
    view: Viewer,
    policy: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
    limit: Limit = 100,
    before: Before = None,
) -> Any:
    """Selections on record, newest first."""
    return [answers.selection(each) for each in await runtime.read(view.selections, policy, limit, before)]


@router.get("/selections/{selection}", response_model=models.SelectionView)
async def selection(selection: SelectionId, runtime: Service, view: Viewer) -> Any:
    """One selection: sizes, hashes, receipt. Not the candidates: they are not kept."""
    return answers.selection(await runtime.read(view.selection, selection))


@router.get("/selections/{selection}/report", response_class=Response, responses=HTML_ANSWER)
async def selection_report(selection: SelectionId, runtime: Service, view: Viewer) -> Response:
    """The audit report of a selection, as one HTML file."""
    return answers.report_page(*await runtime.read(view.selection_with_all, selection))


@router.post(
    "/selections/{selection}/reviews",
    status_code=201,
    response_model=models.ReviewsView,
    openapi_extra=body_schema(models.Reviews),
)
async def send_reviews(
    selection: SelectionId, request: Request, runtime: Service, view: Operator, key: IdempotencyKey = None
) -> Any:
    """Say which shortlisted candidates turned out to be qualified."""
    await runtime.read(view.selection, selection)
    body = await parsed_body(request, runtime, models.Reviews, REVIEWS)
    sent = {review.candidate: review.qualified for review in body.reviews}
    if len(sent) < len(body.reviews):
        raise InvalidInput("reviews: expected one review per candidate, got two of the same one.")
    bound = key_of(key, "reviews", selection, body.model_dump_json())
    written = await runtime.written(await runtime.read(view.record_reviews, selection, sent, bound))
    return {**await reviews(selection, runtime, view), "receipt": answers.receipt(written)}


@router.get("/selections/{selection}/reviews", response_model=models.ReviewsView)
async def reviews(selection: SelectionId, runtime: Service, view: Viewer) -> Any:
    """How many shortlisted candidates were reviewed, and how many are qualified."""
    counts = (await runtime.read(view.marks, selection)).counts()
    return {
        "selection": selection, "reviewed": sum(counts.values()), "qualified": counts["yes"],
        "disagreements": counts["split"],
    }  # fmt: skip


@router.post(
    "/selections/{selection}/finish",
    response_model=models.StandingView,
    openapi_extra=body_schema(models.Finish),
)
async def finish(
    selection: SelectionId, request: Request, runtime: Service, view: Operator, key: IdempotencyKey = None
) -> Any:
    """End the reviews of a selection: they count from now on, and may raise the alarm."""
    entry = await runtime.read(view.selection, selection)
    body = await parsed_body(request, runtime, models.Finish)
    bound = key_of(key, "finish", selection, body.model_dump_json())
    group_of = await runtime.read(reviewing.group_of, runtime.spool, selection)
    written = await runtime.read(life.finish, view, selection, group_of, missing=body.missing, key=bound)
    known = await standing(entry.facts["policy"], runtime, view)
    return {**known, "receipt": answers.receipt(written)}


@router.get("/policies/{policy}/standing", response_model=models.StandingView)
async def standing(policy: Digest, runtime: Service, view: Viewer) -> Any:
    """Is the promise still true? What the finished reviews say."""
    saved = await runtime.read(view.policy, policy)
    watched = await runtime.read(life.standing, view, saved)
    return life.as_answer(saved, watched)


@router.get("/log", response_model=list[models.EntryView])
async def log(runtime: Service, view: Auditor, limit: Limit = 100, before: Before = None) -> Any:
    """The record, newest first."""
    entries = await runtime.read(view.entries, limit, before)
    return [{**vars(entry), "details": entry.facts} for entry in entries]
