"""The page's two stories step by step: from past decisions to a policy, from a pool to a shortlist.

Plain forms that work without script. What a person has chosen so far waits in a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from msgspec.structs import replace
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from surelist.errors import InvalidInput, NotCertifiable, SurelistError, error_body
from surelist.service import (
    answers,
    calibrating,
    columns_form,
    file_check,
    jobs,
    policy_watch,
    promise_form,
    reviewing,
    wizard,
)
from surelist.service.choices import AboutList, ChosenColumns, PromiseOutcome
from surelist.service.record.view import View
from surelist.service.uploads import Draft, Upload
from surelist.service.visitor import Me, Visitor, send, to

ELSEWHERE = {"campaign pool": "/campaigns/pools", "collection": "/collections"}  # uploads of other stories
router = APIRouter()


@router.post("/drafts")
async def upload_past(me: Me) -> Response:
    view = await me.view("operator", all_policies=True)
    form = await me.form(limit=form_with_file(me))
    draft = await stored(me, form, past=True)
    if like := str(form.get("like") or ""):
        asked = wizard.asked_like((await me.runtime.read(view.policy, like)).policy)
        me.spool.note(draft, asked=asked)
    return to(f"/drafts/{draft.id}")


@router.post("/sandbox")
async def start_sandbox(me: Me) -> Response:
    """One click to an example: made-up past decisions in a record of their own."""
    await me.view("operator", all_policies=True)
    await me.form()
    box = await me.runtime.read(me.sandboxes.start, me.owner)
    inside = box.runtime
    try:
        upload = await me.runtime.work(jobs.store_example, inside, past=True)
        life = inside.settings.draft_life
        draft = inside.spool.add_draft(me.owner, "past", "example-past.csv", upload, life)
    finally:
        await me.runtime.read(me.sandboxes.leave, box)
    return to(f"/drafts/{draft.id}")


@router.post("/sandbox/leave")
async def leave_sandbox(me: Me) -> Response:
    await me.view("operator", all_policies=True)
    await me.form()
    await me.runtime.read(me.sandboxes.end, me.owner)
    return to("/")


@router.get("/drafts/{ident}")
async def columns_page(ident: str, me: Me) -> Response:
    _, draft = await _opened(me, ident)
    return await _columns_page(me, draft)


@router.post("/drafts/{ident}")
async def choose_columns(ident: str, me: Me) -> Response:
    _, draft = await _opened(me, ident)
    columns = wizard.columns_of(await me.form())
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    draft = me.spool.note(draft, columns=columns, reading=())
    problems = columns_form.unchosen(columns, profile)
    if not problems:
        problems = columns_form.shown(await me.runtime.work(file_check.problems, draft, columns))
    if problems:
        return await _columns_page(me, draft, problems)
    me.spool.note(draft, reading=await me.runtime.work(file_check.reading, draft, columns))
    return to(f"/drafts/{ident}/{draft.then}")


async def _columns_page(
    me: Visitor, draft: Draft, problems: Sequence[columns_form.ShownProblem] = ()
) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/drafts/{draft.id}/sheet")
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    chosen = draft.columns or columns_form.guessed(profile)
    return me.show(
        "columns.html", 400 if problems else 200, draft=draft, profile=profile, chosen=chosen,
        problems=problems, about={each.name: columns_form.about(each) for each in profile.columns},
        values=columns_form.values_of(profile, chosen.label), first=columns_form.preview(profile, chosen),
        labels=promise_form.LABELS,
    )  # fmt: skip


@router.get("/drafts/{ident}/problems.xlsx")
async def problem_rows(ident: str, me: Me) -> Response:
    _, draft = await _opened(me, ident)
    columns = draft.columns
    if columns is None or not (columns.score and columns.label):
        raise InvalidInput("columns", "choose a score and a label first.")
    path = await me.runtime.work(file_check.problem_rows, me.runtime, draft, columns)
    name = f"problems-{draft.filename.rsplit('.', 1)[0]}.xlsx"
    return send(path, name)


@router.post("/drafts/{ident}/sheet")
async def choose_sheet(ident: str, me: Me) -> Response:
    _, draft = await _opened(me, ident)
    await _take_sheet(me, draft, past=True)
    return to(f"/drafts/{ident}")


@router.post("/pools/{ident}/sheet")
async def choose_pool_sheet(ident: str, me: Me) -> Response:
    await me.view("operator")
    await _take_sheet(me, me.spool.draft(ident, me.owner, "pool", *ELSEWHERE), past=False)
    return to(f"/pools/{ident}")


async def _take_sheet(me: Visitor, draft: Draft, *, past: bool) -> None:
    sheet = str((await me.form()).get("sheet") or "")
    if sheet not in draft.sheets:
        raise InvalidInput("sheet", "choose one of the sheets of this file.")
    upload = await me.runtime.work(
        jobs.admit, draft.upload, me.settings, past=past, name=draft.filename, sheet=sheet
    )
    me.spool.note(draft, upload=upload, sheets=())


@router.get("/drafts/{ident}/promise")
async def show_promise(ident: str, me: Me) -> Response:
    view, draft = await _opened(me, ident)
    return await _promise_page(me, view, draft)


async def _promise_page(
    me: Visitor, view: View, draft: Draft, problem: InvalidInput | None = None
) -> Response:
    columns = draft.columns
    if columns is None:
        return to(f"/drafts/{draft.id}")
    groups = await me.runtime.work(file_check.group_names, draft, columns.group) if columns.group else {}
    looks, span = await me.runtime.work(calibrating.looks, view, draft, columns)
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    asked, offers = promise_form.shown_of(columns, draft.asked), promise_form.offers(columns)
    return me.show(
        "promise.html", 400 if problem else 200, draft=draft,
        ticks=promise_form.ticks(offers), groups=groups, looks=looks,
        span=span, numbers=wizard.other_numbers(profile, columns),
        asked=asked.fields, needed=asked.groups, other_score=asked.other_score, problem=problem,
        wrong=getattr(problem, "field", None), shown=wizard.mark_of(columns), columns=columns,
        offers=offers, pieces=promise_form.parts, beside=promise_form.beside_parts,
    )  # fmt: skip


@router.post("/drafts/{ident}/promise")
async def fix_promise(ident: str, me: Me) -> Response:
    view, draft = await _opened(me, ident)
    form = await me.form(limit=form_with_file(me))
    wizard.require_shown(form, draft.columns)
    draft = await _with_others(me, me.spool.note(draft, asked=promise_form.asked_of(form)), form)
    try:
        await me.runtime.work(_certify, me, view, draft)
    except InvalidInput as error:
        return await _promise_page(me, view, draft, error)
    return to(f"/drafts/{ident}/result")


def _certify(me: Visitor, view: View, draft: Draft) -> None:
    """The outcome waits in the draft."""
    assert draft.columns is not None
    assert draft.asked is not None
    request = promise_form.request_of(draft.columns, draft.asked, others=draft.others is not None)
    past = calibrating.Past(draft.upload, draft.filename, draft.others, draft.others_name)
    try:
        made = calibrating.certify(me.runtime, view, request, past, "promise on the page")
    except NotCertifiable as refusal:
        me.spool.note(draft, outcome=PromiseOutcome(refused=error_body(refusal)))
        return
    me.spool.note(draft, outcome=PromiseOutcome(replace(made.saved, file=draft.filename), made.share))


@router.get("/drafts/{ident}/result")
async def result(ident: str, me: Me) -> Response:
    _, draft = await _opened(me, ident)
    outcome, asked = draft.outcome, draft.asked
    if outcome is None or asked is None:
        return to(f"/drafts/{ident}/promise")
    if outcome.saved is None:
        return me.show("refused.html", draft=draft, refused=outcome.refused, asked=asked.fields)
    policy = await me.runtime.read(me.runtime.registry.loaded, outcome.saved.policy)
    shown = wizard.result(outcome.saved, policy, outcome.share, asked)
    return me.show("result.html", draft=draft, shown=wizard.mark_of(outcome), **shown)


@router.get("/drafts/{ident}/explore")
async def explore(
    ident: str,
    me: Me,
    pool_size: Annotated[str | None, Query()] = None,
    alpha: Annotated[str | None, Query()] = None,
) -> Response:
    view, draft = await _opened(me, ident)
    columns = draft.columns
    if columns is None:
        return to(f"/drafts/{ident}")
    try:
        size, percent = wizard.curve_of(draft.asked, pool_size, alpha)
    except promise_form.FieldError as error:
        typed = wizard.curve_asked(draft.asked, pool_size, alpha)
        return me.show("explore.html", 400, draft=draft, evidence=None, problem=error, typed=typed)
    evidence = await me.runtime.work(calibrating.explore, view, draft, columns, size, percent / 100)
    return me.show(
        "explore.html", draft=draft, evidence=evidence, pool_size=size, alpha=percent, problem=None,
        typed=wizard.curve_asked(draft.asked, pool_size, alpha), shown=wizard.mark_of(columns),
        **wizard.exploration(evidence),
    )  # fmt: skip


@router.post("/drafts/{ident}/save")
async def save_policy(ident: str, me: Me) -> Response:
    view, draft = await _opened(me, ident)
    form = await me.form()
    name = str(form.get("name", "")).strip()[:200] or draft.filename
    wizard.require_shown(form, draft.outcome)
    if draft.outcome is None or draft.outcome.saved is None:
        raise InvalidInput("policy", "nothing is certified yet. Choose a promise first.")
    note = str(form.get("note") or "").strip()[:2000]
    saved = replace(draft.outcome.saved, name=name, note=note)
    written = await me.runtime.written(view.save_policy(saved))
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    return to(f"/policies/{written.entry.subject}")


@router.post("/policies/{digest}/pool")
async def upload_pool(digest: str, me: Me) -> Response:
    view = await me.view("operator")
    await me.runtime.read(view.policy, digest)
    form = await me.form(limit=form_with_file(me))
    if form.get("example"):
        upload = await me.runtime.work(jobs.store_example, me.runtime, past=False)
        draft = _draft(me, "pool", "example-pool.csv", upload, digest)
    else:
        draft = await stored(me, form, past=False, policy=digest)
    return to(f"/pools/{draft.id}")


@router.get("/pools/{ident}")
async def pool_form(ident: str, me: Me) -> Response:
    view, draft = await me.view("operator"), me.spool.draft(ident, me.owner, "pool", *ELSEWHERE)
    if draft.kind in ELSEWHERE:
        return to(f"{ELSEWHERE[draft.kind]}/{ident}")
    return await _pool_page(me, view, draft)


@router.post("/pools/{ident}")
async def select(ident: str, me: Me) -> Response:
    view, draft = await me.view("operator"), me.spool.draft(ident, me.owner, "pool")
    form = await me.form()
    draft, columns, about, seconds = note_pool(me, draft, form)
    if not columns.score:
        missing = InvalidInput("score", "choose the column that holds the score.")
        return await _pool_page(me, view, draft, missing)
    saved = await me.runtime.read(view.policy, draft.policy or "")
    offer = await me.runtime.read(policy_watch.audit_offer, view, saved)
    try:
        done = await me.runtime.work(
            jobs.select_file, me.runtime, view, draft.policy or "", draft.upload, columns,
            name=draft.filename, about=about, watch=bool(form.get("watch")), review=bool(columns.id),
            format="parquet" if draft.upload.origin else None,
            audit_rate=wizard.audit_asked(offer, form, columns.id),
        )  # fmt: skip
    except InvalidInput as error:
        return await _pool_page(me, view, draft, error)
    ident = done.written.entry.subject
    me.spool.keep_result(ident, done.file, seconds, replace(columns, decimal=done.decimal))
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    return to(f"/selections/{ident}")


async def _pool_page(me: Visitor, view: View, draft: Draft, problem: SurelistError | None = None) -> Response:
    saved = await me.runtime.read(view.policy, draft.policy or "")
    if draft.sheets:
        return me.show("sheets.html", draft=draft, action=f"/pools/{draft.id}/sheet")
    draft, profile = await me.runtime.work(file_check.profile, me.runtime, draft)
    chosen = draft.columns or wizard.pool_columns(saved.policy, profile)
    return show_pool(
        me, "pool.html", draft, profile, chosen, problem, policy=answers.policy(saved, profile.rows),
        grouped=saved.policy.filter.grouped, by_pool=saved.policy.by_rank or saved.policy.filter.by_size,
        audit=await me.runtime.read(policy_watch.audit_offer, view, saved),
    )  # fmt: skip


def show_pool(
    me: Visitor, page: str, draft: Draft, profile: file_check.Profile, chosen: ChosenColumns,
    problem: SurelistError | None, **more: object,
) -> Response:  # fmt: skip
    """The form of a pool that is to be shortlisted, by a policy or in a campaign."""
    return me.show(
        page, 400 if problem else 200, draft=draft, profile=profile, chosen=chosen, problem=problem,
        about_columns={each.name: columns_form.about(each) for each in profile.columns},
        first=columns_form.preview(profile, replace(chosen, label=None)), about=draft.about or AboutList(),
        keep_choices=reviewing.keep_choices(me.settings),
        keep_chosen=draft.keep or reviewing.usual_keep(me.settings), **more,
    )  # fmt: skip


def note_pool(
    me: Visitor, draft: Draft, form: FormData, longest: int = 200
) -> tuple[Draft, ChosenColumns, AboutList, int]:
    """What the form of a pool says, kept in the draft: columns, its name, for how long its list is kept."""
    columns, seconds = wizard.columns_of(form), reviewing.keep_of(form.get("keep"), me.settings)
    about = reviewing.about_pool(form, draft, seconds, longest)
    return me.spool.note(draft, columns=columns, about=about, keep=seconds), columns, about, seconds


async def _opened(me: Visitor, ident: str) -> tuple[View, Draft]:
    view = await me.view("operator", all_policies=True)
    return view, me.spool.draft(ident, me.owner, "past")


async def _with_others(me: Visitor, draft: Draft, form: FormData) -> Draft:
    """With the file of other candidates' scores that came with the form, or the one from before."""
    file = form.get("others")
    try:
        if not isinstance(file, UploadFile) or not file.filename:
            return draft if not form.get("no_others") else me.spool.add_others(draft, None, "")
        upload = await me.runtime.work(jobs.store, me.runtime, file.file, file.filename, past=False)
        return me.spool.add_others(draft, upload, file.filename)
    finally:
        await form.close()


async def stored(
    me: Visitor, form: FormData, *, past: bool, policy: str | None = None, kind: str | None = None
) -> Draft:
    """The file of a form, as a draft; which sheet may still be open."""
    file = form.get("file")
    try:
        if not isinstance(file, UploadFile) or not file.filename:
            raise InvalidInput("file", "choose a CSV, Excel or Parquet file first.")
        upload, sheets = await me.runtime.work(
            jobs.store_to_ask, me.runtime, file.file, file.filename, past=past
        )
        draft = _draft(me, kind or ("past" if past else "pool"), file.filename, upload, policy)
        return me.spool.note(draft, sheets=sheets) if sheets else draft
    finally:
        await form.close()


def form_with_file(me: Visitor) -> int:
    """How large a form with an upload may be."""
    return me.settings.max_upload + (1 << 20)


def _draft(me: Visitor, kind: str, filename: str, upload: Upload, policy: str | None = None) -> Draft:
    return me.spool.add_draft(me.owner, kind, filename, upload, me.settings.draft_life, policy)
