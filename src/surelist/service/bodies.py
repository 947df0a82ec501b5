"""What programs send: bodies of the API as rows or as a file for one request; and selections, asked all day.

JSON rows, CSV, JSON Lines or Parquet. Of selections address and options are read by hand and the handler is
called straight from the guard, to save the work of FastAPI's routes and parameters on every one of them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from fastapi import Depends
from msgspec.structs import replace
from pydantic import BaseModel, Field, StringConstraints, ValidationError
from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from surelist.errors import InvalidInput
from surelist.service import answers, calibrating, jobs, models, policy_watch
from surelist.service.choices import ChosenColumns
from surelist.service.errors import WrongType, first_of
from surelist.service.middleware import SMALL, allow_body
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, Session, bind, key_of, runtime_of
from surelist.service.sent_rows import lines_of, refuse_twice, rows_as_sent
from surelist.service.uploads import Upload
from surelist.service.workers import run
from surelist.workflows.source import NO_HINTS, Hints

INLINE = 1 << 20  # JSON bodies up to this size are worked on at once, larger ones in a worker
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

FORM_FILES = ("past", "unlabelled")
CSV, LINES, PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEDIA_TYPES = {"parquet": PARQUET, "csv": f"{CSV}; charset=utf-8", "jsonl": LINES, "xlsx": EXCEL}
OTHER_FILES = ("jsonl", "octet-stream", "vnd.ms-excel", "vnd.oasis.opendocument.spreadsheet")
FILES = (CSV, LINES, PARQUET, EXCEL, *(f"application/{each}" for each in OTHER_FILES))
TABLES = f"application/json, {CSV}, {LINES}, {PARQUET} or {EXCEL}"
TWO_FILES = "expected a form with the files past and unlabelled, and nothing else."

# for OpenAPI, since bodies are read by hand
TEXT, BINARY = {"schema": {"type": "string"}}, {"schema": {"type": "string", "format": "binary"}}
FILE_CONTENT = {CSV: TEXT, LINES: TEXT, PARQUET: BINARY, EXCEL: BINARY}
_TWO_FILES = {
    "type": "object", "required": ["past"], "properties": dict.fromkeys(FORM_FILES, BINARY["schema"]),
}  # fmt: skip
JSON_BODIES: dict[object, type[BaseModel]] = {}  # by the dependency that reads them


def body_of(model: type[BaseModel], **others: object) -> dict[str, object]:
    """A body as OpenAPI describes it: JSON, or something else."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}, **others}}}


TABLE_BODY = body_of(models.Rows, **FILE_CONTENT)
PAST_BODY = body_of(models.PastRows, **FILE_CONTENT, **{"multipart/form-data": {"schema": _TWO_FILES}})


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, runtime: Runtime, limit: int) -> bytes:
    """A body in memory. Large ones wait for each other, so that many cannot fill it together."""
    body = allow_body(request.scope, limit)
    pieces, size = [], 0
    async for piece in request.stream():
        if size <= INLINE < size + len(piece):
            await body.hold(runtime.large_bodies)
        size += len(piece)
        pieces.append(piece)
    whole = b"".join(pieces)
    bind(request, whole)
    return whole


async def large_or_small(runtime: Runtime, body: bytes, job: Callable[..., T], *args: object) -> T:
    """``job(body, ...)`` at once; in a process of its own where the body would hold up everybody else."""
    if len(body) <= INLINE:
        return job(body, *args)
    return await runtime.work(run, job, body, *args)


def _validated(body: bytes, model: type[M]) -> M:
    refuse_twice(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise first_of(error, "body") from None


def sent(model: type[BaseModel], limit: int = SMALL) -> Any:
    """A JSON body as a parameter of a handler, after the one that says who is asking.

    It is read by hand, because FastAPI would read it before asking who sends it.
    """

    async def read(request: Request) -> BaseModel:
        kind, runtime = content_type(request), runtime_of(request)
        if kind != "application/json":
            raise WrongType("Content-Type", expected="application/json", got=repr(kind[:80]))
        body = await json_body(request, runtime, limit)
        return await large_or_small(runtime, body, _validated, model)

    JSON_BODIES[read] = model
    return Depends(read)


def place_in(options: object) -> Hints:
    """Where in a file the table is, as options of the API say it."""
    return Hints(getattr(options, "sheet", None), header_row=getattr(options, "header_row", None))


@asynccontextmanager
async def tables_in(
    request: Request, runtime: Runtime, *, past: bool, two: bool = False, place: Hints = NO_HINTS
) -> AsyncIterator[calibrating.Past]:
    """The body as files, for the length of one request and not longer.

    ``two``: with past candidates, in JSON or in a form of two files, scores of others may come.
    """
    kind, uploads = content_type(request), list[Upload]()
    try:
        if two and kind == "multipart/form-data":
            await _receive_form(request, runtime, uploads)
        elif kind == "application/json":
            body = await json_body(request, runtime, runtime.settings.max_json)
            digest = sha256(body).hexdigest()
            for lines in (await large_or_small(runtime, body, lines_of))[: 1 + two]:
                if lines is not None:
                    uploads.append(await runtime.work(runtime.spool.store_lines, lines, digest))
        elif kind in FILES:
            allow_body(request.scope, runtime.settings.max_upload)
            uploads.append(await runtime.spool.receive(request.stream(), runtime.settings.max_upload))
            bind(request, uploads[0].sha256)
        else:
            raise WrongType("Content-Type", expected=TABLES, got=repr(kind[:80]))
        admitted = []
        for upload, name in zip(tuple(uploads), ("the upload", "the unlabelled scores"), strict=False):
            named = replace(upload, name=name)
            admitted.append(await runtime.work(jobs.admit, named, runtime.settings, past=past, place=place))
            uploads.append(admitted[-1])  # a workbook has become another file
        yield calibrating.Past(*admitted)
    finally:
        for upload in uploads:
            upload.path.unlink(missing_ok=True)


async def _receive_form(request: Request, runtime: Runtime, uploads: list[Upload]) -> None:
    """The files of a form, added one by one: whoever called removes them."""
    limit = runtime.settings.max_upload
    allow_body(request.scope, limit + SMALL)
    try:
        form = await request.form(max_files=2, max_fields=0)
    except (LookupError, UnicodeError, ValueError, HTTPException) as error:
        raise InvalidInput("body", TWO_FILES) from error
    try:
        files = [each for name in FORM_FILES if isinstance(each := form.get(name), UploadFile)]
        if "past" not in form or len(form.multi_items()) > len(files):
            raise InvalidInput("body", TWO_FILES)
        for each in files:
            uploads.append(await runtime.work(runtime.spool.store, each.file, limit))
            bind(request, uploads[-1].sha256)
    finally:
        await form.close()


ROUTE = "/policies/{policy}/select"
ADDRESS = re.compile("/api/v1/policies/([0-9a-f]{64})/select")
DigestText = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern="^[!-~]+$")]
KEY, KEY_HELP = "Idempotency-Key", "Sent again with the same request, nothing is recorded twice."
ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": models.Shortlist, "content": FILE_CONTENT,
        "description": "For JSON the shortlisted rows with the receipt; for files the shortlist, with the "
        "selection in `Surelist-Selection` and the receipt in `Surelist-Receipt`.",
    }
}  # fmt: skip


class Shortcut:
    """ASGI middleware: a selection goes straight to its handler, everything else to the app.

    Errors are answered by ``Guard`` around it, in the same shape.
    """

    def __init__(self, app: ASGIApp, route: BaseRoute) -> None:
        self._app, self._route = app, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = ADDRESS.fullmatch(scope["path"]) if scope.get("method") == "POST" else None
        if known is None:
            await self._app(scope, receive, send)
            return
        scope["route"], scope["path_params"] = self._route, {"policy": known[1]}
        response = await select(Request(scope, receive, send))
        await response(scope, receive, send)


class SelectionRequest(models.SelectOptions):
    """All that a selection's address and headers say."""

    policy: DigestText = Field(description="SHA-256 of the policy.")
    key: KeyText | None = Field(default=None, alias="Idempotency-Key", description=KEY_HELP)


_PLACES = {"policy": "path", KEY: "header"}
PARAMETERS = [
    {"name": name, "in": _PLACES.get(name, "query"), "required": name == "policy", "schema": part}
    for name, part in SelectionRequest.model_json_schema()["properties"].items()
]


async def view_of(request: Request, role: str) -> View:
    """The record as whoever calls the API may use it."""
    runtime = runtime_of(request)
    if not runtime.settings.login:  # nothing to read from the record
        return runtime.view(request, role)
    return await runtime.read(runtime.view, request, role)


async def select(request: Request) -> Response:
    """Shortlist a pool. The answer comes when the selection is on record."""
    runtime, view = runtime_of(request), await view_of(request, "operator")
    key = request.headers.get("idempotency-key")
    policy, query = request.path_params["policy"], request.scope["query_string"]
    asked = _plain(policy, query) if key is None else _asked(policy, query, key)
    view.actor.require_policy(asked.policy)
    view.key = None if key is None else key_of(request)
    if asked.audit_rate is not None and not asked.watch:
        raise InvalidInput("audit_rate", "an audit is drawn to watch a promise; give watch=true too.")
    if content_type(request) == "application/json":
        return await _select_rows(request, runtime, view, asked)
    if asked.audit_rate is not None:
        raise InvalidInput("audit_rate", "it goes with rows in JSON; send the pool as those.")
    columns = ChosenColumns(**asked.columns, decimal=asked.decimal, attributes=tuple(asked.attribute))
    async with tables_in(request, runtime, past=False, place=place_in(asked)) as pool:
        done = await runtime.work(
            jobs.select_file, Session(runtime, view), asked.policy, replace(pool.upload, name="the pool"),
            columns, format="csv" if asked.format == "spreadsheet" else asked.format, watch=asked.watch,
        )  # fmt: skip
    file, entry = done.file.path, done.written.entry
    if asked.format == "spreadsheet":
        file = await runtime.work(jobs.escaped, file)
    known = {"Selection": entry.subject, "Receipt": entry.receipt, "Result-SHA256": entry.event.result_sha256}
    return FileResponse(
        file, media_type=MEDIA_TYPES[done.file.format], filename=f"shortlist.{done.file.format}",
        headers={f"Surelist-{name}": value for name, value in known.items()},
        background=BackgroundTask(file.unlink, missing_ok=True),
    )  # fmt: skip


async def _select_rows(request: Request, runtime: Runtime, view: View, asked: SelectionRequest) -> Response:
    if asked.format is not None or asked.attribute or place_in(asked) != NO_HINTS:
        raise InvalidInput(
            "format", "it goes with files, as do attribute and where a table is; leave it out."
        )
    body = await json_body(request, runtime, runtime.settings.max_json)
    known = runtime.policies.get(asked.policy)
    made = known if known is not None else await runtime.read(runtime.load_policy, asked.policy)

    event, shortlist, lists = await large_or_small(
        runtime, body, jobs.select_rows, made, asked.policy, asked.columns, asked.audit_rate, asked.watch
    )
    ident = jobs.new_id()
    if asked.watch:
        written = await runtime.read(policy_watch.record_watched, view, ident, event)
    else:
        written = await runtime.written(view.record_selection(ident, event))
    answer = {"selection": answers.selection(written), "shortlist": msgspec.Raw(shortlist)}
    if lists is not None:
        answer["triage"] = lists
    if asked.audit_rate is not None:  # of the entry, which is an earlier one where this was asked before
        drawn = await large_or_small(runtime, body, rows_as_sent, written.entry.event.audit)
        answer["audit"] = msgspec.Raw(drawn)
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _asked(policy: str, query: bytes, key: str | None = None) -> SelectionRequest:
    raw: dict[str, Any] = {}
    if query:
        sent = parse_qs(query.decode("latin-1"), keep_blank_values=True)
        raw = {name: values if name == "attribute" else values[-1] for name, values in sent.items()}
        if not raw.keys().isdisjoint(_PLACES):
            raise InvalidInput("query", "policy is part of the path, and Idempotency-Key a header.")
    raw["policy"] = policy
    if key is not None:
        raw[KEY] = key
    try:
        return SelectionRequest.model_validate(raw)
    except ValidationError as error:
        raise first_of(error) from error


_plain = lru_cache(maxsize=256)(_asked)  # who selects all day asks the same way
