"""Entries of the record as sentences that a person reads: who did what, with links to what it is about.

One sentence per kind of entry; an entry of a kind that is not here is shown by its code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from surelist._numerals import count, duration, moment
from surelist.service.record.access import LOCAL, policies_in
from surelist.service.record.chain import Entry
from surelist.service.record.history import History
from surelist.service.record.marks import NO, SETTLED_NO, SETTLED_YES, TAKEN_BACK, YES


class Piece(NamedTuple):
    """A part of a sentence; with an address it is a link."""

    text: str
    href: str | None = None


class Told(NamedTuple):
    """An entry and its sentence."""

    entry: Entry
    who: str
    pieces: list[Piece]

    @property
    def text(self) -> str:
        return f"{self.who} {''.join(piece.text for piece in self.pieces)}"


class Names:
    """What things are called now, each asked of the record once."""

    def __init__(self, history: History) -> None:
        self._facts = cache(history.facts)

    def policy(self, digest: str) -> Piece:
        later, first = self._facts("policy.described", digest), self._facts("policy.saved", digest)
        name = later.get("name") or first.get("name")
        return Piece(str(name or digest[:12]), f"/policies/{digest}" if first else None)

    def reviewed(self, ident: str) -> Piece:
        """A shortlist, a labelling or a pool of a campaign."""
        for action in ("selection.made", "labelling.started", "campaign.screened"):
            if facts := self._facts(action, ident):
                name = self._facts("selection.described", ident).get("name") or facts.get("name")
                page = {"labelling.started": f"/labellings/{ident}", "selection.made": f"/selections/{ident}"}
                where = page.get(action) or f"/campaigns/{facts['campaign']}"
                return Piece(str(name or "a shortlist"), where)
        return Piece(ident[:12])

    def campaign(self, ident: str) -> Piece:
        facts = self._facts("campaign.started", ident)
        return Piece(str(facts.get("name") or ident[:12]), f"/campaigns/{ident}" if facts else None)

    def token(self, ident: str) -> str:
        return str(self._facts("token.created", ident).get("name") or f"token {ident}")


Words = list["str | Piece"]
Teller = Callable[[Entry, Mapping[str, Any], Names, Mapping[int, int]], Words]


def lines(history: History, entries: list[Entry], hidden: Collection[int] = ()) -> list[Told]:
    """The sentences of these entries; how candidates were marked is not told of those ``hidden``."""
    names, marks = Names(history), history.marks(entries)
    for seq in marks.keys() & set(hidden):
        marks[seq] = {code: many for code, many in marks[seq].items() if code not in (YES, NO)}
    return [line(entry, names, marks.get(entry.seq, {})) for entry in entries]


def line(entry: Entry, names: Names, marks: Mapping[int, int]) -> Told:
    told = TELLERS.get(entry.action)
    pieces: Words = [f"entered {entry.action!r}."]
    if told is not None:
        try:
            pieces = told(entry, entry.facts, names, marks)
        except (KeyError, TypeError, ValueError, AttributeError):
            pieces = [f"entered {entry.action!r}, which cannot be read."]
    return Told(entry, person(entry.actor), [p if isinstance(p, Piece) else Piece(p) for p in pieces])


def person(actor: str) -> str:
    """Who it was, without the number of their token."""
    if actor == LOCAL:
        return "Somebody at this machine"
    name, _, rest = actor.rpartition(" (")
    if name == "command line":
        return f"{rest.removesuffix(')')}, at the command line,"
    return name or actor


def _counted(number: int, what: str, many: str | None = None) -> str:
    return f"1 {what}" if number == 1 else f"{count(number)} {many or what + 's'}"


def _policy_saved(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    origin = f", from {facts['file']}" if facts.get("file") else ""
    return ["saved the policy ", names.policy(entry.subject), f"{origin}."]


def _described(what: str) -> Teller:
    def told(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
        thing = names.policy(entry.subject) if what == "policy" else names.reviewed(entry.subject)
        note = f" and noted: {facts['note']}" if facts.get("note") else ""
        return [f"named the {what} ", thing, f" “{facts['name']}”{note}."]

    return told


def _policy_retired(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return ["retired the policy ", names.policy(entry.subject), f": {facts['reason']}"]


def _policy_withdrawn(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return [
        "finished reviews that raise the alarm: the promise of ",
        names.policy(entry.subject),
        " is withdrawn.",
    ]


def _selection_made(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    listed, pool = facts["shortlisted"], _counted(facts["candidates"], "candidate")
    by = names.policy(facts["policy"])
    return [
        f"shortlisted {count(listed)} of {pool} of ",
        names.reviewed(entry.subject),
        ", by the policy ",
        by,
        ".",
    ]


def _reviews_received(
    entry: Entry, facts: Mapping[str, Any], names: Names, marks: Mapping[int, int]
) -> Words:
    said: list[str] = []
    for code, words in ((YES, "as qualified"), (NO, "as not qualified")):
        if marks.get(code):
            said.append(f"{_counted(marks[code], 'candidate') if not said else count(marks[code])} {words}")
    marked = [f"marked {' and '.join(said)}"] if said else []
    settled = marks.get(SETTLED_YES, 0) + marks.get(SETTLED_NO, 0)
    if settled:
        marked.append(
            f"settled {_counted(settled, 'disagreement')} ({count(marks.get(SETTLED_YES, 0))} as qualified)"
        )
    if marks.get(TAKEN_BACK):
        marked.append(f"took back {_counted(marks[TAKEN_BACK], 'mark')}")
    done = ", ".join(marked) or f"sent {_counted(facts['reviews'], 'mark')}"
    return [f"{done}, in ", names.reviewed(entry.subject), "."]


def _reviews_closed(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    counts = facts.get("counts") or {}
    numbers = {name: _total(counts[name]) for name in ("qualified", "unreviewed") if name in counts}
    if "labels" in facts:
        numbers = {"qualified": facts["labels"].count("1"), "unreviewed": facts["labels"].count("?")}
    shown = [f"{count(numbers['qualified'])} qualified"] if "qualified" in numbers else []
    shown += [f"{count(numbers['unreviewed'])} without a review"] if numbers.get("unreviewed") else []
    end = f": {', '.join(shown)}." if shown else "."
    return ["finished the reviews of ", names.reviewed(entry.subject), end]


def _total(number: Any) -> int:
    return int(sum(number.values()) if isinstance(number, Mapping) else number)


def _note_written(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return ["wrote a note about a candidate of ", names.reviewed(entry.subject), "."]


def _list_removed(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return ["deleted the candidates of ", names.reviewed(entry.subject), f": {facts['reason']}."]


def _labelling_started(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    labels = _counted(facts["labels"], "label")
    return [
        "began the labelling ",
        names.reviewed(entry.subject),
        f", with at most {labels}: {facts['target']}.",
    ]


def _labelling_told(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    yes = sum(label == 1 for label in facts["labels"])
    asked = _counted(len(facts["labels"]), "candidate")
    return [f"answered for {asked} of ", names.reviewed(entry.subject), f": {count(yes)} qualified."]


def _labelling_listed(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    listed = _counted(facts["shortlisted"], "candidate")
    return ["made the certified list of ", names.reviewed(entry.subject), f": {listed}."]


def _rows_looked(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    asked = "; ".join(str(each) for each in (facts.get("targets") or {}).values()) or "how much they carry"
    return [f"looked at past rows and asked: {asked}."]


def _token_created(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    only: Words = [", for ", *_scope(facts, names)] if facts.get("policy") else []
    end = f", until {moment(facts['expires'])}" if facts.get("expires") else ""
    return [f"let {facts['name']} in as {facts['role']}", *only, f"{end}."]


def _token_changed(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return [f"made {names.token(entry.subject)} {facts['role']}, for ", *_scope(facts, names), "."]


def _scope(facts: Mapping[str, Any], names: Names) -> Words:
    """The policies that a token is for."""
    policies = policies_in(facts.get("policy"))
    if policies is None:
        return ["all policies"]
    listed: Words = [part for each in policies for part in (", ", names.policy(each))][1:]
    return ["the policy " if len(policies) == 1 else "the policies ", *listed, " only"]


def _token_revoked(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return [f"revoked the token of {names.token(entry.subject)}."]


def _session_begun(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return ["logged in."]


def _campaign_started(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return ["began the campaign ", names.campaign(entry.subject), f": {facts['target']}."]


def _campaign_screened(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    listed, pool = count(facts["shortlisted"]), _counted(facts["candidates"], "candidate")
    campaign = names.campaign(facts["campaign"])
    drawn = f", and drew {count(len(facts['audit']))} of the others for an audit" if "audit" in facts else ""
    return [
        f"shortlisted {listed} of {pool} of {facts.get('name') or 'a pool'}{drawn}, in the campaign ",
        campaign,
        ".",
    ]


def _campaign_updated(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return [
        "updated the threshold of the campaign ",
        names.campaign(facts.get("campaign", entry.subject)),
        ".",
    ]


def _campaign_withdrawn(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    return [
        "finished reviews that raise the alarm: the campaign ",
        names.campaign(entry.subject),
        " is withdrawn.",
    ]


def _settings_changed(entry: Entry, facts: Mapping[str, Any], names: Names, _: Any) -> Words:
    now, before = facts["settings"], facts["before"]
    said = [words(now[name]) for name, words in SETTINGS.items() if now.get(name) != before.get(name)]
    return [f"changed the settings: {'; '.join(said)}."]


SETTINGS: dict[str, Callable[[Any], str]] = {
    "title": lambda value: (
        f"the installation is called “{value}”" if value else "the installation has no name"
    ),
    "usual_keep": lambda value: f"new lists are usually kept for {duration(value)}",
    "longest_keep": lambda value: f"candidates are kept for {duration(value)} at most",
    "keep_results": lambda value: f"shortlists can be downloaded for {duration(value)}",
    "keep_uploads": lambda value: f"uploads are kept for {duration(value)} after their result",
    "notes": lambda value: f"notes about candidates are {'allowed' if value else 'not allowed'}",
}

TELLERS: dict[str, Teller] = {
    "policy.saved": _policy_saved, "policy.described": _described("policy"),
    "policy.retired": _policy_retired, "policy.withdrawn": _policy_withdrawn,
    "selection.made": _selection_made,
    "selection.described": _described("shortlist"), "reviews.received": _reviews_received,
    "reviews.closed": _reviews_closed, "note.written": _note_written, "list.removed": _list_removed,
    "labelling.started": _labelling_started, "labelling.told": _labelling_told,
    "labelling.listed": _labelling_listed, "rows.looked": _rows_looked, "token.created": _token_created,
    "token.changed": _token_changed, "token.revoked": _token_revoked, "session.begun": _session_begun,
    "campaign.started": _campaign_started, "campaign.screened": _campaign_screened,
    "campaign.updated": _campaign_updated, "campaign.withdrawn": _campaign_withdrawn,
    "settings.changed": _settings_changed,
}  # fmt: skip
