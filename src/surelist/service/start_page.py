"""What waits for a person, and what was done before: the worklist and the history, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from surelist.service import answers, campaign_pages, policy_watch, reviewing
from surelist.service.choices import until
from surelist.service.models import PolicyView
from surelist.service.record.event import Entry
from surelist.service.record.events import SelectionMade
from surelist.service.record.record import SavedPolicy
from surelist.service.record.view import View
from surelist.service.uploads import Spool

RECENT = 8  # policies on the worklist
PAGE = 100  # policies read at once
SHOWN = 200  # of the latest selections and policies
SEARCHED = 2000  # of the latest ones
STATES = {"": "all", "use": "in use", "withdrawn": "withdrawn", "retired": "retired"}


def worklist(view: View, spool: Spool) -> dict[str, object]:
    """Alarms, reviews that are due, and the latest policies with how they stand."""
    recent = list(islice((each for each in _newest(view) if each.in_use), RECENT))
    return {
        "alarms": [answers.policy(each) for each in view.alarmed()],
        "due": _due(view, spool),
        "policies": [
            {"shown": answers.policy(each), "standing": policy_watch.standing(view, each)} for each in recent
        ],
        "labellings": view.running_labellings(),
        "campaigns": campaign_pages.running(view, RECENT + 1),
        "any": bool(recent or view.policies(1)),
        "kept_here": {each.id for each in spool.results()},
    }


def _newest(view: View) -> Iterator[SavedPolicy]:
    """All policies that may be seen, newest first, read as they are wanted."""
    before = None
    while saved := view.policies(PAGE, before):
        yield from saved
        before = saved[-1].entry.seq


def _due(view: View, spool: Spool) -> list[dict[str, object]]:
    """Lists whose reviews are not finished: those that count, and those that are kept for reviewing."""
    kept = {each.id: each for each in spool.results()}
    waiting = view.unfinished([each.id for each in kept.values() if each.columns.id])
    names = view.policy_names([entry.event.policy for entry in waiting])
    view.read_titles(waiting)
    due = []
    for entry in waiting:
        event, here = entry.event, kept.get(entry.subject)
        made = reviewing.progress(
            view.marks(entry.subject), event.to_review, view.reviewer(entry.subject)
        )  # fmt: skip
        due.append(
            {"entry": entry, "name": view.title(entry), "policy": names.get(event.policy, ""),
             "digest": event.policy, "progress": made, "kept": here is not None,
             "until": until(here.until) if here else None}
        )  # fmt: skip
    return due


def policies(view: View, search: str, state: str) -> tuple[list[PolicyView], bool]:
    """The latest policies on record that fit, newest first, and whether there are more."""
    fitting = (e for e in _newest(view) if state in ("", _state(e)) and _matches(_words_of(e), search))
    found = list(islice(fitting, SHOWN + 1))
    return [answers.policy(each) for each in found[:SHOWN]], len(found) > SHOWN


def _state(saved: SavedPolicy) -> str:
    return "withdrawn" if saved.withdrawn else "retired" if saved.retired else "use"


def _words_of(saved: SavedPolicy) -> Sequence[str]:
    file, actor = saved.saved.file or "", saved.entry.actor
    return saved.name, saved.note, saved.policy.promise, file, saved.hash, actor


class SelectionLine(NamedTuple):
    """A selection in a list of them."""

    entry: Entry[SelectionMade]
    title: str
    note: str
    file: str
    policy_name: str


def selections(view: View, search: str, policy: str | None) -> list[SelectionLine]:
    """Selections on record that fit, newest first."""
    made = view.selections(policy, SEARCHED if search else SHOWN)
    names = view.policy_names([entry.event.policy for entry in made])
    view.read_titles(made)
    rows = []
    for entry in made:
        named = (view.title(entry), view.note(entry), entry.event.file)
        policy_name = names.get(entry.event.policy, entry.event.policy[:12])
        if _matches((*named, policy_name, entry.subject, entry.actor, entry.at), search):
            rows.append(SelectionLine(entry, *named, policy_name))
    return rows


def _matches(words: Sequence[str], search: str) -> bool:
    """Every word of the search occurs somewhere."""
    text = " ".join(words).casefold()
    return all(each in text for each in search.casefold().split())
