"""What is kept of candidates and until when: shortlists, notes, and uploads that wait."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from surelist.service.choices import until
from surelist.service.record.chain import Entry, of_kind
from surelist.service.record.events import CampaignScreened, LabellingStarted, Reviewable, SelectionMade
from surelist.service.record.view import View
from surelist.service.sentences import person
from surelist.service.uploads import Draft, KeptList
from surelist.service.visitor import Me, Visitor, to

PAGES = {"pool": "pools", "collection": "collections", "campaign pool": "campaigns/pools"}
KINDS = {"past": "past decisions", "pool": "a pool", "collection": "candidates to label",
         "campaign pool": "a pool of a campaign"}  # fmt: skip
router = APIRouter()


@router.get("/kept")
async def kept(me: Me) -> Response:
    view = await me.view("operator")
    shown = await me.runtime.read(_kept, me, view)
    return me.show("kept.html", **shown)


def _kept(me: Visitor, view: View) -> dict[str, object]:
    """The lists and uploads that this person may see, and how much else waits."""
    drafts = me.spool.drafts()
    mine = [each for each in drafts if each.owner == me.owner]
    others = [each for each in drafts if each.owner != me.owner]
    lists = [_described(view, each, entry) for each in me.spool.results() if (entry := view.seen(each.id))]
    return {
        "lists": lists, "uploads": [_upload(each) for each in mine],
        "others": len(others), "last": until(max((each.until for each in others), default=0)),
    }  # fmt: skip


def _described(view: View, each: KeptList, entry: Entry[Reviewable]) -> dict[str, object]:
    counts, event, page = view.marks(each.id).counts(), entry.event, f"/selections/{entry.subject}"
    name = event.name or "".join(view.title(made) for made in of_kind([entry], SelectionMade))
    if isinstance(event, LabellingStarted):
        page = f"/labellings/{entry.subject}"
    elif isinstance(event, CampaignScreened):
        page = f"/campaigns/{event.campaign}"
    return {
        "id": entry.subject, "name": name, "page": page,
        "at": entry.at, "by": person(entry.actor), "candidates": event.to_review,
        "until": until(each.until),
        "reviewed": sum(counts.values()), "notes": len(view.all_notes(each.id)),
    }  # fmt: skip


def _upload(each: Draft) -> dict[str, object]:
    size = sum(path.stat().st_size for path in each.files if path.exists())
    return {
        "id": each.id, "name": each.filename, "kind": KINDS.get(each.kind, "an upload"),
        "size": f"{max(1, size >> 10):,} KiB", "until": until(each.until),
        "page": f"/{PAGES.get(each.kind, 'drafts')}/{each.id}",
    }  # fmt: skip


@router.post("/kept/uploads/{ident}/delete")
async def delete_upload(ident: str, me: Me) -> Response:
    """Remove an upload of one's own before its time."""
    await me.view("operator")
    draft = await me.runtime.read(me.spool.draft, ident, me.owner)
    await me.form()
    await me.runtime.read(me.spool.drop_draft, draft)
    return to("/kept")


@router.post("/selections/{ident}/forget")
async def forget(ident: str, me: Me) -> Response:
    """Remove the candidates of a selection before their time. Marks stay on record, notes go."""
    view = await me.view("operator")
    entry = await me.runtime.read(view.subject, ident)
    await me.form()
    kept = me.spool.result(entry.subject)
    if kept is not None:
        key = me.key("forget", ident)
        await me.runtime.written(await me.runtime.read(view.forget_list, ident, "deleted by hand", key))
        await me.runtime.read(me.spool.drop, entry.subject)
    return to("/kept")
