"""The page: plain forms that work without script. One handler per step of the story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from surelist._version import __version__
from surelist.errors import InvalidInput
from surelist.reports import html as report
from surelist.reports.summary import RULE_NAMES, curve_table, in_order, summarise
from surelist.service import answers as views
from surelist.service import jobs as operations
from surelist.service import wizard as story
from surelist.service.record import access
from surelist.service.record.access import LOCAL_ACTOR, Actor, Forbidden, NotAuthenticated
from surelist.service.runtime import context_of
from surelist.service.spreadsheet import escape_file
from surelist.service.uploads import Draft
from surelist.workflows import tables as workflows

SHOWN = 1000  # rows of a shortlist on the page; the download has all
router = APIRouter()

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True,
    lstrip_blocks=True, undefined=StrictUndefined,
)  # fmt: skip
_templates.filters.update(report.FILTERS)
_templates.globals.update(
    curve_table=curve_table,
    in_order=in_order,
    rule_names=RULE_NAMES,
    version=__version__,
)


class Visitor:
    """Who looks at the page: the session's cookie, and the actor behind it."""

    def __init__(self, request: Request) -> None:
        self.request, self.here = request, context_of(request)
        self.cookie_name = "__Host-surelist" if self.here.settings.https else "surelist"
        sent = request.cookies.get(self.cookie_name, "")
        self.fresh = len(sent) < 40
        self.cookie = access.new_cookie() if self.fresh else sent

    @property
    def owner(self) -> str:
        return access.owner_of(self.cookie)

    async def actor(self, role: str = "viewer") -> Actor:
        if not self.here.settings.login:
            return LOCAL_ACTOR
        found = (
            None if self.fresh else await self.here.read(access.find_session, self.here.registry, self.cookie)
        )
        if found is None:
            raise NotAuthenticated("Log in first.")
        found.require(role)
        return found

    async def form(self, role: str = "operator") -> tuple[FormData, Actor]:
        """A form of this very session; a form that another site sends has no such token."""
        actor = await self.actor(role)
        return await self.open_form(), actor

    async def open_form(self) -> FormData:
        form = await self.request.form(max_files=1, max_fields=2000)
        if self.fresh or form.get("csrf") != access.csrf_token(self.cookie):
            raise Forbidden("This form is no longer valid. Go back, load the page again and repeat.")
        return form

    def show(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        html = _templates.get_template(name).render(
            csrf=access.csrf_token(self.cookie), path=self.request.url.path,
            login=self.here.settings.login, keep=self.here.settings, **values,
        )  # fmt: skip
        response = HTMLResponse(html, status)
        if self.fresh:
            self.set_cookie(response, self.cookie)
        return response

    def set_cookie(self, response: Response, cookie: str) -> None:
        response.set_cookie(
            self.cookie_name, cookie, max_age=self.here.settings.session_life, path="/", httponly=True,
            samesite="strict", secure=self.here.settings.https,
        )  # fmt: skip


Me = Annotated[Visitor, Depends(Visitor)]


def to(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


async def error_page(
    request: Request, body: dict[str, Any], status: int, headers: dict[str, str]
) -> Response:
    if status == 401 and request.url.path != "/login":
        return to("/login")
    response = Visitor(request).show("error.html", status, error=body, missing=status == 404)
    response.headers.update(headers)
    return response


@router.get("/login")
async def login_form(me: Me) -> Response:
    return me.show("login.html", problem=None) if me.here.settings.login else to("/")


@router.post("/login")
async def login(me: Me) -> Response:
    form = await me.open_form()
    address = me.request.client.host if me.request.client else "?"
    me.here.brake.check(address)
    try:
        token = await me.here.read(access.find_token, me.here.registry, str(form.get("token", "")).strip())
    except NotAuthenticated as error:
        me.here.brake.failed(address)
        return me.show("login.html", 401, problem=str(error))
    cookie = await me.here.read(access.begin_session, me.here.registry, token, me.here.settings.session_life)
    response = to("/")
    me.set_cookie(response, cookie)
    return response


@router.post("/logout")
async def logout(me: Me) -> Response:
    await me.open_form()
    await me.here.read(access.end_session, me.here.registry, me.cookie)
    response = to("/login")
    response.delete_cookie(me.cookie_name)
    return response


@router.get("/")
async def home(me: Me) -> Response:
    await me.actor()
    found = await me.here.read(me.here.registry.policies, 50)
    active = [views.policy(each) for each in found if each.retired is None]
    recent = [views.selection(each) for each in await me.here.read(me.here.registry.selections, None, 5)]
    return me.show("home.html", policies=active[:5], selections=recent)


@router.post("/drafts")
async def upload_past(me: Me) -> Response:
    form, _ = await me.form()
    draft = await _stored(me, form, "past")
    return to(f"/drafts/{draft.id}")


@router.post("/drafts/example")
async def example_past(me: Me) -> Response:
    await me.form()
    draft = await me.here.work(story.example, me.here, me.owner, "past")
    return to(f"/drafts/{draft.id}")


@router.get("/drafts/{ident}")
async def columns_form(ident: str, me: Me) -> Response:
    await me.actor("operator")
    draft = me.here.spool.draft(ident, me.owner)
    return await _columns_page(me, draft)


@router.post("/drafts/{ident}")
async def choose_columns(ident: str, me: Me) -> Response:
    form, _ = await me.form()
    draft = me.here.spool.draft(ident, me.owner)
    draft = me.here.spool.note(draft, columns=story.columns_of(form))
    problems = await me.here.work(story.problems, draft)
    if problems:
        return await _columns_page(me, draft, problems)
    return to(f"/drafts/{ident}/promise")


async def _columns_page(me: Visitor, draft: Draft, problems: Any = ()) -> Response:
    with operations.named(draft.upload, draft.filename):
        profile = await me.here.work(workflows.inspect, draft.upload.path)
    chosen = draft.notes.get("columns") or {**profile.guesses, "missing_labels": "error"}
    return me.show(
        "columns.html",
        400 if problems else 200,
        draft=draft,
        profile=profile,
        chosen=chosen,
        problems=problems,
    )


@router.get("/drafts/{ident}/promise")
async def promise_form(ident: str, me: Me) -> Response:
    await me.actor("operator")
    draft = me.here.spool.draft(ident, me.owner)
    return await _promise_page(me, draft)


async def _promise_page(me: Visitor, draft: Draft, problem: str | None = None) -> Response:
    if "columns" not in draft.notes:
        return to(f"/drafts/{draft.id}")
    group = draft.notes["columns"]["group"]
    groups = await me.here.work(workflows.group_names, draft.upload.path, group) if group else {}
    looks = await me.here.read(operations.earlier_looks, me.here.registry, draft.upload)
    return me.show(
        "promise.html", 400 if problem else 200, draft=draft, groups=groups, looks=looks,
        asked=draft.notes.get("asked") or story.DEFAULTS, problem=problem,
    )  # fmt: skip


@router.post("/drafts/{ident}/promise")
async def fix_promise(ident: str, me: Me) -> Response:
    form, actor = await me.form()
    draft = me.here.spool.draft(ident, me.owner)
    draft = me.here.spool.note(draft, asked=story.asked_of(form))
    try:
        await me.here.work(story.certify, me.here, draft, actor)
    except InvalidInput as error:
        return await _promise_page(me, draft, str(error))
    return to(f"/drafts/{ident}/result")


@router.get("/drafts/{ident}/result")
async def result(ident: str, me: Me) -> Response:
    await me.actor("operator")
    draft = me.here.spool.draft(ident, me.owner)
    outcome = draft.notes.get("outcome")
    if outcome is None:
        return to(f"/drafts/{ident}/promise")
    if "refused" in outcome:
        return me.show("refused.html", draft=draft, refused=outcome["refused"], asked=draft.notes["asked"])
    return me.show("result.html", draft=draft, **story.result(draft))


@router.get("/drafts/{ident}/explore")
async def explore(
    ident: str, me: Me, pool_size: Annotated[str, Query()] = "", alpha: Annotated[str, Query()] = ""
) -> Response:
    actor = await me.actor("operator")
    draft = me.here.spool.draft(ident, me.owner)
    if "columns" not in draft.notes:
        return to(f"/drafts/{ident}")
    shown = await me.here.work(story.explore, me.here, draft, actor, pool_size, alpha)
    return me.show("explore.html", draft=draft, **shown)


@router.post("/drafts/{ident}/save")
async def save_policy(ident: str, me: Me) -> Response:
    form, actor = await me.form()
    draft = me.here.spool.draft(ident, me.owner)
    digest = await me.here.work(story.save, me.here, draft, actor, str(form.get("name", "")))
    me.here.spool.drop_draft(draft, me.here.settings.keep_uploads)
    return to(f"/policies/{digest}")


@router.get("/policies")
async def policies(me: Me) -> Response:
    await me.actor()
    found = await me.here.read(me.here.registry.policies, 500)
    return me.show("policies.html", policies=[views.policy(each) for each in found])


@router.get("/policies/compare")
async def compare(me: Me, p: Annotated[list[str] | None, Query()] = None) -> Response:
    await me.actor()
    if p is None or len(p) != 2:
        raise InvalidInput("compare: choose exactly two policies.")
    both = [await me.here.read(me.here.registry.policy, each) for each in p]
    return me.show("compare.html", rows=story.comparison(both), both=[views.policy(each) for each in both])


@router.get("/policies/{digest}")
async def policy(digest: str, me: Me) -> Response:
    actor = await me.actor()
    saved = await me.here.read(me.here.registry.policy, digest)
    made = await me.here.read(me.here.registry.selections, digest, 20)
    evidence = saved.entry.facts.get("evidence")
    picture = report.curve_picture(evidence) if evidence else None
    return me.show(
        "policy.html", policy=views.policy(saved), saved=saved, picture=picture, evidence=evidence,
        cutoffs=summarise(saved.policy)["cutoffs"], actor=actor,
        selections=[views.selection(each) for each in made],
    )  # fmt: skip


@router.get("/policies/{digest}/policy.json")
async def download_policy(digest: str, me: Me) -> Response:
    await me.actor()
    saved = await me.here.read(me.here.registry.policy, digest)
    headers = {"Content-Disposition": 'attachment; filename="policy.json"'}
    return Response(saved.entry.facts["policy"], media_type="application/json", headers=headers)


@router.get("/policies/{digest}/report")
async def policy_report(digest: str, me: Me) -> Response:
    await me.actor()
    return await views.policy_report(me.here, digest)


@router.post("/policies/{digest}/retire")
async def retire(digest: str, me: Me) -> Response:
    form, actor = await me.form("admin")
    reason = str(form.get("reason", "")).strip()
    if not reason:
        raise InvalidInput("reason: say in a sentence why the policy is retired; it goes on record.")
    await me.here.written(me.here.registry.retire_policy(digest, actor.name, reason[:2000]))
    return to(f"/policies/{digest}")


@router.post("/policies/{digest}/pool")
async def upload_pool(digest: str, me: Me) -> Response:
    form, actor = await me.form()
    actor.require_policy(digest)
    if form.get("example"):
        draft = await me.here.work(story.example, me.here, me.owner, "pool", digest)
    else:
        draft = await _stored(me, form, "pool", digest)
    return to(f"/pools/{draft.id}")


@router.get("/pools/{ident}")
async def pool_form(ident: str, me: Me) -> Response:
    await me.actor("operator")
    return await _pool_page(me, me.here.spool.draft(ident, me.owner))


@router.post("/pools/{ident}")
async def select(ident: str, me: Me) -> Response:
    form, actor = await me.form()
    draft = me.here.spool.draft(ident, me.owner)
    draft = me.here.spool.note(draft, columns=story.columns_of(form))
    try:
        selection = await me.here.work(story.select, me.here, draft, actor)
    except InvalidInput as error:
        return await _pool_page(me, draft, str(error))
    me.here.spool.drop_draft(draft, me.here.settings.keep_uploads)
    return to(f"/selections/{selection}")


async def _pool_page(me: Visitor, draft: Draft, problem: str | None = None) -> Response:
    saved = await me.here.read(me.here.registry.policy, draft.policy or "")
    with operations.named(draft.upload, draft.filename):
        profile = await me.here.work(workflows.inspect, draft.upload.path)
    chosen = draft.notes.get("columns") or story.pool_columns(saved.policy, profile)
    return me.show(
        "pool.html", 400 if problem else 200, draft=draft, profile=profile, policy=views.policy(saved),
        grouped=saved.policy.grouped, chosen=chosen, problem=problem,
    )  # fmt: skip


@router.get("/selections")
async def selections(me: Me) -> Response:
    await me.actor()
    found = await me.here.read(me.here.registry.selections, None, 200)
    names = {each.hash: each.name for each in await me.here.read(me.here.registry.policies, 500)}
    return me.show("selections.html", selections=[views.selection(each) for each in found], names=names)


@router.get("/selections/{ident}")
async def selection(ident: str, me: Me) -> Response:
    actor = await me.actor()
    entry = await me.here.read(me.here.registry.selection, ident)
    actor.require_policy(entry.facts["policy"])
    saved = await me.here.read(me.here.registry.policy, entry.facts["policy"])
    kept = me.here.spool.result(ident) if actor.role != "viewer" else None
    shown = await me.here.work(story.shortlist, saved.policy, entry, kept, SHOWN) if kept else None
    reviews = await me.here.read(me.here.registry.reviews, ident)
    return me.show(
        "selection.html", entry=entry, facts=entry.facts, policy=views.policy(saved), shown=shown,
        kept=kept, reviews=reviews, limit=SHOWN,
    )  # fmt: skip


@router.get("/selections/{ident}/shortlist.{format}")
async def download(ident: str, format: str, me: Me, safe: bool = False) -> Response:
    actor = await me.actor("operator")
    entry = await me.here.read(me.here.registry.selection, ident)
    actor.require_policy(entry.facts["policy"])
    kept = me.here.spool.result(ident)
    if kept is None or format not in ("csv", "parquet"):
        raise InvalidInput("shortlist: it is no longer kept here. Select again, the result is the same.")
    if format == kept.upload.format and not safe:
        return FileResponse(kept.upload.path, filename=f"shortlist-{ident}.{format}")
    path = me.here.spool.new_path(format)
    await me.here.work(workflows.convert, kept.upload.path, path)
    if safe and format == "csv":
        path = await me.here.work(escape_file, path)
    name = f"shortlist-{ident}{'-spreadsheet' if safe else ''}.{format}"
    return FileResponse(path, filename=name, background=BackgroundTask(path.unlink, missing_ok=True))


@router.get("/selections/{ident}/report")
async def selection_report(ident: str, me: Me) -> Response:
    actor = await me.actor()
    entry = await me.here.read(me.here.registry.selection, ident)
    actor.require_policy(entry.facts["policy"])
    return await views.selection_report(me.here, ident)


@router.post("/selections/{ident}/reviews")
async def send_reviews(ident: str, me: Me) -> Response:
    form, actor = await me.form()
    found = story.reviews_of(form)
    if not found:
        raise InvalidInput("reviews: mark at least one candidate as qualified or not.")
    await me.here.written(await me.here.read(me.here.registry.record_reviews, ident, actor.name, found))
    return to(f"/selections/{ident}#reviews")


@router.get("/record")
async def record(me: Me, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
    (await me.actor()).require_policy("")
    entries = await me.here.read(me.here.registry.entries, limit=100, before=before)
    return me.show("record.html", entries=entries, before=before)


@router.get("/docs")
async def docs(me: Me) -> Response:
    return me.show("docs.html")


async def _stored(me: Visitor, form: FormData, kind: str, policy: str | None = None) -> Draft:
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidInput("file: choose a CSV or Parquet file first.")
    upload = await me.here.work(me.here.spool.store, file.file, me.here.settings.max_upload)
    try:
        await me.here.work(
            operations.admit, upload, me.here.settings, past=kind == "past", name=file.filename[:120]
        )
    except BaseException:
        upload.path.unlink(missing_ok=True)
        raise
    return me.here.spool.add_draft(me.owner, kind, file.filename, upload, me.here.settings.draft_life, policy)
