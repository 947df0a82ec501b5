"""Who looks at the page: the session's cookie, the record as they may see it, and their forms.

A person who tries the page with made-up candidates has a sandbox: a record and a spool of their own. While a
session is in its sandbox, every page works on that record alone; the real one is not touched. What is in a
sandbox is removed when the person leaves or logs out, after an hour, and when the service starts.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from fastapi import APIRouter, Depends
from msgspec import Struct
from msgspec.structs import replace
from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from surelist._version import __version__
from surelist.errors import InvalidInput
from surelist.reports.report import environment
from surelist.service.errors import Forbidden, NotAuthenticated, plainly, sentence
from surelist.service.middleware import SMALL, Metrics, allow_body
from surelist.service.record import access
from surelist.service.record.access import Brake
from surelist.service.record.database import Database
from surelist.service.record.record import LOCAL_ACTOR, Actor, Registry
from surelist.service.record.view import View, person
from surelist.service.runtime import Runtime, Session, bind, key_of, runtime_of
from surelist.service.uploads import Spool

# pages that are never about a sandbox
OUTSIDE = ("/login", "/logout", "/sandbox", "/team")
SHOWN = 100  # rows of a shortlist on the page; the download has all
router = APIRouter(include_in_schema=False)  # of all pages
UPLOAD = -1  # a form with a file that may be as large as the settings say

_templates = environment(Path(__file__).parent / "templates")
_templates.filters.update(plainly=plainly, sentence=sentence, person=person)
_templates.globals.update(version=__version__)


class Visitor(Session):
    """A person's browser: who they are, and what they sent."""

    form: FormData

    def __init__(self, request: Request) -> None:
        self.request, self.real = request, runtime_of(request)
        self.cookie_name = "__Host-surelist" if self.real.settings.https else "surelist"
        sent = request.cookies.get(self.cookie_name, "")
        self.fresh = len(sent) < 40
        self.cookie = access.new_cookie() if self.fresh else sent
        self.sandboxes: Sandboxes = request.app.state.sandboxes
        self._person: Actor | None = None  # once known, whatever they may
        outside = request.url.path.startswith(OUTSIDE)
        self._box = None if outside else self.sandboxes.enter(self.owner)
        self.sandbox = self._box and self._box.runtime
        self.runtime = self.sandbox or self.real

    async def leave(self) -> None:
        """The request is answered: a sandbox may go now."""
        if self._box is not None:
            await self.real.read(self.sandboxes.leave, self._box)

    @property
    def owner(self) -> str:
        return access.owner_of(self.cookie)

    async def enter(self, role: str, *, all_policies: bool = False) -> None:
        """Open the record to this person, with at least this role; in a sandbox, all of that one."""
        if self.sandbox is not None:
            await self.real_view("viewer")  # still logged in
            self.view = View(self.sandbox.registry, LOCAL_ACTOR)
        else:
            self.view = await self.real_view(role, all_policies=all_policies)
        self.view.key = key_of(self.request)

    async def real_view(self, role: str, *, all_policies: bool = False) -> View:
        """The record outside of any sandbox."""
        registry = self.real.registry
        if self.real.settings.open_to_all or self.owner in self.real.local_sessions:
            self._person = LOCAL_ACTOR
            return View(registry, LOCAL_ACTOR)
        actor = None if self.fresh else await self.real.read(access.find_session, registry, self.cookie)
        if actor is None:
            raise NotAuthenticated("Log in first.")
        self._person = actor
        actor.require(role)
        if all_policies:
            actor.require_all_policies()
        return View(registry, actor)

    @property
    def who(self) -> dict[str, object] | None:
        """Who looks at the page and what they may, so that it offers nothing that would be refused."""
        if self._person is None:
            return None
        acting = self._person if self.sandbox is None else LOCAL_ACTOR
        name = person(self._person.name)
        return {
            "name": "this machine" if self._person is LOCAL_ACTOR else name, "role": self._person.role,
            "only": len(self._person.policies or ()), "limited": self._person.limited,
            "operates": acting.role != "viewer", "all": not acting.limited, "leads": acting.leads,
        }  # fmt: skip

    async def receive(self, limit: int) -> None:
        """Take a form of this very session; a form that another site sends has no such token."""
        limit = self.settings.max_upload + (1 << 20) if limit == UPLOAD else limit
        allow_body(self.request.scope, limit)
        try:
            self.form = await self.request.form(max_files=int(limit > SMALL), max_fields=2 * SHOWN + 100)
        except (LookupError, UnicodeError, ValueError):
            raise InvalidInput("form", expected="text in UTF-8", got="another encoding") from None
        if self.fresh or self.form.get("csrf") != access.csrf_token(self.cookie):
            raise Forbidden("This form is no longer valid. Go back, load the page again and repeat.")
        bind(self.request, *(repr(each) for each in self.form.multi_items() if each[0] != "csrf"))

    def said(self, name: str) -> str:
        """A field of the form as it was typed, without spaces around it; empty where it was not sent."""
        return str(self.form.get(name) or "").strip()

    def file(self, name: str = "file") -> UploadFile | None:
        """The file that came with the form, if one was chosen."""
        file = self.form.get(name)
        return file if isinstance(file, UploadFile) and file.filename else None

    def show(self, name: str, status: int = 200, /, **values: object) -> HTMLResponse:
        html = _templates.get_template(name).render(
            csrf=access.csrf_token(self.cookie), path=self.request.url.path,
            login=not self.real.settings.open_to_all, keep=self.settings, sandbox=self.sandbox is not None,
            who=self.who, template=name.removesuffix(".html"),
            **values,
        )  # fmt: skip
        response = HTMLResponse(html, status)
        if self.fresh:
            self.set_cookie(response, self.cookie)
        return response

    def log_in(self, text: str, back: str = "/") -> Response:
        """To where they were, with a session for whoever holds this token."""
        token = self.runtime.token(self.request, text)
        if token is None:
            cookie = access.new_cookie()
            self.runtime.local_sessions.add(access.owner_of(cookie))
        else:
            cookie = access.begin_session(self.runtime.registry, token, self.settings.session_life)
        response = to(safe_path(back))
        self.set_cookie(response, cookie)
        return response

    def set_cookie(self, response: Response, cookie: str) -> None:
        response.set_cookie(
            self.cookie_name, cookie, max_age=self.settings.session_life, path="/", httponly=True,
            samesite="strict", secure=self.settings.https,
        )  # fmt: skip


def visit(
    role: str | None = None, *, all_policies: bool = False, of: str | None = None, limit: int = SMALL
) -> Any:
    """Whoever asks, until they are answered; with their form, where they sent one.

    Only whoever has the ``role``, and may see what the address is about (``of``: a method of the view, or
    an upload of theirs), can send a form at all.
    """

    async def visiting(request: Request) -> AsyncIterator[Visitor]:
        me = Visitor(request)
        try:
            if role is not None:
                await me.enter(role, all_policies=all_policies)
            if of is not None:
                ident = next(iter(request.path_params.values()))
                own = partial(me.spool.draft, owner=me.owner)
                await me.runtime.read(own if of == "upload" else getattr(me.view, of), ident)
            if request.method == "POST":
                await me.receive(limit)
            yield me
        finally:
            if hasattr(me, "form"):
                await me.form.close()
            await me.leave()

    return Depends(visiting)


Me = Annotated[Visitor, visit()]
Viewer = Annotated[Visitor, visit("viewer")]
Auditor = Annotated[Visitor, visit("viewer", all_policies=True)]
Operator = Annotated[Visitor, visit("operator")]
Reviewer = Annotated[Visitor, visit("operator", of="subject")]
Owner = Annotated[Visitor, visit("operator", of="upload")]
Maker = Annotated[Visitor, visit("operator", all_policies=True)]
Uploader = Annotated[Visitor, visit("operator", all_policies=True, limit=UPLOAD)]
Admin = Annotated[Visitor, visit("admin", all_policies=True)]


def send(path: Path, name: str, media_type: str | None = None) -> FileResponse:
    """A file to take home, which is removed once it was sent."""
    removal = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(path, filename=name, media_type=media_type, background=removal)


def to(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def safe_path(text: str) -> str:
    """A path of this service to go back to; the start page for whatever could lead elsewhere."""
    parts = urlsplit(text)
    plain = text.startswith("/") and text.isprintable() and "\\" not in text and len(text) <= 2000
    if not plain or text.startswith("//") or parts.scheme or parts.netloc:
        return "/"
    return "/" if parts.path.startswith(("/login", "/logout")) else text


def _login(request: Request) -> Response:
    """To the login, and from there back; a form that was sent is gone, so back to the page it was on."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = safe_path(here if request.method == "GET" else _came_from(request) or "/")
    if urlsplit(back).path == "/":  # whose query may hold a token
        return to("/login")
    return to(f"/login?{urlencode({'next': back})}")


def _came_from(request: Request) -> str | None:
    """The page with the form that was sent, where the browser says so and it is one of ours."""
    page = urlsplit(request.headers.get("referer", ""))
    if request.method != "POST" or page.netloc != request.url.netloc or not page.path.startswith("/"):
        return None
    if page.path.startswith("//") or page.path == "/":  # elsewhere; or a query that may hold a token
        return None
    return urlunsplit(("", "", page.path, page.query, ""))


async def error_page(
    request: Request, body: dict[str, object], status: int, headers: dict[str, str]
) -> Response:
    if status == 401 and request.url.path != "/login":
        return _login(request)
    visitor = Visitor(request)
    try:
        with suppress(NotAuthenticated):  # who looks, if they have said so
            await visitor.real_view("viewer")
        response = visitor.show(
            "error.html", status, error=body, missing=status == 404, back=_came_from(request)
        )
    finally:
        await visitor.leave()
    response.headers.update(headers)
    return response


LIFE = 3600  # seconds
MOST = 20


class Box(Struct):
    """One sandbox. It is removed once nobody holds it: its session, until it ends, and requests at work."""

    runtime: Runtime
    until: float
    held: int = 1


class Sandboxes:
    """Who is in a sandbox, by session."""

    def __init__(self, real: Runtime) -> None:
        self._real, self._boxes = real, dict[str, Box]()
        self._lock = threading.Lock()
        self._folder = real.settings.folder / "sandboxes"
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, owner: str) -> Box:
        """A fresh one, entered; an earlier one of the session ends, and the oldest where there are many."""
        box = self._made()
        with self._lock:
            others = [each for each in self._boxes if each != owner]
            left = [self._boxes.pop(each) for each in others[: max(0, len(others) - MOST + 1)]]
            left += [self._boxes.pop(owner)] if owner in self._boxes else []
            self._boxes[owner], box.held = box, 2
        for each in left:
            self.leave(each)
        return box

    def _made(self) -> Box:
        folder = self._folder / secrets.token_hex(8)
        folder.mkdir(parents=True)
        settings = replace(
            self._real.settings, database=str(folder / "record.db"), folder=folder, host="127.0.0.1",
            login=False, local_token=None, keep_results=LIFE, longest_keep=LIFE,
        )  # fmt: skip
        database = Database(settings.database)
        database.prepare()
        runtime = Runtime(
            settings, Registry(database), Spool(settings.spool), Metrics(), Brake(1),
            self._real.heavy, self._real.printing,
        )  # fmt: skip
        return Box(runtime, time.time() + LIFE)

    def enter(self, owner: str) -> Box | None:
        """The sandbox that a session is in; it stays until it is left again."""
        with self._lock:
            box = self._boxes.get(owner)
            if box is None or box.until <= time.time():
                return None
            box.held += 1
            return box

    def leave(self, box: Box) -> None:
        """A request, or its session, is done with a sandbox."""
        with self._lock:
            box.held -= 1
            over = not box.held
        if over:
            _remove(box)

    def end(self, owner: str) -> None:
        """Remove a session's sandbox with everything in it, as soon as nobody is inside."""
        with self._lock:
            box = self._boxes.pop(owner, None)
        if box is not None:
            self.leave(box)

    def sweep(self) -> None:
        """Remove those whose time is up."""
        for owner, box in list(self._boxes.items()):
            if box.until <= time.time():
                self.end(owner)

    def close(self) -> None:
        """The service stops: no request is left inside."""
        with self._lock:
            boxes, self._boxes = list(self._boxes.values()), {}
        for box in boxes:
            _remove(box)
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove(box: Box) -> None:
    box.runtime.registry.close()
    box.runtime.spool.close()
    shutil.rmtree(box.runtime.settings.folder, ignore_errors=True)
