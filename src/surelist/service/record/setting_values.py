"""Values of the settings that an admin changes while the service runs, and how they are said."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, structs

from surelist._numerals import duration

LONGEST_TITLE = 60
LONGEST_KEEP = 3650 * 86_400
Title = Annotated[str, Meta(max_length=LONGEST_TITLE)]
Seconds = Annotated[int, Meta(ge=0, le=LONGEST_KEEP)]


class LiveSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings that an admin changes while the service runs; None: not chosen."""

    title: Title | None = None
    usual_keep: Seconds | None = None
    longest_keep: Seconds | None = None
    keep_results: Seconds | None = None
    keep_uploads: Seconds | None = None
    notes: bool | None = None

    @property
    def chosen(self) -> dict[str, str | int | bool]:
        """Those that somebody chose, by name."""
        return {name: value for name, value in structs.asdict(self).items() if value is not None}

    def said(self, name: str) -> str:
        """One of them in words."""
        value = getattr(self, name)
        if name == "title":
            return f"the installation is called “{value}”" if value else "the installation has no name"
        if name == "notes":
            return f"notes about candidates are {'allowed' if value else 'not allowed'}"
        words = {
            "usual_keep": "new lists are usually kept for {}",
            "longest_keep": "candidates are kept for {} at most",
            "keep_results": "shortlists can be downloaded for {}",
            "keep_uploads": "uploads are kept for {} after their result",
        }
        return words[name].format(duration(value))
