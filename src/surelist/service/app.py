"""The app factory: settings in, ASGI application out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from surelist._version import __version__
from surelist.errors import SurelistError, error_body
from surelist.service import api, campaign_pages, labelling_pages, pages, review_pages, team_pages, visitor  # noqa: F401 (their routes)
from surelist.service.bodies import JSON_BODIES, Shortcut, body_of
from surelist.service.errors import MEANING, PAGE, PARAMETERS, NotFound, as_answer, first_of, headers_of
from surelist.service.middleware import Guard, Metrics
from surelist.service.models import PastRows, Rows
from surelist.service.record.access import Brake
from surelist.service.record.database import Database
from surelist.service.record.record import Actor, Registry
from surelist.service.record.view import View
from surelist.service.runtime import Runtime, runtime_of, slots_of
from surelist.service.settings import Settings
from surelist.service.uploads import Spool
from surelist.service.visitor import Sandboxes

FOLDER = Path(__file__).parent
SWEEP_SECONDS = 30
KEYS_KEPT = timedelta(days=3)


def create_app(settings: Settings) -> FastAPI:
    """One service. The record is opened here, so that a wrong database shows at once."""
    database = Database(settings.database)
    database.prepare()
    spool = Spool(settings.spool)
    expired = spool.sweep(starting=True)
    metrics = Metrics()
    brake = Brake(settings.login_attempts)
    runtime = Runtime(settings, Registry(database), spool, metrics, brake, *slots_of(settings))
    runtime.take_chosen()
    _note_removed(runtime, expired)

    sandboxes = Sandboxes(runtime)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep(runtime, sandboxes))
        yield
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        sandboxes.close()
        for slots in (runtime.heavy, runtime.printing):
            slots.workers.close()
        runtime.registry.close()
        spool.close()

    app = FastAPI(
        title="surelist", version=__version__, lifespan=lifespan,
        description="Shortlists with a proof. Options go in the query, tables in the body.",
        docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json",
    )  # fmt: skip
    app.state.runtime, app.state.sandboxes = runtime, sandboxes
    for router in (api.router, visitor.router):  # as they are: including a router builds every route again
        app.router.routes.extend(router.routes)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    _add_checks(app)
    _add_errors(app)
    app.add_middleware(Shortcut, route=api.router.routes[0])
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    _declare_bodies(app)
    return app


async def _sweep(runtime: Runtime, sandboxes: Sandboxes) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with suppress(SurelistError, OSError):
            await runtime.read(runtime.take_chosen)
            await runtime.read(sandboxes.sweep)
            _note_removed(runtime, await runtime.read(runtime.spool.sweep))
            until = (datetime.now(UTC) - KEYS_KEPT).isoformat(timespec="milliseconds")
            await runtime.read(runtime.registry.forget_replays, until)


def _note_removed(runtime: Runtime, lists: list[str]) -> None:
    """Lists whose time was up are gone: that goes on record, with what they were about."""
    view = View(runtime.registry, Actor("surelist", "operator"))
    for each in lists:
        with suppress(NotFound):  # laid out, and never put on record
            view.forget_list(each, "its time was up")


def _add_checks(app: FastAPI) -> None:
    """For whoever runs the service: is it alive, can it work, how much does it do."""

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> dict[str, str]:
        """Alive, and of which version."""
        return {"status": "ok", "version": __version__}

    @app.get("/readyz", tags=["operation"], responses={503: {"description": MEANING[503]}})
    async def readyz(request: Request) -> dict[str, str]:
        """Able to work: the record can be read and is where it was."""
        runtime = runtime_of(request)
        await runtime.read(runtime.registry.ready)
        return {"status": "ready"}

    @app.get("/metrics", tags=["operation"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counts and durations for Prometheus."""
        runtime = runtime_of(request)
        await runtime.read(runtime.view, request, "viewer")
        return Response(generate_latest(runtime.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_errors(app: FastAPI) -> None:
    async def explain(request: Request, error: Exception) -> Response:
        page = _wants_page(request)
        if isinstance(error, HTTPException):
            body: dict[str, object] = {"type": "HTTPError", "message": f"{error.detail}."}
            status, headers = error.status_code, dict(error.headers or {})
        else:
            shown = as_answer(first_of(error) if isinstance(error, RequestValidationError) else error)
            body, status = error_body(shown, PAGE if page else PARAMETERS), shown.status
            headers = headers_of(shown)
        if page:
            return await visitor.error_page(request, body, status, headers)
        return JSONResponse({"error": body}, status, headers)

    for kind in (SurelistError, OSError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, explain)


def _wants_page(request: Request) -> bool:
    machine = request.url.path.startswith(("/api/", "/healthz", "/readyz", "/metrics"))
    return not machine and "text/html" in request.headers.get("accept", "")


def _declare_bodies(app: FastAPI) -> None:
    """Bodies are read by hand, so their schema is added by hand."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        parts = schema.setdefault("components", {}).setdefault("schemas", {})
        bodies: list[type[BaseModel]] = [Rows, PastRows]
        routes: list[Any] = api.router.routes
        for route in routes:
            read = [JSON_BODIES.get(each.call) for each in route.dependant.dependencies]
            for model in filter(None, read):
                schema["paths"][route.path]["post"] |= body_of(model)
                bodies.append(model)
        asked: Any = [(model, "validation") for model in bodies]
        parts |= models_json_schema(asked, ref_template="#/components/schemas/{model}")[1]["$defs"]
        _order(schema["paths"])
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def _order(paths: dict[str, dict[str, Any]]) -> None:
    """On the page of the API, what is about one thing stands together, each with its first sentence."""
    for path, operations in paths.items():
        kind = path.removeprefix("/api/v1/").split("/")[0]
        for operation in operations.values():
            operation.setdefault("tags", ["policies" if kind in ("calibrate", "curve", "list") else kind])
            operation["summary"] = re.split(r"\.\s|\.$|\n\n", operation["description"])[0]
