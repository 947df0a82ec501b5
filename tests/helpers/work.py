"""Pieces of work for worker processes; light, since a process of its own imports it."""

from __future__ import annotations

import os
import time
from pathlib import Path


def fail_with(error: Exception) -> None:
    raise error


def write(path: Path, size: int) -> int:
    return path.write_bytes(b"x" * size)


def hold(size: int) -> None:
    held = bytearray(os.urandom(1 << 20) * (size >> 20))
    time.sleep(30)
    assert held
