"""One function for each thing a person does with files; the only code the front ends call.

Modules are imported on first use: a command pays for what it calls, and its help for nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelist.workflows import certify, demo, labelling, lifecycle, selection, source, summaries, tables

__all__ = ["certify", "demo", "labelling", "lifecycle", "selection", "source", "summaries", "tables"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
