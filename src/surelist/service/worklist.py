"""A shortlist laid out for reviewing: best score first, paged, searched and sorted without reading it whole.

One SQLite file per list, made once beside the shortlist and removed with it; it is never changed. Who marked
whom is not here but on record.
"""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from itertools import count
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import quote

from msgspec import Struct

from surelist._check import DecimalMark
from surelist.errors import InvalidInput
from surelist.service.choices import ChosenColumns
from surelist.service.errors import NotFound
from surelist.workflows import tables as workflows
from surelist.workflows.labelling import ROW
from surelist.workflows.watching import LIST

PAGE = 50
HIDDEN = {ROW, LIST}  # columns of ours: whoever reviews does not know on which list of a triage somebody is
LISTS = 16  # whose ids and orders are remembered
FILTERS = {
    "open": "Not reviewed",
    "todo": "Not by me",
    "mine": "Mine",
    "split": "Disagreements",
    "yes": "Yes",
    "no": "No",
    "all": "All",
}
_TABLES = """
CREATE TABLE meta (names TEXT, numbers TEXT, id INTEGER, score INTEGER, who INTEGER, listed INTEGER);
CREATE TABLE list (
    rank INTEGER PRIMARY KEY, candidate TEXT UNIQUE NOT NULL, cells TEXT NOT NULL, words TEXT NOT NULL
);
"""


T = TypeVar("T")
_read: dict[Path, dict[str, Sequence[object]]] = {}  # by file: what was read of it


class Asked(Struct, frozen=True):
    """What part of a list a person wants to see, and in which order."""

    show: str = "open"
    search: str = ""
    sort: str = ""
    down: bool = False


class Candidate(Struct, frozen=True):
    """One line of the list: its rank by score, its id, and its cells."""

    rank: int
    id: str
    cells: list[str]


def build(
    shortlist: Path, output: Path, columns: ChosenColumns, decimal: DecimalMark = "auto",
    audit: Path | None = None, *, as_it_is: bool = False,
) -> int:  # fmt: skip
    """Lay out a shortlist, and after it those drawn for an audit; returns how many are listed.

    The best score is first, or with ``as_it_is`` whoever is first in the file.

    Ids have to tell candidates apart.
    """
    rank, listed, score = 0, 0, None if as_it_is else str(columns.score)
    names, numbers = list[str](), list[bool]()
    try:
        with closing(sqlite3.connect(output)) as file, file:
            file.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
            for path in (shortlist,) if audit is None else (shortlist, audit):
                for names, rows in workflows.ranked_rows(path, score, decimal):
                    ident, cells = names.index(str(columns.id)), list(zip(*rows, strict=True))
                    before = numbers or [True] * len(cells)
                    numbers = [_all_numbers(each) and so for each, so in zip(cells, before, strict=True)]
                    _require_ids(rows, ident, rank)
                    said = [at for at, name in enumerate(names) if name not in HIDDEN]
                    words = (" ".join(row[cell] for cell in said).casefold() for row in rows)
                    told = (json.dumps(row, ensure_ascii=False) for row in rows)
                    laid_out = zip(count(rank + 1), (row[ident] for row in rows), told, words, strict=False)
                    file.executemany("INSERT INTO list VALUES (?, ?, ?, ?)", laid_out)
                    rank += len(rows)
                listed = rank if path == shortlist else listed
            roles = [
                names.index(name) if name in names else None
                for name in (columns.id, columns.score, columns.group)
            ]
            file.execute(
                "INSERT INTO meta VALUES (?, ?, ?, ?, ?, ?)",
                [json.dumps(names), json.dumps(numbers), *roles, listed],
            )
    except sqlite3.IntegrityError:
        output.unlink(missing_ok=True)
        raise InvalidInput(
            "id",
            f"the column {columns.id!r} names two candidates on the shortlist alike, so reviews could "
            "not tell them apart. Choose another id column, or none; the list can then be downloaded only.",
        ) from None
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return listed


def _all_numbers(cells: Sequence[str]) -> bool:
    try:
        return all(math.isfinite(float(cell)) for cell in cells if cell)
    except ValueError:
        return False


def _require_ids(rows: list[list[str]], ident: int, before: int) -> None:
    for number, row in enumerate(rows, before + 1):
        if not row[ident].strip() or "\0" in row[ident]:
            raise InvalidInput(
                "id",
                f"the candidate of rank {number:,} has none, so it could not be reviewed. Give every "
                "candidate an id, or choose no id column; the list can then be downloaded only.",
            )


def _opened(path: Path) -> sqlite3.Connection:
    """A list, unless somebody has just removed it."""
    address = f"file:{quote(str(path))}?mode=ro&immutable=1"
    try:
        return sqlite3.connect(address, uri=True, check_same_thread=False)
    except sqlite3.OperationalError:
        if path.exists():
            raise
        raise NotFound("candidates: they are no longer kept here.") from None


class Worklist(AbstractContextManager["Worklist"]):
    """A list that was laid out. ``status`` and ``mine`` say of a candidate what the record says."""

    def __init__(
        self, path: Path, status: Callable[[str], str] = lambda _: "open", mine: Callable[[str], bool] = bool
    ) -> None:
        self._path, self._status, self._mine = path, status, mine
        self._file = _opened(path)
        for gone in [each for each in list(_read) if not each.exists()]:
            _read.pop(gone, None)
        meta = self._file.execute("SELECT * FROM meta").fetchone()
        names, numbers, self.id, self.score, self.group, self.listed = meta  # the others are of an audit
        self.names: list[str] = json.loads(names)
        self.shown = [name for name in self.names if name not in HIDDEN]
        self._numbers: list[bool] = json.loads(numbers)
        self.length: int = self._file.execute("SELECT max(rank) FROM list").fetchone()[0] or 0

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def ranks(self, asked: Asked) -> Sequence[int]:
        """The ranks of all candidates asked for, in order."""
        order = self._order(asked)
        words = asked.search.strip().casefold()
        if words:
            rows = self._file.execute("SELECT rank FROM list WHERE instr(words, ?) > 0", [words])
            matching = {rank for (rank,) in rows}
            order = [rank for rank in order if rank in matching]
        if asked.show == "all":
            return order
        fits, ids = self._test(asked.show), self._ids
        return [rank for rank in order if fits(ids[rank - 1])]

    def _test(self, show: str) -> Callable[[str], bool]:
        if show == "mine":
            return self._mine
        if show == "todo":
            return lambda candidate: not self._mine(candidate)
        return lambda candidate: self._status(candidate) == show

    @property
    def _ids(self) -> Sequence[str]:
        """The candidates by rank."""
        sql = "SELECT candidate FROM list ORDER BY rank"
        return self._known("ids", lambda: [name for (name,) in self._file.execute(sql)])

    def _order(self, asked: Asked) -> Sequence[int]:
        """All ranks as they are sorted."""
        if not asked.sort:
            return range(self.length, 0, -1) if asked.down else range(1, self.length + 1)
        cell, direction = self._cell(asked.sort), " DESC" if asked.down else ""
        sql = f"SELECT rank FROM list ORDER BY {cell}{direction}, rank"
        return self._known(sql, lambda: array("q", [rank for (rank,) in self._file.execute(sql)]))

    def _known(self, name: str, read: Callable[[], Sequence[T]]) -> Sequence[T]:
        """What the file says, read once: it never changes. The lists used last are remembered."""
        kept = _read.pop(self._path, None) or {}
        while len(_read) >= LISTS:
            _read.pop(next(iter(_read)), None)
        _read[self._path] = kept
        if name not in kept:
            kept[name] = read()
        return cast(Sequence[T], kept[name])

    def _cell(self, name: str) -> str:
        """A column as SQL, numbers as numbers."""
        if name not in self.shown:
            raise InvalidInput("sort", f"there is no column {name[:80]!r} on this list.")
        column = self.names.index(name)
        cell = f"json_extract(cells, '$[{column}]')"
        return f"CAST({cell} AS REAL)" if self._numbers[column] else f"{cell} COLLATE NOCASE"

    def candidates(self, ranks: Sequence[int]) -> list[Candidate]:
        """These candidates, in this order."""
        marks = ", ".join("?" * len(ranks))
        rows = self._file.execute(
            f"SELECT rank, candidate, cells FROM list WHERE rank IN ({marks})", list(ranks)
        ).fetchall()
        by_rank = {rank: Candidate(rank, ident, json.loads(cells)) for rank, ident, cells in rows}
        return [by_rank[rank] for rank in ranks if rank in by_rank]

    def candidate(self, rank: int) -> Candidate:
        known = self.candidates([rank])
        if not known:
            raise InvalidInput("candidate", f"the list has {self.length:,}, and none of rank {rank:,}.")
        return known[0]

    def strangers(self, candidates: Iterable[str], limit: int = 5) -> list[str]:
        """Those who are not on the list, some of them."""
        known = self._file.execute
        sql = "SELECT 1 FROM list WHERE candidate = ?"
        return [each for each in candidates if not known(sql, [each]).fetchone()][:limit]

    def audited(self) -> frozenset[str]:
        """Those who are not listed, and were drawn for an audit."""
        rows = self._file.execute("SELECT candidate FROM list WHERE rank > ?", [self.listed])
        return frozenset(name for (name,) in rows)

    def ranked(self) -> dict[str, int]:
        """The rank of each candidate, the best first."""
        return dict(self._file.execute("SELECT candidate, rank FROM list ORDER BY rank"))

    def groups(self) -> dict[str, str]:
        """The group of each candidate, where there are groups."""
        if self.group is None:
            return {}
        cell = f"json_extract(cells, '$[{self.group}]')"
        return dict(self._file.execute(f"SELECT candidate, {cell} FROM list"))
