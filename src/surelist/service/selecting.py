"""Selections through the API: what it is asked all day. Read, shortlist, put on record, answer.

Address and options are read by hand and the handler is called straight from the guard, to save the work of
FastAPI's routes and parameters on every one of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace
from pydantic import Field, StringConstraints, ValidationError
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from surelist.errors import InvalidInput
from surelist.service import answers, bodies, jobs, models, policy_watch
from surelist.service.choices import ChosenColumns
from surelist.service.errors import first_of
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, Session, key_of, runtime_of
from surelist.service.sent_rows import rows_as_sent
from surelist.workflows.source import NO_HINTS

ROUTE = "/policies/{policy}/select"
ADDRESS = re.compile("/api/v1/policies/([0-9a-f]{64})/select")
DigestText = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern="^[!-~]+$")]
KEY, KEY_HELP = "Idempotency-Key", "Sent again with the same request, nothing is recorded twice."
MEDIA_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": bodies.LINES,
    "xlsx": bodies.EXCEL,
}

ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": models.Shortlist, "content": bodies.FILE_CONTENT,
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

    def as_columns(self) -> ChosenColumns:
        return ChosenColumns(
            score=self.score, group=self.group, id=self.id, pool=self.pool, decimal=self.decimal,
            attributes=tuple(self.attribute),
        )  # fmt: skip


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
    if bodies.content_type(request) == "application/json":
        return await _select_rows(request, runtime, view, asked)
    if asked.audit_rate is not None:
        raise InvalidInput("audit_rate", "it goes with rows in JSON; send the pool as those.")
    async with bodies.tables_in(request, runtime, past=False, place=bodies.place_in(asked)) as pool:
        done = await runtime.work(
            jobs.select_file, Session(runtime, view), asked.policy, replace(pool.upload, name="the pool"),
            asked.as_columns(),
            format="csv" if asked.format == "spreadsheet" else asked.format, watch=asked.watch,
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
            "Surelist-Result-SHA256": entry.event.result_sha256,
        },
        background=BackgroundTask(file.unlink, missing_ok=True),
    )


async def _select_rows(request: Request, runtime: Runtime, view: View, asked: SelectionRequest) -> Response:
    if asked.format is not None or asked.attribute or bodies.place_in(asked) != NO_HINTS:
        raise InvalidInput(
            "format", "it goes with files, as do attribute and where a table is; leave it out."
        )
    body = await bodies.json_body(request, runtime, runtime.settings.max_json)
    known = runtime.known_policy(asked.policy)
    made = known if known is not None else await runtime.read(runtime.load_policy, asked.policy)

    event, shortlist = await bodies.large_or_small(
        runtime, body, jobs.select_rows, made, asked.policy, asked.columns, asked.audit_rate, asked.watch
    )
    ident = jobs.new_id()
    if asked.watch:
        written = await runtime.read(policy_watch.record_watched, view, ident, event)
    else:
        written = await runtime.written(view.record_selection(ident, event))
    jobs.count_selection(runtime, event)
    answer = {"selection": answers.selection(written), "shortlist": msgspec.Raw(shortlist)}
    if made.three_ways:
        answer["triage"] = await bodies.large_or_small(runtime, body, jobs.three_lists, made, asked.columns)
    if asked.audit_rate is not None:  # of the entry, which is an earlier one where this was asked before
        drawn = await bodies.large_or_small(runtime, body, rows_as_sent, written.entry.event.audit)
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
