"""Who may do what: tokens, sessions, and the brake on guessing.

A token is shown once and stored as a hash. The page's session is a random cookie, stored as a
hash too; the token against cross-site forgery is derived from the cookie, which no other site
can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from surelist import _check as check
from surelist._numerals import moment
from surelist.errors import InvalidInput
from surelist.service.errors import Conflict, NotAuthenticated, NotFound, TooManyAttempts
from surelist.service.record.connections import Connection
from surelist.service.record.event import Entry, Event, Names, Words
from surelist.service.record.log import Batch, now
from surelist.service.record.record import ROLES, Actor, Bound, Registry

if TYPE_CHECKING:
    from surelist.service.record.verify import Story

MOST_POLICIES = 200  # of one token
_COLUMNS = "id, name, role, policy, created, expires, revoked"  # of a ``Token``


def policies_in(text: str | None) -> tuple[str, ...] | None:
    """The policies that a token is for, as the record has them; None for all."""
    return None if text is None else tuple(text.split())


def _policies_said(policy: str | None, names: Names) -> Words:
    """The policies that a token is for."""
    policies = policies_in(policy)
    if policies is None:
        return ["all policies"]
    listed: Words = [part for each in policies for part in (", ", names.policy(each))][1:]
    return ["the policy " if len(policies) == 1 else "the policies ", *listed, " only"]


class TokenCreated(Event, frozen=True, kw_only=True):
    """Somebody was let in; ``fingerprint`` is that of the stored digest."""

    action = "token.created"
    looked_at = ("token", "tokens", "role, policy, end and secret, and that nobody came in without one")
    name: str
    role: str
    policy: str | None
    expires: str | None
    fingerprint: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        only: Words = [", for ", *_policies_said(self.policy, names)] if self.policy else []
        end = f", until {moment(self.expires)}" if self.expires else ""
        return [f"let {self.name} in as {self.role}", *only, f"{end}."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.tokens[entry.subject] = self
        story.begun[entry.subject] = entry.at


class TokenChanged(Event, frozen=True, kw_only=True):
    """Another role, or other policies."""

    action = "token.changed"
    role: str
    policy: str | None

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return [f"made {names.token(subject)} {self.role}, for ", *_policies_said(self.policy, names), "."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.require_token(entry)
        story.tokens[entry.subject] = structs.replace(
            story.tokens[entry.subject], role=self.role, policy=self.policy
        )


class TokenRevoked(Event, frozen=True, kw_only=True):
    """Its end, and that of every session begun with it."""

    action = "token.revoked"

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return [f"revoked the token of {names.token(subject)}."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        story.revoked[story.require_token(entry)] = entry.at


class SessionBegun(Event, frozen=True, kw_only=True):
    """Somebody logged in."""

    action = "session.begun"
    fingerprint: str
    expires: str

    def said(self, subject: str, names: Names, seq: int) -> Words:
        return ["logged in."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        token = story.tokens[story.require_token(entry)]
        if token.expires is not None and token.expires < entry.at:
            story.problem(entry, "its token had expired before")
        story.sessions.setdefault(entry.subject, {})[self.fingerprint] = self.expires


class Token(Struct, frozen=True):
    """A token as it is on record: everything but its secret. ``policy``: hashes with spaces between."""

    id: str
    name: str
    role: str
    policy: str | None
    created: str
    expires: str | None
    revoked: str | None

    @property
    def policies(self) -> tuple[str, ...] | None:
        """Those it is for; None for all."""
        return policies_in(self.policy)

    @property
    def usable(self) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now())


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
    token = Token(ident, name, role, policy, now(), expires, None)
    event = TokenCreated(
        name=name, role=role, policy=policy, expires=expires, fingerprint=fingerprint(_digest(secret))
    )

    sql = "INSERT INTO tokens (id, name, role, policy, digest, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)"
    values = [ident, name, role, policy, _digest(secret), token.created, expires]
    written = book.append(
        ident, event, role="admin", after=lambda connection, _: connection.execute(sql, values)
    ).result()
    if written.replayed:
        raise Conflict(
            "token: this one was made before. Its text was shown then and is not kept: revoke it and make "
            "another."
        )
    return token, f"surelist_{ident}_{secret}"


def change_token(
    book: Bound, ident: str, role: str, policies: Sequence[str], *, keep_admin: bool = False
) -> None:
    """Another role, or other policies that it is for (none: all); sessions begun with it follow at once."""
    check.as_choice(role, ROLES, "role")
    policy = _scope(book.registry, policies)

    def before(batch: Batch) -> None:
        token = _in_use(batch, ident)
        if (token.role, token.policy) == (role, policy):
            raise Conflict(f"token: {token.name!r} has this role and these policies already.")
        if keep_admin and not (role == "admin" and policy is None):
            _require_other_admin(batch, token)

    sql = "UPDATE tokens SET role = ?, policy = ? WHERE id = ?"
    book.append(
        ident, TokenChanged(role=role, policy=policy), role="admin", before=before,
        after=lambda connection, _: connection.execute(sql, [role, policy, ident]),
    ).result()  # fmt: skip


def revoke_token(book: Bound, ident: str, *, keep_admin: bool = False) -> None:
    """End a token and every session begun with it; with ``keep_admin`` not the last one of an admin."""

    def before(batch: Batch) -> None:
        token = _in_use(batch, ident)
        if keep_admin:
            _require_other_admin(batch, token)

    def after(connection: Connection, entry: Entry[Event]) -> None:
        connection.execute("UPDATE tokens SET revoked = ? WHERE id = ?", [entry.at, ident])
        connection.execute("DELETE FROM sessions WHERE token = ?", [ident])

    book.append(ident, TokenRevoked(), role="admin", before=before, after=after).result()


def _in_use(batch: Batch, ident: str) -> Token:
    rows = batch.query(f"SELECT {_COLUMNS} FROM tokens WHERE id = ? AND revoked IS NULL", [ident])
    if not rows:
        raise NotFound(f"token: there is no token {ident!r} in use; `surelist token list` shows them.")
    return Token(*rows[0])


def _require_other_admin(batch: Batch, token: Token) -> None:
    """Somebody has to be able to undo it."""
    rows = batch.query(f"SELECT {_COLUMNS} FROM tokens WHERE id <> ?", [token.id])
    others = [each for each in (Token(*row) for row in rows) if each.usable and as_actor(each).leads]
    if token.usable and as_actor(token).leads and not others:
        raise Conflict(
            f"token: {token.name!r} is the last admin for all policies. Make somebody else admin first; on "
            "the machine itself `surelist token` can always make one."
        )


def list_tokens(registry: Registry) -> list[Token]:
    rows = registry.database.read(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id")
    return [Token(*row) for row in rows]


def find_token(registry: Registry, text: str) -> Token:
    """The token behind a text, or ``NotAuthenticated``; never says which part was wrong."""
    parts = text.split("_", 2)
    if len(parts) == 3 and parts[0] == "surelist" and parts[1].isalnum():
        rows = registry.database.read(f"SELECT digest, {_COLUMNS} FROM tokens WHERE id = ?", [parts[1]])
        if rows and hmac.compare_digest(rows[0][0], _digest(parts[2])):
            token = Token(*rows[0][1:])
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
    rows = registry.database.read(
        "SELECT t.id, t.name, t.role, t.policy, t.created, t.expires, t.revoked FROM sessions s "
        "JOIN tokens t ON t.id = s.token WHERE s.digest = ? AND s.expires > ?",
        [_digest(cookie), now()],
    )
    token = Token(*rows[0]) if rows else None
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
