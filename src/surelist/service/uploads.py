"""Uploads and shortlists on disk, for as long as the settings say and no longer.

A request body is written in pieces while it arrives, counted against the limit, hashed, and
checked for what it is. Names on disk are random; what a person called the file is only shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.service.errors import NotFound, TooLarge
from surelist.workflows.source import begins_as_json

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


@dataclass(frozen=True)
class Upload:
    """A file that arrived: where it is, how large, its SHA-256, and csv, jsonl, parquet, xlsx or xls.

    What no engine reads as it is lies there as Parquet; ``origin`` then says what it was.
    """

    path: Path
    size: int
    sha256: str
    format: str
    origin: dict[str, Any] | None = None


@dataclass(frozen=True)
class Draft:
    """An upload on the page that waits for a person's decisions."""

    id: str
    owner: str
    kind: str
    filename: str
    upload: Upload
    until: float
    policy: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    others: Upload | None = None  # scores of other candidates, beside the past ones

    @property
    def files(self) -> list[Path]:
        """All its files."""
        return [each.path for each in (self.upload, self.others) if each is not None]


class _Receiver:
    """Takes pieces of a body; refuses early what cannot become a table."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit = path, limit
        self._hash, self._size, self._lines = hashlib.sha256(), 0, 1
        self._format: str | None = None
        self._utf16 = False

    def take(self, piece: bytes, file: BinaryIO) -> None:
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
        file.write(piece)

    def done(self) -> Upload:
        if self._size == 0 or self._format is None:
            raise InvalidInput(
                "file", "it is empty (0 bytes). Expected CSV, JSON Lines, Excel or Parquet with a row."
            )
        return Upload(self._path, self._size, self._hash.hexdigest(), self._format)

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
        path = self.folder / f"body-{secrets.token_hex(8)}.part"
        with self._undone(path), path.open("wb") as file:
            receiver = _Receiver(path, limit)
            async for piece in pieces:
                receiver.take(piece, file)
            upload = receiver.done()
        return self._named(upload)

    def store(self, source: BinaryIO, limit: int) -> Upload:
        """The same from an open file."""
        path = self.folder / f"body-{secrets.token_hex(8)}.part"
        with self._undone(path), path.open("wb") as file:
            receiver = _Receiver(path, limit)
            while piece := source.read(PIECE):
                receiver.take(piece, file)
            upload = receiver.done()
        return self._named(upload)

    def store_lines(self, lines: bytes, sha256: str) -> Upload:
        """JSON objects, one per line, that came in something with this hash."""
        path = self.new_path("jsonl")
        with self._undone(path):
            path.write_bytes(lines)
        return Upload(path, path.stat().st_size, sha256, "jsonl")

    def new_path(self, format: str) -> Path:
        return self.folder / f"made-{secrets.token_hex(8)}.{format}"

    def add_draft(
        self, owner: str, kind: str, filename: str, upload: Upload, seconds: int, policy: str | None = None
    ) -> Draft:
        name = _printable(filename)
        draft = Draft(secrets.token_hex(8), owner, kind, name, upload, time.time() + seconds, policy)
        self._write(f"draft-{draft.id}", draft)
        return draft

    def draft(self, ident: str, owner: str, *kinds: str) -> Draft:
        """A draft of this session, of these kinds if any are named; others look as if they did not exist."""
        draft = self._read(f"draft-{_plain(ident)}")
        other = draft is not None and bool(kinds) and draft.kind not in kinds
        if draft is None or other or draft.owner != owner or draft.until < time.time():
            raise NotFound("upload: it is no longer here. Uploads are removed after use; send it again.")
        return draft

    def note(self, draft: Draft, **notes: Any) -> Draft:
        draft = replace(draft, notes={**draft.notes, **notes})
        self._write(f"draft-{draft.id}", draft)
        return draft

    def add_others(self, draft: Draft, others: Upload | None, name: str) -> Draft:
        """Put other candidates' scores beside a draft, instead of those before."""
        if draft.others is not None:
            draft.others.path.unlink(missing_ok=True)
        return self.note(replace(draft, others=others), others_name=_printable(name))

    def drop_draft(self, draft: Draft, keep_seconds: int = 0) -> None:
        """Remove an upload after its result was made, or keep it for the time that is set."""
        if keep_seconds > 0:
            self._write(f"draft-{draft.id}", replace(draft, until=time.time() + keep_seconds))
            return
        for file in draft.files:
            file.unlink(missing_ok=True)
        (self.folder / f"draft-{draft.id}.json").unlink(missing_ok=True)

    def keep_result(
        self, selection: str, upload: Upload, seconds: int, columns: dict[str, str | None]
    ) -> None:
        """A shortlist and which of its columns is which, for download and review."""
        until = time.time() + seconds
        self._write(
            f"result-{selection}", Draft(selection, "", "result", "", upload, until, notes=dict(columns))
        )

    def keep_collection(self, ident: str, draft: Draft, seconds: int, columns: dict[str, str | None]) -> None:
        """A collection to be labelled: no longer one person's draft."""
        kept = replace(
            draft, id=ident, owner="", kind="labelling", until=time.time() + seconds, notes=columns
        )
        self._write(f"labelling-{ident}", kept)
        (self.folder / f"draft-{draft.id}.json").unlink(missing_ok=True)

    def give_back(self, ident: str, draft: Draft) -> None:
        """A collection that came to nothing is a draft again; what was laid out of it goes."""
        self._write(f"draft-{draft.id}", draft)
        (self.folder / f"labelling-{_plain(ident)}.json").unlink(missing_ok=True)
        self.drop(ident)

    def collection(self, ident: str) -> Draft | None:
        """A collection that is being labelled, as long as it is kept."""
        kept = self._read(f"labelling-{_plain(ident)}")
        return kept if kept is not None and kept.until > time.time() else None

    def drop_collection(self, ident: str) -> None:
        kept = self.collection(ident)
        if kept is not None:
            kept.upload.path.unlink(missing_ok=True)
        (self.folder / f"labelling-{_plain(ident)}.json").unlink(missing_ok=True)

    def results(self) -> list[Draft]:
        """All shortlists that are kept, those that go first at the top."""
        return self._waiting("result")

    def drafts(self) -> list[Draft]:
        """All uploads that wait for a person, those that go first at the top."""
        return self._waiting("draft")

    def _waiting(self, kind: str) -> list[Draft]:
        kept = (self._read(file.stem) for file in self.folder.glob(f"{kind}-*.json"))
        return sorted(
            (each for each in kept if each and each.until > time.time()), key=lambda each: each.until
        )

    def drop_result(self, kept: Draft, *, replaced: bool = False) -> None:
        """Remove a shortlist; one that was ``replaced`` leaves its name to the other."""
        for path in (kept.upload.path, list_of(kept.upload)):
            path.unlink(missing_ok=True)
        if not replaced:
            (self.folder / f"result-{kept.id}.json").unlink(missing_ok=True)

    def drop(self, ident: str) -> None:
        """Remove a list, and the collection it comes from, whatever there is of them."""
        if (kept := self.result(ident)) is not None:
            self.drop_result(kept)
        self.drop_collection(ident)

    def result(self, selection: str) -> Draft | None:
        """A shortlist that can still be downloaded."""
        kept = self._read(f"result-{_plain(selection)}")
        return kept if kept is not None and kept.until > time.time() else None

    def sweep(self, starting: bool = False) -> list[str]:
        """Remove what is past its time, and at the start whatever a crash left behind.

        Returns the selections whose shortlists were removed.
        """
        kept: set[Path] = set()
        removed = []
        for file in self.folder.glob("*.json"):
            draft = self._read(file.stem)
            if draft is not None and draft.until >= time.time():
                kept |= {*draft.files, list_of(draft.upload)}
                continue
            if draft is not None and draft.kind == "result":
                self.drop_result(draft)
                removed.append(draft.id)
            for each in draft.files if draft is not None else ():
                each.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        for file in self.folder.iterdir() if starting else ():
            if file.suffix != ".json" and file not in kept and file.name != LOCK:
                file.unlink(missing_ok=True)
        return removed

    @contextmanager
    def _undone(self, path: Path) -> Iterator[None]:
        try:
            yield
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _named(self, upload: Upload) -> Upload:
        """Readers go by the ending, so the file gets the one that fits its content."""
        path = upload.path.with_suffix(f".{upload.format}")
        upload.path.rename(path)
        return replace(upload, path=path)

    def _write(self, name: str, draft: Draft) -> None:
        with writing(self.folder / f"{name}.json") as temporary:
            temporary.write_text(json.dumps(asdict(draft), default=str), encoding="utf-8")

    def _read(self, name: str) -> Draft | None:
        try:
            raw = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            for each in ("upload", "others"):
                if raw.get(each) is not None:
                    raw[each] = Upload(**{**raw[each], "path": Path(raw[each]["path"])})
            return Draft(**raw)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _printable(filename: str) -> str:
    return "".join(c for c in Path(filename).name if c.isprintable())[:120] or "upload"


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


def _plain(ident: str) -> str:
    return ident if ident.isalnum() and ident.isascii() else "none"
