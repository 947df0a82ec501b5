"""Who may use the service, as an admin sees and changes it. All of it is on the log (``access``)."""

from __future__ import annotations

from collections.abc import Sequence

from surelist.service.record import access
from surelist.service.record.access import Actor, Token
from surelist.service.record.events import SessionBegun
from surelist.service.record.log import Key
from surelist.service.record.record import Registry


class Team:
    """People and programs with their tokens; ``guarded`` where they are all that leads into the service."""

    def __init__(self, registry: Registry, actor: Actor, *, guarded: bool) -> None:
        actor.require("admin")
        actor.require_all_policies()
        self._registry, self._actor, self._guarded = registry, actor.name, guarded

    def tokens(self) -> list[Token]:
        """Those in use first, oldest first."""
        return sorted(access.list_tokens(self._registry), key=lambda token: not token.usable)

    def last_logins(self) -> dict[str, str]:
        """When somebody last logged in with a token, by token."""
        tokens = [token.id for token in access.list_tokens(self._registry)]
        return {ident: entry.at for ident, entry in self._registry.latest(SessionBegun, tokens).items()}

    def add(
        self, name: str, role: str, policies: Sequence[str], days: int | None, key: Key | None
    ) -> tuple[Token, str]:
        """A new token and its text."""
        return access.create_token(
            self._registry, name, role, actor=self._actor, policies=policies, days=days, key=key
        )

    def change(self, ident: str, role: str, policies: Sequence[str], key: Key | None) -> None:
        access.change_token(
            self._registry, ident, role, policies, actor=self._actor, keep_admin=self._guarded, key=key
        )

    def revoke(self, ident: str, key: Key | None) -> None:
        access.revoke_token(self._registry, ident, actor=self._actor, keep_admin=self._guarded, key=key)
