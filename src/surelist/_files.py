"""Files of ours: they appear only when complete, and what they hold is strict, versioned JSON.

A file's shape is a plain dataclass; pydantic checks it, imported only when a file is read.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

from surelist.errors import InvalidInput, PolicyFileError

STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}  # __pydantic_config__ of a file's shape
MAY_BE_ABSENT = {"may be absent": True}  # metadata of a field that is left out where it is None

Shape = TypeVar("Shape")


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder, moved to ``path`` when the block ends well.

    Whatever goes wrong, ``path`` keeps what it held before and the temporary file is removed.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part{path.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from error
    try:
        yield temporary
        with open(temporary, "rb") as done:
            os.fsync(done.fileno())
        _move(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _move(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"output: cannot write {path}: {getattr(error, 'strerror', None) or error}.")


def parse(text: str, shape: type[Shape], version: int | Collection[int] | None, name: str) -> Shape:
    """``text`` as ``shape``; ``name`` says in errors which file it is, e.g. "policy: p.json".

    No unknown or missing fields, no conversions, no infinities. ``version`` None: it has none.
    """
    from pydantic import ValidationError

    try:
        raw = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name} is not valid JSON: {error}.") from error
    if version is not None:
        _check_head(raw, shape, version, name)
    try:
        value: Shape = _adapter(cast(Hashable, shape)).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PolicyFileError(f"{name} does not fit the format at {where!r}: {first['msg']}.") from error
    for missing in _missing(value, raw):
        raise PolicyFileError(f"{name} does not fit the format at {missing!r}: Field required.")
    return value


def plain(value: Any) -> Any:
    """A dataclass as JSON's own values, in the order of its fields."""
    if is_dataclass(value):
        return {
            each.name: plain(own)
            for each in fields(value)
            if not ((own := getattr(value, each.name)) is None and each.metadata.get("may be absent"))
        }
    if isinstance(value, Mapping):
        return {key: plain(own) for key, own in value.items()}
    return [plain(own) for own in value] if isinstance(value, (list, tuple)) else value


def hold(condition: bool, problem: str) -> None:
    """A file may not contradict itself."""
    if not condition:
        raise PolicyFileError(f"it contradicts itself: {problem}.")


@cache
def _adapter(shape: Hashable) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cast(Any, shape))


def _missing(value: Any, raw: Any, where: str = "") -> Iterator[str]:
    """Fields that a default would stand in for: a file says everything."""
    if is_dataclass(value):
        for each in fields(value):
            if each.name in raw:
                yield from _missing(getattr(value, each.name), raw[each.name], f"{where}{each.name}.")
            elif not each.metadata.get("may be absent"):
                yield where + each.name
    elif isinstance(value, (list, tuple)):
        for place, (own, its_raw) in enumerate(zip(value, raw, strict=True)):
            yield from _missing(own, its_raw, f"{where}{place}.")


def _check_head(raw: Any, shape: type[Any], version: int | Collection[int], name: str) -> None:
    """Kind and version come first: a newer file has fields that would only confuse."""
    kind = get_type_hints(shape).get("kind")
    if kind is not None:
        wanted = get_args(kind)[0]
        if not isinstance(raw, dict) or raw.get("kind") != wanted:
            raise PolicyFileError(f"{name} is not a {wanted} file.")
    if not isinstance(raw, dict) or "format" not in raw:
        raise PolicyFileError(f"{name} has no format version: it is not a file of ours.")
    known = [version] if isinstance(version, int) else sorted(version)
    if type(raw["format"]) is not int or raw["format"] not in known:
        raise PolicyFileError(
            f"{name} has format version {raw['format']!r}; this surelist reads version "
            f"{' and '.join(map(str, known))}. Use the surelist that wrote it, or a newer one."
        )


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")
