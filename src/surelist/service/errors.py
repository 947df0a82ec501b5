"""Errors as HTTP: one JSON shape for programs, one page for people, one status per type."""

from __future__ import annotations

import errno
import logging
import traceback
from typing import Any

from surelist.cli import error_body
from surelist.errors import InvalidInput, MissingDependency, NotCertifiable, SurelistError
from surelist.service.record.access import Forbidden, NotAuthenticated, TooManyAttempts
from surelist.service.record.database import DiskFull, StorageError
from surelist.service.record.writer import Conflict, NotFound
from surelist.service.uploads import TooLarge

logger = logging.getLogger("surelist.service")

STATUS: dict[type[Exception], int] = {
    NotCertifiable: 422,
    TooLarge: 413,
    NotAuthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooManyAttempts: 429,
    DiskFull: 507,
    StorageError: 503,
    MissingDependency: 501,
    InvalidInput: 400,
}

MEANING = {
    400: "The request, the table or a value in it does not fit; the message says where.",
    401: "No valid token came with the request.",
    403: "The token is not for this, or the request came from another site.",
    404: "There is nothing on record under this name.",
    409: "It contradicts the record: a retired policy, a key used for something else.",
    413: "The upload is larger than the service accepts.",
    415: "The body is neither JSON, CSV nor Parquet.",
    422: "Not certifiable: the calibration rows cannot carry the promise.",
    429: "Too many failed attempts.",
    503: "The record cannot be reached now; try again.",
    507: "The disk is full.",
}


class WrongType(InvalidInput):
    """The body's content type is none the service reads."""


def status_of(error: Exception) -> int:
    if isinstance(error, WrongType):
        return 415
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return 507
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return status
    return 400 if isinstance(error, SurelistError) else 500


def body_of(error: Exception, status: int) -> dict[str, Any]:
    """The error as plain values. What was not foreseen is not told to the outside."""
    if status == 507 and not isinstance(error, SurelistError):
        return {
            "type": "DiskFull",
            "message": "The disk is full. Make room and try again; nothing was recorded.",
        }
    if status == 500:
        return {"type": "InternalError", "message": "Something went wrong here; nothing was recorded."}
    return error_body(error)


def headers_of(error: Exception, status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooManyAttempts):
        return {"Retry-After": str(error.seconds)}
    return {"Retry-After": "5"} if status == 503 else {}


def log_unforeseen(error: BaseException) -> None:
    """Where it happened, without messages or values: those could hold candidates' data."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in reversed(frames))
    logger.error("unforeseen %s at %s", type(error).__name__, where)
