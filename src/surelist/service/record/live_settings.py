"""Settings that an admin changes while the service runs, as the record has them; the last entry counts.

An entry holds all of them, and what they were before. What each means is in ``settings``, what a page says
of it in ``team_pages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelist.errors import InvalidInput
from surelist.service.record.access import Actor
from surelist.service.record.log import Key, Log

CHANGED, SUBJECT = "settings.changed", "settings"
SECONDS = ("usual_keep", "longest_keep", "keep_results", "keep_uploads")
NAMES = ("title", *SECONDS, "notes")
LONGEST_TITLE = 60
LONGEST_KEEP = 3650 * 86_400


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of settings as they may be; raises at the first that may not."""
    for name, value in values.items():
        if name not in NAMES:
            raise InvalidInput("settings", f"there is none named {name[:40]!r} that a page changes.")
        if name == "title":
            fits = isinstance(value, str) and len(value) <= LONGEST_TITLE and value.isprintable()
            expected = f"a name of at most {LONGEST_TITLE} characters"
        elif name == "notes":
            fits, expected = isinstance(value, bool), "yes or no"
        else:
            whole = isinstance(value, int) and not isinstance(value, bool)
            fits, expected = whole and 0 <= value <= LONGEST_KEEP, f"0 to {LONGEST_KEEP:,} seconds"
        if not fits:
            raise InvalidInput(name, expected=f"{expected}", got=repr(value))
    return dict(values)


def latest(log: Log) -> dict[str, Any]:
    """What was chosen last; empty where nobody ever did."""
    last = next(iter(log.entries(action=CHANGED, limit=1)), None)
    return {} if last is None else dict(last.facts["settings"])


def change(
    log: Log, actor: Actor, before: Mapping[str, Any], values: Mapping[str, Any], key: Key | None
) -> None:
    """Put new values on record; nothing where they are what they were."""
    actor.require("admin")
    actor.require_all_policies()
    facts = {"settings": checked(values), "before": {name: before[name] for name in values}}
    if facts["settings"] != facts["before"]:
        log.append(actor.name, CHANGED, SUBJECT, facts, key=key).result()
