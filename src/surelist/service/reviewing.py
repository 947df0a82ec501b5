"""What the pages of a review show, as plain values: the list, a candidate, progress, how long it is kept."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct, field

from surelist._numerals import duration
from surelist.errors import InvalidInput
from surelist.service.choices import AboutList, until
from surelist.service.errors import NotFound
from surelist.service.record import marks as codes
from surelist.service.record.marks import Marks
from surelist.service.settings import Settings
from surelist.service.uploads import Draft, KeptList, Spool, list_of
from surelist.service.worklist import FILTERS, PAGE, Asked, Candidate, Worklist
from surelist.workflows.files import escape_cell, meant_by
from surelist.workflows.lifecycle import LABELS

DAY = 86_400
KEEP = (DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY)
MARKS = {
    "yes": codes.YES,
    "no": codes.NO,
    "back": codes.TAKEN_BACK,
    "settle-yes": codes.SETTLED_YES,
    "settle-no": codes.SETTLED_NO,
}
SAID = {"yes": "yes", "no": "no", "split": "disagreement", "open": "", "seen": "marked by someone else"}


# -- how long candidates are kept


def keep_choices(settings: Settings) -> list[tuple[int, str]]:
    """Seconds and words, the shortest first."""
    seconds = {settings.keep_results, *(each for each in KEEP if each <= settings.longest_keep)}
    return [(each, duration(each)) for each in sorted(seconds)]


def usual_keep(settings: Settings) -> int:
    """What is chosen on the form: a week, or the longest time below it that is allowed."""
    allowed = [each for each, _ in keep_choices(settings) if each <= 7 * DAY]
    return max(allowed, default=settings.keep_results)


def keep_of(asked: object, settings: Settings) -> int:
    """How long a person wants the candidates kept, in seconds; the usual time where nothing is said."""
    chosen = str(usual_keep(settings) if asked in (None, "") else asked)
    if chosen not in {str(seconds) for seconds, _ in keep_choices(settings)}:
        raise InvalidInput("keep", "choose for how long the candidates are kept.")
    return int(chosen)


def about_pool(form: Mapping[str, object], draft: Draft, seconds: int, longest: int) -> AboutList:
    """What a person calls a pool, for the record."""
    name = (str(form.get("name") or "").strip() or draft.filename.rsplit(".", 1)[0])[:longest]
    note = str(form.get("note") or "").strip()[:2000]
    return AboutList(name, note, draft.filename, until(time.time() + seconds))


# -- the list


class Spot(Asked, frozen=True):
    """Where in a list a person is: what is shown, which page, which candidate."""

    page: int | None = None
    at: int | None = None

    @staticmethod
    def of(query: Mapping[str, str], first: str = "open") -> Spot:
        """From an address or a form; what does not fit is left out. ``first``: what is shown unasked."""
        show = query.get("show", first)
        return Spot(
            show if show in FILTERS else "open", query.get("q", "")[:200], query.get("sort", "")[:500],
            query.get("down") == "1", _whole(query.get("page")), _whole(query.get("at")),
        )  # fmt: skip

    def query(self, **changes: object) -> str:
        """As an address; None leaves a part out."""
        parts = {"show": self.show, "q": self.search, "sort": self.sort, "down": "1" if self.down else ""}
        parts |= {name: "" if value is None else str(value) for name, value in changes.items()}
        return "?" + urlencode({name: value for name, value in parts.items() if value})


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


def opened(
    spool: Spool, ident: str, marks: Marks, me: str, reviewer: str | None
) -> tuple[KeptList, Worklist]:  # fmt: skip
    """The kept list of a selection, laid out for reviewing by ``me``; ``reviewer`` where I am still blind."""
    kept = spool.result(ident)
    if kept is None or not list_of(kept.upload).exists():
        raise NotFound(
            "candidates: they are not kept here for reviewing. Select again with a column of candidate ids, "
            "and choose how long to keep them; or send a reviewed file to the API."
        )
    mine = lambda candidate: marks.by(candidate, me) is not None  # noqa: E731
    return kept, Worklist(list_of(kept.upload), lambda each: marks.seen_by(each, reviewer), mine)


class KnownList(Struct, frozen=True):
    """What is known of those to be reviewed, as long as their list is kept: ranks, groups, and the audit."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    audited: frozenset[str] = frozenset()
    kept: bool = False


def known_list(spool: Spool, ident: str) -> KnownList:
    """The same of one selection."""
    kept = spool.result(ident)
    if kept is None or not list_of(kept.upload).exists():
        return KnownList()
    with Worklist(list_of(kept.upload)) as work:
        return KnownList(work.ranked(), work.groups(), work.audited(), kept=True)


def screen(
    work: Worklist, marks: Marks, spot: Spot, reviewer: str | None
) -> tuple[dict[str, object], Candidate | None]:  # fmt: skip
    """One page of the list, and the candidate whose turn it is."""
    ranks = work.ranks(spot)
    place = _place(ranks, spot.at)
    page = spot.page or (place // PAGE + 1 if place is not None else 1)
    pages = max(1, -(-len(ranks) // PAGE))
    page = min(page, pages)
    shown = ranks[(page - 1) * PAGE : page * PAGE]
    at = spot.at if spot.at is not None and 1 <= spot.at <= work.length else (shown[0] if shown else None)
    place = _place(ranks, at)
    return {
        "lines": [_line(each, work, marks, reviewer) for each in work.candidates(shown)],
        "total": len(ranks), "page": page, "pages": pages, "at": at,
        "before": ranks[place - 1] if place else None,
        "after": ranks[place + 1] if place is not None and place + 1 < len(ranks) else None,
    }, work.candidate(at) if at is not None else None  # fmt: skip


def _place(ranks: Sequence[int], rank: int | None) -> int | None:
    try:
        return ranks.index(rank) if rank is not None else None
    except ValueError:
        return None


def next_after(work: Worklist, spot: Spot, rank: int) -> int | None:
    """Whose turn it is after this candidate, in the list as it is now."""
    ranks = work.ranks(spot)
    place = _place(ranks, rank)
    return ranks[place + 1] if place is not None and place + 1 < len(ranks) else None


def _line(each: Candidate, work: Worklist, marks: Marks, reviewer: str | None) -> dict[str, object]:
    status = marks.seen_by(each.id, reviewer)
    return {
        "rank": each.rank, "id": each.id, "score": each.cells[work.score] if work.score is not None else "",
        "status": status, "said": SAID[status],
    }  # fmt: skip


def detail(
    work: Worklist, marks: Marks, current: Candidate | None, me: str, reviewer: str | None
) -> dict[str, object] | None:
    """The candidate whose turn it is: all columns, and marks. Those of others once one has marked oneself."""
    if current is None:
        return None
    mine, status = marks.by(current.id, me), marks.seen_by(current.id, reviewer)
    given, shown = marks.of(current.id), status != "seen"
    return {
        "rank": current.rank, "id": current.id, "mine": mine, "status": status,
        "audit": current.rank > work.listed,
        "marks": given if shown else [], "others": len(given) if not shown else 0,
        "cells": [
            (name, cell) for name, cell in zip(work.names, current.cells, strict=True) if name in work.shown
        ],
        "settled": any(mark.settles for mark in given),
    }  # fmt: skip


def progress(marks: Marks, total: int, reviewer: str | None) -> dict[str, int]:
    """How far the review is, as far as a reviewer may know it."""
    counts = marks.counts(reviewer)
    reviewed = sum(counts.values())
    return {**counts, "reviewed": reviewed, "total": total, "left": max(0, total - reviewed)}


def counted(work: Worklist) -> dict[str, int]:
    """The same of the candidates on this list alone."""
    counts = {status: len(work.ranks(Asked(status))) for status in ("yes", "no", "split", "seen")}
    reviewed = sum(counts.values())
    return {**counts, "reviewed": reviewed, "total": work.length, "left": work.length - reviewed}


# -- files of reviews


def reviews_in(rows: Mapping[str, Sequence[str | None]]) -> dict[str, bool]:
    """Yes and no from a file that came back; blank cells are reviews that have not come."""
    found: dict[str, bool] = {}
    for number, (candidate, text) in enumerate(zip(rows["id"], rows["label"], strict=True), 2):
        word = (text or "").strip().casefold()
        if not word:
            continue
        if not candidate:
            raise InvalidInput("reviews", f"row {number} says {text!r}, but of no candidate.")
        if word not in LABELS:
            raise InvalidInput("reviews", expected="yes or no", got=f"{text!r} in row {number} ({candidate})")
        if found.setdefault(candidate, yes := bool(LABELS[word])) != yes:
            raise InvalidInput("reviews", f"{candidate!r} is both yes and no; the second is in row {number}.")
    if not found:
        raise InvalidInput(
            "reviews", "the column holds no yes and no no. Choose the column with the reviews."
        )
    return found


def as_named(work: Worklist, reviews: Mapping[str, bool]) -> dict[str, bool]:
    """Reviews by the candidates' own names, however a spreadsheet has written them."""
    if not work.strangers(reviews):
        return dict(reviews)
    meant, found = meant_by(work.ranked()), dict[str, bool]()
    for text, yes in reviews.items():
        if found.setdefault(meant(text) or text, yes) != yes:
            raise InvalidInput("reviews", f"{text!r} is both yes and no.")
    if strangers := work.strangers(found):
        raise InvalidInput(
            "reviews",
            f"{', '.join(map(repr, strangers))}{' …' * (len(strangers) > 4)} are not on this list. "
            "Nothing was saved. Send the reviews of this list, with its ids.",
        )
    return found


def as_csv(marks: Marks, notes: Mapping[str, str], work: Worklist, reviewer: str | None) -> str:
    """Everyone on the list with all columns and what a reviewer may know was said of them, safe for
    spreadsheets."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    header = ["rank", work.names[work.id], "review", "reviewers", "last", "notes"]
    taken = {name.casefold() for name in header}
    more = [work.names.index(name) for name in work.shown if name.casefold() not in taken]
    writer.writerow(map(escape_cell, [*header, *(work.names[at] for at in more)]))
    for start in range(1, work.length + 1, 500):
        for each in work.candidates(range(start, min(start + 500, work.length + 1))):
            status = marks.seen_by(each.id, reviewer)
            given = marks.of(each.id) if status != "seen" else []
            said = "; ".join(f"{m.reviewer}: {'yes' if m.qualified else 'no'}" for m in given)
            last = max((m.at for m in given), default="")
            review, said = (SAID[status], said) if status != "seen" else ("", SAID["seen"])
            row = [each.id, review, said, last, notes.get(each.id, ""), *(each.cells[at] for at in more)]
            writer.writerow([each.rank, *map(escape_cell, row)])
    return out.getvalue()
