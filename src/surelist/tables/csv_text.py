"""CSV files as text, before an engine makes tables of them: the delimiter, and what cannot be read.

Engines say what they tripped over; ``explain`` says what is wrong with the file, where, and what to do.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from surelist.errors import InvalidInput

LONGEST_NAME = 131_072  # characters; Python's csv module reads no longer cells
_START = 1 << 20
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = {b"PK\x03\x04": "an Excel workbook or a zip file", b"PAR1": "a Parquet file", b"%PDF": "a PDF"}


def delimiter_of(path: str | Path, default: str = ",") -> str:
    """Tab for .tsv, else ``default``."""
    return "\t" if ".tsv" in Path(path).suffixes else default


def delimiter_in(path: str) -> str:
    """Tab for .tsv; else the one of , ; tab | that the header line has most of."""
    try:
        with _bytes(path) as file:
            start = file.readline(_START)
    except (OSError, EOFError) as error:
        raise InvalidInput(
            f"file: cannot read {path}: {getattr(error, 'strerror', None) or error}."
        ) from error
    _require_text(path, start)
    return "\t" if delimiter_of(path) == "\t" else most_frequent(start.decode("utf-8", errors="replace"))


def most_frequent(header: str) -> str:
    """The one of , ; tab | that a header line has most of, outside quotes."""
    bare = re.sub('"[^"]*"', "", header)
    return max(",;\t|", key=bare.count)


def header_of(line: str) -> list[str]:
    """The names in a header line, as written."""
    try:
        return next(csv.reader([line], delimiter=most_frequent(line)), [])
    except csv.Error as error:
        raise InvalidInput(
            f"file: expected column names of at most {LONGEST_NAME:,} characters in the first line, got a "
            "longer one. Check that the first line holds the names."
        ) from error


def explain(paths: tuple[str, ...], delimiter: str) -> str | None:
    """What is wrong with the first file that is no UTF-8 text with rows of equal length, if any is."""
    for path in paths:
        try:
            reason = _not_text(path) or _ragged(path, delimiter)
        except (OSError, EOFError):
            return None
        if reason is not None:
            return f"{path}: {reason}"
    return None


def _bytes(path: str) -> IO[bytes]:
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    file: IO[bytes] = opened(path, "rb")
    return file


def _require_text(path: str, start: bytes) -> None:
    if not start:
        raise InvalidInput(f"file: {path} is empty: expected a line of column names, and rows.")
    if start.startswith(_UTF16) or start[:2].count(0) == 1:
        raise InvalidInput(f"file: {path} is UTF-16 text, expected UTF-8. Save it as CSV UTF-8.")
    for magic, what in _NO_TEXT.items():
        if start.startswith(magic):
            raise InvalidInput(f"file: {path} is {what}, expected CSV. Save it as CSV, or fix its ending.")


def _not_text(path: str) -> str | None:
    with _bytes(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                wrong = line[error.start : error.start + 1]
                shown = line[max(0, error.start - 20) : error.start + 20].decode("latin-1").strip()
                return (
                    f"expected UTF-8 text, got the byte 0x{wrong.hex()} in line {number} ({shown!r} if it is "
                    "Latin-1). Save it as CSV UTF-8."
                )
    return None


def _ragged(path: str, delimiter: str) -> str | None:
    with _bytes(path) as file:
        rows = csv.reader(_lines(file), delimiter=delimiter, strict=True)
        columns, line = 0, 1
        try:
            for row in rows:
                columns = columns or len(row)
                if row and len(row) != columns:
                    return (
                        f"expected {columns} values in every row, as in the header, got {len(row)} in line "
                        f"{line}. Quote values that hold a {delimiter!r}, and complete short rows."
                    )
                line = rows.line_num + 1
        except csv.Error as error:
            if "field limit" in str(error):
                return None
            return (
                f"the row that begins in line {line} has quotes that do not match. Double the quotes "
                "inside quoted values."
            )
    return None


def _lines(file: IO[bytes]) -> Iterator[str]:
    for line in file:
        yield line.decode("utf-8-sig")
