"""Errors as HTTP: one JSON shape for programs, one page for people, the status on the class.

SurelistError                 400   surelist.errors
├── InvalidInput              400
│   └── WrongType             415
├── NotCertifiable            422   carries the numbers of its shortfall
├── MissingDependency         501
├── NotAuthenticated          401
├── Forbidden                 403
├── NotFound                  404
├── Conflict                  409
├── TooLarge                  413
├── TooManyAttempts           429   says when to try again
├── InternalError             500   what was not foreseen; says nothing to the outside
└── StorageError              503   the record cannot be used now
    └── DiskFull              507
"""

from __future__ import annotations

import errno
import logging
import traceback

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


class Conflict(SurelistError):
    """It contradicts the record: a retired policy, a key used for something else."""

    status = 409


class TooLarge(SurelistError):
    """The upload is larger than the service accepts, in bytes or unfolded."""

    status = 413

    def __init__(self, limit: int, message: str | None = None) -> None:
        super().__init__(
            message
            or f"The upload is larger than the {limit / (1 << 20):,.0f} MiB this service accepts. "
            "Use Parquet, leave out columns that are not needed, or raise --max-upload."
        )


class TooManyAttempts(SurelistError):
    """Too many failed attempts; ``seconds`` says when to try again."""

    status = 429

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many failed logins from here. Try again in {seconds} seconds.")
        self.seconds = seconds


class InternalError(SurelistError):
    """Something went wrong that nobody foresaw."""

    status = 500


class StorageError(SurelistError):
    """The record cannot be read or written now; nothing was half-written."""

    status = 503


class DiskFull(StorageError):
    """There is no room left on the disk."""

    status = 507


_ANNOUNCED = (
    InvalidInput, WrongType, NotCertifiable, NotAuthenticated, Forbidden, NotFound, Conflict, TooLarge,
    TooManyAttempts, StorageError, DiskFull,
)  # fmt: skip
MEANING = {kind.status: (kind.__doc__ or "").partition("\n")[0] for kind in _ANNOUNCED}


def as_answer(error: Exception) -> SurelistError:
    """What the outside is told; anything not foreseen goes to the log and stays there."""
    if isinstance(error, SurelistError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull("The disk is full. Make room and try again; nothing was recorded.")
    _log_unforeseen(error)
    return InternalError("Something went wrong here; nothing was recorded.")


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
