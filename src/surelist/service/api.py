"""The API, version 1: options in the query, the table in the body (JSON rows, CSV or Parquet)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.service import answers, calibrating, models, policy_watch, reviewing, selecting
from surelist.service.bodies import (
    PAST_BODY,
    TABLE_BODY,
    body_schema,
    parsed_body,
    past_body,
    table_body,
)
from surelist.service.errors import MEANING
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, key_of, runtime_of
from surelist.service.selecting import KEY, KEY_HELP, DigestText, KeyText, view_of

REVIEWS = 16 << 20  # bytes of reviews in one request

router = APIRouter(
    prefix="/api/v1",
    responses={
        status: {"model": models.ErrorView, "description": meaning} for status, meaning in MEANING.items()
    },
)

Digest = Annotated[DigestText, Path(description="SHA-256 of the policy.")]
SelectionId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
IdempotencyKey = Annotated[KeyText | None, Header(alias=KEY, description=KEY_HELP)]
Limit = Annotated[int, Query(ge=1, le=500)]
Before = Annotated[int | None, Query(ge=1, le=2**62, description="Entries before this sequence number.")]

HTML_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The report."}
}


def _role(role: str, *, all_policies: bool = False) -> Any:
    async def view(request: Request) -> View:
        allowed = await view_of(request, role)
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


# first, because routes are tried in order and this one is asked most
router.post(
    selecting.ROUTE,
    openapi_extra={**TABLE_BODY, "parameters": selecting.PARAMETERS},
    responses=selecting.ANSWER,
    response_class=Response,
)(selecting.select)


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
        done = await runtime.work(calibrating.calibrate, runtime, view, asked, past, options.name, bound)
    return answers.policy_file(*done)


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
    return await take_reviews(selection, request, runtime, view, key)


async def take_reviews(
    selection: str, request: Request, runtime: Runtime, view: View, key: str | None
) -> Any:
    """The reviews in a body, of a selection or of a campaign's pool, put on record."""
    body = await parsed_body(request, runtime, models.Reviews, REVIEWS)
    sent = {review.candidate: review.qualified for review in body.reviews}
    if len(sent) < len(body.reviews):
        raise InvalidInput("reviews", expected="one review per candidate", got="two of the same one")
    bound = key_of(key, "reviews", selection, body.model_dump_json())
    written = await runtime.written(await runtime.read(view.record_reviews, selection, sent, bound))
    return {**await reviews(selection, runtime, view), "receipt": answers.receipt(written)}


@router.get("/selections/{selection}/reviews", response_model=models.ReviewsView)
async def reviews(selection: SelectionId, runtime: Service, view: Viewer) -> Any:
    """How many shortlisted candidates were reviewed, and how many are qualified."""
    marks = await runtime.read(view.marks, selection)
    counts = marks.counts(await runtime.read(view.reviewer, selection))
    return {
        "selection": selection, "reviewed": sum(counts.values()),
        "qualified": None if counts["seen"] else counts["yes"],
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
    known = await runtime.read(reviewing.known_list, runtime.spool, selection)
    audit = body.model_dump(include={"missed", "unaudited"})
    written = await runtime.read(
        policy_watch.finish, view, selection, known, missing=body.missing, audit=audit, key=bound
    )
    now = await standing(entry.facts["policy"], runtime, view)
    return {**now, "receipt": answers.receipt(written)}


@router.get("/policies/{policy}/standing", response_model=models.StandingView)
async def standing(policy: Digest, runtime: Service, view: Viewer) -> Any:
    """Is the promise still true? What the finished reviews say."""
    saved = await runtime.read(view.policy, policy)
    watched = await runtime.read(policy_watch.standing, view, saved)
    return policy_watch.as_answer(saved, watched)


@router.get("/log", response_model=list[models.EntryView])
async def log(runtime: Service, view: Auditor, limit: Limit = 100, before: Before = None) -> Any:
    """The record, newest first."""
    entries = await runtime.read(view.entries, limit, before)
    hidden = await runtime.read(view.hidden, entries)
    return [{**vars(e), "details": answers.entry_facts(e, hidden=e.seq in hidden)} for e in entries]
