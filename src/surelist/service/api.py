"""The API, version 1: options in the query, the table in the body (JSON rows, CSV or Parquet)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.service import answers, calibrating, models, policy_watch, reviewing, selecting
from surelist.service.bodies import PAST_BODY, TABLE_BODY, M, body_schema, parsed_body, past_body, table_body
from surelist.service.errors import MEANING
from surelist.service.middleware import SMALL
from surelist.service.record.log import Key
from surelist.service.record.view import View
from surelist.service.runtime import key_of, runtime_of
from surelist.service.selecting import KEY, KEY_HELP, DigestText, KeyText, view_of
from surelist.service.uploads import Upload

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


class Call:
    """A request by somebody who may make it: their view of the record, and the request's own key."""

    def __init__(self, request: Request, view: View, key: str | None = None) -> None:
        self.request, self.view, self._key = request, view, key
        self.runtime = runtime_of(request)
        self.read, self.work, self.written = self.runtime.read, self.runtime.work, self.runtime.written

    def key(self, *parts: str) -> Key | None:
        """The idempotency key, bound to what is asked."""
        return key_of(self._key, *parts)

    async def body(self, model: type[M], limit: int = SMALL) -> M:
        return await parsed_body(self.request, self.runtime, model, limit)

    def table(self, *, past: bool, sheet: str | None = None) -> AbstractAsyncContextManager[Upload]:
        return table_body(self.request, self.runtime, past=past, sheet=sheet)


def _by(role: str, *, all_policies: bool = False, writes: bool = False) -> Any:
    async def reading(request: Request) -> Call:
        view = await view_of(request, role)
        if all_policies:
            view.actor.require_all_policies()
        return Call(request, view)

    async def writing(request: Request, key: IdempotencyKey = None) -> Call:
        return Call(request, (await reading(request)).view, key)

    return Depends(writing if writes else reading)


Viewer = Annotated[Call, _by("viewer")]
Auditor = Annotated[Call, _by("viewer", all_policies=True)]
Operator = Annotated[Call, _by("operator", writes=True)]
Reader = Annotated[Call, _by("operator", all_policies=True)]  # of tables that come with the request
Maker = Annotated[Call, _by("operator", all_policies=True, writes=True)]
Admin = Annotated[Call, _by("admin", writes=True)]


# first, because routes are tried in order and this one is asked most
router.post(
    selecting.ROUTE,
    openapi_extra={**TABLE_BODY, "parameters": selecting.PARAMETERS},
    responses=selecting.ANSWER,
    response_class=Response,
)(selecting.select)


@router.post("/calibrate", status_code=201, openapi_extra=PAST_BODY)
async def calibrate(call: Maker, options: Annotated[models.CalibrateOptions, Query()]) -> models.PolicyFile:
    """Certify a promise from past candidates and put the policy on record.

    Precision and budgets need scores of other candidates, and lists on average get shorter by them:
    `unlabelled` beside `rows` in JSON, or a form with the files `past` and `unlabelled`. 422 if the promise
    is not certifiable. Every look at the same rows is recorded: trying again with another promise is not
    covered by the first one's alpha.
    """
    asked = options.request()
    async with past_body(call.request, call.runtime, options.sheet) as past:
        hashes = [each.sha256 for each in (past.upload, past.others) if each is not None]
        key = call.key("calibrate", options.model_dump_json(), *hashes)
        done = await call.work(
            calibrating.calibrate, call.runtime, call.view, asked, past, options.name, key
        )  # fmt: skip
    return answers.policy_file(*done)


@router.post("/curve", openapi_extra=TABLE_BODY)
async def curve(call: Reader, options: Annotated[models.CurveOptions, Query()]) -> models.CurveView:
    """For every list size the qualified candidates certified, all at once: for choosing after looking."""
    async with call.table(past=True, sheet=options.sheet) as upload:
        made = await call.work(calibrating.curve, call.view, upload, *options.split(), options.hints)
    points = {name: getattr(made, name).tolist() for name in ("list_size", "qualified", "threshold")}
    known = {name: getattr(made, name) for name in ("rule", "alpha", "pool_size", "rows")}
    return models.CurveView(**known, **points)


@router.get("/policies")
async def policies(call: Viewer, limit: Limit = 100, before: Before = None) -> list[models.PolicyView]:
    """Policies on record, newest first."""
    return [answers.policy(each) for each in await call.read(call.view.policies, limit, before)]


@router.get("/policies/{policy}")
async def policy(policy: Digest, call: Viewer) -> models.PolicyFile:
    """One policy with its file. A salt for ties stays secret."""
    return answers.policy_file(await call.read(call.view.policy, policy))


@router.post("/policies/{policy}/retire", openapi_extra=body_schema(models.Retirement))
async def retire(policy: Digest, call: Admin) -> models.Receipt:
    """End a policy. It stays on record and makes no new shortlists."""
    call.view.actor.require_policy(policy)
    reason = (await call.body(models.Retirement)).reason
    key = call.key("retire", policy, reason)
    written = await call.written(call.view.retire_policy(policy, reason, key))
    return answers.receipt(written)


@router.post("/policies/{policy}/evaluate", response_model=models.EvaluationView, openapi_extra=TABLE_BODY)
async def evaluate(
    policy: Digest, call: Reader, options: Annotated[models.EvaluateOptions, Query()]
) -> dict[str, Any]:
    """Do labelled candidates whom the policy never saw fit its promise? Goes on record as a look at them."""
    async with call.table(past=True) as upload:
        return await call.work(calibrating.evaluate, call.view, policy, upload, options.model_dump())


@router.get("/policies/{policy}/report", response_class=Response, responses=HTML_ANSWER)
async def policy_report(policy: Digest, call: Viewer) -> Response:
    """The audit report of a policy, as one HTML file."""
    return answers.report_page(await call.read(call.view.policy, policy))


@router.get("/selections", response_model=list[models.SelectionView])
async def selections(
    call: Viewer, policy: DigestText | None = None, limit: Limit = 100, before: Before = None
) -> list[dict[str, Any]]:
    """Selections on record, newest first."""
    made = await call.read(call.view.selections, policy, limit, before)
    return [answers.selection(each) for each in made]


@router.get("/selections/{selection}", response_model=models.SelectionView)
async def selection(selection: SelectionId, call: Viewer) -> dict[str, Any]:
    """One selection: sizes, hashes, receipt. Not the candidates: they are not kept."""
    return answers.selection(await call.read(call.view.selection, selection))


@router.get("/selections/{selection}/report", response_class=Response, responses=HTML_ANSWER)
async def selection_report(selection: SelectionId, call: Viewer) -> Response:
    """The audit report of a selection, as one HTML file."""
    return answers.report_page(*await call.read(call.view.selection_with_all, selection))


@router.post(
    "/selections/{selection}/reviews", status_code=201, openapi_extra=body_schema(models.Reviews)
)  # fmt: skip
async def send_reviews(selection: SelectionId, call: Operator) -> models.ReviewsView:
    """Say which shortlisted candidates turned out to be qualified."""
    await call.read(call.view.selection, selection)
    return await take_reviews(selection, call)


async def take_reviews(selection: str, call: Call) -> models.ReviewsView:
    """The reviews in a body, of a selection or of a campaign's pool, put on record."""
    body = await call.body(models.Reviews, REVIEWS)
    sent = {review.candidate: review.qualified for review in body.reviews}
    if len(sent) < len(body.reviews):
        raise InvalidInput("reviews", expected="one review per candidate", got="two of the same one")
    key = call.key("reviews", selection, body.model_dump_json())
    written = await call.written(await call.read(call.view.record_reviews, selection, sent, key))
    return answers.with_receipt(await reviews(selection, call), written)


@router.get("/selections/{selection}/reviews")
async def reviews(selection: SelectionId, call: Viewer) -> models.ReviewsView:
    """How many shortlisted candidates were reviewed, and how many are qualified."""
    marks = await call.read(call.view.marks, selection)
    counts = marks.counts(await call.read(call.view.reviewer, selection))
    return models.ReviewsView(
        selection=selection, reviewed=sum(counts.values()),
        qualified=None if counts["seen"] else counts["yes"], disagreements=counts["split"],
    )  # fmt: skip


@router.post("/selections/{selection}/finish", openapi_extra=body_schema(models.Finish))
async def finish(selection: SelectionId, call: Operator) -> models.StandingView:
    """End the reviews of a selection: they count from now on, and may raise the alarm."""
    entry = await call.read(call.view.selection, selection)
    body = await call.body(models.Finish)
    known = await call.read(reviewing.known_list, call.runtime.spool, selection)
    written = await call.read(
        policy_watch.finish, call.view, selection, known, missing=body.missing, missed=body.missed,
        unaudited=body.unaudited, key=call.key("finish", selection, body.model_dump_json()),
    )  # fmt: skip
    return answers.with_receipt(await standing(entry.event.policy, call), written)


@router.get("/policies/{policy}/standing")
async def standing(policy: Digest, call: Viewer) -> models.StandingView:
    """Is the promise still true? What the finished reviews say."""
    saved = await call.read(call.view.policy, policy)
    return answers.standing(saved, await call.read(policy_watch.standing, call.view, saved))


@router.get("/log")
async def log(call: Auditor, limit: Limit = 100, before: Before = None) -> list[models.EntryView]:
    """The record, newest first."""
    entries = await call.read(call.view.entries, limit, before)
    hidden = await call.read(call.view.hidden, entries)
    return [answers.entry(each, hidden=each.seq in hidden) for each in entries]
