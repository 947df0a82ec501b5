"""What every file of ours shares: strict, versioned JSON, and one wording for what is wrong with it."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from surelist.errors import PolicyFileError


class Strict(BaseModel):
    """No unknown or missing fields, no conversions, no infinities, no changes afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


File = TypeVar("File", bound=Strict)


def parse(text: str, model: type[File], version: int, name: str) -> File:
    """``text`` as ``model``; ``name`` says in errors which file it is, e.g. "policy: p.json"."""
    try:
        raw = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name} is not valid JSON: {error}.") from error
    _check_head(raw, model, version, name)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PolicyFileError(f"{name} does not fit the format at {where!r}: {first['msg']}.") from error


def hold(condition: bool, problem: str) -> None:
    """A file may not contradict itself."""
    if not condition:
        raise PolicyFileError(f"it contradicts itself: {problem}.")


def _check_head(raw: Any, model: type[Strict], version: int, name: str) -> None:
    """Kind and version come first: a newer file has fields that would only confuse."""
    kind = model.model_fields.get("kind")
    if kind is not None:
        wanted = kind.annotation.__args__[0]  # type: ignore[union-attr]
        if not isinstance(raw, dict) or raw.get("kind") != wanted:
            raise PolicyFileError(f"{name} is not a {wanted} file.")
    if not isinstance(raw, dict) or "format" not in raw:
        raise PolicyFileError(f"{name} has no format version: it is not a file of ours.")
    if type(raw["format"]) is not int or raw["format"] != version:
        raise PolicyFileError(
            f"{name} has format version {raw['format']!r}; this surelist reads version {version}. "
            "Use the surelist that wrote it, or a newer one."
        )


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")
