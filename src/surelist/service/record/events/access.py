"""Who may use the service, and how it is set up: tokens, sessions, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, structs

from surelist._numerals import duration, moment
from surelist.service.record.event import Event, Names, Words

if TYPE_CHECKING:
    from surelist.service.record.chain import Entry
    from surelist.service.record.story import Story


def policies_in(text: str | None) -> tuple[str, ...] | None:
    """The policies that a token is for, as the record has them; None for all."""
    return None if text is None else tuple(text.split())


def _scope(policy: str | None, names: Names) -> Words:
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
        only: Words = [", for ", *_scope(self.policy, names)] if self.policy else []
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
        return [f"made {names.token(subject)} {self.role}, for ", *_scope(self.policy, names), "."]

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


class SettingsChanged(Event, frozen=True, kw_only=True):
    """All that can be chosen, and what it was before."""

    action = "settings.changed"
    looked_at = ("change of settings", "changes of settings", "whether the values are possible ones")
    settings: LiveSettings
    before: LiveSettings

    def said(self, subject: str, names: Names, seq: int) -> Words:
        before = self.before.chosen
        said = [
            self.settings.said(name) for name, now in self.settings.chosen.items() if now != before.get(name)
        ]
        return [f"changed the settings: {'; '.join(said)}."]

    def verify(self, entry: Entry[Event], story: Story) -> None:
        if self.before.chosen.keys() != self.settings.chosen.keys():
            story.problem(entry, "it does not say what each setting was before")
