"""The app factory: settings in, ASGI application out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from surelist._version import __version__
from surelist.errors import InvalidInput, SurelistError
from surelist.service import api, pages
from surelist.service.errors import MEANING, body_of, headers_of, status_of
from surelist.service.middleware import Guard, Metrics
from surelist.service.record.access import Brake
from surelist.service.record.database import Database
from surelist.service.record.record import Registry
from surelist.service.runtime import Context, context_of
from surelist.service.settings import Settings
from surelist.service.uploads import Spool

HERE = Path(__file__).parent
SWEEP_SECONDS = 30
KEYS_KEPT = timedelta(days=3)


def create_app(settings: Settings) -> FastAPI:
    """One service. The record is opened here, so that a wrong database shows at once."""
    database = Database(settings.database)
    database.prepare()
    spool = Spool(settings.spool)
    spool.sweep(starting=True)
    metrics = Metrics()
    context = Context(settings, Registry(database), spool, metrics, Brake(settings.login_attempts))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep(context))
        yield
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        context.registry.close()

    app = FastAPI(
        title="surelist", version=__version__, lifespan=lifespan,
        description="Shortlists with a proof. Options go in the query, tables in the body.",
        docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json",
    )  # fmt: skip
    app.state.context = context
    app.include_router(api.router)
    app.include_router(pages.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    app.mount("/docs-assets", StaticFiles(directory=Path(fastapi_offline.__file__).parent / "static"))
    _add_checks(app)
    _add_errors(app)
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    _declare_rows(app)
    return app


async def _sweep(context: Context) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with suppress(SurelistError, OSError):
            await context.read(context.spool.sweep)
            until = (datetime.now(UTC) - KEYS_KEPT).isoformat(timespec="milliseconds")
            await context.read(context.registry.forget_replays, until)


def _add_checks(app: FastAPI) -> None:
    """For whoever runs the service: is it alive, can it work, how much does it do."""

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/readyz", tags=["operation"], responses={503: {"description": MEANING[503]}})
    async def readyz(request: Request) -> dict[str, str]:
        context = context_of(request)
        await context.read(context.registry.ready)
        return {"status": "ready"}

    @app.get("/metrics", tags=["operation"], response_class=Response)
    async def metrics(request: Request) -> Response:
        context = context_of(request)
        if context.settings.login:
            await context.read(context.actor, request, "viewer")
        return Response(generate_latest(context.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_errors(app: FastAPI) -> None:
    async def explain(request: Request, error: Exception) -> Response:
        status = status_of(error)
        if _wants_page(request):
            return await pages.error_page(request, body_of(error, status), status, headers_of(error, status))
        return JSONResponse({"error": body_of(error, status)}, status, headers_of(error, status))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return await explain(request, InvalidInput(f"{where}: {first['msg']}."))

    async def plain(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        body = {"type": "HTTPError", "message": f"{error.detail}."}
        headers = dict(error.headers or {})
        if _wants_page(request):
            return await pages.error_page(request, body, error.status_code, headers)
        return JSONResponse({"error": body}, error.status_code, headers)

    app.add_exception_handler(SurelistError, explain)
    app.add_exception_handler(OSError, explain)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)


def _wants_page(request: Request) -> bool:
    machine = request.url.path.startswith(("/api/", "/healthz", "/readyz", "/metrics"))
    return not machine and "text/html" in request.headers.get("accept", "")


def _declare_rows(app: FastAPI) -> None:
    """Bodies are read by hand, so their schema is added by hand."""
    from surelist.service.models import Rows

    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        parts = schema.setdefault("components", {}).setdefault("schemas", {})
        if "Rows" not in parts:
            rows = Rows.model_json_schema(ref_template="#/components/schemas/{model}")
            parts.update(rows.pop("$defs", {}))
            parts["Rows"] = rows
        parts.pop("HTTPValidationError", None)
        parts.pop("ValidationError", None)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
