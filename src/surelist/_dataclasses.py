"""``dataclasses`` as in the standard library, with methods that all classes share.

The standard one compiles up to six functions for every class, which is most of the time that importing
ninety of them takes. Here only ``__init__`` and what keeps a frozen one frozen are compiled;
showing, comparing and hashing are written once, below, and give the same answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import Field, asdict, astuple, field, fields, is_dataclass
from dataclasses import replace as _replace
from functools import cache
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

__all__ = ["Field", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """A copy with other values; of a dataclass or of a struct."""
        return (structs.replace if isinstance(value, Struct) else _replace)(value, **changes)

    def dataclass(
        cls: type | None = None,
        /,
        *,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        kw_only: bool = False,
    ) -> type | Callable[[type], type]:
        """Make a dataclass of a class; methods that it defines itself stay."""

        def made(cls: type) -> type:
            defined = vars(cls)
            if repr and "__repr__" not in defined:
                cls.__repr__ = _repr
            if eq and defined.get("__hash__") is None:
                cls.__hash__ = _hash if frozen else None
            if eq and "__eq__" not in defined:
                cls.__eq__ = _eq
            return dataclasses.dataclass(repr=False, eq=False, frozen=frozen, kw_only=kw_only)(cls)

        return made if cls is None else made(cls)


@cache
def _names(cls: Any, use: str) -> tuple[str, ...]:
    """The fields of a class that are shown (``repr``), compared or hashed."""
    every = fields(cls)
    if use == "hash":
        return tuple(each.name for each in every if (each.compare if each.hash is None else each.hash))
    return tuple(each.name for each in every if getattr(each, use))


def _values(self: Any, use: str) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in _names(self.__class__, use))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in _names(self.__class__, "repr"))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: object, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self, "compare") == _values(other, "compare")


def _hash(self: object) -> int:
    return hash(_values(self, "hash"))
