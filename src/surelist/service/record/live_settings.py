"""Settings that an admin changes while the service runs, as the record has them; the last entry counts.

An entry holds all of them, and what they were before. What each means is in ``settings``, what a page says
of it in ``team_pages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct, structs

from surelist._numerals import duration
from surelist.errors import InvalidInput
from surelist.service.record.event import Entry, Event, Names, Words
from surelist.service.record.log import Log
from surelist.service.record.record import Bound

if TYPE_CHECKING:
    from surelist.service.record.verify import Story

LONGEST_KEEP = 3650 * 86_400
Seconds = Annotated[int, Meta(ge=0, le=LONGEST_KEEP)]
WORDS = {
    "longest_keep": "candidates are kept for {} at most",
    "keep_results": "shortlists can be downloaded for {}",
    "keep_uploads": "uploads are kept for {} after their result",
}


class LiveSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """For how long things are kept, as an admin chose while the service ran; None: not chosen."""

    longest_keep: Seconds | None = None
    keep_results: Seconds | None = None
    keep_uploads: Seconds | None = None

    @property
    def chosen(self) -> dict[str, int]:
        """Those that somebody chose, by name."""
        return {name: value for name, value in structs.asdict(self).items() if value is not None}


class SettingsChanged(Event, frozen=True, kw_only=True):
    """All that can be chosen, and what it was before."""

    action = "settings.changed"
    settings: LiveSettings
    before: LiveSettings

    def said(self, subject: str, names: Names, seq: int) -> Words:
        before, now = self.before.chosen, self.settings.chosen
        said = [WORDS[name].format(duration(now[name])) for name in now if now[name] != before.get(name)]
        return [f"changed the settings: {'; '.join(said)}."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if self.before.chosen.keys() != self.settings.chosen.keys():
            story.problem(entry, "it does not say what each setting was before")


SUBJECT = "settings"
NAMES = LiveSettings.__struct_fields__


def latest(log: Log) -> LiveSettings:
    """What was chosen last; nothing where nobody ever did."""
    last = log.newest(SettingsChanged, subject=SUBJECT)
    return LiveSettings() if last is None else last.event.settings


def change(book: Bound, before: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Put new values on record, numbers also as text; nothing where they are what they were."""
    book.may("admin")
    for name, value in values.items():
        try:
            msgspec.convert(value, Seconds, strict=False)
        except msgspec.ValidationError:
            raise InvalidInput(name, expected=f"0 to {LONGEST_KEEP:,} seconds", got=repr(value)) from None
    now, was = (msgspec.convert(each, LiveSettings, strict=False) for each in (values, before))
    if now != was:
        book.append(SUBJECT, SettingsChanged(settings=now, before=was), role="admin").result()
