"""The page: logging in, what is on record, shortlists and their reviews. ``drafts`` has the stories."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.promises import policy_file
from surelist.promises.usual_counts import usual
from surelist.reports.pictures import promise_charts
from surelist.reports.summary import cutoffs_of
from surelist.service import (
    answers,
    api_page,
    campaigns,
    downloading,
    jobs,
    policy_watch,
    reviewing,
    start_page,
    wizard,
)
from surelist.service.errors import NotAuthenticated
from surelist.service.record import access
from surelist.service.uploads import list_of
from surelist.service.visitor import SHOWN, Me, safe_path, send, to

COMPARED = 8  # policies side by side
router = APIRouter()


@router.get("/login")
async def login_form(me: Me, next: str = "/") -> Response:
    if me.settings.open_to_all:
        return to("/")
    return me.show("login.html", problem=None, back=safe_path(next))


@router.post("/login")
async def login(me: Me) -> Response:
    form = await me.form()
    back = safe_path(str(form.get("next") or "/"))
    try:
        return await me.log_in(str(form.get("token", "")), back)
    except NotAuthenticated as error:
        return me.show("login.html", 401, problem=error, back=back)


@router.post("/logout")
async def logout(me: Me) -> Response:
    await me.form()
    me.runtime.local_sessions.discard(me.owner)
    await me.runtime.read(me.sandboxes.end, me.owner)
    await me.runtime.read(access.end_session, me.runtime.registry, me.cookie)
    response = to("/login")
    response.delete_cookie(me.cookie_name)
    return response


@router.get("/")
async def home(me: Me, token: str | None = None) -> Response:
    if token is not None and me.settings.local_token is not None:
        return await me.log_in(token)  # the address that was printed; its token leaves the address bar
    view = await me.view()
    waiting = await me.runtime.read(start_page.worklist, view, me.spool)
    maker = not view.actor.limited and view.actor.role != "viewer"
    if not waiting["any"] and not waiting["campaigns"] and maker:
        return me.show("home.html", like=None)
    return me.show("worklist.html", **waiting, maker=maker, viewer=view.actor.role == "viewer")


@router.get("/new")
async def new_policy(me: Me, like: str | None = None) -> Response:
    """Begin a policy; ``like`` takes over the promise of another one."""
    view = await me.view("operator", all_policies=True)
    saved = await me.runtime.read(view.policy, like) if like else None
    taken = saved and {"hash": saved.hash, "name": saved.name, "promise": saved.policy.two_lines.what}
    return me.show("home.html", like=taken)


@router.get("/policies")
async def policies(me: Me, q: str = "", state: str = "") -> Response:
    view = await me.view()
    found, more = await me.runtime.read(
        start_page.policies, view, q[:200], state if state in start_page.STATES else ""
    )
    return me.show(
        "policies.html", policies=found, more=more, search=q[:200], state=state, states=start_page.STATES
    )  # fmt: skip


@router.get("/policies/compare")
async def compare(me: Me, p: Annotated[list[str] | None, Query()] = None) -> Response:
    view = await me.view()
    if p is None or not 2 <= len(p) <= COMPARED:
        raise InvalidInput("compare", f"choose 2 to {COMPARED} policies.")
    chosen = [await me.runtime.read(view.policy, each) for each in p]
    return me.show(
        "compare.html", rows=wizard.comparison(chosen), policies=[answers.policy(each) for each in chosen],
        picture=wizard.comparison_picture(chosen),
    )  # fmt: skip


@router.get("/policies/{digest}")
async def policy(digest: str, me: Me) -> Response:
    view = await me.view()
    saved = await me.runtime.read(view.policy, digest)
    lived = await me.runtime.read(policy_watch.life, view, saved)
    evidence = saved.saved.evidence
    return me.show(
        "policy.html", policy=answers.policy(saved), saved=saved, evidence=evidence,
        as_campaign=campaigns.terms_like(saved.policy) is not None,
        charts=promise_charts(evidence, saved.policy),
        cutoffs=cutoffs_of(saved.policy), actor=view.actor, life=lived, in_use=saved.in_use,
    )  # fmt: skip


@router.get("/policies/{digest}/policy.json")
async def download_policy(digest: str, me: Me) -> Response:
    saved = await me.runtime.read((await me.view()).policy, digest)
    headers = {"Content-Disposition": 'attachment; filename="policy.json"'}
    text = policy_file.dumps(saved.current) if saved.withdrawn else saved.saved.policy
    return Response(text, media_type="application/json", headers=headers)


@router.get("/policies/{digest}/report")
async def policy_report(digest: str, me: Me) -> Response:
    return answers.report_page(await me.runtime.read((await me.view()).policy, digest))


@router.get("/policies/{digest}/report.pdf")
async def policy_report_pdf(digest: str, me: Me) -> Response:
    saved = await me.runtime.read((await me.view()).policy, digest)
    return await _pdf(me, downloading.file_name(saved.name, "report", saved.entry.at, "pdf"), saved)


@router.post("/policies/{digest}/retire")
async def retire(digest: str, me: Me) -> Response:
    view = await me.view("admin")
    view.actor.require_policy(digest)
    reason = str((await me.form()).get("reason", "")).strip()
    if not reason:
        raise InvalidInput("reason", "say in a sentence why the policy is retired; it goes on record.")
    await me.runtime.written(view.retire_policy(digest, reason[:2000]))
    return to(f"/policies/{digest}")


@router.post("/policies/{digest}/describe")
async def describe_policy(digest: str, me: Me) -> Response:
    view = await me.view("operator")
    view.actor.require_policy(digest)
    name, note = wizard.description_of(await me.form())
    key = me.key("describe", digest, name, note)
    await me.runtime.written(await me.runtime.read(view.describe_policy, digest, name, note, key))
    return to(f"/policies/{digest}")


@router.post("/selections/{ident}/describe")
async def describe_selection(ident: str, me: Me) -> Response:
    view = await me.view("operator")
    await me.runtime.read(view.selection, ident)
    name, note = wizard.description_of(await me.form())
    key = me.key("describe", ident, name, note)
    await me.runtime.written(await me.runtime.read(view.describe_selection, ident, name, note, key))
    return to(f"/selections/{ident}")


@router.get("/selections")
async def selections(me: Me, q: str = "", policy: Annotated[str | None, Query()] = None) -> Response:
    view = await me.view()
    if policy:
        view.actor.require_policy(policy)
    found = await me.runtime.read(start_page.selections, view, q[:200], policy or None)
    return me.show(
        "selections.html", selections=found, search=q[:200], policy=policy, searched=start_page.SEARCHED
    )


@router.get("/selections/{ident}")
async def selection(ident: str, me: Me) -> Response:
    view = await me.view()
    saved, entry, _ = await me.runtime.read(view.selection_with_all, ident)
    marks = await me.runtime.read(view.marks, ident)
    reviewer = await me.runtime.read(view.reviewer, ident)
    closed = await me.runtime.read(view.reviews_closed, ident)
    kept = me.spool.result(ident) if view.actor.role != "viewer" else None
    shown, made = None, entry.event
    if kept is not None:
        names, rows = await me.runtime.work(jobs.first_rows, kept, SHOWN)
        shown = wizard.shortlist(saved.policy, made, kept, names, rows)
    return me.show(
        "selection.html", entry=entry, facts=made, shown=shown,
        policy=answers.policy(saved, made.candidates),
        progress=reviewing.progress(marks, made.to_review, reviewer), limit=SHOWN,
        title=view.title(entry), note=view.note(entry), closed=closed,
        usual=None if saved.saved.earlier_looks
        else usual(saved.current, made.candidates, made.shortlisted),
        viewer=view.actor.role == "viewer", review=kept is not None and list_of(kept.upload).exists(),
    )  # fmt: skip


@router.get("/selections/{ident}/shortlist.{format}")
async def download(ident: str, format: str, me: Me, safe: bool = False) -> Response:
    """As it was made; for spreadsheets (``safe``, and Excel) with rank and reason, no cell a formula."""
    view = await me.view("operator")
    saved, entry, _ = await me.runtime.read(view.selection_with_all, ident)
    kept = me.spool.result(ident)
    if kept is None or format not in ("csv", "jsonl", "parquet", "xlsx"):
        raise InvalidInput("shortlist", "it is no longer kept here. Select again, the result is the same.")
    kind = "plain" if format == "csv" and not safe else ""  # may hold formulas, unlike the one for people
    name = downloading.file_name(saved.name, view.title(entry), entry.at, format, kind)
    if format == "xlsx" or (safe and format == "csv"):
        path = await me.runtime.work(
            downloading.for_people, me.spool, kept, format, saved.policy, entry.event
        )
    elif format == kept.upload.path.suffix[1:]:
        path = await me.runtime.read(downloading.unchanged, me.spool, kept)
    else:
        path = await me.runtime.work(downloading.as_made, me.spool, kept, format)
    return send(path, name)


@router.get("/selections/{ident}/report")
async def selection_report(ident: str, me: Me) -> Response:
    view = await me.view()
    return answers.report_page(*await me.runtime.read(view.selection_with_all, ident))


@router.get("/selections/{ident}/report.pdf")
async def selection_report_pdf(ident: str, me: Me) -> Response:
    view = await me.view()
    saved, entry, reviews = await me.runtime.read(view.selection_with_all, ident)
    name = downloading.file_name(saved.name, f"{view.title(entry)} report", entry.at, "pdf")
    return await _pdf(me, name, saved, entry, reviews)


async def _pdf(me: Me, name: str, *known: Any) -> Response:
    """A report as PDF, made in a worker that is for that alone."""
    path = await me.runtime.printing.run(
        lambda: downloading.report_pdf(me.spool, answers.report_html(*known))
    )
    return send(path, name, "application/pdf")


@router.get("/template.{format}")
async def template(format: Literal["csv", "xlsx"], me: Me) -> Response:
    await me.view()
    path = await me.runtime.work(downloading.template, me.spool, format)
    name = f"past-candidates.{format}"
    return send(path, name)


@router.get("/glossary")
async def glossary(me: Me) -> Response:
    await me.view()
    return me.show("glossary.html")


@router.get("/docs")
async def docs(me: Me) -> Response:
    return me.show("docs.html", **api_page.described(me.request.app.openapi()))
