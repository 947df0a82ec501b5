"""Request bodies of the API: JSON rows, CSV, JSON Lines or Parquet, as rows or as a file for one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, TypeVar

from fastapi import Depends
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from surelist.errors import InvalidInput
from surelist.service import calibrating, jobs, models
from surelist.service.errors import WrongType, first_of
from surelist.service.middleware import SMALL, allow_body
from surelist.service.runtime import Runtime, bind, runtime_of
from surelist.service.sent_rows import lines_of, refuse_twice
from surelist.service.uploads import Upload
from surelist.service.workers import run
from surelist.workflows.source import NO_HINTS, Hints

INLINE = 1 << 20  # JSON bodies up to this size are worked on at once, larger ones in a worker
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

FORM_FILES = ("past", "unlabelled")
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LINES = "application/x-ndjson"
FILES = (
    "text/csv",
    LINES,
    "application/jsonl",
    "application/vnd.apache.parquet",
    "application/octet-stream",
    EXCEL,
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
)

TABLES = f"application/json, text/csv, {LINES}, application/vnd.apache.parquet or {EXCEL}"
TWO_FILES = "expected a form with the files past and unlabelled, and nothing else."

# for OpenAPI, since bodies are read by hand
TEXT, BINARY = {"schema": {"type": "string"}}, {"schema": {"type": "string", "format": "binary"}}
FILE_CONTENT = {"text/csv": TEXT, LINES: TEXT, "application/vnd.apache.parquet": BINARY, EXCEL: BINARY}
_TWO_FILES = {
    "type": "object", "required": ["past"], "properties": dict.fromkeys(FORM_FILES, BINARY["schema"]),
}  # fmt: skip
JSON_BODIES: dict[object, type[BaseModel]] = {}  # by the dependency that reads them


def body_of(model: type[BaseModel], **others: object) -> dict[str, object]:
    """A body as OpenAPI describes it: JSON, or something else."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}, **others}}
    }  # fmt: skip


TABLE_BODY = body_of(models.Rows, **FILE_CONTENT)
PAST_BODY = body_of(
    models.PastRows, **FILE_CONTENT, **{"multipart/form-data": {"schema": _TWO_FILES}}
)  # fmt: skip


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
        yield calibrating.Past(admitted[0], others=admitted[1] if len(admitted) > 1 else None)
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
        files = [form.get(name) for name in FORM_FILES if name in form]
        if set(form) - set(FORM_FILES) or "past" not in form or len(form.multi_items()) > len(files):
            raise InvalidInput("body", TWO_FILES)
        for each in files:
            if not isinstance(each, UploadFile):
                raise InvalidInput("body", TWO_FILES)
            uploads.append(await runtime.work(runtime.spool.store, each.file, limit))
            bind(request, uploads[-1].sha256)
    finally:
        await form.close()
