"""Rows in a JSON body. A selection reads the columns it needs; the rows stay as they were sent."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from surelist._check import LOST, shown
from surelist.errors import InvalidInput

EXACT = 2**53  # whole numbers beyond are looked at as they were sent
NAMES = 4096  # letters in the names of columns that are remembered
SPACE = np.frombuffer(b" \n\r\t", np.uint8)


class _AsSent(msgspec.Struct):
    rows: list[msgspec.Raw]
    unlabelled: list[msgspec.Raw] | None = None


class _Cells(msgspec.Struct):
    rows: list[dict[str, msgspec.Raw]]


_as_sent, _cells = msgspec.json.Decoder(_AsSent), msgspec.json.Decoder(_Cells)


class SentRows:
    """The rows of a body ``{"rows": [{column: value, ...}, ...]}``, and ``unlabelled`` ones beside them."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._rows = _surely_once(body)
        if self._rows is None:
            refuse_twice(body)
        if not body.isascii():
            with _expecting_json():
                body.decode()  # what is skipped is not looked at as text

    @cached_property
    def _sent(self) -> _AsSent:
        with _expecting_json():
            try:
                return _as_sent.decode(self.body)
            except msgspec.ValidationError:
                rows_in(parse(self.body), "rows")
                raise InvalidInput("body", _EXPECTED.format(name="unlabelled")) from None

    def at(self, numbers: Sequence[int]) -> bytes:
        """These rows, as they were sent, as one JSON list."""
        rows = self._sent.rows
        return msgspec.json.encode([rows[number] for number in numbers])

    def objects(self, name: Literal["rows", "unlabelled"]) -> list[bytes]:
        """The rows as bytes, all of them JSON objects and at least one."""
        lines = [bytes(each) for each in getattr(self._sent, name) or ()]
        if not lines:
            raise InvalidInput(name, expected="at least one row", got="none")
        if not all(each.startswith(b"{") for each in lines):
            raise InvalidInput("body", _EXPECTED.format(name=name))
        return lines

    @property
    def has_unlabelled(self) -> bool:
        return self._sent.unlabelled is not None

    def has(self, column: str) -> bool:
        """Whether the first row has this column."""
        with _expecting_json():
            row = msgspec.json.decode(self._sent.rows[0]) if self._sent.rows else None
        return isinstance(row, dict) and column in row

    def columns(self, names: Mapping[str, str]) -> dict[str, Any]:
        """The values of these columns, by role."""
        sent = self._rows or self._reading(set(names.values()))
        columns: dict[str, Any] = {role: _column(sent, name, role) for role, name in names.items()}
        columns["score"] = _numbers(columns["score"], names["score"])
        return columns

    def _reading(self, wanted: Collection[str]) -> Sequence[Mapping[str, Any]]:
        """The rows with these columns read alone: others may hold numbers that no float holds."""
        with _expecting_json():
            try:
                cells = _cells.decode(self.body).rows
            except msgspec.ValidationError:  # not the rows of a body
                return rows_in(parse(self.body), "rows")
            return [
                {name: msgspec.json.decode(cell) if name in wanted else cell for name, cell in row.items()}
                for row in cells
            ]


def rows_as_sent(body: bytes, numbers: Sequence[int]) -> bytes:
    """Some rows of a body as JSON."""
    return SentRows(body).at(numbers)


def lines_of(body: bytes) -> tuple[bytes, bytes | None]:
    """Rows, and unlabelled ones where there are some, as JSON objects: one per line."""
    sent = SentRows(body)
    return _lines(sent.objects("rows")), _lines(sent.objects("unlabelled")) if sent.has_unlabelled else None


def _lines(objects: Iterable[bytes]) -> bytes:
    return b"".join(each.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for each in objects)


def _column(rows: Sequence[Any], name: str, role: str) -> list[Any]:
    try:
        names = _names(rows[0]) if rows else {}
        at = attrgetter(f"c{names.index(name)}") if isinstance(names, tuple) else itemgetter(name)
        return list(map(at, rows))
    except (KeyError, ValueError):
        number = next(i for i, row in enumerate(rows) if name not in _names(row))
        there = ", ".join(repr(each) for each in list(_names(rows[number]))[:20]) or "no columns"
        raise InvalidInput(role, f"row {number + 1} has no {name!r}; it has {there}.") from None


def _names(row: Any) -> tuple[str, ...] | Mapping[str, Any]:
    """The columns of a row that was read as a struct or as a mapping."""
    names: tuple[str, ...] | Mapping[str, Any] = getattr(row, "__struct_encode_fields__", row)
    return names


def _numbers(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Scores, each a number that a float holds."""
    for row, value in enumerate(values if set(map(type, values)) != {float} else (), 1):
        if type(value) not in (int, float):
            raise InvalidInput(f"column {name!r}", expected="a number", got=f"{shown(value)} in row {row}")
        if isinstance(value, int) and abs(value) > EXACT:
            raise InvalidInput(f"column {name!r}", f"{LOST}, got {value} in row {row}. Rescale them.")
    return np.array(values, np.float64)


def parse(body: bytes) -> Any:
    """A JSON body, each number as it was sent."""
    refuse_twice(body)
    with _expecting_json():
        return msgspec.json.decode(body)


def refuse_twice(body: bytes) -> None:
    """Raise where an object says a key twice: readers would take one of the two without a word."""
    if _surely_once(body) is not None:
        return
    try:
        _once_only.decode(body.decode())
    except _SaidTwice as error:
        raise InvalidInput(
            "body", f"an object says {error.args[0][:80]!r} twice. Say each key once."
        ) from None
    except (ValueError, RecursionError):  # no JSON: whoever reads it says so
        return


def _surely_once(body: bytes) -> Sequence[Any] | None:
    """Rows in which no key is said twice, because the text has no more colons, or ends of keys, than they
    have keys; None where that is not sure.

    No key hides: without space before a colon, every key ends in ``":``.
    """
    try:
        rows, keys = _rows_and_keys(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, InvalidInput):
        return None
    text = np.frombuffer(body, np.uint8)
    colons = text == ord(":")
    if np.count_nonzero(colons) == keys:
        return rows
    before = text[np.flatnonzero(colons) - 1]
    sure = np.count_nonzero(before == ord('"')) == keys and not np.isin(before, SPACE).any()
    return rows if sure else None


def _rows_and_keys(body: bytes) -> tuple[Sequence[Any], int]:
    """The rows of a body, and how many keys it has: quickly where all rows have the columns of the first."""
    start = body.find(b"{", body.find(b"{") + 1)
    with suppress(msgspec.MsgspecError, ValueError):  # another row lacks one, or no field can have its name
        first = msgspec.json.decode(body[start : body.find(b"}") + 1], type=dict[str, msgspec.Raw])
        if len("".join(first)) < NAMES:
            rows = _reader(tuple(first)).decode(body).rows
            return rows, 1 + len(rows) * len(first)
    value = msgspec.json.decode(body)
    found = rows_in(value, "rows")
    return found, len(value) + sum(map(len, found))


@lru_cache(maxsize=64)
def _reader(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    """Reads the rows of a body that all have these columns, as structs: quicker than as mappings."""
    renamed = {f"c{number}": name for number, name in enumerate(names)}
    row = msgspec.defstruct("Row", [(each, Any) for each in renamed], rename=renamed, gc=False)
    return msgspec.json.Decoder(msgspec.defstruct("Rows", [("rows", list[row])]))  # type: ignore[valid-type]


class _SaidTwice(Exception):
    """A key of an object, again."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        given = [name for name, _ in pairs]
        raise _SaidTwice(next(name for name in given if given.count(name) > 1))


_once_only = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=len, parse_float=len, parse_constant=len
)  # what numbers are is not looked at


_EXPECTED = 'expected {{"{name}": [{{column: value, ...}}, ...]}}.'


def rows_in(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a body, which are objects all of them."""
    rows = value.get(name) if isinstance(value, dict) else None
    if not isinstance(rows, list) or not set(map(type, rows)) <= {dict}:
        raise InvalidInput("body", _EXPECTED.format(name=name))
    return rows


@contextmanager
def _expecting_json() -> Iterator[None]:
    try:
        yield
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(
            "body", expected="JSON with numbers and depth that can be read", got=f"something else ({error})"
        ) from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidInput("body", expected="JSON", got=f"something else ({error})") from error
