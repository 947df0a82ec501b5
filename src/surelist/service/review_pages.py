"""The review workspace: mark the candidates of a shortlist one by one, see who marked what, and what is kept.

Plain forms and links that work without script; ``review.js`` adds keys.
"""

from __future__ import annotations

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from surelist.errors import InvalidInput
from surelist.service import answers, campaigns, jobs, labelling, policy_watch, reviewing
from surelist.service.choices import until
from surelist.service.drafts import page_of
from surelist.service.record.campaigns import CampaignScreened
from surelist.service.record.event import Entry, of_kind
from surelist.service.record.events import SelectionMade
from surelist.service.record.labellings import LabellingStarted
from surelist.service.record.marks import Marks
from surelist.service.record.reviews import Reviewable
from surelist.service.record.view import View, person
from surelist.service.reviewing import Spot
from surelist.service.runtime import bind, heavy
from surelist.service.uploads import Draft, KeptList
from surelist.service.visitor import Operator, Owner, Reviewer, Visitor, router, to, visit
from surelist.service.worklist import FILTERS, Worklist

REVIEWS = 32 << 20  # bytes of a file of reviews
KINDS = {"past": "past decisions", "pool": "a pool", "collection": "candidates to label",
         "campaign pool": "a pool of a campaign"}  # fmt: skip


@router.get("/selections/{ident}/review")
async def review(ident: str, me: Operator, request: Request) -> Response:
    await _require_laid_out(me, ident)
    closed = await me.runtime.read(me.view.reviews_closed, ident)
    spot = Spot.of(request.query_params, "all" if closed else "open")
    done = Spot.of({"at": request.query_params.get("done", "")}).at
    return await me.runtime.read(_screen, me, ident, spot, done)


async def _require_laid_out(me: Visitor, ident: str) -> None:
    """A labelling asks for others once answers count; those that came by API are not on its list yet."""
    entry = await me.runtime.read(me.view.subject, ident)
    if isinstance(entry.event, LabellingStarted) and not await me.runtime.read(labelling.laid_out, me, ident):
        await me.runtime.work(labelling.stage_at_hand, me, ident)


def _screen(me: Visitor, ident: str, spot: Spot, done: int | None) -> Response:
    view, entry = me.view, me.view.subject(ident)
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
            spot=spot, **shown, labelling=asked, three=saved is not None and saved.policy.three_ways,
            detail=current, filters=FILTERS, names=work.shown, length=work.length, listed=work.listed,
            progress=reviewing.counted(work) if asked else reviewing.progress(marks, work.length, reviewer),
            reviewers=marks.reviewers(), me=mine,
            until=until(kept.until), closed=view.reviews_closed(ident),
            notes=view.notes(ident, turn.id) if turn else [],
            done=last and {"id": last.id, "rank": last.rank, "mark": marks.by(last.id, mine)},
            columns=kept.columns, campaign=getattr(entry.event, "campaign", None),
        )  # fmt: skip


@router.post("/selections/{ident}/marks")
def mark(ident: str, me: Reviewer) -> Response:
    """One mark, saved before the answer; then the next candidate."""
    said = me.said("mark")
    if said not in reviewing.MARKS:
        raise InvalidInput("mark", "expected yes, no, back, settle-yes or settle-no.")
    spot, rank, candidate, following = _turn(me, ident)
    me.view.record_reviews(ident, {candidate: reviewing.MARKS[said]}).result()
    where = spot.query(at=rank) if said == "back" else spot.query(at=following, done=rank)
    return to(f"/selections/{ident}/review{where}")


def _turn(me: Visitor, ident: str) -> tuple[Spot, int, str, int | None]:
    """Where in the list the form was sent, of whom, and whose turn it is then."""
    spot, rank = Spot.of({k: str(v) for k, v in me.form.items()}), Spot.of({"at": me.said("rank")}).at
    if rank is None:
        raise InvalidInput("rank", "say which candidate is meant.")
    with _work(me, ident)[1] as work:
        return spot, rank, work.candidate(rank).id, reviewing.next_after(work, spot, rank)


def _work(me: Visitor, ident: str) -> tuple[Marks, Worklist]:
    view, marks = me.view, me.view.marks(ident)
    return marks, reviewing.opened(me.spool, ident, marks, view.actor.name, view.reviewer(ident))[1]


@router.post("/selections/{ident}/notes")
def note(ident: str, me: Reviewer) -> Response:
    spot, rank, candidate, _ = _turn(me, ident)
    me.view.write_note(ident, candidate, me.said("text")).result()
    return to(f"/selections/{ident}/review{spot.query(at=rank)}")


@heavy(router.post("/selections/{ident}/reviews"))
def send_file(ident: str, me: Annotated[Visitor, visit("operator", of="subject", limit=REVIEWS)]) -> Response:
    """A reviewed file that came back: yes and no by candidate id."""
    if (file := me.file()) is None:
        raise InvalidInput("file", "choose the file with the reviews first.")
    columns = {name: me.said(name) for name in ("id", "label")}
    reviews = jobs.reviews_in_file(me, file, columns)
    with _work(me, ident)[1] as work:
        reviews = reviewing.as_named(work, reviews)
    bind(me.request, repr(reviews))
    me.view.record_reviews(ident, reviews).result()
    return to(f"/selections/{ident}/review?show=all")


@router.get("/selections/{ident}/reviews.csv")
async def reviews_file(ident: str, me: Operator) -> Response:
    await _require_laid_out(me, ident)
    text = await me.runtime.read(_reviews_csv, me, ident)
    headers = {"Content-Disposition": f'attachment; filename="reviews-{ident}.csv"'}
    return Response(text.encode("utf-8-sig"), media_type="text/csv; charset=utf-8", headers=headers)


def _reviews_csv(me: Visitor, ident: str) -> str:
    marks, work = _work(me, ident)
    with work:
        return reviewing.as_csv(marks, me.view.all_notes(ident), work, me.view.reviewer(ident))


@heavy(router.post("/selections/{ident}/finish"))
def finish(ident: str, me: Reviewer) -> Response:
    """End the reviews: they count from now on. Then to the policy, which says what they show."""
    made, missing = me.view.subject(ident).event, bool(me.form.get("missing"))
    if isinstance(made, CampaignScreened):
        campaigns.finish(me, ident, missing=missing)
        return to(f"/campaigns/{made.campaign}")
    if isinstance(made, LabellingStarted):
        raise InvalidInput("labels", "let them count on the page of the labelling.")
    known = reviewing.known_list(me.spool, ident)
    policy_watch.finish(me.view, ident, known, missing=missing)
    return to(f"/policies/{made.policy}#life")


# -- what is kept of candidates and until when: shortlists, notes, and uploads that wait


@router.get("/kept")
def kept(me: Operator) -> Response:
    """The lists and uploads that this person may see, and how much else waits."""
    drafts, kept = me.spool.drafts(), me.spool.results()
    others = [each for each in drafts if each.owner != me.owner]
    return me.show(
        "kept.html", lists=[_list(me.view, each, entry) for each in kept if (entry := me.view.seen(each.id))],
        uploads=[_upload(each) for each in drafts if each.owner == me.owner],
        others=len(others), last=until(max((each.until for each in others), default=0)),
    )  # fmt: skip


def _list(view: View, each: KeptList, entry: Entry[Reviewable]) -> dict[str, object]:
    event = entry.event
    return {
        "id": entry.subject, "page": event.address(entry.subject), "at": entry.at, "by": person(entry.actor),
        "name": event.name or "".join(view.title(made) for made in of_kind([entry], SelectionMade)),
        "candidates": event.to_review, "until": until(each.until),
        "reviewed": sum(view.marks(each.id).counts().values()), "notes": len(view.all_notes(each.id)),
    }  # fmt: skip


def _upload(each: Draft) -> dict[str, object]:
    size = sum(path.stat().st_size for path in each.files if path.exists())
    return {
        "id": each.id, "name": each.filename, "kind": KINDS.get(each.kind, "an upload"),
        "size": f"{max(1, size >> 10):,} KiB", "until": until(each.until),
        "page": page_of(each),
    }  # fmt: skip


@router.post("/kept/uploads/{ident}/delete")
def delete_upload(ident: str, me: Owner) -> Response:
    """Remove an upload of one's own before its time."""
    me.spool.drop_draft(me.spool.draft(ident, me.owner))
    return to("/kept")


@router.post("/selections/{ident}/forget")
def forget(ident: str, me: Reviewer) -> Response:
    """Remove the candidates of a selection before their time. Marks stay on record, notes go."""
    if me.spool.kept(ident) is not None:
        me.view.forget_list(ident, "deleted by hand").result()
        me.spool.drop(ident)
    return to("/kept")
