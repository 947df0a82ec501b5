"""JSON's own values as plain dataclasses: a file's shape is what the types of its fields say.

Strict: no unknown fields, none missing, no conversions but whole numbers for floats, nothing infinite, no
text that cannot be written again. Types of fields are str, int, float, bool, None, Any, Literals, lists,
tuples of one kind, dicts by text, dataclasses, and unions of one of these with None or of dataclasses that
their ``kind`` tells apart, or ``Annotated`` with a function that names the dataclass of a kind. What the
values mean together is not checked here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

MAY_BE_ABSENT = {"may be absent": True}  # metadata of a field that is left out where it is None
NAMES = {str: "a text", int: "a whole number", bool: "true or false", NoneType: "null"}

Shape = TypeVar("Shape")
Reader = Callable[[Any], Any]


class MisfitError(Exception):
    """A value that does not fit: what was expected, and the path to it, innermost last."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.path: list[str | int] = []

    def __str__(self) -> str:
        return f"at {'.'.join(map(str, self.path))!r}: {self.args[0]}"


def shaped(shape: type[Shape], raw: Any) -> Shape:
    """``raw``, as JSON gave it, as a ``shape``; ``MisfitError`` where it is none."""
    value: Shape = _reader(cast(Any, shape))(raw)
    return value


@cache
def _reader(hint: Any) -> Reader:
    """How values of this type are read; made when a value of it is first met."""
    kind, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda raw: raw
    if kind is Annotated:
        return lambda raw: _by_kind(raw, args[1])
    if kind is Literal:
        return lambda raw: _literal(raw, args)
    if kind in (Union, UnionType):
        return lambda raw: _union(raw, args)
    if kind in (list, tuple):
        return lambda raw: kind(_items(raw, args[0]))
    if kind is dict:
        return lambda raw: _mapping(raw, args[1])
    if is_dataclass(hint):
        return _dataclass_reader(hint)
    return _float if hint is float else lambda raw: _scalar(raw, hint)


def _literal(raw: Any, choices: tuple[Any, ...]) -> Any:
    if any(type(raw) is type(each) and raw == each for each in choices):
        return raw
    raise MisfitError(f"expected {' or '.join(map(repr, choices))}, got {_shown(raw)}")


def _union(raw: Any, choices: tuple[Any, ...]) -> Any:
    if raw is None and NoneType in choices:
        return None
    others = [each for each in choices if each is not NoneType]
    if len(others) > 1:
        named = {kind: each for each in others for kind in get_args(_hints(each)["kind"])}
        return _by_kind(raw, named.get)
    return _reader(others[0])(raw)


def _by_kind(raw: Any, shape_of: Callable[[str], Any]) -> Any:
    """An object as the dataclass that its kind stands for."""
    kind = raw.get("kind") if isinstance(raw, dict) else None
    shape = shape_of(kind) if isinstance(kind, str) else None
    if shape is None:
        raise MisfitError(f"unknown kind {_shown(kind)}")
    return _reader(shape)(raw)


def _items(raw: Any, hint: Any) -> list[Any]:
    if type(raw) is not list:
        raise MisfitError(f"expected a list, got {_shown(raw)}")
    read = _reader(hint)
    return [_inside(key, read, each) for key, each in enumerate(raw)]


def _mapping(raw: Any, hint: Any) -> dict[str, Any]:
    if type(raw) is not dict:
        raise MisfitError(f"expected an object, got {_shown(raw)}")
    read = _reader(hint)
    return {_scalar(name, str): _inside(name, read, each) for name, each in raw.items()}


def _dataclass_reader(shape: Any) -> Reader:
    known: dict[str, Field[Any]] = {each.name: each for each in fields(shape) if each.init}
    hints = _hints(shape)

    def read(raw: Any) -> Any:
        if type(raw) is not dict:
            raise MisfitError(f"expected an object, got {_shown(raw)}")
        for name in (*raw, *known):
            if name not in known:
                raise _at(name, MisfitError("unknown field"))
            if name not in raw and not known[name].metadata.get("may be absent"):
                raise _at(name, MisfitError("field required"))
        return shape(**{name: _inside(name, _reader(hints[name]), each) for name, each in raw.items()})

    return read


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape, include_extras=True)


def _float(raw: Any) -> float:
    if type(raw) is float or type(raw) is int:
        try:
            number = float(raw)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise MisfitError(f"expected a finite number, got {_shown(raw)}")


def _scalar(raw: Any, kind: Any) -> Any:
    if type(raw) is not kind:
        raise MisfitError(f"expected {NAMES[kind]}, got {_shown(raw)}")
    if kind is str and not raw.isascii():
        try:
            raw.encode("utf-8")
        except UnicodeEncodeError:
            raise MisfitError("a text with half a character in it") from None
    return raw


def _inside(key: str | int, read: Reader, raw: Any) -> Any:
    try:
        return read(raw)
    except MisfitError as error:
        raise _at(key, error) from None


def _at(key: str | int, error: MisfitError) -> MisfitError:
    error.path.insert(0, key)
    return error


def _shown(raw: Any) -> str:
    """A value in an error: short, and in ASCII."""
    text = ascii(raw)
    return text if len(text) <= 60 else f"{text[:60]}..."
