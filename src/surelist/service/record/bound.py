"""A record and an actor: what every part of a view is made of."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from surelist.errors import SurelistError
from surelist.service.errors import Conflict
from surelist.service.record.access import Actor
from surelist.service.record.chain import Entry
from surelist.service.record.log import Key, Written
from surelist.service.record.record import Registry


class Outdated(Conflict):
    """What was to be written was worked out from something that has changed meanwhile."""


class Bound:
    """A registry bound to an actor."""

    def __init__(self, registry: Registry, actor: Actor) -> None:
        self.registry, self.actor = registry, actor

    def may(self, role: str, policy: str | None = None) -> str:
        """The actor's name for the log, if they have this role for this policy, or for all without one."""
        self.actor.require(role)
        if policy is None:
            self.actor.require_all_policies()
        else:
            self.actor.require_policy(policy)
        return self.actor.name

    def replayed(self, key: Key | None) -> Entry[Any] | None:
        """What is on record under an idempotency key already, if the request was the same."""
        return None if key is None else self.registry.replayed(self.actor.name, key)

    def once(self, key: Key | None, job: Callable[[], Written[Any]]) -> Written[Any]:
        """What a request leads to; sent again under one key, also at the same moment, what it led to first.

        The slower of two may be refused because of what the faster one has just done.
        """
        if (known := self.replayed(key)) is not None:
            return Written(known, replayed=True)
        try:
            return job()
        except SurelistError:
            if (known := self.replayed(key)) is not None:
                return Written(known, replayed=True)
            raise


Writing = Future[Written[Any]]
