"""The team: people and programs, their roles and tokens, and how the service is set up. For admins."""

from __future__ import annotations

import secrets

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import Response

from surelist._numerals import duration
from surelist.errors import InvalidInput
from surelist.service.record import access, live_settings
from surelist.service.record.access import SessionBegun, Token
from surelist.service.record.log import Key
from surelist.service.record.record import ROLES
from surelist.service.record.view import View
from surelist.service.settings import MIB, Settings
from surelist.service.visitor import Admin, to

MAY = {
    "viewer": "reads policies, shortlist sizes, reports and the record; no candidates",
    "operator": "also calibrates, selects, reviews, and sees candidates",
    "admin": "also retires policies and manages the team",
}
LONGEST_DAYS = 3650
HOUR, DAY = 3600, 86_400
TIMES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "usual_keep": (
        "A new list is usually kept for", "Chosen on the form where nobody says otherwise.",
        (DAY, 7 * DAY, 30 * DAY, 90 * DAY),
    ),
    "longest_keep": (
        "Candidates are kept for reviewing at most", "Longer times are not offered.",
        (7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY),
    ),
    "keep_results": (
        "The shortest time a list is kept for", "To be downloaded; always offered.", (HOUR, DAY, 7 * DAY)
    ),
    "keep_uploads": ("Uploads are kept after their result is made for", "", (0, HOUR, DAY, 7 * DAY)),
}  # fmt: skip
router = APIRouter()


@router.get("/team")
def team(me: Admin) -> Response:
    return me.show(
        "team.html", **_described(me.view), may=MAY, settings=settings_in_words(me.settings),
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
    values = {name: _chosen(name, me.said(name)) for name in names}
    before = {name: getattr(me.settings, name) for name in names}
    live_settings.change(me.view, before, values)
    me.runtime.take_chosen()
    return to("/team#settings")


def _chosen(name: str, said: str) -> str | bool | int:
    if name == "title":
        return said
    if name == "notes":
        return bool(said)
    if not (said.isascii() and said.isdigit() and len(said) < 12):
        raise InvalidInput(name, "choose for how long.")
    return int(said)


def times(settings: Settings) -> list[dict[str, object]]:
    """For how long things are kept: what a person can choose from, the value in force among it."""
    return [
        {"name": name, "words": words, "hint": hint, "now": getattr(settings, name),
         "choices": sorted({*offered, getattr(settings, name)})}
        for name, (words, hint, offered) in TIMES.items() if name not in settings.fixed
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


def _described(view: View) -> dict[str, object]:
    policies, tokens = view.policy_names(), access.list_tokens(view.registry)
    begun = view.registry.latest(SessionBegun, [token.id for token in tokens])
    logins = {ident: entry.at for ident, entry in begun.items()}
    return {
        "people": [_person(each, view, logins, policies) for each in tokens if each.usable],
        "gone": [_person(each, view, logins, policies) for each in tokens if not each.usable],
        "policies": policies, "roles": ROLES,
    }  # fmt: skip


def _person(token: Token, view: View, logins: dict[str, str], policies: dict[str, str]) -> dict[str, object]:
    theirs = {each: policies.get(each, each[:12]) for each in token.policies or ()}
    return {
        "token": token, "only": theirs, "policies": policies | theirs, "login": logins.get(token.id),
        "me": view.actor.name == f"{token.name} ({token.id})",
    }  # fmt: skip


def settings_in_words(settings: Settings) -> list[tuple[str, str, str]]:
    """How the service was started: what, how much, and the option of ``surelist serve`` that says so."""
    hours = settings.session_life / 3600
    kind = "PostgreSQL" if settings.database.startswith(("postgresql:", "postgres:")) else "SQLite, one file"
    kept = [
        (TIMES[name][0], duration(getattr(settings, name)), f"--{name.replace('_', '-')}")
        for name in TIMES if name in settings.fixed
    ]  # fmt: skip
    return [
        (
            "Login",
            "asked of everyone" if settings.login else "none: whoever is at this machine is admin",
            "--login",
        ),
        ("A session ends after", f"{hours:g} hours", ""),
        ("Record", kind, "--database"),
        *kept,
        ("Largest upload", f"{settings.max_upload // MIB:,} MiB", "--max-upload"),
        ("Longest work on one request", duration(settings.work_seconds), "--work-seconds"),
        ("Cookies by https only", "yes" if settings.https else "no", "--https"),
    ]
