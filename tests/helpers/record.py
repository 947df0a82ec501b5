"""A record written to as the service does, and entries forged by whoever can write to its database."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from surelist.promises import policy_file
from surelist.promises.policy import Policy
from surelist.service.record.event import Unknown
from surelist.service.record.events import PolicySaved, SelectionMade
from surelist.service.record.log import Key
from surelist.service.record.record import Actor, Registry
from surelist.service.record.view import View


def by(registry: Registry, name: str = "ann", key: Key | None = None) -> View:
    """The record as somebody who may do everything uses it, in a request with this key."""
    return View(registry, Actor(name, "admin"), key)


def forge(
    registry: Registry, actor: str, action: str, subject: str, facts: dict[str, Any], **more: Any
) -> Future[Any]:
    """An entry with a proper hash and whatever details."""
    return registry.append(actor, subject, Unknown(kind=action, facts=facts), **more)


def save(registry: Registry, policy: Policy, name: str = "p", actor: str = "ann", **more: Any) -> Any:
    """A policy on record: what was written."""
    saved = PolicySaved(name=name, policy=policy_file.dumps(policy), **more)
    return by(registry, actor).save_policy(saved, policy_file.dump_salt(policy)).result()


def selection(policy: str, candidates: int = 9, shortlisted: int = 3, **more: Any) -> SelectionMade:
    """A selection with made-up hashes."""
    known = {
        "pool_sha256": "p", "pool_format": "csv", "result_sha256": "r", "result_format": "csv", "version": "0"
    }  # fmt: skip
    return SelectionMade(policy=policy, candidates=candidates, shortlisted=shortlisted, **(known | more))
