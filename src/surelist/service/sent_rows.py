"""Rows in a JSON body. A selection reads the columns it needs; the rows stay as they were sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from surelist.errors import InvalidInput
from surelist.workflows import tables as workflows

EXACT = 2.0**53  # among whole numbers beyond, the reader of arrays has a look at what was sent


class _AsSent(msgspec.Struct):
    rows: list[msgspec.Raw]


_as_sent = msgspec.json.Decoder(_AsSent)


class SentRows:
    """The rows of a body ``{"rows": [{column: value, ...}, ...]}``."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        refuse_twice(body)
        if not body.isascii():
            with _expecting_json():
                body.decode()  # what is skipped is not looked at as text

    @cached_property
    def rows(self) -> list[msgspec.Raw]:
        """Each as it was sent."""
        with _expecting_json():
            try:
                return _as_sent.decode(self.body).rows
            except msgspec.ValidationError:
                rows_in(parse(self.body), "rows")
                raise

    def has(self, column: str) -> bool:
        """Whether the first row has this column."""
        with _expecting_json():
            row = msgspec.json.decode(self.rows[0]) if self.rows else None
        return isinstance(row, dict) and column in row

    def columns(self, names: Mapping[str, str]) -> dict[str, Any]:
        """The values of these columns, by role."""
        reader = _reader(tuple(names.items()))
        if reader is not None:
            with _expecting_json():
                try:
                    rows = reader.decode(self.body).rows
                except msgspec.ValidationError:  # not what was expected: the long way says in which row
                    rows = []
            columns: dict[str, Any] = {role: list(map(attrgetter(role), rows)) for role in names}
            columns["score"] = np.array(columns["score"], np.float64)
            if len(rows) and np.abs(columns["score"]).max() < EXACT:
                return columns
        return dict(workflows.columns_in_rows(rows_in(parse(self.body), "rows"), names))


@lru_cache(maxsize=64)
def _reader(names: tuple[tuple[str, str], ...]) -> msgspec.json.Decoder[Any] | None:
    """Reads these columns of a body's rows, (role, name) each, and skips the others.

    None where a column has two roles, or a name with quotes, backslashes or control characters.
    """
    fields = [(role, float if role == "score" else Any) for role, _ in names]
    try:
        row = msgspec.defstruct("Row", fields, rename=dict(names), gc=False)
    except ValueError:
        return None
    return msgspec.json.Decoder(msgspec.defstruct("Body", [("rows", list[row])]))  # type: ignore[valid-type]


def parse(body: bytes) -> Any:
    """A JSON body, each number as it was sent."""
    refuse_twice(body)
    with _expecting_json():
        return msgspec.json.decode(body)


def refuse_twice(body: bytes) -> None:
    """Raise where an object says a key twice: readers would take one of the two without a word."""
    try:
        _once_only.decode(body.decode())
    except _SaidTwice as error:
        raise InvalidInput(f"body: an object says {error.args[0][:80]!r} twice. Say each key once.") from None
    except (ValueError, RecursionError):  # no JSON: whoever reads it says so
        return


class _SaidTwice(Exception):
    """A key of an object, again."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        given = [name for name, _ in pairs]
        raise _SaidTwice(next(name for name in given if given.count(name) > 1))


_once_only = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=len, parse_float=len, parse_constant=len
)  # what numbers are is not looked at


def rows_in(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a body, which are objects all of them."""
    rows = value.get(name) if isinstance(value, dict) else None
    if not isinstance(rows, list) or not set(map(type, rows)) <= {dict}:
        raise InvalidInput(f'body: expected {{"{name}": [{{column: value, ...}}, ...]}}.')
    return rows


@contextmanager
def _expecting_json() -> Iterator[None]:
    try:
        yield
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(
            f"body: expected JSON with numbers and depth that can be read, got something else ({error})."
        ) from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidInput(f"body: expected JSON, got something else ({error}).") from error
