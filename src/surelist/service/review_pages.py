"""The review workspace: mark the candidates of a shortlist one by one, see who marked what, and what is kept.

Plain forms and links that work without script; ``review.js`` adds keys.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.service import answers, campaigns, jobs, labelling, policy_watch, reviewing
from surelist.service.choices import until
from surelist.service.errors import Forbidden
from surelist.service.record.events import CampaignScreened, LabellingStarted, SelectionMade
from surelist.service.record.marks import Marks
from surelist.service.record.view import View
from surelist.service.reviewing import Spot
from surelist.service.visitor import Me, Visitor, to
from surelist.service.worklist import FILTERS, Worklist

REVIEWS = 32 << 20  # bytes of a file of reviews
router = APIRouter()


@router.get("/selections/{ident}/review")
async def review(ident: str, me: Me, request: Request) -> Response:
    view = await me.view("operator")
    await _require_laid_out(me, view, ident)
    closed = await me.runtime.read(view.reviews_closed, ident)
    spot = Spot.of(request.query_params, "all" if closed else "open")
    done = reviewing.Spot.of({"at": request.query_params.get("done", "")}).at
    return await me.runtime.read(_screen, me, view, ident, spot, done)


async def _require_laid_out(me: Visitor, view: View, ident: str) -> None:
    """A labelling asks for others once answers count; those that came by API are not on its list yet."""
    entry = await me.runtime.read(view.subject, ident)
    if isinstance(entry.event, LabellingStarted) and not await me.runtime.read(
        labelling.laid_out, me.runtime, view, ident
    ):
        await me.runtime.work(labelling.stage_at_hand, me.runtime, view, ident)


def _screen(me: Visitor, view: View, ident: str, spot: Spot, done: int | None) -> Response:
    entry = view.subject(ident)
    saved = view.policy(entry.event.policy) if isinstance(entry.event, SelectionMade) else None
    asked = isinstance(entry.event, LabellingStarted)
    marks, mine, reviewer = view.marks(ident), view.actor.name, view.reviewer(ident)
    kept, work = reviewing.opened(me.spool, ident, marks, mine, reviewer)
    with work:
        shown, turn = reviewing.screen(work, marks, spot, reviewer)
        current = reviewing.detail(work, marks, turn, mine, reviewer)
        last = work.candidate(done) if done is not None and 1 <= done <= work.length else None
        return me.show(
            "review.html", entry=entry, facts=entry.event, policy=saved and answers.policy(saved),
            spot=spot, **shown, labelling=asked,
            detail=current, filters=FILTERS, names=work.names, length=work.length, listed=work.listed,
            progress=reviewing.counted(work) if asked else reviewing.progress(marks, work.length, reviewer),
            reviewers=marks.reviewers(), me=mine,
            until=until(kept.until), closed=view.reviews_closed(ident),
            notes=view.notes(ident, turn.id) if turn else [],
            done=last and {"id": last.id, "rank": last.rank, "mark": marks.by(last.id, mine)},
            columns=kept.columns, campaign=getattr(entry.event, "campaign", None),
        )  # fmt: skip


@router.post("/selections/{ident}/marks")
async def mark(ident: str, me: Me) -> Response:
    """One mark, saved before the answer; then the next candidate."""
    view = await me.view("operator")
    await me.runtime.read(view.subject, ident)
    form = await me.form()
    spot, rank = Spot.of({k: str(v) for k, v in form.items()}), _rank(form.get("rank"))
    said = str(form.get("mark") or "")
    if said not in reviewing.MARKS:
        raise InvalidInput("mark", "expected yes, no, back, settle-yes or settle-no.")
    candidate, following = await me.runtime.read(_turn, me, view, ident, spot, rank)
    key = me.key("mark", ident, candidate, said)
    await me.runtime.written(
        await me.runtime.read(view.record_reviews, ident, {candidate: reviewing.MARKS[said]}, key)
    )
    where = spot.query(at=rank) if said == "back" else spot.query(at=following, done=rank)
    return to(f"/selections/{ident}/review{where}")


def _turn(me: Visitor, view: View, ident: str, spot: Spot, rank: int) -> tuple[str, int | None]:
    with _work(me, view, ident)[1] as work:
        return work.candidate(rank).id, reviewing.next_after(work, spot, rank)


def _work(me: Visitor, view: View, ident: str) -> tuple[Marks, Worklist]:
    marks = view.marks(ident)
    return marks, reviewing.opened(me.spool, ident, marks, view.actor.name, view.reviewer(ident))[1]


@router.post("/selections/{ident}/notes")
async def note(ident: str, me: Me) -> Response:
    view = await me.view("operator")
    await me.runtime.read(view.subject, ident)
    form = await me.form()
    spot, rank = Spot.of({k: str(v) for k, v in form.items()}), _rank(form.get("rank"))
    if not me.settings.notes:
        raise Forbidden("note: notes about candidates are not written here; an admin has set it so.")
    candidate, _ = await me.runtime.read(_turn, me, view, ident, spot, rank)
    text = str(form.get("text") or "").strip()
    key = me.key("note", ident, candidate, text)
    await me.runtime.written(await me.runtime.read(view.write_note, ident, candidate, text, key))
    return to(f"/selections/{ident}/review{spot.query(at=rank)}")


@router.post("/selections/{ident}/reviews")
async def send_file(ident: str, me: Me) -> Response:
    """A reviewed file that came back: yes and no by candidate id."""
    view = await me.view("operator")
    await me.runtime.read(view.subject, ident)
    form = await me.form(limit=REVIEWS)
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InvalidInput("file", "choose the file with the reviews first.")
        columns = {name: str(form.get(name) or "").strip() for name in ("id", "label")}
        reviews = await me.runtime.work(jobs.reviews_in_file, me.runtime, file.file, file.filename, columns)
    finally:
        await form.close()
    await me.runtime.read(_require_listed, me, view, ident, list(reviews))
    written = await me.runtime.read(view.record_reviews, ident, reviews, me.key("file", ident, repr(reviews)))
    await me.runtime.written(written)
    return to(f"/selections/{ident}/review?show=all")


def _require_listed(me: Visitor, view: View, ident: str, candidates: list[str]) -> None:
    with _work(me, view, ident)[1] as work:
        strangers = work.strangers(candidates)
    if strangers:
        raise InvalidInput(
            "reviews",
            f"{', '.join(map(repr, strangers))}{' …' * (len(strangers) > 4)} are not on this shortlist. "
            "Nothing was saved. Send the reviews of this list, with its ids.",
        )


@router.get("/selections/{ident}/reviews.csv")
async def reviews_file(ident: str, me: Me) -> Response:
    view = await me.view("operator")
    await _require_laid_out(me, view, ident)
    text = await me.runtime.read(_reviews_csv, me, view, ident)
    headers = {"Content-Disposition": f'attachment; filename="reviews-{ident}.csv"'}
    return Response(text.encode("utf-8-sig"), media_type="text/csv; charset=utf-8", headers=headers)


def _reviews_csv(me: Visitor, view: View, ident: str) -> str:
    marks, work = _work(me, view, ident)
    with work:
        return reviewing.as_csv(marks, view.all_notes(ident), work, view.reviewer(ident))


@router.post("/selections/{ident}/finish")
async def finish(ident: str, me: Me) -> Response:
    """End the reviews: they count from now on. Then to the policy, which says what they show."""
    view = await me.view("operator")
    entry = await me.runtime.read(view.subject, ident)
    missing = bool((await me.form()).get("missing"))
    key, made = me.key("finish", ident, str(missing)), entry.event
    if isinstance(made, CampaignScreened):
        await me.runtime.work(campaigns.finish, view, me.spool, ident, missing=missing, key=key)
        return to(f"/campaigns/{made.campaign}")
    if isinstance(made, LabellingStarted):
        raise InvalidInput("labels", "let them count on the page of the labelling.")
    known = await me.runtime.read(reviewing.known_list, me.spool, ident)
    await me.runtime.read(policy_watch.finish, view, ident, known, missing=missing, key=key)
    return to(f"/policies/{made.policy}#life")


def _rank(text: object) -> int:
    rank = Spot.of({"at": str(text or "")}).at
    if rank is None:
        raise InvalidInput("rank", "say which candidate is meant.")
    return rank
