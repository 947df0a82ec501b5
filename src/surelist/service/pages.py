"""The page: logging in, what waits and what is on record, shortlists. ``drafts`` has the stories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Query
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.promises import policy_file
from surelist.promises.policy_display import usual
from surelist.promises.terms import Roles
from surelist.reports.pictures import promise_charts
from surelist.reports.report import common_of, cutoffs_of
from surelist.service import answers, api_page, campaigns, jobs, policy_watch, reviewing, visitor, wizard
from surelist.service.calibrating import Past, list_counts
from surelist.service.choices import until
from surelist.service.errors import NotAuthenticated
from surelist.service.models import PolicyView
from surelist.service.promise_form import asked_like
from surelist.service.record import access
from surelist.service.record.record import SavedPolicy
from surelist.service.record.view import View
from surelist.service.runtime import heavy
from surelist.service.uploads import KeptList, Spool, list_of
from surelist.service.visitor import Maker, Me, Operator, Viewer, Visitor, safe_path, send, to, visit

COMPARED = 8  # policies side by side
RECENT = 8  # policies on the worklist
PAGE = 100  # policies read at once
LISTED = 200  # of the latest selections and policies
SEARCHED = 2000  # of the latest ones
STATES = {"": "all", "use": "in use", "withdrawn": "withdrawn", "retired": "retired"}
LISTER = visit("operator", all_policies=True, of="selection", limit=visitor.UPLOAD)
ListSize = Annotated[int | None, Query(ge=1, le=10**9)]


@visitor.router.get("/login")
def login_form(me: Me, next: str = "/") -> Response:
    if me.settings.open_to_all:
        return to("/")
    return me.show("login.html", problem=None, back=safe_path(next))


@visitor.router.post("/login")
def login(me: Me) -> Response:
    back = safe_path(me.said("next") or "/")
    try:
        return me.log_in(str(me.form.get("token", "")), back)
    except NotAuthenticated as error:
        return me.show("login.html", 401, problem=error, back=back)


@visitor.router.post("/logout")
def logout(me: Me) -> Response:
    me.runtime.local_sessions.discard(me.owner)
    me.sandboxes.end(me.owner)
    access.end_session(me.runtime.registry, me.cookie)
    response = to("/login")
    response.delete_cookie(me.cookie_name)
    return response


@visitor.router.get("/", response_model=None)
async def home(me: Me, token: str | None = None) -> Response:
    if token is not None and me.settings.local_token is not None:
        # the address that was printed; its token leaves the address bar
        return await me.runtime.read(me.log_in, token)
    await me.enter("viewer")
    return await me.runtime.read(_worklist, me)


def _worklist(me: Visitor) -> Response:
    actor, waiting = me.view.actor, waiting_for(me.view, me.spool)
    maker = not actor.limited and actor.role != "viewer"
    if not waiting["any"] and not waiting["campaigns"] and maker:
        return me.show("home.html", like=None)
    return me.show("worklist.html", **waiting, maker=maker, viewer=actor.role == "viewer")


@visitor.router.get("/new")
def new_policy(me: Maker, like: str | None = None) -> Response:
    """Begin a policy; ``like`` takes over the promise of another one."""
    saved = me.view.policy(like) if like else None
    taken = (
        saved
        and asked_like(saved.policy)
        and {"hash": saved.hash, "name": saved.name, "promise": saved.policy.two_lines.what}
    )
    return me.show("home.html", like=taken)


@visitor.router.get("/policies")
def policies(me: Viewer, q: str = "", state: str = "") -> Response:
    found, more = found_policies(me.view, q[:200], state)
    return me.show("policies.html", policies=found, more=more, search=q[:200], state=state, states=STATES)


@visitor.router.get("/policies/compare")
def compare(me: Viewer, p: Annotated[list[str] | None, Query()] = None) -> Response:
    if p is None or not 2 <= len(p) <= COMPARED:
        raise InvalidInput("compare", f"choose 2 to {COMPARED} policies.")
    chosen = [me.view.policy(each) for each in p]
    return me.show(
        "compare.html", rows=wizard.comparison(chosen), policies=[answers.policy(each) for each in chosen],
        picture=wizard.comparison_picture(chosen),
    )  # fmt: skip


@visitor.router.get("/policies/{digest}")
def policy(digest: str, me: Viewer) -> Response:
    saved = me.view.policy(digest)
    evidence = saved.saved.evidence
    return me.show(
        "policy.html", policy=answers.policy(saved), saved=saved, evidence=evidence,
        again=asked_like(saved.policy) is not None,
        charts=promise_charts(evidence, saved.policy), cutoffs=cutoffs_of(saved.policy),
        common=common_of(saved.policy), actor=me.view.actor,
        life=policy_watch.life(me.view, saved), in_use=saved.in_use,
    )  # fmt: skip


@visitor.router.get("/policies/{digest}/policy.json")
def download_policy(digest: str, me: Viewer) -> Response:
    saved = me.view.policy(digest)
    headers = {"Content-Disposition": 'attachment; filename="policy.json"'}
    text = policy_file.dumps(saved.current) if saved.withdrawn else saved.saved.policy
    return Response(text, media_type="application/json", headers=headers)


@visitor.router.get("/policies/{digest}/report")
def policy_report(digest: str, me: Viewer) -> Response:
    return answers.report_page(me.view.policy(digest))


@heavy(visitor.router.get("/policies/{digest}/report.pdf"), "printing")
def policy_report_pdf(digest: str, me: Viewer) -> Response:
    saved = me.view.policy(digest)
    path = jobs.report_pdf(me.spool, answers.report_html(saved))
    return send(path, jobs.file_name(saved.name, "report", saved.entry.at, "pdf"), "application/pdf")


@visitor.router.post("/policies/{digest}/retire")
def retire(digest: str, me: Annotated[Visitor, visit("admin", of="policy")]) -> Response:
    if not (reason := me.said("reason")):
        raise InvalidInput("reason", "say in a sentence why the policy is retired; it goes on record.")
    me.view.retire_policy(digest, reason[:2000]).result()
    return to(f"/policies/{digest}")


@visitor.router.post("/policies/{digest}/describe")
def describe_policy(digest: str, me: Annotated[Visitor, visit("operator", of="policy")]) -> Response:
    named = wizard.description_of(me.form)
    me.view.describe_policy(digest, *named).result()
    return to(f"/policies/{digest}")


@visitor.router.post("/selections/{ident}/describe")
def describe_selection(ident: str, me: Annotated[Visitor, visit("operator", of="selection")]) -> Response:
    named = wizard.description_of(me.form)
    me.view.describe_selection(ident, *named).result()
    return to(f"/selections/{ident}")


@visitor.router.get("/selections")
def selections(me: Viewer, q: str = "", policy: str | None = None) -> Response:
    if policy:
        me.view.actor.require_policy(policy)
    found = found_selections(me.view, q[:200], policy or None)
    return me.show("selections.html", selections=found, search=q[:200], policy=policy, searched=SEARCHED)


@visitor.router.get("/selections/{ident}")
async def selection(ident: str, me: Viewer, n: ListSize = None) -> Response:
    kept = me.spool.result(ident) if me.view.actor.role != "viewer" else None
    await me.runtime.read(me.view.selection, ident)
    first = await me.runtime.work(jobs.first_rows, kept, visitor.SHOWN) if kept is not None else None
    return await me.runtime.read(_selection, me, ident, kept, first, n)


def _selection(me: Visitor, ident: str, kept: KeptList | None, first: Any, n: int | None) -> Response:
    view = me.view
    saved, entry, _ = view.selection_with_all(ident)
    made = entry.event
    return me.show(
        "selection.html", entry=entry, facts=made, policy=answers.policy(saved, made.candidates),
        shown=kept and wizard.shortlist(saved.policy, made, kept, *first),
        counts=wizard.shown_counts(kept.counts, n) if kept and kept.counts else None,
        countable=bool(kept and made.shortlisted) and wizard.one_ranking(saved),
        wrong_labels=wizard.wrong_labels(view.marks(ident)),
        columns=saved.policy.columns or {},
        progress=reviewing.progress(view.marks(ident), made.to_review, view.reviewer(ident)),
        limit=visitor.SHOWN, named=view.named([entry])[ident],
        closed=view.reviews_closed(ident), usual=None if saved.saved.earlier_looks
        else usual(saved.current, made.candidates, made.shortlisted),
        viewer=view.actor.role == "viewer", review=kept is not None and list_of(kept.upload).exists(),
    )  # fmt: skip


@heavy(visitor.router.post("/selections/{ident}/list"))
def count_list(ident: str, me: Annotated[Visitor, LISTER]) -> Response:
    """From labelled rows: how many of the first n of this very list are qualified, for every n."""
    saved, entry, _ = me.view.selection_with_all(ident)
    kept, roles = me.spool.result(ident), Roles(me.said("score") or None, me.said("label") or None)
    if kept is None or not wizard.one_ranking(saved):
        raise InvalidInput("list", "it is no longer kept here, or not the best of its pool by one score.")
    if (file := me.file()) is None:
        raise InvalidInput("file", "choose a file of labelled rows first.")
    past = Past(jobs.store(me, file, past=True))
    try:
        counts = list_counts(me.view, saved, kept, entry.event.candidates, past, roles)
    finally:
        past.upload.path.unlink(missing_ok=True)
    me.spool.keep_counts(kept, counts)
    return to(f"/selections/{ident}#counts")


@visitor.router.get("/selections/{ident}/shortlist.{format}")
async def download(ident: str, format: str, me: Operator, safe: bool = False) -> Response:
    """As it was made; for spreadsheets (``safe``, and Excel) with rank and reason, no cell a formula."""
    saved, entry, _ = await me.runtime.read(me.view.selection_with_all, ident)
    kept = me.spool.result(ident)
    if kept is None or format not in jobs.FORMATS:
        raise InvalidInput("shortlist", "it is no longer kept here. Select again, the result is the same.")
    kind = "plain" if format == "csv" and not safe else ""  # may hold formulas, unlike the one for people
    name = jobs.file_name(saved.name, me.view.title(entry), entry.at, format, kind)
    if format == "xlsx" or (safe and format == "csv"):
        job, more = jobs.for_people, (format, saved.policy, entry.event)
        return send(await me.runtime.work(job, me.spool, kept, *more), name)
    if format == kept.upload.path.suffix[1:]:
        return send(await me.runtime.read(jobs.unchanged, me.spool, kept), name)
    return send(await me.runtime.work(jobs.as_made, me.spool, kept, format), name)


@visitor.router.get("/selections/{ident}/report")
def selection_report(ident: str, me: Viewer) -> Response:
    return answers.report_page(*me.view.selection_with_all(ident))


@heavy(visitor.router.get("/selections/{ident}/report.pdf"), "printing")
def selection_report_pdf(ident: str, me: Viewer) -> Response:
    saved, entry, reviews = me.view.selection_with_all(ident)
    path = jobs.report_pdf(me.spool, answers.report_html(saved, entry, reviews))
    name = jobs.file_name(saved.name, f"{me.view.title(entry)} report", entry.at, "pdf")
    return send(path, name, "application/pdf")


@heavy(visitor.router.get("/template.{format}"))
def template(format: Literal["csv", "xlsx"], me: Viewer) -> Response:
    return send(jobs.template(me.spool, format), f"past-candidates.{format}")


@visitor.router.get("/glossary")
def glossary(me: Viewer) -> Response:
    return me.show("glossary.html")


@visitor.router.get("/docs")
def docs(me: Me) -> Response:
    return me.show("docs.html", **api_page.described(me.request.app.openapi()))


# -- what waits for a person, and what was done before, as plain values


def waiting_for(view: View, spool: Spool) -> dict[str, object]:
    """Alarms, reviews that are due, and the latest policies with how they stand."""
    recent = list(islice((each for each in _newest(view) if each.in_use), RECENT))
    return {
        "alarms": [answers.policy(each) for each in view.alarmed()],
        "due": _due(view, spool),
        "policies": [
            {"shown": answers.policy(each), "standing": policy_watch.standing(view, each)} for each in recent
        ],
        "labellings": view.running_labellings(),
        "campaigns": campaigns.running(view, RECENT + 1),
        "any": bool(recent or view.policies(1)),
        "kept_here": {each.id for each in spool.results()},
    }


def _newest(view: View) -> Iterator[SavedPolicy]:
    """All policies that may be seen, newest first, read as they are wanted."""
    before = None
    while saved := view.policies(PAGE, before):
        yield from saved
        before = saved[-1].entry.seq


def _due(view: View, spool: Spool) -> list[dict[str, object]]:
    """Lists whose reviews are not finished: those that count, and those that are kept for reviewing."""
    kept = {each.id: each for each in spool.results()}
    waiting = view.unfinished([each.id for each in kept.values() if each.columns.id])
    names, named = view.policy_names([entry.event.policy for entry in waiting]), view.named(waiting)
    due = []
    for entry in waiting:
        event, here = entry.event, kept.get(entry.subject)
        made = reviewing.progress(view.marks(entry.subject), event.to_review, view.reviewer(entry.subject))
        due.append(
            {"entry": entry, "name": named[entry.subject].title, "policy": names.get(event.policy, ""),
             "digest": event.policy, "progress": made, "kept": here is not None,
             "until": until(here.until) if here else None}
        )  # fmt: skip
    return due


def found_policies(view: View, search: str, state: str) -> tuple[list[PolicyView], bool]:
    """The latest policies on record that fit, newest first, and whether there are more."""
    wanted = STATES.get(state, "all")
    fitting = (e for e in _newest(view) if wanted in ("all", e.state) and _matches(_words_of(e), search))
    found = list(islice(fitting, LISTED + 1))
    return [answers.policy(each) for each in found[:LISTED]], len(found) > LISTED


def _words_of(saved: SavedPolicy) -> Sequence[str]:
    file, actor = saved.saved.file or "", saved.entry.actor
    return saved.name, saved.note, saved.policy.promise, file, saved.hash, actor


def found_selections(view: View, search: str, policy: str | None) -> list[dict[str, object]]:
    """Selections on record that fit, newest first."""
    made = view.selections(policy, SEARCHED if search else LISTED)
    names, named = view.policy_names([entry.event.policy for entry in made]), view.named(made)
    rows = []
    for entry in made:
        said = {**named[entry.subject]._asdict(), "file": entry.event.file}
        said["policy_name"] = names.get(entry.event.policy, entry.event.policy[:12])
        if _matches((*said.values(), entry.subject, entry.actor, entry.at), search):
            rows.append({"entry": entry, **said})
    return rows


def _matches(words: Sequence[str], search: str) -> bool:
    """Every word of the search occurs somewhere."""
    text = " ".join(words).casefold()
    return all(each in text for each in search.casefold().split())
