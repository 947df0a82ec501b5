"""Errors as HTTP: one JSON shape for programs, one page for people, the status on the class.

And what the page and the API call the options that sentences name.

SurelistError                 400   surelist.errors
├── InvalidInput              400
│   └── WrongType             415
├── NotCertifiable            422   carries the numbers of its shortfall
├── MissingDependency         501
├── NotAuthenticated          401
├── Forbidden                 403
├── NotFound                  404
├── TooSlow                   408
├── Conflict                  409
├── TooLarge                  413
├── TooMuchWork               413   stopped: it took too long or too much memory
├── TooManyAttempts           429   says when to try again
├── InternalError             500   what was not foreseen; says nothing to the outside
├── Busy                      503   more requests at once than the service takes
└── StorageError              503   the record cannot be used now
    └── DiskFull              507
"""

from __future__ import annotations

import errno
import logging
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surelist._names import TABLES, OptionNames
from surelist.errors import InvalidInput, NotCertifiable, SurelistError

logger = logging.getLogger("surelist.service")


class WrongType(InvalidInput):
    """The body is neither JSON, CSV nor Parquet."""

    status = 415


class NotAuthenticated(SurelistError):
    """No valid token or session came with the request."""

    status = 401


class Forbidden(SurelistError):
    """The token is not for this, or the request came from another site."""

    status = 403


class NotFound(SurelistError):
    """There is nothing on record under this name."""

    status = 404


class TooSlow(SurelistError):
    """The request arrived too slowly, or not whole."""

    status = 408


class Conflict(SurelistError):
    """It contradicts the record: a retired policy, a key used for something else."""

    status = 409


class TooLarge(SurelistError):
    """The upload is larger than the service accepts, in bytes or unfolded."""

    status = 413

    def __init__(self, limit: int, message: str | None = None) -> None:
        unit, name = (1 << 20, "MiB") if limit >= 1 << 20 else (1 << 10, "KiB")
        way_out = " Use Parquet, leave out columns that are not needed, or raise --max-upload."
        super().__init__(
            message
            or f"The upload is larger than the {limit // unit:,} {name} that are accepted at this address."
            + way_out * (name == "MiB")
        )


class TooMuchWork(SurelistError):
    """The work was stopped before it was done: it took too long or too much memory."""

    status = 413

    def __init__(
        self, what: str, way_out: str = "Send less at once, or use the command line, which has no such limit."
    ) -> None:
        self.what = what
        super().__init__(f"The work on this request was stopped: {what}. Nothing was recorded. {way_out}")


class TooManyAttempts(SurelistError):
    """Too many failed attempts; ``seconds`` says when to try again."""

    status = 429

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many failed logins from here. Try again in {seconds} seconds.")
        self.seconds = seconds


class InternalError(SurelistError):
    """Something went wrong that nobody foresaw."""

    status = 500


class Busy(SurelistError):
    """The service is at its limit, or the record cannot be used now; nothing was half-written."""

    status = 503


class StorageError(SurelistError):
    """The record cannot be read or written now; nothing was half-written.

    ``detail`` is what the database said, for the log and the command line: it tells where the
    record is, which is nobody else's business.
    """

    status = 503

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class DiskFull(StorageError):
    """There is no room left on the disk."""

    status = 507


_ANNOUNCED = (
    InvalidInput, WrongType, NotCertifiable, NotAuthenticated, Forbidden, NotFound, Conflict, TooSlow,
    TooLarge, TooManyAttempts, Busy, DiskFull,
)  # fmt: skip
MEANING = {kind.status: (kind.__doc__ or "").partition("\n")[0] for kind in _ANNOUNCED}


def as_answer(error: Exception) -> SurelistError:
    """What the outside is told; anything not foreseen goes to the log and stays there."""
    if isinstance(error, StorageError) and error.detail:
        logger.error("%s %s", error, error.detail)
    if isinstance(error, SurelistError):
        release_frames(error)
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        release_frames(error)
        return DiskFull("The disk is full. Make room and try again; nothing was recorded.")
    _log_unforeseen(error)
    release_frames(error)
    return InternalError("Something went wrong here; nothing was recorded.")


@contextmanager
def without_places(places: Sequence[Path]) -> Iterator[None]:
    """Errors inside say nothing of where files lie on this machine: that is nobody else's business."""
    try:
        yield
    except SurelistError as error:
        known = {str(each) for place in places for each in (place, place.absolute(), place.resolve())}
        full = sorted((each for each in known if "/" in each[1:] or "\\" in each), key=len, reverse=True)
        place = re.compile(rf"(?:{'|'.join(map(re.escape, full))})[^\s'\",;:()]*")
        raise error.changed(lambda text: place.sub("the file", text)) from None


def release_frames(error: BaseException) -> None:
    """Let go of what an error's traceback holds: all that the request had in memory.

    An error that came from a thread holds itself, by way of what waited for the thread; without this it
    stays until the collector comes by, which is seldom.
    """
    chain: list[BaseException | None] = [error]
    while chain:
        each = chain.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            chain += [each.__cause__, each.__context__]


def first_of(error: Any, *place: str) -> InvalidInput:
    """The first of what pydantic refused, as an error of ours."""
    first = error.errors()[0]
    return InvalidInput(".".join([*place, *map(str, first["loc"])]), f"{first['msg']}.")


def headers_of(error: SurelistError) -> dict[str, str]:
    if isinstance(error, NotAuthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooManyAttempts):
        return {"Retry-After": str(error.seconds)}
    return {"Retry-After": "5"} if error.status == StorageError.status else {}


def _log_unforeseen(error: BaseException) -> None:
    """Where it happened, without messages or values: those could hold candidates' data."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in reversed(frames))
    logger.error("unforeseen %s at %s", type(error).__name__, where)


class PageNames(OptionNames):
    """Labels of the page; a value has a name of its own, or none."""

    def option(self, name: str, value: str) -> str | None:
        """The label of a field, quoted."""
        if (of_value := self.table.get(f"{name}={value}")) is not None:
            return of_value
        label = self.table.get(name, name.replace("_", " "))
        return None if label is None else f"“{label}”"


PAGE = PageNames({
    "alpha": "How often it may be false", "k": "How many qualified", "pool_size": "Pool size",
    "missing_labels": "Labels", "missing_labels=unqualified": "the field “Labels”", "on_bad_rows": None,
    "pos_label": "The values that mean qualified", "neg_label": "The values that mean qualified",
    "decimal=,": "the field “Decimal mark”.", "decimal": None, "labels": "Labels", "rule": None,
    "unlabelled": "Scores of other candidates", "target": "The promise", "probability": "Probability",
    "lowest_rate": "The lowest probability", "pools": "Pool", "groups": "Group", "ids": "Candidate id",
    "pool": "Pool", "group": "Group", "id": "Candidate id", "score": "Score", "share": "The share",
    "header_row": "Row with the column names", "audit_rate": "Reviewed of the others", "policy": "Policy",
    "false_positive": "Wrong labels", "longest": "The longest list",
    "scores": "Score", "start": "The list to begin with", "purpose=...": "a sentence",
})  # fmt: skip


class ParameterNames(OptionNames):
    """Parameters of the API."""

    def written(self, known: str, value: str) -> str:
        """As in a query."""
        return f"{known}={value}"


PARAMETERS = ParameterNames(
    {**TABLES.table, "ties=hash": "ties", "on_bad_rows": None, "group_cutoff": "group_cutoff"}
)


def sentence(text: str) -> str:
    """What the core says in the middle of a sentence, at the beginning of one."""
    return text[:1].upper() + text[1:]


def plainly(said: SurelistError | str) -> str:
    """An error or a sentence as the page shows it."""
    text = said.said(PAGE) if isinstance(said, SurelistError) else PAGE.said(said)
    return text.replace("e-value", "evidence")
