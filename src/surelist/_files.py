"""Files that appear under their name only when complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelist.errors import InvalidInput


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
