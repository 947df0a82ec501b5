"""Uploads and shortlists on disk, for as long as the settings say and no longer.

A request body is written in pieces while it arrives, counted against the limit, hashed, and
checked for what it is. Names on disk are random; what a person called the file is only shown.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.service.choices import AboutList, AskedPromise, ChosenColumns, ListCounts, PromiseOutcome
from surelist.service.errors import NotFound, TooLarge
from surelist.workflows.files import Profile
from surelist.workflows.source import NO_HINTS, Hints, Origin, Source, begins_as_json

if sys.platform != "win32":
    import fcntl

PIECE = 1 << 18
LOCK = ".lock"  # beside the folder, which is empty when nothing waits
FORMATS = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx", b"\xd0\xcf\x11\xe0": "xls"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_STRANGERS = {
    b"\x1f\x8b": "compressed with gzip. Send it uncompressed",
    b"%PDF": "a PDF document. Export the table as CSV or Excel",
}
Shape = TypeVar("Shape", "Draft", "KeptList")


class Upload(Struct, frozen=True):
    """A file that arrived: where it is, how large, its SHA-256, and csv, jsonl, parquet, xlsx or xls.

    What no engine reads as it is lies there as Parquet; ``origin`` then says what it was. ``name`` is what
    the person calls it who sent it.
    """

    path: Path
    size: int
    sha256: str
    format: str
    origin: Origin | None = None
    name: str = "the upload"

    def source(self, hints: Hints = NO_HINTS) -> Source:
        """As a table."""
        return Source(self.path, name=self.name, hints=hints, origin=self.origin)


class Draft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An upload on the page that waits for a person's decisions, and what they were so far."""

    id: str
    owner: str
    kind: str
    upload: Upload
    until: float
    policy: str | None = None  # whose pool it is
    campaign: str | None = None
    sheets: tuple[str, ...] = ()  # of which one has to be chosen
    profile: Profile | None = None
    columns: ChosenColumns | None = None
    reading: tuple[str, ...] = ()  # what was understood of the columns
    asked: AskedPromise | None = None
    typed: dict[str, str] = {}  # the form of a campaign or labelling
    then: str = "promise"  # the page after the columns
    outcome: PromiseOutcome | None = None
    about: AboutList | None = None
    keep: int | None = None  # seconds for which the list is to be kept
    others: Upload | None = None  # scores of other candidates, beside the past ones

    @property
    def filename(self) -> str:
        return self.upload.name

    @property
    def files(self) -> list[Path]:
        """All its files."""
        return [each.path for each in (self.upload, self.others) if each is not None]


class KeptList(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shortlist, or a collection that is being labelled, for as long as was chosen."""

    id: str
    upload: Upload
    until: float
    columns: ChosenColumns
    told: int = 0  # of a labelling: the entry with answers after which this list was laid out
    stage: str = ""
    counts: ListCounts | None = None  # how many of it are qualified

    @property
    def files(self) -> list[Path]:
        return [self.upload.path, list_of(self.upload)]


@contextmanager
def removing(*paths: Path) -> Iterator[None]:
    """These files go if the block does not end well."""
    try:
        yield
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


class _Receiver:
    """Takes pieces of a body into a file; refuses early what cannot become a table."""

    upload: Upload  # once all of it is here

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._limit = file, limit
        self._hash, self._size, self._lines = hashlib.sha256(), 0, 1
        self._format: str | None = None
        self._utf16 = False

    def take(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size > self._limit:
            raise TooLarge(self._limit)
        if self._format is None:
            self._format = _sniff(piece)
            self._utf16 = piece.startswith(UTF16) or piece[:2].count(0) == 1
        if self._format == "csv" and not self._utf16:
            self._check_text(piece)
        self._hash.update(piece)
        self._file.write(piece)

    def finish(self, path: Path) -> None:
        """Readers go by the ending, so the file gets the one that fits its content."""
        if self._size == 0 or self._format is None:
            raise InvalidInput(
                "file", "it is empty (0 bytes). Expected CSV, JSON Lines, Excel or Parquet with a row."
            )
        named = path.rename(path.with_suffix(f".{self._format}"))
        self.upload = Upload(named, self._size, self._hash.hexdigest(), self._format)

    def _check_text(self, piece: bytes) -> None:
        if b"\0" in piece:
            raise InvalidInput(
                "file",
                f"expected CSV text, but line {self._lines + piece[: piece.index(0)].count(10)} holds NUL "
                "bytes. Save the table as CSV in UTF-8, or as Parquet.",
            )
        self._lines += piece.count(10)


def _sniff(start: bytes) -> str:
    for magic, form in FORMATS.items():
        if start.startswith(magic):
            return form
    for magic, what in _STRANGERS.items():
        if start.startswith(magic):
            raise InvalidInput("file", f"expected CSV, JSON Lines, Excel or Parquet, but this is {what}.")
    return "jsonl" if begins_as_json(start) else "csv"


class Spool:
    """The folder where uploads and results wait."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
        self._lock = _only_one(folder)

    def close(self) -> None:
        """Leave the folder to the next process."""
        self._lock.close()

    async def receive(self, pieces: AsyncIterator[bytes], limit: int) -> Upload:
        """Write a request body to disk as it arrives."""
        with self._receiving(limit) as receiver:
            async for piece in pieces:
                receiver.take(piece)
        return receiver.upload

    def store(self, source: BinaryIO, limit: int, name: str = "the upload") -> Upload:
        """Store an upload from an open file."""
        with self._receiving(limit) as receiver:
            while piece := source.read(PIECE):
                receiver.take(piece)
        printable = "".join(c for c in Path(name).name if c.isprintable())[:120]
        return replace(receiver.upload, name=printable or "upload")

    def store_lines(self, lines: bytes, sha256: str) -> Upload:
        """JSON objects, one per line, that came in something with this hash."""
        path = self.new_path("jsonl")
        with removing(path):
            path.write_bytes(lines)
        return Upload(path, path.stat().st_size, sha256, "jsonl")

    def linked(self, upload: Upload) -> Upload:
        """The same file under another name, which stays when the first one goes."""
        path = self.new_path(upload.path.suffix[1:])
        os.link(upload.path, path)
        return replace(upload, path=path)

    def new_path(self, format: str) -> Path:
        return self.folder / f"made-{secrets.token_hex(8)}.{format}"

    def add_draft(self, owner: str, kind: str, upload: Upload, seconds: int, **more: Any) -> Draft:
        ident, until = secrets.token_hex(8), time.time() + seconds
        draft = Draft(id=ident, owner=owner, kind=kind, upload=upload, until=until, **more)
        return self._write("draft", draft)

    def draft(self, ident: str, owner: str, *kinds: str) -> Draft:
        """A draft of this session, of these kinds if any are named; others look as if they did not exist."""
        draft = self._read("draft", ident, Draft)
        other = draft is not None and bool(kinds) and draft.kind not in kinds
        if draft is None or other or draft.owner != owner:
            raise NotFound("upload: it is no longer here. Uploads are removed after use; send it again.")
        return draft

    def note(self, draft: Draft, **changes: object) -> Draft:
        """The draft with other values from now on."""
        return self._write("draft", replace(draft, **changes))

    def add_others(self, draft: Draft, others: Upload | None) -> Draft:
        """Put other candidates' scores beside a draft, instead of those before."""
        if draft.others is not None:
            draft.others.path.unlink(missing_ok=True)
        return self.note(draft, others=others)

    def drop_draft(self, draft: Draft, keep_seconds: int = 0) -> None:
        """Remove an upload after its result was made, or keep it for the time that is set."""
        if keep_seconds > 0:
            self.note(draft, until=time.time() + keep_seconds)
        else:
            self._remove("draft", draft)

    def keep_result(
        self, ident: str, upload: Upload, seconds: int, columns: ChosenColumns, **more: Any
    ) -> None:
        """A shortlist and which of its columns is which, for download and review."""
        until = time.time() + seconds
        self._write("result", KeptList(id=ident, upload=upload, until=until, columns=columns, **more))

    def keep_counts(self, kept: KeptList, counts: ListCounts) -> None:
        """How many of a shortlist are qualified, beside it."""
        self._write("result", replace(kept, counts=counts))

    def keep_collection(self, ident: str, upload: Upload, seconds: int, columns: ChosenColumns) -> None:
        """A collection to be labelled."""
        until = time.time() + seconds
        self._write("labelling", KeptList(id=ident, upload=upload, until=until, columns=columns))

    def result(self, ident: str) -> KeptList | None:
        """A shortlist that can still be downloaded."""
        return self._read("result", ident, KeptList)

    def collection(self, ident: str) -> KeptList | None:
        """A collection that is being labelled, as long as it is kept."""
        return self._read("labelling", ident, KeptList)

    def kept(self, ident: str) -> KeptList | None:
        """What is kept of candidates under this name: a list, or the collection it comes from."""
        return self.result(ident) or self.collection(ident)

    def results(self) -> list[KeptList]:
        """All shortlists and collections that are kept, those that go first at the top."""
        both = [*self._waiting("labelling", KeptList), *self._waiting("result", KeptList)]
        return sorted({each.id: each for each in both}.values(), key=lambda each: each.until)

    def drafts(self) -> list[Draft]:
        """All uploads that wait for a person, those that go first at the top."""
        return self._waiting("draft", Draft)

    def _waiting(self, kind: str, shape: type[Shape]) -> list[Shape]:
        names = (file.stem.partition("-")[2] for file in self.folder.glob(f"{kind}-*.json"))
        kept = [each for name in names if (each := self._read(kind, name, shape)) is not None]
        return sorted(kept, key=lambda each: each.until)

    def drop_result(self, kept: KeptList, *, replaced: bool = False) -> None:
        """Remove a shortlist; one that was ``replaced`` leaves its name to the other."""
        self._remove("result", kept, name=not replaced)

    def drop(self, ident: str) -> None:
        """Remove a list, and the collection it comes from, whatever there is of them."""
        for kind in ("result", "labelling"):
            if (kept := self._read(kind, ident, KeptList)) is not None:
                self._remove(kind, kept)

    def sweep(self, starting: bool = False) -> list[str]:
        """Remove what is past its time, and at the start whatever a crash left behind.

        Returns the selections and labellings of whose candidates nothing is left.
        """
        kept: set[Path] = set()
        removed = set()
        for file in self.folder.glob("*.json"):
            kind, _, ident = file.stem.partition("-")
            shape: Any = Draft if kind == "draft" else KeptList
            known: Draft | KeptList | None = self._read(kind, ident, shape, expired=True)
            if known is not None and known.until >= time.time():
                kept |= {*known.files, list_of(known.upload)}
                continue
            if known is not None:
                self._remove(kind, known)
                removed |= {ident} if kind != "draft" else set()
            file.unlink(missing_ok=True)
        for file in self.folder.iterdir() if starting else ():
            if file.suffix != ".json" and file not in kept and file.name != LOCK:
                file.unlink(missing_ok=True)
        return sorted(ident for ident in removed if self.kept(ident) is None)

    @contextmanager
    def _receiving(self, limit: int) -> Iterator[_Receiver]:
        path = self.folder / f"body-{secrets.token_hex(8)}.part"
        with removing(path):
            with path.open("wb") as file:
                yield (receiver := _Receiver(file, limit))
            receiver.finish(path)

    def _path(self, kind: str, ident: str) -> Path:
        return self.folder / f"{kind}-{ident if ident.isalnum() and ident.isascii() else 'none'}.json"

    def _remove(self, kind: str, known: Draft | KeptList, *, name: bool = True) -> None:
        for path in known.files:
            path.unlink(missing_ok=True)
        if name:
            self._path(kind, known.id).unlink(missing_ok=True)

    def _write(self, kind: str, value: Shape) -> Shape:
        with writing(self._path(kind, value.id)) as temporary:
            temporary.write_bytes(msgspec.json.encode(value, enc_hook=str))
        return value

    def _read(self, kind: str, ident: str, shape: type[Shape], *, expired: bool = False) -> Shape | None:
        """What waits under this name, unless its time is up."""
        try:
            text = self._path(kind, ident).read_bytes()
            value = msgspec.json.decode(text, type=shape, dec_hook=lambda _, path: Path(path))
        except (OSError, msgspec.MsgspecError):
            return None
        return value if expired or value.until > time.time() else None


def _only_one(folder: Path) -> IO[bytes]:
    """Held as long as the service runs: a second one would sweep away the first one's uploads."""
    lock = folder.with_suffix(LOCK).open("ab")
    try:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise InvalidInput(
            "data",
            f"another surelist is running in {folder.parent}. Stop it, or give this one a folder of its "
            "own with --data; both may use the same PostgreSQL --database.",
        ) from error
    return lock


def list_of(upload: Upload) -> Path:
    """Where a shortlist lies ready to be paged through and searched (``worklist``)."""
    return upload.path.with_suffix(".list")
