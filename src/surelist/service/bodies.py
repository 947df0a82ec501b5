"""Request bodies of the API: JSON rows, CSV or Parquet, as rows or as a file for one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson
import pydantic_core
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from surelist.errors import InvalidInput
from surelist.service import jobs
from surelist.service.errors import WrongType
from surelist.service.middleware import SMALL, allow_body
from surelist.service.runtime import Runtime
from surelist.service.uploads import Upload

SHAPE = bytes.maketrans(b"123456789:,[-\t\n\r", b"000000000       ")
LONG_INTEGER = b" " + b"0" * 19  # in that shape
INLINE = 1 << 20  # JSON bodies up to this size are worked on at once, larger ones on a thread
M = TypeVar("M", bound=BaseModel)

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FILES = (
    "text/csv",
    "application/vnd.apache.parquet",
    "application/octet-stream",
    EXCEL,
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
)

# for OpenAPI, since bodies are read by hand
TABLE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Rows"}},
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            EXCEL: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


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
    return b"".join(pieces)


async def parsed_body(request: Request, runtime: Runtime, model: type[M], limit: int = SMALL) -> M:
    """A JSON body as a model: read by hand, because FastAPI would read it before asking who sends it."""
    if content_type(request) != "application/json":
        raise WrongType(f"Content-Type: expected application/json, got {content_type(request)[:80]!r}.")
    body = await json_body(request, runtime, limit)
    try:
        if len(body) <= INLINE:
            return model.model_validate_json(body)
        return await runtime.work(model.model_validate_json, body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(["body", *map(str, first["loc"])])
        raise InvalidInput(f"{where}: {first['msg']}.") from None


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The same for OpenAPI."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def parse_rows(body: bytes) -> Sequence[Mapping[str, Any]]:
    """The rows of a JSON body, each number as it was sent."""
    try:
        value = orjson.loads(body)
        if LONG_INTEGER in body.translate(SHAPE):  # orjson would round those beyond 64 bits
            value = pydantic_core.from_json(body)
    except ValueError as error:
        raise InvalidInput(f"body: expected JSON, got something else ({error}).") from error
    rows = value.get("rows") if isinstance(value, dict) else None
    if not isinstance(rows, list) or not set(map(type, rows)) <= {dict}:
        raise InvalidInput('body: expected {"rows": [{column: value, ...}, ...]}.')
    return rows


@asynccontextmanager
async def table_body(
    request: Request, runtime: Runtime, *, past: bool, sheet: str | None = None
) -> AsyncIterator[Upload]:
    """The body as a file, for the length of one request and not longer."""
    upload = received = await _received(request, runtime)
    try:
        upload = await runtime.work(jobs.admit, received, runtime.settings, past=past, sheet=sheet)
        yield upload
    finally:
        received.path.unlink(missing_ok=True)
        upload.path.unlink(missing_ok=True)


async def _received(request: Request, runtime: Runtime) -> Upload:
    kind = content_type(request)
    if kind == "application/json":
        body = await json_body(request, runtime, runtime.settings.max_json)
        return await runtime.work(_written, runtime, body)
    if kind in FILES:
        allow_body(request.scope, runtime.settings.max_upload)
        return await runtime.spool.receive(request.stream(), runtime.settings.max_upload)
    raise WrongType(
        "Content-Type: expected application/json, text/csv, application/vnd.apache.parquet or "
        f"{EXCEL}, got {kind[:80]!r}."
    )


def _written(runtime: Runtime, body: bytes) -> Upload:
    rows = parse_rows(body)
    if not rows:
        raise InvalidInput("rows: expected at least one row, got none.")
    return jobs.store_rows(runtime.spool, rows, body)
