"""Who may do what: tokens, sessions, and the brake on guessing.

A token is its entries in the log; its text is shown once, and the log has a hash. The page's session is a
random cookie, stored as a hash too; the token against cross-site forgery is derived from the cookie, which no
other site can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from surelist import _check as check
from surelist._numerals import moment
from surelist.errors import InvalidInput
from surelist.service.errors import Conflict, NotAuthenticated, NotFound, TooManyAttempts
from surelist.service.record.connections import Rows
from surelist.service.record.event import Entry, Event, Names, Words
from surelist.service.record.log import Batch, now
from surelist.service.record.record import ROLES, Actor, Bound, Registry

if TYPE_CHECKING:
    from surelist.service.record.verify import Story

MOST_POLICIES = 200  # of one token


def policies_in(text: str | None) -> tuple[str, ...] | None:
    """The policies that a token is for, as the record has them; None for all."""
    return None if text is None else tuple(text.split())


def _policies_said(policy: str | None, names: Names) -> Words:
    """The policies that a token is for."""
    policies = policies_in(policy)
    if policies is None:
        return ["all policies"]
    listed: Words = [part for each in policies for part in (", ", names.of(each))][1:]
    return ["the policy " if len(policies) == 1 else "the policies ", *listed, " only"]


class Token(Struct, frozen=True):
    """A token as it is on record: everything but its secret. ``policy``: hashes with spaces between."""

    id: str
    name: str
    role: str
    policy: str | None
    created: str
    expires: str | None
    revoked: str | None = None

    @property
    def policies(self) -> tuple[str, ...] | None:
        """Those it is for; None for all."""
        return policies_in(self.policy)

    @property
    def usable(self) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now())


class TokenCreated(Event, frozen=True, kw_only=True):
    """Somebody was let in; ``fingerprint`` is that of the token's digest."""

    action = "token.created"
    page = ""
    name: str
    role: str
    policy: str | None
    expires: str | None
    fingerprint: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        only: Words = [", for ", *_policies_said(self.policy, names)] if self.policy else []
        end = f", until {moment(self.expires)}" if self.expires else ""
        return [f"let {self.name} in as {self.role}", *only, f"{end}."]

    def token(self, entry: Entry[Any]) -> Token:
        """As it was made."""
        return Token(entry.subject, self.name, self.role, self.policy, entry.at, self.expires)

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if entry.subject in story.tokens:
            story.problem(entry, "the same token was made before")
        story.tokens[entry.subject] = self.token(entry)


class OfToken(Event, frozen=True, kw_only=True):
    """What happens to a token, or by it, as long as it is not revoked."""

    def after(self, token: Token, at: str) -> Token:
        """What the token is then."""
        return token

    def verify(self, entry: Entry[Event], story: Story) -> None:
        token = story.tokens[entry.subject]
        if token.revoked is not None:
            story.problem(entry, "its token was revoked before")
        story.tokens[entry.subject] = self.after(token, entry.at)


class TokenChanged(OfToken, frozen=True, kw_only=True):
    """Another role, or other policies."""

    action = "token.changed"
    role: str
    policy: str | None

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return [f"made {names.of(subject).text} {self.role}, for ", *_policies_said(self.policy, names), "."]

    def after(self, token: Token, at: str) -> Token:
        return structs.replace(token, role=self.role, policy=self.policy)


class TokenRevoked(OfToken, frozen=True, kw_only=True):
    """Its end, and that of every session begun with it."""

    action = "token.revoked"
    sentence = "revoked the token of {it}."

    def after(self, token: Token, at: str) -> Token:
        return structs.replace(token, revoked=at)


class SessionBegun(OfToken, frozen=True, kw_only=True):
    """Somebody logged in."""

    action = "session.begun"
    sentence = "logged in."
    fingerprint: str
    expires: str

    def verify(self, entry: Entry[Event], story: Story) -> None:
        super().verify(entry, story)
        end = story.tokens[entry.subject].expires
        if end is not None and end < entry.at:
            story.problem(entry, "its token had expired before")
        story.sessions.setdefault(entry.subject, {})[self.fingerprint] = self.expires


def list_tokens(registry: Registry, query: Callable[..., Rows] | None = None) -> list[Token]:
    """All of them, the oldest first."""
    return list(_told(_entries(registry, query=query)).values())


def _entries(registry: Registry, ident: str | None = None, **how: Any) -> list[Entry[Event]]:
    """What the log tells of all tokens, or of one."""
    kinds = TokenCreated, TokenChanged, TokenRevoked
    return registry.entries(*kinds, subject=ident, limit=None, oldest=True, **how)


def _told(entries: Sequence[Entry[Event]]) -> dict[str, Token]:
    """Tokens as they are after these entries."""
    tokens: dict[str, Token] = {}
    for entry in entries:
        event, known = entry.event, tokens.get(entry.subject)
        if isinstance(event, TokenCreated):
            tokens.setdefault(entry.subject, event.token(entry))
        elif isinstance(event, OfToken) and known is not None:
            tokens[entry.subject] = event.after(known, entry.at)
    return tokens


def _scope(registry: Registry, policies: Sequence[str]) -> str | None:
    """For the record: the policies, each of which is there; None for all."""
    if len(policies) > MOST_POLICIES:
        raise InvalidInput(
            "policy",
            expected=f"{MOST_POLICIES:,} at most",
            got=f"{len(policies):,}",
            remedy="Make one for all.",
        )
    return " ".join(sorted({registry.policy(each).hash for each in policies})) if policies else None


def create_token(
    book: Bound, name: str, role: str, policies: Sequence[str] = (), days: int | None = None
) -> tuple[Token, str]:
    """Make a token; the text is shown once and not kept."""
    check.as_choice(role, ROLES, "role")
    if not name.strip() or len(name) > 80 or not name.isprintable():
        raise InvalidInput("name", expected="1 to 80 printable characters", got=repr(name))
    policy = _scope(book.registry, policies)
    ident, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    expires = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="milliseconds") if days else None
    event = TokenCreated(
        name=name, role=role, policy=policy, expires=expires, fingerprint=fingerprint(_digest(secret))
    )
    written = book.append(ident, event, role="admin").result()
    if written.replayed:
        raise Conflict(
            "token: this one was made before. Its text was shown then and is not kept: revoke it and make "
            "another."
        )
    return event.token(written.entry), f"surelist_{ident}_{secret}"


def change_token(
    book: Bound, ident: str, role: str, policies: Sequence[str], *, keep_admin: bool = False
) -> None:
    """Another role, or other policies that it is for (none: all); sessions begun with it follow at once."""
    check.as_choice(role, ROLES, "role")
    policy = _scope(book.registry, policies)

    def before(batch: Batch) -> None:
        token = _in_use(book, batch, ident)
        if (token.role, token.policy) == (role, policy):
            raise Conflict(f"token: {token.name!r} has this role and these policies already.")
        if keep_admin and not (role == "admin" and policy is None):
            _require_other_admin(book, batch, token)

    book.append(ident, TokenChanged(role=role, policy=policy), role="admin", before=before).result()


def revoke_token(book: Bound, ident: str, *, keep_admin: bool = False) -> None:
    """End a token and every session begun with it; with ``keep_admin`` not the last one of an admin."""

    def before(batch: Batch) -> None:
        token = _in_use(book, batch, ident)
        if keep_admin:
            _require_other_admin(book, batch, token)

    sql = "DELETE FROM sessions WHERE token = ?"
    book.append(
        ident, TokenRevoked(), role="admin", before=before,
        after=lambda connection, _: connection.execute(sql, [ident]),
    ).result()  # fmt: skip


def _in_use(book: Bound, batch: Batch, ident: str) -> Token:
    token = _told(_entries(book.registry, ident, query=batch.query)).get(ident)
    if token is None or token.revoked is not None:
        raise NotFound(f"token: there is no token {ident!r} in use; `surelist token list` shows them.")
    return token


def _require_other_admin(book: Bound, batch: Batch, token: Token) -> None:
    """Somebody has to be able to undo it."""
    leading = [
        each for each in list_tokens(book.registry, batch.query) if each.usable and as_actor(each).leads
    ]
    if [each.id for each in leading] == [token.id]:
        raise Conflict(
            f"token: {token.name!r} is the last admin for all policies. Make somebody else admin first; on "
            "the machine itself `surelist token` can always make one."
        )


def find_token(registry: Registry, text: str) -> Token:
    """The token behind a text, or ``NotAuthenticated``; never says which part was wrong."""
    parts = text.split("_", 2)
    if len(parts) == 3 and parts[0] == "surelist" and parts[1].isalnum():
        entries = _entries(registry, parts[1])
        made, secret = (entries[0].event if entries else None), fingerprint(_digest(parts[2]))
        if isinstance(made, TokenCreated) and hmac.compare_digest(made.fingerprint, secret):
            token = _told(entries)[parts[1]]
            if token.usable:
                return token
    raise NotAuthenticated("The token is not valid, was revoked, or has expired.")


def as_actor(token: Token) -> Actor:
    return Actor(f"{token.name} ({token.id})", token.role, token.policies)


def begin_session(registry: Registry, token: Token, seconds: int) -> str:
    """A new session cookie for a token."""
    cookie = new_cookie()
    expires = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

    def job(batch: Batch) -> None:
        event = SessionBegun(fingerprint=fingerprint(_digest(cookie)), expires=expires)
        batch.append(as_actor(token).name, token.id, event)
        batch.connection.execute("DELETE FROM sessions WHERE expires < ?", [now()])
        batch.connection.execute(
            "INSERT INTO sessions (digest, token, expires) VALUES (?, ?, ?)",
            [_digest(cookie), token.id, expires],
        )

    registry.writer.submit(job).result()
    return cookie


def find_session(registry: Registry, cookie: str) -> Actor | None:
    sql = "SELECT token FROM sessions WHERE digest = ? AND expires > ?"
    rows = registry.database.read(sql, [_digest(cookie), now()])
    token = _told(_entries(registry, rows[0][0])).get(rows[0][0]) if rows else None
    return as_actor(token) if token and token.usable else None


def end_session(registry: Registry, cookie: str) -> None:
    digest = _digest(cookie)
    registry.writer.submit(
        lambda batch: batch.connection.execute("DELETE FROM sessions WHERE digest = ?", [digest])
    ).result()


def new_cookie() -> str:
    return secrets.token_urlsafe(32)


def csrf_token(cookie: str) -> str:
    return hashlib.sha256(b"surelist csrf " + cookie.encode()).hexdigest()


def owner_of(cookie: str) -> str:
    """Under which name a session's uploads are kept; tells nothing about the cookie."""
    return hashlib.sha256(b"surelist owner " + cookie.encode()).hexdigest()


class Brake:
    """At most ``limit`` failed logins per address and minute are answered; the others have to wait."""

    def __init__(self, limit: int, window: float = 60.0) -> None:
        self._limit, self._window = limit, window
        self._failures: dict[str, deque[float]] = defaultdict(deque)
        self._lock = threading.Lock()

    def failed(self, address: str) -> None:
        """Count a failure, or refuse to say whether it was one."""
        with self._lock:
            recent = self._recent(address)
            if len(recent) >= self._limit:
                raise TooManyAttempts(max(1, round(self._window - (time.monotonic() - recent[0]))))
            recent.append(time.monotonic())

    def _recent(self, address: str) -> deque[float]:
        if len(self._failures) > 10_000:  # many addresses: forget the quiet ones
            since = time.monotonic() - self._window
            for key in [k for k, times in self._failures.items() if not times or times[-1] < since]:
                del self._failures[key]
        recent = self._failures[address]
        while recent and recent[0] < time.monotonic() - self._window:
            recent.popleft()
        return recent


def fingerprint(digest: str) -> str:
    """What the log holds of a stored digest: enough to notice that it was exchanged."""
    return _digest(digest)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
