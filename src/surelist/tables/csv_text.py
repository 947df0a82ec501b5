"""CSV files as text, before an engine makes tables of them: encoding, delimiter, what cannot be read.

Engines say what they tripped over; ``explain`` says what is wrong with the file, where, and what to do.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from surelist._dataclasses import replace
from surelist.errors import InvalidInput
from surelist.tables.hints import Origin
from surelist.tables.total_row import require_no_total

LONGEST_NAME = 131_072  # characters; Python's csv module reads no longer cells
MOST_TITLES = 10  # lines above the column names
NUMBER = re.compile(r"[-+]?[\d.,'\s]+%?\s*$")
_START = 1 << 20
_END = 1 << 16
_LOOKED_AT = 16 << 20  # bytes that are decoded to see whether they are UTF-8
_UTF16 = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_SEPARATOR = re.compile("^\ufeff?sep=(.)\r?\n?$")  # a line that Excel puts first, and eats
_NO_TEXT = {
    b"\xff\xfe\x00\x00": "UTF-32 text",
    b"\x00\x00\xfe\xff": "UTF-32 text",
    b"PK\x03\x04": "an Excel workbook or a zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
}


def delimiter_of(path: str | Path, default: str = ",") -> str:
    """Tab for .tsv, else ``default``."""
    return "\t" if ".tsv" in Path(path).suffixes else default


def origin_of(path: str, header_row: int | None = None) -> Origin:
    """Look at the start of a file, and at all of it where it is small; ``header_row`` if it was said."""
    try:
        with _bytes(path) as file:
            start = file.read(_LOOKED_AT)
    except (OSError, EOFError) as error:
        raise InvalidInput(
            "file", f"cannot read {path}: {getattr(error, 'strerror', None) or error}."
        ) from error
    _require_text(path, start)
    encoding = _encoding(start)
    text = start[: 4 * _START].decode(encoding, errors="replace").removeprefix("\ufeff")
    marked, crlf = start.startswith(codecs.BOM_UTF8), first_line(text).endswith("\r\n")
    origin = Origin("csv", encoding=encoding, marked=marked, crlf=crlf)
    known = "\t" if delimiter_of(path) == "\t" else None
    if header_row is not None:
        return _with_row(text, known, origin, header_row, path)
    named = _SEPARATOR.match(text.partition("\n")[0])
    if named is not None and "\n" in text:
        return replace(origin, delimiter=named[1], header=2)
    return _with_names(text, known, origin)


def _with_row(text: str, delimiter: str | None, origin: Origin, row: int, path: str) -> Origin:
    """A copy that takes the column names from this row."""
    lines = io.StringIO(text, newline="")
    above = [lines.readline().strip() for _ in range(1, row)]
    names = first_line(lines)
    if not names.strip():
        raise InvalidInput("header_row", f"{path} has no column names in row {row}.")
    titles = tuple(each for each in above if each)[:MOST_TITLES]
    return replace(origin, delimiter=delimiter or most_frequent(names), header=row, above=titles)


def _with_names(text: str, delimiter: str | None, origin: Origin) -> Origin:
    """With what separates values and the line of names: below titles, which stand alone in their lines."""
    lines = io.StringIO(text, newline="")
    above: list[str] = []
    number = 1
    while len(above) <= MOST_TITLES and (line := first_line(lines)):
        mark = delimiter or most_frequent(line)
        try:
            cells = [each.strip() for each in next(csv.reader([line], delimiter=mark), []) if each.strip()]
        except csv.Error:
            break
        if len(cells) > 1:
            if above and any(map(NUMBER.match, cells)):
                break
            return replace(origin, delimiter=mark, header=number if above else 1, above=tuple(above))
        above += cells
        number += max(1, line.count("\n"))
    return replace(origin, delimiter=delimiter or most_frequent(first_line(text)))


def first_line(text: str | io.StringIO) -> str:
    """The first line, with its end; line breaks inside quotes belong to it."""
    lines = io.StringIO(text, newline="") if isinstance(text, str) else text
    start = lines.tell()
    whole = first = lines.readline()
    while whole.count('"') % 2 and len(whole) < LONGEST_NAME:
        more = lines.readline()
        if not more:
            break
        whole += more
    if whole.count('"') % 2 == 0:
        return whole
    lines.seek(start + len(first))  # a quote that is never closed
    return first


def delimiter_in(path: str) -> str:
    """Tab for .tsv; else the one of , ; tab | that the header line has most of."""
    return origin_of(path).delimiter


def require_whole(path: str, origin: Origin) -> None:
    """Refuse what engines read without a word: a column name twice, and a total below the data."""
    with _bytes(path) as file:
        start = file.read(4 * _START).decode(origin.encoding, errors="replace").removeprefix("\ufeff")
    lines = io.StringIO(start, newline="")
    for _ in range(1, origin.header):
        lines.readline()
    try:
        names = [each.strip() for each in next(csv.reader(lines, delimiter=origin.delimiter), [])]
    except csv.Error:
        return
    twice = next((each for at, each in enumerate(names) if each and each in names[:at]), None)
    if twice is not None:
        columns = " and ".join(str(at) for at, each in enumerate(names, 1) if each == twice)
        raise InvalidInput(
            "file",
            f"{path}: the column name {twice!r} appears twice, in columns {columns}. Give each column its "
            "own name.",
        )
    if not path.lower().endswith(".gz"):
        require_no_total(_last_row(path, origin), path)


def _encoding(start: bytes) -> str:
    for mark, name in _UTF16.items():
        if start.startswith(mark):
            return name
    if start[:2].count(0) == 1:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, len(start) < _LOOKED_AT)
    except UnicodeDecodeError:
        fits = _CONTROL.search(start) is None and not any(each in start for each in _NOT_IN_1252)
        return "cp1252" if fits else "utf-8"
    return "utf-8"


def _last_row(path: str, origin: Origin) -> list[str]:
    """The last line that holds something, where it is not the line of names."""
    with _bytes(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
    lines = [line for line in end.decode(origin.encoding, errors="replace").splitlines() if line.strip()]
    if len(lines) <= origin.header:
        return []
    try:
        return next(csv.reader(lines[-1:], delimiter=origin.delimiter), [])
    except csv.Error:
        return []


_NOT_IN_1252 = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")


def decoded(path: str, origin: Origin, output: Path) -> None:
    """Write the file in UTF-8, from the line of names on."""
    with _bytes(path) as file, output.open("w", encoding="utf-8", newline="") as out:
        text = io.TextIOWrapper(file, encoding=origin.encoding, newline="")
        try:
            for _ in range(1, origin.header):
                text.readline()
            start = text.read(1 << 16)
            out.write(start.removeprefix("\ufeff"))
            shutil.copyfileobj(text, out, 1 << 20)
        except UnicodeDecodeError as error:
            raise InvalidInput(
                "file",
                f"{path} begins as {origin.encoding} text and does not go on so: {error.reason}. Save it "
                "as CSV UTF-8.",
            ) from error


def sheet_rows(path: str, origin: Origin, rows: Sequence[int]) -> dict[int, int]:
    """Where data rows (from 0) are in a spreadsheet, which counts blank lines too."""
    wanted: set[int] = set(rows)
    lines: dict[int, int] = {}
    with _bytes(path) as file:
        text = io.TextIOWrapper(file, encoding=origin.encoding, newline="")
        for _ in range(1, origin.header):
            text.readline()
        reader = csv.reader(text, delimiter=origin.delimiter)
        number = -2  # the header is row 1
        try:
            for line, row in enumerate(reader, origin.header):
                number += bool(row)
                if number == -1:
                    continue
                if row and number in wanted:
                    lines[number] = line
                    if len(lines) == len(wanted):
                        break
        except (csv.Error, UnicodeDecodeError):
            pass
    return lines


def most_frequent(header: str) -> str:
    """The one of , ; tab | that a header line has most of, outside quotes."""
    bare = re.sub('"[^"]*"', "", header)
    return max(",;\t|", key=bare.count)


def header_of(line: str) -> list[str]:
    """The names in a header line, as written; it may hold line breaks inside quotes."""
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=most_frequent(line)), [])
    except csv.Error as error:
        raise InvalidInput(
            "file",
            expected=f"column names of at most {LONGEST_NAME:,} characters in the first line",
            got="a longer one",
            remedy="Check that the first line holds the names.",
        ) from error


def explain(paths: tuple[str, ...], delimiter: str) -> str | None:
    """What is wrong with the first file that is no UTF-8 text with rows of equal length and one kind of line
    ends, if any is."""
    for path in paths:
        try:
            reason = not_text(path) or _ragged(path, delimiter) or _mixed_ends(path)
        except (OSError, EOFError):
            return None
        if reason is not None:
            return f"{path}: {reason}"
    return None


def _bytes(path: str) -> BinaryIO:
    return cast(BinaryIO, (gzip.open if path.lower().endswith(".gz") else open)(path, "rb"))


def _require_text(path: str, start: bytes) -> None:
    if len(start) < _LOOKED_AT and not start.strip(b"\xef\xbb\xbf\xff\xfe\0\r\n\t "):
        raise InvalidInput("file", f"{path} is empty: expected a line of column names, and rows.")
    for magic, what in _NO_TEXT.items():
        if start.startswith(magic):
            raise InvalidInput(
                "file", f"{path} is {what}, expected CSV. Save it as CSV UTF-8, or fix its ending."
            )


def not_text(path: str) -> str | None:
    """Where a file stops being UTF-8, if it does."""
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


def _mixed_ends(path: str) -> str | None:
    with _bytes(path) as file:
        first = file.readline().endswith(b"\r\n")
        for number, line in enumerate(file, 2):
            if line.endswith(b"\n") and line.endswith(b"\r\n") != first:
                here, there = ("LF", "CR LF") if first else ("CR LF", "LF")
                return (
                    f"line {number} ends in {here} and line 1 in {there}. Save it with one kind of line ends."
                )
    return None


def _lines(file: BinaryIO) -> Iterator[str]:
    for line in file:
        yield line.decode("utf-8-sig")
