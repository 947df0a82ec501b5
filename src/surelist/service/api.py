"""The API, version 1: options in the query, the table in the body (JSON rows, CSV or Parquet)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar, cast

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.promises.terms import Roles
from surelist.service import answers, bodies, calibrating, models, policy_watch, reviewing
from surelist.service.bodies import KEY, KEY_HELP, PAST_BODY, TABLE_BODY, DigestText, KeyText, place_in, sent
from surelist.service.calibrating import Past
from surelist.service.errors import MEANING
from surelist.service.record.view import View
from surelist.service.runtime import Session, Waiting, key_of, runtime_of

REVIEWS = 16 << 20  # bytes of reviews in one request
P = ParamSpec("P")
T = TypeVar("T")

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


class Call(Session):
    """A request by somebody who may make it."""

    past: Past  # the tables in the body, where a handler takes them

    def __init__(self, request: Request, view: View) -> None:
        super().__init__(runtime_of(request), view)
        self.request = request


def _by(role: str, *, all_policies: bool = False, writes: bool = False, of: str | None = None) -> Any:
    """Whoever has the role and may see the policy or selection (``of``) that the address is about."""

    async def reading(request: Request) -> Call:
        view = await bodies.view_of(request, role)
        if all_policies:
            view.actor.require_all_policies()
        if of is not None:
            look = view.actor.require_policy if of == "policy" else view.selection
            await runtime_of(request).read(look, request.path_params[of])
        return Call(request, view)

    async def writing(request: Request, key: IdempotencyKey = None) -> Call:
        call = await reading(request)
        call.view.key = key_of(request)
        return call

    return Depends(writing if writes else reading)


def with_table(
    path: str, *, status: int = 200, past: bool = True, two: bool = False
) -> Callable[[Callable[P, T]], Waiting[P, T]]:
    """A route that takes the table in the body, or two of them: when they are here, and it is its turn."""

    def taking(handler: Callable[P, T]) -> Waiting[P, T]:
        @wraps(handler)
        async def waiting(*args: P.args, **named: P.kwargs) -> T:
            call, place = cast(Call, named["call"]), place_in(named["options"])
            async with bodies.tables_in(
                call.request, call.runtime, past=past, two=two, place=place
            ) as call.past:
                return await call.runtime.work(handler, *args, **named)

        body = PAST_BODY if two else TABLE_BODY
        return cast(Waiting[P, T], router.post(path, status_code=status, openapi_extra=body)(waiting))

    return taking


Viewer = Annotated[Call, _by("viewer")]
Auditor = Annotated[Call, _by("viewer", all_policies=True)]
Reviewer = Annotated[Call, _by("operator", writes=True, of="selection")]
Reader = Annotated[Call, _by("operator", all_policies=True)]  # of tables that come with the request
Maker = Annotated[Call, _by("operator", all_policies=True, writes=True)]
Admin = Annotated[Call, _by("admin", writes=True, of="policy")]
SentReviews = Annotated[models.Reviews, sent(models.Reviews, REVIEWS)]
SentFinish = Annotated[models.Finish, sent(models.Finish)]


# first, because routes are tried in order and this one is asked most
router.post(
    bodies.ROUTE,
    openapi_extra={**TABLE_BODY, "parameters": bodies.PARAMETERS},
    responses=bodies.ANSWER,
    response_class=Response,
)(bodies.select)


@with_table("/calibrate", status=201, two=True)
def calibrate(call: Maker, options: Annotated[models.CalibrateOptions, Query()]) -> models.PolicyFile:
    """Certify a promise from past candidates and put the policy on record.

    Precision and budgets need scores of other candidates, and lists on average get shorter by them:
    `unlabelled` beside `rows` in JSON, or a form with the files `past` and `unlabelled`. 422 if the promise
    is not certifiable. Every look at the same rows is recorded: trying again with another promise is not
    covered by the first one's alpha.
    """
    return answers.policy_file(*calibrating.calibrate(call, options.request(), call.past, options.name))


@with_table("/curve")
def curve(call: Reader, options: Annotated[models.CurveOptions, Query()]) -> models.CurveView:
    """For every list size the qualified candidates certified, all at once: for choosing after looking."""
    made = calibrating.curve(call.view, call.past.upload, *options.split(), options.hints)
    return answers.view_of(models.CurveView, made)


class ListOptions(models.PastOptions):
    alpha: float = models.option("curve.alpha", gt=0, lt=1)


class ListView(BaseModel):
    """The lists of one pool by length: at least and at most so many are qualified, all lengths at once."""

    alpha: float
    rows: int
    list_size: list[int]
    threshold: list[float] = Field(description="The score of the last one on the list.")
    at_least: list[int]
    at_most: list[int]
    conditions: list[str] = Field(description="How sure that is, and what it rests on.")


@with_table("/list", two=True)
def this_list(call: Reader, options: Annotated[ListOptions, Query()]) -> ListView:
    """How many of the first n of this very pool's list are qualified, for every n at once.

    Labelled `rows` and, as `unlabelled`, the scores of the pool; or a form with the files `past` and
    `unlabelled`. A length may be chosen after looking.
    """
    if call.past.others is None:
        raise InvalidInput("unlabelled", "the pool is missing; send its scores beside the labelled rows.")
    made = calibrating.this_list(
        call.view, call.past, Roles(options.score, options.label), options.hints,
        best=call.past.others, score=options.score, alpha=options.alpha,
    )  # fmt: skip
    return answers.view_of(ListView, made)


@router.get("/policies")
def policies(call: Viewer, limit: Limit = 100, before: Before = None) -> list[models.PolicyView]:
    """Policies on record, newest first."""
    return [answers.policy(each) for each in call.view.policies(limit, before)]


@router.get("/policies/{policy}")
def policy(policy: Digest, call: Viewer) -> models.PolicyFile:
    """One policy with its file. A salt for ties stays secret."""
    return answers.policy_file(call.view.policy(policy))


@router.post("/policies/{policy}/retire")
def retire(
    policy: Digest, call: Admin, body: Annotated[models.Retirement, sent(models.Retirement)]
) -> models.Receipt:
    """End a policy. It stays on record and makes no new shortlists."""
    return answers.receipt(call.view.retire_policy(policy, body.reason).result())


@with_table("/policies/{policy}/evaluate")
def evaluate(
    policy: Digest, call: Reader, options: Annotated[models.EvaluateOptions, Query()]
) -> models.EvaluationView:
    """Do labelled candidates whom the policy never saw fit its promise? Goes on record as a look at them."""
    found = calibrating.evaluate(call.view, policy, call.past.upload, options.model_dump())
    return models.EvaluationView.model_validate(found)


@router.get("/policies/{policy}/report", response_class=Response, responses=HTML_ANSWER)
def policy_report(policy: Digest, call: Viewer) -> Response:
    """The audit report of a policy, as one HTML file."""
    return answers.report_page(call.view.policy(policy))


@router.get("/selections", response_model=list[models.SelectionView])
def selections(
    call: Viewer, policy: DigestText | None = None, limit: Limit = 100, before: Before = None
) -> list[dict[str, Any]]:
    """Selections on record, newest first."""
    return [answers.selection(each) for each in call.view.selections(policy, limit, before)]


@router.get("/selections/{selection}", response_model=models.SelectionView)
def selection(selection: SelectionId, call: Viewer) -> dict[str, Any]:
    """One selection: sizes, hashes, receipt. Not the candidates: they are not kept."""
    return answers.selection(call.view.selection(selection))


@router.get("/selections/{selection}/report", response_class=Response, responses=HTML_ANSWER)
def selection_report(selection: SelectionId, call: Viewer) -> Response:
    """The audit report of a selection, as one HTML file."""
    return answers.report_page(*call.view.selection_with_all(selection))


@router.post("/selections/{selection}/reviews", status_code=201)
def send_reviews(selection: SelectionId, call: Reviewer, body: SentReviews) -> models.ReviewsView:
    """Say which shortlisted candidates turned out to be qualified."""
    return take_reviews(selection, call, body)


def take_reviews(selection: str, call: Call, body: models.Reviews) -> models.ReviewsView:
    """The reviews in a body, of a selection or of a campaign's pool, put on record."""
    given = {review.candidate: review.qualified for review in body.reviews}
    if len(given) < len(body.reviews):
        raise InvalidInput("reviews", expected="one review per candidate", got="two of the same one")
    written = call.view.record_reviews(selection, given).result()
    return answers.with_receipt(reviews(selection, call), written)


@router.get("/selections/{selection}/reviews")
def reviews(selection: SelectionId, call: Viewer) -> models.ReviewsView:
    """How many shortlisted candidates were reviewed, and how many are qualified."""
    counts = call.view.marks(selection).counts(call.view.reviewer(selection))
    return models.ReviewsView(
        selection=selection, reviewed=sum(counts.values()),
        qualified=None if counts["seen"] else counts["yes"], disagreements=counts["split"],
    )  # fmt: skip


@router.post("/selections/{selection}/finish")
def finish(selection: SelectionId, call: Reviewer, body: SentFinish) -> models.StandingView:
    """End the reviews of a selection: they count from now on, and may raise the alarm."""
    entry, known = call.view.selection(selection), reviewing.known_list(call.spool, selection)
    written = policy_watch.finish(
        call.view, selection, known, missing=body.missing, missed=body.missed, unaudited=body.unaudited
    )
    return answers.with_receipt(standing(entry.event.policy, call), written)


@router.get("/policies/{policy}/standing")
def standing(policy: Digest, call: Viewer) -> models.StandingView:
    """Is the promise still true? What the finished reviews say."""
    saved = call.view.policy(policy)
    watched = policy_watch.standing(call.view, saved)
    return answers.view_of(
        models.StandingView, watched, policy=saved.hash, pools=len(watched.evidence),
        withdrawn=saved.why_withdrawn,
    )  # fmt: skip


@router.get("/log")
def log(call: Auditor, limit: Limit = 100, before: Before = None) -> list[models.EntryView]:
    """The record, newest first."""
    entries = call.view.entries(limit, before)
    hidden = call.view.hidden(entries)
    return [answers.entry(each, hidden=each.seq in hidden) for each in entries]
