"""Files that appear under their name only when complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surelist.errors import InvalidInput


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder, moved to ``path`` when the block ends well.

    Whatever goes wrong, ``path`` keeps what it held before and the temporary file is removed.
    """
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=f".part{path.suffix}", dir=path.parent
        )
    except OSError as error:
        raise InvalidInput(f"output: cannot write {path}: {error.strerror}.") from error
    os.close(handle)
    temporary = Path(name)
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, 0o666 & ~mask)
    try:
        yield temporary
        with open(temporary, "rb") as done:
            os.fsync(done.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
