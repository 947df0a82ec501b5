"""The record by page: read in sentences, searched, and verified now, in a process that can be stopped."""

from __future__ import annotations

import json
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from msgspec.structs import asdict
from starlette.responses import Response

from surelist._numerals import count
from surelist.errors import InvalidInput
from surelist.service import answers
from surelist.service.record import event
from surelist.service.record.database import Database
from surelist.service.record.history import KINDS, History, NamesNow, Search, lines
from surelist.service.record.verify import Verdict, verify
from surelist.service.runtime import Working
from surelist.service.visitor import Auditor
from surelist.service.workers import run

PAGE = 50
SHOWN = 2000  # characters of an entry's details
PROBLEMS = 100
RECEIPTS = 20
router = APIRouter()
work = Working(router)


@router.get("/record")
def record(
    me: Auditor,
    q: str = "",
    kind: str = "",
    policy: str = "",
    since: str = "",
    until: str = "",
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
) -> Response:
    asked = Search(q[:200], kind if kind in KINDS else "", policy[:64], since[:10], until[:10])
    history = History(me.runtime.registry, me.view.actor)
    entries = history.find(asked, before, PAGE + 1)
    older = None
    if len(entries) > PAGE:
        given = {"q" if name == "words" else name: value for name, value in asdict(asked).items() if value}
        older = urlencode({**given, "before": entries[PAGE - 1].seq})
    shown, hidden = entries[:PAGE], me.view.hidden(entries[:PAGE])
    return me.show(
        "record.html", lines=lines(history, shown, hidden), older=older,
        head=next(iter(history.find(Search(), limit=1)), None),
        details={
            entry.seq: _details(answers.entry_facts(entry, hidden=entry.seq in hidden)) for entry in shown
        },
        about=NamesNow(history).policy(asked.policy) if asked.policy else None,
        asked=asked, before=before, kinds=KINDS,
    )  # fmt: skip


def _details(facts: dict[str, object]) -> str:
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} … ({count(len(text))} characters)"


@work.post("/record/verify")
def verify_now(me: Auditor) -> Response:
    """Recompute the whole chain. Reads the record and changes nothing, so a viewer may."""
    receipts = tuple(me.said("receipt").replace(",", " ").split())
    if len(receipts) > RECEIPTS:
        raise InvalidInput("receipt", expected=f"{RECEIPTS} at most", got=f"{len(receipts):,}")
    verdict = run(_verify_there, me.settings.database, receipts)
    return me.show(
        "verified.html", verdict=verdict, problems=verdict.problems[:PROBLEMS], receipts=receipts,
        looked_at=looked_at(verdict), open_questions=open_questions(verdict, receipts),
    )  # fmt: skip


def _verify_there(address: str, receipts: tuple[str, ...]) -> Verdict:
    return verify(Database(address, read_only=True), receipts)


def looked_at(verdict: Verdict) -> list[str]:
    """What was verified, with how much of it there is."""
    parts = [f"{_many(verdict.entries, 'entry', 'entries')}: hashes, and that each follows the one before"]
    for action, kind in event.KINDS.items():
        if (number := verdict.actions.get(action)) and kind.looked_at is not None:
            one, many, what = kind.looked_at
            parts.append(f"{_many(number, one, many)}: {what}")
    return [*parts, "the guards of the database against changes"]


def open_questions(verdict: Verdict, receipts: tuple[str, ...]) -> list[str]:
    """What verifying cannot show."""
    cut = (
        "Whether the end was cut off, or everything written anew: only a receipt noted elsewhere shows that."
    )
    if receipts and verdict.intact:
        last = max(int(each.partition(":")[0]) for each in receipts)
        cut = (
            f"What came after entry {last:,} could have been cut off or written anew; up to there the record "
            "is the one your receipt is from."
        )
    return [
        cut,
        "Pools and shortlists are not on record, only their SHA-256: whoever has the file can compare it.",
        "Who held a token: the record knows tokens and the names they were given.",
    ]


def _many(number: int, one: str, many: str) -> str:
    return f"{count(number)} {one if number == 1 else many}"
