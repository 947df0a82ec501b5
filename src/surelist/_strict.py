"""The pydantic base of file shapes that are not plain dataclasses yet."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from surelist._files import hold, parse

__all__ = ["File", "Strict", "hold", "parse"]


class Strict(BaseModel):
    """No unknown or missing fields, no conversions, no infinities, no changes afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


File = TypeVar("File", bound=Strict)
