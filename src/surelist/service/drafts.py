"""The page's two stories step by step: from past decisions to a policy, from a pool to a shortlist.

Plain forms that work without script. What a person has chosen so far waits in a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec.structs import replace
from starlette.responses import Response

from surelist.errors import InvalidInput, NotCertifiable, SurelistError, error_body
from surelist.reports.pictures import promise_chart
from surelist.service import answers, calibrating, jobs, policy_watch, promise_form, reviewing, wizard
from surelist.service.choices import AboutList, ChosenColumns, PromiseOutcome, place_of
from surelist.service.runtime import heavy
from surelist.service.uploads import Draft, Upload
from surelist.service.visitor import UPLOAD, Maker, Owner, Uploader, Visitor, router, send, to, visit

PAGES = {"pool": "pools", "collection": "collections", "campaign pool": "campaigns/pools"}


@heavy(router.post("/drafts"))
def upload_past(me: Uploader) -> Response:
    like = me.said("like")
    asked = promise_form.asked_like(me.view.policy(like).policy) if like else None
    return to(f"/drafts/{stored(me, 'past', asked=asked).id}")


@heavy(router.post("/sandbox"))
def start_sandbox(me: Maker) -> Response:
    """One click to an example: made-up past decisions in a record of their own."""
    box = me.sandboxes.start(me.owner)
    inside = box.runtime
    try:
        upload, life = jobs.store_example(inside, past=True), inside.settings.draft_life
        draft = inside.spool.add_draft(me.owner, "past", upload, life)
    finally:
        me.sandboxes.leave(box)
    return to(f"/drafts/{draft.id}")


@router.post("/sandbox/leave")
def leave_sandbox(me: Maker) -> Response:
    me.sandboxes.end(me.owner)
    return to("/")


def page_of(draft: Draft) -> str:
    """Where a person goes on with an upload."""
    return f"/{PAGES.get(draft.kind, 'drafts')}/{draft.id}"


def past_of(me: Visitor, ident: str) -> Draft:
    """Past decisions of this session."""
    return me.spool.draft(ident, me.owner, "past")


@heavy(router.get("/drafts/{ident}"))
def columns_page(ident: str, me: Maker) -> Response:
    return _columns_page(me, past_of(me, ident))


@heavy(router.post("/drafts/{ident}"))
def choose_columns(ident: str, me: Maker) -> Response:
    columns = wizard.columns_of(me.form)
    draft, profile = calibrating.profile(me, past_of(me, ident))
    draft = me.spool.note(draft, columns=columns, reading=())
    problems = wizard.unchosen(columns, profile)
    problems = problems or [wizard.shown(each) for each in calibrating.problems(draft, columns)]
    if problems:
        return _columns_page(me, draft, problems)
    me.spool.note(draft, reading=calibrating.reading(draft, columns))
    return to(f"/drafts/{ident}/{draft.then}")


def _columns_page(me: Visitor, draft: Draft, problems: Sequence[wizard.ShownProblem] = ()) -> Response:
    if draft.sheets:
        return me.show("sheets.html", draft=draft)
    draft, profile = calibrating.profile(me, draft)
    chosen = draft.columns or wizard.guessed(profile)
    return me.show(
        "columns.html", 400 if problems else 200, draft=draft, profile=profile, chosen=chosen,
        problems=problems, about={each.name: wizard.about(each) for each in profile.columns},
        values=wizard.values_of(profile, chosen.label), first=wizard.preview(profile, chosen),
        labels=promise_form.LABELS,
    )  # fmt: skip


@heavy(router.get("/drafts/{ident}/problems.xlsx"))
def problem_rows(ident: str, me: Maker) -> Response:
    draft = past_of(me, ident)
    columns = draft.columns
    if columns is None or not (columns.score and columns.label):
        raise InvalidInput("columns", "choose a score and a label first.")
    path = calibrating.problem_rows(me, draft, columns)
    return send(path, f"problems-{draft.filename.rsplit('.', 1)[0]}.xlsx")


@heavy(router.post("/drafts/{ident}/sheet"))
def choose_sheet(ident: str, me: Owner) -> Response:
    draft, sheet = me.spool.draft(ident, me.owner), str(me.form.get("sheet") or "")
    if sheet not in draft.sheets:
        raise InvalidInput("sheet", "choose one of the sheets of this file.")
    place = place_of(me.form, sheet)
    upload = jobs.admit(draft.upload, me.settings, past=draft.kind == "past", place=place)
    me.spool.note(draft, upload=upload, sheets=())
    return to(page_of(draft))


@heavy(router.get("/drafts/{ident}/promise"))
def show_promise(ident: str, me: Maker) -> Response:
    return _promise_page(me, past_of(me, ident))


def _promise_page(me: Visitor, draft: Draft, problem: InvalidInput | None = None) -> Response:
    columns = draft.columns
    if columns is None:
        return to(f"/drafts/{draft.id}")
    looks, span = calibrating.looks(me.view, draft, columns)
    draft, profile = calibrating.profile(me, draft)
    asked, offers = promise_form.shown_of(columns, draft.asked), promise_form.offers(columns)
    return me.show(
        "promise.html", 400 if problem else 200, draft=draft,
        ticks=promise_form.ticks(offers), looks=looks, span=span,
        groups=calibrating.group_names(draft, columns.group) if columns.group else {},
        numbers=wizard.other_numbers(profile, columns),
        asked=asked.fields, needed=asked.groups, other_score=asked.other_score, problem=problem,
        wrong=getattr(problem, "field", None), shown=wizard.mark_of(columns), columns=columns,
        noisy=[each.choice.title for each in offers if promise_form.covers_noise(each.kind)],
        offers=offers, pieces=promise_form.parts, beside=promise_form.beside_parts,
    )  # fmt: skip


@heavy(router.post("/drafts/{ident}/promise"))
def fix_promise(ident: str, me: Uploader) -> Response:
    draft = past_of(me, ident)
    wizard.require_shown(me.form, draft.columns)
    draft = me.spool.note(draft, asked=promise_form.asked_of(me.form))
    if (file := me.file("others")) is not None:
        draft = me.spool.add_others(draft, jobs.store(me, file, past=False))
    elif me.form.get("no_others"):
        draft = me.spool.add_others(draft, None)
    try:
        _certify(me, draft)
    except InvalidInput as error:
        return _promise_page(me, draft, error)
    return to(f"/drafts/{ident}/result")


def _certify(me: Visitor, draft: Draft) -> None:
    """The outcome waits in the draft."""
    assert draft.columns is not None
    assert draft.asked is not None
    request = promise_form.request_of(draft.columns, draft.asked, others=draft.others is not None)
    past = calibrating.Past(draft.upload, draft.others)
    try:
        saved, _, share = calibrating.certify(me, request, past, "promise on the page")
    except NotCertifiable as refusal:
        outcome = PromiseOutcome(refused=error_body(refusal))
    else:
        outcome = PromiseOutcome(replace(saved, file=draft.filename), share)
    me.spool.note(draft, outcome=outcome)


@router.get("/drafts/{ident}/result")
def result(ident: str, me: Maker) -> Response:
    draft = past_of(me, ident)
    outcome, asked = draft.outcome, draft.asked
    if outcome is None or asked is None:
        return to(f"/drafts/{ident}/promise")
    if outcome.saved is None:
        return me.show("refused.html", draft=draft, refused=outcome.refused, asked=asked.fields)
    policy = me.runtime.registry.loaded(outcome.saved.policy)
    shown = wizard.result(outcome.saved, policy, outcome.share, asked)
    return me.show("result.html", draft=draft, shown=wizard.mark_of(outcome), **shown)


@heavy(router.get("/drafts/{ident}/explore"))
def explore(ident: str, me: Maker, pool_size: str | None = None, alpha: str | None = None) -> Response:
    draft = past_of(me, ident)
    columns = draft.columns
    if columns is None:
        return to(f"/drafts/{ident}")
    typed = wizard.curve_asked(draft.asked, pool_size, alpha)
    try:
        share = promise_form.share_in(typed[1], "alpha", "how often it may be false")
        size = promise_form.number_in(typed[0], "pool_size", "the pool size")
    except promise_form.FieldError as error:
        return me.show("explore.html", 400, draft=draft, evidence=None, problem=error, typed=typed)
    evidence = calibrating.explore(me.view, draft, columns, size, share)
    highest = max(evidence.curves["simultaneous"].qualified, default=0.0)
    return me.show(
        "explore.html", draft=draft, evidence=evidence, pool_size=size, alpha=float(typed[1]), problem=None,
        typed=typed, shown=wizard.mark_of(columns), chart=promise_chart(evidence),
        highest=int(highest * 10) / 10,
    )  # fmt: skip


@heavy(router.post("/drafts/{ident}/save"))
def save_policy(ident: str, me: Maker) -> Response:
    draft = past_of(me, ident)
    wizard.require_shown(me.form, draft.outcome)
    if draft.outcome is None or draft.outcome.saved is None:
        raise InvalidInput("policy", "nothing is certified yet. Choose a promise first.")
    name, note = me.said("name")[:200] or draft.filename, me.said("note")[:2000]
    written = me.view.save_policy(replace(draft.outcome.saved, name=name, note=note)).result()
    digest, others = written.entry.subject, draft.others
    if others is None or not me.form.get("list"):
        me.spool.drop_draft(draft, me.settings.keep_uploads)
        return to(f"/policies/{digest}")
    pool = _draft(me, "pool", me.spool.linked(others), policy=digest)
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    me.view.key = None  # it stands for the policy
    pool, profile = calibrating.profile(me, pool)
    columns = wizard.pool_columns(me.view.policy(digest).policy, profile)
    seconds = reviewing.usual_keep(me.settings)
    return _shortlisted(me, pool, columns, reviewing.about_pool({}, pool, seconds, 200), seconds)


@heavy(router.post("/policies/{digest}/pool"))
def upload_pool(
    digest: str, me: Annotated[Visitor, visit("operator", of="policy", limit=UPLOAD)]
) -> Response:  # fmt: skip
    if me.form.get("example"):
        draft = _draft(me, "pool", jobs.store_example(me.runtime, past=False), policy=digest)
    else:
        draft = stored(me, "pool", policy=digest)
    return to(f"/pools/{draft.id}")


@heavy(router.get("/pools/{ident}"))
def pool_form(ident: str, me: Owner) -> Response:
    return _pool_page(me, me.spool.draft(ident, me.owner, "pool"))


@heavy(router.post("/pools/{ident}"))
def select(ident: str, me: Owner) -> Response:
    return _shortlisted(me, *note_pool(me, me.spool.draft(ident, me.owner, "pool")))


def _shortlisted(
    me: Visitor, draft: Draft, columns: ChosenColumns, about: AboutList, seconds: int
) -> Response:  # fmt: skip
    """The shortlist of a pool, made and kept; or its form, with what does not fit."""
    digest = draft.policy or ""
    try:
        if not columns.score:
            raise InvalidInput("score", "choose the column that holds the score.")
        offer = policy_watch.audit_offer(me.view, me.view.policy(digest))
        done = jobs.select_file(
            me, digest, draft.upload, columns, about=about,
            watch=bool(me.form.get("watch")), review=bool(columns.id),
            format="parquet" if draft.upload.origin else None,
            audit_rate=wizard.audit_asked(offer, me.form, columns.id),
        )  # fmt: skip
    except InvalidInput as error:
        return _pool_page(me, draft, error)
    ident = done.written.entry.subject
    me.spool.keep_result(ident, done.file, seconds, replace(columns, decimal=done.decimal))
    me.spool.drop_draft(draft, me.settings.keep_uploads)
    return to(f"/selections/{ident}")


def _pool_page(me: Visitor, draft: Draft, problem: SurelistError | None = None) -> Response:
    saved = me.view.policy(draft.policy or "")
    if draft.sheets:
        return me.show("sheets.html", draft=draft)
    draft, profile = calibrating.profile(me, draft)
    policy = saved.policy
    return show_pool(
        me, "pool.html", draft, profile, draft.columns or wizard.pool_columns(policy, profile), problem,
        policy=answers.policy(saved, profile.rows), grouped=policy.filter.grouped,
        three_ways=policy.three_ways,
        by_pool=policy.by_rank or policy.filter.by_size, audit=policy_watch.audit_offer(me.view, saved),
    )  # fmt: skip


def show_pool(
    me: Visitor, page: str, draft: Draft, profile: jobs.Profile, chosen: ChosenColumns,
    problem: SurelistError | None, **more: object,
) -> Response:  # fmt: skip
    """The form of a pool that is to be shortlisted, by a policy or in a campaign."""
    return me.show(
        page, 400 if problem else 200, draft=draft, profile=profile, chosen=chosen, problem=problem,
        about_columns={each.name: wizard.about(each) for each in profile.columns},
        first=wizard.preview(profile, replace(chosen, label=None)), about=draft.about or AboutList(),
        keep_choices=reviewing.keep_choices(me.settings),
        keep_chosen=draft.keep or reviewing.usual_keep(me.settings), **more,
    )  # fmt: skip


def note_pool(me: Visitor, draft: Draft, longest: int = 200) -> tuple[Draft, ChosenColumns, AboutList, int]:
    """What the form of a pool says, kept in the draft: columns, its name, for how long its list is kept."""
    columns, seconds = wizard.columns_of(me.form), reviewing.keep_of(me.form.get("keep"), me.settings)
    about = reviewing.about_pool(me.form, draft, seconds, longest)
    return me.spool.note(draft, columns=columns, about=about, keep=seconds), columns, about, seconds


def stored(me: Visitor, kind: str, **more: Any) -> Draft:
    """The file of a form, as a draft; which sheet may still be open."""
    if (file := me.file()) is None:
        raise InvalidInput("file", "choose a CSV, Excel or Parquet file first.")
    upload, sheets = jobs.store_to_ask(me, file, past=kind == "past", place=place_of(me.form))
    return _draft(me, kind, upload, sheets=sheets, **more)


def _draft(me: Visitor, kind: str, upload: Upload, **more: Any) -> Draft:
    return me.spool.add_draft(me.owner, kind, upload, me.settings.draft_life, **more)
