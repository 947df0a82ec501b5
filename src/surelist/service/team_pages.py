"""The team and the record: people and programs, their roles and tokens, how the service is set up; and what
was done, read in sentences, searched, and verified now, in a process that can be stopped.
"""

from __future__ import annotations

import json
import secrets
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from msgspec.structs import asdict
from starlette.datastructures import FormData
from starlette.responses import Response

from surelist._numerals import count
from surelist.errors import InvalidInput
from surelist.service import answers
from surelist.service.record import access, live_settings
from surelist.service.record.access import SessionBegun, Token
from surelist.service.record.database import Database
from surelist.service.record.log import Key
from surelist.service.record.record import ROLES
from surelist.service.record.verify import Verdict, verify
from surelist.service.record.view import KINDS, NamesNow, Search, View, lines
from surelist.service.runtime import heavy
from surelist.service.settings import Settings
from surelist.service.visitor import Admin, Auditor, router, to
from surelist.service.workers import run

MAY = {
    "viewer": "reads policies, shortlist sizes, reports and the record; no candidates",
    "operator": "also calibrates, selects, reviews, and sees candidates",
    "admin": "also retires policies and manages the team",
}
LONGEST_DAYS = 3650
HOUR, DAY = 3600, 86_400
TIMES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "longest_keep": (
        "Candidates are kept for reviewing at most", "Longer times are not offered.",
        (7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY),
    ),
    "keep_results": (
        "The shortest time a list is kept for", "To be downloaded; always offered.", (HOUR, DAY, 7 * DAY)
    ),
    "keep_uploads": ("Uploads are kept after their result is made for", "", (0, HOUR, DAY, 7 * DAY)),
}  # fmt: skip


@router.get("/team")
def team(me: Admin) -> Response:
    policies, tokens = me.view.policy_names(), access.list_tokens(me.view.registry)
    begun = me.view.registry.latest(SessionBegun, [token.id for token in tokens])
    logins = {ident: entry.at for ident, entry in begun.items()}
    return me.show(
        "team.html", people=[_person(each, me.view, logins, policies) for each in tokens if each.usable],
        gone=[each for each in tokens if not each.usable], policies=policies, roles=ROLES, may=MAY,
        once=secrets.token_hex(16), kept_for=times(me.settings),
    )  # fmt: skip


@router.post("/team/tokens")
def add(me: Admin) -> Response:
    """A new token, shown in this answer and never again."""
    name, role, policies, days = me.said("name"), me.said("role"), _scope(me.form), _days(me.said("days"))
    if me.view.key is None and (once := me.said("once")):  # a form sent twice by a browser is one token
        me.view.key = Key(f"form {once[:64]}")
        me.view.key.bind(name, role, *policies, str(days))
    token, text = access.create_token(me.view, name, role, policies, days)
    return me.show("token.html", 201, token=token, text=text)


@router.post("/team/tokens/{ident}/change")
def change(ident: str, me: Admin) -> Response:
    access.change_token(me.view, ident, me.said("role"), _scope(me.form), keep_admin=me.settings.login)
    return to("/team")


@router.post("/team/tokens/{ident}/revoke")
def revoke(ident: str, me: Admin) -> Response:
    access.revoke_token(me.view, ident, keep_admin=me.settings.login)
    return to("/team")


@router.post("/team/settings")
def choose(me: Admin) -> Response:
    """Settings that hold from now on, but for those fixed when the service was started."""
    names = [name for name in live_settings.NAMES if name not in me.settings.fixed]
    values = {name: me.said(name) for name in names}
    before = {name: getattr(me.settings, name) for name in names}
    live_settings.change(me.view, before, values)
    me.runtime.take_chosen()
    return to("/team#settings")


def times(settings: Settings) -> list[dict[str, object]]:
    """For how long things are kept: what a person can choose from, the value in force among it; or the option
    of ``surelist serve`` that fixes it."""
    return [
        {"name": name, "words": words, "hint": hint, "now": (now := getattr(settings, name)),
         "choices": sorted({*offered, now}),
         "fixed": f"--{name.replace('_', '-')}" if name in settings.fixed else None}
        for name, (words, hint, offered) in TIMES.items()
    ]  # fmt: skip


def _scope(form: FormData) -> list[str]:
    """The policies that were ticked; none of them for all."""
    ticked = sorted({str(each).strip() for each in form.getlist("policy")} - {""})
    if form.get("scope") == "some" and not ticked:
        raise InvalidInput("policy", "tick those it may use, or choose all policies.")
    if form.get("scope") == "all" and ticked:
        raise InvalidInput("policy", "choose all policies, or only those that are ticked; not both.")
    return ticked


def _days(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= LONGEST_DAYS):
        raise InvalidInput(
            "days", expected=f"a whole number from 1 to {LONGEST_DAYS:,}, or nothing", got=repr(text)
        )
    return int(text)


def _person(token: Token, view: View, logins: dict[str, str], policies: dict[str, str]) -> dict[str, object]:
    theirs = {each: policies.get(each, each[:12]) for each in token.policies or ()}
    return {
        "token": token, "only": theirs, "policies": policies | theirs, "login": logins.get(token.id),
        "me": view.actor.name == f"{token.name} ({token.id})",
    }  # fmt: skip


PAGE = 50
SHOWN = 2000  # characters of an entry's details
PROBLEMS = 100
RECEIPTS = 20


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
    entries = me.view.find(asked, before, PAGE + 1)
    older = None
    if len(entries) > PAGE:
        given = {"q" if name == "words" else name: value for name, value in asdict(asked).items() if value}
        older = urlencode({**given, "before": entries[PAGE - 1].seq})
    shown, hidden = entries[:PAGE], me.view.hidden(entries[:PAGE])
    return me.show(
        "record.html", lines=lines(me.view, shown, hidden), older=older,
        head=next(iter(me.view.find(Search(), limit=1)), None),
        details={
            entry.seq: _details(answers.entry_facts(entry, hidden=entry.seq in hidden)) for entry in shown
        },
        about=NamesNow(me.view).of(asked.policy) if asked.policy else None,
        asked=asked, before=before, kinds=KINDS,
    )  # fmt: skip


def _details(facts: dict[str, object]) -> str:
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} … ({count(len(text))} characters)"


@heavy(router.post("/record/verify"))
def verify_now(me: Auditor) -> Response:
    """Recompute the whole chain. Reads the record and changes nothing, so a viewer may."""
    receipts = tuple(me.said("receipt").replace(",", " ").split())
    if len(receipts) > RECEIPTS:
        raise InvalidInput("receipt", expected=f"{RECEIPTS} at most", got=f"{len(receipts):,}")
    verdict = run(_verify_there, me.settings.database, receipts)
    return me.show(
        "verified.html", verdict=verdict, problems=verdict.problems[:PROBLEMS], receipts=receipts,
        open_questions=open_questions(verdict, receipts),
    )  # fmt: skip


def _verify_there(address: str, receipts: tuple[str, ...]) -> Verdict:
    return verify(Database(address, read_only=True), receipts)


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
