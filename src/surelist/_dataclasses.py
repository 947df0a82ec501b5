"""``dataclasses`` of the standard library, with a ``replace`` that takes structs as well."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field, fields
from dataclasses import replace as _replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

__all__ = ["asdict", "astuple", "dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """A copy with other values; of a dataclass or of a struct."""
        return (structs.replace if isinstance(value, Struct) else _replace)(value, **changes)
