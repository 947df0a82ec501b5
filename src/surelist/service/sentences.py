"""Entries of the record as sentences that a person reads: who did what, with links to what it is about.

Each event has its own sentence (``record.events``); an entry of an unknown kind is shown by its code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from surelist.service.record import events
from surelist.service.record.access import TokenCreated
from surelist.service.record.campaigns import CampaignScreened, CampaignStarted
from surelist.service.record.event import Entry, Event, Piece, Words, read
from surelist.service.record.history import History
from surelist.service.record.labellings import LabellingStarted
from surelist.service.record.marks import NO, YES
from surelist.service.record.record import LOCAL


class ToldEntry(NamedTuple):
    """An entry and its sentence."""

    entry: Entry[Event]
    who: str
    pieces: list[Piece]

    @property
    def text(self) -> str:
        return f"{self.who} {''.join(piece.text for piece in self.pieces)}"


class NamesNow:
    """What things are called now, each asked of the record once."""

    def __init__(self, history: History, marks: Mapping[int, Mapping[int, int]] | None = None) -> None:
        self._named, self._marks = cache(history.named), marks or {}

    def policy(self, digest: str) -> Piece:
        first, later = self._named(events.PolicySaved, digest), self._named(events.PolicyDescribed, digest)
        name = later.name if later else first.name if first else ""
        return Piece(name or digest[:12], f"/policies/{digest}" if first else None)

    def reviewed(self, ident: str) -> Piece:
        if made := self._named(events.SelectionMade, ident):
            later = self._named(events.SelectionDescribed, ident)
            return Piece((later or made).name or "a shortlist", f"/selections/{ident}")
        if begun := self._named(LabellingStarted, ident):
            return Piece(begun.name, f"/labellings/{ident}")
        if pool := self._named(CampaignScreened, ident):
            return Piece(pool.name or "a shortlist", f"/campaigns/{pool.campaign}")
        return Piece(ident[:12])

    def campaign(self, ident: str) -> Piece:
        begun = self._named(CampaignStarted, ident)
        return Piece(begun.name, f"/campaigns/{ident}") if begun else Piece(ident[:12])

    def token(self, ident: str) -> str:
        made = self._named(TokenCreated, ident)
        return made.name if made else f"token {ident}"

    def marks(self, seq: int) -> Mapping[int, int]:
        return self._marks.get(seq, {})


def lines(history: History, entries: Sequence[Entry[Event]], hidden: Collection[int] = ()) -> list[ToldEntry]:
    """The sentences of these entries; how candidates were marked is not told of those ``hidden``."""
    marks = history.marks(entries)
    for seq in marks.keys() & set(hidden):
        marks[seq] = {code: many for code, many in marks[seq].items() if code not in (YES, NO)}
    names = NamesNow(history, marks)
    return [_told(entry, names) for entry in entries]


def _told(entry: Entry[Event], names: NamesNow) -> ToldEntry:
    try:
        pieces = read(entry.action, entry.details).said(entry.subject, names, entry.seq)
    except (msgspec.MsgspecError, ValueError):
        pieces = [f"entered {entry.action!r}, which cannot be read."]
    return ToldEntry(entry, person(entry.actor), _linked(pieces))


def _linked(words: Words) -> list[Piece]:
    return [each if isinstance(each, Piece) else Piece(each) for each in words]


def person(actor: str) -> str:
    """Who it was, without the number of their token."""
    if actor == LOCAL:
        return "Somebody at this machine"
    name, _, rest = actor.rpartition(" (")
    if name == "command line":
        return f"{rest.removesuffix(')')}, at the command line,"
    return name or actor
