"""CSV files as text, before an engine makes tables of them: encoding, delimiter, what cannot be read.

Engines say what they tripped over; ``explain`` says what is wrong with the file, where, and what to do.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from msgspec.structs import replace

from surelist.errors import InvalidInput
from surelist.tables.hints import Origin

LONGEST_NAME = 131_072  # characters; Python's csv module reads no longer cells
MOST_TITLES = 10  # lines above the column names
NUMBER = re.compile(r"[-+]?[\d.,'\s]+%?\s*$")
_START = 1 << 20
_END = 1 << 16
_LOOKED_AT = 16 << 20  # bytes that are decoded to see whether they are UTF-8
_UTF16 = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NOT_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what bytes become that are no text
_SEPARATOR = re.compile("^\ufeff?sep=(.)\r?\n?$")  # a line that Excel puts first, and eats
_NO_TEXT = {
    b"\xff\xfe\x00\x00": "UTF-32 text",
    b"\x00\x00\xfe\xff": "UTF-32 text",
    b"PK\x03\x04": "an Excel workbook or a zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
}
TOTALS = {
    "grand total",
    *["total", "totals", "subtotal", "sum", "average", "mean", "median", "count", "overall"],
    *["summe", "gesamt", "gesamtsumme", "zwischensumme", "mittelwert", "durchschnitt", "anzahl"],
    *["somme", "moyenne", "totale", "somma", "media", "promedio", "suma", "totaal", "gemiddelde"],
}


def delimiter_of(path: str | Path, default: str = ",") -> str:
    """Tab for .tsv, else ``default``."""
    return "\t" if ".tsv" in Path(path).suffixes else default


def origin_of(path: str, header_row: int | None = None) -> Origin:
    """Look at the start of a file, and at all of it where it is small; ``header_row`` if it was said."""
    try:
        with bytes_of(path) as file:
            start = file.read(_START)
            more = iter(lambda: file.read(_START), b"")
            if not (
                start.isascii() and all(each.isascii() for each in islice(more, _LOOKED_AT // _START - 1))
            ):
                file.seek(0)
                start = file.read(_LOOKED_AT)
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput("file", f"cannot read {path}: {why}.") from error
    if len(start) < _START and not start.strip(b"\xef\xbb\xbf\xff\xfe\0\r\n\t "):
        raise InvalidInput("file", f"{path} is empty: expected a line of column names, and rows.")
    for magic, what in _NO_TEXT.items():
        if start.startswith(magic):
            raise InvalidInput(
                "file", f"{path} is {what}, expected CSV. Save it as CSV UTF-8, or fix its ending."
            )
    encoding = _encoding(start)
    text = start[:_START].decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = io.StringIO(text, newline="")
    first = _first_line(lines)
    origin = Origin(
        "csv", encoding=encoding, marked=start.startswith(codecs.BOM_UTF8), crlf=first.endswith("\r\n"),
        torn=first.endswith("\r\n") and first.count("\r\n") < first.count("\n"),
    )  # fmt: skip
    lines.seek(0)
    tab = delimiter_of(path, "")
    if header_row is not None:
        above = [line.strip() for line in islice(lines, min(header_row - 1, len(text)))]
        names = _first_line(lines)
        if not names.strip():
            raise InvalidInput("header_row", f"{path} has no column names in row {header_row}.")
        titles = tuple(filter(None, above))[:MOST_TITLES]
        return replace(origin, delimiter=tab or _most_frequent(names), header=header_row, above=titles)
    named = _SEPARATOR.match(text.partition("\n")[0])
    if named is not None and "\n" in text:
        return replace(origin, delimiter=named[1], header=2)
    return _with_names(lines, tab, origin)


def _encoding(start: bytes) -> str:
    for mark, name in _UTF16.items():
        if start.startswith(mark):
            return name
    if start[:2].count(0) == 1:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    if start.isascii():
        return "utf-8"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, len(start) < _LOOKED_AT)
    except UnicodeDecodeError:
        return "utf-8" if _CONTROL.search(start) or _NOT_IN_1252.search(start) else "cp1252"
    return "utf-8"


def _with_names(lines: io.StringIO, delimiter: str, origin: Origin) -> Origin:
    """With what separates values and the line of names: below titles, which stand alone in their lines."""
    above: list[str] = []
    number, plain = 1, ""
    while len(above) <= MOST_TITLES and (line := _first_line(lines)):
        mark = delimiter or _most_frequent(line)
        plain = plain or mark
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
    return replace(origin, delimiter=plain)


def _first_line(lines: io.StringIO) -> str:
    """The next line, with its end; line breaks inside quotes belong to it."""
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


def _most_frequent(header: str) -> str:
    """The one of , ; tab | that a header line has most of, outside quotes."""
    bare = re.sub('"[^"]*"', "", header)
    return max(",;\t|", key=bare.count)


def bytes_of(path: str) -> BinaryIO:
    """A file to read from, unpacked where it is named .gz."""
    return cast(BinaryIO, (gzip.open if path.lower().endswith(".gz") else open)(path, "rb"))


def lines_of(path: str, origin: Origin) -> Iterator[str]:
    """The lines of a file from that with the names on; raises where it stops being the text it begins as."""
    errors = "surrogateescape" if origin.encoding == "utf-8" else "strict"
    with bytes_of(path) as file:
        text = io.TextIOWrapper(file, origin.encoding, errors, newline="")
        try:
            for number, line in enumerate(text, 1):
                if _NOT_UTF8.search(line):
                    raise InvalidInput("file", f"{path}: {_no_utf8(line, number)}")
                if number >= origin.header:
                    yield line.removeprefix("\ufeff") if number == 1 else line
        except UnicodeDecodeError as error:
            raise InvalidInput(
                "file",
                f"{path} begins as {origin.encoding} text and does not go on so: {error.reason}. Save it "
                "as CSV UTF-8.",
            ) from error


def even_lines(lines: Iterator[str]) -> Iterator[str]:
    """The same rows, each ending in LF; line breaks inside quotes stay what they are."""
    quoted = False
    for line in lines:
        quoted ^= line.count('"') % 2 == 1
        yield line if quoted or not line.endswith("\r\n") else line[:-2] + "\n"


def _no_utf8(line: str, number: int) -> str:
    at = len(_NOT_UTF8.split(line)[0].encode())
    raw = line.encode(errors="surrogateescape")
    shown = raw[max(0, at - 20) : at + 20].decode("latin-1").strip()
    return (
        f"expected UTF-8 text, got the byte 0x{raw[at]:02x} in line {number} ({shown!r} if it is Latin-1). "
        "Save it as CSV UTF-8."
    )


def names_in(path: str, origin: Origin) -> list[str]:
    """The names in the header, as written; they may hold line breaks inside quotes."""
    try:
        return next(csv.reader(lines_of(path, origin), delimiter=origin.delimiter), [])
    except csv.Error as error:
        raise InvalidInput(
            "file",
            expected=f"column names of at most {LONGEST_NAME:,} characters in the first line",
            got="a longer one",
            remedy="Check that the first line holds the names.",
        ) from error


def require_whole(path: str, origin: Origin) -> None:
    """Refuse what engines read without a word: a column name twice, and a total below the data."""
    names: list[str] = []
    with suppress(InvalidInput):
        names = [each.strip() for each in names_in(path, origin)]
    plain = [each.casefold() for each in names]  # DuckDB and Spark ignore case
    twice = next((each for at, each in enumerate(plain) if each and each in plain[:at]), None)
    if twice is not None:
        places = [at for at, each in enumerate(plain) if each == twice]
        alike = " or ".join(dict.fromkeys(repr(names[at]) for at in places))
        raise InvalidInput(
            "file",
            f"{path}: the column name {alike} appears twice, in columns "
            f"{' and '.join(str(at + 1) for at in places)}. Give each column its own name.",
        )
    if names and not path.lower().endswith(".gz"):
        require_no_total(_last_row(path, origin), path)


def _last_row(path: str, origin: Origin) -> list[str]:
    """The last line that holds something, where it is not the line of names."""
    with bytes_of(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
    lines = [line for line in end.decode(origin.encoding, errors="replace").splitlines() if line.strip()]
    with suppress(csv.Error):
        return next(csv.reader(lines[origin.header :][-1:], delimiter=origin.delimiter), [])
    return []


def require_no_total(last: Sequence[object], where: str) -> None:
    """Refuse a last row whose first filled cell is a word for a total."""
    first = next((cell for cell in last if cell is not None and cell != ""), None)
    if isinstance(first, str) and first.strip(" \u00a0:").casefold() in TOTALS:
        raise InvalidInput(
            where,
            "the last row looks like a total, not like a candidate: it begins with "
            f"{first.strip()!r}. Delete that row; if it is a candidate, rename it.",
        )


def sheet_rows(path: str, origin: Origin, rows: Sequence[int]) -> dict[int, int]:
    """Where data rows (from 0) are in a spreadsheet, which counts blank lines too."""
    wanted, found = set(rows), dict[int, int]()
    number = -2  # the names are row -1
    with suppress(csv.Error, InvalidInput):
        lines = csv.reader(lines_of(path, origin), delimiter=origin.delimiter)
        for line, row in enumerate(lines, origin.header):
            number += bool(row)
            if row and number in wanted:
                found[number] = line
                if len(found) == len(wanted):
                    break
    return found


def explain(paths: Sequence[str], header_row: int | None = None) -> str | None:
    """What is wrong with the first file that is no text with rows of equal length and one kind of line
    ends, or that is not like the first of all, if any is."""
    for path in paths:
        try:
            origin, like = origin_of(path, header_row), origin_of(paths[0], header_row)
            reason = _unreadable(path, origin) or _unlike(names_in(path, origin), origin, paths[0], like)
        except (OSError, EOFError):
            return None
        except InvalidInput as error:
            return str(error)
        if reason is not None:
            return f"{path}: {reason}"
    return None


def _unlike(names: list[str], origin: Origin, first: str, like: Origin) -> str | None:
    """How a file differs from the first one, so that both are no table."""
    if origin.delimiter != like.delimiter:
        return (
            f"has {origin.delimiter!r} between values, and {first} has {like.delimiter!r}. Save both alike."
        )
    gone = [each for each in names_in(first, like) if each not in names]
    return (
        f"has no column {gone[0]!r}, and {first} has one. Give all files the same columns." if gone else None
    )


def _unreadable(path: str, origin: Origin) -> str | None:
    rows = csv.reader(lines_of(path, origin), delimiter=origin.delimiter, strict=True)
    columns, line = 0, origin.header
    try:
        for row in rows:
            columns = columns or len(row)
            if row and len(row) != columns:
                return (
                    f"expected {columns} values in every row, as in the header, got {len(row)} in line "
                    f"{line}. Quote values that hold a {origin.delimiter!r}, and complete short rows."
                )
            line = origin.header + rows.line_num
    except csv.Error as error:
        if "field limit" not in str(error):
            return (
                f"the row that begins in line {line} has quotes that do not match. Double the quotes "
                "inside quoted values."
            )
    quoted = False
    for number, text in enumerate(lines_of(path, replace(origin, header=1)), 1):
        quoted ^= text.count('"') % 2 == 1
        if not quoted and text.endswith("\n") and text.endswith("\r\n") != origin.crlf:
            here, there = ("LF", "CR LF") if origin.crlf else ("CR LF", "LF")
            return f"line {number} ends in {here} and line 1 in {there}. Save it with one kind of line ends."
    return None
