"""Files of ours: they appear only when complete, and what they hold is strict, versioned JSON.

A file's shape is what the fields of a msgspec Struct say; what the values mean together is checked elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from surelist.errors import InvalidInput, PolicyFileError

try:
    import fcntl
except ImportError:  # without locks a change by someone else is still noticed, by ``Versions``
    fcntl = None  # type: ignore[assignment]

Shape = TypeVar("Shape")
# what fields of files hold
Count = Annotated[int, Meta(ge=0)]
Chance = Annotated[float, Meta(gt=0, lt=1)]
Part = Annotated[float, Meta(ge=0, le=1)]  # of something
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]  # SHA-256, or as many random bits
_locks = threading.local()
_unfinished: set[Path] = set()  # temporary files and folders of this process


@contextmanager
def writing(path: Path, *, inputs: Iterable[str | Path] = (), mode: int | None = None) -> Iterator[Path]:
    """A temporary file that becomes ``path`` when the block ends well.

    Whatever goes wrong, ``path`` keeps what it held before and the temporary file is removed. A
    link is written through to what it points at; a pipe or terminal gets the bytes once they are
    complete; an existing file keeps its mode (``mode``: it gets this one). What is none of
    these, or one of ``inputs``, is refused.
    """
    refuse_inputs(path, inputs)
    try:
        present = os.stat(path)
    except FileNotFoundError:
        present = None
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from error
    if present is not None and _takes_a_stream(path, present):
        with _streaming(path) as temporary:
            yield temporary
        return
    if mode is None and present is not None:
        mode = stat.S_IMODE(present.st_mode)
    with _replacing(path, mode) as temporary:
        yield temporary


def refuse_inputs(path: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise where ``path`` is one of the files that are read, under whatever name."""
    try:
        present = os.stat(path)
    except (OSError, ValueError):  # what is not there is nobody's input
        return
    for each in inputs:
        try:
            same = os.path.samestat(present, os.stat(each))
        except (OSError, ValueError):
            continue
        if same:
            raise InvalidInput("output", f"{path} is the input {each}; choose another name for the output.")


def _takes_a_stream(path: Path, present: os.stat_result) -> bool:
    """Whether the bytes go into what is there (a pipe, a terminal) instead of replacing it."""
    kind = present.st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        return True
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "not a file that can be written to"
        raise InvalidInput("output", f"{path} is {what}; choose another name.")
    return path.is_absolute() and path.parts[1] in ("dev", "proc")  # /dev/stdout sent to a file


@contextmanager
def _streaming(path: Path) -> Iterator[Path]:
    with temporary_folder() as folder:
        temporary = folder / path.name
        temporary.touch(0o600)
        yield temporary
        try:
            with temporary.open("rb") as done, open(path, "wb") as sink:
                shutil.copyfileobj(done, sink, 1 << 20)
        except BrokenPipeError:  # whoever reads it has seen enough
            raise
        except OSError as error:
            raise _cannot_write(path, error) from error


@contextmanager
def _replacing(path: Path, mode: int | None) -> Iterator[Path]:
    target = Path(os.path.realpath(path))
    temporary = unfinished(target.with_name(f".{target.name}.{secrets.token_hex(6)}.part{target.suffix}"))
    try:
        try:
            created = 0o666 if mode is None else mode & 0o666 | 0o600
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, created))
        except (OSError, ValueError) as error:
            raise _cannot_write(path, error) from error
        try:
            yield temporary
        except OSError as error:  # of a full disk: nothing else says what was being written
            if error.errno and not error.filename:
                error.filename = str(path)
            raise
        try:
            _flush(temporary, mode)  # writers may have made the file anew, with another mode
            os.replace(temporary, target)
            _flush(target.parent)
        except OSError as error:
            raise _cannot_write(path, error) from error
    finally:
        remove(temporary)


@contextmanager
def temporary_folder(
    parent: str | Path | None = None, name: str = "surelist-", end: str = ""
) -> Iterator[Path]:
    """A new folder, which goes when the block ends, however it ends."""
    folder = named_folder(parent, name, end)
    try:
        folder.mkdir(0o700)
        yield folder
    finally:
        remove(folder)


def named_folder(parent: str | Path | None = None, name: str = "surelist-", end: str = "") -> Path:
    """A new path for a folder, which goes when the command ends if not before."""
    return unfinished(Path(parent or tempfile.gettempdir()) / f"{name}{secrets.token_hex(8)}{end}")


def unfinished(temporary: Path) -> Path:
    """Noted before it is there: an interrupt may come at any time; what is left goes at the end."""
    _unfinished.add(temporary)
    return temporary


def remove_unfinished() -> None:
    """Remove what an interrupt left behind, at a place that no ``finally`` covers."""
    for temporary in tuple(_unfinished):
        remove(temporary)


def remove(temporary: Path) -> None:
    """Remove a temporary file or folder, with all that is in it."""
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        temporary.unlink()
    _unfinished.discard(temporary)


def _flush(path: Path, mode: int | None = None) -> None:
    """Wait until the disk has what was written to a file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def updating(path: Path, wait: float = 60.0) -> Iterator[None]:
    """Nobody else changes the state file ``path`` during the block; they wait, up to ``wait`` seconds.

    An exclusive lock on a file beside it, which goes with the process that holds it, however that
    ends. May be nested in one thread. Read, change and write inside one block, or lose what others
    wrote in between.
    """
    lock = Path(os.path.realpath(path))
    lock = lock.with_name(f".{lock.name}.lock")
    held: set[Path] = _locks.__dict__.setdefault("held", set())
    if lock in held or fcntl is None:
        yield
        return
    file = _acquire(lock, path, wait)
    held.add(lock)
    try:
        yield
    finally:
        held.discard(lock)
        with suppress(OSError):
            lock.unlink()
        os.close(file)


def _acquire(lock: Path, path: Path, wait: float) -> int:
    """An open file that has the lock, and is still the one that others would open."""
    until = time.monotonic() + wait
    while True:
        try:
            file = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        except (OSError, ValueError) as error:
            raise _cannot_write(path, error) from error
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(lock)):
                return file
        os.close(file)
        if time.monotonic() > until:
            in_use = f"{path} is in use by another process, for more than {wait:g} seconds now."
            raise InvalidInput("state", f"{in_use} Nothing was changed; try again when that has ended.")
        time.sleep(0.02)


class Versions:
    """Which contents of state files an object has read or written: those it may replace, no others."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def read(self, path: Path) -> str:
        """The text of a state file, remembered as the version to go on from."""
        try:
            content = path.read_bytes()
            text = content.decode("utf-8")
        except OSError as error:
            raise InvalidInput("state", f"cannot read {path}: {error.strerror}.") from error
        except ValueError as error:
            raise PolicyFileError("state", f"{path} is not a text file.") from error
        self._known[os.path.realpath(path)] = _digest(content)
        return text

    @contextmanager
    def replacing(self, path: Path, text: str) -> Iterator[None]:
        """``path`` holds ``text`` once the block has ended well, unless someone else has changed it."""
        content = text.encode("utf-8")
        with updating(path):
            self._compare(path)
            with writing(path) as temporary:
                temporary.write_bytes(content)
                yield
            self._known[os.path.realpath(path)] = _digest(content)

    def _compare(self, path: Path) -> None:
        known = self._known.get(os.path.realpath(path))
        if not path.is_file() or _digest(path.read_bytes()) == known:
            return
        if known is None:
            remedy = "Load it to go on from there, or save under another name."
            raise InvalidInput("state", f"{path} exists and would be lost. {remedy}")
        lost = f"{path} was changed by someone else since it was read, so nothing was saved."
        raise InvalidInput("state", f"{lost} Load it again and repeat what was done.")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _cannot_write(path: Path, error: Exception) -> InvalidInput:
    return InvalidInput("output", f"cannot write {path}: {getattr(error, 'strerror', None) or error}.")


def parse(text: str, shape: type[Shape], version: int | None, name: str) -> Shape:
    """``text`` as ``shape``; ``name`` says in errors which file it is, e.g. "policy: p.json".

    No unknown or missing fields, no conversions, no infinities. ``version`` None: it has none.
    """
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise PolicyFileError("", f"{name} is not valid JSON: {error}.") from error
    if version is not None:
        _check_head(raw, shape, version, name)
    try:
        return shaped(raw, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        raise PolicyFileError("", f"{name} does not fit the format: {error}.") from error


def shaped(raw: object, shape: type[Shape]) -> Shape:
    """``raw``, as JSON gave it, as a ``shape``; whatever we would write has to be there."""
    value = msgspec.convert(raw, shape)
    _require_whole(raw, msgspec.to_builtins(value), "$")
    return value


def _require_whole(raw: Any, written: Any, path: str) -> None:
    """Raise where a field was left out that has a default in the class: a file says everything."""
    if isinstance(written, dict):
        for name, each in written.items():
            if name not in raw:
                raise msgspec.ValidationError(f"Object missing required field `{name}` - at `{path}`")
            _require_whole(raw[name], each, f"{path}.{name}")
    elif isinstance(written, (list, tuple)):
        for place, (one, each) in enumerate(zip(raw, written, strict=True)):
            _require_whole(one, each, f"{path}[{place}]")


def hold(condition: bool, problem: str) -> None:
    """A file may not contradict itself."""
    if not condition:
        raise PolicyFileError("", f"it contradicts itself: {problem}.")


def _check_head(raw: object, shape: type[object], version: int, name: str) -> None:
    """Kind and version come first: a newer file has fields that would only confuse."""
    kind, held = get_type_hints(shape).get("kind"), raw.get("kind") if isinstance(raw, dict) else None
    ours = f" {held[:80]}" if isinstance(held, str) and held.startswith("surelist ") else ""
    if kind is not None and held != (wanted := get_args(kind)[0]):
        raise PolicyFileError("", f"{name} is not a {wanted} file{f', it is a{ours} file' * bool(ours)}.")
    if kind is None and ours:
        raise PolicyFileError("", f"{name} is a{ours} file; another kind is expected here.")
    if not isinstance(raw, dict) or "format" not in raw:
        raise PolicyFileError("", f"{name} has no format version: it is not a file of ours.")
    if type(raw["format"]) is not int or raw["format"] != version:
        other = f"{name} has format version {raw['format']!r}; this surelist reads version {version}."
        raise PolicyFileError("", f"{other} Use the surelist that wrote it, or make it anew.")
