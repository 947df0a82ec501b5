"""Which files a path, glob or folder stands for, of what format, and the columns that its folders are."""

from __future__ import annotations

import glob
import itertools
import os
import re
from pathlib import Path

from surelist.errors import InvalidInput
from surelist.tables import excel
from surelist.tables.engines import is_remote

FORMATS = {
    ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".tsv.gz": "csv", ".txt": "csv", ".parquet": "parquet",
    ".jsonl": "json", ".jsonl.gz": "json", ".ndjson": "json", ".ndjson.gz": "json",
    **dict.fromkeys(excel.ENDINGS, "excel"),
}  # fmt: skip

_PARTITION = re.compile(r"(?<=/)([^/=]+)=[^/]*(?=/)")  # folders named column=value


def file_format(path: str | os.PathLike[str]) -> str:
    """``csv``, ``json``, ``parquet`` or ``excel``, by extension."""
    name = os.fspath(path).lower()
    for ending, form in FORMATS.items():
        if name.endswith(ending):
            return form
    raise InvalidInput("file", expected=f"a name ending in {', '.join(FORMATS)}", got=repr(Path(path).name))


def files_of(source: str | os.PathLike[str]) -> list[str]:
    """The files behind a path, glob or folder; addresses go to the engine as they are.

    A path that exists is that file or folder, brackets and stars in its name included.
    """
    source = os.fspath(source)
    if is_remote(source):
        return [source]
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [source]
    if glob.has_magic(source):
        matches = sorted(each for each in glob.glob(source, recursive=True) if Path(each).is_file())
        if matches:
            return matches
        raise InvalidInput("file", f"no file matches {source}.")
    raise InvalidInput("file", f"{source} does not exist.")


def _folder(path: Path) -> list[str]:
    """Data files of a folder, as Spark and others write them; never those still being written."""
    if (path / "_temporary").exists() and not (path / "_SUCCESS").exists():
        raise InvalidInput(
            "file", f"{path} is half-written: whatever wrote it did not finish. Write it again."
        )
    known = tuple(each for each in FORMATS if each != ".txt")  # beside tables that is a note
    hidden = ("_", ".", "~$")
    files = []
    for above, below, names in os.walk(path):
        below[:] = [each for each in below if not each.startswith(hidden)]
        found = [each for each in names if each.lower().endswith(known) and not each.startswith(hidden)]
        files += [
            each for name in found if os.path.isfile(each := os.path.join(above, name).removeprefix("./"))
        ]
    if not files:
        raise InvalidInput("file", f"{path} is a folder without files ending in {', '.join(FORMATS)}.")
    return sorted(files, key=lambda each: each.split(os.sep))


def base_of(source: str) -> Path | None:
    """The folder that a user named, or the one from which a pattern starts; None of a file."""
    folder = Path(source)
    if is_remote(source) or folder.is_file() or not (folder.is_dir() or glob.has_magic(source)):
        return None
    if folder.is_dir():
        return folder
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), folder.parts))


def partitions_in(source: str, folder: Path | None, paths: list[str]) -> tuple[list[str], list[str]]:
    """Columns that folders named column=value stand for, in the folder a user named, and above it.

    Only folders and patterns over them: whoever names a file means what is in it.
    """
    if folder is None:
        return (_PARTITION.findall(source) if is_remote(source) and glob.has_magic(source) else []), []
    root = f"{folder}{os.sep}"
    names = (each[len(root) :] if each.startswith(root) else os.path.relpath(each, folder) for each in paths)
    inside = [_PARTITION.findall(f"/{each}".replace(os.sep, "/")) for each in names]
    above = _PARTITION.findall(f"{folder.absolute().as_posix()}/")
    return list(dict.fromkeys(name for each in inside for name in each)), above
