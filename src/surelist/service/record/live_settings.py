"""Settings that an admin changes while the service runs, as the record has them; the last entry counts.

An entry holds all of them, and what they were before. What each means is in ``settings``, what a page says
of it in ``team_pages``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from surelist.errors import InvalidInput
from surelist.service.record.events import SettingsChanged
from surelist.service.record.log import Log
from surelist.service.record.record import Bound
from surelist.service.record.setting_values import LONGEST_KEEP, LONGEST_TITLE, LiveSettings

SUBJECT = "settings"
NAMES = LiveSettings.__struct_fields__
EXPECTED = {"title": f"a name of at most {LONGEST_TITLE} characters", "notes": "yes or no"}


def checked(values: Mapping[str, object]) -> LiveSettings:
    """The values of settings as they may be; raises at the first that may not."""
    for name, value in values.items():
        if name not in NAMES:
            raise InvalidInput("settings", f"there is none named {name[:40]!r} that a page changes.")
        try:
            msgspec.convert({name: value}, LiveSettings)
            fits = value is not None and str(value).isprintable()
        except msgspec.ValidationError:
            fits = False
        if not fits:
            expected = EXPECTED.get(name, f"0 to {LONGEST_KEEP:,} seconds")
            raise InvalidInput(name, expected=expected, got=repr(value))
    return msgspec.convert(values, LiveSettings)


def latest(log: Log) -> LiveSettings:
    """What was chosen last; nothing where nobody ever did."""
    last = log.newest(SettingsChanged, subject=SUBJECT)
    return LiveSettings() if last is None else last.event.settings


def change(book: Bound, before: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Put new values on record; nothing where they are what they were."""
    book.may("admin")
    was = msgspec.convert({name: before[name] for name in values}, LiveSettings)
    event = SettingsChanged(settings=checked(values), before=was)
    if event.settings != event.before:
        book.append(SUBJECT, event, role="admin").result()
